"""The sections of the page, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.pipeline.report.drawings import amount, curve, shares
from neardup.pipeline.report.markup import count, inert, name_of, rows, size, table
from neardup.pipeline.report.pair_cards import card, excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.pipeline.report.model import ClusterGroup, Matrix, PairShown, Report

__all__ = ["Pairs", "border", "clusters", "overview", "promises", "sources", "threshold"]


class Pairs:
    """The pairs of the page, each shown once; elsewhere a link leads to it."""

    def __init__(self) -> None:
        """Begin without any."""
        self._numbers: dict[tuple[str, str], int] = {}
        self._cards: list[str] = []

    def link(self, pair: PairShown, verdict: str) -> str:
        """Take a pair, and give the cell that leads to it."""
        number = self._numbers.setdefault(pair.names, len(self._numbers) + 1)
        if number > len(self._cards):
            self._cards.append(card(pair, number, verdict))
        return f'<a href="#p{number}">{pair.similarity:.3f}</a>'

    def section(self, most: int) -> str:
        """The first `most` of them, one below the other."""
        shown = "".join(self._cards[:most])
        left_out = len(self._cards) - min(most, len(self._cards))
        note = f'<p class="note">{count(left_out)} pairs are left out for size.</p>'
        return (
            '<section id="pairs"><h2>Pairs, side by side</h2><p>Words that only the left document'
            " has are <del>marked so</del>, words that only the right one has"
            f" <ins>marked so</ins>; what is not marked is in both.</p>{shown}"
            f"{note if left_out else ''}</section>"
        )

    def __len__(self) -> int:
        """Count them."""
        return len(self._cards)


def overview(report: Report) -> str:
    """What happened to every record."""
    parts = [
        ("kept", report.kept, "kept"),
        ("equal", report.equal, "dropped, equal"),
        ("near", report.near, "dropped, near"),
        ("rejected", report.rejected, "rejected"),
    ]
    label = ", ".join(f"{count(number)} {name}" for _, number, name in parts)
    keys = "".join(
        f'<li class="key {kind}"><b>{count(number)}</b> {name}'
        f" <small>{100 * number / max(1, report.read):.1f}%</small></li>"
        for kind, number, name in parts
    )
    whole, saved = report.text_bytes
    command = ""
    if report.command:
        command = f"<p>To repeat it:</p><pre><code>{inert(report.command)}</code></pre>"
    warned = "".join(f"<li>{inert(each)}</li>" for each in report.warnings)
    warnings = f'<div class="warn"><h3>Look at this</h3><ul>{warned}</ul></div>' if warned else ""
    return (
        f'<section id="overview"><p class="lead"><b>{count(report.read)}</b> read ='
        f" <b>{count(report.kept)}</b> kept + <b>{count(report.dropped)}</b> dropped +"
        f" <b>{count(report.rejected)}</b> rejected</p>"
        f"{shares([(kind, number) for kind, number, _ in parts], label)}"
        f'<ul class="keys">{keys}</ul><p>{count(report.clusters)} clusters. Dropped text:'
        f" {size(saved)} of {size(whole)} ({100 * saved / max(1, whole):.1f}%)."
        f"{_empty(report.empty)}</p>{warnings}{command}<details><summary>Settings</summary>{rows(report.settings)}</details></section>"
    )


def _empty(empty: int) -> str:
    return f" {count(empty)} kept documents have no features and match nothing." if empty else ""


def threshold(report: Report) -> str:
    """What other thresholds would keep."""
    points = report.curve
    own = next(i for i, point in enumerate(points) if point.similarity == report.threshold)
    documents = report.read - report.rejected
    bound = "at least" if report.policy == "greedy" else "at most"
    below = (
        f"Below it, {bound} so many are kept: a document counts as dropped if the run dropped it or"
        " any earlier document is similar enough."
        if report.joined
        else "Lower thresholds were not searched in this run."
    )
    known = any(point.matched is not None for point in points)
    heads = ["similarity", "kept", "dropped"] + (["with an earlier match"] if known else [])
    lines = [
        [f"{point.similarity:.4g}", count(point.kept), count(documents - point.kept)]
        + ([count(point.matched)] if point.matched is not None else [""] * known)
        for point in points
    ]
    now = points[own]
    return (
        '<section id="threshold"><h2>Threshold</h2>'
        f"{curve(points, report.threshold, 'Documents kept at each threshold; table below')}"
        '<p class="slide"><label for="slider">Least similarity</label><input id="slider"'
        f' type="range" min="0" max="{len(points) - 1}" value="{own}" data-own="{own}" hidden>'
        f' <output for="slider" id="reading"><b>{now.similarity:.4g}</b>:'
        f" {count(now.kept)} kept, {count(documents - now.kept)} dropped (exact: this run)"
        "</output></p>"
        f'<p class="note">At {report.threshold:.4g}, the run&#39;s own, the figure is exact.'
        f" {below}"
        " Above it, a document that the run dropped counts as kept again if no earlier document is"
        " similar enough any more. How many documents have an earlier match is exact everywhere."
        f"</p><details><summary>All {len(points)} thresholds</summary>"
        f"{table(heads, lines, 'Thresholds')}</details></section>"
    )


def border(report: Report, pairs: Pairs) -> str:
    """The pairs on both sides of the threshold."""
    sides = (
        ("Dropped, but only just", "the least similar pairs", report.dropped_border, "dropped"),
        ("Kept, but only just", "the most similar pairs below", report.kept_border, "kept"),
    )
    written = []
    for title, which, shown, verdict in sides:
        lines = [
            [pairs.link(pair, verdict), " · ".join(map(name_of, pair.names)), excerpt(pair)]
            for pair in shown
        ]
        heads = ("similarity", f"earlier · {verdict}", "what differs first")
        body = table(heads, lines, title) if lines else '<p class="note">None.</p>'
        written.append(f"<div><h3>{title}</h3><p>{len(lines)} of {which}.</p>{body}</div>")
    return f'<section id="border"><h2>The border, from both sides</h2>{"".join(written)}</section>'


def clusters(report: Report, pairs: Pairs) -> str:
    """Sizes of clusters, and some of them."""
    most = max((number for _, _, number in report.sizes), default=0)
    lines = [
        [f"{low:,}" if low == high else f"{low:,} to {high:,}", amount(number, most), count(number)]
        for low, high, number in report.sizes
    ]
    histogram = table(("documents", "", "clusters"), lines, "Sizes of clusters") if lines else ""
    groups = "".join(_group(group, pairs) for group in report.groups if group.clusters)
    return (
        f'<section id="clusters"><h2>Clusters</h2><p>{count(report.clusters)} clusters of two'
        f" documents or more.</p>{histogram}{groups}</section>"
    )


def _group(group: ClusterGroup, pairs: Pairs) -> str:
    lines = []
    for each in group.clusters:
        fewest, most = each.features
        partly = "" if each.compared == each.size else f" <small>of {each.compared}</small>"
        weakest = f"{each.weakest:.3f}" if each.pair is None else pairs.link(each.pair, "dropped")
        lines.append(
            [
                name_of(each.name),
                count(each.size),
                weakest,
                f"{each.diameter:.3f}{partly}",
                count(fewest) if fewest == most else f"{fewest:,} to {most:,}",
            ]
        )
    heads = ("cluster", "documents", "weakest link", "diameter", "features")
    return f"<h3>{inert(group.title)}</h3>{table(heads, lines, group.title)}"


def sources(matrix: Matrix | None) -> str:
    """Which source lost documents to which."""
    if matrix is None:
        return ""
    highest = max((x for line in matrix.dropped for x in line), default=0)
    heads = ["dropped from ↓, kept in →", *map(name_of, matrix.names), "lost of"]
    lines = []
    for name, documents, line in zip(matrix.names, matrix.documents, matrix.dropped, strict=True):
        lost = sum(line)
        cells = [_shaded(x, highest) for x in line]
        share = f"{100 * lost / max(1, documents):.1f}%"
        lines.append([name_of(name), *cells, f"{share} of {count(documents)}"])
    return (
        f'<section id="sources"><h2>Source by source</h2><p>Sources are {inert(matrix.field)}.</p>'
        f"{table(heads, lines, 'Dropped documents by source')}</section>"
    )


def _shaded(number: int, highest: int) -> str:
    level = 0 if not number else 1 + min(4, 5 * number // (highest + 1))
    return f'<span class="q{level}">{count(number)}</span>'


def promises(report: Report, left_out: Sequence[str]) -> str:
    """What was searched, and what this page does not show."""
    lines = "".join(f"<li>{inert(each)}</li>" for each in left_out)
    cut = f"<h3>Left out of this page</h3><ul>{lines}</ul>" if lines else ""
    return f'<section id="promises"><h2>What was guaranteed</h2>{rows(report.facts)}{cut}</section>'
