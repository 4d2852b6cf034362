"""An index in a folder: crash-safe, one writer, many readers."""

from __future__ import annotations

import contextlib
from abc import ABCMeta
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import FileError, UsageError
from neardup.fingerprinting.recipe import Recipe
from neardup.index.clock import Clock
from neardup.index.durable.checks import check_folder, verify_folder
from neardup.index.durable.contents import Contents
from neardup.index.durable.environment import TornReadError
from neardup.index.durable.follower import Commit, arranged, first_commit, following
from neardup.index.durable.manifest import FileEntry, Manifest
from neardup.index.durable.pending import Pending
from neardup.index.durable.settings import check_settings, new_settings
from neardup.index.durable.similar.index import DurableSimilarIndex, new_similar_settings
from neardup.index.durable.store import Store
from neardup.index.durable.view import DurableView, read_contents
from neardup.index.segment_files import (
    CHUNK_ROWS,
    SegmentFile,
    StoredSegment,
    damaged,
    write_segment,
)
from neardup.index.segments import Segment, settled
from neardup.index.settings import Settings
from neardup.index.snapshot import Snapshot
from neardup.index.writing import BaseIndex

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from neardup.index.durable.store import Reading
    from neardup.index.queries import IndexView

__all__ = ["CHECKPOINT_ROWS", "DurableIndex"]

TRIES: Final = 20
CHECKPOINT_ROWS: Final = 1 << 17
"""Rows that may wait in the log, which is read again when the index is opened."""


