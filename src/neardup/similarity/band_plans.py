"""Plan a banded search: which width of fingerprints, keys, checks and tables cost least.

The seconds are of one thread on two idle cores of an Intel Xeon (AVX-512, 2.3 GHz), 21 November
2026; the bench cases large_k and bands measure how far the choices that follow are from the best.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.similarity.measures import MEASURES
from neardup.similarity.recall import binomial, check_recall, passing, recall_of, worst_agreement

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BandPlan", "bins_log2", "plan_bands", "rows_log2", "seconds_of"]

WIDTHS: Final = (256, 512, 1024)
BANDS_MOST_KEY_BITS: Final = 32
BANDS_MOST_TABLES: Final = 4096
MOST_CHECK_BITS: Final = 40
CHECK_SHARES: Final = (0.6, 0.75, 0.85, 0.93, 0.98)
"""Of the pairs at the threshold that share a key, the shares that are to pass the check."""
FILTER_SHARE: Final = 0.1
"""Share of the lost pairs that may be lost to the full-width distance filter."""
ROWS_A_BIN: Final = 1 << 11
MOST_BINS_LOG2: Final = 13

SEED: Final = 0x6E656172647570
BANDS_FOLD_SECONDS: Final = 1.3e-9  # one feature folded into one word
BANDS_SLICE_SECONDS: Final = 4e-9  # turning one word of a fingerprint into slices
BANDS_TABLE_SECONDS: Final = 100e-6  # starting one table
BANDS_ROW_SECONDS: Final = 16e-9  # one row of one table
BANDS_SHARED_SECONDS: Final = 0.5e-9  # one pair that shares a key
BANDS_CANDIDATE_SECONDS: Final = 80e-9  # one that passes the check, anywhere in memory
SKEW: Final = 2.0  # pairs that share a key, against those of random fingerprints
TYPICAL_FEATURES: Final = 300


@dataclass(frozen=True, slots=True)
class BandPlan:
    """How to search: a pure function of (similarity, recall, n, measure).

    Args:
        bits: Width of the fingerprints.
        key_bits: Bits of a table's key.
        tables: How many tables.
        distance: Most bits in which a candidate pair may differ.
        recall: The planned recall of a pair exactly at the threshold, the filter's loss included.
        candidates: Pairs expected for each document that share a table and so are compared.
        bytes: Memory for each document: its fingerprint, whole and in slices, and its entry in one
            table.
        check_bits: More bits of a table, its check.
        check_distance: Most of these bits in which two documents that share a table may differ.
        seed: Of the tables' bits.
    """

    bits: int
    key_bits: int
    tables: int
    distance: int
    recall: float
    candidates: float
    bytes: int
    check_bits: int = 0
    check_distance: int = 0
    seed: int = SEED

    def to_dict(self) -> dict[str, Any]:
        """Everything, for the summary."""
        return asdict(self)

    def bit_order(self) -> Any:
        """The bits of each table, those of its key first: int64 (tables, key_bits + check_bits).

        A permutation of the bits is cut into as many tables as fit, then another permutation.
        """
        taken = self.key_bits + self.check_bits
        random = _splitmix(self.seed)
        tables: list[list[int]] = []
        while len(tables) < self.tables:
            order = _permutation(self.bits, random)
            tables += [order[at : at + taken] for at in range(0, self.bits - taken + 1, taken)]
        return np.array(tables[: self.tables], np.int64)

    def masks(self) -> tuple[Any, Any]:
        """The bits of each table's key, and those of its check: each uint64 (tables, bits / 64)."""
        order = self.bit_order()
        parts = order[:, : self.key_bits], order[:, self.key_bits :]
        return _masks(parts[0], self.bits), _masks(parts[1], self.bits)


