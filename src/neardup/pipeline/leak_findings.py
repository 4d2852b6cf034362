"""The findings of a run over files: stored during the search, judged at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from neardup.contamination.finding_log import FindingLog
from neardup.contamination.findings import (
    Coverage,
    findings_table,
    leaks,
    uncommon_shares,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.contamination.passages import Finding
    from neardup.contamination.questions import Questions
    from neardup.pipeline.benchmarks import BenchmarkQuestions
    from neardup.pipeline.run.rule import Limits
    from neardup.runtime.storage.append_file import AppendFile
    from neardup.runtime.types import Flags, Rows

__all__ = ["FOUND", "LeakFindings", "Tally", "found_rows"]

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


@dataclass(slots=True)
class Tally:
    """Counts of the findings.

    Attributes:
        findings: How many there are.
        common: Those by common text alone.
        questions: Of the others.
        documents: Of the others.
    """

    findings: int = 0
    common: int = 0
    questions: set[int] = field(default_factory=set)
    documents: set[int] = field(default_factory=set)


class LeakFindings:
    """The findings in the documents of a run; a context manager.

    Args:
        questions: The questions.
        common: As in Benchmarks.
        limits: How much memory it may take, and where the rest goes.
        kept: A file to append to; see FindingLog.

    Attributes:
        documents: How many were searched, once all are.
        common: As in Benchmarks.
        having: int64: the number of documents with each feature, if it is counted.
    """

    def __init__(
        self,
        questions: Questions,
        common: float | None,
        limits: Limits,
        kept: AppendFile | None = None,
    ) -> None:
        """Begin without findings."""
        self.documents = 0
        self.having: Rows = np.zeros(questions.counted_features.size, np.int64)
        self._log = FindingLog(limits.memory // 8, limits.tmp, kept)
        self._coverage = Coverage(questions)
        self.common = common
        self._questions = questions

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file."""
        self._log.close()

    def add(self, findings: Sequence[Finding], addresses: Sequence[str]) -> None:
        """Take findings, with the names of their documents."""
        self._log.add(findings, addresses)
        self._coverage.add(findings)

    def add_encoded(self, data: bytes) -> None:
        """Take findings as bytes; call `go_on` after the last ones."""
        self._log.add_encoded(data)

    def go_on(self) -> Rows:
        """Take over the findings in the log; int64: the documents with findings, in order."""
        documents = [np.zeros(0, np.int64)]
        for findings, _ in self._log.batches():
            self._coverage.add(findings)
            documents.append(np.array([each.document for each in findings], np.int64))
        return np.unique(np.concatenate(documents))

    def judged(self) -> Iterator[tuple[list[Finding], list[str], Flags]]:
        """The findings of the rule, the names of the documents, and whether each is a leak."""
        for findings, names in self._log.batches():
            enough = self._coverage.enough(findings)
            own = list(compress(findings, enough))
            yield own, list(compress(names, enough)), self._stand(own)

    def leaks(self) -> Iterator[Finding]:
        """The findings of the rule that are not common text."""
        return (each for findings, _, stand in self.judged() for each in compress(findings, stand))

    def leaks_among(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings that are leaks, by the rule and the documents of this run."""
        own = list(compress(findings, self._coverage.enough(findings)))
        return list(compress(own, self._stand(own)))

    def tally(self) -> Tally:
        """Count the findings."""
        tally = Tally()
        for findings, _, stand in self.judged():
            tally.findings += len(findings)
            tally.common += int(np.count_nonzero(~stand))
            for each in compress(findings, stand):
                tally.questions.add(each.question)
                tally.documents.add(each.document)
        return tally

    def uncommon_shares(self, findings: Sequence[Finding]) -> list[float | None]:
        """The share of each question without common text; None if common text is not set."""
        if self.common is None:
            return [None] * len(findings)
        most = self.common * self.documents
        return uncommon_shares(findings, self._questions, self.having, most)

    def _stand(self, findings: Sequence[Finding]) -> Flags:
        if self.common is None:
            return np.ones(len(findings), np.bool_)
        return leaks(findings, self._questions, self.having, self.common * self.documents)


def found_rows(run: LeakFindings, benchmark: BenchmarkQuestions) -> Iterator[pa.RecordBatch]:
    """The table of findings, FOUND, in batches."""
    for findings, names, stand in run.judged():
        table = findings_table(findings, benchmark.questions)
        questions = benchmark.addresses.take(table["question"].combine_chunks())
        of = [benchmark.of[number] for number in table["question"].to_pylist()]
        others = [
            ";".join(f"{begin}-{end}" for begin, end in each)
            for each in table["passages"].to_pylist()
        ]
        columns = [
            names, questions, table["rule"], table["share"], table["run"], table["start"],
            table["end"], table["text"], others, [name for name, _ in of],
            [part for _, part in of], run.uncommon_shares(findings), stand,
        ]  # fmt: skip
        yield from pa.table(dict(zip(FOUND.names, columns, strict=True)), FOUND).to_batches()
