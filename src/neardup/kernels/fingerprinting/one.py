"""Fingerprint one text: what does not change with the text comes as addresses.

To hand a kernel the thirteen tables of a recipe as arrays takes longer than six words.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import carray, config  # type: ignore[attr-defined]

from neardup.kernels.bits import words_at
from neardup.kernels.features.arguments import Cutting, Hasher
from neardup.kernels.features.runs import hash_features
from neardup.kernels.features.tokenise import SLACK, TOKEN_RATIO, token_room, tokenise
from neardup.kernels.features.xxh3 import SCRATCH, seeded_secret
from neardup.kernels.fingerprinting.arguments import Folding
from neardup.kernels.fingerprinting.fold import PLANES, distinct, fold_equal
from neardup.kernels.fingerprinting.weighing import COUNT
from neardup.kernels.jit import fill, kernel, making

PADDING: Final = 80
"""Bytes that follow the text: as many as cutting may read behind it, so that it reads whole vectors
from the first byte to the last."""


class _Tables(NamedTuple):
    """As neardup.features.unicode.UnicodeTables."""

    index: Any  # hides tuple.index
    blocks: Any
    pool: Any
    fold_index: Any
    fold_blocks: Any
    fold_pool: Any
    dindex: Any
    dblocks: Any
    dpool: Any
    cindex: Any
    cblocks: Any
    comp_keys: Any
    comp_values: Any


class Given(NamedTuple):
    """What is the same for all texts of a recipe."""

    cutting: Cutting
    folding: Folding  # of weight SET or COUNT; no features are kept
    secret: Any  # seeded_secret(folding.seed)
    last: Any  # uint64, the bits of the last word that are used


def view_of(cutting: Cutting, folding: Folding, last: int) -> tuple[Any, Any]:
    """What stands for a recipe in a call for one text, and what must live as long.

    Returns:
        uint64 (35,): addresses and sizes of the tables and of the secret, and single values; with
        the JIT off the values themselves. Behind it what it points to.
    """
    given = Given(cutting, folding, seeded_secret(folding.seed), np.uint64(last))
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return given, given
    arrays = (*cutting.tables, given.secret)
    values = (cutting.case_bit, cutting.chars, cutting.ngram)
    values += (folding.weight, folding.seed, folding.tie_one, given.last)
    places = [int(x) for each in arrays for x in (each.ctypes.data, each.size)]
    return np.array([*places, *map(int, values)], np.uint64), given


@making
def _bytes_at(view: Any, number: int, item_bytes: int) -> Any:
    """Array `number` of a view; uint64, as many as hold all of its items."""
    words = (np.int64(view[2 * number + 1]) * item_bytes + 7) // 8
    return carray(words_at(view[2 * number]), words)


def _given_at(view: Any) -> Given:
    tables = _Tables(
        _bytes_at(view, 0, 2).view(np.uint16),
        _bytes_at(view, 1, 4).view(np.uint32),
        _bytes_at(view, 2, 4).view(np.uint32),
        _bytes_at(view, 3, 2).view(np.uint16),
        _bytes_at(view, 4, 4).view(np.uint32),
        _bytes_at(view, 5, 4).view(np.uint32),
        _bytes_at(view, 6, 2).view(np.uint16),
        _bytes_at(view, 7, 4).view(np.uint32),
        _bytes_at(view, 8, 4).view(np.uint32),
        _bytes_at(view, 9, 2).view(np.uint16),
        _bytes_at(view, 10, 1).view(np.uint8),
        _bytes_at(view, 11, 8),
        _bytes_at(view, 12, 4).view(np.uint32),
    )
    case_bit, chars, ngram = np.uint8(view[28]), view[29] != np.uint64(0), np.int64(view[30])
    weight, tie_one = np.int64(view[31]), view[33] != np.uint64(0)
    return Given(
        Cutting(tables, case_bit, chars, ngram),
        Folding(weight, view[32], tie_one, False),
        _bytes_at(view, 13, 1).view(np.uint8),
        view[34],
    )


given_at: Any = (lambda view: view) if config.DISABLE_JIT else making(_given_at)  # type: ignore[attr-defined]
"""What a view stands for."""


@kernel
def fingerprint_text(data: Any, view: Any, out: Any) -> int:
    """Fingerprint one text by XXH3, its features of weight 1 each or as often as they occur.

    O(bytes + features * words). The same as `fingerprint_block` without `Weighing`.

    Args:
        data: uint8, valid UTF-8, then PADDING bytes of any value; may be read-only.
        view: The recipe, from `view_of`.
        out: uint64 (words,), written; 0 for a text without features.

    Returns:
        How many features it has, distinct ones unless they count as often as they occur.
    """
    given = given_at(view)
    cutting, folding = given.cutting, given.folding
    size = data.size - PADDING
    most = TOKEN_RATIO * size + SLACK
    tokens = token_room(size)
    found = tokenise(data, np.int64(0), size, cutting, tokens)
    if found == 0:
        fill(out, 0, out.size, np.uint64(0))
        return 0
    hashes = np.empty(most, np.uint64)
    hasher = Hasher(folding.seed, given.secret, np.empty(SCRATCH, np.uint64))
    gap = 0 if cutting.chars else 1
    count = hash_features(tokens, found, cutting.ngram, gap, hasher, hashes, None)
    if folding.weight != COUNT:
        slots = np.int64(2)
        while slots < 4 * count:
            slots *= 2
        count = distinct(hashes, count, np.empty(slots, np.uint64), np.empty(0, np.int64))
    fold_equal(hashes, count, folding.tie_one, np.empty(PLANES, np.uint64), out)
    out[out.size - 1] &= given.last
    return count
