"""Contents and payloads that an index keeps beside its rows, in step with these.

In memory it is a table of its own; the durable index puts it into its log instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.errors import UsageError
from neardup.index.attachments import Beside, encoded, joined
from neardup.index.base.asking import Asking

if TYPE_CHECKING:
    from neardup.runtime.types import Rows

__all__ = ["Keeping"]


class Keeping(Asking):
    """Rows, and what is kept beside them."""

    _state: Any
    _beside: Beside

    def _kept(
        self, ids: Any, documents: Any, contents: Any, payloads: Any
    ) -> list[bytes | None] | None:
        """What is kept beside rows, encoded, a list; None if nothing is."""
        found = self._contents_kept(ids, documents, contents)
        if payloads is None:
            return None if found is None else [joined(each) for each in found]
        small = encoded(ids if isinstance(ids, list) else ids.to_pylist(), payloads)
        return [joined(*each) for each in zip(found or [None] * len(small), small, strict=True)]

    def _contents_kept(self, ids: Any, documents: Any, contents: Any) -> list[bytes | None] | None:
        """Contents kept beside rows, encoded, a list; None if none are."""
        del ids, documents
        if contents is not None:
            raise UsageError(
                "the index keeps no contents: use DurableIndex with distance= and store='text', say"
            )
        return None

    def _kept_of(self, numbers: list[int]) -> list[bytes | None] | None:
        """What is kept of stored rows, encoded, as `_kept`."""
        return self._beside.of(numbers)

    def _kept_at(self, ids: Any) -> list[bytes | None]:
        held, beside = self._moment()
        numbers = held.numbers_at(held.present(ids)).tolist()
        return beside.of(numbers) or [None] * len(numbers)

    def _moment(self) -> tuple[Any, Beside]:
        """What is held in memory, and what is kept beside it: of one moment."""
        while True:
            beside = self._beside
            held = self._state
            if beside is self._beside:
                return held, beside

    def _added(self, first: int, ids: Any, many: Any, kept: Any) -> None:
        """Called with rows that were stored and the number of the first; the durable index logs."""
        del ids, many
        if kept is not None:
            self._beside.put(first, kept)

    def _added_one(self, number: int, identity: Any, one: Any, kept: Any) -> None:
        """As `_added`, for one row."""
        del identity, one
        if kept is not None:
            self._beside.put(number, [kept])

    def _removed(self, numbers: Rows) -> None:
        """Called with the numbers of rows that were removed or replaced."""
        if len(self._beside):
            self._beside = self._beside.without(numbers.tolist())
