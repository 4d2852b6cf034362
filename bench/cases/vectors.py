"""Fingerprints of vectors by the three methods: time and memory at 10^3, 10^5 and 10^7 dimensions.

Rates are million non-zero numbers a second on one thread; "peak_gib" is the memory beyond the
input. The dense peer multiplies by a stored matrix of normal numbers, as the method is taught.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from cases.pairs import GIB, forget_peak, memory
from harness.model import OURS, Measurement, Row

CASE = "vectors"
METHODS = ("hashed", "gaussian", "per-bit")
BITS = 64


def rows(quick: bool) -> list[Row]:
    """Every method in every shape, and the stored matrix where it fits."""
    dense = [(100, 1000), (4, 100_000)] if quick else [(10_000, 1000), (200, 100_000)]
    table: list[Row] = []
    for count, dimensions in dense:
        shape = {"count": count, "dimensions": dimensions}
        stored = Measurement.of(CASE, "stored", OURS, **shape)
        table += both(f"vectors, {count:,} of {dimensions:,} dimensions", "ours", shape, (stored,))
    sparse = {"count": 200 if quick else 5000, "dimensions": 10_000_000, "entries": 200}
    name = "vectors, {count:,} sparse of {dimensions:,} dimensions, {entries} entries each"
    return table + both(name.format(**sparse), "sparse", sparse, ())


def both(name: str, function: str, shape: dict[str, int], peers: tuple[Any, ...]) -> list[Row]:
    """A row of speed and one of memory for each method."""
    table = []
    for method in METHODS:
        ours = Measurement.of(CASE, function, OURS, method=method, **shape)
        table += [
            Row(f"{name}: {method}", ours, peers, unit="M/s"),
            Row(f"{name}: {method}, peak", ours, peers, None, "lower", "peak_gib", "GiB"),
        ]
    return table


def matrix(count: int, dimensions: int) -> Any:
    import numpy as np

    return np.random.default_rng(5).standard_normal((count, dimensions), dtype=np.float32)


def ours(method: str, count: int, dimensions: int) -> dict[str, Any]:
    import neardup

    vectors = matrix(count, dimensions)
    return measured(
        lambda rows: neardup.project(rows, BITS, method, workers=1), vectors, vectors.size
    )


@dataclass(frozen=True)
class Rows:
    """Sparse rows with what `project` uses of scipy.sparse, which is not installed with neardup."""

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int]
    ndim = 2
    has_canonical_format = True

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return int(self.data.size)

    def tocsr(self) -> Rows:
        return self

    def __getitem__(self, rows: slice) -> Rows:
        begin, end, _ = rows.indices(self.shape[0])
        part = slice(self.indptr[begin], self.indptr[end])
        offsets = self.indptr[begin : end + 1] - self.indptr[begin]
        return Rows(self.data[part], self.indices[part], offsets, (end - begin, self.shape[1]))


def sparse(method: str, count: int, dimensions: int, entries: int) -> dict[str, Any]:
    import numpy as np

    import neardup

    random = np.random.default_rng(5)
    step = dimensions // entries
    columns = random.integers(0, step, (count, entries)) + step * np.arange(entries)
    offsets = np.arange(0, count * entries + 1, entries)
    data = random.standard_normal(count * entries)
    vectors = Rows(data, columns.ravel(), offsets, (count, dimensions))
    return measured(
        lambda rows: neardup.project(rows, BITS, method, workers=1), vectors, vectors.nnz
    )


def stored(count: int, dimensions: int) -> dict[str, Any]:
    """The sign of a product with a stored matrix, by NumPy."""
    import numpy as np

    vectors = matrix(count, dimensions)

    def project(rows: Any) -> Any:
        planes = np.random.default_rng(0).standard_normal((dimensions, BITS), dtype=np.float32)
        return np.packbits(rows @ planes > 0, axis=1)

    return measured(project, vectors, vectors.size)


def measured(work: Any, vectors: Any, numbers: int) -> dict[str, Any]:
    """Million numbers a second, and the peak beyond what was there."""
    work(vectors[:2])
    forget_peak()
    before = memory("VmRSS")
    start = time.perf_counter()
    work(vectors)
    seconds = time.perf_counter() - start
    peak = (memory("VmHWM") - before) / GIB
    return {"value": numbers / seconds / 1e6, "seconds": seconds, "peak_gib": peak}
