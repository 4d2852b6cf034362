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


def calibration_page(calibration: Calibration) -> str:
    """One HTML file, the same bytes for the same calibration."""
    body = "".join(
        (
            _head(calibration),
            _matches(calibration),
            _distances(calibration),
            _lengths(calibration),
            _costs(calibration),
        )
    )
    title = f"neardup: calibration of {count(calibration.documents)} documents"
    return frame(title, "Calibration", _LINKS, body + _examples(calibration), calibration.to_dict())


def _head(calibration: Calibration) -> str:
    looked = (
        "all of them"
        if calibration.sampled == calibration.documents
        else count(calibration.sampled)
    )
    warned = "".join(f"<li>{inert(each)}</li>" for each in calibration.warnings)
    warnings = f'<div class="warn"><h3>Look at this</h3><ul>{warned}</ul></div>' if warned else ""
    why = (
        "the fewest pairs lie around it, and more above it, so it matters least whether it is a"
        " little more or less"
        if calibration.is_own
        else "as asked"
    )
    commands = "".join(f"<pre><code>{inert(each)}</code></pre>" for each in calibration.commands)
    threshold = f"<b>{calibration.threshold:g}</b>"
    advice = f" Threshold: {threshold}, {why}.</p>{warnings}<p>To run it:</p>{commands}"
    if calibration.unknown:
        advice = (
            f" No threshold is advised: {inert(calibration.unknown)}; {TO_JUDGE}.</p>{warnings}"
        )
    return (
        f'<section id="advice"><p class="lead"><b>{count(calibration.documents)}</b> documents,'
        f" <b>{looked}</b> looked at (seed {calibration.seed}).{advice}</section>"
    )


def _matches(calibration: Calibration) -> str:
    most = max((level.sampled for level in calibration.steps), default=0)
    body = [
        [
            f"{level.similarity:g}",
            amount(level.sampled, most),
            count(level.sampled),
            count(level.documents),
            count(round(level.pairs)),
            _whole(level.interval),
        ]
        for level in calibration.steps
    ]
    heads = ("similarity", "", "pairs in the sample", "documents with a match", "expected pairs",
             "95% interval")  # fmt: skip
    return (
        '<section id="matches"><h2>Matches at each similarity</h2>'
        f"<p>Every pair of the sample at {calibration.lowest:g} or more was found, none is"
        " estimated; what is expected among all documents is extrapolated, and the interval counts"
        f" documents, not their pairs.</p>{table(heads, body, 'Matches')}</section>"
    )


def _distances(calibration: Calibration) -> str:
    own = [choice for choice in calibration.choices if choice.similarity == calibration.threshold]
    series = [
        (f"{bits} bits", _recalls([choice for choice in own if choice.bits == bits], bits))
        for bits in dict.fromkeys(choice.bits for choice in own)
    ]
    picture = lines(
        series, "Recall of each distance; tables below", "distance, as a share of the width"
    )
    tables = "".join(_table_of(calibration, bits) for bits in dict.fromkeys(x.bits for x in own))
    return (
        '<section id="distances"><h2>Fingerprints: what each distance finds</h2>'
        f"<p>Recall: of the pairs at {calibration.threshold:g} or more, those within the distance."
        " Precision: of the pairs within the distance, those at"
        f" {calibration.threshold:g} or more; --verify makes it 1.</p>{picture}{tables}</section>"
    )


def _recalls(choices: Sequence[Choice], bits: int) -> list[tuple[float, float]]:
    return [(round(x.distance / bits, 4), x.recall) for x in choices if x.recall is not None]


def _table_of(calibration: Calibration, bits: int) -> str:
    steps = sorted({x.similarity for x in calibration.choices if x.bits == bits}, reverse=True)
    rows: dict[int, list[str]] = {}
    for choice in calibration.choices:
        if choice.bits == bits and choice.similarity == calibration.threshold:
            rows[choice.distance] = [
                str(choice.distance),
                _share(choice.recall, choice.recall_interval),
                _share(choice.precision, choice.precision_interval),
            ]
    for step in steps:
        for choice in calibration.choices:
            if choice.bits == bits and choice.similarity == step:
                rows[choice.distance].append(
                    "-" if choice.recall is None else f"{choice.recall:.3f}"
                )
    heads = ["distance", "recall", "precision", *(f"recall at {step:g}" for step in steps)]
    return (
        f"<details><summary>{bits} bits: all distances</summary>"
        f"{table(heads, rows.values(), f'{bits} bits')}</details>"
    )


def _lengths(calibration: Calibration) -> str:
    body = []
    for band in calibration.lengths:
        level = next(x for x in band.levels if x.similarity == calibration.threshold)
        reached = next((x for x in band.choices if (x.recall or 0) >= calibration.recall), None)
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
             f"distance for {calibration.recall:g}")  # fmt: skip
    return (
        '<section id="lengths"><h2>By length</h2><p>A pair belongs where its shorter document does.'
        " In short texts a word changes much: their similarities are coarse, and their fingerprints"
        f" far apart.</p>{table(heads, body, 'By length')}</section>"
    )


def _costs(calibration: Calibration) -> str:
    body = [
        [f"<code>{inert(x.option)}</code>", f"{x.seconds:,.1f}", size(x.memory), size(x.disk)]
        for x in calibration.costs
    ]
    heads = ("option", "seconds", "memory", "temporary files")
    return (
        f'<section id="costs"><h2>What {count(calibration.documents)} documents take</h2><p>'
        "Extrapolated from this machine, the sample and half of it; starting is not in it.</p>"
        f"{table(heads, body, 'Costs')}</section>"
    )


def _examples(calibration: Calibration) -> str:
    parts, number = [], 0
    for title, pairs in reversed(calibration.examples):
        cards = []
        for pair in pairs:
            number += 1
            cards.append(card(pair, number))
        shown = "".join(cards) or '<p class="note">None.</p>'
        parts.append(f"<h3>Similarity {inert(title)}</h3>{shown}")
    return (
        '<section id="examples"><h2>Pairs to judge by eye</h2><p>Up to ten of each band, at random,'
        f" each from another group where there are enough groups.</p>{''.join(parts)}</section>"
    )


def _share(share: float | None, interval: Range) -> str:
    if share is None:
        return "-"
    return f"{share:.3f} <small>{interval[0]:.3f} to {interval[1]:.3f}</small>"


def _whole(interval: Range) -> str:
    low, high = (count(round(each)) for each in interval)
    return low if low == high else f"{low} to {high}"
