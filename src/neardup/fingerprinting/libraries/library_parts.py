"""Parts of presets: the shape of a preset, hashing of its features, lower-casing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from neardup.errors import UsageError
from neardup.features.hashes import HASHES, hash_features
from neardup.fingerprinting.majority import majority

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from neardup.features.choices import Choices

__all__ = [
    "Aliases",
    "Feature",
    "Preset",
    "counted",
    "fast_hashes",
    "md5_numbers",
    "positive",
    "real_sums",
    "reversed_bits",
    "simple_lower",
    "whole_weights",
]

Feature: TypeAlias = tuple[bytes, float]
"""The bytes that are hashed, and their weight."""

Aliases: TypeAlias = dict[str, tuple[str, dict[str, int]]]
"""Another name for a preset: its own name, and options that the other name fixes."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Another library's fingerprint.

    Attributes:
        about: One line for people.
        features: (text, recipe) -> the library's features with their weights.
        fold: (features, recipe) -> the library's value of them.
        widths: Bits that it can give.
        options: The recipe fields that it heeds, with its own defaults; always has `bits`.
        source: Where the definition is from.
        direct: Text to value in one go, where there is a faster way than by its features, or some
            texts have none.
    """

    about: str
    features: Callable[[str, Choices], Sequence[Feature]]
    fold: Callable[[Sequence[Feature], Choices], int]
    widths: Container[int]
    source: str
    options: Mapping[str, Any] = field(default_factory=lambda: {"bits": 64})
    direct: Callable[[str, Choices], int | None] | None = None


def simple_lower(text: str) -> str:
    r"""Lower-case each code point on its own, to one code point, as Go and Python 2 do.

    Example:
        >>> simple_lower("\u0130A"), len("\u0130".lower())
        ('ia', 2)
    """
    if text.isascii():
        return text.lower()
    return "".join(character.lower()[0] for character in text)


def md5_numbers(features: Sequence[Feature], part: slice) -> list[int]:
    """MD5 of each feature, the bytes of `part` read big-endian."""
    return [
        int.from_bytes(hashlib.md5(feature, usedforsecurity=False).digest()[part], "big")
        for feature, _ in features
    ]


def fast_hashes(name: str, features: Sequence[Feature], seed: int = 0) -> list[int]:
    """Hash each feature by one of neardup's kernels."""
    return hash_features(HASHES[name], [feature for feature, _ in features], seed)


def whole_weights(features: Sequence[Feature]) -> list[int]:
    """The weights of features, which must be whole numbers.

    Raises:
        UsageError: If one is not.
    """
    for feature, weight in features:
        if weight != int(weight):
            raise UsageError(f"the weight of {feature!r:.60} is {weight!r}: use whole numbers")
    return [int(weight) for _, weight in features]


def counted(
    hashes: Sequence[int], features: Sequence[Feature], bits: int, *, tie_one: bool = False
) -> int:
    """Fold hashes by whole weights."""
    return majority(hashes, whole_weights(features), bits, tie_one=tie_one)


def real_sums(hashes: Sequence[int], weights: Sequence[float], bits: int) -> list[float]:
    """Sum floats bit by bit in the order given, as a loop over doubles does."""
    sums = [0.0] * bits
    for value, weight in zip(hashes, weights, strict=True):
        for bit in range(bits):
            sums[bit] += weight if value >> bit & 1 else -weight
    return sums


def positive(sums: Sequence[float]) -> int:
    """The bits whose sums are above 0."""
    return sum(1 << bit for bit, total in enumerate(sums) if total > 0)


def reversed_bits(value: int, bits: int) -> int:
    """Turn the bit order round.

    Example:
        >>> reversed_bits(0b0011, 4)
        12
    """
    return int(format(value, f"0{bits}b")[::-1], 2)
