"""Asking an index for all stored fingerprints within k bits: random ones with planted neighbours.

Every measurement stores the same 64-bit fingerprints and asks the same queries, each exactly k
bits from a stored one. "value" is microseconds a query of a batch; "single_us" of one call a query;
"build_s" and "bytes_per_row" the cost of the index (the fingerprints in it included); "recall" the
share of the planted neighbours that was found. Peers that would take too long are asked fewer
queries, and those that hold Python objects store fewer rows: "rows" says how many.

Set NEARDUP_BENCH_HUGE=1 for 2^26 rows as well.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "index"
MOST_ROUNDS = 1
MILLION = 1_000_000
DISTANCES = (3, 6, 10)
QUERIES = 20_000
SINGLE = 2_000
THREADS = 2


def rows(quick: bool) -> list[Row]:
    """A row for every size and distance, against the peers of equal recall."""
    sizes = [20_000] if quick else [MILLION, 10 * MILLION]
    if os.environ.get("NEARDUP_BENCH_HUGE"):
        sizes.append(2**26)
    table = [row for n in sizes for k in DISTANCES for row in rows_of(n, k)]
    return table + skewed_rows(sizes[0])


def rows_of(n: int, k: int) -> list[Row]:
    ours = Measurement.of(CASE, "ours", OURS, n=n, k=k)
    flat = Measurement.of(CASE, "faiss_flat", "faiss", n=n, k=k)
    multi = Measurement.of(CASE, "faiss_multi_hash", "faiss", n=n, k=k)
    single = Measurement.of(CASE, "faiss_hash", "faiss", n=n, k=k)
    other: tuple[Measurement, ...] = ()
    if n <= MILLION and k == DISTANCES[0]:  # graphs and Python objects take minutes to build
        other = (
            Measurement.of(CASE, "usearch_graph", "usearch", n=n, k=k),
            Measurement.of(CASE, "simhash_index", "simhash", n=min(n, 200_000), k=k),
            Measurement.of(CASE, "gaoya_index", "gaoya", n=n, k=k),
        )
    peers = (flat, multi, single, *other)
    at = f"index, n = {n:,}, k = {k}"
    lower: dict[str, Any] = {"better": "lower"}
    target = 20 if k == 3 else 1
    return [
        Row(f"{at}: batch", ours, peers, 1, unit="us", **lower),
        Row(f"{at}: batch, against faiss MultiHash", ours, (multi,), target, unit="us", **lower),
        Row(f"{at}: single query", ours, peers, 1, key="single_us", unit="us", **lower),
        Row(f"{at}: build", ours, (multi, *other), 5, key="build_s", unit="s", **lower),
        Row(f"{at}: memory", ours, peers, key="bytes_per_row", unit="B/row", **lower),
    ]


def make(n: int, k: int) -> tuple[Any, Any, Any]:
    """Fingerprints, queries, and the row that each query has k bits from."""
    import numpy as np

    random = np.random.default_rng(11)
    fingerprints = random.integers(0, 2**64, n, dtype=np.uint64)
    planted = random.integers(0, n, QUERIES)
    turned = np.argsort(random.random((QUERIES, 64)), axis=1)[:, :k].astype(np.uint64)
    masks = np.bitwise_or.reduce(np.uint64(1) << turned, axis=1)
    return fingerprints, fingerprints[planted] ^ masks, planted


def measured(
    n: int,
    k: int,
    build: Callable[[Any], Any],
    batch: Callable[[Any, Any], Any],
    single: Callable[[Any, int], Any],
    queries: int = QUERIES,
    lists: Callable[[Any], list[Any]] = list,
) -> dict[str, Any]:
    """Build, ask all at once, ask one by one.

    Args:
        n: Rows.
        k: Distance.
        build: Makes the index of the fingerprints.
        batch: Asks many queries.
        single: Asks one query.
        queries: How many to ask.
        lists: The rows found for each query, from what `batch` returns; not timed.
    """
    from cases.pairs import memory

    fingerprints, query, planted = make(n, k)
    query, planted = query[:queries], planted[:queries]
    before = memory("VmRSS")
    start = time.perf_counter()
    index = build(fingerprints)
    built = time.perf_counter() - start
    size = memory("VmRSS") - before
    batch(index, query[:10])
    start = time.perf_counter()
    answer = batch(index, query)
    seconds = time.perf_counter() - start
    result = lists(answer)
    ones = [int(value) for value in query[: min(queries, SINGLE)]]
    single(index, ones[0])
    start = time.perf_counter()
    for one in ones:
        single(index, one)
    alone = time.perf_counter() - start
    hit = sum(int(row) in set(map(int, rows)) for row, rows in zip(planted, result, strict=True))
    recall = hit / queries
    return {
        "value": seconds / queries * 1e6,
        "single_us": alone / len(ones) * 1e6,
        "build_s": built,
        "bytes_per_row": size / n,
        "recall": recall,
        "exact": recall == 1.0,
        "rows": n,
        "hits": sum(map(len, result)),
    }


def ours(n: int, k: int) -> dict[str, Any]:
    import numpy as np

    import neardup

    def build(fingerprints: Any) -> Any:
        index = neardup.Index(distance=k)
        index.add(np.arange(len(fingerprints)), fingerprints)
        index.query_batch(fingerprints[:1])
        return index

    def batch(index: Any, queries: Any) -> Any:
        return index.query_batch(queries, workers=THREADS)

    def lists(table: Any) -> list[Any]:
        rows, ids = table["row"].to_numpy(), table["id"].to_numpy()
        return np.split(ids, np.searchsorted(rows, np.arange(1, QUERIES)))

    warm = build(make(n, k)[0][: min(n, 300_000)])
    batch(warm, make(n, k)[1][:10])
    del warm
    return measured(n, k, build, batch, lambda index, query: index.query(query), lists=lists)


def faiss_index(index: Any, n: int, k: int, queries: int) -> dict[str, Any]:
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(THREADS)

    def build(fingerprints: Any) -> Any:
        index.add(fingerprints.view(np.uint8).reshape(-1, 8))
        return index

    def batch(index: Any, asked: Any) -> Any:
        return index.range_search(asked.view(np.uint8).reshape(-1, 8), k + 1)

    def lists(answer: Any) -> list[Any]:
        limits, _, result = answer
        return np.split(result, limits[1:-1].astype(np.int64))

    def single(index: Any, query: int) -> Any:
        one = np.array([query], np.uint64).view(np.uint8).reshape(1, 8)
        return index.range_search(one, k + 1)

    return measured(n, k, build, batch, single, queries, lists)


def faiss_flat(n: int, k: int) -> dict[str, Any]:
    import faiss

    return faiss_index(faiss.IndexBinaryFlat(64), n, k, min(QUERIES, 2 * 10**9 // n))


def faiss_multi_hash(n: int, k: int) -> dict[str, Any]:
    """Four tables of 16 bits; of k differences one table has k // 4 at most, which are turned."""
    import faiss

    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.nflip = k // 4
    return faiss_index(index, n, k, QUERIES if k < 8 else 1_000)


