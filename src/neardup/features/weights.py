"""Weights of a document's features, in units of 2**-16, and the choice of those that are kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import RecipeError
from neardup.features.hashes import custom_key
from neardup.features.keyword_weights import text_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.features.choices import Choices

    WeightFunction = Callable[[list[str], dict[str, int]], Mapping[str, float]]

__all__ = ["check_weight", "custom_weight", "feature_weights"]

UNIT: Final = 1 << 16
KERNEL_WEIGHTS: Final = ("set", "count", "log", "tfidf")
MOST: Final = 1 << 30

_CUSTOM: Final[dict[str, WeightFunction]] = {}


def custom_weight(name: str, version: str, function: WeightFunction) -> str:
    """Register a caller's own weights; the result is what a recipe takes as `weight`.

    Name and version enter the recipe's digest, so change the version when the function changes.

    Args:
        name: What they are called.
        version: Which version of them.
        function: Takes the tokens of a document and a dict from each distinct feature to its
            count; gives a weight, 0 or more, for each feature. One that is left out counts 0.

    Raises:
        RecipeError: If name or version are not plain words, or `function` cannot be called.

    Example:
        >>> from neardup import Recipe, custom_weight, fingerprint
        >>> def lengths(tokens, counts):
        ...     return {feature: len(feature) for feature in counts}
        >>> recipe = Recipe(ngram=1, weight=custom_weight("length", "1", lengths))
        >>> fingerprint("a longer word", recipe) is not None
        True
    """
    key = custom_key(name, version, "weight", function)
    _CUSTOM[key] = function
    return key


def check_weight(recipe: Choices) -> None:
    """Refuse a weight that a recipe cannot have, and what does not go with it.

    Raises:
        RecipeError: For an unknown weight, or for document frequencies that are missing or unused.
    """
    weight, names = recipe.weight, (*KERNEL_WEIGHTS, "textrank")
    if not isinstance(weight, str) or weight not in (*names, *_CUSTOM):
        if isinstance(weight, str) and "@" in weight:
            raise RecipeError(f"weight is {weight!r}: register it first with neardup.custom_weight")
        raise RecipeError(f"weight is {weight!r}: use one of {', '.join(names)}")
    if weight == "tfidf" and recipe.idf is None:
        raise RecipeError(
            "weight is 'tfidf': pass idf, the digest of neardup.DocumentFrequencies, or 'jieba'"
        )
    if recipe.idf is not None and not isinstance(recipe.idf, str):
        raise RecipeError(f"idf is {recipe.idf!r:.60}: pass the digest of a table, or 'jieba'")
    if weight != "tfidf" and recipe.idf is not None:
        raise RecipeError(f"idf is {recipe.idf!r}: only the weight tfidf uses it")
    if recipe.missing not in ("default", "error"):
        raise RecipeError(f"missing is {recipe.missing!r}: use default or error")
    if weight != "tfidf" and recipe.missing != "default":
        raise RecipeError(f"missing is {recipe.missing!r}: only the weight tfidf uses it")


def feature_weights(
    tokens: Sequence[str], features: Sequence[str], recipe: Choices
) -> dict[str, int]:
    """Weigh the distinct features of a document in units of 2**-16, the heaviest `top` of them.

    Args:
        tokens: Of the document.
        features: Its features, repeats included.
        recipe: Its weight, idf and top.

    Returns:
        Units of each kept feature, above 0, in order of first occurrence.

    Raises:
        RecipeError: If a function of the caller gives a weight that cannot be, or a feature is not
            in the table of document frequencies and the recipe calls that an error.

    Example:
        >>> from neardup import Recipe
        >>> feature_weights(["a", "b", "a"], ["a", "b", "a"], Recipe(weight="count", top=1))
        {'a': 131072}
    """
    counts = Counter(features)
    if recipe.weight in ("set", "count", "log"):
        kept = _heaviest(counts, recipe.top)
        return {feature: _units_of_count(count, recipe.weight) for feature, count in kept.items()}
    if recipe.weight == "tfidf":
        from neardup.features.frequency_table import table_of

        units = table_of(recipe).units_of(list(counts), error=recipe.missing == "error")
        weights = {x: count * each for (x, count), each in zip(counts.items(), units, strict=True)}
    elif recipe.weight == "textrank":
        weights = {x: max(1, rounded(rank)) for x, rank in text_rank(features).items()}
    else:
        weights = _custom_weights(tokens, counts, recipe.weight)
    return _heaviest(weights, recipe.top)


def rounded(weight: float) -> int:
    """Give a weight in units of 2**-16, the nearest; halves go up."""
    return math.floor(weight * UNIT + 0.5)


def _heaviest(weights: Mapping[str, int], top: int | None) -> dict[str, int]:
    if top is None or len(weights) <= top:
        return dict(weights)
    chosen = set(sorted(weights, key=weights.__getitem__, reverse=True)[:top])
    return {feature: units for feature, units in weights.items() if feature in chosen}


def _units_of_count(count: int, weight: str) -> int:
    if weight == "set":
        return UNIT
    return count * UNIT if weight == "count" else rounded(1.0 + math.log(count))


def _custom_weights(
    tokens: Sequence[str], counts: Mapping[str, int], weight: str
) -> dict[str, int]:
    if weight not in _CUSTOM:
        raise RecipeError(f"weight is {weight!r}: register it first with neardup.custom_weight")
    result: Any = _CUSTOM[weight](list(tokens), dict(counts))
    if not isinstance(result, Mapping):
        raise RecipeError(f"weight {weight} gave {result!r:.60}: give a dict of weights by feature")
    for feature, value in result.items():
        if feature not in counts:
            raise RecipeError(
                f"weight {weight} gave {feature!r:.60}, which is not a feature of the text"
            )
        _check_number(weight, feature, value)
    weights = {feature: rounded(float(result.get(feature, 0.0))) for feature in counts}
    return {feature: units for feature, units in weights.items() if units}


def _check_number(weight: str, feature: str, value: Any) -> None:
    try:
        right = 0 <= float(value) <= MOST
    except (TypeError, ValueError):
        right = False
    if not right:
        raise RecipeError(
            f"weight {weight} gave {value!r} for {feature!r:.60}: use numbers from 0 to {MOST:,}"
        )
