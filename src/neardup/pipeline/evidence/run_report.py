"""The report of a run, as one of its outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.documents import OutputSet, ReadOptions
    from neardup.pipeline.evidence.pair_texts import Values
    from neardup.pipeline.run.against import Against, ReferenceIndex
    from neardup.pipeline.run.rule import Rule
    from neardup.pipeline.run.run_outputs import Outputs, ReportOptions
    from neardup.pipeline.run.summary import Outcome

__all__ = ["check_reference", "check_report", "with_source", "write_report"]


def check_report(
    outputs: Outputs, rule: Rule, read: ReadOptions, against: Against | None = None
) -> None:
    """Refuse, before hours of work, a report that cannot be written.

    Raises:
        UsageError: For a run by distance, or one that can be resumed, against an index, two fields
            of sources, or thresholds that begin above the run's own.
    """
    options = outputs.report
    if options is None:
        return
    if against is not None and not rule.by_features:
        raise UsageError(
            "a report with an index requires the similarity: use similarity, or distance with"
            " verify, or leave out against"
        )
    if against is not None and outputs.resume is not None:
        raise UsageError("a report with an index cannot be resumed: leave out resume or report")
    if options.source is not None and read.within not in {None, options.source}:
        raise UsageError(
            f"source is {options.source!r} and within {read.within!r}: the report counts by within"
            " already, leave out source"
        )
    from neardup.pipeline.evidence.levels import lowest_threshold

    lowest_threshold(rule, options.lowest)


def check_reference(options: ReportOptions | None, reference: ReferenceIndex | None) -> None:
    """Refuse a report about a run whose index cannot say how similar its documents are.

    Raises:
        UsageError: For an index by similarity.
    """
    if options is not None and reference is not None and reference.is_similar:
        raise UsageError(
            f"{reference.facts['path']} is by similarity, and the report needs an index of"
            " fingerprints with --store features or text: leave out --report"
        )


def with_source(options: ReportOptions | None, read: ReadOptions) -> tuple[ReadOptions, bool]:
    """Reading options with the field of the sources, and whether matches stay within its values."""
    if options is None or options.source is None or read.within is not None:
        return read, True
    return replace(read, within=options.source), False


def write_report(
    run: Outcome,
    options: ReportOptions | None,
    texts_of: Callable[[set[int]], dict[int, str]],
    written: OutputSet,
    values_of: Callable[[set[str]], Values] | None = None,
) -> None:
    """Write the page, and its numbers on request; they appear with the other outputs.

    With None nothing is written.
    """
    if options is None:
        return
    import orjson

    from neardup.pipeline.evidence.gather import gather
    from neardup.pipeline.report import page

    report = gather(run, options, texts_of, values_of)
    written.create(options.path).write(page(report).encode())
    if options.summary is not None:
        numbers = orjson.dumps(report.numbers(), option=orjson.OPT_INDENT_2)
        written.create(options.summary).write(numbers + b"\n")
