"""Groups of arguments of the kernels that cut and hash texts."""

from __future__ import annotations

from typing import Any, NamedTuple


class Cutting(NamedTuple):
    """The rules by which texts are cut into features."""

    tables: Any  # neardup.features.unicode.UnicodeTables of the normal form and folding
    case_bit: Any  # uint8: 0x20 to fold case, else 0
    chars: bool  # tokens are code points, not words
    ngram: int  # tokens of a feature
    plain: bool  # of ASCII, words consist of letters, digits and _


class Capacity(NamedTuple):
    """The most elements that the tokens of a text need in each array."""

    tokens: int
    nbytes: int  # of normalised text, joiners included
    points: int  # twice the decomposed code points of its longest slow segment


class Tokens(NamedTuple):
    """The tokens of a text, joined, and the scratch arrays of cutting them.

    Words are followed by one space each (gap 1), characters by nothing (gap 0): token i is
    buffer[starts[i] : starts[i + 1] - gap], and tokens i to i + n - 1, joined, are
    buffer[starts[i] : starts[i + n] - gap].
    """

    buffer: Any  # uint8
    starts: Any  # int64
    points: Any  # uint32, scratch
    classes: Any  # uint8, scratch


class Hasher(NamedTuple):
    """A seed of XXH3, and the secret and scratch that it takes."""

    seed: Any  # uint64
    secret: Any  # uint8, seeded_secret(seed)
    scratch: Any  # uint64 (SCRATCH,)
