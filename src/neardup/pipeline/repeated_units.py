"""The lines or paragraphs that many documents share, in memory independent of their number.

1. Each unit's hash, document, number and bytes go to a part by the first bits of the hash.
2. In each part units are grouped by hash; units of groups in enough documents go to a part by
document.
3. Documents are read a second time, in the order of these parts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.features.passages import cut_stretches, unit_places
from neardup.runtime.storage.radix_spool import RadixSpool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CutUnits", "RepeatedUnits"]

# Columns of a unit.
_LOW, _HIGH, _DOCUMENT, _NUMBER, _NBYTES = range(5)
_UNIT_COLUMNS: Final = 5
# Columns of a group of equal units.
_G_DOCUMENTS, _G_COUNT, _G_NBYTES, _G_FIRST, _G_FIRST_NUMBER, _G_FIRST_NBYTES, _G_LAST = range(2, 9)
_GROUP_COLUMNS: Final = 9
# Columns of a unit that is cut, or is the first of its group; the last three are 0 of others.
_C_DOCUMENT, _C_NUMBER, _C_IS_CUT, _C_DOCUMENTS, _C_COUNT, _C_NBYTES = range(6)
_CUT_COLUMNS: Final = 6
_MEMORY_SHARE: Final = 16
"""The share of the budget for a spool; sorting a part takes some eight times as much."""


class RepeatedUnits:
    """Takes the units of documents, and finds those that many have.

    Args:
        seen_in: The least number of documents that have a unit.
        keeps_first: Whether the first of equal units stays.
        memory: Bytes.
        tmp: Folder for temporary files.

    Attributes:
        units: The number of units.
        repeated: The number of distinct ones in enough documents.
        cut: The number of units to cut.
    """

    def __init__(self, seen_in: int, *, keeps_first: bool, memory: int, tmp: str | None) -> None:
        """Begin without units."""
        self._seen_in, self._keeps_first = seen_in, keeps_first
        self._memory, self._tmp = memory // _MEMORY_SHARE, tmp
        self._spool = RadixSpool(_UNIT_COLUMNS, _LOW, self._memory, tmp)
        self.units = self.repeated = self.cut = 0

    def add(self, rows: Any) -> None:
        """Take the units of the next documents, from `unit_hashes`."""
        self.units += len(rows)
        if len(rows):
            self._spool.append(rows)

    @property
    def spilled(self) -> int:
        """Bytes written to disk."""
        return self._spool.spilled

    def close(self) -> None:
        """Free the disk space."""
        self._spool.close()

    def cuts(self, documents: int) -> RadixSpool:
        """Group the units of a number of documents; return those that are cut, by document."""
        cuts = RadixSpool(
            _CUT_COLUMNS, _C_DOCUMENT, self._memory, self._tmp, max(documents.bit_length(), 1)
        )
        for part in self._spool.parts():
            groups = _grouped(part)
            groups = groups[groups[:, _G_DOCUMENTS] >= self._seen_in]
            self.repeated += len(groups)
            if len(groups):
                for rows in part():
                    cuts.append(self._cut_of(rows, groups))
        return cuts

    def _cut_of(self, rows: Any, groups: Any) -> Any:
        """The units of some groups, each group's counts with its first one."""
        places = _places(rows, groups)
        rows, groups = rows[places >= 0], groups[places[places >= 0]]
        is_first = (rows[:, _DOCUMENT] == groups[:, _G_FIRST]) & (
            rows[:, _NUMBER] == groups[:, _G_FIRST_NUMBER]
        )
        is_cut = ~(is_first & self._keeps_first)
        self.cut += int(np.count_nonzero(is_cut))
        kept = np.uint64(self._keeps_first)
        cuts = np.zeros((len(rows), _CUT_COLUMNS), np.uint64)
        cuts[:, _C_DOCUMENT], cuts[:, _C_NUMBER] = rows[:, _DOCUMENT], rows[:, _NUMBER]
        cuts[:, _C_IS_CUT] = is_cut
        firsts = groups[is_first]
        cuts[is_first, _C_DOCUMENTS] = firsts[:, _G_DOCUMENTS]
        cuts[is_first, _C_COUNT] = firsts[:, _G_COUNT] - kept
        cuts[is_first, _C_NBYTES] = firsts[:, _G_NBYTES] - kept * firsts[:, _G_FIRST_NBYTES]
        return cuts


def _grouped(part: Callable[[], Iterator[Any]]) -> Any:
    """The groups of equal units of a part, ascending by hash."""
    groups = np.empty((0, _GROUP_COLUMNS), np.uint64)
    for rows in part():
        groups = _merged(groups, _groups(rows))
    return groups


def _groups(rows: Any) -> Any:
    """The groups of units that are in order of document."""
    order = _by_hash(rows)  # stable: within a group the units stay in order of document
    rows = rows[order]
    begins = _is_new(rows)
    starts = np.flatnonzero(begins)
    changes = begins.copy()
    changes[1:] |= rows[1:, _DOCUMENT] != rows[:-1, _DOCUMENT]
    ends = np.append(starts[1:], len(rows)).astype(np.int64)
    groups = np.empty((len(starts), _GROUP_COLUMNS), np.uint64)
    groups[:, :2] = rows[starts, :2]
    groups[:, _G_DOCUMENTS] = np.add.reduceat(changes.astype(np.uint64), starts)
    groups[:, _G_COUNT] = ends - starts
    groups[:, _G_NBYTES] = np.add.reduceat(rows[:, _NBYTES], starts)
    groups[:, _G_FIRST] = rows[starts, _DOCUMENT]
    groups[:, _G_FIRST_NUMBER] = rows[starts, _NUMBER]
    groups[:, _G_FIRST_NBYTES] = rows[starts, _NBYTES]
    groups[:, _G_LAST] = rows[ends - 1, _DOCUMENT]
    return groups


