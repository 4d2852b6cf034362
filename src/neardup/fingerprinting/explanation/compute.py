"""Make explanations, from the functions that make fingerprints."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from neardup.errors import UsageError
from neardup.features.hashes import expanded, find_hash, hash_features
from neardup.features.rewrite import rewritten
from neardup.features.text import text_array, text_blocks
from neardup.features.tokens import document_tokens, features_of
from neardup.fingerprinting.explanation.comparison import side_recipes
from neardup.fingerprinting.explanation.explanations import (
    DifferingBit,
    Explanation,
    Feature,
    PairExplanation,
    Pull,
)
from neardup.fingerprinting.fingerprints import fingerprint
from neardup.fingerprinting.libraries.library_parts import real_sums
from neardup.fingerprinting.majority import weight_of_ones
from neardup.fingerprinting.plain import weighted_features
from neardup.fingerprinting.values import distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["explain"]

_UNIT: Final = 1 << 16
_PULLS_A_BIT: Final = 3


@overload
def explain(
    text: str,
    other: None = None,
    recipe: Recipe | None = None,
    *,
    show: int = 20,
    top: int | Sequence[int | None] | None = None,
) -> Explanation: ...


@overload
def explain(
    text: str,
    other: str,
    recipe: Recipe | None = None,
    *,
    show: int = 20,
    top: int | Sequence[int | None] | None = None,
) -> PairExplanation: ...


def explain(
    text: str,
    other: str | None = None,
    recipe: Recipe | None = None,
    *,
    show: int = 20,
    top: int | Sequence[int | None] | None = None,
) -> Explanation | PairExplanation:
    """Show how a text's fingerprint comes about, or why those of two texts differ.

    Args:
        text: The document.
        other: Another one; the result then says which features pull the differing bits apart.
        recipe: The recipe; by default Recipe(). Presets are explained too.
        show: Features that the printed tables show; the result holds all of them.
        top: As for `compare`: how many of the heaviest features to keep, also of each text.

    Returns:
        A frozen value that prints as a table, shows itself in a notebook, and has `to_dict`.

    Raises:
        UsageError: If something is not a text, or `show` is below 1.

    Example:
        >>> from neardup import Recipe
        >>> print(explain("to be or not to be", recipe=Recipe(ngram=1, weight="count", bits=8)))
        4 features: words, ngram 1, weight count, hash xxh3, 8 bits
        feature  count  weight  hash bits 7 to 0
        to           2       2  11111011
        be           2       2  00111100
        or           1       1  01000011
        not          1       1  10101001
        sum > 0                 00111001
        sums, bits 7 to 0: 0 0 4 2 4 -2 0 2
        fingerprint 39
    """
    for value in (text,) if other is None else (text, other):
        if not isinstance(value, str):
            raise UsageError(f"text is {type(value).__name__}, not str: {value!r:.60}")
    if not isinstance(show, int) or show < 1:
        raise UsageError(f"show is {show!r}: use a whole number from 1 up")
    if other is None and not isinstance(top, int | None):
        raise UsageError(f"top is {top!r}: pass one number for one text")
    first, second = side_recipes(recipe, top)
    if other is None:
        return _explain(text, first, show)
    return _explain_pair(_explain(text, first, show), _explain(other, second, show))


@dataclass(frozen=True, slots=True)
class _Weighted:
    """The features of a document in order of first occurrence, and what they fold to."""

    features: list[Feature]
    value: int | None
    sums: list[float]


def _explain(text: str, recipe: Recipe, show: int) -> Explanation:
    tally = _preset_features(text, recipe) if recipe.preset else _own_features(text, recipe)
    right = tally.value is None or all(
        total == 0 or (total > 0) == bool(tally.value >> bit & 1)
        for bit, total in enumerate(tally.sums)
    )
    return Explanation(
        recipe=recipe,
        features=tuple(sorted(tally.features, key=lambda feature: -feature.weight)),
        sums=tuple(tally.sums) if right else None,
        fingerprint=tally.value,
        show=show,
    )


def _own_features(text: str, recipe: Recipe) -> _Weighted:
    names: list[bytes] = []
    weights: dict[int, int] = {}
    for block in text_blocks(text_array([text]).chunk(0)):
        whole = rewritten(block, recipe)
        place = whole.data, whole.offsets[0], whole.offsets[1]
        tokens = document_tokens(*place, recipe)
        names += [name.encode("utf-8", "replace") for name in features_of(tokens, recipe)]
        weights.update(zip(*weighted_features(*place, recipe), strict=True))
    hash_ = find_hash(recipe.hash)
    hashes = hash_features(hash_, names, recipe.seed)
    counts, name_of = Counter(hashes), dict(zip(reversed(hashes), reversed(names), strict=True))
    features = [
        Feature(_shown(name_of[h]), counts[h], units / _UNIT, expanded(h, hash_.bits, recipe.bits))
        for h, units in weights.items()
    ]
    value = fingerprint(text, recipe)
    return _Weighted(features, value, _sums(features, recipe.bits))


def _preset_features(text: str, recipe: Recipe) -> _Weighted:
    """A preset's features; the fold of a single one of weight 1 is its hash, as the sums see it."""
    from neardup.fingerprinting.libraries.table import PRESETS, fingerprint_text

    preset = PRESETS[str(recipe.preset)]
    pairs = preset.features(text, recipe)
    counts = Counter(name for name, _ in pairs)
    hashes = {name: preset.fold([(name, 1)], recipe) for name in counts}
    weights: dict[bytes, float] = {}
    for name, weight in pairs:
        weights[name] = weights.get(name, 0) + weight
    in_order = [Feature("", 1, weight, hashes[name]) for name, weight in pairs]
    features = [
        Feature(_shown(name), counts[name], weight, hashes[name])
        for name, weight in weights.items()
    ]
    return _Weighted(features, fingerprint_text(text, recipe), _sums(in_order, recipe.bits))


