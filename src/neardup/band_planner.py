"""Plan a banded search: how likely it finds a pair, and which width, keys and tables cost least.

The recall is that of a pair exactly at the threshold. A bit of the fingerprints of two sets agrees
with a probability that depends on their cosine only (Charikar, STOC 2002). Tables that take their
bits from one fingerprint are not independent of each other; the sum in `recall_of` accounts for it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "KEYS",
    "LEAST_FEATURES",
    "BandPlan",
    "agreement",
    "agreement_of_sets",
    "check_recall",
    "plan_bands",
    "recall_of",
    "seconds_of",
    "worst_agreement",
]

KEYS: Final = ("blocks", "sampled", "independent")
LEAST_FEATURES: Final = 64
"""Smaller sets are joined exactly: their sums are small integers, far from the model's normal."""

WIDTHS: Final = (256, 512, 1024)
MOST_KEY_BITS: Final = 32
MOST_TABLES: Final = 4096
FILTER_SHARE: Final = 0.1
"""Share of the lost pairs that may be lost to the full-width distance filter."""

SEED: Final = 0x6E656172647570
SIZES_TRIED: Final = 256
"""Larger sets are nearer to the limit than the worst of these."""


SECONDS_FOLD_WORD: Final = 380e-9  # one word of the fingerprint of a document of 300 features
SECONDS_ROW: Final = 16e-9  # one row of one table
SECONDS_ROW_WORD: Final = 2e-9  # and for each word of the fingerprint
SECONDS_CANDIDATE: Final = 150e-9  # one candidate: two fingerprints anywhere in memory
SKEW: Final = 2.0  # candidates a document, against those of random fingerprints


@dataclass(frozen=True, slots=True)
class BandPlan:
    """How to search: a pure function of (similarity, recall, n, measure).

    Args:
        bits: Width of the fingerprints.
        key_bits: Bits of a table's key.
        tables: How many tables.
        distance: Most bits in which a candidate pair may differ.
        recall: The planned recall of a pair exactly at the threshold, the filter's loss included.
        candidates: Candidates expected for each document.
        bytes: Memory for each document: its fingerprint and its place in one table.
        seed: Of the tables' bits.
    """

    bits: int
    key_bits: int
    tables: int
    distance: int
    recall: float
    candidates: float
    bytes: int
    seed: int = SEED

    def to_dict(self) -> dict[str, Any]:
        """Everything, for the summary."""
        return asdict(self)

    def masks(self) -> Any:
        """The bits of each table's key: uint64 (tables, bits / 64).

        A permutation of the bits is cut into as many keys as fit, then another permutation.
        """
        chosen = np.zeros((self.tables, self.bits), np.uint8)
        random, table = _splitmix(self.seed), 0
        while table < self.tables:
            order = _permutation(self.bits, random)
            for begin in range(0, self.bits - self.key_bits + 1, self.key_bits):
                if table < self.tables:
                    chosen[table, order[begin : begin + self.key_bits]] = 1
                table += 1
        packed = np.packbits(chosen, axis=1, bitorder="little")
        return packed.view("<u8").astype(np.uint64)


def check_recall(recall: float) -> float:
    """Check an asked recall: 1 is the exact join.

    Raises:
        UsageError: If it is not from 0.5 to 1, or too near below 1 to be planned.
    """
    if not (recall == 1 or 0.5 <= recall <= 0.9999):
        raise UsageError(f"recall is {recall!r}: use a number from 0.5 to 0.9999, or 1 for all")
    return recall


def agreement(similarity: float, measure: str = "jaccard") -> float:
    """How likely a bit agrees for two large sets exactly at the threshold.

    The cosine of sets with Jaccard similarity J is J / (1 + J) * (a + b) / sqrt(a b): least, and
    so the worst case, for equal sizes.

    Example:
        >>> round(agreement(0.8), 4)
        0.8485
    """
    cosine = similarity if measure == "cosine" else 2 * similarity / (1 + similarity)
    return 1 - math.acos(min(1.0, cosine)) / math.pi


