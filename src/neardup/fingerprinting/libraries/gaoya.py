"""gaoya: SipHash-2-4 of Rust's hashing of strings and slices, with inverted bits."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.features.hashes import joined
from neardup.fingerprinting.libraries.library_parts import Feature, Preset, whole_weights
from neardup.fingerprinting.majority import majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["PRESETS"]

_KEYS: Final = (5, 6)
_STATE: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_BLOCK: Final = 8
_END: Final = b"\xff"
_SEPARATORS: Final = re.compile("[" + re.escape(string.punctuation) + " \t\n\f\r]+")


def _text(text: str, recipe: Choices) -> str:
    return text.lower() if recipe.casefold else text


def _split(text: str, recipe: Choices) -> list[bytes]:
    return [word.encode() for word in _SEPARATORS.split(_text(text, recipe)) if word]


def _words(text: str, recipe: Choices) -> list[Feature]:
    return [(word + _END, 1) for word in _split(text, recipe)]


def _slices(text: str, recipe: Choices) -> list[Feature]:
    words, width = _split(text, recipe), recipe.ngram
    size = width.to_bytes(8, "little")
    return [
        (size + b"".join(word + _END for word in words[i : i + width]), 1)
        for i in range(len(words) - width + 1)
    ]


def _characters(text: str, recipe: Choices) -> list[Feature]:
    text, width = _text(text, recipe), recipe.ngram
    return [(text[i : i + width].encode() + _END, 1) for i in range(len(text) - width + 1)]


def _fold(features: Sequence[Feature], recipe: Choices) -> int:
    names = [feature for feature, _ in features]
    hashes = _hashes64(names) if recipe.bits == 64 else siphash128(names, _KEYS)
    inverted = [~value & (1 << recipe.bits) - 1 for value in hashes]
    return majority(inverted, whole_weights(features), recipe.bits)


def _hashes64(names: list[bytes]) -> list[int]:
    from neardup.kernels.features.byte_hashes import siphash_slices

    data, offsets = joined(names)
    hashes: list[int] = siphash_slices(data, offsets, *map(np.uint64, _KEYS)).tolist()
    return hashes


def _preset(about: str, features: object, **options: object) -> Preset:
    return Preset(
        f"gaoya 0.2.2: {about}, SipHash-2-4, inverted",
        features,  # type: ignore[arg-type]
        _fold,
        (64, 128),
        "github.com/serega/gaoya",
        {"bits": 64, "casefold": False} | options,
    )


PRESETS: Final = {
    "gaoya": _preset("words, ngram_range None", _words),
    "gaoya-words": _preset("word n-grams, ngram_range (n, n)", _slices, ngram=1),
    "gaoya-chars": _preset("character n-grams, ngram_range (n, n)", _characters, ngram=3),
}


def siphash128(features: Sequence[bytes], keys: tuple[int, int]) -> list[int]:
    """Hash each feature to 128 bits, the first 64 of the reference code's output lowest.

    Source: Aumasson and Bernstein, SipHash: a fast short-input PRF, INDOCRYPT 2012, and the double
    output of its reference code.

    Example:
        >>> hex(siphash128([b""], (0x0706050403020100, 0x0F0E0D0C0B0A0908))[0])
        '0x930255c71472f66de6a825ba047f81a3'
    """
    places: dict[int, list[int]] = {}
    for at, feature in enumerate(features):
        places.setdefault(len(feature) // _BLOCK + 1, []).append(at)
    values = [0] * len(features)
    for blocks, group in places.items():
        padded = b"".join(_padded(features[at], blocks) for at in group)
        rows = np.frombuffer(padded, "<u8").astype(np.uint64).reshape(len(group), blocks)
        for at, low, high in zip(group, *_hashed(rows, keys), strict=True):
            values[at] = low | high << 64
    return values


def _padded(feature: bytes, blocks: int) -> bytes:
    """Whole blocks, the last byte of which is the length modulo 256."""
    return feature.ljust(_BLOCK * blocks - 1, b"\0") + bytes([len(feature) & 0xFF])


def _hashed(rows: Any, keys: tuple[int, int]) -> tuple[list[int], list[int]]:
    """The two halves for each row of blocks; rows uint64 (n, blocks)."""
    mixed = [start ^ keys[i & 1] for i, start in enumerate(_STATE)]
    mixed[1] ^= 0xEE
    state = [np.full(len(rows), start, np.uint64) for start in mixed]
    for block in rows.T:
        state[3] ^= block
        _mix(state, 2)
        state[0] ^= block
    halves = []
    for place, mark in ((2, 0xEE), (1, 0xDD)):
        state[place] ^= np.uint64(mark)
        _mix(state, 4)
        halves.append((state[0] ^ state[1] ^ state[2] ^ state[3]).tolist())
    return halves[0], halves[1]


def _mix(state: list[Any], rounds: int) -> None:
    for _ in range(rounds):
        state[0] = state[0] + state[1]
        state[1] = _rotated(state[1], 13) ^ state[0]
        state[0] = _rotated(state[0], 32)
        state[2] = state[2] + state[3]
        state[3] = _rotated(state[3], 16) ^ state[2]
        state[0] = state[0] + state[3]
        state[3] = _rotated(state[3], 21) ^ state[0]
        state[2] = state[2] + state[1]
        state[1] = _rotated(state[1], 17) ^ state[2]
        state[2] = _rotated(state[2], 32)


def _rotated(values: Any, count: int) -> Any:
    return values << np.uint64(count) | values >> np.uint64(64 - count)
