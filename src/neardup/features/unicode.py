"""Tables of the pinned Unicode version: character classes, normal forms and case folding.

All are two-stage tables: entry of code point c = blocks[index[c >> 8] * 256 + (c & 255)].
tools/unicode_tables.py generates them.
"""

from __future__ import annotations

import functools
import importlib.resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.features.choices import NORMAL_FORMS
from neardup.kernels.features.classes import (
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
    "tables",
]


class UnicodeTables(NamedTuple):
    """What the text kernel reads for one normal form and folding; C contiguous arrays.

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
        RecipeError: If the normal form is none of the three.

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
