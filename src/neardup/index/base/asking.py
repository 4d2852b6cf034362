"""What can be asked of an index whatever its rows hold, and an index as it was at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.index.attachments import Beside, payload_in
from neardup.index.base.counters import Counters
from neardup.index.id_columns import IdColumn, id_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.protocol import Id, Ids

__all__ = ["Asking", "Moment"]

DOCUMENTS_A_BATCH: Final = 1 << 14


class Asking:
    """Every question about ids; what there is is what `_read` says.

    Args:
        settings: Of the index.
    """

    def __init__(self, settings: Any) -> None:
        """Ask nothing yet."""
        self._settings = settings
        self._counters = Counters()

    @property
    def recipe(self) -> Recipe | None:
        """How texts are read; None if only fingerprints or feature hashes are taken."""
        found: Recipe | None = self._settings.recipe
        return found

    @property
    def id_kind(self) -> str | None:
        """What the ids are, "int" or "str"; None before the first one."""
        kind: str | None = self._read().kind
        return kind

    @property
    def added(self) -> int:
        """How many documents were ever added: the number that the next one gets."""
        return int(self._read().next)

    def __len__(self) -> int:
        """Documents stored."""
        return len(self._read())

    def __contains__(self, identity: Any) -> bool:
        """Whether a document of this id is stored."""
        return identity in self._read()

    def number(self, identity: Id) -> int | None:
        """How many documents were added before this one; None if the id is not present."""
        found: int | None = self._read().number(identity)
        return found

    def times(self, ids: Ids) -> npt.NDArray[np.float64]:
        """When documents were added, or last touched: seconds since 1970, float64 (n,).

        Raises:
            KeyError: If an id is not present.
        """
        held = self._read()
        found: npt.NDArray[np.float64] = held.clock.times_of(held.numbers_at(held.present(ids)))
        return found

    def payload(self, identity: Id) -> Any:
        """The small value that was stored beside a document; None if there is none.

        Raises:
            KeyError: If the id is not present.

        Example:
            >>> from neardup import Index
            >>> index = Index(distance=1)
            >>> index.add("a", 0b1011, payloads={"url": "https://example.org/", "status": 200})
            1
            >>> index.payload("a")
            {'url': 'https://example.org/', 'status': 200}
        """
        return self.payloads([identity])[0]

    def payloads(self, ids: Ids) -> list[Any]:
        """The small values that were stored beside documents, of one moment: as `payload`.

        Raises:
            KeyError: If an id is not present.
        """
        return [payload_in(each) for each in self._kept_at(ids)]

    def versions(self, ids: Any, contents: Any) -> npt.NDArray[np.int8]:
        """How ids are stored: ABSENT, with OTHER content than these, or with the SAME.

        Args:
            ids: Arrow array, of the index's kind.
            contents: uint64 (n, width) of an index of fingerprints, Sets of one by similarity.
        """
        return self._read().versions(IdColumn(id_array(ids)), contents)  # type: ignore[no-any-return]

    def _kept_at(self, ids: Any) -> list[bytes | None]:
        """What is kept beside the rows of ids."""
        raise NotImplementedError

    def _read(self) -> Any:
        """What a question looks at: Held."""
        raise NotImplementedError


class Moment(Asking):
    """An index as it was at one moment: every call sees the same.

    Args:
        held: What it held.
    """

    _held: Any
    _beside: Beside

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of the commit of a durable index; contents cannot be read after it."""

    @property
    def store(self) -> str:
        """What is kept beside rows; see DurableIndex.store."""
        return "none"

    def rows(self) -> Iterator[tuple[Any, Any, list[Any] | None, Any, list[Any] | None]]:
        """Everything, some documents at a time, in order of insertion.

        Returns:
            Ids (an Arrow array), fingerprints or Sets, contents if any are kept, when the documents
            were added, float64 (n,), and payloads if there are any.
        """
        for part in self._held.parts():
            live = part.live_rows()
            if not len(live):
                continue
            for rows in np.split(live, range(DOCUMENTS_A_BATCH, len(live), DOCUMENTS_A_BATCH)):
                numbers = part.numbers[rows]
                times = self._held.clock.times_of(numbers)
                ids = part.ids.values.take(pa.array(rows))
                kept = self._kept_of(numbers.tolist())
                payloads = None if kept is None else [payload_in(each) for each in kept]
                yield ids, part.contents(rows), self._contents_of(kept), times, payloads

    def _contents_of(self, kept: list[bytes | None] | None) -> list[Any] | None:
        """The contents in what is kept beside rows."""
        del kept
        return None

    def _kept_at(self, ids: Any) -> list[bytes | None]:
        numbers = self._held.numbers_at(self._held.present(ids)).tolist()
        return self._kept_of(numbers) or [None] * len(numbers)

    def _kept_of(self, numbers: list[int]) -> list[bytes | None] | None:
        """What is kept beside the rows of these numbers; None if nothing is of any."""
        return self._beside.of(numbers)

    def _read(self) -> Any:
        return self._held