def faiss_hash(n: int, k: int) -> dict[str, Any]:
    """One table of 20 bits; turning 3 of them is exact at k = 3 only."""
    import faiss

    index = faiss.IndexBinaryHash(64, 20)
    index.nflip = 3
    return faiss_index(index, n, k, 1_000)


def usearch_graph(n: int, k: int) -> dict[str, Any]:
    """The 10 nearest by a graph (HNSW), of which those within k are kept; approximate."""
    import numpy as np
    from usearch.index import Index

    def build(fingerprints: Any) -> Any:
        index = Index(ndim=64, metric="hamming", dtype="b1")
        index.add(
            np.arange(len(fingerprints)),
            fingerprints.view(np.uint8).reshape(-1, 8),
            threads=THREADS,
        )
        return index

    def batch(index: Any, asked: Any) -> Any:
        return index.search(asked.view(np.uint8).reshape(-1, 8), 10, threads=THREADS)

    def lists(found: Any) -> list[Any]:
        near = found.distances <= k
        return [keys[chosen] for keys, chosen in zip(found.keys, near, strict=True)]

    def single(index: Any, query: int) -> Any:
        return index.search(np.array([query], np.uint64).view(np.uint8), 10)

    return measured(n, k, build, batch, single, 2_000, lists)


def simhash_index(n: int, k: int) -> dict[str, Any]:
    from simhash import Simhash, SimhashIndex

    def build(fingerprints: Any) -> Any:
        return SimhashIndex(
            [(str(row), Simhash(value)) for row, value in enumerate(fingerprints.tolist())], k=k
        )

    def batch(index: Any, asked: Any) -> list[Any]:
        return [index.get_near_dups(Simhash(value)) for value in asked.tolist()]

    def single(index: Any, query: int) -> Any:
        return index.get_near_dups(Simhash(query))

    return measured(n, k, build, batch, single, 500 if k < 8 else 20)


