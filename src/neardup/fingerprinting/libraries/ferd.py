"""ferd/simhash (Erlang): windows of two bytes; SHA-1, MD5 or phash2; bits reversed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from neardup.features.hashes import HASHES, hash_features
from neardup.fingerprinting.libraries.library_parts import (
    Aliases,
    Feature,
    Preset,
    counted,
    reversed_bits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["ALIASES", "PRESETS"]

_HASH_OF: Final = {160: "sha1", 128: "md5", 32: "phash2"}


def _features(text: str, _: Choices) -> list[Feature]:
    data = text.encode()
    # The library begins at the second window and stops before the last one.
    counts = Counter(data[i : i + 2] for i in range(1, len(data) - 2))
    return sorted(counts.items())


def _fold(features: Sequence[Feature], recipe: Choices) -> int:
    hash_ = HASHES[_HASH_OF[recipe.bits]]
    hashes = hash_features(hash_, [feature for feature, _ in features])
    return reversed_bits(counted(hashes, features, recipe.bits, tie_one=True), recipe.bits)


PRESETS: Final = {
    "ferd": Preset(
        "ferd/simhash (Erlang): byte pairs; bits 160 SHA-1, 128 MD5, 32 phash2; reversed",
        _features,
        _fold,
        tuple(_HASH_OF),
        "github.com/ferd/simhash",
        {"bits": 160},
    )
}

ALIASES: Final[Aliases] = {
    f"ferd-{name}": ("ferd", {"bits": bits}) for bits, name in _HASH_OF.items()
}
