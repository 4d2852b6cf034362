"""Types of every index's arguments and results, for annotations of callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from neardup.index.hits import Answer, Id

if TYPE_CHECKING:
    import contextlib

    import pyarrow as pa

    from neardup.index.prepared import Prepared

__all__ = ["Answer", "AnyIndex", "Documents", "Id", "Ids", "SupportsArray", "SupportsArrow"]


class SupportsArrow(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """See the Arrow PyCapsule interface."""


class SupportsArray(Protocol):
    """An object that NumPy converts to an array, such as a pandas column."""

    def __array__(self) -> Any:
        """See numpy.asarray."""


Ids: TypeAlias = Id | Sequence[Id] | SupportsArrow | SupportsArray
"""One id, or many of one type."""
_One: TypeAlias = str | int | npt.NDArray[np.uint64] | None
Documents: TypeAlias = _One | Sequence[Any] | SupportsArrow | SupportsArray
"""One text, fingerprint or array of feature hashes, or many of them; None has no tokens."""
Contents: TypeAlias = Sequence[Any] | SupportsArrow
"""Contents that an index in a folder stores with fingerprints: texts, or arrays of hashes."""
Payloads: TypeAlias = Any
"""A small value or many of them: bytes, or JSON values."""
Stored: TypeAlias = Literal["replace", "keep", "error"]
"""The fate of an id that is stored with other content than that of the offer."""
OnBad: TypeAlias = Literal["error", "report"]
"""The treatment of a document that cannot be prepared."""
Calls: TypeAlias = Literal["usual", "all"]
"""The calls that `warm_up` prepares."""
Missing: TypeAlias = Literal["error", "ignore"]
"""The treatment of an id that is to be removed but is not present."""


@runtime_checkable
class AnyIndex(Protocol):
    """The calls that every index has: in memory or in a folder, by distance or by similarity.

    Example:
        >>> import neardup as nd
        >>> from neardup.index import AnyIndex
        >>> def is_seen(index: AnyIndex, text: str) -> bool:
        ...     return len(index.query(text)) > 0
        >>> is_seen(nd.Index(recipe=nd.Recipe()), "a text")
        False
    """

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    @property
    def added(self) -> int:
        """The number of documents that were ever added."""

    @property
    def id_kind(self) -> str | None:
        """The kind of the ids, "int" or "str"; None before the first one."""

    def __len__(self) -> int:
        """Documents stored."""

    def __contains__(self, identity: object, /) -> bool:
        """Whether a document of this id is stored."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, *raised: object) -> None:
        """Close it."""

    def add(
        self, ids: Ids | Prepared, documents: Documents = None, /, *, payloads: Any = None
    ) -> int:
        """Store one document or many."""

    def add_if_new(
        self,
        identity: Id,
        document: Documents,
        /,
        *,
        stored: Stored = "replace",
        payload: Any = None,
    ) -> tuple[Id, float] | None:
        """Store a document unless one is near."""

    def offer(
        self, identity: Id, document: Documents, *, stored: Stored = "replace", payload: Any = None
    ) -> Answer:
        """Store a document unless one is near; the answer says the outcome."""

    def add_new(
        self, ids: Ids | Prepared, documents: Documents = None, contents: Any = None, *,
        stored: Stored = "replace", payloads: Any = None,
    ) -> pa.Table:  # fmt: skip
        """Store those of many documents to which no other is near."""

    def offer_many(
        self, ids: Ids | Prepared, documents: Documents = None, contents: Any = None, *,
        stored: Stored = "replace", payloads: Any = None,
    ) -> list[Answer]:  # fmt: skip
        """As `add_new`, with a list of answers."""

    def prepare(
        self, ids: Ids, documents: Documents, contents: Any = None, *, payloads: Any = None,
        bad: OnBad = "error",
    ) -> Prepared:  # fmt: skip
        """Prepare documents for `add_new` and `offer_many`, without a lock."""

    def transaction(self) -> contextlib.AbstractContextManager[Self]:
        """A transaction: committed at the end of the body, rolled back if it raises."""

    def query(self, document: Documents, /) -> list[tuple[Id, Any]]:
        """The documents near one."""

    def query_batch(self, documents: Documents, /) -> pa.Table:
        """The documents near each of many."""

    def nearest(self, document: Documents, /, n: int = 10) -> list[tuple[Id, Any]]:
        """The n closest documents."""

    def remove(self, ids: Ids, *, missing: Missing = "error") -> int:
        """Remove documents by id."""

    def expire(self, before: float) -> int:
        """Remove the documents added before a time."""

    def touch(self, ids: Ids) -> int:
        """Mark documents as seen again."""

    def times(self, ids: Ids) -> npt.NDArray[np.float64]:
        """The times at which documents were added."""

    def payload(self, identity: Id) -> Any:
        """The small value stored with a document."""

    def payloads(self, ids: Ids) -> list[Any]:
        """The payloads of many documents."""

    def commit(self) -> None:
        """Write changes to the disk, if the index is in a folder."""

    def compact(self) -> None:
        """Merge everything into one segment."""

    def close(self) -> None:
        """Close it."""

    def warm_up(self, calls: Calls = "usual") -> float:
        """Load and compile what queries and additions need; returns the seconds."""

    def stats(self) -> dict[str, Any]:
        """Sizes and counters."""
