"""What every run over files begins and ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.documents import OutputSet, open_sources
from neardup.pipeline.run.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from neardup.documents import ReadOptions, Rejects, Source
    from neardup.pipeline.run.collection import Collection
    from neardup.pipeline.run.matching import Grouping, Matching
    from neardup.pipeline.run.resources import Resources
    from neardup.pipeline.run.state import RunFolder
    from neardup.runtime.progress import Progress, Stopwatch

__all__ = ["begin_reading", "open_inputs", "output_set", "read_all", "summarise"]


def output_set(
    sources: Sequence[Source], resources: Resources, folder: RunFolder | None = None
) -> OutputSet:
    """The outputs of a run; none may replace one of its inputs, `folder` knows what is aside."""
    told = None if folder is None else folder.note_aside
    return OutputSet((path for source in sources for path in source.paths), resources.tmp, told)


def open_inputs(
    stack: ExitStack, paths: Sequence[str], resources: Resources, format_name: str | None
) -> list[Source]:
    """Find every input; each is closed with the stack."""
    sources = open_sources(paths, resources.tmp, format_name)
    for source in sources:
        stack.callback(source.close)
    return sources


def begin_reading(sources: Sequence[Source], watch: Stopwatch) -> None:
    """Begin the step, whose length is known unless an input's is not."""
    sizes = [source.nbytes for source in sources]
    watch.begin("read", None if None in sizes else sum(size or 0 for size in sizes))


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
    for number, source in enumerate(sources):
        count = 0
        for batch in source.batches(read, rejects):
            collection.add(number, batch)
            count += len(batch.texts)
            progress.advance(batch.nbytes)
        counts.append(count)
    return counts


def summarise(
    values: Any,
    grouping: Grouping,
    matching: Matching,
    watch: Stopwatch,
    *,
    rejected: int,
    nbytes: int,
    outputs: list[str],
) -> Summary:
    """What a run did in numbers."""
    kept = int(grouping.kept.sum())
    return Summary(
        read=len(values) + rejected,
        kept=kept,
        dropped=len(values) - kept,
        rejected=rejected,
        empty=int(np.ma.getmaskarray(values)[:, 0].sum()) if len(values) else 0,
        clusters=len(np.unique(grouping.label[~grouping.kept])),
        nbytes=nbytes,
        seconds=watch.stop(),
        outputs=outputs,
        settings=matching.settings(len(values)),
    )
