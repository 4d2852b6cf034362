"""The heart of SimHash in plain Python: the majority of the weighted bits of hashes."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.features.choices import MAX_BITS
from neardup.features.hashes import expanded, find_hash, hash_features

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["hashes_and_units", "majority", "simhash", "weight_of_ones"]


_ONE: Final = 1 << 16


_ROWS: Final = 1 << 12


_EXACT: Final = 1 << 53


_SAFE: Final = 1 << 62


def hashes_and_units(features: Any) -> tuple[list[int], list[int]]:
    """Check (hash, weight) pairs of the caller; the hashes, and the weights in units of 2**-16.

    Raises:
        UsageError: For what is not a pair of a whole number from 0 up and a finite number from 0
            up.

    Example:
        >>> hashes_and_units([(5, 1), (6, 0.5)])
        ([5, 6], [65536, 32768])
    """
    hashes, units = [], []
    for at, pair in enumerate(_listed(features)):
        try:
            hash_value, weight = pair
        except (TypeError, ValueError):
            raise UsageError(
                f"features[{at}] is {pair!r:.60}: pass a pair of a hash and a weight"
            ) from None
        hashes.append(_checked_hash(hash_value, at))
        units.append(_checked_units(weight, at))
    return hashes, units


def _listed(features: Any) -> list[Any]:
    try:
        return list(features)
    except TypeError:
        raise UsageError(f"features is {features!r:.60}: pass (hash, weight) pairs") from None


def _checked_hash(hash_value: Any, at: int) -> int:
    if isinstance(hash_value, str | bytes):
        raise UsageError(
            f"the hash of features[{at}] is {hash_value!r:.60}: to hash words, name how, as in"
            " hash='xxh3'"
        )
    try:
        value = operator.index(hash_value)
    except TypeError:
        value = -1
    if value < 0:
        raise UsageError(
            f"the hash of features[{at}] is {hash_value!r:.60}: use whole numbers from 0 up;"
            " a signed 64-bit hash is hash % 2**64"
        )
    return value


def _checked_units(weight: Any, at: int) -> int:
    try:
        if math.isfinite(weight) and weight >= 0:
            # Whole numbers stay exact, and no float overflows.
            whole = isinstance(weight, int) or abs(weight) >= _EXACT
            return int(weight) * _ONE if whole else round(float(weight) * _ONE)
    except OverflowError:  # an int that is not a float
        if weight > 0:
            return int(weight) * _ONE
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f"the weight of features[{at}] is {weight!r:.60}: use finite numbers from 0 up;"
        " vectors may have negative ones, neardup.project folds them"
    )


def majority(
    hashes: Sequence[int], weights: Sequence[int] | None, bits: int, *, tie_one: bool = False
) -> int:
    """Fold hashes: bit j is 1 where the weights of the hashes with bit j exceed those without.

    Args:
        hashes: Ints, of which the low `bits` bits count.
        weights: Ints, one a hash; by default all 1.
        bits: Width, 1 or more.
        tie_one: The bit where both weigh the same, as they do where there are no hashes.

    Example:
        >>> bin(majority([0b1010, 0b1000, 0b0111], None, 4))
        '0b1010'
    """
    ones = weight_of_ones(hashes, weights, bits)
    total = len(hashes) if weights is None else sum(weights)
    won = np.asarray(2 * ones >= total if tie_one else 2 * ones > total, np.bool_)
    return int.from_bytes(np.packbits(won, bitorder="little").tobytes(), "little")


def weight_of_ones(hashes: Sequence[int], weights: Sequence[int] | None, bits: int) -> Any:
    """Give for each bit the weight of the hashes that have it; (bits,), int64 or, if large, object.

    Args:
        hashes: Ints, of which the low `bits` bits count.
        weights: Ints, one a hash; by default all 1.
        bits: Width, 1 or more.

    Example:
        >>> weight_of_ones([0b10, 0b11], [5, 1], 2).tolist()
        [1, 6]
    """
    size = -(-bits // 8)
    mask = (1 << bits) - 1
    large = weights is not None and sum(map(abs, weights)) >= _SAFE
    kind: Any = object if large else np.int64
    sums = np.zeros(8 * size, kind)
    for at in range(0, len(hashes), _ROWS):
        rows = hashes[at : at + _ROWS]
        packed = b"".join((value & mask).to_bytes(size, "little") for value in rows)
        flat = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        ones = flat.reshape(len(rows), -1)
        if weights is None:
            sums += ones.sum(axis=0, dtype=np.int64)
        else:
            sums += np.array(weights[at : at + _ROWS], kind) @ ones
    return sums[:bits]


def simhash(
    features: Iterable[tuple[int | str | bytes, float]],
    bits: int = 64,
    *,
    hash: str | None = None,  # noqa: A002
) -> int:
    """Fold weighted features into a fingerprint: bit j is 1 where the weights with bit j lead.

    Args:
        features: Hashes (ints, of which the low `bits` bits count), or words if `hash` is given,
            each with a finite weight from 0 up, which is rounded to a multiple of 2**-16. For
            vectors, whose numbers may be negative, see `project`.
        bits: Width of the result, 1 or more.
        hash: The feature hash of the words by name, as in a recipe, such as "xxh3" or "fnv1a"; a
            hash that is too narrow is expanded as there.

    Returns:
        The fingerprint; 0 for no features.

    Raises:
        UsageError: If a hash is not a whole number or negative, a weight is negative or not finite,
            something is not such a pair, there are words without a `hash` or numbers with one, or
            `bits` is out of range.
        RecipeError: For an unknown `hash`; near ones are suggested.

    Example:
        >>> simhash([(0b1010, 1), (0b1000, 1), (0b0111, 1)], bits=4)
        10
        >>> f"{simhash([('harbour', 2.5), ('monday', 1)], hash='fnv1a'):x}"
        '66223055b061ec68'
    """
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MAX_BITS:
        raise UsageError(f"bits is {bits!r}: use a whole number from 1 to {MAX_BITS:,}")
    if hash is not None:
        features = _hashed(features, hash, bits)
    hashes, units = hashes_and_units(features)
    return majority(hashes, units, bits)


def _hashed(features: Any, name: str, bits: int) -> list[tuple[int, float]]:
    """The pairs with the hash of each word in its place."""
    hash_ = find_hash(name)
    words, weights = [], []
    for at, pair in enumerate(_listed(features)):
        word = pair[0] if isinstance(pair, tuple | list) and len(pair) == 2 else None
        if not isinstance(word, str | bytes):
            raise UsageError(
                f"features[{at}] is {pair!r:.60}: with hash={name!r} pass pairs of a word and a"
                " weight"
            )
        words.append(word.encode("utf-8", "replace") if isinstance(word, str) else word)
        weights.append(pair[1])
    hashes = (expanded(value, hash_.bits, bits) for value in hash_features(hash_, words))
    return list(zip(hashes, weights, strict=True))
