"""Drawings as inline SVG: no library, no font, colours by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.pipeline.report.markup import count, inert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.pipeline.report.model import CurvePoint

__all__ = ["amount", "curve", "lines", "shares"]

WIDTH: Final = 420
HEIGHT: Final = 210
LEFT: Final = 12
RIGHT: Final = 408
TOP: Final = 26
BOTTOM: Final = 172


def shares(parts: Sequence[tuple[str, int]], label: str) -> str:
    """One bar cut in parts: (class, how many)."""
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


def curve(points: Sequence[CurvePoint], own: float, label: str) -> str:
    """Documents kept at each threshold, as steps; the run's own is marked."""
    lowest, highest = points[0].similarity, points[-1].similarity
    least, most = points[0].kept, max(points[-1].kept, points[0].kept + 1)

    def across(similarity: float) -> float:
        return LEFT + (RIGHT - LEFT) * (similarity - lowest) / max(1e-9, highest - lowest)

    def up(kept: int) -> float:
        return BOTTOM - (BOTTOM - TOP) * (kept - least) / (most - least)

    path = f"M{across(lowest):.1f} {up(points[0].kept):.1f}"
    for point in points[1:]:
        path += f"H{across(point.similarity):.1f}V{up(point.kept):.1f}"
    area = f"{path}V{BOTTOM}H{LEFT}Z"
    at = across(own)
    marks = "".join(
        f'<text x="{across(value):.1f}" y="{BOTTOM + 16}" text-anchor="{anchor}">{value:.2f}</text>'
        for value, anchor in _ticks(lowest, highest, own)
    )
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f'<path class="area" d="{area}"/><path class="line" d="{path}"/>'
        f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>'
        f'<line class="own" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{BOTTOM}"/>'
        f'<line id="at" class="at" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{BOTTOM}"'
        f' data-left="{LEFT}" data-right="{RIGHT}"/>{marks}'
        f'<text x="{LEFT}" y="{TOP - 12}">{count(points[-1].kept)} kept at the top,'
        f" {count(least)} at the bottom</text>"
        f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">'
        "least similarity of a match</text></svg>"
    )


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
        across: What the first number is.
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
