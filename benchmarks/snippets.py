"""Are snippets fit to read? On every result of the judged questions.

    RAGVAULT_BENCH_DATA=… python -m benchmarks.snippets [--corpora obsidian-tasks,jackyzha0-garden]

Counts snippets with markup outside code (`[[`, `](`, an address, a table rule, a fence, an HTML
tag), those that need more than three lines at 60 and at 100 columns, and measures what making them
takes, with the heading and the line of each match. Exits with 1 if any is at fault. The index is
only read.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter

from benchmarks import corpora
from benchmarks.corpora import NOW
from ragvault.answer.match import LINES, find_matches
from ragvault.cli.results import INDENT, Style
from ragvault.search import search
from ragvault.types import SearchRequest

CODE = re.compile(r"`[^`\n]*`")
FAULTS = {
    "wikilink": re.compile(r"\[\[|\]\]"),
    "link": re.compile(r"\]\("),
    "address": re.compile(r"https?:"),
    "table": re.compile(r"\|\s*:?-{2,}|^\s*\||(?<=\s)\|(?=\s)", re.M),
    "fence": re.compile(r"```|~~~"),
    "html": re.compile(r"</?(?:img|div|p|br|a|span|table|td|tr|details|summary|kbd)\b", re.I),
}
COLUMNS = (60, 100)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", default=",".join(corpora.JUDGED))
    parser.add_argument("--show", action="store_true", help="print every snippet at fault")
    chosen = parser.parse_args(arguments)
    print("| vault | results | by meaning alone | at fault | ms a result | ms p95 of an answer |")
    print("|---|---:|---:|---|---:|---:|")
    faulty = [name for name in chosen.corpora.split(",") if not measured(name, chosen.show)]
    if faulty:
        raise SystemExit(f"snippets at fault: {', '.join(faulty)}")


def measured(name: str, show: bool) -> bool:
    """One row of the table; whether no snippet is at fault."""
    corpus = corpora.corpus(name)
    faults: Counter[str] = Counter()
    results, unmarked, times = 0, 0, []
    with corpus.vault().corpus() as index:
        for question in corpus.questions:
            with index.snapshot():
                response = search(SearchRequest(question.query, NOW), index)
                began = time.process_time()
                found = find_matches(response.results, response.plan, index)
                times.append(1000 * (time.process_time() - began))
            results += len(found)
            unmarked += sum(not match.snippet.marks for match in found.values())
            for match in found.values():
                wrong = faults_of(match.snippet.text)
                faults.update(wrong)
                if wrong and show:
                    print(wrong, repr(match.snippet.text), file=sys.stderr)
    mean, p95 = sum(times) / (results or 1), sorted(times)[int(0.95 * len(times))]
    told = ", ".join(f"{count} {fault}" for fault, count in faults.items()) or "none"
    print(f"| {name} | {results} | {unmarked} | {told} | {mean:.2f} | {p95:.1f} |")
    return not faults


def faults_of(text: str) -> list[str]:
    prose = CODE.sub("", text)
    found = [fault for fault, pattern in FAULTS.items() if pattern.search(prose)]
    lines = [len(Style(width=width).marked(text, (), INDENT)) for width in COLUMNS]
    return found + (["lines"] if max(lines) > LINES or text.count("\n") >= LINES else [])


if __name__ == "__main__":
    main()
