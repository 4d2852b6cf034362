"""The capacity that the tokens of a text need: by its length if it is short, else by a count.

By length alone each byte reserves the most that a byte can become, some 300 bytes of address space.
A long text is read once beforehand: its tokens take a tenth of that, or less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import high_mask64, popcount, word_mask64
from neardup.kernels.features.character_classes import (
    CLASS_MASK,
    CLASS_SHIFT,
    CODE_POINT_MASK,
    EXTEND,
    IGNORED,
    MULTI,
    SLOW,
    UNSPACED,
    WORD,
)
from neardup.kernels.features.normalise import decomposed_size
from neardup.kernels.features.token_arguments import Capacity
from neardup.kernels.features.tokenise import BUFFER_RATIO, SEGMENT_RATIO, TOKEN_RATIO
from neardup.kernels.jit import inlined, inner
from neardup.kernels.utf8 import decode

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Offsets
    from neardup.kernels.features.token_arguments import Cutting

LONG_BYTES: Final = 1 << 20
"""The tokens of texts longer than this number of bytes are counted."""

_FOLDED_POINTS: Final = 3
"""The most code points that folding the case of one gives."""
_POINT_BYTES: Final = 4
_LANES: Final = 64
_LAST_LANE: Final = np.uint64(_LANES - 1)
_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined
def _counted(kind: int, chars: bool, goes_on: np.uint64) -> tuple[int, Any]:
    """The number of tokens that a character begins, and whether a next letter continues one."""
    if chars:
        return 1, goes_on
    if kind == IGNORED or kind == EXTEND:  # membership compiles to a search
        return 0, goes_on
    begins = kind == UNSPACED or (kind == WORD and not goes_on)
    return (1 if begins else 0), np.uint64(kind == WORD)


@inner
def counted_capacity(data: Bytes, begin: int, end: int, cutting: Cutting) -> Capacity:
    """The capacity that data[begin:end] needs, or more; O(bytes). Arguments as for `tokenise`."""
    tables, chars = cutting.tables, cutting.chars
    index, blocks, pool = tables.index, tables.blocks, tables.pool
    at, last, tokens, nbytes = begin, begin, np.int64(0), np.int64(0)
    segment, longest = np.int64(0), np.int64(0)  # decomposed code points
    goes_on = _NONE  # 1 behind a character that a letter would continue
    while at < end:
        if at + _LANES <= end and not high_mask64(data, at):
            words = word_mask64(data, at)
            tokens += _LANES if chars else popcount(words & ~(words << _ONE | goes_on))
            nbytes += _LANES
            goes_on, segment = words >> _LAST_LANE, 0
            at, last = at + _LANES, at + _LANES - 1
            continue
        cp, width = decode(data, at, end)
        entry = np.int64(blocks[np.int64(index[cp >> 8]) * 256 + (cp & 255)])
        if entry & SLOW:
            parts = decomposed_size(cp, tables)
            if segment == 0:  # what stands before it is normalised with it
                parts += decomposed_size(decode(data, last, end)[0], tables)
            segment += parts
            longest = max(longest, segment)
            tokens += _FOLDED_POINTS * parts
            nbytes += _FOLDED_POINTS * _POINT_BYTES * parts
            goes_on = _NONE
        elif entry & MULTI:
            segment = 0
            first = (entry & CODE_POINT_MASK) + 1
            for i in range(first, first + np.int64(pool[first - 1])):
                kind = np.int64(pool[i]) >> CLASS_SHIFT & CLASS_MASK
                more, goes_on = _counted(kind, chars, goes_on)
                tokens += more
                nbytes += _POINT_BYTES
        else:
            segment = 0
            more, goes_on = _counted(entry >> CLASS_SHIFT & CLASS_MASK, chars, goes_on)
            tokens += more
            nbytes += _POINT_BYTES
        last = at
        at += width
    return Capacity(tokens, nbytes + tokens, 2 * longest)


@inner
def capacity_for(data: Bytes, offsets: Offsets, cutting: Cutting) -> Capacity:
    """The capacity that is enough for each of the texts data[offsets[i]:offsets[i + 1]]."""
    short = np.int64(0)
    tokens, nbytes, points = np.int64(0), np.int64(0), np.int64(0)
    for i in range(offsets.size - 1):
        size = offsets[i + 1] - offsets[i]
        if size <= LONG_BYTES:
            short = max(short, size)
            continue
        capacity = counted_capacity(data, offsets[i], offsets[i + 1], cutting)
        tokens = max(tokens, capacity.tokens)
        nbytes, points = max(nbytes, capacity.nbytes), max(points, capacity.points)
    return Capacity(
        max(tokens, TOKEN_RATIO * short),
        max(nbytes, BUFFER_RATIO * short),
        max(points, SEGMENT_RATIO * short),
    )