def gaoya_index(n: int, k: int) -> dict[str, Any]:
    """Its index folds texts itself, so it is given one-word texts, and asked for the stored ones.

    So k is not planted: what is measured is time and memory, and "recall" at distance 0.
    """
    from gaoya.simhash import SimHashStringIndex

    def text(value: int) -> str:
        return f"{value:016x}"

    def build(fingerprints: Any) -> Any:
        index = SimHashStringIndex(num_blocks=k + 1, hamming_distance=k)
        for row, value in enumerate(fingerprints.tolist()):
            index.insert_document(row, text(value))
        return index

    fingerprints, _, planted = make(n, k)
    stored = [text(value) for value in fingerprints[planted].tolist()]
    place = iter(range(10**9))

    def batch(index: Any, asked: Any) -> list[Any]:
        return [index.query(each) for each in stored[: len(asked)]]

    def single(index: Any, query: int) -> Any:  # noqa: ARG001
        return index.query(stored[next(place) % len(stored)])

    return measured(n, k, build, batch, single, 500) | {"exact": False}  # k is not planted


def skewed_rows(n: int) -> list[Row]:
    """One query at a time, the first 10 hits, for rows that a table's buckets do not tell apart."""
    uniform = Measurement.of(CASE, "skewed", OURS, n=n, shape="uniform")
    return [
        Row(
            f"index, n = {n:,}, k = 3: single query with limit 10, {shape}",
            Measurement.of(CASE, "skewed", OURS, n=n, shape=shape),
            (uniform,),
            better="lower",
            unit="us",
        )
        for shape in ("block", "boilerplate", "equal")
    ]


def skewed(n: int, shape: str) -> dict[str, Any]:
    """Rows of which all but a thousand are skewed; half of the queries are near the skewed ones.

    Shapes: uniform; block, three blocks of four are the same; boilerplate, one page with up to six
    bits turned; equal, one page.
    """
    import numpy as np

    import neardup

    random = np.random.default_rng(7)
    fingerprints = random.integers(0, 2**64, n, dtype=np.uint64)
    page = fingerprints[0]
    if shape == "block":
        fingerprints[1000:] &= np.uint64(0xFFFF)
    if shape in {"boilerplate", "equal"}:
        fingerprints[1000:] = page
    if shape == "boilerplate":
        for _ in range(6):
            fingerprints[1000:] ^= np.uint64(1) << random.integers(0, 64, n - 1000, dtype=np.uint64)
    index = neardup.Index(distance=3)
    start = time.perf_counter()
    index.add(np.arange(n), fingerprints)
    queries = [int(value) for value in fingerprints[random.integers(900, 1100, 200)]]
    index.query(queries[0], limit=10)
    built = time.perf_counter() - start
    start = time.perf_counter()
    results = [index.query(each, limit=10) for each in queries]
    seconds = time.perf_counter() - start
    return {
        "value": seconds / len(queries) * 1e6,
        "build_s": built,
        "cut": sum(hits.cut for hits in results),
        "rows": n,
    }
