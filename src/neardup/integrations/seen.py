"""The index of documents seen by a crawl or pipeline: in a folder, or behind a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from neardup.client import Client
from neardup.errors import UsageError
from neardup.fingerprinting.question import question_for
from neardup.index.durable import DurableIndex
from neardup.index.hits import Answer

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from neardup.client import Seen
    from neardup.fingerprinting.question import Question

__all__ = ["SeenIndex", "ServedIndex", "open_index"]

_WORKERS: Final = 8
"""The number of concurrent requests, each of which waits for the service."""


class ServedIndex:
    """The index behind a service, with the interface that a crawl uses; the service commits.

    Args:
        url: Of the service.
        key: If it needs one.
    """

    uncommitted: Final = 0
    workers: Final = _WORKERS

    def __init__(self, url: str, key: str | None = None) -> None:
        """Store the address; the first request connects."""
        self._client = Client(url, key)

    @property
    def by(self) -> str:
        """The kind of closeness: "similarity" or "distance"."""
        return str(self._client.index()["by"])

    def warm_up(self) -> object:
        """Check that the service is ready."""
        return self._client.ready()

    def offer(self, identity: Any, document: Any) -> Answer:
        """The outcome of one document, as from `Index.offer`."""
        return _answer(self._client.seen(identity, document))

    def offer_many(self, ids: Sequence[Any], documents: Sequence[Any]) -> list[Answer]:
        """The outcomes of documents, as from `Index.offer_many`."""
        return list(map(_answer, self._client.seen_many(zip(ids, documents, strict=True))))

    def query_batch(self, documents: Sequence[Any], limit: int) -> pa.Table:
        """The matches of documents, as from `Index.query_batch`."""
        hits = [
            (row, *match)
            for row, matches in enumerate(self._client.query_many(documents))
            for match in matches[:limit]
        ]
        rows, ids, close = zip(*hits, strict=True) if hits else ((), (), ())
        return pa.table({"row": pa.array(rows, pa.int64()), "id": ids, self.by: close})

    def commit(self) -> None:
        """Do nothing: the service commits before it answers."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


SeenIndex: TypeAlias = DurableIndex | ServedIndex
"""The index of what a crawl or pipeline has seen."""


def _answer(seen: Seen) -> Answer:
    return Answer(seen.state, seen.match and (seen.match.id, seen.match.close))


def open_index(
    place: str | os.PathLike[str],
    similarity: float | None = None,
    question: Question | None = None,
    *,
    extract: str | None = None,
    readonly: bool = False,
    key: str | None = None,
) -> SeenIndex:
    """The index in a folder, created if it does not exist, or the index of a service.

    Args:
        place: The folder, or the URL of the service, which has its own question.
        similarity: What a new index is made for, and the least of a match in any.
        question: Similarity, measure and recipe of a new index. An index that exists has its own; a
            new one has that of `neardup index create` if neither is named.
        extract: What a new index compares of HTML; see `Index`.
        readonly: Open for queries only.
        key: Of the service, if it needs one.

    Raises:
        UsageError: For a question with a URL; as `DurableIndex.open`.
        RecipeError, FileError, DataError: As `DurableIndex.open`.
    """
    if str(place).startswith(("http://", "https://")):
        if any(each is not None for each in (similarity, question, extract)):
            raise UsageError(
                f"the service at {place} has its own question: leave similarity, question and"
                " extract out"
            )
        return ServedIndex(str(place), key)
    folder = Path(place)
    if readonly or (folder.is_dir() and any(folder.iterdir())):
        return DurableIndex.open(
            folder, similarity=similarity, question=question, extract=extract, readonly=readonly
        )
    made_for = question_for(question, similarity)
    return DurableIndex.open(folder, question=made_for, extract=extract)
