"""The places of words in their text, and hashes of the words, by which passages are marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import high_mask64, trailing_zeros, word_mask64
from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.character_classes import SLOW, WORD
from neardup.kernels.features.tokenise import _emit_entry, _emit_segment, made_tokens, tokenise
from neardup.kernels.features.xxh3 import hasher_of, xxh3_runs
from neardup.kernels.jit import inlined, inner, kernel
from neardup.kernels.utf8 import decode

if TYPE_CHECKING:
    from neardup.kernels.features.token_arguments import Cutting, Tokens

_BLANK: Final = 0x20
_LANES: Final = 64
_STEP: Final = 63
_STEP_BITS: Final = np.uint64((1 << 63) - 1)
_ONE: Final = np.uint64(1)


@inlined
def _places_in_mask(
    words: np.uint64, at: int, goes_on: np.uint64, begins: Any, ends: Any, count: int
) -> int:
    """Note the words of _STEP bytes of ASCII from `at` on, as a mask marks them.

    The first may go on from before, and the last ends here for now; returns how many there are.
    """
    before = words << _ONE | goes_on
    starts, stops, closing = words & ~before, ~words & before, count - 1 + np.int64(goes_on ^ _ONE)
    while starts:
        begins[count] = at + trailing_zeros(starts)
        starts &= starts - _ONE
        count += 1
    while stops:
        ends[closing] = at + trailing_zeros(stops)
        stops &= stops - _ONE
        closing += 1
    return count


@inner
def find_places(
    data: Any, begin: int, end: int, cutting: Cutting, tokens: Tokens, begins: Any, ends: Any
) -> int:
    """Note where in the text each word of `tokenise` came from; `tokens` is scratch.

    Plain ASCII goes _STEP bytes at a time, any other text by characters.

    A stretch of text is one character, or a character with all that combines with it, which are
    normalised together. Every word that was written while a stretch was read lies in it: so a word
    begins with the first byte of one stretch and ends behind the last byte of one.
    """
    tables, buffer = cutting.tables, tokens.buffer
    at, to, count, state = begin, np.int64(0), np.int64(0), np.int64(0)
    last, last_to, last_count, last_state, last_end = at, to, count, state, begin
    whole = end - _LANES if cutting.plain else np.int64(-1)
    while at < end:
        if at <= whole and not high_mask64(data, at):
            # The byte behind the step goes the slow way: what combines with it undoes it.
            goes_on = np.uint64(state == WORD)
            words = word_mask64(data, at) & _STEP_BITS
            count = _places_in_mask(words, at, goes_on, begins, ends, count)
            at += _STEP
            state = np.int64(words >> np.uint64(_STEP - 1)) * WORD
            continue
        cp, width = decode(data, at, end)
        entry = np.int64(tables.blocks[np.int64(tables.index[cp >> 8]) * 256 + (cp & 255)])
        if entry & SLOW:  # what was written for the last stretch is undone and written again
            if last_count:
                ends[last_count - 1] = last_end
            at, to, count, state = _emit_segment(
                data, last, end, cutting, tokens, last_to, last_count, last_state
            )
        else:
            last, last_to, last_count, last_state = at, to, count, state
            last_end = ends[count - 1] if count else begin
            to, count, state = _emit_entry(entry, cp, tables.pool, False, tokens, to, count, state)
            at += width
        # The open word went on unless the first byte that was written closed it.
        if last_state and to > last_to and buffer[last_to] != _BLANK:
            ends[last_count - 1] = at
        for word in range(last_count, count):
            begins[word], ends[word] = last, at
    return count


@kernel
def placed_words(data: Any, cutting: Cutting, width: int) -> Any:
    """Find where the words of a text begin and end, and hash them; O(bytes).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        cutting: Cutting, in words.
        width: Words of a run, 1 or more.

    Returns:
        int64, one a word, ascending: its first byte, and the byte behind its last; uint64: XXH3 of
        each word, and of each run of `width` words, in order.
    """
    tokens = made_tokens(capacity_for(data, np.array([0, data.size]), cutting))
    begins, ends = np.empty(tokens.starts.size, np.int64), np.empty(tokens.starts.size, np.int64)
    find_places(data, np.int64(0), data.size, cutting, tokens, begins, ends)
    count = tokenise(data, np.int64(0), data.size, cutting, tokens)  # which closes the last word
    hasher = hasher_of(np.uint64(0))
    words, runs = np.empty(count, np.uint64), np.empty(max(count - width + 1, 0), np.uint64)
    xxh3_runs(tokens.buffer, tokens.starts, 0, words.size, 1, 1, hasher, words)
    xxh3_runs(tokens.buffer, tokens.starts, 0, runs.size, width, 1, hasher, runs)
    return begins[:count], ends[:count], words, runs


@kernel
def run_hashes(data: Any, offsets: Any, cutting: Cutting, width: int) -> Any:
    """XXH3 of every run of `width` words of texts, in order, repeats included; O(bytes).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,): text i is data[offsets[i]:offsets[i + 1]]; may be read-only.
        cutting: Cutting, in words.
        width: Words of a run, 1 or more.

    Returns:
        uint64: the hashes of text 0, then of text 1, and so on; and int64 (n + 1,): where each
        text's begin. A text of fewer words has none.
    """
    tokens = made_tokens(capacity_for(data, offsets, cutting))
    hasher = hasher_of(np.uint64(0))
    hashes = np.empty(max(16, (offsets[-1] - offsets[0]) // 2), np.uint64)
    begins = np.zeros(offsets.size, np.int64)
    used = np.int64(0)
    for i in range(offsets.size - 1):
        count = tokenise(data, offsets[i], offsets[i + 1], cutting, tokens)
        runs = max(count - width + 1, 0)
        if used + runs > hashes.size:
            larger = np.empty(2 * (used + runs), np.uint64)
            for at in range(used):
                larger[at] = hashes[at]
            hashes = larger
        if runs:
            xxh3_runs(tokens.buffer, tokens.starts, 0, runs, width, 1, hasher, hashes[used:])
        used += runs
        begins[i + 1] = used
    return hashes[:used], begins
