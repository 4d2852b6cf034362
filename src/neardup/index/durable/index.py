"""An index in a folder: crash-safe, one writer, many readers."""

from __future__ import annotations

import contextlib
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import FileError, suggests_names
from neardup.index.attachments import Contents
from neardup.index.durable.base import DurableBase
from neardup.index.durable.folder_check import verify_folder
from neardup.index.durable.log_store import Store
from neardup.index.durable.settings import check_settings, new_settings
from neardup.index.durable.similar.index import DurableSimilarIndex, new_similar_settings
from neardup.index.durable.view import DurableView, read_contents
from neardup.index.kind_settings import Settings, stored_recipe
from neardup.index.snapshot import Snapshot
from neardup.index.writing import BaseIndex
from neardup.runtime.storage.files import path_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.protocol import Documents, Id, Ids, Stored
    from neardup.index.queries import IndexView

__all__ = ["DurableIndex"]


class DurableIndex(DurableBase, BaseIndex, metaclass=ABCMeta):
    """Fingerprints in a folder, searched exactly; `DurableIndex.open` opens or makes one.

    What was committed survives a crash, whole. One process writes, any number read, and nobody
    waits for anybody. The writer sees what it has added before the commit; readers see the last
    commit at every query.
    """

    def __init__(self, store: Store, distance: int | None, recipe: Recipe | None) -> None:
        """Read the folder; use `DurableIndex.open`."""
        made = store.settings
        known = stored_recipe(made, recipe)
        settings = Settings(made["distance"], made["bits"], known, made["plan"], None)
        self._contents = Contents(made["store"], known)
        BaseIndex.__init__(self, Snapshot.empty(settings), distance)
        self._begin(store)

    @classmethod
    @suggests_names
    def open(  # noqa: PLR0913  # the names of both kinds
        cls,
        path: str | os.PathLike[str],
        distance: int | None = None,
        bits: int | None = None,
        recipe: Recipe | None = None,
        plan: str | None = None,
        store: str | None = None,
        *,
        readonly: bool = False,
        create: bool = True,
        verify: bool = False,
        similarity: float | None = None,
        measure: str | None = None,
    ) -> Self:
        """Open the index in a folder, or make one there.

        Args:
            path: The folder.
            distance: Largest Hamming distance of a query; at most what the index was made for,
                which it is unless said. A new index is made for 3 unless said.
            bits: Width of the fingerprints; of a new index the recipe's, else 64, unless said.
            recipe: How texts become fingerprints; an index that was made with one remembers it.
            plan: "auto", or a plan by name: see neardup.plan.
            store: What is kept beside fingerprints: "none", "features" (their hashes, which
                verification needs) or "text". An index by similarity keeps features.
            readonly: Open for queries only: any number of processes may, also while one writes.
            create: Make the index if there is none.
            verify: Verify every checksum first, as `check`; it reads the whole folder: seconds a
                million documents. Else a bit that flipped on the disk gives wrong answers.
            similarity: The least similarity of a query, at least what the index was made for: a new
                index is by similarity, see neardup.Index, and remembers it.
            measure: Of similarity: "jaccard" unless said, "cosine", "containment" or "dice".

        Returns:
            The index. Close it, or use it in a `with` statement.

        Raises:
            UsageError: If these differ from what the index was made with.
            RecipeError: If it was made with another recipe.
            FileError: If it cannot be read or written, or another process has it open for writing.
            DataError: If it is damaged, made by a newer version, or no index.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> with DurableIndex.open(folder, distance=1) as index:
            ...     index.add(["a", "b"], [0b1011, 0b0100])
            2
            >>> DurableIndex.open(folder, readonly=True).query(0b1111)
            [('a', 1)]
        """
        is_similar = similarity is not None or measure is not None
        asked = {"bits": bits, "plan": plan, "store": store}
        folder = path_of(path)
        whole = folder.absolute()  # the process may change its folder later
        if verify and _exists(folder):
            verify_folder(folder)
        try:
            found = Store(whole, readonly=readonly) if _exists(folder) else None
        except FileNotFoundError:
            found = None
        if found is None and (readonly or not create):
            make = "name a new folder" if _exists(folder) else f"neardup index create {folder}"
            raise FileError(f"there is no index in {folder}: to make one, {make}")
        if found is None:
            if is_similar:
                made = new_similar_settings(similarity, measure, recipe, distance=distance, **asked)
            else:
                made = new_settings(distance, bits, recipe, plan, store)
            found = Store.create(whole, made)
        try:
            if "similarity" in found.settings or is_similar:
                similar: Any = DurableSimilarIndex.opened(
                    found, similarity, measure, recipe, distance=distance, **asked
                )
                return similar  # type: ignore[no-any-return]
            check_settings(folder, found.settings, distance, recipe, **asked)
            return cls(found, distance, recipe)
        except BaseException:
            found.close()
            raise

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        distance: int | None = None,
        bits: int | None = None,
        recipe: Recipe | None = None,
        plan: str | None = None,
        store: str | None = None,
        **similar: Any,
    ) -> Self:
        """As `open`, for an index that does not exist yet.

        Raises:
            FileError: If it exists, or cannot be made.
        """
        folder = path_of(path)
        if _exists(folder):
            raise FileError(f"{folder} exists: add to it, or use a new folder")
        return cls.open(folder, distance, bits, recipe, plan, store, **similar)

    def add(
        self, ids: Ids, fingerprints: Documents, contents: Any = None, *, payloads: Any = None
    ) -> int:
        """Store one document or many, as Index.add; on disk after `commit`.

        Args:
            ids: A str or int; or many.
            fingerprints: As many, or texts.
            contents: What the index keeps beside fingerprints, as many: texts, or arrays of uint64
                feature hashes. Not needed where texts are given for fingerprints.
            payloads: As of Index.add.

        Returns:
            How many were stored.

        Raises:
            UsageError: As Index.add; if contents are missing, or the index keeps none.
        """
        return self._add(ids, fingerprints, contents, payloads)

    def add_if_new(
        self,
        identity: Id,
        fingerprint: Documents, content: Any = None, *,
        stored: Stored = "replace", payload: Any = None,
    ) -> tuple[Id, int] | None:  # fmt: skip
        """As Index.add_if_new; `content` as of `add`."""
        near: Any = self.offer(
            identity, fingerprint, stored=stored, content=content, payload=payload
        ).near
        return near  # type: ignore[no-any-return]

    def content(self, identity: Id) -> Any:
        """What is kept of a document: its text, or uint64 feature hashes; None if nothing is.

        Raises:
            KeyError: If the id is not present.
        """
        return self.contents([identity])[0]

    def contents(self, ids: Ids) -> list[Any]:
        """What is kept of each of many documents, of one commit: as `content`.

        Raises:
            KeyError: If an id is not present.
        """
        with self._lock, contextlib.closing(self._pinned()) as reading:
            held = self._state
            numbers = held.numbers_at(held.present(ids)).tolist()
            return read_contents(numbers, self._pending.contents, reading, self._contents)

    def documents(self) -> Iterator[tuple[Any, Any, list[Any]]]:
        """Ids, fingerprints and contents of all documents, as they are now, some at a time.

        Returns:
            Arrow array, uint64 (n, width) and a list as of `content`, in order of insertion.
        """
        return self.snapshot().documents()

    def snapshot(self) -> DurableView:
        """The index as it is now, for several calls that must agree; see Index.snapshot.

        It holds on to the commit: space of what is removed meanwhile is free again when it is
        closed.
        """
        with self._lock:
            reading = self._pinned()
            pending = dict(self._pending.contents)
            kept = (reading, pending, self._contents)
            return DurableView(self._state, self.distance, self._store, *kept)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "store": self.store}

    def _check_merging(self, other: IndexView, *, foreign: bool) -> None:
        super()._check_merging(other, foreign=foreign)
        self._contents.check_merging(other.store)

    def _merge_rows(self, ids: Any, many: Any, contents: Any, times: Any, payloads: Any) -> None:
        kept = contents if self._contents.is_kept else None
        if self._contents.is_kept and kept is None:
            kept = [None] * len(ids)
        super()._merge_rows(ids, many, kept, times, payloads)

    def _contents_kept(self, ids: Any, documents: Any, contents: Any) -> list[bytes | None] | None:
        return self._contents.encoded(ids, documents, contents)

    def _keeps_contents(self) -> bool:
        return self._contents.is_kept or super()._keeps_contents()


DurableIndex.register(DurableSimilarIndex)


def _exists(folder: Path) -> bool:
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
