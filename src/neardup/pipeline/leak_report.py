"""The content of a report about questions in documents: the least certain findings, and texts."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from neardup.contamination.findings import findings_table
from neardup.contamination.passages import shared_parts
from neardup.pipeline.report.leaks import LeakReport, LeakShown, leak_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.contamination.passages import Finding
    from neardup.documents import OutputSet
    from neardup.pipeline.benchmarks import BenchmarkQuestions
    from neardup.pipeline.run.summary import ContaminationSummary
    from neardup.runtime.types import Flags

__all__ = ["write_leak_report"]

MOST_LEAKS: Final = 150
MOST_COMMON: Final = 30
MOST_CHARACTERS: Final = 3000
"""The most characters of a question or a passage."""


def write_leak_report(
    path: str,
    batches: Iterable[tuple[list[Finding], list[str], Flags]],
    benchmark: BenchmarkQuestions,
    summary: ContaminationSummary,
    written: OutputSet,
) -> None:
    """Write the page; it appears with the set's other files.

    Args:
        path: Of the page.
        batches: The findings, the names of their documents, and which are leaks.
        benchmark: The questions.
        summary: Of the run.
        written: The outputs.
    """
    leaks: list[tuple[Finding, str]] = []
    common: list[tuple[Finding, str]] = []
    for findings, names, stand in batches:
        rows = list(zip(findings, names, stand.tolist(), strict=True))
        leaks = _least(MOST_LEAKS, leaks, ((x, name) for x, name, leak in rows if leak))
        common = _least(MOST_COMMON, common, ((x, name) for x, name, leak in rows if not leak))
    report = LeakReport(
        read=summary.read,
        kept=summary.kept - summary.cut,
        cut=summary.cut,
        dropped=summary.dropped,
        rejected=summary.rejected,
        findings=summary.findings,
        benchmarks=[
            (each.name, each.questions, each.found, each.short, each.one_word, each.empty)
            for each in summary.benchmarks
        ],
        leaks=[_shown(each, name, benchmark) for each, name in leaks],
        common=[_shown(each, name, benchmark) for each, name in common],
        commons=summary.common,
        settings=[(x, str(value)) for x, value in summary.settings.items() if value is not None],
        warnings=summary.warnings,
    )
    written.create(path).write(leak_page(report).encode())


def _least(
    most: int, before: list[tuple[Finding, str]], more: Iterable[tuple[Finding, str]]
) -> list[tuple[Finding, str]]:
    """The findings of least share among `before` and `more`; of equal ones the first."""
    return nsmallest(
        most, [*before, *more], key=lambda x: (x[0].share, x[0].run, x[0].document, x[0].question)
    )


def _shown(finding: Finding, document: str, benchmark: BenchmarkQuestions) -> LeakShown:
    name, part = benchmark.of[finding.question]
    question = benchmark.texts[finding.question].as_py()
    return LeakShown(
        question=benchmark.addresses[finding.question].as_py(),
        document=document,
        benchmark=name if part is None else f"{name} {part}",
        rule=findings_table([finding], benchmark.questions)["rule"][0].as_py(),
        share=finding.share,
        run=finding.run,
        parts=shared_parts(question[:MOST_CHARACTERS], finding, benchmark.questions),
        before=finding.before,
        passage=shared_parts(finding.text[:MOST_CHARACTERS], finding, benchmark.questions),
        after=finding.after,
        others=len(finding.passages) - 1,
    )
