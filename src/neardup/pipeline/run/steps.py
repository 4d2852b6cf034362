"""What every run over files begins and ends with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.documents import OutputSet, open_sources, rejects_doubt
from neardup.errors import UsageError
from neardup.index.hits import ABSENT
from neardup.pipeline.run.summary import Summary
from neardup.runtime.threads import read_ahead, worker_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from neardup.documents import Batch, InputFormat, ReadOptions, Rejects, Source
    from neardup.pipeline.run.collection import Collection
    from neardup.pipeline.run.folder.state import RunFolder
    from neardup.pipeline.run.matching import Grouping, Matching
    from neardup.pipeline.run.resources import Resources
    from neardup.runtime.progress import Progress, Stopwatch

__all__ = [
    "Inputs",
    "begin_reading",
    "open_inputs",
    "output_set",
    "read_all",
    "summarise",
    "told",
]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run read.

    Args:
        documents: Paths, or batches in memory.
        format_name: Format of all files, if their extensions do not tell.
        rejected: Documents in memory that could not be used.
    """

    documents: Sequence[str] | Sequence[Batch]
    format_name: InputFormat | str | None = None
    rejected: int = 0

    @property
    def paths(self) -> list[str]:
        """Those that are files."""
        return [each for each in self.documents if isinstance(each, str)]

    @property
    def batches(self) -> list[Batch]:
        """Those in memory."""
        return [each for each in self.documents if not isinstance(each, str)]


def output_set(
    sources: Sequence[Source], resources: Resources, folder: RunFolder | None = None
) -> OutputSet:
    """The outputs of a run; none may replace one of its inputs, `folder` knows what is aside."""
    told = None if folder is None else folder.note_aside
    return OutputSet((path for source in sources for path in source.paths), resources.tmp, told)


def open_inputs(
    stack: ExitStack,
    paths: Sequence[str],
    resources: Resources,
    format_name: InputFormat | str | None,
) -> list[Source]:
    """Find every input; each is closed with the stack."""
    sources = open_sources(paths, resources.tmp, format_name)
    for source in sources:
        stack.callback(source.close)
    return sources


def begin_reading(sources: Sequence[Source], watch: Stopwatch, step: str = "read") -> None:
    """Begin a step through all inputs, whose length is known unless an input's is not."""
    sizes = [source.nbytes for source in sources]
    watch.begin(step, None if None in sizes else sum(size or 0 for size in sizes))


def read_all(
    sources: Sequence[Source],
    collection: Collection,
    read: ReadOptions,
    rejects: Rejects,
    watch: Stopwatch,
    progress: Progress,
) -> list[int]:
    """Read every input to the end into the collection; how many documents each has."""
    begin_reading(sources, watch)
    counts = []
    has_number: bool = read.number is None
    read = replace(read, workers=worker_count(collection.workers))
    for number, source in enumerate(sources):
        count = passed = 0
        batches = source.batches(read, rejects)
        # A stream may never end: what waits for it is this thread, which an interrupt reaches.
        for batch in read_ahead(batches) if source.is_here else batches:
            collection.add(number, batch)
            count += len(batch.texts)
            if batch.numbers is not None and batch.numbers.null_count < len(batch.numbers):
                has_number = True
            progress.advance(batch.nbytes)
            passed += batch.nbytes
        collection.nbytes += source.bytes_read - passed  # bad records at its end come in no batch
        progress.advance(source.bytes_read - passed)
        counts.append(count)
    rejects_doubt(sum(counts), rejects.count)
    if counts and not has_number and max(counts):
        raise UsageError(
            f"no record has a number in the field {read.number}, which decides what is kept: name"
            " another one"
        )
    return counts


def told(
    sources: Sequence[Source], written: OutputSet, others: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """What a run over files did that is not plain to see, and what makes its result doubtful.

    Args:
        sources: The inputs.
        written: The outputs.
        others: Further notes.

    Returns:
        Lines of notes, and lines of warnings.
    """
    notes = list(dict.fromkeys(note for source in sources for note in source.notes))
    notes += [*others, *(f"{path} was replaced" for path in written.replaced)]
    warnings = [f"{source.name}: {line}" for source in sources for line in source.warnings]
    return notes, warnings


def summarise(
    values: Any,
    grouping: Grouping,
    matching: Matching,
    watch: Stopwatch,
    *,
    rejected: int,
    collection: Collection,
    outputs: list[str],
    told: tuple[list[str], list[str]] = ([], []),
) -> Summary:
    """What a run did in numbers; `told` has the lines of its notes and warnings."""
    kept = int(grouping.kept.sum())
    doubts = matching.doubt(len(values)), rejects_doubt(len(values), rejected)
    seconds = watch.stop()
    return Summary(
        read=len(values) + rejected,
        kept=kept,
        dropped=len(values) - kept,
        rejected=rejected,
        empty=int(np.ma.getmaskarray(values)[:, 0].sum()) if len(values) else 0,
        clusters=len(np.unique(grouping.label[~grouping.kept])),
        nbytes=collection.nbytes,
        seconds=seconds,
        outputs=outputs,
        settings=matching.settings(len(values)),
        notes=told[0],
        warnings=[*told[1], *filter(None, doubts)],
        own=0 if grouping.own is None else int(np.count_nonzero(grouping.own != ABSENT)),
    )
