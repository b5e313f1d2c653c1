"""Other systems on the same passages, with the same embedding model and the same questions.

    python -m benchmarks.peers                          obsidian-tasks and jackyzha0-garden
    python -m benchmarks.peers --corpora ir/cranfield --peers bm25s,faiss,whoosh
    python -m benchmarks.peers --venv FOLDER            a Python that has the peers already

    faiss     IndexFlatIP over our vectors: the plain vector leg
    whoosh    one BM25F field over our passages, as Whoosh does it: the plain keyword leg
    bm25s     its BM25 over our passages, English stemming and stop words
    txtai     its hybrid (dense + BM25, 0.5 each) over our passages and vectors

Peers get the passages of our index with their headings, and their vectors. They also get our
vectors of the queries; the time of embedding is added for peers that need them. The rank of a note
is that of its best passage. Peers that ragvault does not depend on run in their own environment,
which is created on the first run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from benchmarks import corpora, quality, record
from benchmarks.corpora import Corpus
from ragvault.evaluate.report import ScoredAnswer, score, unique_notes
from ragvault.ports import Embedder

HERE = Path(__file__).parent
OURS = ("faiss", "whoosh")  # run with what ragvault has
THEIRS = ("bm25s", "txtai")
DENSE = ("faiss", "txtai")  # need the query's vector
PACKAGES = ("torch", "txtai", "bm25s", "PyStemmer")
DEEP = 100  # passages: enough for ten notes


def exported(corpus: Corpus, folder: Path) -> tuple[list[str], list[float]]:
    """Write passages, vectors and queries for a peer.

    Returns the note of each passage, and the milliseconds that each query took to embed.
    """
    vault = corpus.vault()
    with vault.corpus() as index:
        catalogue = index.catalogue
        ids = catalogue.passage_ids()
        rows = catalogue.passage_vectors(catalogue.tier_model("full"), ids)
        passages = {each.id: each for each in catalogue.passage_texts(ids.tolist())}
        paths = {catalogue.note_id(path): path for path in catalogue.files()}
        embedder = index.embedder()
        asked = [each.query for each in corpus.questions]
        queries, times = _embedded(embedder, asked)
    chosen = [passages[int(id_)] for id_ in ids]
    texts = ["\n".join((*each.headings, each.text)) for each in chosen]
    np.save(folder / "vectors.npy", np.nan_to_num(rows))
    np.save(folder / "queries.npy", queries)
    (folder / "texts.json").write_text(json.dumps({"passages": texts, "queries": asked}))
    return [paths[each.note_id] for each in chosen], times


def _embedded(embedder: Embedder, texts: Sequence[str]) -> tuple[Any, list[float]]:
    embedder.embed(texts[:1], "query")
    rows, times = [], []
    for text in texts:
        began = time.perf_counter()
        rows.append(embedder.embed([text], "query")[0])
        times.append(1000 * (time.perf_counter() - began))
    return np.stack(rows), times


def run(peer: str, python: str, folder: Path) -> dict[str, Any]:
    """Index and ask in a process of its own: rankings of passages, and milliseconds."""
    # -I: modules here must not be taken for those of the standard library.
    command = [python, "-I", str(HERE / "peer_process.py"), peer, str(folder), str(DEEP)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{peer} failed: {done.stderr.strip().splitlines()[-1:]}")
    output: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return output


def answered(corpus: Corpus, output: Mapping[str, Any], notes: Sequence[str]) -> list[ScoredAnswer]:
    found = []
    for question, ranking, took in zip(
        corpus.questions, output["rankings"], output["times"], strict=True
    ):
        order = [notes[at] for at in ranking if notes[at] not in question.without]
        scores = score(order, question.grades, relevant=corpus.relevant)
        asked = replace(question, id=f"{corpus.name}:{question.id}")
        found.append(ScoredAnswer(asked, scores, tuple(unique_notes(order)), None, False, 0, took))
    return found


def compare(some: Sequence[Corpus], peers: Sequence[str], python: str) -> list[dict[str, Any]]:
    """Ours first, then every peer, pooled over the corpora."""
    results: dict[str, list[ScoredAnswer]] = {"ragvault": [], **{peer: [] for peer in peers}}
    spent: dict[str, float] = dict.fromkeys(peers, 0.0)
    versions: dict[str, str] = {}
    for corpus in some:
        corpus.index()
        ours = [_alike(each, corpus) for each in corpus.ask()]
        results["ragvault"] += ours
        with tempfile.TemporaryDirectory() as work:
            notes, embedding = exported(corpus, Path(work))
            for peer in peers:
                print(f"{corpus.name}: {peer}", file=sys.stderr, flush=True)
                output = run(peer, sys.executable if peer in OURS else python, Path(work))
                if peer in DENSE:
                    pairs = zip(output["times"], embedding, strict=True)
                    output["times"] = [asking + vector for asking, vector in pairs]
                results[peer] += answered(corpus, output, notes)
                spent[peer] += output["index_s"]
                versions[peer] = output["version"]
    rows = quality.rows(results)
    for row in rows:
        row["index_s"] = round(spent.get(row["profile"], 0.0), 2)
        row["version"] = versions.get(row["profile"], "")
    return rows


def _alike(answer: ScoredAnswer, corpus: Corpus) -> ScoredAnswer:
    asked = replace(answer.question, id=f"{corpus.name}:{answer.question.id}")
    kept = {name: value for name, value in answer.scores.items() if "context" not in name}
    return changed(answer, question=asked, scores=kept)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| system | nDCG@10 | MRR@10 | S@1 | R@10 | difference to ragvault [95 %] | ms | index s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        overall, against = row["overall"], row["against"]
        names = ("ndcg@10", "mrr@10", "success@1", "recall@10")
        cells = [f"{overall[name]:.3f}" for name in names]
        cells += [f"{against['mean']:+.3f} [{against['low']:+.3f}, {against['high']:+.3f}]"]
        cells += [f"{overall['latency_ms']['p50']:.1f}", f"{row['index_s'] or '–'}"]
        named = f"{row['profile']} {row['version']}".strip()
        lines.append(f"| {named} | {' | '.join(cells)} |")
    return "\n".join(lines)


def environment(named: Path | None) -> str:
    """The Python of an environment with the peers in it, made where there is none."""
    folder = named or record.home() / "peers"
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {', '.join(PACKAGES)}", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return str(python)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", default="", help="names, with commas between")
    parser.add_argument("--peers", default=",".join((*OURS, *THEIRS)))
    parser.add_argument("--limit", type=int, default=0, help="questions of a BEIR collection")
    parser.add_argument("--venv", type=Path)
    args = parser.parse_args(arguments)
    names = args.corpora.split(",") if args.corpora else quality.default_corpora()
    peers = args.peers.split(",")
    python = environment(args.venv) if set(peers) & set(THEIRS) else sys.executable
    some = [corpora.corpus(name, args.limit) for name in names]
    found = compare(some, peers, python)
    print(table(found))
    about = {"corpora": {each.name: len(each.questions) for each in some}}
    kind = "peers-beir" if all(name.startswith("ir/") for name in names) else "peers"
    record.save(kind if corpora.available() else f"{kind}-sample", found, **about)


if __name__ == "__main__":
    main()
