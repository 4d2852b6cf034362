"""Files in place of an index: `dedup --against FILE...` makes one for the run."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import ReadOptions
    from neardup.index.durable import DurableIndex
    from neardup.pipeline.run.rule import Limits, Rule
    from neardup.runtime.progress import Progress

__all__ = ["index_of_files", "is_index"]


def is_index(path: str) -> bool:
    """Whether a path is the folder of an index."""
    folder = Path(path)
    return folder.is_dir() and next(folder.glob("log-*.mdb"), None) is not None


@contextmanager
def index_of_files(
    paths: Sequence[str],
    rule: Rule,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
) -> Iterator[str]:
    """Make an index of the documents of files, in a folder that is removed afterwards.

    Args:
        paths: Inputs, as for `open_sources`.
        rule: Of the run.
        read: Of the run.
        limits: Of the run, with the folder for temporary files.
        progress: Shows the progress.

    Raises:
        UsageError, DataError, FileError: As `dedup`; DataError also if an id is there twice.
    """
    from neardup.pipeline.index_files import add_files

    with tempfile.TemporaryDirectory(prefix="neardup-", dir=limits.tmp) as folder:
        path = str(Path(folder, "reference"))
        plain = replace(read, within=None, number=None, skip_errors=False)
        with _index_of(path, rule) as index:
            summary = add_files(
                index, paths, plain, progress=progress, format_name=read.input_format
            )
        if summary.replaced:
            raise DataError(
                f"{summary.replaced:,} documents of {', '.join(paths)} have an id that another one"
                " has: leave out --id, or name a field that tells them apart"
            )
        yield path


def _index_of(path: str, rule: Rule) -> DurableIndex:
    from neardup.index.durable import DurableIndex

    if rule.distance is None:
        return DurableIndex.create(
            path, recipe=rule.recipe, similarity=rule.match.similarity, measure=rule.measure
        )
    store = "features" if rule.by_features else "none"
    return DurableIndex.create(path, rule.distance, recipe=rule.recipe, store=store)
