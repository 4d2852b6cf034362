"""Search tables of fingerprints: rows grouped by a hash of some of their bits; exact look-ups.

A table groups all rows by a key, the hash of the bits under one mask, and holds a copy of their
fingerprints in that order, so that a query reads one run of memory a table. Fingerprints are flat,
uint64 (n * W): with W a constant to the compiler (the length of `multipliers`), runs of them
compile to vector code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.bits import halves_at, integers_at, popcount, prefetch, words_at
from neardup.kernels.compiler import IS_PLAIN, carray
from neardup.kernels.jit import fill, inlined, inner, kernel, making, move

if TYPE_CHECKING:
    from neardup.kernels.array_types import Int64s, Rows, Uint32s, Uint64s, Words

IN_FLIGHT = 64
"""Buckets that are fetched from memory while others are compared."""
LINE_WORDS = 8
FETCHED_LINES = 4
FIRST_ROOM = 1024
TILE_ROWS = 2048
RUN_ROWS = 128
"""Rows that are counted at once before any of them is looked at singly."""


class SearchTables(NamedTuple):
    """T tables of the same n rows, with keys of 64 - shift bits."""

    codes: Any  # uint64 (T, n * W)
    rows: Any  # uint32 (T, n)
    starts: Any  # uint32 (T, 2**(64 - shift) + 1)
    masks: Any  # uint64 (T, W)
    shift: Any  # uint64
    factors: Any  # uint64 (T, W): what a key's hash multiplies the words under its mask by
    multipliers: tuple[Any, ...]  # W odd uint64; its length is a constant to the compiler
    heavy: int  # a bucket larger than this is handed back, not compared


class Probes(NamedTuple):
    """The buckets that a query opens: those of its own bits, with some bits of a key flipped."""

    flips: Any  # uint64 (P, W): the bits to turn
    tables: Any  # int64 (P,): the table
    radii: Any  # int64 (T,): how many bits of each table's key are turned at most, -1 for unused


class HitBuffer(NamedTuple):
    """Buffers for matches, of equal length, which the caller replaces when they are too small."""

    queries: Any  # int64
    rows: Any  # int64
    distances: Any  # int64


class Bucket(NamedTuple):
    """The rows low..high-1 of a table, which a probe opens."""

    probe: int
    low: int
    high: int


def view_of(tables: SearchTables, probes: Probes) -> Any:
    """A view of the tables for a call with one query, to which nine arrays would cost 6 us.

    Returns:
        uint64 (13,): addresses and sizes; only valid while the arrays live. With the JIT off the
        tables and probes themselves.
    """
    if IS_PLAIN:
        return tables, probes
    number, size = tables.codes.shape
    arrays = (tables.codes, tables.rows, tables.starts, tables.masks, tables.factors, *probes)
    sizes = (number, size, int(tables.shift), tables.heavy, len(probes.tables))
    return np.array([*(x.ctypes.data for x in arrays), *sizes], np.uint64)


def _arrays_at(view: Any, multipliers: Any) -> Any:
    number, size, shift = np.int64(view[8]), np.int64(view[9]), view[10]
    keys = (np.int64(1) << (np.int64(64) - np.int64(shift))) + 1
    tables = SearchTables(
        carray(words_at(view[0]), (number, size)),
        carray(halves_at(view[1]), (number, size // len(multipliers))),
        carray(halves_at(view[2]), (number, keys)),
        carray(words_at(view[3]), (number, len(multipliers))),
        shift,
        carray(words_at(view[4]), (number, len(multipliers))),
        multipliers,
        np.int64(view[11]),
    )
    probes = Probes(
        carray(words_at(view[5]), (np.int64(view[12]), len(multipliers))),
        carray(integers_at(view[6]), np.int64(view[12])),
        carray(integers_at(view[7]), number),
    )
    return tables, probes


def stacked(views: list[Any]) -> Any:
    """The views of the tables of several parts, as a kernel takes them."""
    if IS_PLAIN or not views:
        return views
    return np.stack(views)


viewed: Any = (lambda view, _: view) if IS_PLAIN else making(_arrays_at)
"""Get the tables and probes of a view."""


@inlined
def key_of(
    codes: Words, at: int, mask: Uint64s, factors: Uint64s, shift: np.uint64,
    multipliers: tuple[np.uint64, ...],
) -> int:  # fmt: skip
    """Hash the bits of words[at:at + W] under `mask` to 64 - shift bits; int64."""
    total = np.uint64(0)
    for w in range(len(multipliers)):
        total += (codes[np.uint64(at + w)] & mask[w]) * factors[w]
    return np.int64(total >> shift)


@inlined
def probe_key(query: Uint64s, at: int, probe: int, tables: SearchTables, probes: Probes) -> int:
    """The key of a query's probe."""
    table = probes.tables[probe]
    mask, factors = tables.masks[table], tables.factors[table]
    total = np.uint64(0)
    for w in range(len(tables.multipliers)):
        differing = query[np.uint64(at + w)] ^ probes.flips[probe, w]
        total += (differing & mask[w]) * factors[w]
    return np.int64(total >> tables.shift)


