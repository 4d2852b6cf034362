"""The page about questions of benchmarks in documents: each question above its passage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from neardup.pipeline.report.drawings import amount, shares
from neardup.pipeline.report.frame import count, frame, inert, name_of, rows, table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LeakReport", "LeakShown", "leak_page"]

_LINKS: Final = (
    ("overview", "Overview"),
    ("benchmarks", "Benchmarks"),
    ("findings", "Findings"),
    ("common", "Common text"),
    ("settings", "Settings"),
)
_STYLE: Final = """
mark{background:var(--ins);color:var(--insfg);border-radius:2px}
.passage{border-left:4px solid var(--near);padding-left:.6rem}
.around{color:var(--soft)}
.pair p{white-space:pre-wrap}
"""


@dataclass(frozen=True, slots=True)
class LeakShown:
    """A question in a document.

    Args:
        question: Its name.
        document: Its name.
        benchmark: The file, and the part if there are several.
        rule: "share", "run", "both" or a published rule.
        share: Of the question's features.
        run: Words of the longest run.
        parts: The question in parts: whether each is shared, and its text.
        before: The text before the passage.
        passage: As `parts`.
        after: The text after it.
        others: The number of other passages that suffice by themselves.
    """

    question: str
    document: str
    benchmark: str
    rule: str
    share: float
    run: int
    parts: Sequence[tuple[bool, str]]
    before: str
    passage: Sequence[tuple[bool, str]]
    after: str
    others: int


@dataclass(frozen=True, slots=True)
class LeakReport:
    """The content of the page.

    Args:
        read: Records.
        kept: Documents that were kept whole.
        cut: Documents that lost passages.
        dropped: Documents.
        rejected: Records that could not be used.
        findings: Pairs of a document and a question.
        benchmarks: Name, questions, found, found whole only, of one word, and empty, of each.
        leaks: Those of least share first.
        common: Findings by common text alone, also by least share.
        commons: Their number.
        settings: Names and values.
        warnings: Lines.
    """

    read: int
    kept: int
    cut: int
    dropped: int
    rejected: int
    findings: int
    benchmarks: Sequence[tuple[str, int, int, int, int, int]]
    leaks: Sequence[LeakShown]
    common: Sequence[LeakShown]
    commons: int
    settings: Sequence[tuple[str, str]]
    warnings: Sequence[str] = field(default_factory=list)

    def numbers(self) -> dict[str, Any]:
        """The numbers of the page, for machines."""
        names = ("read", "kept", "cut", "dropped", "rejected", "findings")
        heads = ("benchmark", "questions", "found", "short", "one_word", "empty")
        return {name: getattr(self, name) for name in names} | {
            "common": self.commons,
            "benchmarks": [dict(zip(heads, row, strict=True)) for row in self.benchmarks],
        }


def leak_page(report: LeakReport) -> str:
    """Write the report as HTML."""
    leaks = report.findings - report.commons
    body = (
        _overview(report)
        + _benchmarks(report)
        + _section("findings", "Findings", report.leaks, leaks, 0)
        + _section("common", "Common text, no leak", report.common, report.commons, leaks)
        + f'<section id="settings"><h2>Settings</h2>{rows(report.settings)}</section>'
    )
    title = f"neardup: {count(leaks)} findings in {count(report.read)} documents"
    return frame(title, "Contamination", _LINKS, body, report.numbers(), style=_STYLE)


def _overview(report: LeakReport) -> str:
    parts = [
        ("kept", report.kept, "kept"),
        ("equal", report.cut, "kept without the passages"),
        ("near", report.dropped, "dropped"),
        ("rejected", report.rejected, "rejected"),
    ]
    parts = [part for part in parts if part[0] != "equal" or part[1]]
    label = ", ".join(f"{count(number)} {name}" for _, number, name in parts)
    keys = "".join(
        f'<li class="key {kind}"><b>{count(number)}</b> {name}</li>' for kind, number, name in parts
    )
    warned = "".join(f"<li>{inert(each)}</li>" for each in report.warnings)
    warnings = f'<div class="warn"><h3>Look at this</h3><ul>{warned}</ul></div>' if warned else ""
    return (
        f'<section id="overview"><p class="lead"><b>{count(report.findings)}</b> times a question'
        f" stands in one of <b>{count(report.read)}</b> documents.</p>"
        f"{shares([(kind, number) for kind, number, _ in parts], label)}"
        f'<ul class="keys">{keys}</ul>{warnings}</section>'
    )


def _benchmarks(report: LeakReport) -> str:
    heads = ("benchmark", "questions", "found", "", "share", "short", "one word", "empty")
    lines = [
        [
            name_of(name),
            count(questions),
            count(leaked),
            amount(leaked, questions),
            f"{100 * leaked / max(1, questions):.2f}%",
            *map(count, left_out),
        ]
        for name, questions, leaked, *left_out in report.benchmarks
    ]
    return (
        f'<section id="benchmarks"><h2>Benchmarks</h2>{table(heads, lines, "Benchmarks")}'
        '<p class="note">Short questions are found whole only; those of one word, and empty ones,'
        " never.</p></section>"
    )


def _section(id_: str, title: str, shown: Sequence[LeakShown], number: int, first: int) -> str:
    if not number:
        return ""
    which = "All of them" if number == len(shown) else f"{count(len(shown))} of {count(number)}"
    cards = "".join(_card(each, first + at) for at, each in enumerate(shown, 1))
    return (
        f'<section id="{id_}"><h2>{title}</h2><p>{which}, the smallest share first: what is least'
        " certain. <mark>Marked</mark> words lie in features that both have. <kbd>j</kbd> opens"
        f" the next, <kbd>k</kbd> the one before.</p>{cards}</section>"
    )


def _card(leak: LeakShown, number: int) -> str:
    state = " open" if number == 1 else ""
    others = f"; {count(leak.others)} more passages" if leak.others else ""
    return (
        f'<details class="pair" id="f{number}"{state}><summary><b>{leak.share:.3f}</b>'
        f" {name_of(leak.question)} <small>in</small> {name_of(leak.document)}</summary>"
        f"<h4>Question of {name_of(leak.benchmark)}</h4>"
        f'<p dir="auto">{_marked(leak.parts)}</p><h4>Document</h4><p class="passage" dir="auto">'
        f'<span class="around">{inert(leak.before)}</span>{_marked(leak.passage)}'
        f'<span class="around">{inert(leak.after)}</span></p>'
        f'<p class="note">rule {inert(leak.rule)}; {count(leak.run)} words in a row{others}</p>'
        "</details>"
    )


def _marked(parts: Sequence[tuple[bool, str]]) -> str:
    return "".join(
        f"<mark>{inert(text)}</mark>" if is_shared else inert(text) for is_shared, text in parts
    )
