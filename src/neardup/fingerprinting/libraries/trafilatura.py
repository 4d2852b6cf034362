"""trafilatura's Simhash: a sample of the tokens, BLAKE2b of 8 bytes, ties are 1."""

from __future__ import annotations

import functools
import hashlib
import string
import sys
import unicodedata
from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.libraries.library_parts import Feature, Preset, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["PRESETS"]


@functools.cache
def _punctuation() -> dict[int, str]:
    return {
        code: " "
        for code in range(sys.maxunicode)
        if unicodedata.category(chr(code))[0] == "P"
    }  # fmt: skip


def _sample(text: str, length: int) -> list[str]:
    """Tokens long enough to be telling, as long as half the width of them are left."""
    stripped = (token.strip(string.punctuation) for token in text.split())
    tokens = [token for token in stripped if token.isalnum()]
    if not tokens:
        tokens = [token for token in text.translate(_punctuation()).split() if token.isalnum()]
    for least in (5, 4, 3, 2):
        sample = [token for token in tokens if len(token) >= least]
        if len(sample) >= length / 2:
            return sample
    return tokens


def _features(text: str, recipe: Choices) -> list[Feature]:
    return [(token.encode(), 1) for token in _sample(text, recipe.bits)]


def _fold(features: Sequence[Feature], recipe: Choices) -> int:
    hashes = [
        int.from_bytes(hashlib.blake2b(feature, digest_size=8).digest(), "big")
        for feature, _ in features
    ]
    return counted(hashes, features, recipe.bits, tie_one=True)


PRESETS: Final = {
    "trafilatura": Preset(
        "trafilatura's Simhash: long tokens, BLAKE2b, counts, ties are 1",
        _features,
        _fold,
        range(1, 65),
        "github.com/adbar/trafilatura 2.3.1",
    )
}