def bins_log2(n: int) -> int:
    """Upper bits of a key by which n rows are partitioned."""
    return max(1, min(MOST_BINS_LOG2, (n // ROWS_A_BIN).bit_length()))


def rows_log2(n: int) -> int:
    """Bits for the number of one of n rows in an entry of a table."""
    return n.bit_length()


@lru_cache(64)
def plan_bands(similarity: float, recall: float, n: int, measure: str = "jaccard") -> BandPlan:
    """Choose width, key and tables together, for the least estimated time.

    Args:
        similarity: The threshold.
        recall: Least recall of a pair exactly at the threshold, from 0.5 to 0.9999.
        n: Documents.
        measure: "jaccard" or "cosine".

    Raises:
        UsageError: If a value is out of range, or no plan of BANDS_MOST_TABLES tables will do.

    Example:
        >>> plan = plan_bands(0.8, 0.99, 1_000_000)
        >>> plan.recall >= 0.99
        True
    """
    if not (0 < similarity <= 1 and check_recall(recall) < 1):
        raise UsageError(f"no bands for similarity {similarity!r} and recall {recall!r}")
    if not MEASURES[measure].has_bands:
        names = " or ".join(name for name, row in MEASURES.items() if row.has_bands)
        raise UsageError(f"recall below 1 needs the measure {names}, not {measure}")
    likely = worst_agreement(similarity, measure)
    best, least = None, math.inf
    for bits in WIDTHS:
        beyond = 1 - np.cumsum(binomial(bits, 1 - likely))
        distance = int(np.argmax(beyond <= FILTER_SHARE * (1 - recall)))
        for key_bits, check in _shapes(n, bits, likely):
            shape = n, bits, key_bits, check
            if _seconds(*shape, _tables_if_independent(key_bits, check, likely, recall)) >= least:
                continue
            tables = _least_tables(bits, key_bits, likely, distance, recall, check)
            if tables is not None and _seconds(*shape, tables) < least:
                least = _seconds(*shape, tables)
                planned = recall_of(bits, key_bits, tables, likely, distance, check=check)
                candidates = tables * _shared(n, key_bits) * passing(*check, 0.5)
                best = BandPlan(
                    bits, key_bits, tables, distance, planned, candidates, bits // 4 + 8, *check
                )
    if best is None:
        raise UsageError(
            f"recall {recall} at similarity {similarity} takes more than {BANDS_MOST_TABLES:,}"
            " tables: use recall 1, the exact search"
        )
    return best


def seconds_of(plan: BandPlan, n: int, features: int = TYPICAL_FEATURES) -> float:
    """Estimated time of a plan for n documents of so many features, on one thread.

    Folding is included, and verifying is not.
    """
    check = plan.check_bits, plan.check_distance
    return _seconds(n, plan.bits, plan.key_bits, check, plan.tables, features)


def _seconds(
    n: int, bits: int, key_bits: int, check: tuple[int, int], tables: int,
    features: int = TYPICAL_FEATURES,
) -> float:  # fmt: skip
    pair = BANDS_SHARED_SECONDS + passing(*check, 0.5) * BANDS_CANDIDATE_SECONDS
    of_row = BANDS_ROW_SECONDS + _shared(n, key_bits) * pair
    making = bits // 64 * (features * BANDS_FOLD_SECONDS + BANDS_SLICE_SECONDS)
    return n * making + tables * (BANDS_TABLE_SECONDS + n * of_row)


def _shared(n: int, key_bits: int) -> float:
    """Pairs expected for each document and table that share the key."""
    return SKEW * n / 2 / (1 << key_bits)


def _tables_if_independent(
    key_bits: int, check: tuple[int, int], likely: float, recall: float
) -> int:
    """How many tables it would take with bits of their own: no more than it takes."""
    missed = -math.log1p(-min(likely**key_bits * passing(*check, 1 - likely), 1 - 1e-9))
    return max(1, math.floor(-math.log1p(-recall) / missed))


def _shapes(n: int, bits: int, likely: float) -> Iterator[tuple[int, tuple[int, int]]]:
    """Bits of a key, bits of a check, and how many of these may differ, that may be best."""
    middle = max(n, 2).bit_length()
    for key_bits in range(max(8, middle - 8), min(BANDS_MOST_KEY_BITS, middle + 6) + 1):
        room = 64 - rows_log2(n) - max(0, key_bits - bins_log2(n))
        check_bits = max(0, min(MOST_CHECK_BITS, room, bits - key_bits))
        within = np.cumsum(binomial(check_bits, 1 - likely))
        for allowed in sorted({int(np.argmax(within >= share)) for share in CHECK_SHARES}):
            yield key_bits, (check_bits, allowed)


def _least_tables(
    bits: int, key_bits: int, likely: float, distance: int, recall: float, check: tuple[int, int]
) -> int | None:
    low, high = 1, BANDS_MOST_TABLES
    if recall_of(bits, key_bits, high, likely, distance, check=check) < recall:
        return None
    while low < high:
        middle = (low + high) // 2
        if recall_of(bits, key_bits, middle, likely, distance, check=check) < recall:
            low = middle + 1
        else:
            high = middle
    return low


def _masks(order: Any, bits: int) -> Any:
    """The words in which these bits are 1: uint64 (tables, bits / 64)."""
    chosen = np.zeros((len(order), bits), np.uint8)
    np.put_along_axis(chosen, order, np.uint8(1), axis=1)
    return np.packbits(chosen, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _splitmix(state: int) -> Iterator[int]:
    """Endless random numbers of 64 bits that never change with a library's version."""
    while True:
        state = state + 0x9E3779B97F4A7C15 & 2**64 - 1
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & 2**64 - 1
        yield mixed ^ mixed >> 31


def _permutation(n: int, random: Iterator[int]) -> list[int]:
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = next(random) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order