@inlined
def apart(a: Uint64s, i: int, b: Uint64s, j: int, multipliers: tuple[np.uint64, ...]) -> int:
    """Hamming distance of the fingerprints that begin at a[i] and b[j]; int64."""
    total = np.int64(0)
    for w in range(len(multipliers)):
        total += popcount(a[np.uint64(i + w)] ^ b[np.uint64(j + w)])
    return total


@inner
def count_within(
    query: Uint64s, at: int, codes: Words, first: int, last: int, distance: int,
    multipliers: tuple[np.uint64, ...],
) -> int:  # fmt: skip
    """Count the rows first..last-1 that are within the distance of the query; vector code."""
    width = len(multipliers)
    others = codes[first * width : last * width]
    hits = np.int64(0)
    for row in range(last - first):
        hits += np.int64(apart(query, at, others, row * width, multipliers) <= distance)
    return hits


@kernel
def build_table(
    codes: Words, tables: SearchTables, t: int, fine: np.uint64, spare_codes: Uint64s,
    spare_rows: Uint32s,
) -> None:  # fmt: skip
    """Group rows by their key, stable, in two passes whose targets stay in cache; O(n + keys).

    Args:
        codes: uint64 (n * W), may be read-only.
        tables: SearchTables; the codes, rows and starts of one are written.
        t: Which one.
        fine: uint64: how many bits of the keys the second pass looks at.
        spare_codes: uint64 (n * W): what the first pass makes.
        spare_rows: uint32 (n,): likewise.
    """
    mask, factors, shift = tables.masks[t], tables.factors[t], tables.shift
    multipliers, starts = tables.multipliers, tables.starts[t]
    out_codes, out_rows = tables.codes[t], tables.rows[t]
    width = len(multipliers)
    count = np.int64(len(codes) // width)
    bins = np.int64(len(starts) - 1) >> np.int64(fine)
    keys = np.int64(1) << np.int64(fine)
    places, ends = np.zeros(bins + 1, np.int64), np.zeros(keys + 1, np.int64)
    coarse = shift + fine
    for row in range(count):
        places[key_of(codes, row * width, mask, factors, coarse, multipliers)] += 1
    running_total(places)
    for row in range(count):
        place = take_place(places, key_of(codes, row * width, mask, factors, coarse, multipliers))
        for w in range(width):
            spare_codes[place * width + w] = codes[row * width + w]
        spare_rows[place] = row
    low = np.int64(0)
    for b in range(bins):
        high = places[b]
        fill(ends, 0, keys + 1, np.int64(0))
        for row in range(low, high):
            ends[
                key_of(spare_codes, row * width, mask, factors, shift, multipliers) - b * keys
            ] += 1
        running_total(ends)
        for key in range(keys):
            starts[b * keys + key] = low + ends[key]
        for row in range(low, high):
            key = key_of(spare_codes, row * width, mask, factors, shift, multipliers) - b * keys
            place = low + take_place(ends, key)
            for w in range(width):
                out_codes[place * width + w] = spare_codes[row * width + w]
            out_rows[place] = spare_rows[row]
        low = high
    starts[bins * keys] = count


@inner
def running_total(sizes: Int64s) -> None:
    """Replace every size by the sum of those before it."""
    total = np.int64(0)
    for i in range(len(sizes)):
        size = sizes[i]
        sizes[i] = total
        total += size


@inlined
def take_place(places: Int64s, key: int) -> int:
    """The key's next free place, which is then taken."""
    place = places[key]
    places[key] = place + 1
    return place


@inner
def due_here(
    query: Uint64s, at: int, codes: Words, row_at: int, tables: SearchTables, probes: Probes,
    probe: int,
) -> bool:  # fmt: skip
    """Whether this probe reports a row: it is the one with its bits, of the first such table.

    A row that shares only the hash of the key is found by another probe, if it is near.
    """
    table = probes.tables[probe]
    other = np.uint64(0)
    for w in range(len(tables.multipliers)):
        differs = query[at + w] ^ codes[row_at + w] ^ probes.flips[probe, w]
        other |= differs & tables.masks[table, w]
    if other != np.uint64(0):
        return False
    for t in range(table):
        differing = np.int64(0)
        for w in range(len(tables.multipliers)):
            differing += popcount((query[at + w] ^ codes[row_at + w]) & tables.masks[t, w])
        if differing <= probes.radii[t]:
            return False
    return True


@inner
def compare_bucket(
    queries: Words, q: int, bucket: Bucket, tables: SearchTables, probes: Probes, distance: int,
    hits: HitBuffer, count: int,
) -> int:  # fmt: skip
    """Write the rows of a bucket to report to query q; returns the new count, stored or not.

    -1 if the table names a row that does not exist, as in a damaged file.
    """
    probe, low, high = bucket
    table = probes.tables[probe]
    codes = tables.codes[table]
    width = len(tables.multipliers)
    at = q * width
    rows = np.int64(tables.rows.shape[1])
    for begin in range(low, high, RUN_ROWS):
        end = min(begin + RUN_ROWS, high)
        if count_within(queries, at, codes, begin, end, distance, tables.multipliers) == 0:
            continue
        for place in range(begin, end):
            d = apart(queries, at, codes, place * width, tables.multipliers)
            if d <= distance and due_here(queries, at, codes, place * width, tables, probes, probe):
                row = np.int64(tables.rows[table, place])
                if row >= rows:
                    return np.int64(-1)
                if count < len(hits.rows):
                    hits.queries[count] = q
                    hits.rows[count] = row
                    hits.distances[count] = d
                count += 1
    return count


@inlined
def is_heavy(tables: SearchTables, low: int, high: int) -> bool:
    """Whether a bucket has too many rows to be compared here, or cannot be right."""
    return np.uint64(high - low) > np.uint64(tables.heavy) or high > tables.rows.shape[1]


@kernel
def search_tables(
    queries: Words, first: int, last: int, tables: SearchTables, probes: Probes, distance: int
) -> tuple[Any, Any]:
    """Find the rows within the distance of queries first..last-1.

    O(probes) look-ups a query, whose cache lines are fetched some buckets ahead, and one
    comparison a row of the buckets.

    Args:
        queries: uint64 (q * W), may be read-only; `first` and `last` say which.
        first: See above.
        last: See above.
        tables: Tables.
        probes: Probes of them.
        distance: The largest that is reported.

    Returns:
        Hits; and int64 (h, 4), the buckets that were too heavy to compare, or that cannot be right:
        query, probe, low, high.
    """
    width, number = len(tables.multipliers), len(probes.tables)
    lows, highs = np.empty(IN_FLIGHT, np.int64), np.empty(IN_FLIGHT, np.int64)
    hits = HitBuffer(
        np.empty(FIRST_ROOM, np.int64), np.empty(FIRST_ROOM, np.int64),
        np.empty(FIRST_ROOM, np.int64),
    )  # fmt: skip
    heavy = np.empty((0, 4), np.int64)
    count, heavies = np.int64(0), np.int64(0)
    for begin in range(first * number, last * number, IN_FLIGHT):
        some = min(np.int64(IN_FLIGHT), last * number - begin)
        for i in range(some):
            q, p = (begin + i) // number, (begin + i) % number
            key = probe_key(queries, q * width, p, tables, probes)
            lows[i] = key
            prefetch(tables.starts[probes.tables[p]], key)
        for i in range(some):
            table = probes.tables[(begin + i) % number]
            key = lows[i]
            lows[i], highs[i] = tables.starts[table, key], tables.starts[table, key + 1]
            for line in range(FETCHED_LINES):
                prefetch(tables.codes[table], lows[i] * width + line * LINE_WORDS)
        for i in range(some):
            q, p, low, high = (begin + i) // number, (begin + i) % number, lows[i], highs[i]
            size = np.int64(-1)
            if not is_heavy(tables, low, high):
                size = compare_bucket(
                    queries, q, Bucket(p, low, high), tables, probes, distance, hits, count
                )
            if size < 0:
                if heavies == len(heavy):
                    heavy = more_rows(heavy)
                heavy[heavies, 0], heavy[heavies, 1] = q, p
                heavy[heavies, 2], heavy[heavies, 3] = low, high
                heavies += 1
                continue
            if size > len(hits.rows):
                hits = more_room(hits, count, size)
                compare_bucket(
                    queries, q, Bucket(p, low, high), tables, probes, distance, hits, count
                )
            count = size
    return HitBuffer(hits.queries[:count], hits.rows[:count], hits.distances[:count]), heavy[
        :heavies
    ]


@kernel
def search_tables_once(
    query: Uint64s, view: Uint64s, multipliers: tuple[np.uint64, ...], distance: int, pairs: Int64s
) -> int:
    """As `search_tables` for one query, into a buffer of the caller.

    Args:
        query: uint64 (W,).
        view: The tables and probes, from `view_of`.
        multipliers: The tables' constants.
        distance: The largest that is reported.
        pairs: int64 (2, places), written: rows and distances, as many as fit.

    Returns:
        How many rows were found; -1 where a bucket is too heavy, or cannot be right.
    """
    tables, probes = viewed(view, multipliers)
    hits = HitBuffer(pairs[0], pairs[0], pairs[1])
    number = len(probes.tables)
    count = np.int64(0)
    for begin in range(0, number, IN_FLIGHT):
        end = min(begin + IN_FLIGHT, number)
        for p in range(begin, end):
            prefetch(tables.starts[probes.tables[p]], probe_key(query, 0, p, tables, probes))
        for p in range(begin, end):
            table = probes.tables[p]
            low = np.int64(tables.starts[table, probe_key(query, 0, p, tables, probes)])
            for line in range(FETCHED_LINES):
                prefetch(tables.codes[table], low * len(multipliers) + line * LINE_WORDS)
        for p in range(begin, end):
            key, table = probe_key(query, 0, p, tables, probes), probes.tables[p]
            low, high = np.int64(tables.starts[table, key]), np.int64(tables.starts[table, key + 1])
            if is_heavy(tables, low, high):
                return np.int64(-1)
            bucket = Bucket(p, low, high)
            count = compare_bucket(query, 0, bucket, tables, probes, distance, hits, count)
            if count < 0:
                return np.int64(-1)
    return count


@kernel
def more_rows(rows: Rows) -> Any:
    """A copy of rows, int64 (h, 4), with room for more."""
    roomier = np.empty((2 * len(rows) + 16, 4), np.int64)
    for i in range(len(rows)):
        for j in range(4):
            roomier[i, j] = rows[i, j]
    return roomier


@kernel
def more_room(hits: HitBuffer, count: int, capacity: int) -> Any:
    """A copy of the first `count` hits with room for at least `capacity`."""
    capacity = max(capacity, 2 * len(hits.rows))
    roomier = HitBuffer(
        np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    )
    move(hits.queries, count, roomier.queries)
    move(hits.rows, count, roomier.rows)
    move(hits.distances, count, roomier.distances)
    return roomier


@kernel
def search_rows(
    queries: Words, first: int, last: int, codes: Words, count: int,
    multipliers: tuple[np.uint64, ...], distance: int,
) -> Any:  # fmt: skip
    """Compare queries first..last-1 with rows 0..count-1, a tile of rows at a time; Hits."""
    width = len(multipliers)
    hits = HitBuffer(
        np.empty(FIRST_ROOM, np.int64), np.empty(FIRST_ROOM, np.int64),
        np.empty(FIRST_ROOM, np.int64),
    )  # fmt: skip
    total = np.int64(0)
    for low in range(0, count, TILE_ROWS):
        high = min(low + TILE_ROWS, count)
        for q in range(first, last):
            for begin in range(low, high, RUN_ROWS):
                end = min(begin + RUN_ROWS, high)
                near = count_within(queries, q * width, codes, begin, end, distance, multipliers)
                if near == 0:
                    continue
                if total + near > len(hits.rows):
                    hits = more_room(hits, total, total + near)
                for row in range(begin, end):
                    d = apart(queries, q * width, codes, row * width, multipliers)
                    if d <= distance:
                        hits.queries[total], hits.rows[total] = q, row
                        hits.distances[total] = d
                        total += 1
    return HitBuffer(hits.queries[:total], hits.rows[:total], hits.distances[:total])


@kernel
def search_rows_once(
    query: Uint64s, codes: Words, count: int, multipliers: tuple[np.uint64, ...], distance: int,
    pairs: Int64s,
) -> int:  # fmt: skip
    """As `search_rows` for one query, into given buffers, as `search_tables_once`."""
    width = len(multipliers)
    total = np.int64(0)
    for low in range(0, count, RUN_ROWS):
        high = min(low + RUN_ROWS, count)
        if count_within(query, 0, codes, low, high, distance, multipliers) == 0:
            continue
        for row in range(low, high):
            d = apart(query, 0, codes, row * width, multipliers)
            if d <= distance:
                if total < pairs.shape[1]:
                    pairs[0, total], pairs[1, total] = row, d
                total += 1
    return total


@kernel
def offer_rows(
    queries: Words, distances: Int64s, codes: Words, first: int,
    multipliers: tuple[np.uint64, ...], distance: int, near: Rows,
) -> int:  # fmt: skip
    """Append each of many fingerprints to rows, unless a stored or appended one is near.

    O(n^2) comparisons for n fingerprints.

    Args:
        queries: uint64, the fingerprints one after the other.
        distances: int64 (n,): of the closest stored one, beyond `distance` where none is near;
            written: of the closest one of all.
        codes: uint64: the rows' fingerprints, with room for all of these; written.
        first: Rows that there are.
        multipliers: For fingerprints of this width.
        distance: The largest at which one is near.
        near: int64 (n,), written: the appended row that is closer than all stored ones, or -1.
            A fingerprint with neither was appended.

    Returns:
        The new number of rows.
    """
    width, count = len(multipliers), first
    for q in range(len(distances)):
        nearest, best = np.int64(-1), min(distances[q], np.int64(distance) + 1)
        for row in range(first, count):
            d = apart(queries, q * width, codes, row * width, multipliers)
            if d < best:
                nearest, best = np.int64(row), d
        near[q], distances[q] = nearest, best
        if best > distance:
            for w in range(width):
                codes[count * width + w] = queries[q * width + w]
            count += 1
    return count
