"""MD5 of many short features at once, and the fold of a text's 4-character windows.

Features are padded as RFC 1321 says, 16 a block; md5_block.py is the digest of the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import load32, load64
from neardup.kernels.compiler import IS_PLAIN, typeof
from neardup.kernels.fingerprinting.fold import PLANES, fold_equal, fold_weighted
from neardup.kernels.fingerprinting.md5_block import LANES, md5_block
from neardup.kernels.jit import fill, inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Offsets

MOST_BYTES: Final = 55
"""Bytes of the longest feature that fits one block of MD5."""
WINDOW: Final = 16
"""Bytes of the longest window: 4 characters of UTF-8."""
_WORDS_AT: Final = 1 + PLANES + LANES
_FIXED: Final = _WORDS_AT + 8 * LANES
"""Where the words begin and end in the working memory of `fold_windows`."""


def _kept() -> Any:
    table = np.zeros(256, np.uint8)
    for character in "abcdefghijklmnopqrstuvwxyz0123456789_":
        table[ord(character)] = table[ord(character.upper())] = ord(character)
    return table


_KEPT: Final = _kept()
"""ASCII letters, lowered, digits and `_`; 0 for all else."""
_ONE: Final = np.uint64(1)
_MARK: Final = np.uint64(0x80)
_M32: Final = np.uint64(0xFFFFFFFF)


@inner
def _swapped(value: Any) -> Any:
    """Reverse the bytes of both 32-bit halves: the digest's bytes read big-endian."""
    eights = np.uint64(0x00FF00FF00FF00FF)
    value = ((value & eights) << np.uint64(8)) | ((value >> np.uint64(8)) & eights)
    sixteens = np.uint64(0x0000FFFF0000FFFF)
    return ((value & sixteens) << np.uint64(16)) | ((value >> np.uint64(16)) & sixteens)


@inner
def _fill(words: Any, lane: int, data: Any, at: int, size: int) -> None:
    """Write data[at : at + size] as a padded block; up to 3 bytes behind it are read."""
    whole = size // 4
    for k in range(whole):
        words[LANES * k + lane] = np.uint32(load32(data, at + 4 * k))
    last, rest = _MARK << np.uint64(8 * (size % 4)), size % 4
    if rest > 0:
        last |= load32(data, at + 4 * whole) & (_M32 >> np.uint64(32 - 8 * rest))
    words[LANES * whole + lane] = np.uint32(last)
    for k in range(whole + 1, 14):
        words[LANES * k + lane] = np.uint32(0)
    words[LANES * 14 + lane] = np.uint32(8 * size)


@inner
def _fill_window(words: Any, lane: int, data: Any, at: int, size: int) -> None:
    """As `_fill` for at most WINDOW bytes, where words 5 to 13 are 0; as many are read."""
    low, high, end = load64(data, at), load64(data, at + 8), np.uint64(0)
    if size < 8:
        shift = np.uint64(8 * size)
        low = (low & ((_ONE << shift) - _ONE)) | (_MARK << shift)
        high = np.uint64(0)
    elif size < 16:
        shift = np.uint64(8 * size - 64)
        high = (high & ((_ONE << shift) - _ONE)) | (_MARK << shift)
    else:
        end = _MARK
    words[lane] = np.uint32(low & _M32)
    words[LANES + lane] = np.uint32(low >> np.uint64(32))
    words[LANES * 2 + lane] = np.uint32(high & _M32)
    words[LANES * 3 + lane] = np.uint32(high >> np.uint64(32))
    words[LANES * 4 + lane], words[LANES * 14 + lane] = np.uint32(end), np.uint32(8 * size)


@inner
def _keep_ascii(data: Any, buffer: Any) -> int:
    """Copy ASCII letters, digits and `_`, lowered; returns how many there are."""
    to = np.int64(0)
    for i in range(len(data)):
        lowered = _KEPT[data[i]]
        buffer[to] = lowered
        to += np.int64(lowered != 0)
    return to


@inner
def _keep_all(data: Any, buffer: Any, starts: Any) -> int:
    """Copy UTF-8 and find where its characters begin; returns how many there are."""
    count = np.int64(0)
    for i in range(len(data)):
        buffer[i] = data[i]
        if data[i] & 0xC0 != 0x80:
            starts[count] = i
            count += 1
    starts[count] = len(data)
    return count


