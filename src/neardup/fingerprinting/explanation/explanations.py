"""Explanations: values that print themselves as text, and as HTML in a notebook."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from neardup.fingerprinting.explanation.tree import Table, cells_wide, html_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.fingerprinting.recipe import Recipe

__all__ = [
    "NOTHING_MATCHES",
    "DifferingBit",
    "Explanation",
    "Feature",
    "PairExplanation",
    "Pull",
    "hexadecimal",
]

COLUMNS: Final = 64
"""Bits that have a column of their own."""

NAME_WIDTH: Final = 32
NEIGHBOURS: Final = (
    "this preset's hash of a feature depends on its neighbours: there are no bits to show"
)
NOTHING_MATCHES: Final = "a document without tokens matches nothing"
_SUMS_A_LINE: Final = 8


@dataclass(frozen=True, slots=True)
class Feature:
    """One distinct feature of a document.

    Attributes:
        text: The feature; bytes that are not UTF-8 as backslash escapes.
        count: How often it occurs.
        weight: How much it adds to, or takes from, each sum.
        hash: As wide as the fingerprint; where bit j is 1, it adds its weight to sum j.
    """

    text: str
    count: int
    weight: float
    hash: int

    def pull(self, bit: int) -> float:
        """The contribution of the feature to the sum of a bit."""
        return self.weight if self.hash >> bit & 1 else -self.weight


@dataclass(frozen=True, slots=True)
class DifferingBit:
    """One bit in which two fingerprints differ.

    Attributes:
        bit: Its number; 0 is the lowest.
        sums: Of the first document and of the second.
        pulls: The features that pull it apart most, and by how much: what each adds to the
            difference of the sums.
        others: How many more do.
    """

    bit: int
    sums: tuple[float, float]
    pulls: tuple[tuple[str, float], ...]
    others: int


@dataclass(frozen=True, slots=True)
class Pull:
    """A feature that does not weigh the same in both documents.

    Attributes:
        text: The feature.
        weights: In the first document and in the second; 0 where it is absent.
        bits: In how many of the differing bits it pulls the two apart.
        total: What it adds to the differences of the sums of all differing bits; below 0 where it
            rather holds them together.
    """

    text: str
    weights: tuple[float, float]
    bits: int
    total: float


def hexadecimal(value: int, bits: int) -> str:
    """Hexadecimal digits, as many as the width takes."""
    return f"{value:0{-(-bits // 4)}x}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps from one document to its fingerprint; prints as a table.

    Attributes:
        recipe: How it was made.
        features: Distinct features, the heaviest first, else in order of occurrence.
        sums: Sum j at index j: bit j of the fingerprint is 1 where it is above 0. None for a
            preset whose hash of a feature depends on its neighbours.
        fingerprint: Its value; None without tokens.
        show: Features that the tables show.

    Example:
        >>> import neardup as nd
        >>> one = nd.explain("to be or not to be", recipe=nd.Recipe(ngram=1, weight="count"))
        >>> [(each.text, each.weight) for each in one.features[:2]], one.bits, len(one.digits)
        ([('to', 2.0), ('be', 2.0)], 64, 16)
    """

    recipe: Recipe
    features: tuple[Feature, ...]
    sums: tuple[float, ...] | None
    fingerprint: int | None
    show: int

    @property
    def bits(self) -> int:
        """Width of the fingerprint."""
        return self.recipe.bits

    @property
    def digits(self) -> str | None:
        """The fingerprint in hexadecimal."""
        return None if self.fingerprint is None else hexadecimal(self.fingerprint, self.bits)

    def to_dict(self) -> dict[str, Any]:
        """All fields, for `--json`; hashes and fingerprint as hexadecimal digits."""
        return {
            "recipe": json.loads(self.recipe.to_json()),
            "bits": self.bits,
            "fingerprint": self.digits,
            "features": [
                asdict(x) | {"hash": hexadecimal(x.hash, self.bits)} for x in self.features
            ],
            "sums": None if self.sums is None else list(self.sums),
        }

    def __repr__(self) -> str:
        """One line; all features and sums would fill the screen."""
        value = None if self.fingerprint is None else hex(self.fingerprint)
        return f"Explanation(fingerprint={value}, features={len(self.features)})"

    def __str__(self) -> str:
        """A table for a terminal."""
        return text_of(_document_parts(self))

    def _repr_html_(self) -> str:
        return html_of(_document_parts(self))


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """The features by which two documents' fingerprints differ; prints as a table.

    Attributes:
        first: The first document's explanation.
        second: The second's.
        distance: Bits in which they differ; None if one has no fingerprint.
        shared: Features of equal weight in both, which add the same to both and cancel.
        pulls: The others, those that pull the differing bits apart most first.
        differing: The differing bits, highest first.

    Example:
        >>> import neardup as nd
        >>> pair = nd.explain("one two three", "one two four", nd.Recipe(ngram=1))
        >>> pair.shared, pair.distance == len(pair.differing)
        (2, True)
    """

    first: Explanation
    second: Explanation
    distance: int | None
    shared: int
    pulls: tuple[Pull, ...]
    differing: tuple[DifferingBit, ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields, for `--json`."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "distance": self.distance,
            "shared": self.shared,
            "pulls": [asdict(pull) for pull in self.pulls],
            "differing": [asdict(bit) for bit in self.differing],
        }

    def __repr__(self) -> str:
        """One line, as that of an explanation."""
        return (
            f"PairExplanation(distance={self.distance}, shared={self.shared},"
            f" differing={len(self.differing)})"
        )

    def __str__(self) -> str:
        """A table for a terminal."""
        return text_of(_pair_parts(self))

    def _repr_html_(self) -> str:
        return html_of(_pair_parts(self))


