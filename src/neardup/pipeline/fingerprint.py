"""Write the fingerprints of files' documents to a fingerprint file."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from neardup.collection import Collection, Resources
from neardup.documents import Rejects, write_table
from neardup.fingerprint_files import fingerprint_table
from neardup.matching import Grouping
from neardup.pipeline.steps import open_inputs, output_set, read_all, summarise
from neardup.progress import Quiet, Stopwatch
from neardup.results import ROWS_A_BATCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import ReadOptions
    from neardup.matching import Matching
    from neardup.progress import Progress
    from neardup.report import Summary

__all__ = ["fingerprint_files"]


def fingerprint_files(
    paths: Sequence[str],
    output: str,
    matching: Matching,
    read: ReadOptions,
    rejects_path: str | None = None,
    progress: Progress | None = None,
    format_name: str | None = None,
) -> Summary:
    """Write the fingerprints of files' documents to a fingerprint file.

    Args:
        paths: Inputs, as for `open_sources`.
        output: A Parquet file.
        matching: Its recipe and workers count.
        read: Which fields to read, and what to do with bad records.
        rejects_path: Where bad records go if they are skipped.
        progress: Told where the run is.
        format_name: Format of all inputs; their extensions tell unless given.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, Resources(), format_name)
        written = stack.enter_context(output_set(sources, Resources()))
        rejects = Rejects(rejects_path, written)
        names = [source.name for source in sources]
        collection = stack.enter_context(Collection(names, matching, Resources()))
        read_all(sources, collection, read, rejects, watch, shown)
        values = collection.finish()
        watch.begin("write")
        ids = collection.addresses.of(np.arange(len(values)))
        table = fingerprint_table(ids, values, matching.recipe)
        write_table(written, output, table.schema, table.to_batches(ROWS_A_BATCH))
        written.commit()
    rows = np.arange(len(values))
    return summarise(
        values, Grouping(rows, rows, None), matching, watch,
        rejected=rejects.count, nbytes=collection.nbytes, outputs=[output],
    )  # fmt: skip
