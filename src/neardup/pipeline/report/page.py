"""The page: one file, the same bytes for the same record, complete without network or scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.errors import UsageError
from neardup.pipeline.report.drawings import amount, curve, shares
from neardup.pipeline.report.frame import SLIDER, count, frame, inert, name_of, rows, size, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.pipeline.report.model import ClusterGroup, Matrix, PairShown, Report

__all__ = [
    "MOST_BYTES",
    "Pairs",
    "border",
    "card",
    "clusters",
    "dropped",
    "excerpt",
    "overview",
    "page",
    "promises",
    "sources",
    "threshold",
]

MOST_BYTES: Final = 2_000_000
HARD_LIMIT: Final = 5_000_000
_KEPT_AT: Final = "Documents kept at each threshold, from zero; table below"
_LINKS: Final = (
    ("threshold", "Threshold"),
    ("border", "Border"),
    ("clusters", "Clusters"),
    ("pairs", "Pairs"),
    ("dropped", "All dropped"),
    ("sources", "Sources"),
    ("promises", "Guarantees"),
)


def page(report: Report, most: int = MOST_BYTES) -> str:
    """Write a report as HTML.

    Args:
        report: The content.
        most: The most bytes, up to 5,000,000; the page leaves out pairs beyond that, and says so.

    Raises:
        UsageError: If `most` is out of range.
    """
    if not 0 < most <= HARD_LIMIT:
        raise UsageError(f"the report may have {most:,} bytes: use 1 to {HARD_LIMIT:,}")
    pairs = Pairs()
    parts = [
        overview(report),
        threshold(report),
        border(report, pairs),
        clusters(report, pairs),
    ]
    shown, listed = len(pairs), len(report.removed)
    while True:
        text = _page(report, parts, pairs.section(shown) + dropped(report, listed))
        if len(text.encode()) <= most or not shown + listed:
            return text
        # The list is cut first: a row of it says less than a pair with its words.
        shown, listed = (shown, listed // 2) if listed else (shown // 2, 0)


def _page(report: Report, parts: list[str], pairs: str) -> str:
    body = "".join([*parts, pairs, sources(report.matrix), promises(report, report.left_out)])
    title = f"neardup: {count(report.kept)} of {count(report.read)} kept"
    return frame(title, "Near-duplicates", _LINKS, body, report.numbers(), SLIDER)


class Pairs:
    """The pairs of the page, each shown once; elsewhere a link leads to it."""

    def __init__(self) -> None:
        """Begin without any."""
        self._numbers: dict[tuple[str, str], int] = {}
        self._cards: list[str] = []

    def link(self, pair: PairShown) -> str:
        """Take a pair; returns the cell that links to it."""
        number = self._numbers.setdefault(pair.names, len(self._numbers) + 1)
        if number > len(self._cards):
            self._cards.append(card(pair, number))
        return f'<a href="#p{number}">{pair.similarity:.3f}</a>'

    def section(self, most: int) -> str:
        """The first `most` of them, one below the other."""
        shown = "".join(self._cards[:most])
        left_out = len(self._cards) - min(most, len(self._cards))
        note = f'<p class="note">{count(left_out)} pairs are left out for size.</p>'
        return (
            '<section id="pairs"><h2>Pairs, side by side</h2><p>Words that only the left document'
            " has are <del>marked so</del>, words that only the right one has"
            " <ins>marked so</ins>; what is not marked is in both. <kbd>j</kbd> opens the next"
            " pair, <kbd>k</kbd> the one before.</p>"
            '<p class="filter"><label for="filter" hidden>Show only what has</label><input'
            ' id="filter" type="search" hidden> <output id="found" for="filter"></output></p>'
            f"{shown}{note if left_out else ''}</section>"
        )

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self._cards)


def overview(report: Report) -> str:
    """The section on the fate of every record."""
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
        f'<section id="overview">{_heading(report)}<p class="lead">'
        f"<b>{count(report.read)}</b> read = <b>{count(report.kept)}</b> kept +"
        f" <b>{count(report.dropped)}</b> dropped + <b>{count(report.rejected)}</b> rejected</p>"
        f"{shares([(kind, number) for kind, number, _ in parts], label)}"
        f'<ul class="keys">{keys}</ul><p>{count(report.clusters)} clusters. Dropped text:'
        f" {size(saved)} of {size(whole)} ({100 * saved / max(1, whole):.1f}%)."
        f"{_empty(report.empty)}</p>{warnings}{_next(report)}{command}<details><summary>Settings</summary>{rows(report.settings)}</details></section>"
    )


def _heading(report: Report) -> str:
    """The heading: the inputs, and the day of their last change."""
    if not report.inputs:
        return ""
    first, *others = (name.rpartition("/")[2] or name for name in report.inputs)
    more = f" and {count(len(others))} more" if others else ""
    day = f'<p class="note">Changed last on {inert(report.changed)} (UTC).</p>'
    return f"<h2>{name_of(first)}{more}</h2>{day if report.changed else ''}"


def _next(report: Report) -> str:
    """The section on next steps."""
    if not report.dropped:
        return ""
    lower = " If pairs that were kept are copies, lower it." if report.joined else ""
    stricter = "higher <code>--similarity" if report.threshold else "smaller <code>--distance"
    return (
        '<p class="next"><b>What to do next:</b> read some pairs at <a href="#border">the'
        " border</a>. If pairs that were dropped are not copies, run again with"
        f" a {stricter}</code>.{lower} To put a number on it, judge some thirty pairs in the"
        " browser: <code>neardup review DUPLICATES</code>, with what <code>--duplicates</code>"
        " wrote.</p>"
    )


def _empty(empty: int) -> str:
    return f" {count(empty)} kept documents have no features and match nothing." if empty else ""


def threshold(report: Report) -> str:
    """The section on what other thresholds would keep."""
    points = report.curve
    own = next(i for i, point in enumerate(points) if point.similarity == report.threshold)
    documents = report.read - report.rejected
    bound = "at least" if report.policy == "greedy" else "at most"
    below = (
        f"Below it, the number kept is {bound} the one shown: a document counts as dropped if the"
        " run dropped it or any earlier document is similar enough."
        if report.joined
        else "Lower thresholds were not searched in this run."
    )
    has_matches = any(point.matched is not None for point in points)
    heads = ["similarity", "kept", "dropped"] + (["with an earlier match"] if has_matches else [])
    lines = [
        [f"{point.similarity:.4g}", count(point.kept), count(documents - point.kept)]
        + ([count(point.matched)] if point.matched is not None else [""] * has_matches)
        for point in points
    ]
    now = points[own]
    return (
        '<section id="threshold"><h2>Threshold</h2>'
        f"{curve(points, report.threshold, documents, _KEPT_AT)}"
        '<p class="slide"><label for="slider">Least similarity</label><input id="slider"'
        f' type="range" min="0" max="{len(points) - 1}" value="{own}" data-own="{own}" hidden>'
        f' <output for="slider" id="reading"><b>{now.similarity:.4g}</b>:'
        f" {count(now.kept)} kept, {count(documents - now.kept)} dropped (exact: this run)"
        "</output></p>"
        f'<p class="note">At {report.threshold:.4g}, the run&#39;s own, the figure is exact.'
        f" {below} Above it, a document that the run dropped counts as kept again if no earlier"
        " document is similar enough any more. How many documents have an earlier match is exact"
        " everywhere."
        f"</p><details><summary>All {len(points)} thresholds</summary>"
        f"{table(heads, lines, 'Thresholds')}</details></section>"
    )


def border(report: Report, pairs: Pairs) -> str:
    """The pairs on both sides of the threshold."""
    sides = (
        ("Dropped, but only just", "the least similar pairs", report.dropped_border),
        ("Kept, but only just", "the most similar pairs below", report.kept_border),
    )
    written = []
    for title, which, shown in sides:
        lines = [[pairs.link(pair), _both_names(pair), excerpt(pair)] for pair in shown]
        heads = ("similarity", "documents", "where they differ first")
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
        weakest = f"{each.weakest:.3f}" if each.pair is None else pairs.link(each.pair)
        lines.append(
            [
                f"{name_of(each.name)}{_beginning(each.pair)}",
                count(each.size),
                weakest,
                f"{each.diameter:.3f}{partly}",
                count(fewest) if fewest == most else f"{fewest:,} to {most:,}",
            ]
        )
    heads = ("cluster", "documents", "weakest link", "diameter", "features")
    return f"<h3>{inert(group.title)}</h3>{table(heads, lines, group.title)}"


def dropped(report: Report, most: int) -> str:
    """The first `most` dropped documents, the least similar first, each with its kept one."""
    if not report.removed:
        return ""
    lines = [
        [f"{score:.3f}", name_of(kept), name_of(gone)]
        for score, kept, gone in report.removed[:most]
    ]
    left = report.dropped - len(lines)
    note = f" {count(left)} more are at least as similar." if left else ""
    if not lines:
        return ""
    return (
        '<section id="dropped"><h2>All dropped documents</h2><p>The least similar first.'
        f'{note}</p><details class="all"><summary>{count(len(lines))} documents</summary>'
        f"{table(('similarity', 'kept', 'dropped'), lines, 'Dropped documents')}"
        "</details></section>"
    )


def sources(matrix: Matrix | None) -> str:
    """The section on the sources that lost documents to each other."""
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
    """The section on what was searched, and what this page leaves out."""
    lines = "".join(f"<li>{inert(each)}</li>" for each in left_out)
    cut = f"<h3>Left out of this page</h3><ul>{lines}</ul>" if lines else ""
    return f'<section id="promises"><h2>What was guaranteed</h2>{rows(report.facts)}{cut}</section>'


MOST_OF_AN_EXCERPT: Final = 60
MOST_AROUND: Final = 32
MOST_OF_A_VALUE: Final = 300
_TAGS: Final = {"removed": "del", "added": "ins"}


def _both_names(pair: PairShown) -> str:
    """Both documents, each with its fate."""
    verdicts = zip(pair.verdicts, map(name_of, pair.names), strict=True)
    return ", ".join(
        f"<small>{verdict}</small> {name}" if verdict else name for verdict, name in verdicts
    )


def card(pair: PairShown, number: int) -> str:
    """A pair as an element that opens; its id is "p" and its number; the first is open."""
    state = " open" if number == 1 else ""
    return (
        f'<details class="pair" id="p{number}"{state}><summary><b>{pair.similarity:.3f}</b>'
        f" {_both_names(pair)}</summary>{_waterfall(pair)}{_fields(pair)}{_texts(pair)}"
        "</details>"
    )


def excerpt(pair: PairShown) -> str:
    """The first words in which the two differ, with their context."""
    runs = pair.runs or ()
    at = next((i for i, (kind, _) in enumerate(runs) if kind != "equal"), None)
    if at is None:
        return ""
    parts = [inert(_last_words(runs[at - 1][1], MOST_AROUND))] if at else []
    for kind, text in runs[at:]:
        tag = _TAGS.get(kind)
        if tag is None:
            parts.append(inert(_first_words(text, MOST_AROUND)))
            break
        parts.append(f"<{tag}>{inert(_first_words(text, MOST_OF_AN_EXCERPT))}</{tag}>")
    return f'<span dir="auto">{" ".join(parts)}</span>'


def _beginning(pair: PairShown | None) -> str:
    """The first words of the first document, on a line of their own."""
    runs = () if pair is None else pair.runs or ()
    words = _first_words(
        "".join(text for kind, text in runs if kind != "added"), MOST_OF_AN_EXCERPT
    )
    return f'<br><small dir="auto">{inert(words)}</small>' if words else ""


def _first_words(text: str, most: int) -> str:
    text = " ".join(text[: 4 * most].split())
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0] or text[:most]} …"


def _last_words(text: str, most: int) -> str:
    text = " ".join(text[-4 * most :].split())
    return text if len(text) <= most else f"… {text[-most:].partition(' ')[2] or text[-most:]}"


def _waterfall(pair: PairShown) -> str:
    left, right = pair.only
    whole = left + pair.shared + right
    parts = (("first", left), ("shared", pair.shared), ("second", right))
    apart = "" if pair.distance is None else f"; {count(pair.distance)} bits apart"
    label = f"{left} features only in the first, {pair.shared} shared, {right} only in the second"
    return (
        f"<figure>{shares(parts, label)}<figcaption>"
        f'<span class="key first">only left {count(left)}</span>'
        f'<span class="key shared">shared {count(pair.shared)}</span>'
        f'<span class="key second">only right {count(right)}</span>'
        f"<span>{count(pair.shared)} of {count(whole)} features; similarity"
        f" {pair.similarity:.4f}{apart}</span>"
        f"</figcaption></figure>"
    )


def _fields(pair: PairShown) -> str:
    """A row a field; where the two differ, both are marked."""
    if not pair.fields:
        return ""
    lines = []
    for name, first, second in pair.fields:
        tags = ("", "") if first == second else ("del", "ins")
        cells = [_value(value, tag) for value, tag in zip((first, second), tags, strict=True)]
        lines.append([f"<bdi>{inert(name)}</bdi>", *cells])
    heads = ("field", *map(name_of, pair.names))
    return f'<div class="fields">{table(heads, lines, "Other fields")}</div>'


def _value(value: str | None, tag: str) -> str:
    if value is None:
        return "<small>none</small>"
    text = value if len(value) <= MOST_OF_A_VALUE else f"{value[:MOST_OF_A_VALUE]}…"
    shown = f"<bdi>{inert(text)}</bdi>"
    return f"<{tag}>{shown}</{tag}>" if tag else shown


def _texts(pair: PairShown) -> str:
    note = f'<p class="note">{inert(pair.note)}</p>' if pair.note else ""
    if pair.runs is None:
        return note
    sides = "".join(
        f'<div dir="auto"><h4>{name_of(name)}</h4><p>{_side(pair, other)}</p></div>'
        for name, other in zip(pair.names, ("added", "removed"), strict=True)
    )
    longest = ""
    if pair.longest:
        words = count(len(pair.longest.split()))
        longest = (
            f'<p class="note" dir="auto">Longest shared run, {words} words:'
            f" <q>{inert(pair.longest[:300])}</q>{'…' if len(pair.longest) > 300 else ''}</p>"
        )
    return f'<div class="sides">{sides}</div>{longest}{note}'


def _side(pair: PairShown, other: str) -> str:
    """One text: the runs without those of the other."""
    written = []
    for kind, text in pair.runs or ():
        if kind == other:
            continue
        tag = _TAGS.get(kind)
        written.append(f"<{tag}>{inert(text)}</{tag}>" if tag else inert(text))
    return "".join(written)
