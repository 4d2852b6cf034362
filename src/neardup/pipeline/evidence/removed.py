"""Documents that a run removed, read again, each with the document kept for it."""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.documents import ReadOptions
from neardup.errors import DataError, UsageError
from neardup.fingerprinting.explanation import WordDiff, word_diff
from neardup.pipeline.evidence.named_texts import fields_of, texts_of
from neardup.pipeline.evidence.pair_rows import field_of, result_rows, similarity_of
from neardup.pipeline.evidence.pair_texts import compared_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import InputFormat

__all__ = ["Removed", "RemovedDocument", "duplicate_rows", "removed_documents"]

_COLUMNS: Final = ("dropped", "kept", "distance", "similarity")


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    """One dropped document.

    Attributes:
        dropped: Its id or address.
        kept: Of the document that was kept for it.
        distance: Of their fingerprints.
        similarity: Of their features, where the run measured it.
        texts: Of the kept one and of the dropped one; None if the inputs lack it.
        fields: Name of each requested field, its value in the kept one and in the dropped one.
    """

    dropped: str
    kept: str
    distance: int | None
    similarity: float | None
    texts: tuple[str | None, str | None] = (None, None)
    fields: tuple[tuple[str, str | None, str | None], ...] = ()

    @property
    def diff(self) -> WordDiff | None:
        """The kept text and the dropped one, word by word."""
        kept, dropped = self.texts
        return None if kept is None or dropped is None else word_diff(kept, dropped)

    def __str__(self) -> str:
        """Both, with the words that differ in brackets."""
        marks = {"equal": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
        similarity = "" if self.similarity is None else f", similarity {self.similarity:.3f}"
        head = f"{self.dropped} dropped, {self.kept} kept{similarity}, distance {self.distance}"
        if self.diff is None:
            return head
        runs = (run.text.join(marks[run.kind]) for run in self.diff.brief())
        return f"{head}\n{''.join(runs)}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the differing runs of words, for `--json`."""
        diff = self.diff
        return {
            "dropped": self.dropped,
            "kept": self.kept,
            "distance": self.distance,
            "similarity": self.similarity,
            "runs": None if diff is None else [[run.kind, run.text] for run in diff.runs],
        } | ({"fields": {name: both for name, *both in self.fields}} if self.fields else {})


@dataclass(frozen=True, slots=True)
class Removed:
    """The least similar removed documents, and the number of all."""

    documents: tuple[RemovedDocument, ...]
    total: int


def removed_documents(
    duplicates: str,
    inputs: Sequence[str] = (),
    read: ReadOptions | None = None,
    most: int = 20,
    format_name: InputFormat | str | None = None,
    fields: Sequence[str] = (),
    of: str | None = None,
) -> Removed:
    """Read a duplicates file and the texts of its documents, the least similar first.

    Args:
        duplicates: As `dedup --duplicates` wrote it.
        inputs: The inputs of that run; by default the files that the addresses name.
        read: The fields of text and id that the run read.
        most: The most documents; only their texts are in memory.
        format_name: Of the inputs, if their extensions do not decide.
        fields: Fields of the records that are returned with the texts.
        of: An id or address: only the pairs that this document is part of.

    Raises:
        UsageError: If it is not a duplicates file, no input is known, or no record has a field.
        FileError, DataError: If a file cannot be read.
    """
    total = 0

    def counted() -> Iterator[RemovedDocument]:
        nonlocal total
        for each in duplicate_rows(duplicates):
            if of is None or of in {each.dropped, each.kept}:
                total += 1
                yield each

    removed = heapq.nsmallest(most, counted(), key=_doubt)
    names = {name for each in removed for name in (each.dropped, each.kept)}
    paths = list(inputs) or _named_files(names)
    if removed and not paths:
        raise UsageError(
            f"{duplicates} names no files that are here: pass the inputs of the run as well, such"
            f" as neardup show {duplicates} news.jsonl"
        )
    texts = (
        texts_of(names, paths, read or ReadOptions(), format_name=format_name) if removed else {}
    )
    if removed and not texts:
        raise UsageError(
            f"{duplicates} names documents such as {min(names)!r:.80}, and the inputs hold none of"
            " them: give the inputs of that run, with its --id"
        )
    values = (
        fields_of(names, fields, paths, read or ReadOptions(), format_name)
        if removed and fields
        else {}
    )
    documents = tuple(
        RemovedDocument(
            each.dropped,
            each.kept,
            each.distance,
            each.similarity,
            (texts.get(each.kept), texts.get(each.dropped)),
            compared_fields(fields, values.get(each.kept), values.get(each.dropped)),
        )
        for each in removed
    )
    return Removed(documents, total)


def _doubt(each: RemovedDocument) -> tuple[float, int]:
    """Least similar first; without similarities, those furthest apart."""
    similarity = 0.0 if each.similarity is None else each.similarity
    return similarity, -(each.distance or 0)


def duplicate_rows(duplicates: str) -> Iterator[RemovedDocument]:
    """The rows of a duplicates file, without texts; DataError if it is not one."""
    for place, row in result_rows(duplicates, "duplicates", _COLUMNS):
        distance = row["distance"]
        try:
            apart = None if distance in (None, "") else int(distance)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"{place}: the distance is {distance!r:.80}: use a whole number"
            ) from None
        dropped, kept = field_of(row, "dropped", place), field_of(row, "kept", place)
        yield RemovedDocument(dropped, kept, apart, similarity_of(row, place))


def _named_files(names: set[str]) -> list[str]:
    """The existing files of the addresses among names."""
    files = {re.sub(r":\d+$", "", name) for name in names if re.search(r".:\d+$", name)}
    return sorted(file for file in files if Path(file).is_file())
