"""Peers that answer which stored texts are similar: their cheapest settings that find enough.

Each is fed and asked as its documentation shows for many texts at once. Its settings are tried on
one half of the planted texts, and the cheapest that finds 0.999 of them is measured on the other
half. What a peer finds are candidates: to be right it has to compare the texts, which is counted
separately. Bands of one and two hashes are left out: strangers with a phrase in common meet there,
the more the more texts are stored.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness import near_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ENOUGH = 0.999
CALIBRATED_TEXTS = 2_000
CALIBRATED_QUERIES = 2_000
PART = 10_000
SEED = 42
ROUNDS = 3

Setting = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """An index that is empty.

    Args:
        sketch: What it makes of texts before it stores or looks up; texts where it does not say.
        insert: Store sketches under numbers from the first on.
        ask: The numbers that may be similar to each sketch.
    """

    sketch: Callable[[list[str]], Any]
    insert: Callable[[int, Any], None]
    ask: Callable[[Any], Iterable[Iterable[int]]]


def datasketch(bands: int, hashes: int, **_: Any) -> Peer:
    """MinHashLSH."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=bands * hashes, params=(bands, hashes))

    def sketch(texts: list[str]) -> Any:
        tokens = ([each.encode() for each in near_texts.shingles(text)] for text in texts)
        return list(MinHash.generator(tokens, num_perm=bands * hashes))

    def insert(first: int, sketches: Any) -> None:
        for row, each in enumerate(sketches, first):
            index.insert(row, each, check_duplication=False)

    return Peer(sketch, insert, lambda sketches: map(index.query, sketches))


def rensa(bands: int, hashes: int, **_: Any) -> Peer:
    """RMinHashLSH."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.8, num_perm=bands * hashes, num_bands=bands)

    def sketch(texts: list[str]) -> Any:
        tokens = map(near_texts.shingles, texts)
        return RMinHash.from_token_sets(tokens, num_perm=bands * hashes, seed=SEED)

    return Peer(
        sketch,
        lambda first, sketches: index.insert_many(sketches, start_key=first),
        index.query_all,
    )


def gaoya(bands: int, hashes: int, threshold: float, container: str) -> Peer:
    """MinHashStringIndex, which tokenises itself and compares signatures with a threshold."""
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(
        hash_size=32, jaccard_threshold=threshold, num_bands=bands, band_size=hashes,
        analyzer="word", lowercase=True, ngram_range=(3, 3), id_container=container,
    )  # fmt: skip

    def insert(first: int, texts: Any) -> None:
        for row, text in enumerate(texts, first):
            index.insert_document(row, text)

    return Peer(lambda texts: texts, insert, lambda texts: map(index.query, texts))


def faiss(radius: int, tables: int, bits: int, flips: int) -> Peer:
    """The last bit of each of 128 of rensa's hashes, in a binary index: flat, or of some tables."""
    import faiss as library
    import numpy as np
    from rensa import RMinHash

    library.omp_set_num_threads(1)
    width = 128
    index = library.IndexBinaryFlat(width)
    if tables:
        index = library.IndexBinaryMultiHash(width, tables, bits)
        index.nflip = flips

    def sketch(texts: list[str]) -> Any:
        tokens = map(near_texts.shingles, texts)
        result = RMinHash.digest_matrix_from_token_sets(tokens, num_perm=width, seed=SEED)
        return np.packbits(np.array(result.to_rows(), np.uint32) & 1, axis=1)

    def ask(sketches: Any) -> Iterable[list[int]]:
        limits, _, rows = index.range_search(sketches, radius)
        return (rows[a:b].tolist() for a, b in itertools.pairwise(limits))

    return Peer(sketch, lambda _, sketches: index.add(sketches), ask)


BANDS = (
    (8, 3), (9, 3), (10, 3), (12, 3), (11, 4), (13, 4), (15, 4), (17, 4), (17, 5), (20, 5), (24, 5),
    (22, 6), (28, 6), (38, 8),
)  # fmt: skip
LOOSE = {"threshold": 0.3, "container": "smallvec"}
"""gaoya: the comparison of few hashes would lose what is similar, so the texts decide."""
SETTINGS: dict[str, list[Setting]] = {
    "datasketch": [{"bands": b, "hashes": h} for b, h in BANDS[1:6:2]],
    "rensa": [{"bands": b, "hashes": h} for b, h in BANDS],
    "gaoya": [{"bands": b, "hashes": h, **LOOSE} for b, h in BANDS],
    "faiss": [
        {"radius": 25, "tables": tables, "bits": bits, "flips": flips}
        for tables, bits, flips in ((0, 0, 0), (8, 16, 1), (9, 14, 1), (4, 16, 2))
    ],
}
FLAT_ROWS = 25_000
"""faiss without tables reads every row: beyond that many they are quicker."""
DOCUMENTED: dict[str, Setting] = {
    "datasketch": {"bands": 9, "hashes": 13},
    "rensa": {"bands": 16, "hashes": 8},
    "gaoya": {"bands": 20, "hashes": 5, "threshold": 0.8, "container": "set"},
}
"""What each takes for a threshold of 0.8 and 128 hashes, or shows in its documentation."""
PEERS = {"datasketch": datasketch, "rensa": rensa, "gaoya": gaoya, "faiss": faiss}


