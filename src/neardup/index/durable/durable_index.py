"""An index in a folder: crash-safe, one writer, many readers."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import FileError, UsageError, suggests_names
from neardup.fingerprinting.question import parts_of
from neardup.fingerprinting.values import check_distance
from neardup.index.attachments import store_of
from neardup.index.base_index import BaseIndex
from neardup.index.durable.folder_check import check_folder, verify_folder
from neardup.index.durable.folder_copy import back_up
from neardup.index.durable.folder_store import FolderStore
from neardup.index.durable.log_entries import FORMAT
from neardup.index.durable.log_store import LogStore
from neardup.index.incoming import as_time
from neardup.index.kind_settings import check_kind, check_recipe
from neardup.index.kinds import kind_of, new_kind
from neardup.runtime.signals import removes_what_is_left
from neardup.runtime.storage.durable_files import check_system, path_of
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.protocol import Calls

__all__ = ["DurableIndex"]


class DurableIndex(BaseIndex):
    """Documents in a folder, searched exactly; `DurableIndex.open` opens or makes one.

    A commit survives a crash as a whole. One process writes, any number read, and they never wait
    for each other. The writer sees its additions before the commit; readers see the last commit at
    every query.

    Example:
        >>> import tempfile
        >>> from neardup import Recipe
        >>> with DurableIndex.open(tempfile.mkdtemp(), similarity=0.8, recipe=Recipe()) as index:
        ...     index.add(["a", "b"], ["one two three four", "something else"])
        ...     index.commit()
        ...     index.query("One, two: three, four!"), index.readonly, index.stats()["documents"]
        2
        ([('a', 1.0)], False, 2)
    """

    def __init__(self, log: LogStore, reach: float | None, recipe: Recipe | None) -> None:
        """Read the folder; use `DurableIndex.open`."""
        kind = kind_of(log.settings, recipe)
        self._folder = FolderStore(log, kind)
        super().__init__(kind, self._folder, reach)

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
        question: Question | None = None,
        extract: str | None = None,
        wait: float = 0.0,
    ) -> Self:
        """Open the index in a folder, or make one there.

        Args:
            path: The folder.
            distance: Largest Hamming distance of a query; at most that for which the index was
                made, which is the default. For a new index the default is 3.
            bits: Width of the fingerprints; for a new index by default the recipe's, or 64.
            recipe: How texts become fingerprints; an index that was made with one remembers it.
            plan: "auto", or a plan by name: see neardup.plan.
            store: The stored content of documents, for `content`: "text", "features" (feature
                hashes, which verification needs) or "none"; by default features if the index is by
                similarity, which needs them, else nothing.
            readonly: Open for queries only, in any number of processes, also while one writes.
            create: Make the index if there is none.
            verify: Verify every checksum first, as `check`; it reads the whole folder, which takes
                seconds for a million documents. Without it a flipped bit on the disk can give wrong
                answers.
            similarity: The least similarity of a query, at least that for which the index was made.
                A new index is by similarity (see neardup.Index) and remembers it.
            measure: Of similarity: "jaccard" (default), "cosine", "containment" or "dice".
            question: Similarity, measure and recipe as one value; the index remembers it.
            extract: Of a text that is HTML, what is compared: the "main" content (an extra), "all"
                that is visible, or "none" of this, its markup too; the index remembers it.
            wait: Seconds to wait while another process has it open for writing.

        Returns:
            The index. Close it, or use it in a `with` statement.

        Raises:
            UsageError: If these differ from the settings of the index.
            RecipeError: If it was made with another recipe.
            FileError: If it cannot be read or written, or another process has it open for writing.
            DataError: If it is damaged, made by a newer version, or not an index.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> with DurableIndex.open(folder, distance=1) as index:
            ...     index.add(["a", "b"], [0b1011, 0b0100])
            2
            >>> DurableIndex.open(folder, readonly=True).query(0b1111)
            [('a', 1)]
        """
        if question is not None:
            similarity, measure, recipe = parts_of(question, similarity, measure, recipe)
        requested = {"bits": bits, "plan": plan}
        check_system("an index in a folder")
        folder, seconds = path_of(path), max(0.0, as_time("wait", wait))
        whole = folder.absolute()  # the process may change its folder later
        if verify and _exists(folder):
            verify_folder(folder)
        try:
            is_there = _exists(folder)
            log = LogStore(whole, readonly=readonly, wait=seconds) if is_there else None
        except FileNotFoundError:
            log = None
        if log is None and (readonly or not create):
            make = "name a new folder" if _exists(folder) else f"neardup index create {folder}"
            raise FileError(f"there is no index in {folder}: to make one, {make}")
        if log is None:
            kind = new_kind(distance, bits, recipe, plan, None, similarity, measure, store, extract)
            kept = store_of(kind, store)
            settings = {"format": FORMAT, "neardup": __version__, "store": kept, **kind.settings()}
            log = LogStore.create(whole, settings, seconds)
        try:
            _check_extract(log, extract)
            if "similarity" in log.settings:
                _check_similar(log, measure, recipe, store, distance=distance, **requested)
                return cls(log, similarity, recipe)
            _refuse_similar(log, similarity, measure)
            _check_distances(folder, log.settings, distance, recipe, store=store, **requested)
            return cls(log, distance, recipe)
        except BaseException:
            log.close()
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
        """Make an index in a folder, as `open` does; it must not exist yet.

        Raises:
            FileError: If it exists, or cannot be made.

        Example:
            >>> import tempfile
            >>> index = DurableIndex.create(f"{tempfile.mkdtemp()}/new.index", distance=3)
            >>> len(index)
            0
        """
        folder = path_of(path)
        if _exists(folder):
            raise FileError(f"{folder} exists: add to it, or use a new folder")
        return cls.open(folder, distance, bits, recipe, plan, store, **similar)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def readonly(self) -> bool:
        """Whether it was opened for queries only."""
        return self._folder.log.readonly

    @property
    def uncommitted(self) -> int:
        """Rows added and removed since the last commit."""
        return self._folder.uncommitted

    def commit(self) -> None:
        """Write additions and removals to the disk, all or nothing.

        Raises:
            FileError: If that fails: nothing is lost, and commit may be tried again.
        """
        with self._lock:
            self._check_no_transaction("commit")
        self._folder.commit()

    def rollback(self) -> None:
        """Undo additions and removals since the last commit.

        Example:
            >>> import tempfile
            >>> index = DurableIndex.open(tempfile.mkdtemp(), distance=3)
            >>> index.add(["a"], [5])
            1
            >>> index.rollback()
            >>> len(index)
            0
        """
        with self._lock:
            self._check_no_transaction("rollback")
            self._folder.rollback()

    def refresh(self) -> bool:
        """See Index.refresh.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> with DurableIndex.open(folder, distance=3) as writer:
            ...     reader = DurableIndex.open(folder, readonly=True)
            ...     _ = writer.add(["a"], [5])
            >>> reader.refresh(), len(reader)
            (True, 1)
        """
        return self._folder.refresh()

    def compact(self) -> None:
        """Commit, merge everything into one segment and return free space to the disk.

        Example:
            >>> import tempfile
            >>> index = DurableIndex.open(tempfile.mkdtemp(), distance=3)
            >>> index.add(["a", "b"], [5, 6])
            2
            >>> index.remove("a")
            1
            >>> index.compact()
            >>> index.stats()["removed"]
            0
        """
        with self._lock:
            self._folder.check_writable()
            self._check_no_transaction("compact")
            with self._folder.resting():
                super().compact()
                self._folder.flush_now()
                self._folder.log.reclaim()

    def close(self) -> None:
        """Commit and close; the index cannot be used after it.

        A merge in the background has one more second and is then abandoned: nothing is lost, and a
        later writer begins it again.

        Example:
            >>> import tempfile
            >>> index = DurableIndex.open(tempfile.mkdtemp(), distance=3)
            >>> index.close()
            >>> index.closed
            True
        """
        with self._lock:
            if self.closed:
                return
            self._check_no_transaction("close")
            if not self.readonly:
                self.commit()
            self._folder.close()

    def __exit__(self, *raised: object) -> None:
        """Close; undo uncommitted changes if the body raised."""
        with self._lock:
            if raised[0] is not None and not self.closed:
                self._folder.close()
        self.close()

    def __repr__(self) -> str:
        """A line for people: the index, its documents and settings."""
        return f"<DurableIndex of {self.path}, closed>" if self.closed else super().__repr__()

    def warm_up(self, calls: Calls = "usual") -> float:
        """Warm up as an Index, and let the system read files of up to half of free memory."""
        self._folder.fetch()
        return super().warm_up(calls)

    @contextlib.contextmanager
    def _scratches(self) -> Iterator[Callable[[], BaseIndex]]:
        """See BaseIndex: each in a folder of its own, for its files and its log."""
        with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
            # A service that is ended now does not wait for the thread that is in here.
            removes_what_is_left(lambda: _remove_under_writers(Path(folder)))
            numbers, settings = itertools.count(), self._folder.log.settings

            def make() -> BaseIndex:
                log = LogStore.create(Path(folder, str(next(numbers))), settings)
                return DurableIndex(log, self._reach, self.recipe)

            yield make

    def stats(self) -> dict[str, Any]:
        """Documents, settings, segments, bytes on disk, and counters since it was opened."""
        stats = super().stats()
        files = sum(each["file_bytes"] for each in stats["segments"])
        return stats | self._folder.sizes(files)

    def documents(self) -> Iterator[tuple[pa.Array, Any, list[Any]]]:
        """Ids, fingerprints or Sets, and contents of all documents, in batches.

        Returns:
            Arrow array, uint64 (n, width) or Sets, a list as from `content`; in order of insertion.

        Example:
            >>> import tempfile
            >>> index = DurableIndex.open(tempfile.mkdtemp(), distance=3)
            >>> index.add(["a", "b"], [5, 6])
            2
            >>> [ids.to_pylist() for ids, _, _ in index.documents()]
            [['a', 'b']]
        """
        return self.snapshot().documents()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the last commit to a new folder, an index of its own, while this one is in use.

        Segment files, which never change, are linked where that is possible, and take no space; the
        log is copied. Uncommitted changes are not in the copy.

        Args:
            path: A folder that does not exist yet.

        Raises:
            FileError: If it exists, or cannot be written.

        Example:
            >>> import tempfile
            >>> from neardup import DurableIndex
            >>> folder = tempfile.mkdtemp()
            >>> with DurableIndex.open(folder + "/seen") as index:
            ...     index.add("a", 5), index.commit(), index.backup(folder + "/copy")
            (1, None, None)
            >>> DurableIndex.open(folder + "/copy", readonly=True).query(5)
            [('a', 0)]
        """
        self._folder.check_open()
        back_up(self._folder.log, path_of(path).absolute())

    def check(self) -> list[str]:
        """Verify every checksum, and that ids, numbers and the log agree; see docs.

        Returns:
            Problems, each with what to do; none if all is well.

        Example:
            >>> import tempfile
            >>> DurableIndex.open(tempfile.mkdtemp(), distance=3).check()
            []
        """
        return check_folder(self.path)


