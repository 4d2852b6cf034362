"""Find the questions of benchmarks in training data, and leave out the documents with them.

The questions are in memory; documents are read once, and a second time to write the others.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.contamination.findings import covered_enough, findings_table
from neardup.contamination.questions import lay_out
from neardup.contamination.rules import leak_rule
from neardup.contamination.search import Search
from neardup.documents import Rejects, rejects_doubt, write_outputs, write_table
from neardup.documents.record_addresses import Addresses
from neardup.documents.record_edits import TextEdits
from neardup.errors import UsageError, suggests_names
from neardup.features.text import text_array
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.benchmarks import BenchmarkQuestions
from neardup.pipeline.leak_findings import FOUND, LeakFindings, found_rows
from neardup.pipeline.leak_report import write_leak_report
from neardup.pipeline.passage_cuts import PassageCuts, check_cut
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.run_folder import described_reading
from neardup.pipeline.run.run_outputs import Outputs, ReportOptions, messages
from neardup.pipeline.run.summary import ContaminationSummary
from neardup.pipeline.run.transaction import Transaction
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.storage.checksums import checksum
from neardup.runtime.threads import read_ahead, worker_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from neardup.contamination.cutting import Cut
    from neardup.contamination.questions import Questions
    from neardup.contamination.rules import LeakRule
    from neardup.documents import Batch, OutputSet, ReadOptions, Source
    from neardup.pipeline.benchmarks import Benchmarks
    from neardup.pipeline.leak_findings import Tally
    from neardup.pipeline.run.read_documents import Resume
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Rows

__all__ = ["CleanOutputs", "decontaminate", "decontaminate_files", "summary_of"]

_STATE: Final = ("findings", "having")
"""The state files of a run: the findings, and counts of features."""


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
    """Find every question in documents, exactly, and where it occurs.

    A question is found in a document that has `share` of its features (its distinct runs of three
    words), or shares a run of `run` words with it. A question of fewer words is found where all of
    them occur in a row; a question of a single word never.

    Args:
        documents: Texts, as for `neardup.fingerprints`.
        questions: Texts.
        share: Above 0, up to 1; by default 0.5, if there is no `run`.
        run: Words, 2 or more; with both, either is enough.
        rule: A published rule in place of both: "gpt-3", "llama", "olmo" or "lm-eval"; docs/guide/
            contamination.md has their definitions.
        workers: Number of threads; by default all available processors.

    Returns:
        Arrow table, a row for each document and question: document and question int64 (rows),
        share float64 of the question's features that the document has, run int64 (words of the
        longest run), start and end int64 of the passage with most of the question in the least text
        (code points), rule ("share", "run" or "both"), its text, and passages: start and end of
        others that suffice by themselves. Rows are sorted by document, then by question.

    Raises:
        UsageError: For a value out of range, or a document that is not a text.

    Example:
        >>> found = decontaminate(["Q: what is the capital of France? A: Paris"],
        ...                       ["What is the capital of France", "Who wrote Hamlet"])
        >>> found.select(["document", "question", "share", "run", "start", "end"]).to_pylist()
        [{'document': 0, 'question': 0, 'share': 1.0, 'run': 6, 'start': 3, 'end': 32}]
    """
    laid_out = lay_out(questions, leak_rule(share, run, rule))
    search = Search(laid_out, workers)
    findings = [each for chunk in text_array(documents).chunks for each in search.add(chunk)]
    return findings_table(covered_enough(findings, laid_out), laid_out)


@dataclass(frozen=True, slots=True)
class CleanOutputs:
    """The outputs of a run; None writes no output of the kind.

    Args:
        clean: A file, "-" or a folder for the documents without questions.
        found: Table file with a row for each document and question.
        rejects: JSON lines of the records that could not be used.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.
        cut: Write documents without the passages of questions; None drops them.
        resume: Folder for the state of the run, from which a killed run continues; or None.
        report: A page about the run.
        gate: The counts of the summary are enough, and nothing has to be written.

    Raises:
        UsageError: If there is nothing to write.
    """

    clean: str | None = None
    found: str | None = None
    rejects: str | None = None
    csv_safe: bool = False
    cut: Cut | None = None
    resume: str | None = None
    report: str | None = None
    gate: bool = False

    def __post_init__(self) -> None:
        """Refuse a run without a result."""
        if self.clean is self.found is self.report is None and not self.gate:
            raise UsageError(
                "nothing to write: pass -o CLEAN, --found FILE or --report FILE, or --fail-above 0"
                " for the exit code alone"
            )
        if self.cut is not None and self.clean is None:
            raise UsageError("--cut requires documents to write: pass -o CLEAN")

    def of_run(self) -> Outputs:
        """The outputs of a run: the kept documents, and a table of the others."""
        page = None if self.report is None else ReportOptions(self.report)
        return Outputs(self.clean, self.found, None, self.rejects, self.csv_safe, page, self.resume)


def decontaminate_files(
    paths: Sequence[str],
    benchmarks: Benchmarks,
    outputs: CleanOutputs,
    rule: LeakRule,
    read: ReadOptions,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> ContaminationSummary:
    """Write the documents of files without questions of a benchmark, and the findings.

    Args:
        paths: Inputs, as for `open_sources`.
        benchmarks: The questions.
        outputs: Where to write.
        rule: When a question counts as found.
        read: Which fields of the documents to read, and what to do with bad records.
        limits: The resources of the run.
        progress: Shows the progress.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    reporter, using = progress or Quiet(), limits or Limits()
    watch = Stopwatch(reporter)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, using, read.input_format)
        if outputs.cut is not None:
            check_cut(sources, read)
        watch.begin("questions")
        benchmark = BenchmarkQuestions(benchmarks, read, using, rule)
        options = _described(benchmark.questions, benchmarks, outputs, read)
        written = outputs.of_run()
        files = stack.enter_context(
            Transaction(
                sources, written, options, using, skip_errors=read.skip_errors,
                state=_STATE, others=benchmark.paths,
            )
        )  # fmt: skip
        rejects = Rejects(written.rejects, files.files)
        cuts = None
        if outputs.cut is not None:
            cuts = stack.enter_context(PassageCuts(outputs.cut, using.tmp))
        kept = None if files.resume is None else files.resume.folder.files["findings"]
        findings = stack.enter_context(
            LeakFindings(benchmark.questions, benchmarks.common, using, kept)
        )
        run = _Run(sources, benchmark.questions, findings, using, files.resume)
        run.read(read, rejects, watch, reporter, cuts)
        tally = findings.tally()
        dropped = tally.documents
        if cuts is not None:
            dropped = cuts.decide(findings.leaks(), benchmark.questions, findings.leaks_among)
        doubt = rejects_doubt(run.documents, rejects.count)
        files.check_again()
        begin_reading([] if written.kept is None else sources, watch, "write")
        clean = run.write(written.kept, read.text[0], dropped, files.files, reporter, cuts)
        if outputs.found is not None:
            rows = found_rows(findings, benchmark)
            write_table(files.files, outputs.found, FOUND, rows, csv_safe=outputs.csv_safe)
        _, warnings = messages(sources, files.files)
        summary = summary_of(
            (rule, benchmarks, benchmark, outputs), tally, (run.documents, rejects.count),
            dropped=len(dropped),
            cut=0 if cuts is None else cuts.documents,
            nbytes=run.nbytes,
            outputs=clean + written.tables,
            warnings=[*warnings, *filter(None, [doubt])],
        )  # fmt: skip
        if outputs.report is not None:
            write_leak_report(outputs.report, findings.judged(), benchmark, summary, files.files)
        files.finish()
    notes, _ = messages(sources, files.files, files.notes)
    return replace(summary, notes=notes, seconds=watch.stop())


