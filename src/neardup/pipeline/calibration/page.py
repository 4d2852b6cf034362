"""A calibration as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.pipeline.calibration.model import TO_JUDGE
from neardup.pipeline.report.drawings import amount, lines
from neardup.pipeline.report.frame import count, frame, inert, size, table
from neardup.pipeline.report.page import card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.pipeline.calibration.model import Calibration, Choice, Range

__all__ = ["calibration_page"]

_LINKS = (
    ("matches", "Matches"),
    ("distances", "Distances"),
    ("lengths", "Lengths"),
    ("costs", "Costs"),
    ("examples", "Examples"),
)


def calibration_page(found: Calibration) -> str:
    """One HTML file, the same bytes for the same calibration."""
    body = "".join(
        (_head(found), _matches(found), _distances(found), _lengths(found), _costs(found))
    )
    title = f"neardup: calibration of {count(found.documents)} documents"
    return frame(title, "Calibration", _LINKS, body + _examples(found), found.to_dict())


def _head(found: Calibration) -> str:
    looked = "all of them" if found.sampled == found.documents else count(found.sampled)
    warned = "".join(f"<li>{inert(each)}</li>" for each in found.warnings)
    warnings = f'<div class="warn"><h3>Look at this</h3><ul>{warned}</ul></div>' if warned else ""
    why = (
        "the fewest pairs lie around it, and more above it, so it matters least whether it is a"
        " little more or less"
        if found.is_own
        else "as asked"
    )
    commands = "".join(f"<pre><code>{inert(each)}</code></pre>" for each in found.commands)
    advice = (
        f" Threshold: <b>{found.threshold:g}</b>, {why}.</p>{warnings}<p>To run it:</p>{commands}"
    )
    if found.unknown:
        advice = f" No threshold is advised: {inert(found.unknown)}; {TO_JUDGE}.</p>{warnings}"
    return (
        f'<section id="advice"><p class="lead"><b>{count(found.documents)}</b> documents,'
        f" <b>{looked}</b> looked at (seed {found.seed}).{advice}</section>"
    )


def _matches(found: Calibration) -> str:
    most = max((level.sampled for level in found.steps), default=0)
    body = [
        [
            f"{level.similarity:g}",
            amount(level.sampled, most),
            count(level.sampled),
            count(level.documents),
            count(round(level.pairs)),
            _whole(level.interval),
        ]
        for level in found.steps
    ]
    heads = ("similarity", "", "pairs in the sample", "documents with a match", "expected pairs",
             "95% interval")  # fmt: skip
    return (
        '<section id="matches"><h2>Matches at each similarity</h2>'
        f"<p>Every pair of the sample at {found.lowest:g} or more was found, none is estimated;"
        " what is expected among all documents is extrapolated, and the interval counts"
        f" documents, not their pairs.</p>{table(heads, body, 'Matches')}</section>"
    )


def _distances(found: Calibration) -> str:
    own = [choice for choice in found.choices if choice.similarity == found.threshold]
    series = [
        (f"{bits} bits", _recalls([choice for choice in own if choice.bits == bits], bits))
        for bits in dict.fromkeys(choice.bits for choice in own)
    ]
    picture = lines(
        series, "Recall of each distance; tables below", "distance, as a share of the width"
    )
    tables = "".join(_table_of(found, bits) for bits in dict.fromkeys(x.bits for x in own))
    return (
        '<section id="distances"><h2>Fingerprints: what each distance finds</h2>'
        f"<p>Recall: of the pairs at {found.threshold:g} or more, those within the distance."
        " Precision: of the pairs within the distance, those at"
        f" {found.threshold:g} or more; --verify makes it 1.</p>{picture}{tables}</section>"
    )


def _recalls(choices: Sequence[Choice], bits: int) -> list[tuple[float, float]]:
    return [(round(x.distance / bits, 4), x.recall) for x in choices if x.recall is not None]


def _table_of(found: Calibration, bits: int) -> str:
    steps = sorted({x.similarity for x in found.choices if x.bits == bits}, reverse=True)
    rows: dict[int, list[str]] = {}
    for choice in found.choices:
        if choice.bits == bits and choice.similarity == found.threshold:
            rows[choice.distance] = [
                str(choice.distance),
                _share(choice.recall, choice.recall_interval),
                _share(choice.precision, choice.precision_interval),
            ]
    for step in steps:
        for choice in found.choices:
            if choice.bits == bits and choice.similarity == step:
                rows[choice.distance].append(
                    "-" if choice.recall is None else f"{choice.recall:.3f}"
                )
    heads = ["distance", "recall", "precision", *(f"recall at {step:g}" for step in steps)]
    return (
        f"<details><summary>{bits} bits: all distances</summary>"
        f"{table(heads, rows.values(), f'{bits} bits')}</details>"
    )


def _lengths(found: Calibration) -> str:
    body = []
    for band in found.lengths:
        level = next(x for x in band.levels if x.similarity == found.threshold)
        reached = next((x for x in band.choices if (x.recall or 0) >= found.recall), None)
        three = next((x for x in band.choices if x.distance == 3), None)
        body.append(
            [
                band.title,
                count(band.documents),
                count(level.sampled),
                _whole(level.interval),
                "-" if three is None else _share(three.recall, three.recall_interval),
                "-" if reached is None else f"{reached.distance} of {reached.bits}",
            ]
        )
    heads = ("features", "documents", "pairs in the sample", "expected", "recall at distance 3",
             f"distance for {found.recall:g}")  # fmt: skip
    return (
        '<section id="lengths"><h2>By length</h2><p>A pair belongs where its shorter document does.'
        " In short texts a word changes much: their similarities are coarse, and their fingerprints"
        f" far apart.</p>{table(heads, body, 'By length')}</section>"
    )


def _costs(found: Calibration) -> str:
    body = [
        [f"<code>{inert(x.option)}</code>", f"{x.seconds:,.1f}", size(x.memory), size(x.disk)]
        for x in found.costs
    ]
    heads = ("option", "seconds", "memory", "temporary files")
    return (
        f'<section id="costs"><h2>What {count(found.documents)} documents take</h2><p>Extrapolated'
        " from this machine, the sample and half of it; starting is not in it.</p>"
        f"{table(heads, body, 'Costs')}</section>"
    )


def _examples(found: Calibration) -> str:
    parts, number = [], 0
    for title, pairs in reversed(found.examples):
        cards = []
        for pair in pairs:
            number += 1
            cards.append(card(pair, number))
        shown = "".join(cards) or '<p class="note">None.</p>'
        parts.append(f"<h3>Similarity {inert(title)}</h3>{shown}")
    return (
        '<section id="examples"><h2>Pairs to judge by eye</h2><p>Up to ten of each band, at random,'
        f" each of another group where there are so many.</p>{''.join(parts)}</section>"
    )


def _share(share: float | None, interval: Range) -> str:
    if share is None:
        return "-"
    return f"{share:.3f} <small>{interval[0]:.3f} to {interval[1]:.3f}</small>"


def _whole(interval: Range) -> str:
    low, high = (count(round(each)) for each in interval)
    return low if low == high else f"{low} to {high}"