def _document_parts(explanation: Explanation) -> Iterator[str | Table]:
    """The explanation of one document."""
    yield _heading(explanation)
    if explanation.features:
        yield Table(_feature_rows(explanation), right=(1, 2))
    if explanation.sums is not None and explanation.features:
        yield from _sum_parts(explanation.sums)
    elif explanation.sums is None:
        yield NEIGHBOURS
    yield f"fingerprint {explanation.digits or 'none: there are no tokens'}"


def _pair_parts(explanation: PairExplanation) -> Iterator[str | Table]:
    """The explanation of two documents: what pulls them apart, and where."""
    yield from _pair_head(explanation)
    if explanation.pulls:
        yield ""
        yield Table(_pull_rows(explanation), right=(1, 2, 3, 4))
    if explanation.differing:
        yield ""
        yield Table(_differing_rows(explanation), right=(0, 1, 2, 3, 4))


def _pair_head(explanation: PairExplanation) -> Iterator[str]:
    """Both fingerprints, their distance, and what can be said of it."""
    for name, each in (("A", explanation.first), ("B", explanation.second)):
        yield f"{name}  {each.digits or 'no tokens'}  {_heading(each)}"
    if explanation.distance is None:
        yield NOTHING_MATCHES
        return
    yield f"distance {explanation.distance} of {explanation.first.bits} bits"
    yield f"{explanation.shared:,} features weigh the same in both and cancel"
    if explanation.first.sums is None or explanation.second.sums is None:
        yield NEIGHBOURS


def _heading(explanation: Explanation) -> str:
    """The number of features, and the recipe in a few words."""
    recipe, count = explanation.recipe, len(explanation.features)
    features = "1 feature" if count == 1 else f"{count:,} features"
    top = "" if recipe.top is None else f", top {recipe.top}"
    if recipe.preset is not None:
        return f"{features}: preset {recipe.preset}{top}, {recipe.bits} bits"
    return (
        f"{features}: {recipe.tokens}, ngram {recipe.ngram}, weight {recipe.weight}{top},"
        f" hash {recipe.hash}, {recipe.bits} bits"
    )


def _number(value: float) -> str:
    """A weight or a sum, as short as it can be read; five decimals at most."""
    return f"{round(value, 5) + 0.0:.12g}"


def _readable(text: str, width: int = NAME_WIDTH) -> str:
    """A feature on one line: control characters escaped, cut to a width of terminal cells."""
    escaped = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if cells_wide(escaped) <= width:
        return escaped
    kept = ""
    for character in escaped:
        if cells_wide(kept + character) >= width:
            break
        kept += character
    return f"{kept}…"


