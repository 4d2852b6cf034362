"""Two documents side by side: fingerprints, distance, and the similarity of their features."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neardup.errors import DataError, FileError, UsageError
from neardup.fingerprinting.fingerprints import feature_hashes, fingerprint
from neardup.fingerprinting.recipe import Recipe
from neardup.fingerprinting.values import distance

__all__ = ["Comparison", "compare_files", "compare_texts", "read_text", "read_texts"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How alike two texts are; what cannot be said of a text without tokens is None.

    Args:
        bits: Width of the fingerprints.
        fingerprints: Both, as hexadecimal digits.
        distance: Bits in which they differ.
        estimated_cosine: cos(pi * distance / bits).
        features: Distinct features of each.
        shared: Distinct features in both.
        jaccard: shared / distinct features in either.
        containment: shared / distinct features of the smaller one.
    """

    bits: int
    fingerprints: tuple[str | None, str | None]
    distance: int | None
    estimated_cosine: float | None
    features: tuple[int, int]
    shared: int
    jaccard: float | None
    containment: float | None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return asdict(self)


def compare_texts(a: str, b: str, recipe: Recipe | None = None) -> Comparison:
    """Compare two texts.

    Example:
        >>> found = compare_texts("one two three four", "one two three five", Recipe(ngram=1))
        >>> found.shared, found.jaccard
        (3, 0.6)
    """
    recipe = recipe or Recipe()
    values = [fingerprint(text, recipe) for text in (a, b)]
    left, right = (feature_hashes(text, recipe) for text in (a, b))
    shared = np.intersect1d(left, right, assume_unique=True).size
    apart = None if None in values else distance(*values)
    both = left.size and right.size
    return Comparison(
        bits=recipe.bits,
        fingerprints=(_digits(values[0], recipe.bits), _digits(values[1], recipe.bits)),
        distance=apart,
        estimated_cosine=None if apart is None else math.cos(math.pi * apart / recipe.bits),
        features=(left.size, right.size),
        shared=shared,
        jaccard=shared / (left.size + right.size - shared) if both else None,
        containment=shared / min(left.size, right.size) if both else None,
    )


def compare_files(a: str, b: str, recipe: Recipe | None = None) -> Comparison:
    """Compare two UTF-8 text files; "-" is standard input.

    Raises:
        UsageError: If both are standard input.
        FileError: If one cannot be read.
        DataError: If one is not UTF-8.
    """
    left, right = read_texts(a, b)
    return compare_texts(left, right, recipe)


def read_texts(a: str, b: str) -> tuple[str, str]:
    """Read two UTF-8 text files; "-" is standard input, for one of them.

    Raises:
        UsageError: If both are standard input.
        FileError: If one cannot be read.
        DataError: If one is not UTF-8.
    """
    if a == b == "-":
        raise UsageError("standard input (-) is named twice: name a file for one of them")
    return read_text(a), read_text(b)


def _digits(fingerprint: int | None, bits: int) -> str | None:
    return None if fingerprint is None else f"{fingerprint:0{-(-bits // 4)}x}"


def read_text(path: str) -> str:
    """Read a UTF-8 text file; "-" is standard input.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not UTF-8.
    """
    try:
        return (sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()).decode()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}; convert it first") from None
