"""Several queries in one search: what a second wording adds or costs.

    python -m benchmarks.paraphrases                    both judged vaults
    python -m benchmarks.paraphrases --corpora sample

Rules make a second wording of every judged question: its content words, a question about them, some
words replaced by others, its first two thirds, its words in reverse order. They lose what a
person's rewording would keep, so they are a hard test. Each rule is one row: nDCG@10 of the
question alone, of the wording alone, of both in one search (`ragvault search QUESTION --also
WORDING`), and of both with the worse one first. A second wording must not cost more than 0.01 of
the better one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import corpora
from ragvault.corpus import LocalCorpus
from ragvault.evaluate.questions import Question
from ragvault.evaluate.report import score
from ragvault.search import search
from ragvault.types import SearchRequest

METRIC = "ndcg@10"
ALLOWED = 0.01
STOP = re.compile(
    r"a|about|after|an|and|any|are|as|at|be|before|but|by|can|could|did|do|does|for|from|get|had|has"
    r"|have|how|i|if|in|into|is|it|its|me|my|need|no|not|of|on|or|our|should|so|some|than|that|the"
    r"|their|them|then|there|these|they|this|to|want|was|we|what|when|where|which|who|whom|whose|why"
    r"|will|with|would|you|your",
    re.I,
)
OTHERS = {
    "button": "control",
    "change": "modify",
    "code": "program",
    "computer": "machine",
    "create": "make",
    "date": "day",
    "delete": "remove",
    "error": "failure",
    "filter": "narrow down",
    "find": "locate",
    "hide": "conceal",
    "idea": "concept",
    "ideas": "concepts",
    "learn": "study",
    "life": "living",
    "note": "file",
    "notes": "files",
    "people": "humans",
    "plugin": "extension",
    "problem": "issue",
    "query": "search",
    "recurring": "repeating",
    "show": "display",
    "sort": "order",
    "system": "setup",
    "task": "todo",
    "tasks": "todos",
    "test": "check",
    "theory": "model",
    "use": "apply",
    "work": "job",
    "write": "author",
}


def content_words(query: str) -> list[str]:
    """The words of a query that are not stop words; all of them if there is no other."""
    found: list[str] = re.findall(r"[\w.+#'’-]+", query)
    return [word for word in found if not STOP.fullmatch(word)] or found


RULES: dict[str, Callable[[str], str]] = {
    "words": lambda query: " ".join(content_words(query)),
    "question": lambda query: f"what do my notes say about {' '.join(content_words(query))}?",
    "other words": lambda query: " ".join(OTHERS.get(w.lower(), w) for w in query.split()),
    "shorter": lambda query: " ".join(_two_thirds(content_words(query))),
    "reversed": lambda query: " ".join(reversed(content_words(query))),
}


def _two_thirds(words: Sequence[str]) -> Sequence[str]:
    return words[: max(1, (2 * len(words) + 2) // 3)]


def measured(corpus: corpora.Corpus) -> list[dict[str, float]]:
    """nDCG@10 of every question, by who is asked: `query`, RULE, `query+RULE`, `RULE+query`."""
    rows = []
    with corpus.vault().corpus() as index:
        for question in corpus.questions:
            if not question.relevant:
                continue
            rows.append(_scores(question, index, corpus.relevant))
    return rows


def _scores(question: Question, index: LocalCorpus, relevant: int) -> dict[str, float]:
    def ndcg(*queries: str) -> float:
        request = SearchRequest(
            queries[0],
            corpora.NOW,
            30,
            widen=False,
            verify=False,
            also=queries[1:],
            all_matches=True,
        )
        notes = dict.fromkeys(each.note.path for each in search(request, index).results)
        kept = [note for note in notes if note not in question.without]
        return score(kept, question.grades, relevant=relevant)[METRIC]

    found = {"query": ndcg(question.query)}
    for rule, worded in RULES.items():
        wording = worded(question.query)
        found[rule] = ndcg(wording)
        found[f"query+{rule}"] = ndcg(question.query, wording)
        found[f"{rule}+query"] = ndcg(wording, question.query)
    return found


def summary(rows: Sequence[dict[str, float]]) -> list[dict[str, Any]]:
    """The means of each rule, and whether the second wording cost too much."""

    def mean(name: str) -> float:
        return sum(row[name] for row in rows) / len(rows)

    found = []
    for rule in RULES:
        better = max(mean("query"), mean(rule))
        found.append(
            {
                "rule": rule,
                "question": round(mean("query"), 4),
                "wording": round(mean(rule), 4),
                "both": round(mean(f"query+{rule}"), 4),
                "difference to the better": round(mean(f"query+{rule}") - better, 4),
                "wording first": round(mean(f"{rule}+query"), 4),
                "kept": mean(f"query+{rule}") >= better - ALLOWED,
            }
        )
    return found


def main() -> int:
    """Print one table; exits with 1 if a second wording costs too much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = ",".join(corpora.JUDGED) if corpora.available() else "sample"
    parser.add_argument("--corpora", default=default)
    names = parser.parse_args().corpora.split(",")
    rows = [row for name in names for row in measured(corpora.corpus(name))]
    found = summary(rows)
    print(f"nDCG@10 over {len(rows)} questions of {', '.join(names)}")
    print(" | ".join(found[0]))
    for row in found:
        print(" | ".join(str(value) for value in row.values()))
    return 0 if all(row["kept"] for row in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
