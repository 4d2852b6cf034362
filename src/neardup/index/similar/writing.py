"""Adding documents to an index by similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.base.writing import Writing
from neardup.index.incoming import many_sets, one_set
from neardup.index.kind_settings import check_same_recipe
from neardup.index.similar.queries import SimilarQueries, SimilarView
from neardup.index.similar.snapshot import SimilarSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.kind_settings import SimilarSettings
    from neardup.index.protocol import Documents, Id, Ids, Stored

__all__ = ["SimilarWriting"]


class SimilarWriting(Writing, SimilarQueries):
    """Documents by id, searched exactly by similarity.

    Args:
        settings: Of the index.
        similarity: Of SimilarQueries.
    """

    _NOUN = "documents"
    _CLOSENESS = ("similarity", pa.float64())

    def __init__(self, settings: SimilarSettings, similarity: float | None = None) -> None:
        """Start empty."""
        SimilarQueries.__init__(self, settings, similarity)
        Writing.__init__(self, SimilarSnapshot.empty(settings))

    def add(self, ids: Ids, documents: Documents, *, payloads: Any = None) -> int:
        """Store one document or many; one whose id is present is replaced and counts as new.

        Args:
            ids: A str or int; or many of one kind, as a sequence, NumPy or Arrow array.
            documents: As many: texts if the index has a recipe, or feature hashes (uint64 (n,), of
                many an Arrow list array). Documents without features are left out, since they
                match nothing.
            payloads: A small value beside each, given back by `payload`: bytes, or what JSON holds,
                of at most 4,096 bytes; None for none. They go with the document that they came
                with.

        Returns:
            How many were stored.

        Raises:
            UsageError: For ids of mixed kinds or another kind than those stored, a wrong number
                of documents, or texts without a recipe.
        """
        return self._add(ids, documents, payloads=payloads)

    def add_if_new(
        self, identity: Id, document: Documents, *, stored: Stored = "replace", payload: Any = None
    ) -> tuple[Id, float] | None:
        """Store a document unless another similar one is; no other add comes between.

        Args:
            identity: A str or int.
            document: As one of `add`.
            stored: What happens if the id is stored with other content: see `offer`.
            payload: A small value kept beside it, as of `add`.

        Returns:
            None if no other is similar (`offer` says what became of it), else the most similar
            stored (id, similarity), the first added of equally similar ones; never the document's
            own id.

        Raises:
            UsageError, DataError: As `offer`.
        """
        near: Any = self.offer(identity, document, stored=stored, payload=payload).near
        return near  # type: ignore[no-any-return]

    def merge(self, other: SimilarWriting) -> None:
        """Add all documents of another index, in its order; ids that both have are replaced.

        They keep the times at which they were added, and their payloads.

        Args:
            other: An index by similarity, in memory or in a folder; it is not changed.

        Raises:
            UsageError: If the other is no index by similarity.
            RecipeError: If the recipes differ.
        """
        if not isinstance(other, SimilarWriting):
            raise UsageError(
                f"{type(other).__name__} is no index by similarity: merge one with similarity="
            )
        check_same_recipe(self.recipe, other.recipe)
        with self._lock, other.snapshot() as seen:
            self._writing()
            for ids, sets, _, times, payloads in seen.rows():
                self._merge_rows(ids, sets, None, times, payloads)

    def snapshot(self) -> SimilarView:
        """The index as it is now, for several calls that must agree; see Index.snapshot."""
        held, beside = self._moment()
        return SimilarView(held, self.similarity, beside)

    def _scratch(self) -> Any:
        return SimilarWriting(self._settings)

    def _example(self) -> Callable[[int], Any]:
        return lambda row: np.arange(row, row + 20, dtype=np.uint64)

    def _facts(self) -> dict[str, Any]:
        made = self._settings
        return {
            "similarity": self.similarity, "made_for_similarity": made.similarity,
            "measure": made.measure, "recipe": made.recipe.digest if made.recipe else None,
        }  # fmt: skip

    def _one(self, document: Any) -> Any:
        features = one_set(document, self._settings)
        return features if len(features) else None

    def _many(self, documents: Any) -> tuple[Any, Any, int]:
        sets = many_sets(documents, self._settings)
        full = np.flatnonzero(np.diff(sets.offsets))
        return sets if len(full) == sets.size else sets.take(full), full, sets.size

    def _near(self, one: Any, but: Any) -> tuple[Any, float] | None:
        hits, _ = self._state.hits(one, self.similarity, 1 if but is None else 2)
        return next((hit for hit in hits if hit[0] != but), None) if hits else None
