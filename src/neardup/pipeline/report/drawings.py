"""Drawings as inline SVG: no library, no font, colours by class; and a result's plots, as files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.errors import FileError, UsageError
from neardup.pipeline.report.frame import count, inert
from neardup.pipeline.report.model import size_classes

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.pipeline.report.model import CurvePoint
    from neardup.runtime.types import Rows

__all__ = ["Plot", "amount", "curve", "lines", "plot_of", "shares"]

WIDTH: Final = 420
HEIGHT: Final = 210
LEFT: Final = 12
CURVE_LEFT: Final = 46
CURVE_RIGHT: Final = 400
"""The right end of the curve, next to the numbers of the axis."""
BESIDE_TITLE: Final = 150
RIGHT: Final = 408
TOP: Final = 26
BOTTOM: Final = 172


def shares(parts: Sequence[tuple[str, int]], label: str) -> str:
    """One bar of several parts: (class, number)."""
    total = max(1, sum(number for _, number in parts))
    drawn, at = [], 0.0
    for kind, number in parts:
        width = 1000 * number / total
        if number:
            drawn.append(
                f'<rect class="{kind}" x="{at:.2f}" y="0" width="{max(width, 1):.2f}" height="10"/>'
            )
        at += width
    return (
        f'<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{label}">{"".join(drawn)}</svg>'
    )


def amount(number: int, most: int) -> str:
    """A bar as long as its share of the longest."""
    width = 100 * number / max(1, most)
    return (
        '<svg class="amount" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="kept" x="0" y="0" width="{max(width, 0.6):.2f}" height="10"/></svg>'
    )


def curve(points: Sequence[CurvePoint], own: float, documents: int, label: str) -> str:
    """Documents kept at each threshold, as steps from zero; the run's own is marked.

    Args:
        points: Thresholds, ascending.
        own: The run's.
        documents: The number of documents, at the top of the axis.
        label: The description.
    """
    lowest, highest = points[0].similarity, points[-1].similarity

    def across(similarity: float) -> float:
        share = (similarity - lowest) / max(1e-9, highest - lowest)
        return CURVE_LEFT + (CURVE_RIGHT - CURVE_LEFT) * share

    def up(kept: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * kept / max(1, documents)

    path = f"M{across(lowest):.1f} {up(points[0].kept):.1f}"
    for point in points[1:]:
        path += f"H{across(point.similarity):.1f}V{up(point.kept):.1f}"
    area = f"{path}V{BOTTOM}H{CURVE_LEFT}Z"
    at = across(own)
    marks = "".join(
        f'<line class="axis" x1="{across(value):.1f}" x2="{across(value):.1f}" y1="{BOTTOM}"'
        f' y2="{BOTTOM + 4}"/><text x="{across(value):.1f}" y="{BOTTOM + 17}"'
        f' text-anchor="middle">{value:.2f}</text>'
        for value in _steps(lowest, highest)
    )
    grid = "".join(
        f'<line class="axis" x1="{CURVE_LEFT}" x2="{CURVE_RIGHT}" y1="{up(value):.1f}"'
        f' y2="{up(value):.1f}"/><text x="{CURVE_LEFT - 6}" y="{up(value) + 4:.1f}"'
        f' text-anchor="end">{_short(value)}</text>'
        for value in _steps(0, documents)
    )
    side = "start" if at < (CURVE_LEFT + CURVE_RIGHT) / 2 else "end"
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f'{grid}<path class="area" d="{area}"/><path class="line" d="{path}"/>'
        f'<line class="own" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{BOTTOM}"/>'
        f'<line id="at" class="at" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{BOTTOM}"'
        f' data-left="{CURVE_LEFT}" data-right="{CURVE_RIGHT}"/>{marks}'
        f'<text x="{max(at, BESIDE_TITLE):.1f}" y="{TOP - 12}" text-anchor="{side}">this run:'
        f" {own:.4g}</text>"
        f'<text x="0" y="{TOP - 12}">kept of {count(documents)}</text>'
        f'<text x="{(CURVE_LEFT + CURVE_RIGHT) / 2}" y="{HEIGHT - 2}" text-anchor="middle">'
        "least similarity of a match</text></svg>"
    )


def _steps(lowest: float, highest: float) -> list[float]:
    """Round numbers from one to another, some three to six of them.

    Example:
        >>> _steps(0, 2191), _steps(0.7, 1.0)
        ([0, 500, 1000, 1500, 2000], [0.7, 0.8, 0.9, 1.0])
    """
    rough = max(highest - lowest, 1e-9) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= 0.8 * rough)
    first = math.ceil(lowest / step - 1e-9)
    values = [round(step * at, 6) for at in range(first, math.floor(highest / step + 1e-9) + 1)]
    return [int(value) if step >= 1 else value for value in values]


def _short(number: float) -> str:
    """A number that fits next to an axis.

    Example:
        >>> _short(2500), _short(40_000), _short(1_500_000)
        ('2,500', '40 k', '1.5 M')
    """
    for unit, name, least in ((10**6, "M", 10**6), (10**3, "k", 10**4)):
        if number >= least:
            return f"{number / unit:,.4g} {name}"
    return f"{number:,g}"


def lines(
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    label: str,
    across: str,
    own: float | None = None,
) -> str:
    """Lines of shares from 0 to 1, with their names below.

    Args:
        series: (name, its points by rising first number); a text.
        label: What it shows.
        across: The name of the first number.
        own: A first number to mark.
    """
    places = [x for _, points in series for x, _ in points] or [0.0, 1.0]
    lowest, highest = min(places), max(places)

    def at(x: float) -> float:
        return LEFT + (RIGHT - LEFT) * (x - lowest) / max(1e-9, highest - lowest)

    drawn = [
        f'<path class="s{number % 5}" d="M'
        + "L".join(f"{at(x):.1f} {BOTTOM - (BOTTOM - TOP) * y:.1f}" for x, y in points)
        + '"/>'
        for number, (_, points) in enumerate(series)
        if points
    ]
    drawn += [
        f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>'
        for y in (TOP, (TOP + BOTTOM) / 2, BOTTOM)
    ]
    if own is not None:
        x = at(own)
        drawn.append(f'<line class="own" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{BOTTOM}"/>')
    drawn += [
        f'<text x="{at(x):.1f}" y="{BOTTOM + 16}" text-anchor="{anchor}">{x:g}</text>'
        for x, anchor in _ticks(lowest, highest, lowest if own is None else own)
    ]
    names = "".join(
        f'<li class="key s{number % 5}">{inert(name)}</li>'
        for number, (name, _) in enumerate(series)
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{inert(label)}">'
        f'{"".join(drawn)}<text x="{LEFT}" y="{TOP - 6}">1</text>'
        f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{inert(across)}'
        f'</text></svg><ul class="keys">{names}</ul>'
    )


def _ticks(lowest: float, highest: float, own: float) -> list[tuple[float, str]]:
    ticks = [(lowest, "start"), (highest, "end")]
    apart = 0.15 * (highest - lowest)
    if lowest + apart < own < highest - apart:
        ticks.insert(1, (own, "middle"))
    return ticks


PLOT_WIDTH: Final = 560
NAMES: Final = 110
"""The left end of bars, after their names."""
ROW: Final = 24
PLOT_TOP: Final = 34
NUMBERS: Final = 70
"""Space after the longest bar for its number."""
BAND: Final = 0.02
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1c2330}rect{fill:#2f6fb3}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e8ee}rect{fill:#5b9be0}}"
)


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """A picture that a notebook shows, and that can be saved.

    Args:
        svg: The picture.
        title: The description.
    """

    svg: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file.

        Raises:
            FileError: If it cannot be written.
        """
        try:
            Path(path).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror}") from error

    def __repr__(self) -> str:
        """A line for people: the title."""
        return f"Plot({self.title!r})"

    def _repr_svg_(self) -> str:
        return self.svg


