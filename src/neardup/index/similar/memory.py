"""An index by similarity in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.index.attachments import Beside, beside_in, column_of
from neardup.index.clock import Clock
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.index.kind_settings import SimilarSettings, check_recipe, stored_recipe
from neardup.index.set_arrays import Sets
from neardup.index.set_segments import Rows, Segment, merged
from neardup.index.similar.snapshot import SimilarSnapshot
from neardup.index.similar.writing import SimilarWriting

if TYPE_CHECKING:
    import os

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["SimilarIndex"]


class SimilarIndex(SimilarWriting):
    """Documents in memory, searched by the exact similarity of their features.

    `neardup.Index(similarity=...)` makes one.

    Args:
        similarity: The least that a query may ask for, above 0, up to 1.
        measure: "jaccard" (shared / distinct features of both), "cosine" (shared / root of the
            product of their sizes), "containment" (shared / features of the smaller) or "dice"
            (shared / mean of their sizes).
        recipe: How texts become features; without one, feature hashes are taken.

    Raises:
        UsageError: For a similarity or measure that cannot be.

    Example:
        >>> from neardup import Recipe
        >>> index = SimilarIndex(0.5, recipe=Recipe(ngram=1))
        >>> index.add(["a", "b"], ["one two three four", "five six seven"])
        2
        >>> index.query("one two three")
        [('a', 0.75)]
        >>> index.add_if_new("c", "one two three four five")
        ('a', 0.8)
    """

    def __init__(
        self, similarity: float = 0.8, measure: str = "jaccard", recipe: Recipe | None = None
    ) -> None:
        """Start empty."""
        super().__init__(SimilarSettings(similarity, measure, recipe))

    def __reduce__(self) -> Any:
        """Pickle settings, rows and times."""
        held, beside = self._moment()
        rows = held.living_parts()
        every = [number for each in rows for number in each.numbers.tolist()]
        kept = every, beside.of(every)
        parts = [(tuple(x.sets), x.set_of, x.ids.values, x.numbers) for x in rows]
        times = held.clock.since(int(rows[0].numbers[0]) if rows else held.next, held.next)
        return self._restored, (self._settings, held.kind, held.next, times, parts, kept)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file; it appears whole or not at all.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            FileError: If it cannot be written.
        """
        from neardup.index.segment_files import file_to_save
        from neardup.index.similar.files import write_similar

        target = file_to_save(path)
        held, beside = self._moment()
        rows, end = held.living_parts(), held.next
        clock = held.clock.coarse(int(rows[0].numbers[0]) if rows else end, end)
        segment = merged(rows or [_nothing(held.kind)], self._settings)
        numbers, times = clock.since(0)
        extra: dict[str, Any] = {"similar": self._settings.described(), "next": end}
        extra["clock"] = [numbers.tolist(), times.tolist()]
        kept = beside.of(segment.numbers.tolist())
        write_similar(target, segment, extra, column_of(kept) if kept else {})

    @classmethod
    def load(cls, path: str | os.PathLike[str], recipe: Recipe | None = None) -> Self:
        """Read an index that `save` wrote, verify its checksums, and map it into memory.

        Args:
            path: The file.
            recipe: What the index's must be; its own unless said.

        Returns:
            The index, as it was; times of insertion about to the second.

        Raises:
            FileError: If the file cannot be read.
            DataError: If it is damaged, of a newer version or something else.
            RecipeError: If the index was made with another recipe.
        """
        from neardup.index.segment_files import saved_file
        from neardup.index.similar.files import StoredSimilarSegment

        file = saved_file(path)
        if "similar" not in file.header:
            raise DataError(
                f"{path} is no index by similarity: use neardup.Index.load, which reads every kind"
            )
        file.verify()
        made = file.header["similar"]
        check_recipe(str(path), made, recipe)
        known = stored_recipe(made, recipe)
        index = cls(made["similarity"], made["measure"], known)
        segments = (StoredSimilarSegment(file),) if file.header["rows"] else ()
        clock = Clock(*file.header["clock"])
        index._state = SimilarSnapshot.of_segments(
            index._settings, segments, file.header["next"], clock
        )
        index._beside = beside_in(file)
        return index

    @classmethod
    def _restored(
        cls,
        settings: SimilarSettings,
        kind: str | None,
        end: int,
        times: Any,
        parts: Any,
        kept: Any,
    ) -> Self:
        """What `__reduce__` took apart."""
        index = cls(settings.similarity, settings.measure, settings.recipe)
        segments: list[Segment] = []
        for sets, set_of, ids, numbers in parts:
            rows = Rows(Sets(*sets), set_of, IdColumn(ids), numbers)
            segments.append(merged([rows], settings))
        clock = Clock(*(each.tolist() for each in times))
        held = SimilarSnapshot.of_segments(settings, tuple(segments), end, clock)
        index._state = replace(held, kind=kind)
        index._beside = Beside.of_rows(*kept)
        return index


def _nothing(kind: str | None) -> Rows:
    none = np.empty(0, np.int64)
    sets = Sets(np.empty(0, np.uint64), np.zeros(1, np.int64))
    return Rows(sets, none, IdColumn(pa.array([], ID_KINDS[kind or "int"])), none)
