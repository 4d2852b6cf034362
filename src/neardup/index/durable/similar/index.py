"""An index by similarity in a folder: crash-safe, one writer, many readers."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import UsageError
from neardup.fingerprinting.recipe import Recipe
from neardup.index.durable.manifest import FileEntry, Manifest
from neardup.index.durable.similar.follower import SimilarFollower
from neardup.index.durable.similar.pending import SimilarPending
from neardup.index.durable.store import FORMAT, Store
from neardup.index.segment_files import CHUNK_ROWS, SegmentFile
from neardup.index.settings import check_kind, check_recipe
from neardup.index.similar.files import StoredSimilarSegment, write_similar
from neardup.index.similar.queries import State
from neardup.index.similar.segment import NEVER, Segment, no_order
from neardup.index.similar.settings import SimilarSettings
from neardup.index.similar.tail import Tail
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.index.similar.sets import Sets

__all__ = ["DurableSimilarIndex", "new_similar_settings"]

CHECKPOINT_ROWS: Final = 1 << 15
"""Rows that may wait in the log, which is read again when the index is opened."""


def new_similar_settings(
    similarity: float | None, measure: str | None, recipe: Recipe | None, **asked: Any
) -> dict[str, Any]:
    """What a new folder says of itself; UsageError for what cannot be, or belongs to distances."""
    made = SimilarSettings(
        check_kind(similarity, **asked), measure or "jaccard", recipe
    ).described()
    return {"format": FORMAT, "neardup": __version__, "store": "features", **made}


class DurableSimilarIndex(SimilarFollower):
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
        known = recipe or (Recipe.from_json(made["recipe"]) if made["recipe"] else None)
        settings = SimilarSettings(made["similarity"], made["measure"], known)
        super().__init__(store, settings)
        self._least = settings.reach(made["similarity"] if similarity is None else similarity)
        self._pending = SimilarPending(self._next)
        self._is_open = True

    @classmethod
    def opened(
        cls,
        store: Store,
        similarity: float | None,
        measure: str | None,
        recipe: Recipe | None,
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
            raise UsageError(
                f"similarity is {similarity!r}, but the index in {store.path} is by distance, up to"
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

    @property
    def similarity(self) -> float:
        """The similarity that queries ask for unless they say a larger one."""
        return self._least

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
        """What is kept of a document: "features"."""
        return "features"

    @property
    def added(self) -> int:
        """How many documents were ever added: the number that the next one gets."""
        return self._next

    def number(self, identity: Any) -> int | None:
        """How many documents were added before this one; None if the id is not present."""
        state = self._read()
        place = self._place(state, identity)
        if place is None:
            return None
        part, row = place
        held = state.tail if part == len(state.segments) else state.segments[part]
        return int(held.numbers[row])

    @property
    def uncommitted(self) -> int:
        """Rows added and removed since the last commit."""
        return len(self._pending)

    def add(self, ids: Any, documents: Any) -> int:
        """As Index.add; on disk after `commit`."""
        self._writing()
        return super().add(ids, documents)

    def add_if_new(self, identity: Any, document: Any) -> tuple[Any, float] | None:
        """As Index.add_if_new; on disk after `commit`."""
        self._writing()
        return super().add_if_new(identity, document)

    def remove(self, ids: Any) -> int:
        """As Index.remove; on disk after `commit`."""
        self._writing()
        return super().remove(ids)

    def expire(self, before: float) -> int:
        """As Index.expire; on disk after `commit`.

        Old times are known less exactly, see docs; none is removed early.
        """
        self._writing()
        return super().expire(before)

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
            record = self._pending.record(self._kind or "int", self._clock)
            self._sequence = self._store.append(record, {})
            self._logged += len(self._pending)
            self._pending = SimilarPending(self._next)
            if self._logged >= CHECKPOINT_ROWS:
                self._checkpoint()

    def rollback(self) -> None:
        """Forget what was added and removed since the last commit."""
        with self._lock:
            self._writing()
            self._manifest = Manifest(generation=-1)
            self._kind = None
            self._load()
            self._pending = SimilarPending(self._next)

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
        from neardup.index.durable.checks import check_folder

        return check_folder(self.path)

    def stats(self) -> dict[str, Any]:
        """Documents, segments, bytes on disk, settings."""
        state = self._read()
        environment = self._store.environment
        segments = [_segment_stats(segment) for segment in state.segments]
        rows = sum(map(len, state.segments)) + state.tail_rows
        return {
            "documents": state.living,
            "removed": rows - state.living,
            "uncommitted": self.uncommitted,
            "similarity": self.similarity,
            "made_for_similarity": self._settings.similarity,
            "measure": self.measure,
            "ids": self._kind,
            "recipe": self._store.settings["digest"],
            "segments": segments,
            "tail_rows": state.tail_rows,
            "log_rows": self._logged,
            "bytes_on_disk": sum(each["file_bytes"] for each in segments) + environment.nbytes,
            "log_bytes": environment.nbytes,
            "log_free_bytes": environment.free_bytes,
        }

    def __exit__(self, *raised: object) -> None:
        """Close; forget what was not committed if the body raised."""
        with self._lock:
            if raised[0] is not None and self._is_open:
                self._release()
        self.close()

    def _read(self) -> State:
        if not self._is_open:
            raise UsageError("the index is closed: open it again")
        if self._store.readonly and self._store.transaction != self._transaction:
            with self._lock:
                if self._store.transaction != self._transaction:
                    self._load()
        return self._state

    def _writing(self) -> None:
        if not self._is_open:
            raise UsageError("the index is closed: open it again")
        if self._store.readonly:
            raise UsageError("the index is open for reading: open it without readonly=True")

    def _release(self) -> None:
        self._is_open = False
        self._store.close()
        self._state = State((), Tail(no_order()), 0, 1, 0)

    def _checkpoint(self) -> None:
        """Write what is not in files to files, and forget the log."""
        self._settle()
        stored, written, number = [], [], self._manifest.next_file
        try:
            for segment in super()._arranged(list(self._state.segments)):
                if isinstance(segment, StoredSimilarSegment):
                    stored.append(segment)
                    continue
                written.append(self._store.file(f"segment-{number}.nds"))
                number += 1
                stored.append(_stored(segment, written[-1]))
            oldest = int(stored[0].numbers[0]) if stored else self._next
            manifest = Manifest(
                self._manifest.generation + 1,
                tuple(_entry(segment) for segment in stored),
                self._next,
                number,
                self._sequence,
                self._clock.coarse(oldest, self._next),
            )
            marks = [_marks(segment) for segment in stored]
            self._store.checkpoint(manifest, marks, {})
        except BaseException:
            for path in written:
                with contextlib.suppress(OSError):
                    path.unlink()
            raise
        for segment in stored:
            segment.written = _dead(segment)
        self._publish(list(stored))
        self._manifest, self._clock, self._logged = manifest, manifest.clock, 0
        self._pending = SimilarPending(self._next)

    def _added(self, ids: Any, sets: Sets) -> None:
        self._pending.add(ids, sets)

    def _added_one(self, identity: Any, features: Any) -> None:
        self._pending.add_one(identity, features)

    def _removed(self, numbers: Any) -> None:
        self._pending.remove(numbers)


def _dead(segment: Segment) -> Any:
    return None if segment.died is None else segment.died != NEVER


def _stored(segment: Segment, path: Path) -> StoredSimilarSegment:
    write_similar(path, segment)
    found = StoredSimilarSegment(SegmentFile(path), _dead(segment))
    found.written = None
    return found


def _marks(segment: StoredSimilarSegment) -> Any:
    """What a checkpoint writes of removed rows: those chunks in which there are new ones."""
    dead = _dead(segment)
    if dead is None:
        return SimpleNamespace(file=segment.file, dead=None, changed=set())
    known = segment.written if segment.written is not None else np.zeros(len(dead), np.bool_)
    changed = np.unique(np.flatnonzero(dead != known) // CHUNK_ROWS)
    return SimpleNamespace(file=segment.file, dead=dead, changed=set(changed.tolist()))


def _entry(segment: StoredSimilarSegment) -> FileEntry:
    numbers = segment.numbers
    name = segment.file.path.name
    return FileEntry(name, segment.file.checksum, len(segment), int(numbers[0]), int(numbers[-1]))


def _segment_stats(segment: Segment) -> dict[str, Any]:
    return {
        "rows": len(segment),
        "removed": segment.removed,
        "sets": segment.sets.size,
        "features": int(segment.sets.offsets[-1]),
        "file": segment.file.path.name if isinstance(segment, StoredSimilarSegment) else None,
        "file_bytes": segment.file.nbytes if isinstance(segment, StoredSimilarSegment) else 0,
    }