def _merged(earlier: Any, later: Any) -> Any:
    """The groups of consecutive documents, of which one may be in both parts."""
    if not len(earlier):
        return later
    both = np.concatenate([earlier, later])
    both = both[_by_hash(both)]
    begins = _is_new(both)
    groups = both[begins]
    of = (np.cumsum(begins) - 1)[~begins]
    more = both[~begins]
    is_same = (groups[of, _G_LAST] == more[:, _G_FIRST]).astype(np.uint64)
    groups[of, _G_DOCUMENTS] += more[:, _G_DOCUMENTS] - is_same
    groups[of, _G_COUNT] += more[:, _G_COUNT]
    groups[of, _G_NBYTES] += more[:, _G_NBYTES]
    groups[of, _G_LAST] = more[:, _G_LAST]
    return groups


def _by_hash(rows: Any) -> Any:
    """The stable order by both halves of the hash; the second only where the first is equal."""
    order = np.argsort(rows[:, _LOW], kind="stable")
    low, high = rows[order, _LOW], rows[order, _HIGH]
    if ((low[1:] == low[:-1]) & (high[1:] != high[:-1])).any():
        return np.lexsort((rows[:, _HIGH], rows[:, _LOW]))
    return order


def _is_new(rows: Any) -> Any:
    """Whether each row has another hash than the one before it."""
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    return begins


def _places(rows: Any, groups: Any) -> Any:
    """The group of each unit, -1 for none; int64. Groups may share the first half."""
    begin = np.searchsorted(groups[:, _LOW], rows[:, _LOW])
    _, sizes = np.unique(groups[:, _LOW], return_counts=True)
    places = np.full(len(rows), -1)
    for step in range(int(sizes.max())):
        at = np.minimum(begin + step, len(groups) - 1)
        is_there = (groups[at, :2] == rows[:, :2]).all(axis=1)
        places[is_there] = at[is_there]
    return places


class CutUnits:
    """The units to cut, of one document after the other; see `documents.record_edits.Cutter`.

    Args:
        cuts: As in `RepeatedUnits.cuts`.
        unit: "paragraph" or "line".
        tell: Called for the first of equal units with the document, the text, and the numbers of
            documents, cuts and bytes; or None.

    Attributes:
        texts: The number of changed texts.
        emptied: The number of these without units left.
        nbytes: Bytes of the cut texts, with the line breaks after them.
    """

    def __init__(
        self,
        cuts: RadixSpool,
        unit: str,
        tell: Callable[[int, str, int, int, int], None] | None = None,
    ) -> None:
        """Find the first document."""
        self._documents = _by_document(cuts)
        self._unit, self._tell = unit, tell
        self.texts = self.emptied = self.nbytes = 0
        self._rows = next(self._documents, None)

    @property
    def document(self) -> int:
        """The next document with such a unit, -1 after the last one."""
        return -1 if self._rows is None else int(self._rows[0][_C_DOCUMENT])

    def take(self, text: str) -> list[tuple[int, int]]:
        """The stretches to cut from that document's text; first and last character."""
        rows, self._rows = self._rows or [], next(self._documents, None)
        data = text.encode()
        places = unit_places(data, self._unit)
        for row in rows:
            if self._tell is not None and row[_C_DOCUMENTS]:
                begin, end = places[row[_C_NUMBER]]
                counts = row[_C_DOCUMENTS], row[_C_COUNT], row[_C_NBYTES]
                self._tell(row[_C_DOCUMENT], data[begin:end].decode(), *counts)
        cut = {row[_C_NUMBER] for row in rows if row[_C_IS_CUT]}
        self.texts += bool(cut)
        self.emptied += len(cut) == len(places)
        stretches = cut_stretches(places, cut)
        self.nbytes += sum(end - begin for begin, end in stretches)
        return stretches if len(data) == len(text) else _in_characters(data, stretches)


def _by_document(cuts: RadixSpool) -> Iterator[list[Any]]:
    """The rows of each document, in order of document and unit."""
    for part in cuts.parts():
        rows = np.concatenate(list(part()))
        rows = rows[np.lexsort((rows[:, _C_NUMBER], rows[:, _C_DOCUMENT]))]
        changes = np.flatnonzero(np.diff(rows[:, _C_DOCUMENT])) + 1
        edges = [0, *changes.tolist(), len(rows)]
        for begin, end in pairwise(edges):
            yield rows[begin:end].tolist()


def _in_characters(data: bytes, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of UTF-8 as stretches of its characters."""
    places, at, passed = [], 0, 0
    for begin, end in stretches:
        passed += len(data[at:begin].decode())
        inside = len(data[begin:end].decode())
        places.append((passed, passed + inside))
        at, passed = end, passed + inside
    return places
