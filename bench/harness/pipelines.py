"""Peers' pipelines as programs: `pipelines.py PEER IN.jsonl OUT.jsonl`, run by the peer's Python.

Each reads JSON lines, takes the runs of three words of a lower-cased text as its features, keeps
one document of each group at Jaccard 0.8 with 128 permutations, and writes the kept lines as they
were. JSON is read by orjson, lines are kept as bytes: what a careful user of the peer would write.
"""

from __future__ import annotations

import re
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

THRESHOLD = 0.8
PERMUTATIONS = 128
BANDS = 8
PART = 2_000
words_of = re.compile(r"\w+").findall


def shingles(text: str) -> list[str]:
    """Every run of three words; all words together where there are fewer."""
    words = words_of(text.lower())
    if len(words) < 3:
        return [" ".join(words)] if words else []
    return list(map(" ".join, zip(words, words[1:], words[2:], strict=False)))


def texts_of(lines: Iterable[bytes]) -> Iterable[str]:
    return (orjson.loads(line)["text"] for line in lines)


def rensa(lines: list[bytes]) -> list[bool]:
    """The README's "Keep unique documents": full sets, LSH, then the estimate."""
    from rensa import RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(threshold=THRESHOLD, num_perm=PERMUTATIONS, use_lsh=True)
    return list(
        deduplicator.add_pairs(
            (str(row), shingles(text)) for row, text in enumerate(texts_of(lines))
        )
    )


def rensa_rho(lines: list[bytes]) -> list[bool]:
    """The rho batch pipeline of its benchmark: samples of the features, flags without pairs.

    It tells only that a document has a duplicate somewhere, so this drops *all* of a group, which
    is less work than keeping one of them.
    """
    from rensa import RMinHash, RMinHashLSH

    matrix = RMinHash.digest_matrix_from_token_sets_rho(
        map(shingles, texts_of(lines)), PERMUTATIONS, 42
    )
    index = RMinHashLSH(THRESHOLD, PERMUTATIONS, BANDS)
    return [not flag for flag in index.query_duplicate_flags_matrix_one_shot(matrix)]


def rensa_processes(lines: list[bytes]) -> list[bool]:
    """As `rensa`, with the sketches made in a process for each core: what takes its time."""
    import os
    from multiprocessing import get_context

    from rensa import RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(threshold=THRESHOLD, num_perm=PERMUTATIONS, use_lsh=True)
    parts = [lines[begin : begin + PART // 4] for begin in range(0, len(lines), PART // 4)]
    with get_context("fork").Pool(os.cpu_count()) as pool:
        sketches = chain.from_iterable(pool.imap(rensa_sketches, parts))
        return list(
            deduplicator.add_pairs((str(row), sketch) for row, sketch in enumerate(sketches))
        )


def rensa_sketches(lines: list[bytes]) -> list[object]:
    from rensa import RMinHash

    return list(RMinHash.from_token_sets(map(shingles, texts_of(lines)), PERMUTATIONS, 42))


def datasketch(lines: list[bytes]) -> list[bool]:
    """MinHash.generator (update_batch inside), MinHashLSH, and the estimate of candidates."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
    features = ([feature.encode() for feature in shingles(text)] for text in texts_of(lines))
    sketches: list[MinHash] = []
    kept = []
    for row, sketch in enumerate(MinHash.generator(features, num_perm=PERMUTATIONS)):
        near = any(sketch.jaccard(sketches[other]) >= THRESHOLD for other in index.query(sketch))
        kept.append(not near)
        sketches.append(sketch)
        if not near:
            index.insert(row, sketch, check_duplication=False)
    return kept


def gaoya(lines: list[bytes]) -> list[bool]:
    """MinHashStringIndex, 20 bands of 5: it tokenises itself, and compares what it finds."""
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(
        hash_size=32, jaccard_threshold=THRESHOLD, num_bands=20, band_size=5,
        analyzer="word", lowercase=True, ngram_range=(3, 3),
    )  # fmt: skip
    kept = []
    for row, text in enumerate(texts_of(lines)):
        kept.append(not index.query(text))
        if kept[-1]:
            index.insert_document(row, text)
    return kept


def datatrove(lines: list[bytes]) -> list[bool]:
    """Its MinHash in one task, up to the clusters, of which the first document is kept.

    The runs have three words as everywhere here; the rest is its default: 14 x 8 hashes, no look
    at what has a bucket in common, and words told apart by spacy, numbers as 0.
    """
    import tempfile

    import numpy as np
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.utils.hashing import HashConfig
    from loguru import logger

    logger.remove()
    config = MinhashConfig(n_grams=3, hash_config=HashConfig(precision=64))
    with tempfile.TemporaryDirectory() as folder:
        source, made, buckets, gone, logs = (
            Path(folder, name) for name in ("source", "made", "buckets", "gone", "logs")
        )
        source.mkdir()
        with (source / "all.jsonl").open("wb") as file:
            file.writelines(lines)
        steps = (
            [JsonlReader(str(source)), MinhashDedupSignature(str(made), config=config)],
            [MinhashDedupBuckets(str(made), str(buckets), config=config)],
            [MinhashDedupCluster(str(buckets), str(gone), config=config)],
        )
        for at, (step, tasks) in enumerate(zip(steps, (1, config.num_buckets, 1), strict=True)):
            LocalPipelineExecutor(step, tasks, workers=1, logging_dir=str(logs / str(at))).run()
        kept = np.ones(len(lines), bool)
        for removed in gone.glob("*.remove"):
            kept[np.fromfile(removed, "<u4")] = False
    return list(kept.tolist())


PIPELINES: dict[str, Callable[[list[bytes]], list[bool]]] = {
    "rensa": rensa,
    "rensa_rho": rensa_rho,
    "rensa_processes": rensa_processes,
    "datasketch": datasketch,
    "gaoya": gaoya,
    "datatrove": datatrove,
}


def main() -> None:
    """Run one pipeline and print how many documents it read and kept."""
    name, source, target = sys.argv[1:4]
    with Path(source).open("rb") as file:
        lines = file.readlines()
    kept = PIPELINES[name](lines)
    with Path(target).open("wb") as file:
        file.writelines(line for line, keep in zip(lines, kept, strict=True) if keep)
    sys.stdout.write(f"{len(lines)} {sum(kept)}\n")


if __name__ == "__main__":
    main()
