"""An index in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import DataError, suggests_names
from neardup.fingerprinting.question import parts_of
from neardup.index.attachments import Attachments, attachments_in, column_of
from neardup.index.base_index import BaseIndex
from neardup.index.clock import Clock
from neardup.index.kind_settings import check_recipe
from neardup.index.kinds import kind_of, new_kind
from neardup.index.memory_store import MemoryStore
from neardup.index.segment_files import file_to_save, saved_file
from neardup.index.versions import Version

if TYPE_CHECKING:
    import os

    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.versions import AnyKind, AnyVersion

__all__ = ["Index"]


class Index(BaseIndex):
    """Documents in memory, searched exactly: all within the distance or similarity, and no other.

    Fingerprints are searched by Hamming distance; with `similarity`, documents by the exact
    similarity of their features.

    Args:
        distance: Largest Hamming distance of a query; by default 3.
        bits: Width of the fingerprints; the recipe's if there is one.
        recipe: How texts become fingerprints or features, if texts are given.
        plan: "auto", or a plan by name: see neardup.plan.
        memory: Bytes that the search tables may take; by default half of what is free.
        similarity: The least similarity that a query may ask for, above 0, up to 1.
        measure: Of similarity: "jaccard" (shared / distinct features of both), "cosine" (shared /
            root of the product of their sizes), "containment" (shared / features of the smaller) or
            "dice" (shared / mean of their sizes); the default is "jaccard".
        question: Similarity, measure and recipe as one value.
        extract: Of a text that is HTML, what is compared: the "main" content (an extra), "all"
            that is visible, or "none" of this, its markup too, which is the default.
        store: The stored content of documents, for `content`: "text", "features" (feature hashes)
            or "none"; by default features if it is by similarity, which needs them, else nothing.

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

        >>> from neardup import Recipe
        >>> texts = Index(similarity=0.5, recipe=Recipe(ngram=1))
        >>> texts.add(["a", "b"], ["one two three four", "five six seven"])
        2
        >>> texts.query("one two three")
        [('a', 0.75)]
    """

    @suggests_names
    def __init__(  # noqa: PLR0913  # the names of both kinds
        self,
        distance: int | None = None,
        bits: int | None = None,
        recipe: Recipe | None = None,
        plan: str = "auto",
        memory: int | None = None,
        *,
        similarity: float | None = None,
        measure: str | None = None,
        question: Question | None = None,
        extract: str | None = None,
        store: str | None = None,
    ) -> None:
        """Start empty."""
        if question is not None:
            similarity, measure, recipe = parts_of(question, similarity, measure, recipe)
        kind = new_kind(distance, bits, recipe, plan, memory, similarity, measure, store, extract)
        super().__init__(kind, MemoryStore(Version.empty(kind), store=store))

    @classmethod
    def holding(
        cls, version: AnyVersion, attachments: Attachments | None = None, store: str | None = None
    ) -> Self:
        """An index of this class with a version and attachments, as MemoryStore takes them."""
        index = cls.__new__(cls)
        BaseIndex.__init__(index, version.kind, MemoryStore(version, attachments, store))
        return index

    def __reduce__(self) -> Any:
        """Pickle settings, rows and times; the copy makes its search tables at the first query."""
        snapshot = self._store.snapshot()
        version, kind = snapshot.version, self._kind
        packed, numbers = kind.packed(version), kind.numbers(version).tolist()
        times = version.clock.since(version.oldest(), version.next)
        attachments = numbers, snapshot.attached.of(numbers)
        state = (version.id_kind, version.next, times, packed, attachments, self.store)
        return _restored, (type(self), kind, *state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, with the search tables; it appears whole or not at all.

        Args:
            path: The file; an existing one is replaced.

        Raises:
            FileError: If it cannot be written.

        Example:
            >>> import tempfile
            >>> path = f"{tempfile.mkdtemp()}/seen.index"
            >>> index = Index(distance=3)
            >>> index.add(["a"], [5])
            1
            >>> index.save(path)
            >>> Index.load(path).query(5)
            [('a', 0)]
        """
        target, snapshot = file_to_save(path), self._store.snapshot()
        version = snapshot.version
        kept = snapshot.attached.of(self._kind.numbers(version).tolist())
        numbers, times = version.clock.coarse(version.oldest(), version.next).since(0)
        times_of_rows = [numbers.tolist(), times.tolist()]
        header = {"next": version.next, "clock": times_of_rows, "store": self.store}
        self._kind.save(version, target, header, column_of(kept) if kept else {})

    @classmethod
    def load(cls, path: str | os.PathLike[str], recipe: Recipe | None = None) -> Self:
        """Read an index that `save` wrote, verify its checksums, and map it into memory.

        Args:
            path: The file.
            recipe: The required recipe; by default the stored one.

        Returns:
            The index as it was saved; times of insertion are exact to the second, or to a
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
        file = saved_file(path)
        settings = file.header.get("index") or file.header.get("similar")
        if settings is None:
            raise DataError(f"{path} is a part of a durable index: open its folder instead")
        file.verify()
        check_recipe(str(path), settings, recipe)
        kind = kind_of(settings, recipe)
        segments = (kind.read(file),) if file.header["rows"] else ()
        clock = Clock(*file.header["clock"])
        version = Version.of_segments(kind, segments, file.header["next"], clock)
        return cls.holding(version, attachments_in(file), file.header.get("store"))


def _restored(
    cls: type[Index], kind: AnyKind, id_kind: str | None, end: int, times: tuple[Any, Any],
    packed: list[Any], attachments: tuple[list[int], list[bytes | None] | None], store: str,
) -> Index:  # fmt: skip
    """The index from the values of `Index.__reduce__`."""
    clock = Clock(*(each.tolist() for each in times))
    version = Version.of_segments(kind, kind.unpacked(packed), end, clock)
    return cls.holding(replace(version, id_kind=id_kind), Attachments.of_rows(*attachments), store)