class DurableIndex(BaseIndex, metaclass=ABCMeta):
    """Fingerprints in a folder, searched exactly; `DurableIndex.open` opens or makes one.

    What was committed survives a crash, whole. One process writes, any number read, and nobody
    waits for anybody. The writer sees what it has added before the commit; readers see the last
    commit at every query.
    """

    def __init__(self, store: Store, distance: int | None, recipe: Recipe | None) -> None:
        """Read the folder; use `DurableIndex.open`."""
        made = store.settings
        known = recipe or (Recipe.from_json(made["recipe"]) if made["recipe"] else None)
        settings = Settings(made["distance"], made["bits"], known, made["plan"], None)
        self._store = store
        self._contents = Contents(made["store"], known)
        self._is_open = True
        self._commit = first_commit(settings)
        super().__init__(self._commit.held, distance)
        self._follow().close()
        self._pending = Pending(self._state.next)

    @classmethod
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
                verification needs) or "text".
            readonly: Open for queries only: any number of processes may, also while one writes.
            create: Make the index if there is none.
            verify: Verify every checksum first, as `check`; it reads the whole folder.
            similarity: The least similarity of a query, at least what the index was made for: a new
                index is by similarity, see neardup.Index, and remembers it.
            measure: Of similarity: "jaccard" unless said, "cosine" or "containment".

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
        folder = Path(path)
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
            made = new_settings(distance, bits, recipe, plan, store)
            if similarity is not None or measure is not None:
                made = new_similar_settings(
                    similarity, measure, recipe, distance=distance, bits=bits
                )
            found = Store.create(whole, made)
        try:
            if "similarity" in found.settings or similarity is not None or measure is not None:
                similar: Any = DurableSimilarIndex.opened(
                    found, similarity, measure, recipe, distance=distance, bits=bits, plan=plan
                )
                return similar  # type: ignore[no-any-return]
            check_settings(
                folder, found.settings, distance, recipe, bits=bits, plan=plan, store=store
            )
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
        folder = Path(path)
        if _exists(folder):
            raise FileError(f"{folder} exists: add to it, or use a new folder")
        return cls.open(folder, distance, bits, recipe, plan, store, **similar)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._store.path

    @property
    def readonly(self) -> bool:
        """Whether it was opened for queries only."""
        return self._store.readonly

    @property
    def store(self) -> str:
        """What is kept beside fingerprints: "none", "features" or "text"."""
        return str(self._store.settings["store"])

    @property
    def added(self) -> int:
        """How many documents were ever added: the number that the next one gets."""
        return self._read().next

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._is_open

    def number(self, identity: Any) -> int | None:
        """How many documents were added before this one; None if the id is not present."""
        return self._read().number(identity)

    @property
    def uncommitted(self) -> int:
        """Rows added and removed since the last commit."""
        return len(self._pending)

    def add(self, ids: Any, fingerprints: Any, contents: Any = None) -> int:
        """Store one document or many, as Index.add; on disk after `commit`.

        Args:
            ids: A str or int; or many.
            fingerprints: As many, or texts.
            contents: What the index keeps beside fingerprints, as many: texts, or arrays of uint64
                feature hashes. Not needed where texts are given for fingerprints.

        Returns:
            How many were stored.

        Raises:
            UsageError: As Index.add; if contents are missing, or the index keeps none.
        """
        with self._lock:
            self._writing()
            with self._contents.offered(ids, fingerprints, contents):
                return super().add(ids, fingerprints)

    def add_if_new(
        self, identity: Any, fingerprint: Any, content: Any = None
    ) -> tuple[Any, int] | None:
        """As Index.add_if_new; `content` as of `add`."""
        with self._lock:
            self._writing()
            with self._contents.offered(identity, fingerprint, content):
                return super().add_if_new(identity, fingerprint)

    def remove(self, ids: Any) -> int:
        """As Index.remove; on disk after `commit`."""
        with self._lock:
            self._writing()
            return super().remove(ids)

    def expire(self, before: float) -> int:
        """As Index.expire; on disk after `commit`.

        Times of rows in segment files are known to the second; none is removed early.
        """
        with self._lock:
            self._writing()
            return super().expire(before)

    def content(self, identity: Any) -> Any:
        """What is kept of a document: its text, or uint64 feature hashes; None if nothing is.

        Raises:
            KeyError: If the id is not present.
        """
        return self.contents([identity])[0]

    def contents(self, ids: Any) -> list[Any]:
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

    def commit(self) -> None:
        """Bring what was added and removed to the disk, all or nothing; one sync.

        Raises:
            FileError: If that fails: nothing is lost, and commit may be tried again.
        """
        with self._lock:
            self._writing()
            if not len(self._pending):
                return
            if len(self._pending) >= CHECKPOINT_ROWS:
                self._checkpoint()
                return
            state = self._state
            record = self._pending.record(state.kind or "int", self._settings.width, state.clock)
            sequence = self._store.append(record, self._pending.contents)
            logged = self._commit.logged + len(self._pending)
            self._committed(self._commit.manifest, sequence, logged)
            if logged >= CHECKPOINT_ROWS:
                self._checkpoint()

    def rollback(self) -> None:
        """Forget what was added and removed since the last commit."""
        with self._lock:
            self._writing()
            self._follow(first_commit(self._settings)).close()
            self._pending = Pending(self._state.next)

    def compact(self) -> None:
        """Commit, bring everything into one segment and give free space back to the disk."""
        with self._lock:
            self._writing()
            super().compact()
            self._checkpoint()
            self._store.reclaim()

    def close(self) -> None:
        """Commit and close; the index cannot be used after it."""
        with self._lock:
            if not self._is_open:
                return
            if not self.readonly:
                self.commit()
            self._release()

    def check(self) -> list[str]:
        """Verify every checksum, and that ids, numbers and the log agree; see docs.

        Returns:
            Problems, each with what to do; none if all is well.
        """
        return check_folder(self.path)

    def stats(self) -> dict[str, Any]:
        """Documents, segments with their plans, bytes on disk, settings."""
        held = self._read()
        segments, tail = held.segments, held.tail
        made = self._store.settings
        environment = self._store.environment
        files = [segment.file.nbytes for segment in segments if isinstance(segment, StoredSegment)]
        return {
            "documents": len(held),
            "removed": sum(segment.removed for segment in segments) + tail.removed,
            "uncommitted": self.uncommitted,
            "distance": self.distance,
            "made_for_distance": made["distance"],
            "bits": self.bits,
            "ids": held.kind,
            "plan": made["plan"],
            "store": made["store"],
            "recipe": made["digest"],
            "segments": [_segment_stats(segment, self._settings) for segment in segments],
            "tail_rows": len(tail),
            "log_rows": self._commit.logged,
            "bytes_on_disk": sum(files) + environment.nbytes,
            "log_bytes": environment.nbytes,
            "log_free_bytes": environment.free_bytes,
        }

    def __exit__(self, *raised: object) -> None:
        """Close; forget what was not committed if the body raised."""
        with self._lock:
            if raised[0] is not None and self._is_open:
                self._release()
        self.close()

    def __repr__(self) -> str:
        """What it holds, for people."""
        return super().__repr__() if self._is_open else f"<DurableIndex of {self.path}, closed>"

    def _read(self) -> Snapshot:
        self._check_open()
        if self._store.readonly and self._store.transaction != self._commit.transaction:
            with self._lock:
                self._check_open()
                self._follow().close()
                return self._state
        return self._state

    def _pinned(self) -> Reading:
        """The commit that the state is of, or goes on from; called with the lock held."""
        self._check_open()
        return self._follow() if self.readonly else self._store.pin()

    def _follow(self, known: Commit | None = None) -> Reading:
        """Hold the newest commit; what it was read in, to be closed.

        Args:
            known: A commit to go on from; the one that is held unless given.
        """
        before = known or self._commit
        for _ in range(TRIES):
            reading = self._store.pin()
            try:
                if reading.transaction != before.transaction:
                    commit = following(before, reading)
                    self._state = commit.held  # before the commit, which says that it is newer
                    self._commit = commit
            except FileNotFoundError as error:
                missing = error.filename  # a checkpoint came between: there is a newer manifest
                reading.close()
            except TornReadError:
                missing = self._store.environment.path
                reading.close()
            except BaseException:
                reading.close()
                raise
            else:
                return reading
        raise damaged(Path(missing), "it is not there")

    def _check_open(self) -> None:
        if not self._is_open:
            raise UsageError("the index is closed: open it again")

    def _writing(self) -> None:
        self._check_open()
        if self._store.readonly:
            raise UsageError("the index is open for reading: open it without readonly=True")

    def _release(self) -> None:
        self._is_open = False
        self._store.close()
        self._state = Snapshot.empty(self._settings)

    def _committed(self, manifest: Manifest, sequence: int, logged: int) -> None:
        """What is held is on disk."""
        self._commit = Commit(self._state, manifest, sequence, self._store.transaction, logged)
        self._pending = Pending(self._state.next)

    def _checkpoint(self) -> None:
        """Write what is not in files to files, and forget the log."""
        state, before = self._settled(self._state), self._commit.manifest
        stored, written, number = [], [], before.next_file
        try:
            for segment in settled(list(state.segments)):
                if isinstance(segment, StoredSegment):
                    stored.append(segment)
                    continue
                written.append(self._store.file(f"segment-{number}.nds"))
                number += 1
                stored.append(self._written(segment, written[-1]))
            oldest = int(stored[0].numbers[0]) if stored else state.next
            clock = state.clock.coarse(oldest, state.next)
            entries = tuple(_entry(segment) for segment in stored)
            generation, covered = before.generation + 1, self._commit.sequence
            manifest = Manifest(generation, entries, state.next, number, covered, clock)
            self._store.checkpoint(manifest, stored, self._pending.contents)
        except BaseException:
            for path in written:
                with contextlib.suppress(OSError):
                    path.unlink()
            raise
        segments = tuple(segment.written() for segment in stored)
        clock = Clock.joined([clock.since(0)])
        self._state = replace(state, segments=segments, clock=clock)
        self._committed(manifest, covered, 0)

    def _written(self, segment: Segment, path: Path) -> StoredSegment:
        write_segment(path, segment, self._settings)
        dead = segment.dead if segment.removed else None
        changed = [] if dead is None else np.unique(np.flatnonzero(dead) // CHUNK_ROWS).tolist()
        return StoredSegment(SegmentFile(path), dead, frozenset(changed))

    def _check_merging(self, other: IndexView, *, foreign: bool) -> None:
        self._writing()
        super()._check_merging(other, foreign=foreign)
        self._contents.check_merging(other.store)

    def _merge_rows(self, ids: Any, codes: Any, contents: list[Any] | None, times: Any) -> None:
        kept = contents if self._contents.is_kept else None
        with self._contents.offered(ids, codes, kept):
            super()._merge_rows(ids, codes, None, times)

    def _arranged(self, segments: list[Segment]) -> tuple[Segment, ...]:
        return arranged(segments)

    def _added(self, first: int, ids: Any, codes: Any) -> None:
        self._pending.add(ids, codes)
        if self._contents.is_kept:
            for row, identity in enumerate(ids.to_pylist()):
                self._pending.contents[first + row] = self._contents.of(identity)

    def _added_one(self, number: int, identity: Any, codes: Any) -> None:
        self._pending.add_one(identity, codes)
        if self._contents.is_kept:
            self._pending.contents[number] = self._contents.of(identity)

    def _removed(self, numbers: Any) -> None:
        self._pending.remove(numbers)
        if self._contents.is_kept:
            self._pending.contents.update(dict.fromkeys(numbers.tolist()))


DurableIndex.register(DurableSimilarIndex)


def _entry(segment: StoredSegment) -> FileEntry:
    numbers = segment.numbers
    name = segment.file.path.name
    return FileEntry(name, segment.file.checksum, len(segment), int(numbers[0]), int(numbers[-1]))


def _segment_stats(segment: Segment, settings: Settings) -> dict[str, Any]:
    searcher = segment.searcher(settings)
    return {
        "rows": len(segment),
        "removed": segment.removed,
        "plan": searcher.plan.name,
        "tables": len(searcher.plan.masks),
        "key_bits": searcher.plan.key_bits,
        "table_bytes": searcher.nbytes,
        "file": segment.file.path.name if isinstance(segment, StoredSegment) else None,
        "file_bytes": segment.file.nbytes if isinstance(segment, StoredSegment) else 0,
    }


def _exists(folder: Path) -> bool:
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
