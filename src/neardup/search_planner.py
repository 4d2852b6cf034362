"""Choose how an index answers "what is within k bits?": which tables, what they cost and find.

A plan is a set of masks. Rows that agree with the query on all bits of a mask share a bucket of
that mask's table; blocks of bits make the masks, so that by the pigeonhole principle every row
within k bits shares a bucket in one of the tables (m blocks, all choices of m - k of them: Manku,
Jain and Das Sarma, WWW 2007, section 3.1). The seconds below were calibrated with bench/run.py
index; docs/search-plans.md compares them with what was measured.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.planner import EXTRA_BLOCKS, agreement, block_masks

__all__ = ["SEARCH_PLANS", "SearchPlan", "plan_search"]

SEARCH_PLANS: Final = (
    "auto",
    "scan",
    "bits",
    "blocks",
    "probe",
    "multi:M",
    "mih:M",
    "bands:RECALL",
    "permute:N",
)
MOST_TABLES: Final = 128
MOST_PROBES: Final = 1_000_000
MOST_MIH_LOOKUPS: Final = 8192
MOST_KEY_BITS: Final = 32
ROWS_PER_KEY: Final = 4
DEFAULT_RECALL: Final = 0.99
DEFAULT_PERMUTATIONS: Final = 32
PERMUTE_WINDOW: Final = 64

SECONDS_LOOKUP: Final = 60e-9  # one bucket of a table that is larger than the caches
SECONDS_CACHED_LOOKUP: Final = 10e-9
CACHED_BYTES: Final = 1 << 22
SECONDS_PROBE: Final = 25e-9  # one signature, its cache line fetched ahead
SECONDS_QUERY: Final = 100e-9  # what every query costs
SCAN_SECONDS: Final = 0.15e-9  # one comparison, one word, in a run that streams from memory
BITS_SECONDS: Final = 0.5e-9  # one row's 64 bits, bit-sliced
PERMUTE_SECONDS: Final = 400e-9  # one binary search and its window


@dataclass(frozen=True, slots=True, eq=False)
class SearchPlan:
    """How to search, and what that is expected to cost.

    Args:
        name: As it is asked for, such as "multi:4".
        masks: uint64 (tables, words): the bits of each table's key; empty where there is no table.
        key_bits: Bits of the hashed key.
        candidates: Rows that a query is expected to be compared with.
        bytes_per_row: Memory that the search needs beside the fingerprints.
        seconds: Expected for one query of a batch, on one thread.
        recall: The least share of what is within the distance that is found; 1 is exact.
        lookups: Buckets that a query opens.
    """

    name: str
    masks: Any
    key_bits: int
    candidates: float
    bytes_per_row: float
    seconds: float
    recall: float = 1.0
    lookups: int = 0

    @property
    def kind(self) -> str:
        """The name without its parameter."""
        return self.name.partition(":")[0]


def plan_search(
    n: int,
    distance: int,
    bits: int = 64,
    sample: Any = None,
    plan: str = "auto",
    memory: float = float("inf"),
) -> SearchPlan:
    """Choose the plan by which n fingerprints are searched.

    Args:
        n: Fingerprints.
        distance: Largest Hamming distance that must be found.
        bits: Width.
        sample: Some of them, uint64 (s, words): bits that vary little are spread over the blocks.
        plan: "auto" for the quickest exact one whose tables fit `memory`, or one by name.
        memory: Bytes that the tables may take.

    Returns:
        The plan.

    Raises:
        UsageError: For a plan that does not exist or cannot work for this distance and width.

    Example:
        >>> plan_search(10_000_000, 3).name
        'multi:4'
    """
    check_search_plan(plan, distance, bits)
    if plan != "auto":
        return named_plan(n, distance, bits, sample, plan)
    best = scan_plan(n, bits)
    if distance >= bits:
        return best
    for rival in exact_plans(n, distance, bits, sample):
        fits = rival.bytes_per_row * n <= memory
        if fits and rival.seconds < (1 - _PENALTY * _extra_bytes(rival, best)) * best.seconds:
            best = rival
    return best


_PENALTY: Final = 1 / 512
"""A plan must be quicker by this share for each byte a row that it takes more."""


def _extra_bytes(rival: SearchPlan, best: SearchPlan) -> float:
    return min(max(rival.bytes_per_row - best.bytes_per_row, 0.0), 448.0)


def exact_plans(n: int, distance: int, bits: int, sample: Any) -> list[SearchPlan]:
    """Every exact plan with tables that is worth a thought, the smallest first."""
    information = agreement(sample, bits)
    plans = []
    if _probes(bits, distance) <= 4096:
        plans.append(probe_plan(n, distance, bits))
    for m in range(distance + 1, min(bits, distance + EXTRA_BLOCKS) + 1):
        if comb(m, distance) > MOST_TABLES:
            break
        plans.append(block_plan(n, distance, bits, m, information))
    for m in range(2, min(bits, distance) + 1):
        if _mih_lookups(bits, distance, m) <= MOST_MIH_LOOKUPS:
            plans.append(mih_plan(n, distance, bits, m, information))
    return sorted(plans, key=lambda each: each.bytes_per_row)


def check_search_plan(plan: str, distance: int, bits: int) -> None:
    """Refuse a plan that is unknown or cannot work.

    Raises:
        UsageError: If it is refused.
    """
    kind, _, value = plan.partition(":") if isinstance(plan, str) else ("", "", "")
    known = {name.partition(":")[0] for name in SEARCH_PLANS}
    if kind not in known or (value and kind not in {"multi", "mih", "bands", "permute"}):
        raise UsageError(
            f"plan {plan!r} is unknown: use one of {', '.join(SEARCH_PLANS)}"
            f"{_near_names(kind, known)}"
        )
    if kind == "multi" and not re.fullmatch(r"[0-9]{1,9}", value):
        raise UsageError(f"plan {plan!r} names no number of blocks: use multi:{distance + 1}, say")
    if kind == "multi" and int(value) <= distance:
        raise UsageError(
            f"plan {plan!r} has too few blocks for distance {distance}:"
            f" use multi:{distance + 1} or more"
        )
    if kind == "multi" and int(value) > bits:
        raise UsageError(
            f"plan {plan!r} has more blocks than the {bits} bits: use multi:{bits} or less"
        )
    if kind == "multi" and comb(int(value), distance) > 10 * MOST_TABLES:
        raise UsageError(
            f"plan {plan!r} needs {comb(int(value), distance):,} tables at distance {distance},"
            f" more than {10 * MOST_TABLES:,}: use fewer blocks"
        )
    if kind == "mih" and not (re.fullmatch(r"[1-9][0-9]{0,3}", value) and int(value) <= bits):
        raise UsageError(f"plan {plan!r}: use 1 to {bits} blocks, as in mih:4")
    if kind == "mih" and _mih_lookups(bits, distance, int(value)) > MOST_PROBES:
        raise UsageError(f"plan {plan!r} would look up too many signatures: use more blocks")
    if kind == "probe" and _probes(bits, distance) > MOST_PROBES:
        raise UsageError(
            f"plan 'probe' would look up {_probes(bits, distance):,} signatures a query at"
            f" distance {distance}, more than {MOST_PROBES:,}: use auto"
        )
    if kind == "bands" and value and not 0 < _number(value, plan) < 1:
        raise UsageError(f"plan {plan!r}: the recall lies between 0 and 1, as in bands:0.99")
    if kind == "permute" and value and not re.fullmatch(r"[1-9][0-9]{0,3}", value):
        raise UsageError(f"plan {plan!r}: use 1 to 9999 permutations, as in permute:32")


def named_plan(n: int, distance: int, bits: int, sample: Any, plan: str) -> SearchPlan:
    """The plan of this name."""
    kind, _, value = plan.partition(":")
    if kind == "scan":
        return scan_plan(n, bits)
    if kind == "bits":
        return bits_plan(n, bits)
    if distance >= bits:
        return replace(scan_plan(n, bits), name=plan)
    if kind == "probe":
        return probe_plan(n, distance, bits)
    if kind == "mih":
        return mih_plan(n, distance, bits, int(value), agreement(sample, bits))
    if kind == "bands":
        return bands_plan(n, distance, bits, float(value or DEFAULT_RECALL))
    if kind == "permute":
        return permute_plan(n, distance, bits, int(value or DEFAULT_PERMUTATIONS))
    m = distance + 1 if kind == "blocks" else int(value)
    return replace(block_plan(n, distance, bits, m, agreement(sample, bits)), name=plan)


def scan_plan(n: int, bits: int) -> SearchPlan:
    """Compare with every row."""
    words = -(-bits // 64)
    seconds = SECONDS_QUERY + n * SCAN_SECONDS * words
    return SearchPlan("scan", np.zeros((0, words), np.uint64), 0, n, 0.0, seconds)


def bits_plan(n: int, bits: int) -> SearchPlan:
    """One list of rows a bit, kept as bitmaps: the classic teaching design, bit-sliced."""
    words = -(-bits // 64)
    seconds = SECONDS_QUERY + n * BITS_SECONDS * words
    return SearchPlan(
        "bits", np.zeros((0, words), np.uint64), 0, n, bits / 8, seconds, lookups=bits
    )


def probe_plan(n: int, distance: int, bits: int) -> SearchPlan:
    """Look every signature within the distance up in one table of whole fingerprints."""
    words = -(-bits // 64)
    mask = np.full((1, words), 2**64 - 1, np.uint64)
    if bits % 64:
        mask[0, -1] = 2 ** (bits % 64) - 1
    lookups = _probes(bits, distance)
    key_bits = _key_bits(n, bits)
    return SearchPlan(
        "probe",
        mask,
        key_bits,
        lookups * n / 2**key_bits,
        _table_bytes(n, words, key_bits),
        SECONDS_QUERY + lookups * SECONDS_PROBE,
        lookups=lookups,
    )


def block_plan(n: int, distance: int, bits: int, m: int, information: Any) -> SearchPlan:
    """All choices of m - distance of m blocks: one table each."""
    blocks, block = block_masks(bits, m, information)
    chosen = list(combinations(range(m), m - distance))
    masks = np.array([np.bitwise_or.reduce(blocks[list(each)], axis=0) for each in chosen])
    share = 2.0 ** -np.bincount(block, weights=information, minlength=m)
    key_bits = _key_bits(n, min(int(np.bitwise_count(mask).sum()) for mask in masks))
    together = [max(np.prod(share[list(each)]), 2.0**-key_bits) for each in chosen]
    return _of_tables(f"multi:{m}", n, masks, key_bits, n * float(sum(together)))


def mih_plan(n: int, distance: int, bits: int, m: int, information: Any) -> SearchPlan:
    """Few blocks, looked up with some of their bits turned: large distances in little memory.

    Of m blocks, one differs in at most distance // m bits (multi-index hashing: Norouzi, Punjani
    and Fleet, CVPR 2012).
    """
    masks, block = block_masks(bits, m, information)
    words = masks.shape[1]
    key_bits = _key_bits(n, min(int(np.bitwise_count(mask).sum()) for mask in masks))
    share = np.maximum(2.0 ** -np.bincount(block, weights=information, minlength=m), 2.0**-key_bits)
    lookups = _mih_lookups(bits, distance, m)
    candidates = lookups * n * float(share.mean())
    plan = _of_tables(f"mih:{m}", n, masks, key_bits, candidates)
    seconds = plan.seconds + (lookups - m) * (SECONDS_LOOKUP if words else 0)
    return replace(plan, seconds=seconds, lookups=lookups)


def _mih_lookups(bits: int, distance: int, m: int) -> int:
    radius, rest = divmod(distance, m)
    size = -(-bits // m)
    wide, narrow = _probes(size, radius), _probes(size, radius - 1)
    return min(rest + 1, m) * wide + max(m - rest - 1, 0) * narrow


def bands_plan(n: int, distance: int, bits: int, recall: float) -> SearchPlan:
    """Tables over sampled bits, as many as the recall *at* the distance needs; approximate.

    A row exactly `distance` bits away agrees on r sampled bits with p = C(b - d, r) / C(b, r); of
    independent samples, L tables find it with 1 - (1 - p)^L.
    """
    best = None
    for r in range(1, bits - distance + 1):
        p = comb(bits - distance, r) / comb(bits, r)
        tables = int(np.ceil(np.log(1 - recall) / np.log1p(-p))) if p < 1 else 1
        if tables > MOST_TABLES:
            break
        key_bits = _key_bits(n, r)
        candidates = tables * n * 2.0**-key_bits
        masks = np.zeros((tables, -(-bits // 64)), np.uint64)
        plan = _of_tables(f"bands:{recall:g}", n, masks, key_bits, candidates)
        if best is None or plan.seconds < best[0].seconds:
            best = (plan, r, 1 - (1 - p) ** tables)
    if best is None:
        raise UsageError(
            f"bands of recall {recall:g} at distance {distance} of {bits} bits need more than"
            f" {MOST_TABLES} tables: lower the recall, or use auto"
        )
    plan, r, reached = best
    masks = _sampled_masks(len(plan.masks), r, bits)
    return replace(plan, masks=masks, recall=reached)


def permute_plan(n: int, distance: int, bits: int, permutations: int) -> SearchPlan:
    """Sorted lists of permuted bits, a window of neighbours in each; approximate.

    The recall that is stated is that of a row in random data whose differing bits all lie below
    the first log2(n / window) permuted ones.
    """
    words = -(-bits // 64)
    prefix = max(0, min(bits, int(np.ceil(np.log2(max(n / PERMUTE_WINDOW, 1))))))
    p = comb(bits - distance, prefix) / comb(bits, prefix) if prefix <= bits - distance else 0.0
    masks = np.zeros((0, words), np.uint64)
    return SearchPlan(
        f"permute:{permutations}",
        masks,
        0,
        permutations * 2 * PERMUTE_WINDOW,
        permutations * (8 * words + 4),
        SECONDS_QUERY + permutations * PERMUTE_SECONDS,
        recall=1 - (1 - p) ** permutations,
        lookups=permutations,
    )


def _of_tables(name: str, n: int, masks: Any, key_bits: int, candidates: float) -> SearchPlan:
    tables, words = masks.shape
    row = 8 * words + 4
    lookup = SECONDS_LOOKUP if n * row > CACHED_BYTES else SECONDS_CACHED_LOOKUP
    seconds = SECONDS_QUERY + tables * lookup + candidates * SCAN_SECONDS * words
    size = tables * _table_bytes(n, words, key_bits)
    return SearchPlan(name, masks, key_bits, candidates, size, seconds, lookups=tables)


def _table_bytes(n: int, words: int, key_bits: int) -> float:
    return 8 * words + 4 + 4 * (1 << key_bits) / max(n, 1)


def _key_bits(n: int, mask_bits: int) -> int:
    """Bits of the key that leave a few rows a bucket, if the mask has as many."""
    wanted = max(n // ROWS_PER_KEY, 1).bit_length()
    return max(1, min(mask_bits, wanted, MOST_KEY_BITS))


def _probes(bits: int, distance: int) -> int:
    return sum(comb(bits, flips) for flips in range(min(distance, bits) + 1))


def _sampled_masks(tables: int, r: int, bits: int) -> Any:
    """For each table r of the bits, drawn at random, always the same."""
    draw = np.random.default_rng(20070508)
    picked = np.argsort(draw.random((tables, bits)), axis=1)[:, :r]
    chosen = np.zeros((tables, -(-bits // 64) * 64), np.uint8)
    np.put_along_axis(chosen, picked, 1, axis=1)
    return np.packbits(chosen, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _near_names(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _number(text: str, plan: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"plan {plan!r}: {text!r} is not a number") from None
