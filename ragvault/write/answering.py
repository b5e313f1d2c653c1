"""Answering: which model answers in a tier, and which ones did before it.

    take_over     a model answers from now on; the one before it is replaced
    begin         a model is embedded with, and so is wanted
    replaced      those that answered once, and since when they do so no more

A model on its way to answering is not replaced, however long it takes and whoever works beside it
with other settings: hours may be in its vectors. So that a model answered is written down when
another one takes its place, and never guessed from what is wanted now.
"""

from __future__ import annotations

import time

from ragvault.store.catalogue import Catalogue


def take_over(catalogue: Catalogue, tier: str, model: str) -> None:
    """From now on this model answers in the tier."""
    before = catalogue.tier_model(tier)
    if before and before != model:
        catalogue.set_replaced_at(before, time.time())
    catalogue.set_tier_model(tier, model)


def begin(catalogue: Catalogue, model: str) -> None:
    """Somebody wants this model's vectors, though another one may have taken its place."""
    if catalogue.replaced_at(model):
        catalogue.set_replaced_at(model, 0)


def replaced(catalogue: Catalogue, before: float) -> list[str]:
    """The models with vectors that answer no more, and last did before a moment."""
    answering = (catalogue.tier_model("full"), catalogue.tier_model("static"))
    since = {model: catalogue.replaced_at(model) for model in catalogue.model_dims()}
    gone = [model for model, when in since.items() if 0 < when < before]
    return [model for model in gone if model not in answering]
