"""Communities of every vault in the data, and of the large corpus, whose notes link by address.

    python -m benchmarks.communities

Times are CPU seconds of `louvain_communities` and of the stamp that says whether links changed.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping

import networkx as nx

from benchmarks import data
from ragvault.index.graph import Edge, Ties, communities, link_graph, stamp, ties
from ragvault.update.graph import LinkGraph
from ragvault.vault import Vault


def main() -> None:
    print("| vault | notes with links | ties | communities | modularity | s | stamp, s |")
    print("|---|---|---|---|---|---|---|")
    for vault in sorted(data.folder("vaults").iterdir()):
        with tempfile.TemporaryDirectory() as home:
            opened = Vault.open(vault, environ={"RAGVAULT_HOME": home})
            opened.index("keyword")
            with opened.catalogue() as catalogue:
                links = LinkGraph(catalogue)
            _row(vault.name, links.ties, links.paths)
    edges = list(_links_of_corpus())
    notes = {note for edge in edges for note in edge[:2]}
    _row("mdn-content", ties(edges, {}), {note: f"{note:05}" for note in notes})


def _row(name: str, ties: Ties, paths: Mapping[int, str]) -> None:
    began = time.process_time()
    found = communities(ties, paths)
    took, began = time.process_time() - began, time.process_time()
    stamp(ties, paths)
    stamped = time.process_time() - began
    notes = sum(map(len, found))
    quality = nx.community.modularity(link_graph(ties, paths), found) if found else 0.0
    numbers = (
        f"{notes:,} | {len(ties):,} | {len(found)} | {quality:.3f} | {took:.2f} | {stamped:.2f}"
    )
    print(f"| {name} | {numbers} |", flush=True)


def _links_of_corpus() -> Iterator[Edge]:
    """The corpus links by address: its notes say theirs in `slug`."""
    notes: dict[str, int] = {}
    texts = []
    for path in sorted(data.scale().rglob("*.md")):
        text = path.read_text("utf-8", "replace")
        if slug := re.search(r"^slug: (\S+)$", text, re.MULTILINE):
            notes[slug[1].lower()] = len(notes)
            texts.append((len(notes) - 1, text))
    for note, text in texts:
        for address in re.findall(r"/en-US/docs/([^)#\s\"']+)", text):
            target = notes.get(address.strip("/").lower())
            if target is not None:
                yield Edge(note, target)


if __name__ == "__main__":
    main()
