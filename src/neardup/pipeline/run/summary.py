"""Summaries of runs: counts that add up, the time of each step, and the paths of outputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from neardup.documents import rejects_doubt
from neardup.index.hits import ABSENT
from neardup.pipeline.run.likely_missed import likely_missed
from neardup.pipeline.run.rule import settings
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Choice, Limits, Rule
    from neardup.runtime.progress import Stopwatch

__all__ = [
    "BenchmarkCounts",
    "ClustersSummary",
    "ContaminationSummary",
    "FingerprintSummary",
    "IndexSummary",
    "LinesSummary",
    "Outcome",
    "PairsSummary",
    "QuerySummary",
    "Record",
    "Summary",
    "summarise",
]

_LARGE: Final = 1_000_000
_MOST_LINES: Final = 5
_MOST_FILES: Final = 20  # of a folder, that are named


class Record:
    """The numbers of a run: a frozen dataclass that can be printed and converted to JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]  # only dataclasses derive


class ReadingRecord(Record):
    """The record of a run that reads `nbytes` of input."""

    __slots__ = ()
    nbytes: int
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return Record.to_dict(self) | {"megabytes_per_second": round(_rate(self), 1)}


class WithMessages(Protocol):
    """A summary with notes and warnings."""

    @property
    def notes(self) -> list[str]: ...

    @property
    def warnings(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Summary(ReadingRecord):
    """The result of one run in numbers; kept + dropped + rejected = read, always.

    Args:
        read: Records seen, good and bad.
        kept: Documents kept.
        dropped: Documents dropped as duplicates of a kept one.
        rejected: Records that could not be used.
        empty: Kept documents without any token, which match nothing.
        clusters: Groups of two documents or more.
        nbytes: Bytes of input.
        seconds: Time of each step and, as `total`, of all.
        outputs: Files written.
        settings: The options: recipe, its digest, distance, policy, keep.
        notes: Less visible decisions, such as a detected encoding, one line each.
        warnings: Reasons to doubt the result, one line each.
        own: Documents that the index had under their own id, dropped or not (see the parameter
            "own_ids" of `dedup`). Of ids that neardup makes, only those with the same content.
    """

    read: int
    kept: int
    dropped: int
    rejected: int
    empty: int
    clusters: int
    nbytes: int
    seconds: dict[str, float]
    outputs: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    own: int = 0

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        """A few lines for people."""
        share = 100 * self.dropped / max(1, self.read)
        groups = "1 cluster" if self.clusters == 1 else f"{self.clusters:,} clusters"
        noun = "document" if self.read == 1 else "documents"
        own = [f"own id    {self.own:>12,} were in the index before"] if self.own else []
        return _lines(
            self,
            f"read      {self.read:>12,} {noun}, {_size(self.nbytes)}",
            f"kept      {self.kept:>12,}" + (f" ({self.empty:,} empty)" if self.empty else ""),
            f"dropped   {self.dropped:>12,} ({share:.1f}%) in {groups}",
            *own,
            f"rejected  {self.rejected:>12,}",
        )


@dataclass(frozen=True, slots=True)
class FingerprintSummary(ReadingRecord):
    """The numbers of `neardup fingerprint`; documents + rejected = records read, always.

    Args:
        documents: Records with a text.
        fingerprints: Documents that have a fingerprint.
        empty: Documents without any token, whose fingerprint is null.
        rejected: Records that could not be used.
        nbytes: Bytes of input.
        seconds: Time of each step and, as `total`, of all.
        outputs: Files written.
        settings: The recipe and its digest.
        notes: As for Summary.
        warnings: As for Summary.
    """

    documents: int
    fingerprints: int
    empty: int
    rejected: int
    nbytes: int
    seconds: dict[str, float]
    outputs: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """A few lines for people."""
        return _lines(
            self,
            f"documents {self.documents:>12,}, {_size(self.nbytes)}",
            f"hashed    {self.fingerprints:>12,} fingerprints",
            f"empty     {self.empty:>12,}",
            f"rejected  {self.rejected:>12,}",
        )


@dataclass(frozen=True, slots=True)
class BenchmarkCounts(Record):
    """The counts of one benchmark, or of one part of its questions.

    Args:
        benchmark: The file.
        part: The field; None if questions are searched as a whole.
        questions: The number of questions.
        found: The number that occur in some document.
        short: The number with fewer words than a rule compares, which are only found whole.
        one_word: The number with one word, which are never found.
        empty: The number without words.
    """

    benchmark: str
    part: str | None
    questions: int
    found: int
    short: int
    one_word: int
    empty: int

    @property
    def name(self) -> str:
        """The file, and the part if there are several."""
        return self.benchmark if self.part is None else f"{self.benchmark} {self.part}"

    def __str__(self) -> str:
        """A line for people."""
        share = 100 * self.found / max(1, self.questions)
        counts = f"{self.found:>12,} of {self.questions:,} questions ({share:.2f}%)"
        line = f"{counts} of {shown(self.name)}"
        left_out = [
            f"{count:,} {what}"
            for count, what in (
                (self.short, "short: found whole only"),
                (self.one_word, "of one word: never found"),
                (self.empty, "empty"),
            )
            if count
        ]
        return f"{line} ({', '.join(left_out)})" if left_out else line


@dataclass(frozen=True, slots=True)
class ContaminationSummary(ReadingRecord):
    """The numbers of `neardup decontaminate`; kept + dropped + rejected = read, always.

    Args:
        read: Records seen, good and bad.
        kept: Documents without a question.
        dropped: Documents with a question.
        rejected: Records that could not be used.
        cut: Of the kept ones, those that lost passages with questions.
        findings: Pairs of a document and a question that was found in it.
        common: Of these, those by common text alone, for which nothing is dropped.
        benchmarks: The counts of each benchmark, a record for each part.
        nbytes: Bytes of input.
        seconds: Time of each step and, as `total`, of all.
        outputs: Files written.
        settings: The rules.
        notes: As for Summary.
        warnings: As for Summary.
    """

    read: int
    kept: int
    dropped: int
    rejected: int
    cut: int
    findings: int
    common: int
    benchmarks: list[BenchmarkCounts]
    nbytes: int
    seconds: dict[str, float]
    outputs: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """The largest share of a benchmark's questions that was found."""
        return max((each.found / max(1, each.questions) for each in self.benchmarks), default=0.0)

    def __str__(self) -> str:
        """A few lines for people."""
        share = 100 * self.dropped / max(1, self.read)
        noun = "document" if self.read == 1 else "documents"
        common = f" ({self.common:,} of them by common text alone)" if self.common else ""
        return _lines(
            self,
            f"read      {self.read:>12,} {noun}, {_size(self.nbytes)}",
            f"kept      {self.kept:>12,}"
            + (f", {self.cut:,} of them without the passages" if self.cut else ""),
            f"dropped   {self.dropped:>12,} ({share:.1f}%)",
            f"rejected  {self.rejected:>12,}",
            f"findings  {self.findings:>12,} pairs of a document and a question{common}",
            *(f"found     {each}" for each in self.benchmarks),
        )


@dataclass(frozen=True, slots=True)
class LinesSummary(ReadingRecord):
    """The numbers of `neardup lines`; documents + rejected = records read, always.

    Args:
        documents: Records with a text; all of them are written.
        changed: Documents from which a unit was cut.
        emptied: Documents without units left.
        rejected: Records that could not be used.
        units: Paragraphs or lines of enough words.
        repeated: Distinct ones that enough documents have.
        cut: The number of cut units.
        cut_bytes: Bytes of cut text, with the line breaks after it.
        spilled: Bytes of temporary files.
        nbytes: Bytes of input.
        seconds: Time of each step and, as `total`, of all.
        outputs: Files written.
        settings: The options.
        notes: As for Summary.
        warnings: As for Summary.
    """

    documents: int
    changed: int
    emptied: int
    rejected: int
    units: int
    repeated: int
    cut: int
    cut_bytes: int
    spilled: int
    nbytes: int
    seconds: dict[str, float]
    outputs: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """A few lines for people."""
        noun = "document" if self.documents == 1 else "documents"
        kind, least = self.settings["unit"], self.settings["min_words"]
        emptied = f" ({self.emptied:,} of them to nothing)" if self.emptied else ""
        return _lines(
            self,
            f"read      {self.documents:>12,} {noun}, {_size(self.nbytes)}",
            f"{kind + 's':<10}{self.units:>12,} of {least} words or more",
            f"repeated  {self.repeated:>12,} in {self.settings['seen_in']:,} documents or more",
            f"cut       {self.cut:>12,} {kind}s, {_size(self.cut_bytes)}",
            f"changed   {self.changed:>12,} documents{emptied}",
            f"rejected  {self.rejected:>12,}",
        )


@dataclass(frozen=True, slots=True)
class PairsSummary(Record):
    """The numbers of `neardup pairs`.

    Args:
        fingerprints: Rows that were joined, those without a fingerprint among them.
        pairs: Pairs within the distance.
        distance: Most bits in which two fingerprints differ.
        bits: Width of a fingerprint.
        plan: As it was asked for.
        output: The file written.
        spilled: Bytes of temporary files.
        seconds: Time of each step and, as `total`, of all.
        warnings: As for Summary.
    """

    fingerprints: int
    pairs: int
    distance: int
    bits: int
    plan: str
    output: str
    spilled: int
    seconds: dict[str, float]
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Two lines for people."""
        return _counts(f"{self.pairs:,} pairs", self)


@dataclass(frozen=True, slots=True)
class ClustersSummary(Record):
    """The numbers of `neardup pairs --clusters`.

    Args:
        fingerprints: Rows, those without a fingerprint among them.
        kept: Rows that are kept.
        distance: Most bits in which two fingerprints that match differ.
        bits: Width of a fingerprint.
        plan: As it was asked for.
        policy: "greedy" or "components".
        output: The file written.
        seconds: Time of each step and, as `total`, of all.
        warnings: As for Summary.
    """

    fingerprints: int
    kept: int
    distance: int
    bits: int
    plan: str
    policy: str
    output: str
    seconds: dict[str, float]
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Two lines for people."""
        return _counts(f"{self.kept:,} kept", self)


@dataclass(frozen=True, slots=True)
class FilterSummary(Record):
    """Lines that passed through an index; new + unchanged + seen + empty + rejected = read.

    Args:
        read: Lines, good and bad.
        new: Lines whose documents were stored.
        unchanged: Lines whose id was stored before, and that version stays.
        seen: Lines to which a document near them was stored.
        empty: Lines without tokens, which match nothing and are not stored.
        rejected: Lines that could not be read.
        documents: Documents in the index now.
        seconds: Time of each step and, as `total`, of all.
    """

    read: int
    new: int
    unchanged: int
    seen: int
    empty: int
    rejected: int
    documents: int
    seconds: dict[str, float]

    def __str__(self) -> str:
        """A few lines for people."""
        unchanged = f", {self.unchanged:,} unchanged" if self.unchanged else ""
        return "\n".join(
            [
                f"read      {self.read:>12,} ({self.rejected:,} rejected, {self.empty:,} empty)",
                f"new       {self.new:>12,}{unchanged}, {self.seen:,} seen before",
                f"index     {self.documents:>12,} documents",
                f"seconds   {self.seconds['total']:.2f}",
            ]
        )


@dataclass(frozen=True, slots=True)
class IndexSummary(Record):
    """The numbers of adding; stored + unchanged + seen + empty + rejected = records read.

    Args:
        read: Records seen, good and bad.
        stored: Documents stored.
        replaced: Of these, those whose id was stored before, also by this run.
        unchanged: Documents left out because their id was stored, and that version stays (only with
            `--if-new`).
        seen: Documents left out because another near one was stored (only with `--if-new`).
        empty: Documents without tokens, which match nothing and are not stored.
        rejected: Records that could not be used.
        documents: Documents in the index now.
        seconds: Time of each step and, as `total`, of all.
        notes: As for Summary.
        warnings: As for Summary.
    """

    read: int
    stored: int
    replaced: int
    unchanged: int
    seen: int
    empty: int
    rejected: int
    documents: int
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """A few lines for people."""
        notes = f" ({self.replaced:,} replaced)" if self.replaced else ""
        notes += f", {self.unchanged:,} unchanged" if self.unchanged else ""
        notes += f", {self.seen:,} seen before" if self.seen else ""
        return "\n".join(
            [
                f"read      {self.read:>12,} ({self.rejected:,} rejected, {self.empty:,} empty)",
                f"stored    {self.stored:>12,}{notes}",
                f"index     {self.documents:>12,} documents",
                f"seconds   {self.seconds['total']:.2f}",
                *_message_lines(self),
            ]
        )


@dataclass(frozen=True, slots=True)
class QuerySummary(Record):
    """The numbers of queries to an index from files.

    Args:
        queries: Documents that were searched for.
        empty: Documents without tokens, which match nothing.
        matched: Documents near a stored one.
        hits: Rows written.
        cut: Hits beyond the limit, which are not written.
        rejected: Records that could not be used.
        seconds: Time of each step and, as `total`, of all.
        output: The file written.
        notes: As for Summary.
        warnings: As for Summary.
    """

    queries: int
    empty: int
    matched: int
    hits: int
    cut: int
    rejected: int
    seconds: dict[str, float]
    output: str
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """A line for each."""
        steps = ", ".join(f"{step} {taken:,.2f}" for step, taken in self.seconds.items())
        counts = ("queries", "empty", "matched", "hits", "cut", "rejected")
        lines = [f"{name:<12} {getattr(self, name):,}" for name in counts]
        written = [f"{'seconds':<12} {steps}", f"{'output':<12} {shown(self.output)}"]
        return "\n".join([*lines, *written, *_message_lines(self)])


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run after its decision.

    Args:
        documents: With their features; those of an index, if it has any, follow.
        decision: What was decided about the run's own.
        rule: When documents matched.
        choice: Which were kept.
        limits: The resources of a report.
        rejected: Records that could not be used.
        field: The field of the groups; None without groups.
    """

    documents: Documents
    decision: Decision
    rule: Rule
    choice: Choice
    limits: Limits
    rejected: int
    field: str | None = None


def summarise(
    run: Outcome, watch: Stopwatch, outputs: list[str], messages: tuple[list[str], list[str]]
) -> Summary:
    """A run in numbers; `messages` has the lines of its notes and warnings."""
    decision, own, kept = run.decision, run.documents.own, int(run.decision.kept.sum())
    doubts = run.rule.doubt(own), rejects_doubt(own, run.rejected)
    missed = likely_missed(run.rule, run.documents.sizes[:own], run.documents.sample)
    undated = missing_note(run.choice, int(np.count_nonzero(np.isnan(run.documents.scores))))
    seconds = watch.stop()
    return Summary(
        read=own + run.rejected,
        kept=kept,
        dropped=own - kept,
        rejected=run.rejected,
        empty=int(run.documents.empty[:own].sum()),
        clusters=len(np.unique(decision.label[~decision.kept])),
        nbytes=run.documents.nbytes,
        seconds=seconds,
        outputs=outputs,
        settings=settings(run.rule, run.choice),
        notes=[*messages[0], *filter(None, (undated, missed))],
        warnings=[*messages[1], *filter(None, doubts)],
        own=0 if decision.own is None else int(np.count_nonzero(decision.own != ABSENT)),
    )


def missing_note(choice: Choice, count: int) -> str | None:
    """A note on documents without the date that decides; None if all have one."""
    if not (choice.dates and count):
        return None
    has = "document has" if count == 1 else "documents have"
    comes = "comes" if count == 1 else "come"
    return f"{count:,} {has} no date in the field {choice.number}, and {comes} last"


def _counts(what: str, run: PairsSummary | ClustersSummary) -> str:
    return (
        f"{what} within {run.distance} bits among {run.fingerprints:,} fingerprints in"
        f" {run.seconds['total']:.2f} s (plan {run.plan})\nwrote {shown(run.output)}"
        + "".join(f"\nwarning: {shown(line)}" for line in run.warnings)
    )


def _lines(
    run: Summary | FingerprintSummary | ContaminationSummary | LinesSummary, *counts: str
) -> str:
    steps = ", ".join(f"{step} {taken:.2f}" for step, taken in run.seconds.items())
    rate = f" ({_rate(run):,.0f} MB/s)" if run.nbytes >= _LARGE else ""
    written = [f"wrote     {x}" for x in _named(run.outputs)]
    return "\n".join([*counts, f"seconds   {steps}{rate}", *written, *_message_lines(run)])


def _named(outputs: list[str]) -> Iterable[str]:
    """Outputs as a summary names them: many files of one folder by the folder and their number."""
    files = Counter(path.rpartition("/")[0] for path in outputs)

    def name(path: str) -> str:
        folder = path.rpartition("/")[0]
        if folder and files[folder] > _MOST_FILES:
            return f"{shown(folder)}/ ({files[folder]:,} files)"
        return "standard output" if path == "-" else shown(path)

    return dict.fromkeys(map(name, outputs))


def _message_lines(run: WithMessages) -> list[str]:
    """The last lines of a summary: notes and warnings, the first few of each."""
    lines = [f"note      {shown(x)}" for x in _first(run.notes)]
    return lines + [f"warning   {shown(x)}" for x in _first(run.warnings)]


def _first(lines: list[str]) -> list[str]:
    rest = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + (
        [f"{rest:,} more of the kind (--json has all)"] if rest > 0 else []
    )


def _rate(run: ReadingRecord) -> float:
    """Megabytes (10**6 bytes) of input a second."""
    return run.nbytes / 1e6 / max(run.seconds.get("total", 0.0), 1e-9)


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB" if nbytes >= _LARGE else f"{nbytes:,} bytes"
