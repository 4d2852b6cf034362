"""Segments of an index by similarity: documents that do not change, with what finds them.

Equal documents are one set. The sets stand by size, so that the sizes that can be similar enough
are a range, and are found by the first of their features in an order that is the segment's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.base.rows import MarkedRows, sound_from
from neardup.index.ids import IdColumn
from neardup.index.similar.related import RankedSets
from neardup.index.similar.sets import Sets
from neardup.runtime.arrays import frozen
from neardup.runtime.threads import stop_if_abandoned

if TYPE_CHECKING:
    from neardup.index.similar.related import Ranking
    from neardup.index.similar.settings import SimilarSettings
    from neardup.kernels.index.sets import Order
    from neardup.runtime.types import Flags

__all__ = [
    "FoundRows",
    "Rows",
    "Segment",
    "arranged",
    "build",
    "due",
    "merged",
    "no_order",
    "sketch_words",
]

SEGMENTS_A_LEVEL: Final = 4
LEVEL_ROWS: Final = 4096
"""Of a segment of the lowest level, at most."""
HEAVY: Final = 4
"""A feature that so many sets have comes last in the order."""
SAMPLED_SETS: Final = 1 << 11
"""Where there are so many sets or more, only every fourth is looked at for that."""
SAMPLE_STEP: Final = 4
SAMPLED_HEAVY: Final = 3
"""A feature that so many of these have comes last in the order: about twelve of all have it."""

SKETCHED: Final = 48
"""Sets of fewer features have sketches of one word, of twice as many those of four."""
LEAST_CELL_BITS, MOST_CELL_BITS = 10, 28
ENTRIES_A_BUCKET: Final = 4
MOST_ENTRIES: Final = 1 << 32
_NONE: Final = np.empty(0, np.int64)


class Rows(NamedTuple):
    """Documents in order of insertion.

    Args:
        sets: Sets of features, each of one document or more.
        set_of: int64 (n,): the set of each document.
        ids: IdColumn, all different.
        numbers: int64 (n,), ascending: the place of each in the order of all insertions.
    """

    sets: Sets
    set_of: Any
    ids: IdColumn
    numbers: Any


class FoundRows(NamedTuple):
    """What a search found: int64 `queries`, ascending, int64 `rows`, float64 `scores`.

    Fewer rows than in all where there is a limit: then `cut` are left out.
    """

    queries: Any
    rows: Any
    scores: Any
    cut: int

    def first(self, most: int, numbers: Any, *, by_age: bool = False) -> FoundRows:
        """At most so many for each query: the most similar, or the oldest by `numbers` of rows."""
        if len(self.rows) <= most:
            return self
        ages = numbers[self.rows]
        order = np.lexsort((ages, self.queries) if by_age else (ages, -self.scores, self.queries))
        ordered = self.queries[order]
        first = np.searchsorted(ordered, ordered, side="left")
        order = order[np.arange(len(ordered)) - first < most]
        cut = self.cut + len(self.rows) - len(order)
        return FoundRows(self.queries[order], self.rows[order], self.scores[order], cut)


class Segment(MarkedRows):
    """Documents and what finds them.

    Args:
        arrays: By name: features, offsets, set_of, members, member_starts, sizes, firsts,
            order_keys, order_ranks, starts, entries, rest_starts, rest_entries, sketches, numbers.
        ids: Of the rows.
        dead: bool (n,), True for removed rows; taken over, and not changed.
    """

    def __init__(self, arrays: dict[str, Any], ids: IdColumn, dead: Flags | None = None) -> None:
        """Take the arrays."""
        from neardup.kernels.index.sets import Order
        from neardup.kernels.index.similar import stored_sets

        super().__init__(ids, arrays["numbers"], dead)
        self.arrays = {name: frozen(array) for name, array in arrays.items()}
        self.order = Order(self.arrays["order_keys"], self.arrays["order_ranks"])
        self.places = stored_sets(self.arrays)
        """Where the arrays are that are searched, as `search_sets` takes it."""
        self._ranked = RankedSets()

    def stats(self, settings: SimilarSettings) -> dict[str, Any]:
        """Rows, and what they hold."""
        sets = self.sets
        return {
            **super().stats(settings), "sets": sets.size, "features": int(sets.offsets[-1]),
        }  # fmt: skip

    @property
    def sets(self) -> Sets:
        """The distinct sets."""
        return Sets(self.arrays["features"], self.arrays["offsets"])

    def contents(self, rows: Any) -> Sets:
        """The features of some rows (int64)."""
        return self.sets.take(self.arrays["set_of"][rows].astype(np.int64))

    def nearest(self, features: Any, ranking: Ranking, n: int, floor: float) -> FoundRows:
        """The n most similar living rows, and others; those below `floor` may be missing."""
        wanted = n
        while True:
            numbers, scores = self._ranked.best(self.sets, features, ranking, wanted, floor)
            rows = self.rows((np.zeros(len(numbers), np.int64), numbers, scores), n)
            if not self.removed or len(rows.rows) >= n or len(numbers) < wanted:
                return rows
            wanted *= 4

    def rows(self, found: tuple[Any, Any, Any], most: int | None) -> FoundRows:
        """The living rows of found sets; of equal ones at most so many."""
        queries, numbers, scores = found
        starts, members = self.arrays["member_starts"], self.arrays["members"]
        begins, counts = starts[numbers], starts[numbers + 1] - starts[numbers]
        if len(numbers) and int(counts.max()) == 1:
            return self._living(queries, members[begins].astype(np.int64), scores, 0)
        if most is None or not self.removed:
            taken = counts if most is None else np.minimum(counts, most)
            firsts = np.cumsum(taken) - taken
            within = np.arange(int(taken.sum())) - np.repeat(firsts, taken)
            rows = members[np.repeat(begins, taken) + within].astype(np.int64)
            cut = int(counts.sum() - taken.sum())
            return self._living(np.repeat(queries, taken), rows, np.repeat(scores, taken), cut)
        known: dict[int, Any] = {}
        parts, cut = [_NONE], 0
        for number in numbers.tolist():
            if number not in known:
                every = members[starts[number] : starts[number + 1]].astype(np.int64)
                known[number] = every[self.alive(every)]
            parts.append(known[number][:most])
            cut += max(0, len(known[number]) - most)
        taken = np.array([len(part) for part in parts[1:]], np.int64)
        return FoundRows(
            np.repeat(queries, taken), np.concatenate(parts), np.repeat(scores, taken), cut
        )

    def _living(self, queries: Any, rows: Any, scores: Any, cut: int) -> FoundRows:
        if not self.removed:
            return FoundRows(queries, rows, scores, cut)
        keep = self.alive(rows)
        return FoundRows(queries[keep], rows[keep], scores[keep], cut)

    def living_rows(self) -> Rows:
        """Those that are not removed, with all sets."""
        stop_if_abandoned()
        self.verify()
        set_of = self.arrays["set_of"].astype(np.int64)
        if not self.removed:
            return Rows(self.sets, set_of, self.ids, self.numbers)
        live = self.live_rows()
        ids = IdColumn(self.ids.values.take(pa.array(live)))
        return Rows(self.sets, set_of[live], ids, self.numbers[live])


def due(segments: list[Segment], most: int | None = None) -> tuple[int, int] | None:
    """Several of a level, or one mostly of removed rows; see Held.due."""
    for at, segment in enumerate(segments):
        if 2 * segment.removed > len(segment):
            return at, at + 1
    levels = [_level(each) for each in segments]
    for level in sorted(set(levels)):
        first = len(levels)
        while first and levels[first - 1] <= level:
            first -= 1
        run = levels[first:]
        # Where smaller ones lie between, as many of the level: else a large one is copied for few.
        are_due = run[-1:] == [level] or run.count(level) >= SEGMENTS_A_LEVEL
        if len(run) >= SEGMENTS_A_LEVEL and are_due:
            rows = sum(each.living for each in segments[first:])
            return None if most is not None and rows > most else (first, len(levels))
    return None


def arranged(segments: list[Segment], settings: SimilarSettings) -> list[Segment]:
    """Merge segments where it is time to: see `due`.

    A damaged segment is left as it is, so that the damage stays where its checksum shows it.
    """
    stack = [segment for segment in segments if segment.living]
    begin = 0
    while found := due(stack[begin:]):
        first, last = begin + found[0], begin + found[1]
        sound = sound_from(stack[first:last])
        if sound:
            begin = first + sound
            continue
        stack[first:last] = [merged([each.living_rows() for each in stack[first:last]], settings)]
    return stack


def _level(segment: Segment) -> int:
    level = 0
    while segment.living > LEVEL_ROWS * SEGMENTS_A_LEVEL**level:
        level += 1
    return level


def merged(parts: list[Rows], settings: SimilarSettings) -> Segment:
    """One segment of documents that stand one after the other; none may be empty.

    Sets of no document are left out. Each set that stays is copied once, from where it is.
    """
    stop_if_abandoned()
    places, set_of = [], []
    before = 0
    for part in parts:
        used = np.zeros(part.sets.size, np.bool_)
        used[part.set_of] = True
        set_of.append((np.cumsum(used) - 1 + before)[part.set_of])
        before += int(used.sum())
        places.append(_Places.of(part.sets, used))
    sets, place_of = _collapsed(
        _Places(*(np.concatenate(each) for each in zip(*places, strict=True)))
    )
    stop_if_abandoned()
    ids = IdColumn(pa.concat_arrays([part.ids.values for part in parts]))
    numbers = np.concatenate([part.numbers for part in parts])
    return _found_by(sets, place_of[np.concatenate(set_of)], ids, numbers, settings)


def build(rows: Rows, settings: SimilarSettings) -> Segment:
    """Make what finds documents; none may be empty."""
    return merged([rows], settings)


def _found_by(
    sets: Sets, set_of: Any, ids: IdColumn, numbers: Any, settings: SimilarSettings
) -> Segment:
    """The segment of different sets, by size, and of documents, each of one of them."""
    count = sets.size
    members = np.argsort(set_of, kind="stable")
    member_starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(set_of, minlength=count), out=member_starts[1:])
    sizes, firsts = np.unique(np.diff(sets.offsets), return_index=True)
    order = _order(sets)
    arrays = {
        "features": sets.features, "offsets": sets.offsets, "set_of": set_of.astype(np.uint32),
        "members": members.astype(np.uint32), "member_starts": member_starts,
        "sizes": sizes.astype(np.int64), "firsts": np.append(firsts, count).astype(np.int64),
        "order_keys": order.keys, "order_ranks": order.ranks, "numbers": numbers,
        "sketches": _sketches(sets),
    }  # fmt: skip
    stop_if_abandoned()
    return Segment(arrays | _postings(sets, order, settings), ids)


class _Places(NamedTuple):
    """Sets where they are, which whoever has this keeps there.

    Args:
        at: int64 (n,): the address of the features of each.
        sizes: int64 (n,).
        sums: uint64 (n,): a hash of each.
    """

    at: Any
    sizes: Any
    sums: Any

    @classmethod
    def of(cls, sets: Sets, used: Any) -> _Places:
        """The used ones of some sets, whose features stand one after the other."""
        from neardup.kernels.index.sets import digests

        sums, offsets = np.empty(sets.size, np.uint64), sets.offsets
        digests(frozen(sets.features), frozen(offsets), sums)
        at = sets.features.__array_interface__["data"][0] + sets.features.itemsize * offsets[:-1]
        return cls(at[used], np.diff(offsets)[used], sums[used])


def no_order() -> Order:
    """The order in which no feature is heavy."""
    from neardup.kernels.index.sets import Order

    return Order(frozen(np.zeros(1, np.uint64)), frozen(np.zeros(1, np.uint32)))


def _collapsed(places: _Places) -> tuple[Sets, Any]:
    """The different sets by size; and where each of the given ones is among them, int64."""
    from neardup.kernels.index.sets import gather_at, mark_fresh

    at, sizes, sums = places
    fresh = np.empty(len(at), np.bool_)
    order = np.lexsort((sums, sizes))
    mark_fresh(at, sizes, order, sums, fresh)
    place_of, chosen = np.empty(len(at), np.int64), order[fresh]
    place_of[order] = np.cumsum(fresh) - 1
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes[chosen], out=offsets[1:])
    features = np.empty(int(offsets[-1]), np.uint64)
    gather_at(at, sizes, chosen, features, offsets)
    return Sets(features, offsets), place_of


def _order(sets: Sets) -> Order:
    """Heavy features by how many sets have them, then by hash."""
    from neardup.kernels.index.sets import Order, count_heavy

    least = HEAVY
    if sets.size >= SAMPLED_SETS:
        sets, least = sets.take(np.arange(0, sets.size, SAMPLE_STEP)), SAMPLED_HEAVY
    features = frozen(sets.features)
    bits = min(max(LEAST_CELL_BITS, len(features).bit_length() + 1), MOST_CELL_BITS)
    cells = np.zeros(1 << bits, np.uint8)
    keys, counts = count_heavy(features, cells, np.uint64(64 - bits), least)
    slots = np.flatnonzero(keys)
    ranks = np.zeros(len(keys), np.uint32)
    ranks[slots[np.lexsort((keys[slots], counts[slots]))]] = np.arange(1, len(slots) + 1)
    return Order(frozen(keys), frozen(ranks))


def sketch_words(features: float) -> int:
    """Words of a set's sketch, where a set has so many features: 1, 2 or 4."""
    return 1 if features < SKETCHED else 2 if features < 2 * SKETCHED else 4


