"""Unicode normalisation of one short segment of code points: decompose, order, compose.

Source: Unicode Standard Annex 15 and section 3.11 to 3.12 of the Unicode Standard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.jit import inner

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Uint16s, Uint32s

_S_BASE: Final = 0xAC00
_L_BASE: Final = 0x1100
_V_BASE: Final = 0x1161
_T_BASE: Final = 0x11A7
_L_COUNT: Final = 19
_V_COUNT: Final = 21
_T_COUNT: Final = 28
_S_COUNT: Final = _L_COUNT * _V_COUNT * _T_COUNT
_INSERTION_LIMIT: Final = 32
_CLASSES: Final = 256


@inner
def _look_up(index: Uint16s, blocks: Any, cp: int) -> int:
    return np.int64(blocks[np.int64(index[cp >> 8]) * 256 + (cp & 255)])


@inner
def decomposed_size(cp: int, tables: Any) -> int:
    """Code points of the full decomposition of `cp`, or more."""
    if 0 <= cp - _S_BASE < _S_COUNT:
        return np.int64(3)
    offset = _look_up(tables.dindex, tables.dblocks, cp)
    return np.int64(tables.dpool[offset]) if offset else np.int64(1)


@inner
def decompose(cp: int, tables: Any, points: Uint32s, size: int) -> int:
    """Append the full decomposition of `cp` to points[:size]; returns the new size."""
    syllable = cp - _S_BASE
    if 0 <= syllable < _S_COUNT:
        if tables.comp_keys.size == 0:
            points[size] = cp
            return size + 1
        points[size] = _L_BASE + syllable // (_V_COUNT * _T_COUNT)
        points[size + 1] = _V_BASE + syllable % (_V_COUNT * _T_COUNT) // _T_COUNT
        if syllable % _T_COUNT == 0:
            return size + 2
        points[size + 2] = _T_BASE + syllable % _T_COUNT
        return size + 3
    offset = _look_up(tables.dindex, tables.dblocks, cp)
    if offset == 0:
        points[size] = cp
        return size + 1
    count = np.int64(tables.dpool[offset])
    for i in range(count):
        points[size + i] = tables.dpool[offset + 1 + i]
    return size + count


@inner
def _order_long_run(points: Uint32s, classes: Bytes, start: int, end: int) -> None:
    spare = points.size // 2 - start
    to = start
    for cc in range(1, _CLASSES):
        for i in range(start, end):
            if classes[i] == cc:
                points[spare + to], classes[spare + to] = points[i], cc
                to += 1
    for i in range(start, end):
        points[i], classes[i] = points[spare + i], classes[spare + i]


@inner
def _order_run(points: Uint32s, classes: Bytes, start: int, end: int) -> None:
    if end - start <= _INSERTION_LIMIT:
        for i in range(start + 1, end):
            cp, cc = points[i], classes[i]
            j = i
            while j > start and classes[j - 1] > cc:
                points[j], classes[j] = points[j - 1], classes[j - 1]
                j -= 1
            points[j], classes[j] = cp, cc
        return
    _order_long_run(points, classes, start, end)


@inner
def _order(points: Uint32s, classes: Bytes, size: int, tables: Any) -> None:
    run = np.int64(-1)
    for i in range(size):
        classes[i] = _look_up(tables.cindex, tables.cblocks, np.int64(points[i]))
        if classes[i] == 0:
            if run >= 0:
                _order_run(points, classes, run, i)
            run = -1
        elif run < 0:
            run = i
    if run >= 0:
        _order_run(points, classes, run, size)


@inner
def _composite(first: int, second: int, tables: Any) -> int:
    lead, vowel = first - _L_BASE, second - _V_BASE
    if 0 <= lead < _L_COUNT and 0 <= vowel < _V_COUNT:
        return _S_BASE + (lead * _V_COUNT + vowel) * _T_COUNT
    syllable, tail = first - _S_BASE, second - _T_BASE
    if 0 <= syllable < _S_COUNT and syllable % _T_COUNT == 0 and 0 < tail < _T_COUNT:
        return first + tail
    key = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    # Written out: np.searchsorted takes half a second to compile.
    low, high = np.int64(0), np.int64(tables.comp_keys.size)
    while low < high:
        middle = (low + high) >> 1
        if tables.comp_keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < tables.comp_keys.size and tables.comp_keys[low] == key:
        return np.int64(tables.comp_values[low])
    return 0


@inner
def _compose(points: Uint32s, classes: Bytes, size: int, tables: Any) -> int:
    starter, last_class, kept = -1, -1, 0
    for i in range(size):
        cp, cc = np.int64(points[i]), np.int64(classes[i])
        if starter >= 0 and last_class < cc:
            composed = _composite(np.int64(points[starter]), cp, tables)
            if composed:
                points[starter] = composed
                continue
        if cc == 0:
            starter, last_class = kept, -1
        else:
            last_class = cc
        points[kept] = cp
        kept += 1
    return kept


@inner
def order_and_compose(points: Uint32s, classes: Bytes, size: int, tables: Any) -> int:
    """Bring decomposed points[:size] into canonical order and compose them in place.

    Args:
        points: uint32, rewritten; its second half is scratch.
        classes: uint8, as long, scratch.
        size: Code points in use.
        tables: neardup.features.unicode.Tables.

    Returns:
        The new size.
    """
    _order(points, classes, size, tables)
    return _compose(points, classes, size, tables)
