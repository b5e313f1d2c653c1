"""Every number has bounds, and within them an index is made and a search answers.

A vault may come from anyone and brings its own settings, and a resident process is shared.
"""

from __future__ import annotations

import json
import operator
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from vault_kit import FAKE, SAMPLE, ragvault

from ragvault.config import schema
from ragvault.config.schema import Setting

MOST = 20.0  # seconds for forty notes; it takes 2 on an idle machine
NUMBERS = [each for each in schema.settings().values() if type(each.default) in (int, float)]
ORDERS = {"<": operator.lt, "<=": operator.le}


def bounds(setting: Setting) -> list[float]:
    """The lowest and the highest value, one that must be above 0 being nearly 0."""
    metas = [each for each in setting.type.__metadata__ if each.le is not None]
    (meta,) = metas
    return [meta.ge if meta.ge is not None else meta.gt + 1e-6, meta.le]


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda each: each.key)
def test_every_number_has_a_lowest_and_a_highest_value(setting):
    low, high = bounds(setting)

    assert low <= setting.default <= high


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("bounds")
    shutil.copytree(SAMPLE, made / "vault")
    own = {**FAKE, "RAGVAULT_HOME": str(made / "home"), "RAGVAULT_MODELS__RERANKER": "fake"}
    own |= {"RAGVAULT_RERANK__ENABLED": "true", "RAGVAULT_QUERY__EXPAND__METHOD": "percentile"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        assert ragvault("index", made / "vault", "-q").code == 0
        yield made / "vault"


def agreeing(setting: Setting, value: float) -> dict[str, float]:
    """The setting, and others of its table where a rule wants them to be as low or as high."""
    found = {setting.key: value}
    table = schema.tables()[setting.path[:-1]]
    known = schema.settings()

    def now(name: str) -> tuple[str, float]:
        own = known[(*setting.path[:-1], name)]
        return own.key, found.get(own.key, own.default)

    for _ in table.rules:
        for low, sign, high in table.rules:
            (low_key, lower), (high_key, higher) = now(low), now(high)
            if ORDERS[sign](lower, higher):
                continue
            if low_key in found:
                found[high_key] = lower
            else:
                found[low_key] = higher
    return found


@pytest.mark.slow
@pytest.mark.parametrize("highest", [False, True], ids=["lowest", "highest"])
@pytest.mark.parametrize("setting", NUMBERS, ids=lambda each: each.key)
def test_at_its_bounds_no_setting_costs_much_or_fails(setting, highest, vault, monkeypatch):
    values = agreeing(setting, bounds(setting)[highest])
    for key, value in values.items():
        monkeypatch.setenv(schema.settings()[tuple(key.split("."))].variable, json.dumps(value))
    start = monotonic()

    made = ragvault("index", vault, "-q", "--allow-empty")
    found = ragvault("search", "oven steam crust", "--vault", vault, "--json", "--all-matches")

    assert monotonic() - start < MOST
    assert {made.code, found.code} <= {0, 1, 2, 3}, made.err + found.err
    if found.code in (0, 1):
        json.loads(found.out, parse_constant=pytest.fail)  # no NaN and no Infinity