def plot_of(kind: str, cluster: Rows, similarity: npt.NDArray[np.float64] | None) -> Plot:
    """One of the plots that `DedupResult.plot` names.

    Args:
        kind: The name of the plot.
        cluster: int64 (n,): the row that names each document's cluster.
        similarity: float64 (m,): of each dropped document; None for a run by distance.

    Raises:
        UsageError: For another kind, or similarities where there are none.
    """
    if kind == "sizes":
        return _bars(_sizes(cluster), "clusters by their number of documents")
    if kind != "similarities":
        raise UsageError(f"kind is {kind!r}: use similarities or sizes")
    if similarity is None:
        raise UsageError("similarities require similarity: this run compared fingerprints")
    return _bars(_bands(similarity), "dropped documents by their similarity to the kept one")


def _sizes(cluster: Rows) -> list[tuple[str, int]]:
    """The number of clusters of more than one document, for each class of sizes."""
    return [
        (count(low) if low == high else f"{count(low)} to {count(high)}", number)
        for low, high, number in size_classes(np.unique(cluster, return_counts=True)[1])
    ]


def _bands(similarity: npt.NDArray[np.float64]) -> list[tuple[str, int]]:
    """The number of similarities in each band of 0.02; those of 1 have their own band."""
    bands = np.floor(similarity / BAND + 1e-9).astype(np.int64)
    ends = range(int(bands.min(initial=round(1 / BAND))), round(1 / BAND) + 1)
    return [
        (f"{band * BAND:.2f} to {(band + 1) * BAND:.2f}" if band * BAND < 1 else "1", number)
        for band, number in ((each, int(np.count_nonzero(bands == each))) for each in ends)
    ]


def _bars(bars: Sequence[tuple[str, int]], title: str) -> Plot:
    """Horizontal bars under a title, each with its name and number."""
    most = max((number for _, number in bars), default=1) or 1
    drawn = [f'<text x="0" y="18">{inert(title)}</text>']
    for row, (name, number) in enumerate(bars):
        y, width = PLOT_TOP + ROW * row, (PLOT_WIDTH - NAMES - NUMBERS) * number / most
        drawn.append(
            f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{inert(name)}</text>'
            f'<rect x="{NAMES}" y="{y + 2}" width="{width:.1f}" height="{ROW - 8}"/>'
            f'<text x="{NAMES + width + 6:.1f}" y="{y + 14}">{count(number)}</text>'
        )
    height = PLOT_TOP + ROW * len(bars) + 4
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLOT_WIDTH} {height}"'
        f' width="{PLOT_WIDTH}"'
        f' role="img" aria-label="{inert(title)}"><style>{STYLE}</style>{"".join(drawn)}</svg>\n'
    )
    return Plot(svg, title)
