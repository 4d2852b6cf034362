"""The questions of benchmarks, read from their files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.contamination.questions import lay_out
from neardup.documents.record_addresses import Addresses
from neardup.errors import DataError, UsageError
from neardup.pipeline.run.read_documents import open_inputs
from neardup.pipeline.run.summary import BenchmarkCounts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from neardup.contamination.rules import LeakRule
    from neardup.documents import Batch, InputFormat, ReadOptions, Source
    from neardup.pipeline.run.rule import Limits

__all__ = ["BenchmarkQuestions", "Benchmarks"]

_NONE: Final = pa.array([], pa.large_string())


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """The questions that no document should contain.

    Args:
        paths: Files, as for `open_sources`; each is a benchmark.
        parts: The parts that are searched separately, such as question and answer: the field of
            each, or several fields, which are joined.
        id: Field that holds a question's id; by default `file:row`.
        common: Features that more than this share of the documents have are common text: a finding
            by these alone stays a row, and its document is kept.
        format_name: Format of all files; by default their extensions decide.

    Raises:
        UsageError: Without a file or a field.
    """

    paths: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...] = (("text",),)
    id: str | None = None
    common: float | None = None
    format_name: InputFormat | str | None = None

    def __post_init__(self) -> None:
        """Refuse an empty list."""
        if not self.paths:
            raise UsageError("no questions: name a file with them")
        if not self.parts or any(not part or "" in part for part in self.parts):
            raise UsageError("a part without a field: name one, or several with commas between")


class BenchmarkQuestions:
    """The questions of some benchmarks: each part of each record is one.

    Attributes:
        paths: The files, which no output may replace.
        of: Benchmark and part of each question.
        addresses: Of each question.
        texts: Of each question.
        questions: The questions in the form of the search.
    """

    def __init__(
        self, benchmarks: Benchmarks, read: ReadOptions, limits: Limits, rule: LeakRule
    ) -> None:
        """Read them; DataError if a file has none."""
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
                    if not count:  # a gate without questions would pass
                        raise DataError(f"{source.name} holds no questions: leave it out")
                    self.of += [(source.name, name)] * count
                    addresses.append(named.of(np.arange(count)))
        self.addresses = pa.concat_arrays(addresses)
        self.texts = pa.concat_arrays(texts)
        self.questions = lay_out(self.texts, rule)

    def counts(self, leaked: Collection[int]) -> list[BenchmarkCounts]:
        """Counts of the leaked questions, for each benchmark and each of its parts."""
        sizes = self.questions.sizes.tolist()
        numbers: dict[tuple[str, str | None], list[int]] = {}
        for question, key in enumerate(self.of):
            numbers.setdefault(key, []).append(question)
        return [
            BenchmarkCounts(
                benchmark,
                part,
                questions=len(own),
                found=sum(x in leaked for x in own),
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
    if read.text == ("text",) and source.nbytes is not None:  # a stream is read once
        problem, other = _first_problem(source, read), replace(read, text=("question",))
        has_no_text = any(f'no {kind} "text"' in problem for kind in ("field", "column"))
        if has_no_text and not _first_problem(source, other):
            read = other
    try:
        yield from source.batches(read)
    except DataError as error:
        raise DataError(_of_questions(str(error))) from None


def _first_problem(source: Source, read: ReadOptions) -> str:
    """What is wrong with a file's first record; empty if nothing is."""
    try:
        next(iter(source.batches(replace(read, batch_bytes=1))), None)
    except DataError as error:
        return str(error)
    return ""


def _of_questions(message: str) -> str:
    """A message about documents, reworded with the options of questions."""
    message = message.replace("--text", "--parts").replace("--id", "--question-id")
    return message.replace(" or pass --on-error skip", "")