def filled(name: str, setting: Setting, texts: list[str]) -> Peer:
    """An index of texts."""
    peer = PEERS[name](**setting)
    for first in range(0, len(texts), PART):
        peer.insert(first, peer.sketch(texts[first : first + PART]))
    return peer


def cheapest(name: str, n: int) -> tuple[Setting, float]:
    """The setting that asks quickest of those that find enough; else the one that finds most.

    Args:
        name: Which peer.
        n: How many texts will be stored.

    Returns:
        The setting, and its recall in this half.
    """
    texts = near_texts.make(CALIBRATED_TEXTS, seed=1)
    planted = near_texts.plant(texts, CALIBRATED_QUERIES, seed=11)
    tried = []
    for setting in SETTINGS[name]:
        if n > FLAT_ROWS and not setting.get("tables", True):
            continue
        peer = filled(name, setting, texts)
        start = time.process_time()
        answers = list(peer.ask(peer.sketch(planted.texts)))
        seconds = time.process_time() - start
        pairs = zip(planted.rows, answers, strict=True)
        recall = sum(row in each for row, each in pairs) / CALIBRATED_QUERIES
        tried.append((recall < ENOUGH, -recall if recall < ENOUGH else seconds, setting, recall))
    _, _, setting, recall = min(tried, key=lambda each: each[:2])
    return setting, recall


def verified(texts: list[str], query: str, candidates: Iterable[int]) -> list[int]:
    """Those candidates that are similar indeed."""
    own = set(near_texts.shingles(query))
    results = []
    for row in candidates:
        theirs = set(near_texts.shingles(texts[row]))
        shared = len(own & theirs)
        if 10 * shared >= 8 * (len(own) + len(theirs) - shared):
            results.append(row)
    return results


def measured(
    name: str,
    texts: list[str],
    queries: Sequence[str],
    documented: bool,
    resident: Callable[[], int],
) -> dict[str, Any]:
    """Build an index of texts and ask it; seconds are of the processor.

    Args:
        name: Which peer.
        texts: What is stored.
        queries: What is asked, to be timed.
        documented: Whether to take its documented setting, instead of the cheapest one.
        resident: Bytes that the process holds.

    Returns:
        microseconds a query, the least of three rounds: sketch_us, look_us, verify_us, asked_us
        (the first two), value (all three); build_us and bytes_per_row; the setting;
        `near_texts.quality`; whether it is exact enough to be compared.
    """
    setting, calibrated = (DOCUMENTED[name], None) if documented else cheapest(name, len(texts))
    before, start = resident(), time.process_time()
    peer = filled(name, setting, texts)
    built, size = time.process_time() - start, resident() - before
    rounds = []
    for _ in range(ROUNDS):
        clock = [time.process_time()]
        sketches = peer.sketch(list(queries))
        clock.append(time.process_time())
        answers = [list(each) for each in peer.ask(sketches)]
        clock.append(time.process_time())
        for query, candidates in zip(queries, answers, strict=True):
            if candidates:
                verified(texts, query, candidates)
        clock.append(time.process_time())
        rounds.append([(b - a) / len(queries) * 1e6 for a, b in itertools.pairwise(clock)])
    sketch, look, verify = map(min, zip(*rounds, strict=True))
    result = near_texts.quality(texts, lambda asked: peer.ask(peer.sketch(asked)))
    return result | {
        "value": sketch + look + verify,
        "asked_us": sketch + look,
        "sketch_us": sketch,
        "look_us": look,
        "verify_us": verify,
        "candidates": sum(map(len, answers)) / len(queries),
        "build_us": built / len(texts) * 1e6,
        "bytes_per_row": size / len(texts),
        "rows": len(texts),
        "setting": setting,
        "calibrated": calibrated,
        "exact": result["recall"] >= ENOUGH if calibrated is None else calibrated >= ENOUGH,
    }