def _sums(features: Sequence[Feature], bits: int) -> list[float]:
    units = [feature.weight * _UNIT for feature in features]
    if all(each == int(each) for each in units):
        whole = [int(each) for each in units]
        ones = weight_of_ones([feature.hash for feature in features], whole, bits)
        return ((2 * ones - sum(whole)) / _UNIT).tolist()  # type: ignore[no-any-return]
    # A preset's weights of any fraction are summed in its library's order.
    return real_sums([x.hash for x in features], [x.weight for x in features], bits)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _explain_pair(first: Explanation, second: Explanation) -> PairExplanation:
    if first.fingerprint is None or second.fingerprint is None:
        return PairExplanation(first, second, None, 0, (), ())
    different = first.fingerprint ^ second.fingerprint
    bits = [bit for bit in reversed(range(first.bits)) if different >> bit & 1]
    uneven, shared = _uneven(first, second)
    explained = first.sums is not None and second.sums is not None
    return PairExplanation(
        first=first,
        second=second,
        distance=distance(first.fingerprint, second.fingerprint),
        shared=shared,
        pulls=_pulls(uneven, len(bits)) if explained else (),
        differing=_differing(uneven, bits, first, second) if explained else (),
    )


@dataclass(frozen=True, slots=True)
class _Uneven:
    """A feature with its weights in both documents.

    Attributes:
        text: The feature.
        weights: In the first document and in the second.
        apart: The differing bits, as a mask, that it pulls apart; it holds the others together.
    """

    text: str
    weights: tuple[float, float]
    apart: int

    @property
    def gain(self) -> float:
        """The amount by which it changes the difference of the sums of each differing bit."""
        return abs(self.weights[0] - self.weights[1])


def _uneven(first: Explanation, second: Explanation) -> tuple[list[_Uneven], int]:
    """The features that do not weigh the same in both, and how many do."""
    value, different = first.fingerprint or 0, (first.fingerprint or 0) ^ (second.fingerprint or 0)
    weights: dict[Any, list[float]] = {}
    features: dict[Any, Feature] = {}
    for side, explanation in enumerate((first, second)):
        for feature in explanation.features:
            key = feature.text, feature.hash
            features.setdefault(key, feature)
            weights.setdefault(key, [0.0, 0.0])[side] = feature.weight
    uneven = []
    for key, (one, other) in weights.items():
        if one != other:
            # It pulls apart where its bit is the first one's and it weighs more there, or neither.
            against = value ^ features[key].hash if one < other else ~(value ^ features[key].hash)
            uneven.append(_Uneven(features[key].text, (one, other), against & different))
    return uneven, len(weights) - len(uneven)


def _pulls(uneven: list[_Uneven], count: int) -> tuple[Pull, ...]:
    pulls = []
    for each in uneven:
        apart = each.apart.bit_count()
        pulls.append(Pull(each.text, each.weights, apart, (2 * apart - count) * each.gain))
    return tuple(sorted(pulls, key=lambda pull: (-pull.total, -max(pull.weights))))


def _differing(
    uneven: list[_Uneven], bits: list[int], first: Explanation, second: Explanation
) -> tuple[DifferingBit, ...]:
    strongest = sorted(uneven, key=lambda each: -each.gain)
    counts = weight_of_ones([each.apart for each in uneven], None, first.bits).tolist()
    rows = []
    for bit in bits:
        apart = (each for each in strongest if each.apart >> bit & 1)
        pulls = tuple((each.text, each.gain) for each in itertools.islice(apart, _PULLS_A_BIT))
        sums = (first.sums or ())[bit], (second.sums or ())[bit]
        rows.append(DifferingBit(bit, sums, pulls, max(0, counts[bit] - _PULLS_A_BIT)))
    return tuple(rows)