def agreement_of_sets(size: int, other: int, shared: int) -> float:
    """How likely a bit agrees for sets of these sizes with `shared` features in common, exactly.

    Sums of 0 give the bit 0, which moves the border of even sets away from that of odd ones.

    Example:
        >>> round(agreement_of_sets(4, 5, 4), 4)
        0.8125
    """
    sums = 2 * np.arange(shared + 1) - shared
    one, two = _positive(size - shared, sums), _positive(other - shared, sums)
    both = one * two + (1 - one) * (1 - two)
    return float((_binomial(shared, 0.5) * both).sum())


@lru_cache(64)
def worst_agreement(similarity: float, measure: str = "jaccard") -> float:
    """The least likely agreement of two sets at the threshold with LEAST_FEATURES or more each."""
    worst = agreement(similarity, measure)
    for size in range(LEAST_FEATURES, LEAST_FEATURES + SIZES_TRIED):
        for other in range(size, size + 4):
            if measure == "cosine":
                least = similarity * math.sqrt(size * other)
            else:
                least = similarity / (1 + similarity) * (size + other)
            shared = math.ceil(least - 1e-9)
            if shared <= size:
                worst = min(worst, agreement_of_sets(size, other, shared))
    return worst


def recall_of(
    bits: int,
    key_bits: int,
    tables: int,
    agreement: float,
    distance: int | None = None,
    keys: str = "blocks",
) -> float:
    """How likely a pair is found: it agrees on all bits of some key, and differs in few bits.

    Args:
        bits: Width of the fingerprints.
        key_bits: Bits of a key.
        tables: How many keys.
        agreement: How likely one bit agrees.
        distance: Most bits in which the pair may differ; None: any number.
        keys: "blocks": cut from permutations of the fingerprint's bits, as in `BandPlan.masks`;
            "sampled": each drawn from the fingerprint on its own; "independent": bits of its own
            for each table.

    Example:
        >>> round(recall_of(256, 16, 97, 0.8476, keys="sampled"), 2)
        0.99
    """
    most = bits if distance is None else min(distance, bits)
    share = _binomial(bits, 1 - agreement)[: most + 1]
    if keys == "independent":
        return float(share.sum()) * (1 - (1 - agreement**key_bits) ** tables)
    missed = _missed_by_one(bits, key_bits, most)
    if keys == "blocks":
        rounds, rest = divmod(tables, bits // key_bits)
        by_round = _missed_by_round(bits, key_bits, most, agreement)
        return float((share * (1 - by_round**rounds * missed**rest)).sum())
    return float((share * (1 - missed**tables)).sum())


@lru_cache(64)
def plan_bands(similarity: float, recall: float, n: int, measure: str = "jaccard") -> BandPlan:
    """Choose width, key and tables together, for the least estimated time.

    Args:
        similarity: The threshold.
        recall: Least recall of a pair exactly at the threshold, from 0.5 to 0.9999.
        n: Documents.
        measure: "jaccard" or "cosine"; containment says nothing about the cosine of two sets.

    Raises:
        UsageError: If a value is out of range, or no plan of MOST_TABLES tables will do.

    Example:
        >>> plan = plan_bands(0.8, 0.99, 1_000_000)
        >>> plan.recall >= 0.99
        True
    """
    if not (0 < similarity <= 1 and check_recall(recall) < 1):
        raise UsageError(f"no bands for similarity {similarity!r} and recall {recall!r}")
    if measure == "containment":
        raise UsageError("recall below 1 needs the measure jaccard or cosine, not containment")
    likely = worst_agreement(similarity, measure)
    best, least = None, math.inf
    middle = max(n, 2).bit_length()
    for bits in WIDTHS:
        beyond = 1 - np.cumsum(_binomial(bits, 1 - likely))
        distance = int(np.argmax(beyond <= FILTER_SHARE * (1 - recall)))
        for key_bits in range(max(8, middle - 6), min(MOST_KEY_BITS, middle + 10) + 1):
            tables = _least_tables(bits, key_bits, likely, distance, recall)
            if tables is None:
                break
            candidates = SKEW * tables * n / 2 / 2**key_bits
            seconds = _seconds(bits // 64, tables, candidates)
            if seconds < least:
                planned = recall_of(bits, key_bits, tables, likely, distance)
                nbytes = bits // 8 + 20
                best, least = (
                    BandPlan(bits, key_bits, tables, distance, planned, candidates, nbytes),
                    seconds,
                )
    if best is None:
        raise UsageError(
            f"recall {recall} at similarity {similarity} takes more than {MOST_TABLES:,} tables:"
            " use recall 1, the exact search"
        )
    return best


def seconds_of(plan: BandPlan) -> float:
    """Estimated time of a plan for one document, folding included, on one thread."""
    return _seconds(plan.bits // 64, plan.tables, plan.candidates)


def _least_tables(
    bits: int, key_bits: int, likely: float, distance: int, recall: float
) -> int | None:
    low, high = 1, MOST_TABLES
    if recall_of(bits, key_bits, high, likely, distance) < recall:
        return None
    while low < high:
        middle = (low + high) // 2
        if recall_of(bits, key_bits, middle, likely, distance) < recall:
            low = middle + 1
        else:
            high = middle
    return low


def _seconds(words: int, tables: int, candidates: float) -> float:
    """Estimated time for one document."""
    rows = tables * (SECONDS_ROW + words * SECONDS_ROW_WORD)
    return words * SECONDS_FOLD_WORD + rows + candidates * SECONDS_CANDIDATE


@lru_cache(1024)
def _binomial(n: int, p: float) -> Any:
    """Probabilities of 0 to n successes."""
    if p in {0.0, 1.0}:
        return (np.arange(n + 1) == n * p).astype(np.float64)
    logs = _log_factorials(n)
    k = np.arange(n + 1)
    return np.exp(logs[n] - logs - logs[::-1] + k * math.log(p) + (n - k) * math.log1p(-p))


@lru_cache(1024)
def _log_factorials(n: int) -> Any:
    return np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))


def _positive(count: int, sums: Any) -> Any:
    """How likely a sum of `count` random signs added to each of `sums` is above 0."""
    at_least = np.append(np.cumsum(_binomial(count, 0.5)[::-1])[::-1], 0.0)
    return at_least[np.clip((count - sums) // 2 + 1, 0, count + 1)]


def _missed_by_one(bits: int, key_bits: int, most: int) -> Any:
    """How likely a random key has a differing bit, for 0 to `most` of them."""
    logs = _log_factorials(bits)
    differing = np.arange(min(most, bits - key_bits) + 1)
    equal = logs[bits - differing] - logs[bits - differing - key_bits]
    missed = np.ones(most + 1)
    missed[: differing.size] -= np.exp(equal - logs[bits] + logs[bits - key_bits])
    return np.clip(missed, 0.0, 1.0)


@lru_cache(256)
def _missed_by_round(bits: int, key_bits: int, most: int, likely: float) -> Any:
    """How likely all keys of one permutation have a differing bit, for 0 to `most` of them.

    By generating functions: a key's differing bits without the case of none, to the power of the
    number of keys, times the bits left over.
    """
    keys = bits // key_bits
    one = _binomial(key_bits, 1 - likely)[: most + 1].copy()
    one[0] = 0.0
    power = _binomial(bits - keys * key_bits, 1 - likely)[: most + 1]
    while keys:
        if keys & 1:
            power = np.convolve(power, one)[: most + 1]
        one = np.convolve(one, one)[: most + 1]
        keys >>= 1
    whole = _binomial(bits, 1 - likely)[: most + 1]
    padded = np.append(power, np.zeros(most + 1 - power.size))
    return np.clip(np.divide(padded, whole, out=np.zeros(most + 1), where=whole > 0), 0.0, 1.0)


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
