"""Tables of the pinned Unicode version: character classes, normal forms and case folding.

All are two-stage tables: entry of code point c = blocks[index[c >> 8] * 256 + (c & 255)].
tools/unicode_tables.py generates them.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
import string
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.features.choices import NORMAL_FORMS
from neardup.kernels.features.character_classes import (
    CLASS_MASK,
    CLASS_SHIFT,
    CODE_POINT_MASK,
    EXTEND,
    IGNORED,
    MULTI,
    OTHER,
    SLOW,
    SPACE,
    UNSPACED,
    WORD,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BLANK",
    "CLASS_SHIFT",
    "CODE_POINT_MASK",
    "EXTEND",
    "IGNORED",
    "MULTI",
    "OTHER",
    "SLOW",
    "SPACE",
    "UNSPACED",
    "WORD",
    "UnicodeTables",
    "members",
    "pattern_tables",
    "script_tables",
    "tables",
]


POINTS: Final = 0x110000
BLANK: Final = 0x20


class UnicodeTables(NamedTuple):
    """The tables that the text kernel reads for a normal form and folding; C contiguous arrays.

    An entry of `blocks` or `fold_blocks` holds:

    - bits 0-20: the code point that replaces the character, 0 where it stays;
    - bits 24-26: the class of the resulting code point (`OTHER` to `SPACE`);
    - bit 27, `SLOW`: the character may combine or reorder with what precedes it, so that the
      segment from the last character that is not slow takes the full normalisation. The class is
      then the character's own, and bits 0-20 are 0;
    - bit 28, `MULTI`: bits 0-20 are an offset o into the pool: pool[o] results follow from
      pool[o + 1], each (class << 24 | code point).

    Full normalisation of a segment: decompose (full decompositions; Hangul by arithmetic), order
    by combining class, compose (Hangul by arithmetic), then fold each code point by `fold_*`.

    Attributes:
        index: uint16, shape (0x1100,): the block of each 256 code points.
        blocks: uint32: entries of the normal form and folding of a character on its own.
        pool: uint32: results of more than one code point.
        fold_index: uint16, shape (0x1100,), like `index` for folding alone; never slow.
        fold_blocks: uint32, like `blocks` for folding alone.
        fold_pool: uint32, like `pool` for folding alone.
        dindex: uint16, shape (0x1100,): the block of decompositions.
        dblocks: uint32: offset o into `dpool`, 0 where a character stays whole.
        dpool: uint32: dpool[o] code points follow from dpool[o + 1].
        cindex: uint16, shape (0x1100,): the block of combining classes.
        cblocks: uint8: canonical combining classes.
        comp_keys: uint64, sorted: (first << 32 | second) of each canonical composition.
        comp_values: uint32: the composed character of each key.
    """

    index: NDArray[np.uint16]  # type: ignore[assignment]  # hides tuple.index
    blocks: NDArray[np.uint32]
    pool: NDArray[np.uint32]
    fold_index: NDArray[np.uint16]
    fold_blocks: NDArray[np.uint32]
    fold_pool: NDArray[np.uint32]
    dindex: NDArray[np.uint16]
    dblocks: NDArray[np.uint32]
    dpool: NDArray[np.uint32]
    cindex: NDArray[np.uint16]
    cblocks: NDArray[np.uint8]
    comp_keys: NDArray[np.uint64]
    comp_values: NDArray[np.uint32]


@functools.cache
def tables(normalize: str, casefold: bool) -> UnicodeTables:
    """Load the tables of a normal form ("NFKC", "NFC" or "none"), with or without case folding.

    Raises:
        RecipeError: If the normal form is not one of the three.

    Example:
        >>> table = tables("NFKC", casefold=True)
        >>> entry = int(table.blocks[int(table.index[ord("A") >> 8]) * 256 + (ord("A") & 255)])
        >>> chr(entry & CODE_POINT_MASK), entry >> CLASS_SHIFT == WORD
        ('a', True)
    """
    if normalize not in NORMAL_FORMS:
        raise RecipeError(f"normalize is {normalize!r}: use one of {', '.join(NORMAL_FORMS)}")
    path = importlib.resources.files("neardup") / "features" / "unicode.npz"
    with path.open("rb") as file, np.load(file) as archive:
        return UnicodeTables(
            *_three(archive, f"{normalize}_{casefold}"),
            *_three(archive, f"none_{casefold}"),
            *_normalisation(archive, normalize),
        )


@functools.lru_cache(maxsize=16)
def members(pattern: str) -> NDArray[np.bool_]:
    """The characters that the class of a pattern matches, in runs: bool (0x110000,).

    Python's regular expressions say which, for all characters are matched, one after the other.

    Example:
        >>> members("[a-c]+").nonzero()[0].tolist()
        [97, 98, 99]
    """
    is_member = np.zeros(POINTS, np.bool_)
    for run in re.finditer(pattern, "".join(map(chr, range(POINTS)))):
        is_member[run.start() : run.end()] = True
    return is_member


@functools.lru_cache(maxsize=16)
def pattern_tables(normalize: str, casefold: bool, pattern: str) -> UnicodeTables:
    """As `tables`, but words consist of the characters that a pattern has runs of.

    White space separates, and what is ignorable is left out, whatever the pattern says.
    """
    plain, is_member = tables(normalize, casefold), members(pattern)
    index, blocks, pool = _relabelled(plain.index, plain.blocks, plain.pool, is_member)
    folds = plain.fold_index, plain.fold_blocks, plain.fold_pool
    fold_index, fold_blocks, fold_pool = _relabelled(*folds, is_member)
    return plain._replace(
        index=index, blocks=blocks, pool=pool, fold_index=fold_index, fold_blocks=fold_blocks,
        fold_pool=fold_pool,
    )  # fmt: skip


def _relabelled(index: Any, blocks: Any, pool: Any, is_member: Any) -> tuple[Any, Any, Any]:
    """A table with the classes of a pattern: WORD, OTHER and IGNORED."""
    entries = blocks.reshape(-1, 256)[index].ravel()
    is_multi = entries & MULTI != 0
    pool_points = pool & CODE_POINT_MASK
    is_part = np.ones(pool.size, np.bool_)
    is_part[entries[is_multi] & CODE_POINT_MASK] = False  # these cells are counts
    points = entries & CODE_POINT_MASK
    points = np.where(is_multi, 0, np.where(points, points, np.arange(POINTS)))
    labelled = np.where(is_multi, entries, _with_class(entries, is_member[points]))
    parts = pool.copy()
    parts[is_part] = _with_class(pool[is_part], is_member[pool_points[is_part]])
    return *_two_stages(labelled.astype(np.uint32)), parts


def _two_stages(entries: Any) -> tuple[Any, Any]:
    """Index and blocks of a table of all code points."""
    rows = [row.tobytes() for row in entries.reshape(-1, 256)]
    places = {row: place for place, row in enumerate(dict.fromkeys(rows))}
    kept = np.frombuffer(bytearray(b"".join(places)), np.uint32)
    return np.array([places[row] for row in rows], np.uint16), kept


@functools.cache
def script_tables() -> UnicodeTables:
    """Tables of words as evaluation scripts cut them, which is at white space.

    Capitals of ASCII are made small and its punctuation is deleted; nothing is normalised.
    """
    kinds = np.full(POINTS, WORD, np.uint32)
    kinds[[point for point in range(POINTS) if chr(point).isspace()]] = SPACE
    kinds[[ord(mark) for mark in string.punctuation]] = IGNORED
    entries = kinds << np.uint32(CLASS_SHIFT)
    for capital in string.ascii_uppercase:
        entries[ord(capital)] |= ord(capital.lower())
    index, blocks = _two_stages(entries)
    return tables("none", casefold=False)._replace(index=index, blocks=blocks)


def _with_class(entries: Any, is_member: Any) -> Any:
    kinds = entries >> CLASS_SHIFT & CLASS_MASK
    classes = np.where(is_member & (kinds != SPACE), WORD, OTHER)
    classes = np.where(kinds == IGNORED, IGNORED, classes)
    cleared = entries & ~np.uint32(CLASS_MASK << CLASS_SHIFT)
    return cleared | classes.astype(np.uint32) << np.uint32(CLASS_SHIFT)


def _three(archive: Any, name: str) -> tuple[Any, Any, Any]:
    return archive[f"{name}_index"], archive[f"{name}_blocks"], archive[f"{name}_pool"]


def _normalisation(archive: Any, normalize: str) -> tuple[Any, ...]:
    if normalize == "none":
        nothing = np.zeros(0x1100, np.uint16)
        decomposition = (nothing, np.zeros(256, np.uint32), np.zeros(1, np.uint32))
        combining = (nothing, np.zeros(256, np.uint8))
        return *decomposition, *combining, np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    return (
        *_three(archive, f"{normalize}_decomposition"),
        archive["ccc_index"],
        archive["ccc_blocks"],
        archive["composition_keys"],
        archive["composition_values"],
    )
