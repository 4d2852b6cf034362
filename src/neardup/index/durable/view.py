"""A durable index as it was at one moment, with what it kept beside fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.index.attachments import content_in
from neardup.index.base.asking import Moment
from neardup.index.queries import IndexView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from neardup.index.attachments import Contents
    from neardup.index.durable.log_reading import Reading
    from neardup.index.durable.log_store import Store
    from neardup.index.snapshot import Snapshot

__all__ = ["Committed", "DurableView", "read_contents", "stored_beside"]


class Committed(Moment):
    """What a view of a folder has beside rows."""

    def _take(self, store: Store, reading: Reading, pending: dict[int, bytes | None]) -> None:
        """Keep the commit, which is let go by `close`."""
        self._path, self._stores = store.path, str(store.settings["store"])
        self._reading, self._pending = reading, pending

    def close(self) -> None:
        """Let go of the commit; contents and payloads cannot be read after it."""
        self._reading.close()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def store(self) -> str:
        """What is kept beside fingerprints: "none", "features" or "text"."""
        return self._stores

    def _kept_of(self, numbers: list[int]) -> list[bytes | None] | None:
        kept = stored_beside(numbers, self._pending, self._reading)
        return kept if any(each is not None for each in kept) else None


class DurableView(Committed, IndexView):
    """As IndexView, with contents; close it, or use it in a `with` statement.

    Args:
        held: The documents.
        distance: Of the index.
        store: Of the index.
        reading: The commit that it is of, or goes on from; taken over.
        pending: Contents by number that were not committed.
        contents: What decodes them.
    """

    def __init__(
        self,
        held: Snapshot,
        distance: int,
        store: Store,
        reading: Reading,
        pending: dict[int, bytes | None],
        contents: Contents,
    ) -> None:
        """Keep all of it."""
        super().__init__(held, distance)
        self._take(store, reading, pending)
        self._contents = contents

    def content(self, identity: Any) -> Any:
        """As DurableIndex.content."""
        return self.contents([identity])[0]

    def contents(self, ids: Any) -> list[Any]:
        """As DurableIndex.contents."""
        numbers = self._held.numbers_at(self._held.present(ids)).tolist()
        return read_contents(numbers, self._pending, self._reading, self._contents)

    def documents(self) -> Iterator[tuple[Any, Any, list[Any]]]:
        """As DurableIndex.documents."""
        for ids, codes, contents, *_ in self.rows():
            yield ids, codes, [None] * len(ids) if contents is None else contents

    def _contents_of(self, kept: list[bytes | None] | None) -> list[Any] | None:
        if self._stores == "none" or kept is None:
            return None
        return [self._contents.decoded(content_in(each)) for each in kept]


def read_contents(
    numbers: list[int], pending: dict[int, bytes | None], reading: Reading, contents: Contents
) -> list[Any]:
    """What is kept of rows, decoded; those that were not committed are in `pending`."""
    kept = stored_beside(numbers, pending, reading)
    return [contents.decoded(content_in(each)) for each in kept]


def stored_beside(
    numbers: list[int], pending: dict[int, bytes | None], reading: Reading
) -> list[bytes | None]:
    """What is kept beside rows, encoded; of those that were not committed it is in `pending`."""
    stored = reading.contents(numbers)
    if pending:
        stored = [pending.get(each, kept) for each, kept in zip(numbers, stored, strict=True)]
    return stored
