"""Find the questions of benchmarks in training data, and leave out the documents that hold them.

The questions are in memory; documents are read once, and a second time to write the others.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.contamination.findings import (
    covered_enough,
    findings_table,
    leaks,
    uncommon_shares,
)
from neardup.contamination.questions import lay_out
from neardup.contamination.rules import leak_rule
from neardup.contamination.search import Search
from neardup.documents import (
    OutputSet,
    Rejects,
    is_folder,
    plan_outputs,
    rejects_doubt,
    write_outputs,
    write_table,
)
from neardup.documents.extensions import check_extension
from neardup.documents.record_addresses import Addresses
from neardup.documents.record_edits import TextEdits
from neardup.errors import DataError, UsageError, suggests_names
from neardup.features.text import text_array
from neardup.pipeline.passage_cuts import PassageCuts, check_cut
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.run_outputs import messages
from neardup.pipeline.run.summary import BenchmarkCounts, ContaminationSummary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.threads import read_ahead, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.contamination.cutting import Cut
    from neardup.contamination.passages import Finding
    from neardup.contamination.questions import Questions
    from neardup.contamination.rules import LeakRule
    from neardup.documents import Batch, InputFormat, ReadOptions, Source
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Flags

__all__ = ["FOUND", "Benchmarks", "CleanOutputs", "decontaminate", "decontaminate_files"]

FOUND: Final = pa.schema(
    [
        ("document", pa.large_string()),
        ("question", pa.large_string()),
        ("rule", pa.string()),
        ("share", pa.float64()),
        ("run", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("text", pa.large_string()),
        ("passages", pa.large_string()),
        ("benchmark", pa.large_string()),
        ("part", pa.large_string()),
        ("uncommon_share", pa.float64()),
        ("leak", pa.bool_()),
    ]
)
ROWS_A_BATCH: Final = 1 << 14
_NONE: Final = pa.array([], pa.large_string())


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """The questions that no document should hold.

    Args:
        paths: Files, as for `open_sources`; each is a benchmark.
        parts: What is looked for apart, such as question and answer: the field of each, or the
            fields, which are joined.
        id: Field that holds a question's id; `file:row` unless given.
        common: Features that more than this share of the documents have are no leak: what is found
            by these alone stays a row, and its document is kept.
        format_name: Format of all files; their extensions tell unless given.

    Raises:
        UsageError: Without a file or a field.
    """

    paths: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...] = (("text",),)
    id: str | None = None
    common: float | None = None
    format_name: InputFormat | str | None = None

    def __post_init__(self) -> None:
        """Refuse none."""
        if not self.paths:
            raise UsageError("no questions: name a file with them")
        if not self.parts or any(not part or "" in part for part in self.parts):
            raise UsageError("a part without a field: name one, or several with commas between")


@suggests_names
def decontaminate(
    documents: Any,
    questions: Any,
    share: float | None = None,
    run: int | None = None,
    *,
    rule: str | None = None,
    workers: int | None = None,
) -> pa.Table:
    """Find which questions stand in which documents, and where: each one, exactly.

    A question is found in a document that has `share` of its features (its distinct runs of three
    words), or `run` words in a row that the question has too. A question of fewer words is found
    where all of them stand in a row; one of a single word never.

    Args:
        documents: Texts, as for `neardup.fingerprints`.
        questions: Texts.
        share: Above 0, up to 1; 0.5 unless a run is given.
        run: Words, 2 or more; either is enough where both are given.
        rule: A published rule in their place: "gpt-3", "llama", "olmo" or "lm-eval"; docs/guide/
            contamination.md has their definitions.
        workers: Threads; the processors at hand unless given.

    Returns:
        Arrow table, a row for each document and question: document and question int64 (rows),
        share float64 of the question's features that the document has, run int64 (words of the
        longest run), start and end int64 of the passage that holds most of the question in the
        least text (code points), rule ("share", "run" or "both"), its text, and passages: start and
        end of others that are enough by themselves. By document, then by question.

    Raises:
        UsageError: For a value out of range, or something that is not a text.

    Example:
        >>> found = decontaminate(["Q: what is the capital of France? A: Paris"],
        ...                       ["What is the capital of France", "Who wrote Hamlet"])
        >>> found.select(["document", "question", "share", "run", "start", "end"]).to_pylist()
        [{'document': 0, 'question': 0, 'share': 1.0, 'run': 6, 'start': 3, 'end': 32}]
    """
    laid_out = lay_out(questions, leak_rule(share, run, rule))
    search = Search(laid_out, workers)
    found = [each for chunk in text_array(documents).chunks for each in search.add(chunk)]
    return findings_table(covered_enough(found, laid_out), laid_out)


@dataclass(frozen=True, slots=True)
class CleanOutputs:
    """Where to write; None writes nothing of the kind.

    Args:
        clean: A file, "-" or a folder for the documents that hold no question.
        found: Table file with a row for each document and question.
        rejects: JSON lines of the records that could not be used.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.
        cut: Write documents without the passages of questions; None drops them.

    Raises:
        UsageError: If there is nothing to write.
    """

    clean: str | None = None
    found: str | None = None
    rejects: str | None = None
    csv_safe: bool = False
    cut: Cut | None = None

    def __post_init__(self) -> None:
        """Refuse a run without a result."""
        if self.clean is None and self.found is None:
            raise UsageError("nothing to write: pass -o CLEAN or --found FILE")
        if self.cut is not None and self.clean is None:
            raise UsageError("--cut requires documents to write: pass -o CLEAN")

    @property
    def tables(self) -> list[str]:
        """The paths beside the documents'."""
        return [path for path in (self.found, self.rejects) if path is not None]

    def check(self, sources: Sequence[Source], read: ReadOptions, written: OutputSet) -> None:
        """Refuse now what could not be written after hours of reading."""
        if self.cut is not None:
            check_cut(sources, read)
        if self.clean is not None:
            plan_outputs(sources, self.clean)
            if not is_folder(self.clean):
                written.check(self.clean)
        if self.found is not None:
            check_extension(self.found)
        for path in self.tables:
            written.check(path)


