"""An explanation as lines of text."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.fingerprinting.explanation.model import ExplainedPair, ExplainedText

__all__ = [
    "COLUMNS",
    "NEIGHBOURS",
    "NOTHING_MATCHES",
    "differing_rows",
    "document_lines",
    "feature_rows",
    "further_lines",
    "heading",
    "number",
    "pair_head",
    "pair_lines",
    "pull_rows",
    "readable",
    "shown_bits",
    "sum_label",
    "sum_lines",
]

COLUMNS: Final = 64
"""Bits that have a column of their own."""

NAME_WIDTH: Final = 32
NEIGHBOURS: Final = (
    "this preset's hash of a feature depends on its neighbours: there are no bits to show"
)
NOTHING_MATCHES: Final = "a document without tokens matches nothing"
_SUMS_A_LINE: Final = 8


def document_lines(found: ExplainedText) -> Iterator[str]:
    """The table of one document."""
    yield heading(found)
    if found.features:
        yield from _aligned(feature_rows(found), right=(1, 2))
    if found.sums is not None and found.features:
        yield from sum_lines(found.sums)
    elif found.sums is None:
        yield NEIGHBOURS
    yield f"fingerprint {found.digits or 'none: there are no tokens'}"


def pair_lines(found: ExplainedPair) -> Iterator[str]:
    """The tables of two documents: what pulls them apart, and where."""
    yield from pair_head(found)
    if found.pulls:
        yield ""
        yield from _aligned(pull_rows(found), right=(1, 2, 3, 4))
    if found.differing:
        yield ""
        yield from _aligned(differing_rows(found), right=(0, 1, 2, 3, 4))


def pair_head(found: ExplainedPair) -> Iterator[str]:
    """Both fingerprints, their distance, and what can be said of it."""
    for name, each in (("A", found.first), ("B", found.second)):
        yield f"{name}  {each.digits or 'no tokens'}  {heading(each)}"
    if found.distance is None:
        yield NOTHING_MATCHES
        return
    yield f"distance {found.distance} of {found.first.bits} bits"
    yield f"{found.shared:,} features weigh the same in both and cancel"
    if found.first.sums is None or found.second.sums is None:
        yield NEIGHBOURS


def heading(found: ExplainedText) -> str:
    """How many features there are, and the recipe in a few words."""
    recipe, count = found.recipe, len(found.features)
    features = "1 feature" if count == 1 else f"{count:,} features"
    top = "" if recipe.top is None else f", top {recipe.top}"
    if recipe.preset is not None:
        return f"{features}: preset {recipe.preset}{top}, {recipe.bits} bits"
    return (
        f"{features}: {recipe.tokens}, ngram {recipe.ngram}, weight {recipe.weight}{top},"
        f" hash {recipe.hash}, {recipe.bits} bits"
    )


def number(value: float) -> str:
    """A weight or a sum, as short as it can be read; five decimals at most."""
    return f"{round(value, 5) + 0.0:.12g}"


def readable(text: str, width: int = NAME_WIDTH) -> str:
    """A feature on one line: control characters escaped, cut to a width of terminal cells."""
    escaped = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if _cells(escaped) <= width:
        return escaped
    kept = ""
    for character in escaped:
        if _cells(kept + character) >= width:
            break
        kept += character
    return f"{kept}…"


def sum_label(found: ExplainedText) -> str:
    """Which sums give a 1."""
    value, sums = found.fingerprint or 0, found.sums or ()
    ties = any(total == 0 and value >> bit & 1 for bit, total in enumerate(sums))
    return "sum >= 0" if ties else "sum > 0"


def shown_bits(value: int, bits: int) -> str:
    """The low 64 bits, highest first."""
    count = min(bits, COLUMNS)
    return f"{value & (1 << count) - 1:0{count}b}"


def feature_rows(found: ExplainedText) -> list[list[str]]:
    """The features with their hash bits, and the fingerprint's below them."""
    shown = found.features[: found.show]
    bits = found.sums is not None
    top = min(found.bits, COLUMNS) - 1
    rows = [["feature", "count", "weight", f"hash bits {top} to 0" if bits else ""]]
    for feature in shown:
        tail = shown_bits(feature.hash, found.bits) if bits else ""
        rows.append([readable(feature.text), f"{feature.count:,}", number(feature.weight), tail])
    if bits and found.fingerprint is not None:
        rows.append([sum_label(found), "", "", shown_bits(found.fingerprint, found.bits)])
    if len(found.features) > len(shown):
        place = len(shown) + 1
        rows.insert(place, [f"... {len(found.features) - len(shown):,} more", "", "", ""])
    return rows


def sum_lines(sums: Sequence[float]) -> Iterator[str]:
    """The sums of the low 64 bits, eight on a line, and a line for each further 64."""
    shown = [number(total) for total in sums[:COLUMNS]]
    if len(shown) <= _SUMS_A_LINE:
        yield f"sums, bits {len(shown) - 1} to 0: {' '.join(reversed(shown))}"
    else:
        rows = [["sums", ""]]
        for high in range(len(shown) - 1, -1, -_SUMS_A_LINE):
            low = max(0, high - _SUMS_A_LINE + 1)
            rows.append([f"bits {high} to {low}", *reversed(shown[low : high + 1])])
        yield from _aligned(rows, right=range(1, _SUMS_A_LINE + 1))
    yield from further_lines(sums)


def further_lines(sums: Sequence[float]) -> Iterator[str]:
    """A line for each 64 bits beyond the first."""
    for low in range(COLUMNS, len(sums), COLUMNS):
        part = sums[low : low + COLUMNS]
        ones = sum(total > 0 for total in part)
        yield (
            f"bits {low + len(part) - 1} to {low}: {ones} of {len(part)} sums above 0,"
            f" from {number(min(part))} to {number(max(part))}"
        )


def pull_rows(found: ExplainedPair) -> list[list[str]]:
    """The features that weigh more in one document, those that pull apart most first."""
    shown = found.pulls[: found.first.show]
    rows = [["feature", "weight in A", "in B", "pulls apart", "by"]]
    for pull in shown:
        weights = [number(weight) if weight else "-" for weight in pull.weights]
        apart = f"{pull.bits} of {found.distance} bits"
        rows.append([readable(pull.text), *weights, apart, number(pull.total)])
    if len(found.pulls) > len(shown):
        rows.append([f"... {len(found.pulls) - len(shown):,} more", "", "", "", ""])
    return rows


def differing_rows(found: ExplainedPair) -> list[list[str]]:
    """The differing bits, highest first, and the features that pull each apart most."""
    rows = [["bit", "A", "sum", "B", "sum", "pulled apart by"]]
    for each in found.differing:
        first, second = each.sums
        in_first = (found.first.fingerprint or 0) >> each.bit & 1
        pulls = ", ".join(f"{readable(text, 20)} {number(pull)}" for text, pull in each.pulls)
        more = f", {each.others:,} more" if each.others else ""
        values = [str(in_first), number(first), str(1 - in_first), number(second)]
        rows.append([str(each.bit), *values, pulls + more])
    return rows


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int]) -> Iterator[str]:
    count = max(map(len, rows))
    widths = [max(_cells(row[i]) for row in rows if i < len(row)) for i in range(count)]
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            pad = " " * (widths[i] - _cells(cell))
            cells.append(pad + cell if i in right else cell + pad)
        yield "  ".join(cells).rstrip()


def _cells(text: str) -> int:
    """Terminal cells that a text takes: ideographs take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
