"""Fingerprint one text: arguments that are the same for all texts are passed as one address.

To hand a kernel the thirteen tables of a recipe as arrays takes longer than six words, and so does
to make its working memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.bits import compiled_as
from neardup.kernels.compiler import carray, types
from neardup.kernels.entry import entry_point, short_kernel
from neardup.kernels.features.runs import hash_features
from neardup.kernels.features.token_arguments import Capacity, Cutting, Hasher, Tokens
from neardup.kernels.features.tokenise import (
    BUFFER_RATIO,
    SEGMENT_RATIO,
    SLACK,
    TOKEN_RATIO,
    plain_tokens,
    tokenise,
)
from neardup.kernels.features.xxh3 import SCRATCH, seeded_secret
from neardup.kernels.fingerprinting.fold import PLANES, distinct, fold_equal
from neardup.kernels.fingerprinting.fold_arguments import Folding
from neardup.kernels.fingerprinting.weighing import COUNT
from neardup.kernels.jit import inlined, inner, making, move
from neardup.kernels.segment_addresses import (
    addresses_of,
    bytes_at,
    int64s,
    uint16s,
    uint32s,
    uint64s,
)
from neardup.kernels.sorting import sort_hashes
from neardup.kernels.utf8 import encode

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes

MOST_BYTES: Final = 1 << 16
"""The most bytes of a text in UTF-8 that a workplace has room for."""

_PADDING: Final = 80
"""Bytes behind a text: as many as cutting may read there, so that it reads whole vectors from the
first byte to the last."""
_CELLS: Final = 1 << 20
"""A power of two, at least twice the features of a text."""

_KINDS: Final = (
    *(np.uint16, np.uint32, np.uint32) * 3,
    *(np.uint16, np.uint8, np.uint64, np.uint32),
    *(np.uint8, np.uint64, np.uint8, np.uint8, np.int64, np.uint32, np.uint8),
    *(np.uint64,) * 5,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Tables(NamedTuple):
    """The arrays of neardup.features.unicode.UnicodeTables."""

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


class _Given(NamedTuple):
    """The arguments and working memory that the address of a workplace leads to."""

    cutting: Cutting
    folding: Folding  # of weight SET or COUNT
    last: Any  # uint64, the bits of the last word that are used
    data: Any  # uint8, where the text is written
    tokens: Tokens
    hasher: Hasher
    hashes: Any  # uint64
    cells: Any  # uint64, for `distinct`
    spare: Any  # uint64, where the tokens' starts were
    planes: Any  # uint64 (PLANES,)
    out: Any  # uint64 (words,)


def workplace(cutting: Cutting, folding: Folding, bits: int) -> tuple[int, Any, Any, Any]:
    """Make the workplace of `fingerprint_text` for a recipe; one call at a time may use it.

    Physical memory is used only as far as texts reach into it.

    Returns:
        Its address; uint64 (words,), where the fingerprint of a text will be; uint64, where its
        features will be if they are kept; what must live as long as the address is used. (A tuple
        without names is read in half the time.)

    Args:
        cutting: Cutting.
        folding: Folding, of weight SET or COUNT.
        bits: Width of the fingerprints.
    """
    last = (1 << 64) - 1 >> -bits % 64
    numbers = (cutting.case_bit, cutting.chars, cutting.ngram, folding.weight, folding.seed)
    numbers += (folding.tie_one, folding.keep_features, last, cutting.plain)
    ratios = (TOKEN_RATIO, BUFFER_RATIO, SEGMENT_RATIO)
    most = TOKEN_RATIO * MOST_BYTES + SLACK
    sizes = (most, _CELLS, PLANES, -(-bits // 64))
    scratch = [np.empty(size, np.uint64) for size in (SCRATCH, *sizes)]
    arrays = (
        *cutting.tables,
        seeded_secret(folding.seed),
        np.array([int(each) for each in numbers], np.uint64),
        np.zeros(MOST_BYTES + _PADDING, np.uint8),
        *plain_tokens(Capacity(*(ratio * MOST_BYTES for ratio in ratios))),
        *scratch,
    )
    places = addresses_of(list(zip(arrays, _KINDS, strict=True)))
    return places.ctypes.data, scratch[-1], scratch[1], (places, arrays)


@inlined
def _given_at(address: int) -> _Given:
    at = int64s(address, 2 * len(_KINDS))
    tables = _Tables(
        uint16s(at[0], at[1]),
        uint32s(at[2], at[3]),
        uint32s(at[4], at[5]),
        uint16s(at[6], at[7]),
        uint32s(at[8], at[9]),
        uint32s(at[10], at[11]),
        uint16s(at[12], at[13]),
        uint32s(at[14], at[15]),
        uint32s(at[16], at[17]),
        uint16s(at[18], at[19]),
        bytes_at(at[20], at[21]),
        uint64s(at[22], at[23]),
        uint32s(at[24], at[25]),
    )
    numbers = uint64s(at[28], at[29])
    weight, seed = np.int64(numbers[3]), numbers[4]
    tie_one, keep_features = numbers[5] != np.uint64(0), numbers[6] != np.uint64(0)
    tokens = Tokens(
        bytes_at(at[32], at[33]),
        int64s(at[34], at[35]),
        uint32s(at[36], at[37]),
        bytes_at(at[38], at[39]),
    )
    chars, plain = numbers[1] != np.uint64(0), numbers[8] != np.uint64(0)
    return _Given(
        Cutting(tables, np.uint8(numbers[0]), chars, np.int64(numbers[2]), plain),
        Folding(weight, seed, tie_one, keep_features),
        numbers[7],
        bytes_at(at[30], at[31]),
        tokens,
        Hasher(seed, bytes_at(at[26], at[27]), uint64s(at[40], at[41])),
        uint64s(at[42], at[43]),
        uint64s(at[44], at[45]),
        uint64s(at[34], at[35]),
        uint64s(at[46], at[47]),
        uint64s(at[48], at[49]),
    )


@inner
def _encode_all(points: Any, out: Bytes) -> int:
    to = np.int64(0)
    for i in range(points.size):
        point = np.int64(points[i])
        to = encode(0xFFFD if 0xD800 <= point < 0xE000 else point, out, to)
    return to


@making
def _write_utf8(text: Any, out: Bytes) -> int:
    place, size = text._data, text._length  # noqa: SLF001 - as Numba names what a str consists of
    kind = text._kind  # noqa: SLF001
    if text._is_ascii:  # noqa: SLF001
        move(carray(place, size, np.uint8), size, out)
        return size
    if kind == 1:
        return _encode_all(carray(place, size, np.uint8), out)
    if kind == 2:
        return _encode_all(carray(place, size, np.uint16), out)
    return _encode_all(carray(place, size, np.uint32), out)


@compiled_as(_write_utf8)
def write_utf8(text: str, out: Bytes) -> int:
    """Write a text as UTF-8, a lone surrogate as U+FFFD; returns the bytes.

    Args:
        text: A str.
        out: uint8, long enough, written.
    """
    data = _SURROGATE.sub("\ufffd", text).encode()
    out[: len(data)] = np.frombuffer(data, np.uint8)
    return len(data)


@inner
def _fold_text(address: int, size: int) -> tuple[int, Any]:
    """Fold the text in a workplace; returns its features and the value of `fingerprint_text`."""
    given = _given_at(address)
    cutting, folding, tokens, hashes = given.cutting, given.folding, given.tokens, given.hashes
    token_count = tokenise(given.data, np.int64(0), size, cutting, tokens)
    if token_count == 0:
        return 0, np.uint64(0)
    gap = 0 if cutting.chars else 1
    count = hash_features(tokens, token_count, cutting.ngram, gap, given.hasher, hashes, None)
    if folding.weight != COUNT or folding.keep_features:
        count = distinct(hashes, count, given.cells, int64s(address, 0))
    if folding.keep_features:
        sort_hashes(hashes, np.int64(0), count, given.cells, given.spare)
        return count, np.uint64(count)
    out = given.out
    fold_equal(hashes, count, folding.tie_one, given.planes, out)
    out[out.size - 1] &= given.last
    return count, out[0]


@short_kernel
def _fingerprint_text(text: str, address: int) -> Any:
    at = int64s(address, 2 * len(_KINDS))
    count, value = _fold_text(address, write_utf8(text, bytes_at(at[30], at[31])))
    return value if count else None


def fingerprint_text() -> Any:
    """The kernel that fingerprints one text, by XXH3, its features of equal weight or counted.

    O(bytes + features * words). The fingerprint is that of `neardup.kernels.fingerprinting.block`
    without weights. The kernel takes:

        text: A str of at most MOST_BYTES in UTF-8.
        address: Of a workplace, which no other call uses.

    It returns a uint64, None for a text without features. The first word of the fingerprint, all of
    which is in the workplace; or, where `Folding` keeps features, how many distinct ones
    there are, ascending and in the workplace, and no fingerprint is made.
    """
    return entry_point(_fingerprint_text, types.unicode_type, types.int64)