def decontaminate_files(
    paths: Sequence[str],
    benchmarks: Benchmarks,
    outputs: CleanOutputs,
    rule: LeakRule,
    read: ReadOptions,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> ContaminationSummary:
    """Write the documents of files that hold no question of a benchmark, and what was found.

    Args:
        paths: Inputs, as for `open_sources`.
        benchmarks: The questions.
        outputs: Where to write.
        rule: When a question counts as found.
        read: Which fields of the documents to read, and what to do with bad records.
        limits: What the run may use.
        progress: Told where the run is.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    shown, using = progress or Quiet(), limits or Limits()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, using, read.input_format)
        watch.begin("questions")
        asked = _Asked(benchmarks, read, using, rule)
        inputs = [*asked.paths, *(path for source in sources for path in source.paths)]
        written = stack.enter_context(OutputSet(inputs, using.tmp))
        outputs.check(sources, read, written)
        rejects = Rejects(outputs.rejects, written)
        search = Search(
            asked.questions, using.workers, counts_documents=benchmarks.common is not None
        )
        cuts = None
        if outputs.cut is not None:
            cuts = stack.enter_context(PassageCuts(outputs.cut, using.tmp))
        run = _Run(sources, search, cuts)
        run.read(read, rejects, watch, shown, using)
        run.found = covered_enough(run.found, asked.questions)
        stands, uncommon = _without_common(run, asked.questions, benchmarks.common)
        leaking = [x for x, leak in zip(run.found, stands, strict=True) if leak]
        dropped = {x.document for x in leaking}
        if cuts is not None:
            still = partial(_still_leaks, run, asked.questions, benchmarks.common, leaking)
            dropped = cuts.decide(leaking, asked.questions, still)
        begin_reading([] if outputs.clean is None else sources, watch, "write")
        clean = run.write(outputs.clean, read.text[0], dropped, written, shown)
        if outputs.found is not None:
            rows = _found_rows(run, asked, stands, uncommon)
            write_table(written, outputs.found, FOUND, rows, csv_safe=outputs.csv_safe)
        doubt = rejects_doubt(run.documents, rejects.count)
        written.commit()
    notes, warnings = messages(sources, written)
    return ContaminationSummary(
        read=run.documents + rejects.count,
        kept=run.documents - len(dropped),
        dropped=len(dropped),
        cut=0 if cuts is None else cuts.documents,
        rejected=rejects.count,
        findings=len(run.found),
        common=int(np.count_nonzero(~stands)),
        benchmarks=asked.counts(run.found, stands),
        nbytes=run.nbytes,
        seconds=watch.stop(),
        outputs=clean + outputs.tables,
        settings={"share": rule.share, "run": rule.run, "common": benchmarks.common}
        | ({} if outputs.cut is None else asdict(outputs.cut))
        | ({} if rule.published is None else {"rule": rule.published.name}),
        notes=notes,
        warnings=[*warnings, *filter(None, [doubt])],
    )


class _Asked:
    """The questions of some benchmarks: each part of each record is one.

    Attributes:
        paths: The files, which no output may replace.
        of: Benchmark and part of each question.
        addresses: Of each question.
        questions: What is looked for.
    """

    def __init__(
        self, benchmarks: Benchmarks, read: ReadOptions, limits: Limits, rule: LeakRule
    ) -> None:
        """Read them."""
        self.paths: list[str] = []
        self.of: list[tuple[str, str | None]] = []
        texts, addresses = [_NONE], [_NONE]
        plain = replace(read, id=benchmarks.id, within=None, number=None, skip_errors=False)
        for part in benchmarks.parts:
            name = ",".join(part) if len(benchmarks.parts) > 1 else None
            with ExitStack() as stack:
                sources = open_inputs(stack, benchmarks.paths, limits, benchmarks.format_name)
                for source in sources:
                    self.paths += source.paths
                    named = Addresses([source.name])
                    count = 0
                    for batch in _batches(source, replace(plain, text=part)):
                        named.add(0, batch.rows, batch.ids)
                        texts.append(batch.texts)
                        count += len(batch.texts)
                    self.of += [(source.name, name)] * count
                    addresses.append(named.of(np.arange(count)))
        self.addresses = pa.concat_arrays(addresses)
        self.questions = lay_out(pa.concat_arrays(texts), rule)

    def counts(self, found: Sequence[Finding], leaks: Flags) -> list[BenchmarkCounts]:
        """What was found of each benchmark, and of each of its parts."""
        sizes = self.questions.sizes.tolist()
        hit = {x.question for x, leak in zip(found, leaks, strict=True) if leak}
        numbers: dict[tuple[str, str | None], list[int]] = {}
        for question, key in enumerate(self.of):
            numbers.setdefault(key, []).append(question)
        return [
            BenchmarkCounts(
                benchmark,
                part,
                questions=len(own),
                found=sum(x in hit for x in own),
                short=sum(self.questions.is_short(x) and sizes[x] > 1 for x in own),
                one_word=sum(sizes[x] == 1 for x in own),
                empty=sum(sizes[x] == 0 for x in own),
            )
            for (benchmark, part), own in numbers.items()
        ]


def _batches(source: Source, read: ReadOptions) -> Iterator[Batch]:
    """Read questions: the field `question` of a file that has no `text`, as most benchmarks.

    Raises:
        DataError: What is wrong with one, with the options that questions have.
    """
    choices = [read.text, ("question",)] if read.text == ("text",) else [read.text]
    first: DataError | None = None
    for text in choices:
        has_begun = False
        try:
            for batch in source.batches(replace(read, text=text)):
                has_begun = True
                yield batch
        except DataError as error:
            first = error if first is None or has_begun else first
            if has_begun:
                break
        else:
            return
    raise DataError(f"{first} (of questions: --parts and --question-id)") from None


class _Run:
    """The documents of some inputs, and what was found in them."""

    def __init__(
        self, sources: Sequence[Source], search: Search, cuts: PassageCuts | None = None
    ) -> None:
        """Read nothing yet."""
        self.found: list[Finding] = []
        self.nbytes = 0
        self.addresses = Addresses([source.name for source in sources])
        self._sources, self._search, self._cuts = sources, search, cuts
        self._counts: list[int] = []

    @property
    def documents(self) -> int:
        """How many there were."""
        return self._search.documents

    @property
    def having(self) -> Any:
        """As of the search."""
        return self._search.having

    def read(
        self,
        read: ReadOptions,
        rejects: Rejects,
        watch: Stopwatch,
        progress: Progress,
        limits: Limits,
    ) -> None:
        """Search every input to its end, a batch while the next one is read."""
        begin_reading(self._sources, watch)
        read = replace(read, workers=worker_count(limits.workers))
        for number, source in enumerate(self._sources):
            before = self.documents
            batches = source.batches(read, rejects)
            for batch in read_ahead(batches) if source.is_here else batches:
                first = self.documents
                found = self._search.add(batch.texts)
                if self._cuts is not None:
                    self._cuts.keep_texts(batch.texts, first, found)
                self.found += found
                self.addresses.add(number, batch.rows, batch.ids)
                progress.advance(batch.nbytes)
            self.nbytes += source.bytes_read
            self._counts.append(self.documents - before)

    def write(
        self,
        output: str | None,
        field: str,
        dropped: set[int],
        written: OutputSet,
        progress: Progress,
    ) -> list[str]:
        """Write the documents that are not dropped, where they are asked for."""
        if output is None:
            return []
        keep = np.ones(self.documents, np.bool_)
        keep[list(dropped)] = False
        masks = np.split(keep, np.cumsum(self._counts)[:-1])
        if self._cuts is not None:
            self._cuts.begin_writing(keep)
            first = 0
            for source, mask in zip(self._sources, masks, strict=True):
                source.edits = TextEdits(self._cuts, first, field, source.name)
                first += int(np.count_nonzero(mask))
        return write_outputs(self._sources, masks, output, written, progress.advance)


def _still_leaks(
    run: _Run,
    questions: Questions,
    common: float | None,
    leaked: Sequence[Finding],
    found: list[Finding],
) -> list[Finding]:
    """Which findings in what is left of documents are leaks, by the rule of the run."""
    published = questions.rule.published
    if published is not None and published.anywhere:
        own = {x.question for x in leaked}
        found = [x for x in found if x.question in own]
    else:
        found = covered_enough(found, questions)
    if common is None:
        return found
    stands = leaks(found, questions, run.having, common * run.documents)
    return [x for x, leak in zip(found, stands, strict=True) if leak]


def _without_common(
    run: _Run, questions: Questions, common: float | None
) -> tuple[Flags, list[float | None]]:
    """Which findings are leaks, and the share of each without what is common, if that is asked."""
    if common is None:
        return np.ones(len(run.found), np.bool_), [None] * len(run.found)
    most = common * run.documents
    return (
        leaks(run.found, questions, run.having, most),
        uncommon_shares(run.found, questions, run.having, most),
    )


def _found_rows(
    run: _Run, asked: _Asked, stands: Flags, uncommon: list[float | None]
) -> Iterator[pa.RecordBatch]:
    table = findings_table(run.found, asked.questions)
    documents = run.addresses.of(table["document"].to_numpy())
    questions = asked.addresses.take(table["question"].combine_chunks())
    of = [asked.of[number] for number in table["question"].to_pylist()]
    others = [
        ";".join(f"{begin}-{end}" for begin, end in each) for each in table["passages"].to_pylist()
    ]
    columns = [
        documents, questions, table["rule"], table["share"], table["run"], table["start"],
        table["end"], table["text"], others, [benchmark for benchmark, _ in of],
        [part for _, part in of], uncommon, stands,
    ]  # fmt: skip
    rows = pa.table(dict(zip(FOUND.names, columns, strict=True)), FOUND)
    yield from rows.to_batches(ROWS_A_BATCH)
