"""How likely a banded search finds a pair: the recall of a pair exactly at the threshold.

A bit of the fingerprints of two sets agrees with a probability that depends on their cosine only
(Charikar, STOC 2002). Tables that take their bits from one fingerprint are not independent of each
other; the sum in `recall_of` accounts for it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.similarity.measures import MEASURES

__all__ = [
    "KEYS",
    "LEAST_FEATURES",
    "agreement",
    "agreement_of_sets",
    "binomial",
    "check_recall",
    "passing",
    "recall_of",
    "worst_agreement",
]

KEYS: Final = ("blocks", "sampled", "independent")
LEAST_FEATURES: Final = 64
"""Smaller sets are joined exactly: their sums are small integers, far from the model's normal."""

SIZES_TRIED: Final = 256
"""Larger sets are nearer to the limit than the worst of these."""


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
    cosine = MEASURES[measure].equal_overlap(similarity)
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
    return float((binomial(shared, 0.5) * both).sum())


@lru_cache(64)
def worst_agreement(similarity: float, measure: str = "jaccard") -> float:
    """The least likely agreement of two sets at the threshold with LEAST_FEATURES or more each."""
    worst = agreement(similarity, measure)
    for size in range(LEAST_FEATURES, LEAST_FEATURES + SIZES_TRIED):
        for other in range(size, size + 4):
            shared = math.ceil(MEASURES[measure].overlap(similarity, size, other) - 1e-9)
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
    check: tuple[int, int] = (0, 0),
) -> float:
    """How likely a pair is found: it shares a table, and differs in few bits.

    Args:
        bits: Width of the fingerprints.
        key_bits: Bits of a key.
        tables: How many tables.
        agreement: How likely one bit agrees.
        distance: Most bits in which the pair may differ; None: any number.
        keys: "blocks": cut from permutations of the fingerprint's bits, as in
            `BandPlan.bit_order`; "sampled": each drawn from the fingerprint on its own;
            "independent": bits of its own for each table.
        check: Bits of a table's check, and in how many of them the pair may differ.

    Example:
        >>> round(recall_of(256, 16, 97, 0.8476, keys="sampled"), 2)
        0.99
    """
    most = bits if distance is None else min(distance, bits)
    share = binomial(bits, 1 - agreement)[: most + 1]
    if keys == "independent":
        shared = agreement**key_bits * passing(*check, 1 - agreement)
        return float(share.sum()) * (1 - (1 - shared) ** tables)
    missed = _missed_by_one(bits, key_bits, most, check)
    if keys == "blocks":
        rounds, rest = divmod(tables, bits // (key_bits + check[0]))
        by_round = _missed_by_round(bits, key_bits, most, agreement, check)
        return float((share * (1 - by_round**rounds * missed**rest)).sum())
    return float((share * (1 - missed**tables)).sum())


def passing(bits: int, most: int, differs: float) -> float:
    """How likely at most so many of the bits differ, each with probability `differs`."""
    return float(binomial(bits, differs)[: most + 1].sum())


@lru_cache(1024)
def binomial(n: int, p: float) -> Any:
    """Probabilities of 0 to n successes: float64 (n + 1,)."""
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
    at_least = np.append(np.cumsum(binomial(count, 0.5)[::-1])[::-1], 0.0)
    return at_least[np.clip((count - sums) // 2 + 1, 0, count + 1)]


@lru_cache(256)
def _missed_by_one(bits: int, key_bits: int, most: int, check: tuple[int, int]) -> Any:
    """How likely two rows do not share a random table, for 0 to `most` differing bits."""
    logs, (check_bits, allowed) = _log_factorials(bits), check
    others = bits - key_bits - check_bits
    missed = np.ones(most + 1)
    for inside in range(min(allowed, check_bits, most) + 1):
        outside = np.arange(min(most - inside, others) + 1)
        ways = logs[check_bits] - logs[inside] - logs[check_bits - inside]
        ways = ways + logs[others] - logs[outside] - logs[others - outside]
        differing = outside + inside
        every = logs[bits] - logs[differing] - logs[bits - differing]
        missed[differing] -= np.exp(ways - every)
    return np.clip(missed, 0.0, 1.0)


@lru_cache(256)
def _missed_by_round(
    bits: int, key_bits: int, most: int, likely: float, check: tuple[int, int]
) -> Any:
    """How likely two rows share no table of one permutation, for 0 to `most` differing bits.

    By generating functions: a table's differing bits without the cases in which it is shared, to
    the power of the number of tables, times the bits left over.
    """
    taken = key_bits + check[0]
    tables = bits // taken
    one = binomial(taken, 1 - likely)[: most + 1].copy()
    shared = likely**key_bits * binomial(check[0], 1 - likely)[: min(check[1], most) + 1]
    one[: shared.size] -= shared
    power = binomial(bits - tables * taken, 1 - likely)[: most + 1]
    while tables:
        if tables & 1:
            power = np.convolve(power, one)[: most + 1]
        one = np.convolve(one, one)[: most + 1]
        tables >>= 1
    whole = binomial(bits, 1 - likely)[: most + 1]
    padded = np.append(power, np.zeros(most + 1 - power.size))
    return np.clip(np.divide(padded, whole, out=np.zeros(most + 1), where=whole > 0), 0.0, 1.0)
