"""MD5 of many short features at once, and the fold of a text's 4-character windows.

Source: Rivest, RFC 1321. One feature a lane: the loop over lanes has no branches, so that the
compiler makes vector instructions of it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from neardup.kernels.bits import load32, load64
from neardup.kernels.fold import PLANES, fold_equal, fold_weighted
from neardup.kernels.jit import inner, kernel

LANES: Final = 16
MOST_BYTES: Final = 55
"""Bytes of the longest feature that fits one block of MD5."""


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
def _step(a: Any, b: Any, mixed: Any, word: Any, constant: int, shift: int) -> Any:
    total = np.uint32(np.uint32(a + mixed) + np.uint32(word + np.uint32(constant)))
    left = np.uint32(total << np.uint32(shift))
    return np.uint32(b + np.uint32(left | np.uint32(total >> np.uint32(32 - shift))))


@inner
def _f(a: Any, b: Any, c: Any, d: Any, word: Any, constant: int, shift: int) -> Any:
    return _step(a, b, np.uint32(d ^ (b & (c ^ d))), word, constant, shift)


@inner
def _g(a: Any, b: Any, c: Any, d: Any, word: Any, constant: int, shift: int) -> Any:
    return _step(a, b, np.uint32(c ^ (d & (b ^ c))), word, constant, shift)


@inner
def _h(a: Any, b: Any, c: Any, d: Any, word: Any, constant: int, shift: int) -> Any:
    return _step(a, b, np.uint32(b ^ c ^ d), word, constant, shift)


@inner
def _i(a: Any, b: Any, c: Any, d: Any, word: Any, constant: int, shift: int) -> Any:
    return _step(a, b, np.uint32(c ^ (b | ~d)), word, constant, shift)


@inner
def _md5_block(words: Any, high: Any, low: Any) -> None:
    """MD5 of one padded block a lane.

    Args:
        words: uint32 (16, LANES), the block's words by lane.
        high: uint64 (LANES,), written: digest bytes 0 to 7, see `_swapped`.
        low: uint64 (LANES,), written: digest bytes 8 to 15.
    """
    for i in range(LANES):
        a, b = np.uint32(0x67452301), np.uint32(0xEFCDAB89)
        c, d = np.uint32(0x98BADCFE), np.uint32(0x10325476)
        a = _f(a, b, c, d, words[0, i], 0xD76AA478, 7)
        d = _f(d, a, b, c, words[1, i], 0xE8C7B756, 12)
        c = _f(c, d, a, b, words[2, i], 0x242070DB, 17)
        b = _f(b, c, d, a, words[3, i], 0xC1BDCEEE, 22)
        a = _f(a, b, c, d, words[4, i], 0xF57C0FAF, 7)
        d = _f(d, a, b, c, words[5, i], 0x4787C62A, 12)
        c = _f(c, d, a, b, words[6, i], 0xA8304613, 17)
        b = _f(b, c, d, a, words[7, i], 0xFD469501, 22)
        a = _f(a, b, c, d, words[8, i], 0x698098D8, 7)
        d = _f(d, a, b, c, words[9, i], 0x8B44F7AF, 12)
        c = _f(c, d, a, b, words[10, i], 0xFFFF5BB1, 17)
        b = _f(b, c, d, a, words[11, i], 0x895CD7BE, 22)
        a = _f(a, b, c, d, words[12, i], 0x6B901122, 7)
        d = _f(d, a, b, c, words[13, i], 0xFD987193, 12)
        c = _f(c, d, a, b, words[14, i], 0xA679438E, 17)
        b = _f(b, c, d, a, words[15, i], 0x49B40821, 22)
        a = _g(a, b, c, d, words[1, i], 0xF61E2562, 5)
        d = _g(d, a, b, c, words[6, i], 0xC040B340, 9)
        c = _g(c, d, a, b, words[11, i], 0x265E5A51, 14)
        b = _g(b, c, d, a, words[0, i], 0xE9B6C7AA, 20)
        a = _g(a, b, c, d, words[5, i], 0xD62F105D, 5)
        d = _g(d, a, b, c, words[10, i], 0x02441453, 9)
        c = _g(c, d, a, b, words[15, i], 0xD8A1E681, 14)
        b = _g(b, c, d, a, words[4, i], 0xE7D3FBC8, 20)
        a = _g(a, b, c, d, words[9, i], 0x21E1CDE6, 5)
        d = _g(d, a, b, c, words[14, i], 0xC33707D6, 9)
        c = _g(c, d, a, b, words[3, i], 0xF4D50D87, 14)
        b = _g(b, c, d, a, words[8, i], 0x455A14ED, 20)
        a = _g(a, b, c, d, words[13, i], 0xA9E3E905, 5)
        d = _g(d, a, b, c, words[2, i], 0xFCEFA3F8, 9)
        c = _g(c, d, a, b, words[7, i], 0x676F02D9, 14)
        b = _g(b, c, d, a, words[12, i], 0x8D2A4C8A, 20)
        a = _h(a, b, c, d, words[5, i], 0xFFFA3942, 4)
        d = _h(d, a, b, c, words[8, i], 0x8771F681, 11)
        c = _h(c, d, a, b, words[11, i], 0x6D9D6122, 16)
        b = _h(b, c, d, a, words[14, i], 0xFDE5380C, 23)
        a = _h(a, b, c, d, words[1, i], 0xA4BEEA44, 4)
        d = _h(d, a, b, c, words[4, i], 0x4BDECFA9, 11)
        c = _h(c, d, a, b, words[7, i], 0xF6BB4B60, 16)
        b = _h(b, c, d, a, words[10, i], 0xBEBFBC70, 23)
        a = _h(a, b, c, d, words[13, i], 0x289B7EC6, 4)
        d = _h(d, a, b, c, words[0, i], 0xEAA127FA, 11)
        c = _h(c, d, a, b, words[3, i], 0xD4EF3085, 16)
        b = _h(b, c, d, a, words[6, i], 0x04881D05, 23)
        a = _h(a, b, c, d, words[9, i], 0xD9D4D039, 4)
        d = _h(d, a, b, c, words[12, i], 0xE6DB99E5, 11)
        c = _h(c, d, a, b, words[15, i], 0x1FA27CF8, 16)
        b = _h(b, c, d, a, words[2, i], 0xC4AC5665, 23)
        a = _i(a, b, c, d, words[0, i], 0xF4292244, 6)
        d = _i(d, a, b, c, words[7, i], 0x432AFF97, 10)
        c = _i(c, d, a, b, words[14, i], 0xAB9423A7, 15)
        b = _i(b, c, d, a, words[5, i], 0xFC93A039, 21)
        a = _i(a, b, c, d, words[12, i], 0x655B59C3, 6)
        d = _i(d, a, b, c, words[3, i], 0x8F0CCC92, 10)
        c = _i(c, d, a, b, words[10, i], 0xFFEFF47D, 15)
        b = _i(b, c, d, a, words[1, i], 0x85845DD1, 21)
        a = _i(a, b, c, d, words[8, i], 0x6FA87E4F, 6)
        d = _i(d, a, b, c, words[15, i], 0xFE2CE6E0, 10)
        c = _i(c, d, a, b, words[6, i], 0xA3014314, 15)
        b = _i(b, c, d, a, words[13, i], 0x4E0811A1, 21)
        a = _i(a, b, c, d, words[4, i], 0xF7537E82, 6)
        d = _i(d, a, b, c, words[11, i], 0xBD3AF235, 10)
        c = _i(c, d, a, b, words[2, i], 0x2AD7D2BB, 15)
        b = _i(b, c, d, a, words[9, i], 0xEB86D391, 21)
        a, b = np.uint32(a + np.uint32(0x67452301)), np.uint32(b + np.uint32(0xEFCDAB89))
        c, d = np.uint32(c + np.uint32(0x98BADCFE)), np.uint32(d + np.uint32(0x10325476))
        high[i] = (np.uint64(a) << np.uint64(32)) | np.uint64(b)
        low[i] = (np.uint64(c) << np.uint64(32)) | np.uint64(d)


@inner
def _swapped(value: Any) -> Any:
    """Turn the byte order round in both halves: the digest's bytes read big-endian."""
    eights = np.uint64(0x00FF00FF00FF00FF)
    value = ((value & eights) << np.uint64(8)) | ((value >> np.uint64(8)) & eights)
    sixteens = np.uint64(0x0000FFFF0000FFFF)
    return ((value & sixteens) << np.uint64(16)) | ((value >> np.uint64(16)) & sixteens)


