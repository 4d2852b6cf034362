"""scrapinghub/python-simhash: FNV-1a of signed characters, and a fold that loses a bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.libraries.library_parts import Feature, Preset, counted, reversed_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["PRESETS"]

_M64: Final = (1 << 64) - 1
_SIGN: Final = 0x80
_EXTENSION: Final = _M64 ^ 0xFF


def _features(text: str, _: Choices) -> list[Feature]:
    return [(word.encode(), 1) for word in text.split()]


def _hash(feature: bytes) -> int:
    """FNV-1a as its C code has it: `char` is signed, so bytes from 0x80 on flip the high bits."""
    value = 0xCBF29CE484222325
    for byte in feature:
        value ^= byte | _EXTENSION if byte & _SIGN else byte
        value = value * 0x100000001B3 & _M64
    return value


def _fold(features: Sequence[Feature], _: Choices) -> int:
    """Sum i lands in bit 64 - i, since the C code shifts after each bit: sum 0 is lost."""
    value = counted([_hash(feature) for feature, _ in features], features, 64, tie_one=True)
    return reversed_bits(value, 64) << 1 & _M64


PRESETS: Final = {
    "scrapinghub": Preset(
        "scrapinghub/python-simhash: FNV-1a, ties are 1, order reversed; words at white space",
        _features,
        _fold,
        (64,),
        "github.com/scrapinghub/python-simhash",
    )
}