def _exists(folder: Path) -> bool:
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))


def _refuse_similar(log: LogStore, similarity: float | None, measure: str | None) -> None:
    """Refuse to open an index by distance as one by similarity."""
    if similarity is None and measure is None:
        return
    name, value = ("similarity", similarity) if measure is None else ("measure", measure)
    raise UsageError(
        f"{name} is {value!r}, but the index in {log.path} is by distance, up to"
        f" {log.settings['distance']}: leave it out, or make another index"
    )


def _check_extract(log: LogStore, extract: str | None) -> None:
    """Compare `extract` with the index's; None means no request."""
    own = log.settings.get("extract")
    if extract is not None and extract != (own or "none"):
        raise UsageError(
            f"extract is {extract!r}, but the index in {log.path} was made with"
            f" {own or 'none'!r}: leave it out, or make another index"
        )


def _check_similar(
    log: LogStore, measure: str | None, recipe: Recipe | None, store: str | None,
    **requested: int | str | None,
) -> None:  # fmt: skip
    """Compare options with those of an index by similarity; None means no request.

    Raises:
        UsageError: If the measure differs, or an option requires distances.
        RecipeError: If it was made with another recipe.
    """
    settings = log.settings
    check_kind(settings["similarity"], store=store, **requested)
    _check_same(log.path, settings, measure=measure, store=store)
    check_recipe(str(log.path), settings, recipe)


def _check_same(folder: Path, settings: dict[str, Any], **requested: int | str | None) -> None:
    """Raise UsageError if options differ from the folder's; None means no request."""
    for name, value in requested.items():
        if value is not None and value != settings[name]:
            raise UsageError(
                f"{name} is {value!r}, but the index in {folder} was made with {settings[name]!r}:"
                " leave it out, or make another index"
            )


def _check_distances(
    folder: Path, settings: dict[str, Any], distance: int | None, recipe: Recipe | None,
    **requested: int | str | None,
) -> None:  # fmt: skip
    """Compare options with those of an index by distance; None means no request.

    Raises:
        UsageError: If they differ, or the distance is larger.
        RecipeError: If the recipes differ.
    """
    _check_same(folder, settings, **requested)
    if distance is not None:
        check_distance(distance)
    if distance is not None and distance > settings["distance"]:
        raise UsageError(
            f"distance is {distance}, but the index in {folder} was made for"
            f" {settings['distance']}: use that or less, or make another index and merge this one"
            " into it"
        )
    check_recipe(str(folder), settings, recipe)


def _remove_under_writers(folder: Path) -> None:
    """Remove a folder, and again if another thread made a file in it during the removal."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
