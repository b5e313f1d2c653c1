"""Vocabulary: the words a vault is about follow the keyword index, with their vectors.

Which words those are hardly changes by one edit, so they are chosen again only when a share of the
passages has changed, and then only those that are new are embedded. What leaves the vault leaves
the vocabulary when the index is compacted.

Vectors are of the static model, in every tier: it is the one that is always here, reads 5,000 words
in a blink, and knows words better than sentences. A query is compared with them by the same model.
"""

from __future__ import annotations

from ragvault.index.vocabulary import choose, concepts, plan
from ragvault.ports import Embedder, KeywordIndex
from ragvault.store.catalogue import Catalogue
from ragvault.store.vectors import Chosen
from ragvault.text.analyze import Analyzer
from ragvault.text.fold import STOP_WORDS

LAG = 0.02  # share of the passages that may change before terms are chosen again


def is_due(catalogue: Catalogue, model: str) -> bool:
    """Whether enough has changed since the terms were chosen."""
    last = catalogue.vocabulary_chosen()
    if last.model != model:
        return True
    if last.revision == catalogue.revision:
        return False
    added, now = len(catalogue.chunks_since(last.revision)), catalogue.chunk_count()
    gone = last.passages + added - now
    return added + gone > LAG * now


def follow_vocabulary(
    catalogue: Catalogue, index: KeywordIndex, embedder: Embedder, stemming: str
) -> int:
    """Choose the terms anew and embed those that are new; how many those were."""
    passages = catalogue.chunk_count()
    known = concepts(index.words(), Analyzer(stemming).term_of, STOP_WORDS)
    have, old = catalogue.terms(), catalogue.vocabulary_chosen().model
    change = plan(choose(known, passages), have if old == embedder.name else ())
    gone = change.forget if old == embedder.name else have
    vectors = embedder.embed(change.embed, "passage")
    now = Chosen(catalogue.revision, passages, embedder.name)
    catalogue.change_vocabulary(now, change.embed, vectors, gone)
    return len(change.embed)


def prune_vocabulary(catalogue: Catalogue, index: KeywordIndex) -> None:
    """Forget the terms that stand nowhere; `index` is the keyword index, and is compact."""
    gone = [term for term in catalogue.terms() if not index.holders(term)]
    if gone:
        catalogue.drop_terms(gone)
