"""The index of what a crawl or a pipeline has seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neardup.fingerprinting.question import question_for
from neardup.index.durable import DurableIndex

if TYPE_CHECKING:
    import os

    from neardup.fingerprinting.question import Question

__all__ = ["open_index"]


def open_index(
    path: str | os.PathLike[str],
    similarity: float | None = None,
    question: Question | None = None,
    *,
    extract: str | None = None,
    readonly: bool = False,
) -> DurableIndex:
    """Open the index in a folder, or make one there.

    Args:
        path: The folder.
        similarity: What a new index is made for, and the least of a match in any.
        question: Similarity, measure and recipe of a new index. An index that exists has its own; a
            new one has that of `neardup index create` if neither is named.
        extract: What a new index compares of HTML; see `Index`.
        readonly: Open for queries only.

    Raises:
        UsageError, RecipeError, FileError, DataError: As `DurableIndex.open`.
    """
    folder = Path(path)
    if readonly or (folder.is_dir() and any(folder.iterdir())):
        return DurableIndex.open(
            folder, similarity=similarity, question=question, extract=extract, readonly=readonly
        )
    made_for = question_for(question, similarity)
    return DurableIndex.open(folder, question=made_for, extract=extract)
