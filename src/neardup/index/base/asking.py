"""What can be asked of an index whatever its rows hold, and an index as it was at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.index.base.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.base.types import Id, Ids

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

    def _read(self) -> Any:
        """What a question looks at: Held."""
        raise NotImplementedError


class Moment(Asking):
    """An index as it was at one moment: every call sees the same.

    Args:
        held: What it held.
    """

    _held: Any

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

    def rows(self) -> Iterator[tuple[Any, Any, list[Any] | None, Any]]:
        """Everything, some documents at a time, in order of insertion.

        Returns:
            Ids (an Arrow array), fingerprints or Sets, contents if any are kept, and when the
            documents were added, float64 (n,).
        """
        for part in self._held.parts():
            live = part.live_rows()
            if not len(live):
                continue
            for rows in np.split(live, range(DOCUMENTS_A_BATCH, len(live), DOCUMENTS_A_BATCH)):
                numbers = part.numbers[rows]
                times = self._held.clock.times_of(numbers)
                ids = part.ids.values.take(pa.array(rows))
                yield ids, part.contents(rows), self._contents_of(numbers), times

    def _contents_of(self, _: Any) -> list[Any] | None:
        """What is kept of the rows of these numbers."""
        return None

    def _read(self) -> Any:
        return self._held
