"""Make explanations, from the functions that make fingerprints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from neardup.errors import UsageError
from neardup.explanation.model import DifferingBit, Explanation, Feature, PairExplanation, Pull
from neardup.features import weighted_features
from neardup.fold import distance, fingerprint
from neardup.hashing import expanded, find_hash, hash_features
from neardup.recipe import Recipe, recipe_of
from neardup.rewrite import rewritten
from neardup.text import text_array, text_blocks
from neardup.tokens import document_tokens, features_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["explain"]

_UNIT: Final = 1 << 16
_PULLS_A_BIT: Final = 3


@overload
def explain(
    text: str, other: None = None, recipe: Recipe | None = None, *, show: int = 20
) -> Explanation: ...


@overload
def explain(
    text: str, other: str, recipe: Recipe | None = None, *, show: int = 20
) -> PairExplanation: ...


def explain(
    text: str, other: str | None = None, recipe: Recipe | None = None, *, show: int = 20
) -> Explanation | PairExplanation:
    """Show how a text's fingerprint comes about, or why those of two texts differ.

    Args:
        text: The document.
        other: Another one; the result then says which features pull the differing bits apart.
        recipe: How; Recipe() unless given. Presets are explained too.
        show: Features that the printed tables show; the result holds all of them.

    Returns:
        A frozen value that prints as a table, shows itself in a notebook, and has `to_dict`.

    Raises:
        UsageError: If something is not a text, or `show` is below 1.

    Example:
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
    recipe = recipe_of(recipe)
    if other is None:
        return _explain(text, recipe, show)
    return _explain_pair(_explain(text, recipe, show), _explain(other, recipe, show))


@dataclass(frozen=True, slots=True)
class _Weighted:
    """The features of a document in order of first occurrence, and what they fold to."""

    features: list[Feature]
    value: int | None
    sums: list[float]


def _explain(text: str, recipe: Recipe, show: int) -> Explanation:
    found = _preset_features(text, recipe) if recipe.preset else _own_features(text, recipe)
    right = found.value is None or all(
        total == 0 or (total > 0) == bool(found.value >> bit & 1)
        for bit, total in enumerate(found.sums)
    )
    return Explanation(
        recipe=recipe,
        features=tuple(sorted(found.features, key=lambda feature: -feature.weight)),
        sums=tuple(found.sums) if right else None,
        fingerprint=found.value,
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
    found = find_hash(recipe.hash)
    hashes = hash_features(found, names, recipe.seed)
    counts, name_of = Counter(hashes), dict(zip(reversed(hashes), reversed(names), strict=True))
    features = [
        Feature(_shown(name_of[h]), counts[h], units / _UNIT, expanded(h, found.bits, recipe.bits))
        for h, units in weights.items()
    ]
    value = fingerprint(text, recipe)
    return _Weighted(features, value, _sums(features, recipe.bits))


def _preset_features(text: str, recipe: Recipe) -> _Weighted:
    """A preset's features; the fold of a single one of weight 1 is its hash, as the sums see it."""
    from neardup.compat.presets import PRESETS

    found = PRESETS[str(recipe.preset)]
    given = found.features(text, recipe)
    counts = Counter(name for name, _ in given)
    hashes = {name: found.fold([(name, 1)], recipe) for name in counts}
    weights: dict[bytes, float] = {}
    for name, weight in given:
        weights[name] = weights.get(name, 0) + weight
    in_order = [Feature("", 1, weight, hashes[name]) for name, weight in given]
    features = [
        Feature(_shown(name), counts[name], weight, hashes[name])
        for name, weight in weights.items()
    ]
    return _Weighted(features, found.fold(given, recipe), _sums(in_order, recipe.bits))


def _sums(features: Iterable[Feature], bits: int) -> list[float]:
    sums = [0.0] * bits
    for feature in features:
        for bit in range(bits):
            sums[bit] += feature.pull(bit)
    return sums


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _explain_pair(first: Explanation, second: Explanation) -> PairExplanation:
    if first.fingerprint is None or second.fingerprint is None:
        return PairExplanation(first, second, None, 0, (), ())
    different = first.fingerprint ^ second.fingerprint
    bits = [bit for bit in reversed(range(first.bits)) if different >> bit & 1]
    uneven, shared = _uneven(first.features, second.features)
    explained = first.sums is not None and second.sums is not None
    return PairExplanation(
        first=first,
        second=second,
        distance=distance(first.fingerprint, second.fingerprint),
        shared=shared,
        pulls=_pulls(uneven, bits, first.fingerprint) if explained else (),
        differing=tuple(_differing(uneven, bit, first, second) for bit in bits)
        if explained
        else (),
    )


@dataclass(frozen=True, slots=True)
class _Uneven:
    """A feature with its weights in both documents."""

    feature: Feature
    weights: tuple[float, float]

    def pull(self, bit: int, value: int) -> float:
        """What it adds to the difference of the sums of a bit that the first one has as `value`."""
        gain = self.weights[0] - self.weights[1]
        return gain if (self.feature.hash ^ ~value) >> bit & 1 else -gain


def _uneven(first: Sequence[Feature], second: Sequence[Feature]) -> tuple[list[_Uneven], int]:
    """The features that do not weigh the same in both, and how many do."""
    weights: dict[Any, list[float]] = {}
    features: dict[Any, Feature] = {}
    for side, found in enumerate((first, second)):
        for feature in found:
            key = feature.text, feature.hash
            features.setdefault(key, feature)
            weights.setdefault(key, [0.0, 0.0])[side] = feature.weight
    uneven = [
        _Uneven(features[key], (one, other))
        for key, (one, other) in weights.items()
        if one != other
    ]
    return uneven, len(weights) - len(uneven)


def _pulls(uneven: list[_Uneven], bits: list[int], value: int) -> tuple[Pull, ...]:
    pulls = []
    for each in uneven:
        added = [each.pull(bit, value) for bit in bits]
        apart = sum(pull > 0 for pull in added)
        pulls.append(Pull(each.feature.text, each.weights, apart, sum(added)))
    return tuple(sorted(pulls, key=lambda pull: (-pull.total, -max(pull.weights))))


def _differing(
    uneven: list[_Uneven], bit: int, first: Explanation, second: Explanation
) -> DifferingBit:
    value = first.fingerprint or 0
    added = [(each.feature.text, each.pull(bit, value)) for each in uneven]
    apart = sorted((pull for pull in added if pull[1] > 0), key=lambda pull: -pull[1])
    sums = (first.sums or ())[bit], (second.sums or ())[bit]
    return DifferingBit(bit, sums, tuple(apart[:_PULLS_A_BIT]), max(0, len(apart) - _PULLS_A_BIT))