@kernel
def fold_windows(data: Any, raw_ascii: bool, word: int, width: int, tie_one: bool) -> Any:
    """Fold the MD5 of each window of characters, each occurrence of weight 1.

    A shorter text, also the empty one, is one window. O(bytes).

    Args:
        data: bytes or uint8, UTF-8, may be read-only.
        raw_ascii: Whether the text is ASCII of which letters (lowered), digits and `_` are kept;
            else all is kept.
        word: 0 for the low 64 bits of the 128, 1 for the high ones.
        width: Characters a window, at most 4.
        tie_one: The bit where exactly half of the windows have it.

    Returns:
        uint64.
    """
    # One allocation for all: each costs as much as the MD5 of 16 windows.
    size = np.int64(len(data))
    most = size + 2 * LANES
    starts_at = _FIXED + most
    buffer_at = starts_at + (0 if raw_ascii else size + 1)
    scratch = np.empty(buffer_at + (size + WINDOW) // 8 + 1, np.uint64)
    out, planes, other = scratch[:1], scratch[1 : 1 + PLANES], scratch[1 + PLANES : _WORDS_AT]
    words, hashes = scratch[_WORDS_AT:_FIXED].view(np.uint32), scratch[_FIXED:starts_at]
    starts, buffer = scratch[starts_at:buffer_at].view(np.int64), scratch[buffer_at:].view(np.uint8)
    fill(words, 0, words.size, np.uint32(0))
    if raw_ascii:
        characters = _keep_ascii(data, buffer)
    else:
        characters = _keep_all(data, buffer, starts)
    count = max(characters - width + 1, 1)
    width = min(characters, width)
    for first in range(0, count, LANES):
        for lane in range(min(LANES, count - first)):
            at = first + lane
            end = at + width
            if not raw_ascii:
                at, end = starts[at], starts[end]
            _fill_window(words, lane, buffer, at, end - at)
        if word == 0:
            md5_block(words, other, 0, hashes, first)
        else:
            md5_block(words, hashes, first, other, 0)
    fold_equal(hashes, count, tie_one, planes, out)
    return _swapped(out[0])


@kernel
def fold_tokens(data: Any, weights: Any, word: int) -> Any:
    """Fold the MD5 of tokens that are separated by one 0 byte each; a tie gives 0. O(bytes).

    Args:
        data: bytes or uint8, may be read-only; behind the last token a 0 byte and WINDOW others.
        weights: int64, one a token; empty for 1 each.
        word: 0 for the low 64 bits of the 128, 1 for the high ones.

    Returns:
        (uint64, whether no token was longer than MOST_BYTES; if one was the value is void).
    """
    size = np.int64(len(data)) - WINDOW
    hashes, other = np.empty(size + LANES, np.uint64), np.empty(LANES, np.uint64)
    words = np.zeros(16 * LANES, np.uint32)
    count, lane, at, short = np.int64(0), np.int64(0), np.int64(0), True
    for i in range(size):
        if data[i] != 0:
            continue
        length = i - at
        if length > MOST_BYTES:
            return np.uint64(0), False
        short = short and length <= WINDOW
        if short:
            _fill_window(words, lane, data, at, length)
        else:
            _fill(words, lane, data, at, length)
        at = i + 1
        lane += 1
        if lane == LANES or at == size:
            if word == 0:
                md5_block(words, other, 0, hashes, count)
            else:
                md5_block(words, hashes, count, other, 0)
            count, lane = count + lane, np.int64(0)
    out = np.empty(1, np.uint64)
    if weights.size:
        fold_weighted(hashes, weights, count, False, np.empty(64, np.int64), out)
    else:
        fold_equal(hashes, count, False, np.empty(PLANES, np.uint64), out)
    return _swapped(out[0]), True


@kernel
def md5_slices(data: Any, offsets: Offsets) -> Any:
    """MD5 of data[offsets[i]:offsets[i + 1]]: uint64 (n, 2), low word first. O(bytes).

    Args:
        data: uint8, may be read-only, with 3 bytes to spare behind the last feature.
        offsets: int64 (n + 1,); no feature is longer than MOST_BYTES.
    """
    count = offsets.size - 1
    out = np.empty((count, 2), np.uint64)
    high, low = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    words = np.zeros(16 * LANES, np.uint32)
    for first in range(0, count, LANES):
        lanes = min(LANES, count - first)
        for lane in range(lanes):
            at = offsets[first + lane]
            _fill(words, lane, data, at, offsets[first + lane + 1] - at)
        md5_block(words, high, 0, low, 0)
        for lane in range(lanes):
            out[first + lane, 0] = _swapped(low[lane])
            out[first + lane, 1] = _swapped(high[lane])
    return out


def direct(compiled: Any, *example: Any) -> Any:
    """A kernel for arguments of just these types, without the look-up of the types at each call.

    The look-up takes as long as the fold of a sentence.
    """
    compiled(*example)
    if IS_PLAIN:
        return compiled
    kinds = tuple(typeof(value) for value in example)
    return compiled.overloads[kinds].entry_point
