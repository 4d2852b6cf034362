"""The index of what a crawl or a pipeline has seen: in a folder, or of the service."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.fingerprinting.question import question_for
from neardup.index.durable import DurableIndex
from neardup.index.hits import Answer

if TYPE_CHECKING:
    import os

    from neardup.fingerprinting.question import Question

__all__ = ["ServedIndex", "is_url", "open_index"]

_WORKERS: Final = 8
"""Requests at a time: each waits for the service."""


def is_url(place: str) -> bool:
    """Whether a place is the URL of a service, not a folder."""
    return place.startswith(("http://", "https://"))


class ServedIndex:
    """The index of a service, as a crawl uses an index; the service commits by itself.

    Args:
        url: Of the service.
        key: If it needs one.
    """

    uncommitted: Final = 0
    workers: Final = _WORKERS

    def __init__(self, url: str, key: str | None = None) -> None:
        """Connect to nothing yet."""
        # Looked up by name: the client is no part of what an integration otherwise needs.
        self._client: Any = importlib.import_module("neardup.client").Client(url, key)

    def warm_up(self) -> object:
        """Ask whether the service is ready."""
        return self._client.ready()

    def offer(self, identity: Any, document: Any) -> Answer:
        """As `Index.offer`."""
        seen = self._client.seen(identity, document)
        near = None if seen.match is None else (seen.match.id, seen.match.close)
        return Answer(seen.state, near)

    def commit(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


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
