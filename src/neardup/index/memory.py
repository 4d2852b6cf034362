"""An index in memory."""

from __future__ import annotations

from abc import ABCMeta
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import DataError, suggests_names
from neardup.index.attachments import Beside, beside_in, column_of
from neardup.index.clock import Clock
from neardup.index.code_segments import Segment
from neardup.index.id_columns import IdColumn
from neardup.index.kind_settings import (
    DEFAULT_DISTANCE,
    Settings,
    bits_of,
    check_kind,
    check_recipe,
    stored_recipe,
)
from neardup.index.snapshot import Snapshot
from neardup.index.writing import BaseIndex
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    import os

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["Index"]


class Index(BaseIndex, metaclass=ABCMeta):
    """Fingerprints in memory, searched exactly: every one within the distance, and no other.

    With `similarity`, documents instead, by the exact similarity of their features: that makes a
    neardup.index.similar.memory.SimilarIndex, which has the same calls.

    Args:
        distance: Largest Hamming distance of a query; 3 unless said.
        bits: Width of the fingerprints; the recipe's if there is one.
        recipe: How texts become fingerprints, if texts are given.
        plan: "auto", or a plan by name: see neardup.plan.
        memory: Bytes that the search tables may take; half of what is free unless said.
        similarity: The least similarity that a query may ask for, above 0, up to 1.
        measure: Of similarity: "jaccard" unless said, "cosine", "containment" or "dice".

    Raises:
        UsageError: For a distance, width, plan, similarity or measure that cannot be, or options of
            both kinds.

    Example:
        >>> index = Index(distance=1)
        >>> index.add(["a", "b"], [0b1011, 0b0100])
        2
        >>> index.query(0b1111)
        [('a', 1)]
        >>> index.add_if_new("c", 0b1010)
        ('a', 1)
    """

    @suggests_names
    def __new__(  # the names of both kinds
        cls,
        distance: int | None = None,
        bits: int | None = None,
        recipe: Recipe | None = None,
        plan: str = "auto",
        memory: int | None = None,
        *,
        similarity: float | None = None,
        measure: str | None = None,
    ) -> Self:
        """Make an index by similarity where one is asked for."""
        if similarity is None and measure is None:
            return super().__new__(cls)
        from neardup.index.similar.memory import SimilarIndex

        least = check_kind(similarity, distance=distance, bits=bits, plan=plan, memory=memory)
        Index.register(SimilarIndex)
        made: Any = SimilarIndex(least, measure or "jaccard", recipe)
        return made  # type: ignore[no-any-return]

    def __init__(
        self,
        distance: int | None = None,
        bits: int | None = None,
        recipe: Recipe | None = None,
        plan: str = "auto",
        memory: int | None = None,
        *,
        similarity: float | None = None,
        measure: str | None = None,
    ) -> None:
        """Start empty."""
        del similarity, measure  # `__new__` has seen to them
        reach = DEFAULT_DISTANCE if distance is None else distance
        settings = Settings(reach, bits_of(bits, recipe), recipe, plan, memory)
        super().__init__(Snapshot.empty(settings))

    @classmethod
    def holding(cls, snapshot: Snapshot, beside: Beside | None = None) -> Self:
        """An index that holds this, and this beside its rows."""
        index = cls.__new__(cls)
        BaseIndex.__init__(index, snapshot, beside=beside)
        return index

    def __reduce__(self) -> Any:
        """Pickle settings, rows and times; the copy makes its search tables when it is asked."""
        held, beside = self._moment()
        segment = held.whole()
        kept = beside.of(segment.numbers.tolist())
        rows = (segment.codes, segment.ids.values, segment.numbers)
        times = held.clock.since(held.oldest(), held.next)
        return _restored, (type(self), held.settings, held.kind, held.next, times, rows, kept)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, with the search tables; it appears whole or not at all.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            FileError: If it cannot be written.
        """
        from neardup.index.segment_files import file_to_save, write_segment

        target = file_to_save(path)
        held, beside = self._moment()
        whole = held.whole()
        kept = beside.of(whole.numbers.tolist())
        numbers, times = held.clock.coarse(held.oldest(), held.next).since(0)
        extra = {"index": self._settings.described(), "next": held.next}
        extra["clock"] = [numbers.tolist(), times.tolist()]
        more = column_of(kept) if kept else {}
        write_segment(target, whole, self._settings, extra, more)

    @classmethod
    def load(cls, path: str | os.PathLike[str], recipe: Recipe | None = None) -> Self:
        """Read an index that `save` wrote, verify its checksums, and map it into memory.

        Args:
            path: The file.
            recipe: What the index's must be; its own unless said.

        Returns:
            The index, as it was; times of insertion to the second, or to a
            thousandth of their age.

        Raises:
            FileError: If the file cannot be read.
            DataError: If it is damaged, of a newer version or something else.
            RecipeError: If the index was made with another recipe.

        Example:
            >>> import tempfile
            >>> file = tempfile.mkdtemp() + "/seen"
            >>> index = Index(distance=1)
            >>> index.add("a", 0b1011)
            1
            >>> index.save(file)
            >>> Index.load(file).query(0b1010)
            [('a', 1)]
        """
        from neardup.index.segment_files import StoredSegment, saved_file

        file = saved_file(path)
        if "similar" in file.header:
            from neardup.index.similar.memory import SimilarIndex

            Index.register(SimilarIndex)
            similar: Any = SimilarIndex.load(path, recipe)
            return similar  # type: ignore[no-any-return]
        if "index" not in file.header:
            raise DataError(f"{path} is a part of a durable index: open its folder instead")
        file.verify()
        made = file.header["index"]
        check_recipe(str(path), made, recipe)
        known = stored_recipe(made, recipe)
        settings = Settings(made["distance"], made["bits"], known, made["plan"], None)
        segments = (StoredSegment(file),) if file.header["rows"] else ()
        clock = Clock(*file.header["clock"])
        held = Snapshot.of_segments(settings, segments, file.header["next"], clock)
        return cls.holding(held, beside_in(file))


def _restored(
    cls: type[Index], settings: Settings, kind: str | None, end: int, times: Any, rows: Any,
    kept: list[bytes | None] | None,
) -> Index:  # fmt: skip
    """What `Index.__reduce__` took apart."""
    codes, ids, numbers = rows
    segments = (Segment(frozen(codes), IdColumn(ids), numbers),) if len(codes) else ()
    clock = Clock(*(each.tolist() for each in times))
    held = Snapshot.of_segments(settings, segments, end, clock)
    return cls.holding(replace(held, kind=kind), Beside.of_rows(numbers.tolist(), kept))
