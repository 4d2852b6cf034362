"""Find all pairs of fingerprints within a Hamming distance, exactly."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

from neardup.errors import TooManyPairsError, UsageError
from neardup.join import HEAVY_ROWS, Collector, Engine, Problem, solve
from neardup.memory import free_memory
from neardup.partition import Groups, frozen, group_equal, workers_or_default
from neardup.planner import SEARCHED_PLANS, check_plan
from neardup.search_planner import check_search_plan

__all__ = ["as_words", "packed_pairs", "pairs", "pairs_within_groups"]

BYTES_PER_PAIR: Final = 48
ROWS_ASKED: Final = 1 << 14
MOST_ROWS: Final = 1 << 32
MOST_DISTANCE: Final = 2**15 - 1
LOW_WORD: Final = np.uint64(2**32 - 1)


def pairs(
    fingerprints: Any,
    distance: int = 3,
    bits: int | None = None,
    plan: str = "auto",
    limit: int | None = None,
    workers: int | None = None,
    *,
    heavy: int = HEAVY_ROWS,
) -> Any:
    """Find every pair of fingerprints within `distance` bits: none missed, each once.

    Args:
        fingerprints: uint64 (n,) or (n, words), low word first; int64 is taken bit for bit; or a
            list of int. Masked rows of a NumPy masked array are skipped.
        distance: Largest Hamming distance, 0 or more.
        bits: Width of a fingerprint; 64 * words unless said.
        plan: "auto" for the cheapest, "scan" to compare all, "blocks" for distance + 1 blocks of
            which one agrees, "multi:M" for M blocks of which M - distance agree, "mih:M" for M
            blocks of which one differs in distance // M bits; "bits" and "probe" ask an index for
            each row. All find the same.
        limit: The most rows to return; as many as fit half of the free memory unless said.
        workers: Threads; one per core unless said.
        heavy: Rows from which a bucket is split again by other bits; for tests.

    Returns:
        pyarrow.Table with left (int64), right (int64), distance (int16): left < right, sorted.

    Raises:
        UsageError: For a wrong plan, distance, width, dtype or shape.
        TooManyPairsError: For more rows than `limit` or memory allow; it has the true count.

    Example:
        >>> pairs([0b0000, 0b0111, 0b1111], distance=1).to_pylist()
        [{'left': 1, 'right': 2, 'distance': 1}]
    """
    import pyarrow as pa

    words, rows, bits = as_words(fingerprints, bits)
    check_distance(distance)
    if plan in SEARCHED_PLANS:
        check_search_plan(plan, distance, bits)
    else:
        check_plan(plan, distance, bits)
    if limit is not None and limit < 0:
        raise UsageError(f"limit is {limit}: use 0 or more")
    found = PairCollector(limit if limit is not None else _rows_that_fit())
    engine = Engine(distance, bits, workers_or_default(workers), max(2, heavy))
    named = np.empty(0, np.uint32) if rows is None else rows
    problem = Problem(words, named)
    if plan in SEARCHED_PLANS:
        solve_by_search(problem, engine, found, plan)
    else:
        solve(problem, engine, found, plan if distance < bits else "scan")
    left, right = found.sorted_pairs()
    columns = [left, right, _distances(words, left, right, rows)]
    return pa.table(columns, names=["left", "right", "distance"])


def as_words(fingerprints: Any, bits: int | None = None) -> tuple[Any, Any, int]:
    """Check fingerprints and bring them into one shape.

    Returns:
        uint64 (n, words) of the rows that are not masked, read-only; their row numbers, uint32, or
        None where none is masked; the width in bits.

    Raises:
        UsageError: For a wrong dtype, shape or width.
    """
    values = fingerprints
    if isinstance(values, (list, tuple)):
        values = _from_ints(values, bits)
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.ma.getdata(values) if mask is not None else np.asarray(values)
    if array.dtype not in (np.dtype(np.uint64), np.dtype(np.int64)):
        raise UsageError(
            f"fingerprints are {array.dtype}: use uint64 (or int64, taken bit for bit)"
        )
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] == 0:
        raise UsageError(f"fingerprints have shape {array.shape}: use (n,) or (n, words)")
    width = 64 * array.shape[1]
    bits = width if bits is None else bits
    if not width - 64 < bits <= width:
        raise UsageError(f"bits is {bits}: {array.shape[1]} words hold {width - 63} to {width}")
    if len(array) > MOST_ROWS:
        raise UsageError(f"{len(array):,} fingerprints: join at most {MOST_ROWS:,} at once")
    words = np.ascontiguousarray(array).view(np.uint64)
    rows = None
    if mask is not None and mask.any():
        rows = np.flatnonzero(~mask.reshape(len(array), -1).any(axis=1)).astype(np.uint32)
        words = words[rows]
    if bits < width and len(words) and int(words[:, -1].max()) >> (bits - width + 64):
        raise UsageError(
            f"a fingerprint has bits set beyond bits = {bits}: clear them or raise bits"
        )
    return frozen(words), rows, bits


def _from_ints(values: Any, bits: int | None) -> Any:
    if any(not isinstance(value, (int, np.integer)) or value < 0 for value in values):
        raise UsageError("a list of fingerprints holds whole numbers from 0 only")
    widest = max((int(value).bit_length() for value in values), default=1)
    if bits is not None and widest > bits:
        raise UsageError(f"a fingerprint has {widest} bits, more than bits = {bits}")
    size = 8 * -(-max(bits or widest, 1) // 64)
    joined = b"".join(int(value).to_bytes(size, "little") for value in values)
    return np.frombuffer(joined, "<u8").astype(np.uint64).reshape(-1, size // 8)


def check_distance(distance: int) -> None:
    """Refuse a distance that is not a whole number from 0 to 32,767.

    Raises:
        UsageError: If it is refused.
    """
    whole = isinstance(distance, (int, np.integer)) and not isinstance(distance, bool)
    if not whole or not 0 <= distance <= MOST_DISTANCE:
        raise UsageError(
            f"distance is {distance!r}: use a whole number from 0 to {MOST_DISTANCE:,}"
        )


def _rows_that_fit() -> int:
    """Pairs for which half of the memory that is free now would do."""
    return free_memory() // 2 // BYTES_PER_PAIR


def _distances(words: Any, left: Any, right: Any, rows: Any) -> Any:
    distances = np.empty(len(left), np.int16)
    if rows is not None:
        left, right = np.searchsorted(rows, left), np.searchsorted(rows, right)
    for start in range(0, len(left), 1 << 20):
        part = slice(start, start + (1 << 20))
        differ = np.bitwise_count(words[left[part]] ^ words[right[part]])
        distances[part] = differ.sum(axis=1, dtype=np.int64)
    return distances


class PairCollector:
    """Collects pairs up to a limit, and counts them beyond it."""

    def __init__(self, limit: int) -> None:
        """Start empty."""
        self.limit, self.count, self.stored = limit, 0, 0
        self.parts: list[Any] = []
        self._lock = threading.Lock()

    def parent(self, slot: int) -> Any:  # noqa: ARG002
        """No union-find."""
        return np.empty(0, np.uint32)

    def may_store(self, rows: int) -> bool:
        """Whether `rows` more stay within the limit."""
        return max(self.count, self.stored) + rows <= self.limit

    def add(self, count: int, pairs: Any) -> None:
        """Take pairs and how many rows they stand for."""
        with self._lock:
            self.count += count
            if self.count > self.limit:
                self.parts.clear()
            elif len(pairs):
                self.parts.append(pairs)
                self.stored += len(pairs)

    def collapsed(self, problem: Problem, groups: Groups) -> PairCollector:  # noqa: ARG002
        """A collector of pairs of groups."""
        return PairCollector(max(0, self.limit - self.count))

    def expand(self, inner: Collector, problem: Problem, groups: Groups) -> None:
        """Take the pairs between groups, and those inside them unless a condition refuses them."""
        assert isinstance(inner, PairCollector)  # noqa: S101
        sizes = groups.sizes
        due = problem.agree is None or bool(np.all(problem.agree))
        within = int((sizes * (sizes - 1) // 2).sum()) if due else 0
        if not self.may_store(inner.count + within):
            self.add(inner.count + within, np.empty(0, np.uint64))
            return
        named = groups.members if not len(problem.rows) else problem.rows[groups.members]
        between = np.concatenate([*inner.parts, np.empty(0, np.uint64)])
        self.add(inner.count, _between_groups(between, named, groups))
        if within:
            self.add(within, pairs_within_groups(named, groups))

    def sorted_pairs(self) -> tuple[Any, Any]:
        """All pairs as int64 arrays, sorted.

        Raises:
            TooManyPairsError: If there were more than the limit.
        """
        if self.count > self.limit:
            raise TooManyPairsError(self.count, self.limit)
        packed = np.concatenate([*self.parts, np.empty(0, np.uint64)])
        self.parts.clear()
        packed.sort()
        right = (packed & LOW_WORD).view(np.int64)
        packed >>= np.uint64(32)
        return packed.view(np.int64), right


def solve_by_search(problem: Problem, engine: Engine, found: PairCollector, plan: str) -> None:
    """Find the pairs by asking a searcher of the distinct rows for the neighbours of each."""
    from neardup.index.searchers import build_searcher, plan_for

    if not len(problem.words):
        return
    groups = Groups.of(group_equal(problem.words, engine.workers))
    distinct = frozen(problem.words[groups.firsts])
    chosen = plan_for(distinct, engine.distance, engine.bits, plan)
    searcher = build_searcher(distinct, chosen, engine.distance, engine.bits, engine.workers)
    inner = found.collapsed(problem, groups)
    for first in range(0, len(distinct), ROWS_ASKED):
        queries = distinct[first : first + ROWS_ASKED]
        hits = searcher.search(queries, engine.distance, engine.workers)
        rows = hits.queries + first
        later = hits.rows > rows
        left, right = rows[later], hits.rows[later]
        stands_for = int((groups.sizes[left] * groups.sizes[right]).sum())
        inner.add(stands_for, packed_pairs(left, right))
    found.expand(inner, problem, groups)


def packed_pairs(a: Any, b: Any) -> Any:
    """Pack pairs of rows below 2**32 into one uint64 each: the smaller << 32 | the larger."""
    low, high = np.minimum(a, b).astype(np.uint64), np.maximum(a, b).astype(np.uint64)
    return low << np.uint64(32) | high


def _between_groups(packed: Any, named: Any, groups: Groups) -> Any:
    """Every row of the one group with every row of the other."""
    one = (packed >> np.uint64(32)).astype(np.int64)
    two = (packed & LOW_WORD).astype(np.int64)
    sizes = groups.sizes
    each = sizes[one] * sizes[two]
    at = np.repeat(np.arange(len(packed)), each)
    within = np.arange(len(at)) - np.repeat(np.cumsum(each) - each, each)
    first, second = np.divmod(within, sizes[two][at])
    return packed_pairs(
        named[groups.starts[one][at] + first], named[groups.starts[two][at] + second]
    )


def pairs_within_groups(named: Any, groups: Groups) -> Any:
    """Every two rows of a group, packed; `named` (uint32) has the rows in the order of `groups`."""
    ends = np.repeat(groups.starts[1:], groups.sizes)
    place = np.arange(len(named))
    later = ends - place - 1
    one = np.repeat(place, later)
    two = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return packed_pairs(named[one], named[two])
