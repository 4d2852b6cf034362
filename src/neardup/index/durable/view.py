"""A durable index as it was at one moment, with what it kept beside fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.index.queries import IndexView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from neardup.index.durable.contents import Contents
    from neardup.index.durable.store import Reading, Store
    from neardup.index.snapshot import Snapshot

__all__ = ["DurableView", "read_contents", "stored_contents"]


class DurableView(IndexView):
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
        self._path, self._stores = store.path, str(store.settings["store"])
        self._reading, self._pending, self._contents = reading, pending, contents

    def close(self) -> None:
        """Let go of the commit; contents cannot be read after it."""
        self._reading.close()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def store(self) -> str:
        """What is kept beside fingerprints: "none", "features" or "text"."""
        return self._stores

    def content(self, identity: Any) -> Any:
        """As DurableIndex.content."""
        return self.contents([identity])[0]

    def contents(self, ids: Any) -> list[Any]:
        """As DurableIndex.contents."""
        numbers = self._held.numbers_at(self._held.present(ids)).tolist()
        return read_contents(numbers, self._pending, self._reading, self._contents)

    def documents(self) -> Iterator[tuple[Any, Any, list[Any]]]:
        """As DurableIndex.documents."""
        for ids, codes, contents, _ in self.rows():
            yield ids, codes, [None] * len(ids) if contents is None else contents

    def _contents_of(self, numbers: Any) -> list[Any] | None:
        if self._stores == "none":
            return None
        return read_contents(numbers.tolist(), self._pending, self._reading, self._contents)


def read_contents(
    numbers: list[int], pending: dict[int, bytes | None], reading: Reading, contents: Contents
) -> list[Any]:
    """What is kept of rows, decoded; those that were not committed are in `pending`."""
    return [contents.decoded(each) for each in stored_contents(numbers, pending, reading)]


def stored_contents(
    numbers: list[int], pending: dict[int, bytes | None], reading: Reading
) -> list[bytes | None]:
    """As `read_contents`, as they are stored."""
    stored = reading.contents(numbers)
    if pending:
        stored = [pending.get(each, kept) for each, kept in zip(numbers, stored, strict=True)]
    return stored