@inner
def _fill(words: Any, lane: int, data: Any, at: int, size: int) -> None:
    """Write data[at : at + size] as a padded block; up to 3 bytes behind it are read."""
    whole = size // 4
    for k in range(whole):
        words[k, lane] = np.uint32(load32(data, at + 4 * k))
    last, rest = _MARK << np.uint64(8 * (size % 4)), size % 4
    if rest > 0:
        last |= load32(data, at + 4 * whole) & (_M32 >> np.uint64(32 - 8 * rest))
    words[whole, lane] = np.uint32(last)
    for k in range(whole + 1, 14):
        words[k, lane] = np.uint32(0)
    words[14, lane] = np.uint32(8 * size)


@inner
def _fill_window(words: Any, lane: int, data: Any, at: int, size: int) -> None:
    """As `_fill` for at most 16 bytes, where words 5 to 13 are 0; up to 16 bytes are read."""
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
    words[0, lane] = np.uint32(low & _M32)
    words[1, lane] = np.uint32(low >> np.uint64(32))
    words[2, lane] = np.uint32(high & _M32)
    words[3, lane] = np.uint32(high >> np.uint64(32))
    words[4, lane], words[14, lane] = np.uint32(end), np.uint32(8 * size)


@inner
def _keep_ascii(data: Any, buffer: Any, starts: Any) -> int:
    """Copy ASCII letters, digits and `_`, lowered; returns how many there are."""
    to = np.int64(0)
    for i in range(data.size):
        lowered = _KEPT[data[i]]
        buffer[to] = lowered
        starts[to] = to
        to += np.int64(lowered != 0)
    starts[to] = to
    return to


