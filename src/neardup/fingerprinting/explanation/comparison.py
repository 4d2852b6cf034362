"""The similarity of two texts: estimated from fingerprints, and exact from features."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from neardup.documents.markup import warn_of_markup
from neardup.errors import UsageError
from neardup.features.rewrite import rewritten
from neardup.features.text import text_array, text_blocks
from neardup.fingerprinting.explanation.explanations import NOTHING_MATCHES, hexadecimal
from neardup.fingerprinting.fingerprints import fingerprint
from neardup.fingerprinting.plain import weighted_features
from neardup.fingerprinting.recipe import Recipe, recipe_of
from neardup.fingerprinting.values import distance
from neardup.runtime.printed_tables import html_table
from neardup.similarity.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Comparison", "compare", "cosine_interval", "side_recipes"]

Z: Final = 1.96
"""Standard deviations on both sides of the mean that hold 19 of 20 cases."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The similarity of two texts; fields that a text without tokens does not have are None.

    Prints as a few lines, and shows itself in a notebook.

    Attributes:
        recipes: How each was fingerprinted; they differ in `top` at most.
        fingerprints: Both, as hexadecimal digits.
        distance: Bits in which they differ.
        estimated_cosine: cos(pi * distance / bits), which is what a fingerprint measures.
        interval: Where the cosine lies in 19 of 20 cases, judged by the distance alone.
        cosine: Exact: of the vectors of the features' weights.
        features: Distinct features of each.
        shared: Distinct features in both.
        jaccard: shared / distinct features in either.
        containment: shared / distinct features of the smaller one.
        dice: shared / mean of the distinct features of both.

    Example:
        >>> import neardup as nd
        >>> found = nd.compare("one two three", "one two four", nd.Recipe(ngram=1))
        >>> found.shared, found.jaccard, found.to_dict()["features"]
        (2, 0.5, (3, 3))
    """

    recipes: tuple[Recipe, Recipe]
    fingerprints: tuple[str | None, str | None]
    distance: int | None
    estimated_cosine: float | None
    interval: tuple[float, float] | None
    cosine: float | None
    features: tuple[int, int]
    shared: int
    jaccard: float | None
    containment: float | None
    dice: float | None

    @property
    def bits(self) -> int:
        """Width of the fingerprints."""
        return self.recipes[0].bits

    def to_dict(self) -> dict[str, Any]:
        """All fields except the recipes, for `--json`."""
        fields = asdict(self)
        del fields["recipes"]
        return {"bits": self.bits} | fields

    def __str__(self) -> str:
        """Lines for a terminal."""
        heads = ["  ".join(head) for head in self._heads()]
        return "\n".join([*heads, *(f"{name:<11}  {value}" for name, value in self._rows())])

    def _repr_html_(self) -> str:
        return html_table([*self._heads(), *self._rows()])

    def _heads(self) -> Iterator[tuple[str, str, str]]:
        for name, value, features in zip("AB", self.fingerprints, self.features, strict=True):
            yield name, value or "(no tokens)", _plural(features, "feature")

    def _rows(self) -> Iterator[tuple[str, str]]:
        if self.distance is None or self.interval is None:
            yield "distance", f"none: {NOTHING_MATCHES}"
            return
        low, high = self.interval
        yield "distance", f"{self.distance} of {self.bits} bits"
        error = f"{low:.2f} to {high:.2f} in 19 of 20 cases at {self.bits} bits"
        yield "cosine", f"{self.estimated_cosine:.3f} estimated from the distance; {error}"
        if self.cosine is not None:
            yield "", f"{self.cosine:.3f} exact, of the features' weights"
        if self.jaccard is not None:
            shared = _plural(self.shared, "feature")
            yield "jaccard", f"{self.jaccard:.3f} exact, {shared} shared"
            yield "containment", f"{self.containment:.3f} exact"
            yield "dice", f"{self.dice:.3f} exact"


def compare(
    a: str,
    b: str,
    recipe: Recipe | None = None,
    *,
    top: int | Sequence[int | None] | None = None,
) -> Comparison:
    """Compare two texts: distance, cosine estimated and exact, Jaccard, containment, Dice.

    Args:
        a: One text.
        b: Another.
        recipe: The recipe; by default Recipe(). Presets can be compared too.
        top: How many of the heaviest features to keep, instead of the recipe's own `top`; a pair
            of numbers for `a` and for `b`.

    Returns:
        A frozen value that prints as a table, shows itself in a notebook, and has `to_dict`.

    Raises:
        UsageError: If something is not a text, or `top` is neither a number nor two.
        RecipeError: If the recipe does not take `top`.

    Example:
        >>> found = compare("one two three four", "one two three five", Recipe(ngram=1))
        >>> found.shared, found.jaccard, found.cosine
        (3, 0.6, 0.75)
    """
    for text in (a, b):
        if not isinstance(text, str):
            raise UsageError(f"text is {type(text).__name__}, not str: {text!r:.60}")
    warn_of_markup(*text_array([a, b]).chunks)
    recipes = side_recipes(recipe, top)
    values = [fingerprint(text, each) for text, each in zip((a, b), recipes, strict=True)]
    left, right = (_weights(text, each) for text, each in zip((a, b), recipes, strict=True))
    shared = len(left.keys() & right.keys())
    bits = recipes[0].bits
    apart = None if None in values else distance(*values)
    both = bool(left) and bool(right)
    digits = [None if value is None else hexadecimal(value, bits) for value in values]
    return Comparison(
        recipes=recipes,
        fingerprints=(digits[0], digits[1]),
        distance=apart,
        estimated_cosine=None if apart is None else math.cos(math.pi * apart / bits),
        interval=None if apart is None else cosine_interval(apart, bits),
        cosine=_cosine(left, right) if both else None,
        features=(len(left), len(right)),
        shared=shared,
        jaccard=_measured("jaccard", shared, left, right),
        containment=_measured("containment", shared, left, right),
        dice=_measured("dice", shared, left, right),
    )


def cosine_interval(apart: int, bits: int) -> tuple[float, float]:
    """The range of the cosine in 19 of 20 cases, if a number of bits differ.

    Each bit differs with probability angle / pi, so the interval is Wilson's for that share, turned
    into cosines. A bit is as likely as this only if it is as good as a random hyperplane, which
    takes some dozen features.

    Example:
        >>> [round(bound, 2) for bound in cosine_interval(3, 64)]
        [0.92, 1.0]
    """
    share, size = apart / bits, 1 + Z * Z / bits
    middle = (share + Z * Z / (2 * bits)) / size
    half = Z / size * math.sqrt(share * (1 - share) / bits + Z * Z / (4 * bits * bits))
    low, high = min(1.0, middle + half), max(0.0, middle - half)
    return math.cos(math.pi * low), math.cos(math.pi * high)


def side_recipes(
    recipe: Recipe | None, top: int | Sequence[int | None] | None
) -> tuple[Recipe, Recipe]:
    """The recipe of each of two texts.

    Raises:
        UsageError: If `top` is neither a number nor two.
        RecipeError: If the recipe does not take it.
    """
    chosen = recipe_of(recipe)
    sides = tuple(top) if isinstance(top, Sequence) and not isinstance(top, str) else (top, top)
    if len(sides) != 2:
        raise UsageError(f"top is {top!r}: pass a number, or one for each of the two texts")
    first, second = (chosen if each is None else replace(chosen, top=each) for each in sides)
    return first, second


def _weights(text: str, recipe: Recipe) -> dict[Any, float]:
    """The weight of each distinct feature: by hash, of a preset by the feature."""
    weights: dict[Any, float] = {}
    if recipe.preset is not None:
        from neardup.fingerprinting.libraries.table import PRESETS

        for name, weight in PRESETS[recipe.preset].features(text, recipe):
            weights[name] = weights.get(name, 0) + weight
        return weights
    for block in text_blocks(text_array([text]).chunk(0)):
        whole = rewritten(block, recipe)
        weighted = weighted_features(whole.data, whole.offsets[0], whole.offsets[1], recipe)
        weights.update(zip(*weighted, strict=True))
    return weights


def _measured(measure: str, shared: int, left: Sized, right: Sized) -> float | None:
    """The measure of two sets; None if one is empty."""
    if not left or not right:
        return None
    return float(MEASURES[measure].score(shared, len(left), len(right)))


def _cosine(left: dict[Any, float], right: dict[Any, float]) -> float | None:
    """The cosine of two vectors; None if one has no length."""
    product = sum(weight * right[name] for name, weight in left.items() if name in right)
    square_sums = [math.fsum(weight * weight for weight in each.values()) for each in (left, right)]
    if not all(square_sums):
        return None
    return min(1.0, product / math.sqrt(square_sums[0]) / math.sqrt(square_sums[1]))


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
