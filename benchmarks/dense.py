"""How well each embedder finds by itself, with no other leg: nDCG@10 on judged collections.

    RAGVAULT_BENCH_DATA=… python -m benchmarks.dense [--models A,B] [--sets cranfield,cacm]

Documents are embedded whole (title and text), and every document is compared with every question,
so no index affects the result. The column float16 is the same with rounded vectors of documents.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks import data
from benchmarks.beir import Collection, read_beir
from ragvault.cli.console import LineProgress
from ragvault.config.settings import Models
from ragvault.evaluate import report
from ragvault.models.load import load_options, open_embedder
from ragvault.ports import Embedder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="bge-small-en-v1.5,potion-base-8M")
    parser.add_argument("--sets", default="cranfield,cacm")
    args = parser.parse_args()
    print("| collection | model | nDCG@10 | recall@10 | MRR@10 | float16 | passages/s |")
    print("|---|---|---|---|---|---|---|")
    for name in args.sets.split(","):
        collection = read_beir(data.folder("ir", name))
        for model in args.models.split(","):
            embedder = open_embedder(model, load_options(Models(), LineProgress()))
            print(f"| {name} | {embedder.name} | {_row(embedder, collection)} |", flush=True)


def _row(embedder: Embedder, collection: Collection) -> str:
    embedder.embed(["warm up"], "passage")
    begun = time.perf_counter()
    documents = embedder.embed([each.whole for each in collection.documents], "passage")
    speed = len(documents) / (time.perf_counter() - begun)
    questions = embedder.embed([each.query for each in collection.questions], "query")
    exact = _scores(questions @ documents.T, collection)
    halved = _scores(questions @ documents.astype(np.float16).astype(np.float32).T, collection)
    shown = [exact["ndcg@10"], exact["recall@10"], exact["mrr@10"]]
    rounding = f"{halved['ndcg@10']:.4f} ({halved['ndcg@10'] - exact['ndcg@10']:+.5f})"
    return " | ".join([*(f"{value:.4f}" for value in shown), rounding, f"{speed:,.0f}"])


def _scores(similarities: np.ndarray, collection: Collection) -> report.Scores:
    ids = [each.id for each in collection.documents]
    scores = []
    for row, question in zip(similarities, collection.questions, strict=True):
        best = np.argsort(-row, kind="stable")[:10]
        ranking = [ids[at] for at in best]
        # These collections were judged with other scales than ours: what has a grade is relevant.
        scores.append(report.score(ranking, question.grades, relevant=1))
    return report.average(scores)


if __name__ == "__main__":
    main()