def summary_of(
    request: tuple[LeakRule, Benchmarks, BenchmarkQuestions, CleanOutputs],
    tally: Tally,
    counts: tuple[int, int],
    **others: Any,
) -> ContaminationSummary:
    """The summary of a run.

    Args:
        request: The rule, the questions and the outputs.
        tally: Of the findings.
        counts: The numbers of documents and of rejected records.
        others: Further values.
    """
    (rule, benchmarks, benchmark, outputs), (documents, rejected) = request, counts
    return ContaminationSummary(
        read=documents + rejected,
        kept=documents - others["dropped"],
        rejected=rejected,
        findings=tally.findings,
        common=tally.common,
        benchmarks=benchmark.counts(tally.questions),
        seconds={},
        settings={"share": rule.share, "run": rule.run, "common": benchmarks.common}
        | ({} if outputs.cut is None else asdict(outputs.cut))
        | ({} if rule.published is None else {"rule": rule.published.name}),
        **others,
    )


def _described(
    questions: Questions, benchmarks: Benchmarks, outputs: CleanOutputs, read: ReadOptions
) -> dict[str, Any]:
    """All options on which the state of a run depends, like `described` for `dedup`."""
    recipe, texts = Recipe(), [questions.words, questions.starts]
    return {
        "digest": recipe.digest,
        "recipe": json.loads(recipe.to_json()),
        "options": described_reading(read)
        | {
            "rule": repr((questions.rule, questions.rule.published)),
            "questions": checksum(b"".join(each.tobytes() for each in texts)).hex(),
            "common": benchmarks.common,
            "cut": None if outputs.cut is None else asdict(outputs.cut),
        },
    }


