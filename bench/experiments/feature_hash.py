"""Two definitions of a feature's hash: `python bench/experiments/feature_hash.py [MEGABYTES]`.

XXH3 of the joined tokens (what the recipe says) against XXH3 over the n hashes of the tokens, each
token hashed once. Both run in the same tokeniser, one thread, with the same fold; the first table
is speed, the second quality over all features of the corpus and pairs of unrelated documents.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import corpora
from neardup.features.text import text_array, text_blocks
from neardup.features.unicode import tables
from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.runs import hash_features
from neardup.kernels.features.token_arguments import Cutting
from neardup.kernels.features.tokenise import SLACK, made_tokens, tokenise
from neardup.kernels.features.xxh3 import hasher_of, xxh3_64
from neardup.kernels.fingerprinting.fold import PLANES, distinct, fold_equal
from neardup.kernels.jit import inner, kernel, move

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 5
NGRAM = 3
JOINED, COMBINED, NEITHER = 0, 1, 2
NAMES = {
    JOINED: "XXH3 of the joined shingle",
    COMBINED: "XXH3 over n token hashes",
    NEITHER: "tokens only, no hash and no fold",
}
GAP = 1
HASH_BYTES = 8
SAMPLES = 200_000


@inner
def _hash_combined(
    room: Any, tokens: int, ngram: int, hasher: Any, hashes: Any, octets: Any, words: Any
) -> int:
    """Hash each token, then each run of n token hashes; `octets` and `words` are one memory."""
    buffer, starts = room.buffer, room.starts
    seed, secret, lanes = hasher.seed, hasher.secret, hasher.scratch
    width = min(ngram, tokens)
    count = tokens - width + 1
    for i in range(tokens):
        size = starts[i + 1] - GAP - starts[i]
        words[i] = xxh3_64(buffer, starts[i], size, seed, secret, lanes)
    for i in range(count):
        hashes[i] = xxh3_64(
            octets, HASH_BYTES * i, HASH_BYTES * width, seed, secret, lanes
        )  # fmt: skip
    return count


@inner
def table_size(items: int) -> int:
    """The slots of an open table for a number of items: a power of two, at least twice it."""
    size = 2
    while size < 2 * items:
        size *= 2
    return size


@kernel
def hash_block(
    way: int, data: Any, offsets: Any, cutting: Any, words_out: Any, features: Any, counts: Any
) -> Any:
    """Fingerprint documents with one of the two hashes; returns how many features there are.

    Args:
        way: JOINED, COMBINED or NEITHER.
        data: uint8, UTF-8.
        offsets: int64 (n + 1,).
        cutting: Cutting.
        words_out: uint64 (n, words), written.
        features: uint64, the distinct feature hashes are written here.
        counts: int64 (n,), written.
    """
    needed = capacity_for(data, offsets, cutting)
    most, room = needed.tokens + SLACK, made_tokens(needed)
    hashes = np.empty(most, np.uint64)
    octets = np.empty(HASH_BYTES * most if way == COMBINED else HASH_BYTES, np.uint8)
    token_hashes = octets.view(np.uint64)
    table = np.empty(table_size(most), np.uint64)
    none = np.empty(0, np.int64)
    planes = np.empty(PLANES, np.uint64)
    hasher = hasher_of(np.uint64(0))
    used = 0
    for i in range(offsets.size - 1):
        tokens = tokenise(data, offsets[i], offsets[i + 1], cutting, room)
        count = np.int64(0)
        if tokens and way == JOINED:
            count = hash_features(room, tokens, cutting.ngram, GAP, hasher, hashes)
        elif tokens and way == COMBINED:
            count = _hash_combined(
                room, tokens, cutting.ngram, hasher, hashes, octets, token_hashes
            )  # fmt: skip
        if count:
            count = distinct(hashes, count, table, none)
            fold_equal(hashes, count, False, planes, words_out[i])
            move(hashes, count, features[used:])
        counts[i] = count
        used += count if way != NEITHER else tokens
    return used


def main() -> None:
    """Print both tables."""
    target_mb = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    facts = corpora.speed_corpus(target_mb)
    print(f"{facts['documents']:,} documents, {facts['text_mb']} MB: {facts['what']}\n")
    array = text_array(corpora.read_texts(facts["path"]))
    seconds, result = measure(array)
    print("| | MB a processor second, median (least to most) |\n|---|---:|")
    for way, taken in seconds.items():
        rates = sorted(facts["text_mb"] / second for second in taken)
        middle = statistics.median(rates)
        print(f"| {NAMES[way]} | {middle:.0f} ({rates[0]:.0f} to {rates[-1]:.0f}) |")
    print(
        "\n| | distinct features | mean distance of unrelated documents, 64 bits | its sigma"
        " | worst bias of a bit, in sigma | worst correlation of two bits, in sigma |"
        "\n|---|---:|---:|---:|---:|---:|"
    )
    for way in (JOINED, COMBINED):
        print(f"| {NAMES[way]} | {' | '.join(quality(*result[way]))} |")


def measure(array: Any) -> tuple[dict[int, list[float]], dict[int, tuple[Any, Any]]]:
    """Processor seconds of each round by way, taking turns; and all features and fingerprints."""
    seconds: dict[int, list[float]] = {way: [] for way in NAMES}
    results = {}
    for round_ in range(1 + ROUNDS):  # the first one compiles
        for way, taken in seconds.items():
            start = time.process_time()
            parts = list(hashed(array, way))
            if round_:
                taken.append(time.process_time() - start)
            features, words = (np.concatenate(column) for column in zip(*parts, strict=True))
            results[way] = features, words
    return seconds, results


def hashed(array: Any, way: int) -> Iterator[tuple[Any, Any]]:
    cutting = Cutting(tables("NFKC", casefold=True), np.uint8(0x20), False, NGRAM)
    for chunk in array.chunks:
        for block in text_blocks(chunk):
            features = np.empty(block.nbytes + len(block), np.uint64)
            words, counts = np.zeros((len(block), 1), np.uint64), np.empty(len(block), np.int64)
            used = hash_block(way, block.data, block.offsets, cutting, words, features, counts)
            kept = features[: used if way != NEITHER else 0].copy()
            yield kept, words[counts > 0]


def quality(features: Any, words: Any) -> list[str]:
    """Distances of unrelated documents; how far bits and pairs of bits are from fair coins."""
    distinct_features = np.unique(features)
    generator = np.random.default_rng(1)
    different = np.unique(words)
    left, right = (generator.choice(different, SAMPLES) for _ in range(2))
    distances = np.bitwise_count(left ^ right)[left != right].astype(float)
    sample = generator.choice(
        distinct_features, min(SAMPLES, distinct_features.size), replace=False
    )
    octets = sample.view(np.uint8).reshape(-1, HASH_BYTES)
    signs = 2.0 * np.unpackbits(octets, axis=1) - 1.0
    root = np.sqrt(len(signs))
    bias = np.abs(signs.sum(axis=0)).max() / root
    together = np.abs(signs.T @ signs)[~np.eye(64, dtype=bool)].max() / root
    return [
        f"{distinct_features.size:,}",
        f"{distances.mean():.2f}",
        f"{distances.std():.2f}",
        f"{bias:.2f}",
        f"{together:.2f}",
    ]


if __name__ == "__main__":
    main()
