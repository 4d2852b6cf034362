"""Lines and paragraphs of texts: where they stand, and 128 bits of each one's normalised text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.tokenise import made_tokens, tokenise
from neardup.kernels.features.xxh3 import hasher_of, xxh3_64
from neardup.kernels.jit import inlined, inner, kernel
from neardup.kernels.utf8 import decode

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Offsets
    from neardup.kernels.features.token_arguments import Cutting

SEEDS: Final = (0, 0x9E3779B97F4A7C15)
"""Seeds of the two halves of 128 bits."""
_LF: Final = 0x0A
_FF: Final = 0x0C
_CR: Final = 0x0D
_NEL: Final = 0x85
_LS: Final = 0x2028
_PS: Final = 0x2029


@inlined
def _is_white(cp: int) -> bool:
    """Whether a code point has Unicode's property White_Space."""
    if cp < 0x80:
        return cp == 0x20 or 0x09 <= cp <= 0x0D
    return (
        cp == _NEL or cp == 0xA0 or cp == 0x1680 or 0x2000 <= cp <= 0x200A
        or cp == _LS or cp == _PS or cp == 0x202F or cp == 0x205F or cp == 0x3000
    )  # fmt: skip


@inner
def _line(data: Bytes, at: int, end: int) -> tuple[int, int, bool, int]:
    r"""The line from `at` on: its end, the place behind its break, whether it is blank, its break.

    Breaks are those of Unicode's \\R: CR LF, LF, VT, FF, CR, NEL, LS and PS.
    """
    is_blank = True
    while at < end:
        byte = data[at]
        if 0x20 < byte < 0x80:
            is_blank = False
            at += 1
            continue
        cp, width = decode(data, at, end)
        if 0x0A <= cp <= 0x0D or cp == _NEL or cp == _LS or cp == _PS:
            is_pair = cp == _CR and at + 1 < end and data[at + 1] == _LF
            return at, at + width + (1 if is_pair else 0), is_blank, cp
        if not _is_white(cp):
            is_blank = False
        at += width
    return at, at, is_blank, 0


@inner
def _unit(data: Bytes, at: int, end: int, by_line: bool) -> tuple[int, int, int]:
    """The next unit from `at` on: where it begins and ends, -1 for none; and where to go on."""
    begin, stop = np.int64(-1), np.int64(-1)
    while at < end:
        first = at
        last, at, is_blank, mark = _line(data, at, end)
        if not is_blank:
            if begin < 0:
                begin = first
            stop = last
        if begin >= 0 and (by_line or is_blank or mark == _FF or mark == _PS):
            break
    return begin, stop, at


@kernel
def unit_places(data: Any, by_line: bool) -> Any:
    """Find where the lines or paragraphs of a text begin and end; O(bytes).

    Args:
        data: uint8, UTF-8, may be read-only.
        by_line: Lines, not paragraphs.

    Returns:
        int64 (units, 2): first byte, and the byte behind the last, without the break.
    """
    places = np.empty((data.size // 2 + 1, 2), np.int64)
    count, at = np.int64(0), np.int64(0)
    while at < data.size:
        begin, stop, at = _unit(data, at, data.size, by_line)
        if begin >= 0:
            places[count, 0], places[count, 1] = begin, stop
            count += 1
    return places[:count].copy()


@kernel
def passage_hashes(
    data: Any, offsets: Offsets, words: Cutting, chars: Cutting, by_line: bool, least: int
) -> Any:
    """128 bits of the normalised text of each unit of at least `least` words; O(bytes).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,): text i is data[offsets[i]:offsets[i + 1]]; may be read-only.
        words: Cutting, in words.
        chars: Cutting, in characters: what is written then is the text, its white space collapsed.
        by_line: Lines, not paragraphs.
        least: Words.

    Returns:
        uint64 (units, 5): low and high half of the hash, the text's number, the unit's number in
        its text (short ones count), and its bytes.
    """
    tokens = made_tokens(capacity_for(data, offsets, words))
    letters = made_tokens(capacity_for(data, offsets, chars))
    hasher = hasher_of(np.uint64(0))
    low_seed, high_seed = np.uint64(SEEDS[0]), np.uint64(SEEDS[1])
    high_hasher = hasher_of(high_seed)
    spans = np.empty((64, 5), np.uint64)
    count = np.int64(0)
    for i in range(offsets.size - 1):
        at, end = offsets[i], offsets[i + 1]
        number = np.int64(-1)
        while at < end:
            begin, stop, at = _unit(data, at, end, by_line)
            if begin < 0:
                break
            number += 1
            if tokenise(data, begin, stop, words, tokens) < least:
                continue
            size = letters.starts[tokenise(data, begin, stop, chars, letters)]
            if count == len(spans):
                larger = np.empty((2 * count, 5), np.uint64)
                larger[:count] = spans
                spans = larger
            buffer = letters.buffer
            spans[count, 0] = xxh3_64(buffer, 0, size, low_seed, hasher.secret, hasher.scratch)
            spans[count, 1] = xxh3_64(
                buffer, 0, size, high_seed, high_hasher.secret, high_hasher.scratch
            )
            spans[count, 2] = i
            spans[count, 3] = number
            spans[count, 4] = stop - begin
            count += 1
    return spans[:count].copy()
