"""Tables of a banded search: which rows of a bin share a table's key and are near each other.

Rows come as the entries of `entries`, which hold all that most pairs are dismissed by. The few that
pass are compared on the whole fingerprints. A pair is looked at by the first table only that it
shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.bits import popcount, trailing_zeros
from neardup.kernels.counters import LANES
from neardup.kernels.fingerprinting.fold import PLANES, fold_equal
from neardup.kernels.jit import inlined, inner, kernel, move
from neardup.kernels.similarity.entries import alike, is_alike, slot_bits, slot_of, sort_bin
from neardup.kernels.similarity.members import fill_members, is_match

if TYPE_CHECKING:
    from neardup.kernels.similarity.arguments import Condition, Sets

PENDING = 512
"""Pairs that wait to be compared together, so that the processor reads several at a time."""
LONG_RUN = 64
"""Rows of one slot from which on flagged rows are kept apart."""

_NONE = -1


class BandTables(NamedTuple):
    """The problem: fingerprints and the bits of every table."""

    codes: Any  # uint64 (n, W)
    keys: Any  # uint64 (tables, W): the bits that agree
    checks: Any  # uint64 (tables, W): the bits of which at most `allowed` differ
    allowed: int
    distance: int  # most bits in which a pair may differ


class Bins(NamedTuple):
    """The rows of one table."""

    table: int
    entries: Any  # uint64 (n,), from `scatter_entries`
    starts: Any  # int64 (bins + 1,)
    form: Any  # Form


class Documents(NamedTuple):
    """What the rows are, and when two match."""

    rows: Any  # int64 (n,): the document of each row
    sets: Sets  # of all documents
    condition: Condition


class Scratch(NamedTuple):
    """Working memory of a thread."""

    ends: Any  # int64, at least twice the rows of the largest bin
    ordered: Any  # uint64, at least its rows and PADDING
    plain: Any  # int64, at least its rows
    flagged: Any  # likewise
    members: Any  # uint64, `members_room` of a document or more
    owner: Any  # int64 (1,): whose features `members` holds; below 0: nobody's


@kernel
def fold_rows(features: Any, offsets: Any, rows: Any, out: Any) -> None:
    """Fold the feature sets of `rows` (int64) into out (uint64 (rows, width)); ties give 0.

    O(features of the rows times words). Features: uint64; offsets: int64.
    """
    planes = np.empty(PLANES, np.uint64)
    for i in range(rows.size):
        begin, end = offsets[rows[i]], offsets[rows[i] + 1]
        fold_equal(features[begin:end], end - begin, False, planes, out[i])


@inner
def _shares(tables: Any, x: int, y: int, table: int) -> bool:
    """Whether two rows share the key of a table, and nearly the check."""
    differing = np.uint64(0)
    for w in range(tables.keys.shape[1]):
        differing |= (tables.codes[x, w] ^ tables.codes[y, w]) & tables.keys[table, w]
        if differing:
            return False
    apart = np.int64(0)
    for w in range(tables.keys.shape[1]):
        apart += popcount((tables.codes[x, w] ^ tables.codes[y, w]) & tables.checks[table, w])
    return apart <= tables.allowed


@inlined
def _is_near(tables: Any, x: int, y: int) -> bool:
    apart = np.int64(0)
    for w in range(tables.keys.shape[1]):
        apart += popcount(tables.codes[x, w] ^ tables.codes[y, w])
    return apart <= tables.distance


@inner
def _is_first(tables: Any, x: int, y: int, table: int) -> bool:
    """Whether rows that share `table` share no table before it."""
    earlier = 0
    while earlier < table and not _shares(tables, x, y, earlier):
        earlier += 1
    return earlier == table


@inlined
def _is_candidate(tables: Any, x: int, y: int, table: int) -> bool:
    """Whether rows that share `table` are near, and share no table before it."""
    return _is_near(tables, x, y) and _is_first(tables, x, y, table)


@inlined
def _keep_candidates(
    tables: Any, table: int, pending: Any, waiting: int, pairs: Any, used: int
) -> int:
    """Write the candidates among pending[:waiting] to pairs[used:]; the new `used`."""
    for i in range(0, waiting, 2):
        x, y = pending[i], pending[i + 1]
        if _is_candidate(tables, x, y, table):
            pairs[used], pairs[used + 1] = min(x, y), max(x, y)
            used += 2
    return used


@inner
def _join_bins(
    tables: Any, bins: Any, last: int, scratch: Any, pending: Any, pairs: Any, cursor: Any
) -> None:
    """Write the candidate pairs up to bin last - 1, or until `pairs` might not hold more.

    The cursor, int64 (4,), is where to go on: bin, row of it, row to compare it with, and how much
    of `pairs` is used. It is there, and not in the kernel, to go without reference counts.
    """
    form, ordered, table = bins.form, scratch.ordered, bins.table
    b, i, at, used = cursor[0], cursor[1], cursor[2], cursor[3]
    waiting = np.int64(0)
    while b < last:
        rows = bins.starts[b + 1] - bins.starts[b]
        bits = slot_bits(form, rows)
        sort_bin(bins.entries, bins.starts[b], bins.starts[b + 1], bits, scratch.ends, ordered)
        while i < rows:
            entry = ordered[i]
            end = scratch.ends[slot_of(entry, bits)]
            while at < end:
                near = alike(ordered, at, end, entry, form)
                while near:
                    x = np.int64(entry & form.row_mask)
                    y = np.int64(ordered[at + trailing_zeros(near)] & form.row_mask)
                    near &= near - np.uint64(1)
                    pending[waiting], pending[waiting + 1] = x, y
                    waiting += 2
                at += LANES
                if waiting > len(pending) - 2 * LANES:
                    used = _keep_candidates(tables, table, pending, waiting, pairs, used)
                    waiting = np.int64(0)
                    if used + len(pending) > len(pairs):
                        cursor[0], cursor[1], cursor[2], cursor[3] = b, i, at, used
                        return
            i += 1
            at = i + 1
        b, i, at = b + 1, np.int64(0), np.int64(1)
    cursor[0] = last
    cursor[3] = _keep_candidates(tables, table, pending, waiting, pairs, used)


@kernel
def candidate_pairs(tables: Any, bins: Any, first: int, last: int, scratch: Any) -> Any:
    """List the candidate pairs of bins first..last-1.

    Args:
        tables: Tables.
        bins: Bins.
        first: The first bin.
        last: The bin after the last.
        scratch: Scratch.

    Returns:
        int64 (2 p,): the two rows of each pair, the smaller first.
    """
    pending, pairs = np.empty(2 * PENDING, np.int64), np.empty(4 * PENDING, np.int64)
    cursor = np.zeros(4, np.int64)
    cursor[0], cursor[2] = first, 1
    while cursor[0] < last:
        if cursor[3] + 2 * PENDING > pairs.size:
            larger = np.empty(2 * pairs.size, np.int64)
            move(pairs, cursor[3], larger)
            pairs = larger
        _join_bins(tables, bins, last, scratch, pending, pairs, cursor)
    found = np.empty(cursor[3], np.int64)
    move(pairs, cursor[3], found)
    return found


@inner
def _matches(x: int, y: int, documents: Any, scratch: Any) -> bool:
    """Whether the documents of two rows match."""
    a, b, sets = documents.rows[x], documents.rows[y], documents.sets
    if sets.groups.size and sets.groups[a] != sets.groups[b]:
        return False
    if scratch.owner[0] != x:
        fill_members(sets.features, sets.offsets[a], sets.offsets[a + 1], scratch.members)
        scratch.owner[0] = x
    return is_match(a, b, scratch.members, sets, documents.condition) >= 0.0


@inner
def _are_partners(x: int, y: int, table: int, tables: Any, documents: Any, scratch: Any) -> bool:
    return _is_candidate(tables, x, y, table) and _matches(x, y, documents, scratch)


@inner
def _flag_short(
    begin: int, end: int, tables: Any, bins: Any, documents: Any, flags: Any, scratch: Any
) -> None:
    """Flag among the rows of one slot, each with those behind it."""
    form, ordered = bins.form, scratch.ordered
    for i in range(begin, end):
        entry = ordered[i]
        x = np.int64(entry & form.row_mask)
        at = np.int64(i + 1)
        while at < end:
            near = alike(ordered, at, end, entry, form)
            while near:
                y = np.int64(ordered[at + trailing_zeros(near)] & form.row_mask)
                near &= near - np.uint64(1)
                if not (flags[x] and flags[y]) and _are_partners(
                    x, y, bins.table, tables, documents, scratch
                ):
                    flags[x], flags[y] = 1, 1
            at += LANES


@inner
def _flag_long(
    begin: int, end: int, tables: Any, bins: Any, documents: Any, flags: Any, scratch: Any
) -> None:
    """As `_flag_short` with two lists: rows that were flagged when last visited, and the others."""
    form, ordered = bins.form, scratch.ordered
    plain, flagged = scratch.plain, scratch.flagged
    plains, flaggeds = np.int64(0), np.int64(0)
    for i in range(begin, end):
        entry = ordered[i]
        x = np.int64(entry & form.row_mask)
        kept = np.int64(0)
        for at in range(plains):
            other = ordered[plain[at]]
            y = np.int64(other & form.row_mask)
            if (
                not flags[y]
                and is_alike(entry, other, form)
                and _are_partners(x, y, bins.table, tables, documents, scratch)
            ):
                flags[x], flags[y] = 1, 1
            if flags[y]:
                flagged[flaggeds] = plain[at]
                flaggeds += 1
            else:
                plain[kept] = plain[at]
                kept += 1
        plains = kept
        at = np.int64(0)
        while at < flaggeds and not flags[x]:
            other = ordered[flagged[at]]
            y = np.int64(other & form.row_mask)
            if is_alike(entry, other, form) and _are_partners(
                x, y, bins.table, tables, documents, scratch
            ):
                flags[x] = 1
            at += 1
        if flags[x]:
            flagged[flaggeds] = i
            flaggeds += 1
        else:
            plain[plains] = i
            plains += 1


@kernel
def flag_partners(
    tables: Any, bins: Any, first: int, last: int, documents: Any, flags: Any, scratch: Any
) -> None:
    """Flag the rows of bins first..last-1 that match another one by a candidate pair.

    Pairs of two flagged rows are never compared, so that n copies take n comparisons.

    Args:
        tables: Tables.
        bins: Bins.
        first: The first bin.
        last: The bin after the last.
        documents: Documents.
        flags: uint8 (n,), 1 is written; threads may share it, as nothing is ever taken back.
        scratch: Scratch.
    """
    scratch.owner[0] = _NONE
    for b in range(first, last):
        rows = bins.starts[b + 1] - bins.starts[b]
        bits = slot_bits(bins.form, rows)
        sort_bin(
            bins.entries, bins.starts[b], bins.starts[b + 1], bits, scratch.ends, scratch.ordered
        )
        begin = np.int64(0)
        while begin < rows:
            end = scratch.ends[slot_of(scratch.ordered[begin], bits)]
            if end - begin >= LONG_RUN:
                _flag_long(begin, end, tables, bins, documents, flags, scratch)
            elif end - begin > 1:
                _flag_short(begin, end, tables, bins, documents, flags, scratch)
            begin = end
