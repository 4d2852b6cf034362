"""Tables of pairs of documents: duplicates, matches, labels, answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neardup.documents import read_table
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["PairRow", "field_of", "pair_rows", "result_rows", "similarity_of"]

NAMES: Final = (
    ("kept", "dropped"),
    ("first", "second"),
    ("id1", "id2"),
    ("left_id", "right_id"),
    ("left", "right"),
    ("a", "b"),
)
"""Columns that may name the two documents, the earlier one first."""

_SIMILARITIES: Final = ("similarity", "jaccard", "score")
_LABELS: Final = ("label", "answer", "duplicate", "match")
_YES: Final = frozenset({"1", "1.0", "true", "yes", "y", "t", "duplicate", "match"})
_NO: Final = frozenset({"0", "0.0", "false", "no", "n", "f", "distinct", "different"})


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row.

    Attributes:
        first: Id or address of one document, of duplicates the kept one.
        second: Of the other.
        similarity: Theirs, if the row says so.
        label: Whether they are duplicates; None if the row does not say, or its author is unsure.
        answered: Whether there is a column of labels.
    """

    first: str
    second: str
    similarity: float | None = None
    label: bool | None = None
    answered: bool = False


def pair_rows(
    path: str, rows: Iterable[tuple[str, Mapping[str, Any]]] | None = None
) -> Iterator[PairRow]:
    """Read a table of pairs, of any format that documents have.

    Args:
        path: The table.
        rows: From `read_table`, if the caller has opened the table.

    Raises:
        UsageError: If it is not a table.
        DataError: If it has no columns that name two documents, or a row is broken.
        FileError: If it cannot be read.
    """
    named: tuple[str, str] | None = None
    for place, row in read_table(path) if rows is None else rows:
        if named is None:
            named = next((pair for pair in NAMES if pair[0] in row and pair[1] in row), None)
        if named is None:
            columns = "; ".join(f"{first}, {second}" for first, second in NAMES)
            raise DataError(
                f"{path} names no pairs: it has {_listed(row)}; give it two of the columns"
                f" {columns}"
            )
        first, second = row.get(named[0]), row.get(named[1])
        if _is_blank(first) or _is_blank(second):
            raise DataError(
                f"{place}: {named[0]} or {named[1]} is missing; write both, or take the row out"
            )
        label = next((row[name] for name in _LABELS if name in row), None)
        answered = any(name in row for name in _LABELS)
        similarity = similarity_of(row, place)
        yield PairRow(str(first), str(second), similarity, _label(label, place), answered)


def result_rows(
    path: str, kind: str, names: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a table that `dedup` wrote as `--kind`, with these fields; see `read_table`.

    Raises:
        DataError: If it is another file.
        FileError: If it cannot be read.
    """
    try:
        for place, row in read_table(path):
            for name in names:
                _check_field(row, name, place)
            yield place, row
    except (DataError, UsageError) as error:
        raise DataError(f"{path} is not a file that dedup --{kind} wrote: {error}") from None


def field_of(row: Mapping[str, Any], name: str, place: str) -> str:
    """The text of a field that each row has.

    Raises:
        DataError: If it is missing.
    """
    value = row.get(name)
    if value is None:
        raise DataError(f"{place}: no {name}; write one, or take the row out")
    return str(value)


def _check_field(row: Mapping[str, Any], name: str, place: str) -> None:
    if name not in row:
        raise DataError(f"{place}: no {name} (it has {_listed(row)})")


def _listed(row: Mapping[str, Any]) -> str:
    return ", ".join(map(str, row))[:200]


def _is_blank(value: Any) -> bool:
    return value is None or value == ""


def similarity_of(row: Mapping[str, Any], place: str) -> float | None:
    """The similarity in a row, under any of its names.

    Raises:
        DataError: If it is not a number from 0 to 1.
    """
    value = next((row[name] for name in _SIMILARITIES if not _is_blank(row.get(name))), None)
    if value is None:
        return None
    try:
        similarity = float(value)
    except (TypeError, ValueError, OverflowError):
        similarity = -1.0
    if 0 <= similarity <= 1:
        return similarity
    raise DataError(f"{place}: the similarity is {value!r:.80}: use a number from 0 to 1")


def _label(value: Any, place: str) -> bool | None:
    if _is_blank(value) or str(value).casefold() in {"unsure", "unknown"}:
        return None
    text = str(value).casefold()
    if text in _YES or text in _NO:
        return text in _YES
    raise DataError(f"{place}: the label is {value!r:.80}: use 1 or 0, yes or no, or unsure")