@inner
def _keep_all(data: Any, buffer: Any, starts: Any) -> int:
    """Copy UTF-8 and find where its characters begin; returns how many there are."""
    count = np.int64(0)
    for i in range(data.size):
        buffer[i] = data[i]
        if data[i] & 0xC0 != 0x80:
            starts[count] = i
            count += 1
    starts[count] = data.size
    return count


@kernel
def fold_windows(data: Any, raw_ascii: bool, word: int, width: int, tie_one: bool) -> Any:
    """Fold the MD5 of each window of characters, each occurrence of weight 1.

    A shorter text, also the empty one, is one window. O(bytes).

    Args:
        data: uint8, UTF-8, may be read-only.
        raw_ascii: It is ASCII, of which letters (lowered), digits and `_` are kept; else all is.
        word: 0 for the low 64 bits of the 128, 1 for the high ones.
        width: Characters a window, at most 4.
        tie_one: The bit where exactly half of the windows have it.

    Returns:
        uint64.
    """
    buffer = np.empty(data.size + 16, np.uint8)
    starts = np.empty(data.size + 1, np.int64)
    if raw_ascii:
        characters = _keep_ascii(data, buffer, starts)
    else:
        characters = _keep_all(data, buffer, starts)
    count = max(characters - width + 1, 1)
    width = min(characters, width)
    hashes = np.empty(-(-count // LANES) * LANES, np.uint64)
    other = np.empty(LANES, np.uint64)
    words = np.zeros((16, LANES), np.uint32)
    for first in range(0, count, LANES):
        for lane in range(min(LANES, count - first)):
            at = starts[first + lane]
            _fill_window(words, lane, buffer, at, starts[first + lane + width] - at)
        if word == 0:
            _md5_block(words, other, hashes[first : first + LANES])
        else:
            _md5_block(words, hashes[first : first + LANES], other)
    planes, out = np.empty(PLANES, np.uint64), np.empty(1, np.uint64)
    fold_equal(hashes, count, tie_one, planes, out)
    return _swapped(out[0])


@kernel
def fold_tokens(data: Any, weights: Any, word: int) -> Any:
    """Fold the MD5 of tokens that are separated by one 0 byte each; a tie gives 0. O(bytes).

    Args:
        data: uint8, may be read-only, ends with a 0 byte behind the last token and 3 spare bytes.
        weights: int64, one a token; empty for 1 each.
        word: 0 for the low 64 bits of the 128, 1 for the high ones.

    Returns:
        (uint64, whether no token was longer than MOST_BYTES; if one was the value is void).
    """
    hashes = np.empty(data.size + LANES, np.uint64)
    high, low = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    words = np.zeros((16, LANES), np.uint32)
    count, lane, at = 0, 0, 0
    for i in range(data.size - 3):
        if data[i] != 0:
            continue
        if i - at > MOST_BYTES:
            return np.uint64(0), False
        _fill(words, lane, data, at, i - at)
        at = i + 1
        lane += 1
        if lane == LANES or at == data.size - 3:
            _md5_block(words, high, low)
            for j in range(lane):
                hashes[count + j] = low[j] if word == 0 else high[j]
            count, lane = count + lane, 0
    out = np.empty(1, np.uint64)
    if weights.size:
        fold_weighted(hashes, weights, count, False, np.empty(64, np.int64), out)
    else:
        fold_equal(hashes, count, False, np.empty(PLANES, np.uint64), out)
    return _swapped(out[0]), True


@kernel
def md5_slices(data: Any, offsets: Any) -> Any:
    """MD5 of data[offsets[i]:offsets[i + 1]]: uint64 (n, 2), low word first. O(bytes).

    Args:
        data: uint8, may be read-only, with 3 bytes to spare behind the last feature.
        offsets: int64 (n + 1,); no feature is longer than MOST_BYTES.
    """
    count = offsets.size - 1
    out = np.empty((count, 2), np.uint64)
    high, low = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    words = np.zeros((16, LANES), np.uint32)
    for first in range(0, count, LANES):
        lanes = min(LANES, count - first)
        for lane in range(lanes):
            at = offsets[first + lane]
            _fill(words, lane, data, at, offsets[first + lane + 1] - at)
        _md5_block(words, high, low)
        for lane in range(lanes):
            out[first + lane, 0] = _swapped(low[lane])
            out[first + lane, 1] = _swapped(high[lane])
    return out
