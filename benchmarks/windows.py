"""Long texts: windows against truncation; and how batches change vectors.

    RAGVAULT_BENCH_DATA=… python -m benchmarks.windows [--texts state_of_the_union,wikitexts]

Long texts are cut into passages of 4,000 characters, about 1,000 tokens. Each question must find
the passage that contains the first words of its answer: once with passages read in windows, as
ragvault does, and once truncated to what the model takes. Then short passages are embedded one by
one and in batches by the bare runtime, and their vectors compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from tokenizers import Tokenizer

from benchmarks import data
from benchmarks.embed import Bare
from ragvault.cli.console import LineProgress
from ragvault.config import folders
from ragvault.config.settings import Models
from ragvault.models import registry
from ragvault.models.load import load_options, open_embedder

SIZE = 4000  # characters of a passage
NAME = Models().embedder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", default="state_of_the_union,wikitexts")
    parser.add_argument("--passages", type=int, default=256, help="for the batches")
    args = parser.parse_args()
    for name in args.texts.split(","):
        _long(data.folder("ir", "chunking-evaluation"), name)
    _batches(data.passages(args.passages))


def _long(folder: Path, name: str) -> None:
    text = (folder / "corpora" / f"{name}.md").read_text("utf-8")
    passages = [text[at : at + SIZE] for at in range(0, len(text), SIZE)]
    questions = list(_questions(folder, name))
    embedder = open_embedder(NAME, load_options(Models(), LineProgress()))
    asked = embedder.embed([query for query, _ in questions], "query")
    wanted = [start // SIZE for _, start in questions]
    print(f"{name}: {len(passages)} passages of about 1,000 tokens, {len(questions)} questions")
    for way, texts in (("windows", passages), ("cut off", _cut(passages))):
        found = asked @ embedder.embed(texts, "passage").T
        print(f"  {way}   MRR {_mrr(found, wanted):.3f}", flush=True)


def _questions(folder: Path, name: str) -> Iterator[tuple[str, int]]:
    for line in (folder / "questions.jsonl").read_bytes().splitlines():
        entry = msgspec.json.decode(line)
        if entry["corpus"] == name:
            yield entry["text"], entry["references"][0]["start_index"]


def _cut(texts: Sequence[str]) -> list[str]:
    """What of each text fits the model at once."""
    model, builds = registry.find_model(NAME)
    shelf = folders.models_dir()
    build = registry.installed(builds, shelf)
    assert build is not None
    tokenizer = Tokenizer.from_buffer(registry.read_verified(build, "tokenizer.json", shelf))
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.max_tokens)
    return [text[: max(end for _, end in tokenizer.encode(text).offsets)] for text in texts]


def _mrr(similarities: np.ndarray, wanted: Sequence[int]) -> float:
    ranks = [1 + int((row > row[at]).sum()) for row, at in zip(similarities, wanted, strict=True)]
    return sum(1 / rank for rank in ranks) / len(ranks)


def _batches(texts: Sequence[str]) -> None:
    """How near a vector from a batch of 32 is to that of the same text alone."""
    bare = Bare(NAME)
    alone = bare.vectors(texts, 1)
    for size in (8, 32):
        cosines = np.sum(alone * bare.vectors(texts, size), axis=1)
        print(
            f"batches of {size}: cosine with the text alone {median(cosines.tolist()):.4f} "
            f"(median), {cosines.min():.4f} (least)"
        )


if __name__ == "__main__":
    main()
