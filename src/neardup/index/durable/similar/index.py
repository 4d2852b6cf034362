"""An index by similarity in a folder: crash-safe, one writer, many readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from neardup.errors import UsageError
from neardup.index.durable.base import DurableBase
from neardup.index.durable.log_entries import FORMAT
from neardup.index.durable.view import Committed
from neardup.index.kind_settings import SimilarSettings, check_kind, check_recipe, stored_recipe
from neardup.index.similar.queries import SimilarView
from neardup.index.similar.writing import SimilarWriting
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.durable.log_reading import Reading
    from neardup.index.durable.log_store import Store
    from neardup.index.similar.snapshot import SimilarSnapshot

__all__ = ["DurableSimilarIndex", "DurableSimilarView", "new_similar_settings"]

CHECKPOINT_ROWS: Final = 1 << 15
"""Rows in the log from which on they are written to files; it is read when the index is opened."""


def new_similar_settings(
    similarity: float | None, measure: str | None, recipe: Recipe | None, **asked: Any
) -> dict[str, Any]:
    """What a new folder says of itself; UsageError for what cannot be, or distances have."""
    made = SimilarSettings(
        check_kind(similarity, **asked), measure or "jaccard", recipe
    ).described()
    return {"format": FORMAT, "neardup": __version__, "store": "features", **made}


class DurableSimilarIndex(DurableBase, SimilarWriting):
    """Documents in a folder, searched by exact similarity; `DurableIndex.open` opens or makes one.

    What was committed survives a crash, whole. One process writes, any number read, and nobody
    waits for anybody. The writer sees what it has added before the commit; readers see the last
    commit at every query.
    """

    def __init__(
        self, store: Store, similarity: float | None = None, recipe: Recipe | None = None
    ) -> None:
        """Read the folder; use `DurableIndex.open`."""
        made = store.settings
        known = stored_recipe(made, recipe)
        settings = SimilarSettings(made["similarity"], made["measure"], known)
        SimilarWriting.__init__(self, settings, similarity)
        self._begin(store)

    @classmethod
    def opened(
        cls,
        store: Store,
        similarity: float | None,
        measure: str | None,
        recipe: Recipe | None,
        /,
        **asked: Any,
    ) -> Self:
        """The index of an open folder; None asks for what it was made with.

        Raises:
            UsageError: If it was made for a larger similarity, another measure or distances, or
                what is asked belongs to these.
            RecipeError: If it was made with another recipe.
        """
        made = store.settings
        if "similarity" not in made:
            name, value = ("similarity", similarity) if measure is None else ("measure", measure)
            raise UsageError(
                f"{name} is {value!r}, but the index in {store.path} is by distance, up to"
                f" {made['distance']}: leave it out, or make another index"
            )
        check_kind(made["similarity"], **asked)
        if measure is not None and measure != made["measure"]:
            raise UsageError(
                f"measure is {measure!r}, but the index in {store.path} was made with"
                f" {made['measure']!r}: leave it out, or make another index"
            )
        check_recipe(str(store.path), made, recipe)
        return cls(store, similarity, recipe)

    def snapshot(self) -> DurableSimilarView:
        """The index as it is now, for several calls that must agree; see DurableIndex.snapshot."""
        with self._lock:
            reading = self._pinned()
            pending = dict(self._pending.contents)
            return DurableSimilarView(self._state, self.similarity, self._store, reading, pending)

    def documents(self) -> Iterator[tuple[Any, Any, list[Any]]]:
        """Ids (an Arrow array), Sets of features, and the features of each, as they are now."""
        return self.snapshot().documents()

    def _checkpoint_rows(self) -> int:
        return CHECKPOINT_ROWS


class DurableSimilarView(Committed, SimilarView):
    """As SimilarView, of a folder; close it, or use it in a `with` statement.

    Args:
        held: What it held.
        similarity: Of the index.
        store: Of the index.
        reading: The commit that it is of, or goes on from; taken over.
        pending: What is kept beside rows that were not committed, by number.
    """

    def __init__(
        self,
        held: SimilarSnapshot,
        similarity: float,
        store: Store,
        reading: Reading,
        pending: dict[int, bytes | None],
    ) -> None:
        """Keep it."""
        SimilarView.__init__(self, held, similarity)
        self._take(store, reading, pending)