def _sum_label(explanation: Explanation) -> str:
    """The condition on a sum that gives a 1."""
    value, sums = explanation.fingerprint or 0, explanation.sums or ()
    ties = any(total == 0 and value >> bit & 1 for bit, total in enumerate(sums))
    return "sum >= 0" if ties else "sum > 0"


def _shown_bits(value: int, bits: int) -> str:
    """The low 64 bits, highest first."""
    count = min(bits, COLUMNS)
    return f"{value & (1 << count) - 1:0{count}b}"


def _feature_rows(explanation: Explanation) -> list[list[str]]:
    """The features with their hash bits, and the fingerprint's below them."""
    shown = explanation.features[: explanation.show]
    bits = explanation.sums is not None
    top = min(explanation.bits, COLUMNS) - 1
    rows = [["feature", "count", "weight", f"hash bits {top} to 0" if bits else ""]]
    for feature in shown:
        tail = _shown_bits(feature.hash, explanation.bits) if bits else ""
        rows.append([_readable(feature.text), f"{feature.count:,}", _number(feature.weight), tail])
    if bits and explanation.fingerprint is not None:
        rows.append(
            [
                _sum_label(explanation),
                "",
                "",
                _shown_bits(explanation.fingerprint, explanation.bits),
            ]
        )
    if len(explanation.features) > len(shown):
        place = len(shown) + 1
        rows.insert(place, [f"... {len(explanation.features) - len(shown):,} more", "", "", ""])
    return rows


def _sum_parts(sums: Sequence[float]) -> Iterator[str | Table]:
    """The sums of the low 64 bits, eight on a line, and a line for each further 64."""
    shown = [_number(total) for total in sums[:COLUMNS]]
    if len(shown) <= _SUMS_A_LINE:
        yield f"sums, bits {len(shown) - 1} to 0: {' '.join(reversed(shown))}"
    else:
        rows = [["sums", ""]]
        for high in range(len(shown) - 1, -1, -_SUMS_A_LINE):
            low = max(0, high - _SUMS_A_LINE + 1)
            rows.append([f"bits {high} to {low}", *reversed(shown[low : high + 1])])
        yield Table(rows, right=range(1, _SUMS_A_LINE + 1))
    yield from _further_lines(sums)


def _further_lines(sums: Sequence[float]) -> Iterator[str]:
    """A line for each 64 bits beyond the first."""
    for low in range(COLUMNS, len(sums), COLUMNS):
        part = sums[low : low + COLUMNS]
        ones = sum(total > 0 for total in part)
        yield (
            f"bits {low + len(part) - 1} to {low}: {ones} of {len(part)} sums above 0,"
            f" from {_number(min(part))} to {_number(max(part))}"
        )


def _pull_rows(explanation: PairExplanation) -> list[list[str]]:
    """The features that weigh more in one document, those that pull apart most first."""
    shown = explanation.pulls[: explanation.first.show]
    rows = [["feature", "weight in A", "in B", "pulls apart", "by"]]
    for pull in shown:
        weights = [_number(weight) if weight else "-" for weight in pull.weights]
        apart = f"{pull.bits} of {explanation.distance} bits"
        rows.append([_readable(pull.text), *weights, apart, _number(pull.total)])
    if len(explanation.pulls) > len(shown):
        rows.append([f"... {len(explanation.pulls) - len(shown):,} more", "", "", "", ""])
    return rows


def _differing_rows(explanation: PairExplanation) -> list[list[str]]:
    """The differing bits, highest first, and the features that pull each apart most."""
    rows = [["bit", "A", "sum", "B", "sum", "pulled apart by"]]
    for each in explanation.differing:
        first, second = each.sums
        in_first = (explanation.first.fingerprint or 0) >> each.bit & 1
        pulls = ", ".join(f"{_readable(text, 20)} {_number(pull)}" for text, pull in each.pulls)
        more = f", {each.others:,} more" if each.others else ""
        values = [str(in_first), _number(first), str(1 - in_first), _number(second)]
        rows.append([str(each.bit), *values, pulls + more])
    return rows
