"""What the index in memory and the durable one share beside queries: adding fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup.errors import RecipeError, UsageError
from neardup.index.base.writing import Writing
from neardup.index.incoming import many_fingerprints
from neardup.index.kind_settings import check_same_recipe
from neardup.index.queries import IndexView, Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.attachments import Beside
    from neardup.index.protocol import Documents, Id, Ids, Stored
    from neardup.index.snapshot import Snapshot

__all__ = ["BaseIndex"]


class BaseIndex(Writing, Queries):
    """Fingerprints by id, searched exactly; see Index and DurableIndex.

    Args:
        state: What it holds at first.
        distance: Of Queries.
        beside: Of Writing.
    """

    _NOUN = "fingerprints"
    _CLOSENESS = ("distance", pa.int16())

    def __init__(
        self, state: Snapshot, distance: int | None = None, beside: Beside | None = None
    ) -> None:
        """Hold this."""
        Queries.__init__(self, state.settings, distance)
        Writing.__init__(self, state, beside)

    def add(self, ids: Ids, fingerprints: Documents, *, payloads: Any = None) -> int:
        """Store one document or many; one whose id is present is replaced and counts as new.

        Args:
            ids: A str or int; or many of one kind, as a sequence, NumPy or Arrow array.
            fingerprints: As many: ints, uint64 (n,) or (n, width), or texts if the index has a
                recipe. Documents without a fingerprint (no tokens: None, or masked) are left out,
                since they match nothing.
            payloads: A small value beside each, given back by `payload`: bytes, or what JSON holds,
                of at most 4,096 bytes; None for none. They go with the document that they came
                with.

        Returns:
            How many were stored.

        Raises:
            UsageError: For ids of mixed kinds or another kind than those stored, a wrong number,
                width or type of fingerprints, or texts without a recipe.
        """
        return self._add(ids, fingerprints, payloads=payloads)

    def add_if_new(
        self, identity: Id, fingerprint: Documents, *, stored: Stored = "replace",
        payload: Any = None,
    ) -> tuple[Id, int] | None:  # fmt: skip
        """Store a document unless another within the distance is; no other add comes between.

        Args:
            identity: A str or int.
            fingerprint: As one of `add`.
            stored: What happens if the id is stored with other content: see `offer`.
            payload: A small value kept beside it, as of `add`.

        Returns:
            None if no other is near (`offer` says what became of it), else the nearest stored
            (id, distance), the first added of equally near ones; never the document's own id.

        Raises:
            UsageError, DataError: As `offer`.
        """
        near: Any = self.offer(identity, fingerprint, stored=stored, payload=payload).near
        return near  # type: ignore[no-any-return]

    def merge(self, other: BaseIndex, *, foreign: bool = False) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        They keep the times at which they were added, their texts or features, and payloads.

        Args:
            other: Which.
            foreign: Take fingerprints of which no recipe is known as those of this one's.

        Raises:
            UsageError: If widths differ, or the other keeps less than this one.
            RecipeError: If recipes differ, or only this one is known to have one.
        """
        if not isinstance(other, BaseIndex):
            raise UsageError(f"{type(other).__name__} is no index: merge Index or DurableIndex")
        with self._lock, other.snapshot() as seen:
            self._writing()
            self._check_merging(seen, foreign=foreign)
            for rows in seen.rows():
                self._merge_rows(*rows)

    def snapshot(self) -> IndexView:
        """The index as it is now, for several calls that must agree.

        Example:
            >>> from neardup import Index
            >>> index = Index()
            >>> before = index.snapshot()
            >>> index.add("a", 0b1011)
            1
            >>> len(before), len(index)
            (0, 1)
        """
        held, beside = self._moment()
        return IndexView(held, self.distance, beside)

    def _check_merging(self, other: IndexView, *, foreign: bool) -> None:
        mine, theirs = self.recipe, other.recipe
        if self.bits != other.bits:
            raise UsageError(f"the other index has {other.bits} bits, this one {self.bits}")
        check_same_recipe(mine, theirs)
        if mine and not theirs and not foreign:
            raise RecipeError(
                f"this index has recipe {mine.digest}, the other none, so nothing says that its"
                " fingerprints are of that recipe: if they are, pass foreign=True"
            )

    def _scratch(self) -> Any:
        return BaseIndex(self._state.empty(self._settings))

    def _example(self) -> Callable[[int], Any]:
        return lambda row: row % (1 << self.bits)

    def _facts(self) -> dict[str, Any]:
        made = self._settings
        return {
            "distance": self.distance, "made_for_distance": made.distance, "bits": made.bits,
            "plan": made.plan, "recipe": made.recipe.digest if made.recipe else None,
        }  # fmt: skip

    def _many(self, documents: Any) -> tuple[Any, Any, int]:
        codes, rows = many_fingerprints(documents, self._settings)
        return codes, rows, len(documents)

    def _near(self, one: Any, but: Any) -> tuple[Any, int] | None:
        hits, _ = self._state.hits(one, self.distance, 1 if but is None else 2)
        return next(((hit[2], hit[0]) for hit in hits[:2] if hit[2] != but), None)
