"""One document in plain Python: its features, weights and fold, for hashes that no kernel has."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from neardup.features.hashes import find_hash, hash_features
from neardup.features.tokens import document_tokens, features_of, in_kernel
from neardup.features.weights import feature_weights
from neardup.fingerprinting.majority import _ONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["hashed_features", "text_features", "weighted_features"]


def text_features(data: Any, begin: int, end: int, recipe: Recipe) -> list[bytes]:
    """Give the features of the UTF-8 text data[begin:end], repeats included, in order."""
    from neardup.features.tokens import cutting
    from neardup.kernels.features.slices import feature_slices

    cut = cutting(recipe, recipe.tokens == "chars", recipe.ngram)
    buffer, first, last = feature_slices(data, begin, end, cut)
    whole = buffer.tobytes()
    return [whole[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]


def weighted_features(
    data: Any, begin: int, end: int, recipe: Recipe
) -> tuple[list[int], list[int]]:
    """Give the distinct feature hashes of data[begin:end] and their weights; for any recipe.

    Both as `hashed_features`; features of equal hash weigh what they weigh together.
    """
    plain = in_kernel(recipe.tokens) and recipe.weight in ("set", "count", "log")
    if plain and recipe.top is None and recipe.stopwords is None:
        return hashed_features(text_features(data, begin, end, recipe), recipe)
    tokens = document_tokens(data, begin, end, recipe)
    weights = feature_weights(tokens, features_of(tokens, recipe), recipe)
    features = [feature.encode("utf-8", "replace") for feature in weights]
    hashes = hash_features(find_hash(recipe.hash), features, recipe.seed)
    sums: dict[int, int] = {}
    for hash_, units in zip(hashes, weights.values(), strict=True):
        sums[hash_] = _ONE if recipe.weight == "set" else sums.get(hash_, 0) + units
    return list(sums), list(sums.values())


def hashed_features(features: Iterable[bytes], recipe: Recipe) -> tuple[list[int], list[int]]:
    """Give the distinct feature hashes, as wide as the hash is, and weights in units of 2**-16.

    Features are told apart by their hashes, as in the kernel.
    """
    hashes = hash_features(find_hash(recipe.hash), list(features), recipe.seed)
    counts = Counter(hashes)
    return list(counts), [_weight(count, recipe.weight) for count in counts.values()]


def _weight(count: int, weight: str) -> int:
    if weight == "set":
        return _ONE
    if weight == "count":
        return count * _ONE
    return math.floor((1.0 + math.log(count)) * _ONE + 0.5)