def _sketches(sets: Sets) -> Any:
    """By which sets are told apart, as kernels take it: uint64 (m, words)."""
    from neardup.kernels.index.similar import make_sketches

    words = sketch_words(len(sets.features) / max(1, sets.size))
    sketches = np.empty((sets.size, words), np.uint64)
    make_sketches(frozen(sets.features), frozen(sets.offsets), sketches.reshape(-1), words)
    return sketches


def _postings(sets: Sets, order: Order, settings: SimilarSettings) -> dict[str, Any]:
    from neardup.kernels.index.sets import make_postings

    total, similarity = len(sets.features), float(settings.similarity)
    share = similarity**2 if settings.measure == "cosine" else similarity
    prefixes = int((1 - share) * total) + sets.size
    rest = total - prefixes if settings.measure == "containment" else 0
    if total >= MOST_ENTRIES:
        raise UsageError(
            f"{total:,} features at once: add fewer documents at a time, at most"
            f" {MOST_ENTRIES - 1:,} features"
        )
    bits = [np.uint64(max(1, (each // ENTRIES_A_BUCKET).bit_length())) for each in (prefixes, rest)]
    starts, entries, rest_starts, rest_entries = make_postings(
        frozen(sets.features), frozen(sets.offsets), order, settings.condition(), *bits
    )
    return {
        "starts": starts[:-1], "entries": entries,
        "rest_starts": rest_starts[:-1], "rest_entries": rest_entries,
    }  # fmt: skip
