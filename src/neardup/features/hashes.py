"""The feature hashes by name: what each is, how wide, and whether SimHash can trust its bits.

docs/reference/hashes.md measures them. Those with a kernel code are computed in
kernels/features/byte_hashes.py.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import RecipeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "HASHES",
    "Hash",
    "custom_hash",
    "custom_key",
    "expanded",
    "find_hash",
    "hash_features",
    "joined",
    "spread",
]

_M64: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Hash:
    """One feature hash.

    Attributes:
        name: As a recipe names it.
        bits: Width of the value.
        kernel: Its code in kernels/features/byte_hashes.py; None where `function` computes it.
        seed_bits: Width of the seed; 0 if it takes none.
        function: (bytes, seed) -> int below 2**bits; None where a kernel computes it.
        unfit: Why SimHash should not rest on its bits as they are, by docs/reference/hashes.md;
            None if it may.
    """

    name: str
    bits: int
    kernel: int | None = None
    seed_bits: int = 0
    function: Callable[[bytes, int], int] | None = None
    unfit: str | None = None


def _digest(name: str) -> Callable[[bytes, int], int]:
    def function(feature: bytes, seed: int) -> int:  # noqa: ARG001  # these take no seed
        return int.from_bytes(hashlib.new(name, feature, usedforsecurity=False).digest(), "big")

    return function


def _blake2b(feature: bytes, seed: int) -> int:
    key = seed.to_bytes(8, "little") if seed else b""
    return int.from_bytes(hashlib.blake2b(feature, key=key).digest(), "big")


_SHORT_TOKENS: Final = "its high bits hardly depend on the last bytes of a short token"

_ALL: Final = (
    Hash("xxh3", 64, kernel=0, seed_bits=64),
    Hash("xxh64", 64, kernel=1, seed_bits=64),
    Hash("fnv1", 64, kernel=2, unfit=_SHORT_TOKENS),
    Hash("fnv1a", 64, kernel=3, unfit=_SHORT_TOKENS),
    Hash("fnv1a32", 32, kernel=4, unfit=_SHORT_TOKENS),
    Hash("murmur3", 64, kernel=5, seed_bits=32),
    Hash("murmur3-32", 32, kernel=6, seed_bits=32),
    Hash("jenkins", 64, kernel=7, seed_bits=64),
    Hash("one-at-a-time", 32, kernel=8, seed_bits=32),
    Hash("siphash", 64, kernel=9, seed_bits=64),
    Hash("crc32", 32, kernel=10),
    Hash("phash2", 32, kernel=11),
    Hash("blake2b", 512, seed_bits=64, function=_blake2b),
    Hash("md5", 128, function=_digest("md5")),
    Hash("sha1", 160, function=_digest("sha1")),
    Hash("sha256", 256, function=_digest("sha256")),
)

HASHES: Final = {value.name: value for value in _ALL}
"""Hash by name. `murmur3` is the first 64 bits of the x64 128-bit variant, `murmur3-32` the x86
32-bit one; `jenkins` is lookup3's hashlittle2 as pc << 32 | pb; `siphash` is SipHash-2-4 with the
key (seed, 0); `phash2` is erlang:phash2(Binary, 2**32); digests are read big-endian."""

_CUSTOM: Final[dict[str, Hash]] = {}


def custom_hash(name: str, version: str, function: Callable[[bytes], int], bits: int = 64) -> str:
    """Register a caller's own hash; the result is what a recipe takes as `hash`.

    Name and version enter the recipe's digest, so change the version when the function changes.

    Args:
        name: What it is called.
        version: Which version of it.
        function: Takes the UTF-8 of a feature, gives an int from 0 to 2**bits - 1.
        bits: Width of the values.

    Raises:
        RecipeError: If name or version are not plain words, `function` cannot be called or `bits`
            is less than 1.

    Example:
        >>> from neardup import Recipe, custom_hash, fingerprint
        >>> first = custom_hash("first-byte", "1", lambda feature: feature[0], bits=8)
        >>> fingerprint("a", Recipe(hash=first, bits=8)) == ord("a")
        True
    """
    key = custom_key(name, version, "hash", function)
    if not isinstance(bits, int) or bits < 1:
        raise RecipeError(f"the hash {name} has bits {bits!r:.60}: use a whole number from 1 up")
    _CUSTOM[key] = Hash(key, bits, function=lambda feature, _: function(feature))
    return key


def custom_key(name: str, version: str, what: str, function: object) -> str:
    """Give the name under which a recipe knows a caller's function.

    Raises:
        RecipeError: If name or version are not plain words, or it cannot be called.
    """
    for word in (name, version):
        if not isinstance(word, str) or not word.replace("-", "").replace(".", "").isalnum():
            raise RecipeError(
                f"{word!r:.60}: name a {what} and its version by letters, digits, - and ."
            )
    if not callable(function):
        raise RecipeError(f"the {what} {name} is {function!r:.60}: pass a function")
    return f"{name}@{version}"


def find_hash(name: str) -> Hash:
    """Look a hash up by the name that a recipe gives it.

    Raises:
        RecipeError: If there is no such hash; similar names are suggested.

    Example:
        >>> find_hash("sha1").bits
        160
    """
    hash_ = HASHES.get(name) or _CUSTOM.get(name)
    if hash_ is not None:
        return hash_
    if "@" in name:
        raise RecipeError(f"hash is {name!r}: register it first with neardup.custom_hash")
    near = difflib.get_close_matches(name.lower(), HASHES, n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise RecipeError(f"hash is {name!r}: {hint}use one of {', '.join(HASHES)}")


def hash_features(hash_: Hash, features: Sequence[bytes], seed: int = 0) -> list[int]:
    """Hash each feature; ints below 2**found.bits.

    Raises:
        RecipeError: If a caller's function gives something else.

    Example:
        >>> hash_features(HASHES["fnv1a32"], [b"", b"a"])
        [2166136261, 3826002220]
    """
    if hash_.kernel is not None:
        return _hash_in_kernel(hash_.kernel, features, seed)
    assert hash_.function is not None  # noqa: S101  # a hash has one or the other
    values = [hash_.function(feature, seed) for feature in features]
    for value in values:
        if not isinstance(value, int) or not 0 <= value < 1 << hash_.bits:
            raise RecipeError(
                f"hash {hash_.name} gave {value!r}: use whole numbers below 2**{hash_.bits}"
            )
    return values


def expanded(value: int, width: int, bits: int) -> int:
    """Make a hash of `width` bits `bits` wide.

    The low bits where it is wide enough. Else word 0 is the hash itself (its low 64 bits) if it has
    64 bits or more, and splitmix64's first output for it if it has fewer; word j is splitmix64's
    j-th output for word 0.

    Example:
        >>> expanded(0xABCD, 64, 8), expanded(5, 64, 128) & (1 << 64) - 1
        (205, 5)
    """
    if bits <= width:
        return value & (1 << bits) - 1
    base = value & _M64 if width >= 64 else spread(value)
    words = (_splitmix64(base, word) if word else base for word in range(-(-bits // 64)))
    return sum(word << 64 * i for i, word in enumerate(words)) & (1 << bits) - 1


def spread(value: Any) -> Any:
    """Spread a hash of less than 64 bits, or a uint64 array of them, over 64.

    Example:
        >>> hex(spread(0))
        '0xe220a8397b1dcdaf'
    """
    return _splitmix64(value, 1)


def _splitmix64(state: Any, steps: int) -> Any:
    z = (state + steps * 0x9E3779B97F4A7C15) & _M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _M64
    return z ^ z >> 31


def _hash_in_kernel(kernel: int, features: Sequence[bytes], seed: int) -> list[int]:
    import numpy as np

    from neardup.kernels.features.byte_hashes import hash_slices

    data, offsets = joined(features)
    values: list[int] = hash_slices(kernel, data, offsets, np.uint64(seed)).tolist()
    return values


def joined(features: Sequence[bytes]) -> tuple[Any, Any]:
    """Lay features end to end; uint8 data and int64 offsets (n + 1,)."""
    import numpy as np

    offsets = np.zeros(len(features) + 1, np.int64)
    np.cumsum([len(feature) for feature in features], out=offsets[1:])
    return np.frombuffer(b"".join(features), np.uint8), offsets