class _Run:
    """The documents of some inputs: searched, then written.

    Attributes:
        nbytes: Of the inputs.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        questions: Questions,
        findings: LeakFindings,
        limits: Limits,
        resume: Resume | None = None,
    ) -> None:
        """Read nothing yet."""
        self.nbytes = 0
        self._sources, self._findings = sources, findings
        self._workers, self._resume = worker_count(limits.workers), resume
        self._search = Search(
            questions, self._workers, counts_documents=findings.common is not None
        )
        self._counts: list[int] = []
        self._kept_having = self._search.having

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._search.documents

    def read(
        self,
        read: ReadOptions,
        rejects: Rejects,
        watch: Stopwatch,
        progress: Progress,
        cuts: PassageCuts | None,
    ) -> None:
        """Search every input to its end, a batch while the next one is read."""
        begin_reading(self._sources, watch)
        read = replace(read, workers=self._workers)
        earlier = self._go_on()
        for source in self._sources:
            before = self.documents
            batches = source.batches(read, rejects)
            for batch in read_ahead(batches) if source.is_here else batches:
                first = self.documents
                if self._resume is not None and self._resume.passes(batch):
                    self._search.skip(len(batch.texts))
                    begin, end = np.searchsorted(earlier, (first, self.documents))
                    documents = earlier[begin:end].tolist()
                else:
                    documents = self._search_batch(source.name, batch)
                if cuts is not None:
                    cuts.keep_texts(batch.texts, first, documents)
                progress.advance(batch.nbytes)
                if self._resume is not None and self._resume.is_due:
                    self._checkpoint(self._resume)
            self.nbytes += source.bytes_read
            self._counts.append(self.documents - before)
        if self._resume is not None:
            self._resume.check_end()
            self._checkpoint(self._resume)
        self._findings.documents, self._findings.having = self.documents, self._search.having

    def _search_batch(self, name: str, batch: Batch) -> list[int]:
        """Search a batch; its documents with findings, in order."""
        first = self.documents
        findings = self._search.add(batch.texts)
        if not findings:
            return []
        addresses = Addresses([name])
        addresses.add(0, batch.rows, batch.ids)
        rows = np.array([each.document for each in findings], np.int64) - first
        self._findings.add(findings, addresses.of(rows).to_pylist())
        return list(dict.fromkeys((rows + first).tolist()))

    def _go_on(self) -> Rows:
        """Take over an earlier run's findings; int64: the documents with findings, in order."""
        if self._resume is None:
            return np.zeros(0, np.int64)
        counts = self._resume.folder.files["having"].array(np.int64).reshape(-1, 2)
        having = np.zeros(self._kept_having.size, np.int64)
        np.add.at(having, counts[:, 0], counts[:, 1])
        self._search.skip(0, having)
        self._kept_having = self._search.having
        return self._findings.go_on()

    def _checkpoint(self, resume: Resume) -> None:
        """Make a checkpoint; the log has already written the findings."""
        if self.documents > resume.documents:
            having = self._search.having
            new = having - self._kept_having
            features = np.flatnonzero(new)
            counts = np.stack([features, new[features]], axis=1)
            resume.keep(self.documents - resume.documents, having=counts)
            self._kept_having = having

    def write(
        self,
        output: str | None,
        field: str,
        dropped: set[int],
        written: OutputSet,
        progress: Progress,
        cuts: PassageCuts | None,
    ) -> list[str]:
        """Write the documents that are not dropped, if there is an output for them."""
        if output is None:
            return []
        keep = np.ones(self.documents, np.bool_)
        keep[list(dropped)] = False
        masks = np.split(keep, np.cumsum(self._counts)[:-1])
        if cuts is not None:
            cuts.begin_writing(keep)
            first = 0
            for source, mask in zip(self._sources, masks, strict=True):
                source.edits = TextEdits(cuts, first, field, source.name)
                first += int(np.count_nonzero(mask))
        tell = progress.advance
        return write_outputs(self._sources, masks, output, written, tell, self._workers)
