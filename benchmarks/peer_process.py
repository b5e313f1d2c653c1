"""One peer in a process of its own: reads what peers.py exported, answers, prints JSON.

    python peer_process.py NAME FOLDER DEEP

Imports nothing of ragvault: it runs in the peers' own environment. Each peer is set up as its own
documentation shows for text with vectors that are made elsewhere.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np


def faiss_(texts, vectors, queries, asked, deep):
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return lambda at: index.search(queries[at : at + 1], deep)[1][0].tolist()


def whoosh_(texts, vectors, queries, asked, deep):
    from whoosh.analysis import StemmingAnalyzer
    from whoosh.fields import ID, TEXT, Schema
    from whoosh.filedb.filestore import RamStorage
    from whoosh.qparser import OrGroup, QueryParser

    schema = Schema(id=ID(stored=True), body=TEXT(analyzer=StemmingAnalyzer()))
    index = RamStorage().create_index(schema)
    with index.writer() as writer:
        for at, text in enumerate(texts):
            writer.add_document(id=str(at), body=text)
    searcher, parser = index.searcher(), QueryParser("body", schema, group=OrGroup)

    def ask(at):
        plain = "".join(c if c.isalnum() else " " for c in asked[at])
        return [int(hit["id"]) for hit in searcher.search(parser.parse(plain), limit=deep)]

    return ask


def bm25s_(texts, vectors, queries, asked, deep):
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    words = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    index.index(words, show_progress=False)

    def ask(at):
        tokens = bm25s.tokenize(asked[at], stopwords="en", stemmer=stemmer, show_progress=False)
        found, scores = index.retrieve(tokens, k=min(deep, len(texts)), show_progress=False)
        return [int(i) for i, s in zip(found[0], scores[0], strict=True) if s > 0]

    return ask


def txtai_(texts, vectors, queries, asked, deep):
    from txtai import Embeddings

    known = {text: vectors[at] for at, text in enumerate(texts)}
    known |= {text: queries[at] for at, text in enumerate(asked)}

    def transform(some):
        return np.stack([known[text] for text in some])

    index = Embeddings(method="external", transform=transform, hybrid=True, content=False)
    index.index((at, text, None) for at, text in enumerate(texts))
    return lambda at: [int(uid) for uid, _ in index.search(asked[at], deep)]


PEERS = {
    "faiss": (faiss_, "faiss-cpu"),
    "whoosh": (whoosh_, "whoosh3"),
    "bm25s": (bm25s_, "bm25s"),
    "txtai": (txtai_, "txtai"),
}


def main() -> None:
    name, folder, deep = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    exported = json.loads((folder / "texts.json").read_text())
    vectors, queries = np.load(folder / "vectors.npy"), np.load(folder / "queries.npy")
    build, package = PEERS[name]
    began = time.perf_counter()
    ask = build(exported["passages"], vectors, queries, exported["queries"], deep)
    spent = time.perf_counter() - began
    ask(0)
    rankings, times = [], []
    for at in range(len(queries)):
        began = time.perf_counter()
        rankings.append(ask(at))
        times.append(1000 * (time.perf_counter() - began))
    print(
        json.dumps(
            {
                "rankings": rankings,
                "times": times,
                "index_s": spent,
                "version": version(package),
            }
        )
    )


if __name__ == "__main__":
    main()
