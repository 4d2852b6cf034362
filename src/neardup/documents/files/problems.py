"""The wording of problems, and the treatment of bad records."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from neardup.errors import DataError
from neardup.runtime.storage.durable_files import file_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from neardup.errors import FileError


__all__ = [
    "NUMBERS_ONLY",
    "BadRecordError",
    "check_names",
    "file_error",
    "longest_field",
    "missing_field",
    "nearest_name",
    "quoted",
]

_LISTED_NAMES = 20
_SKIP = "pass --on-error skip"
NUMBERS_ONLY: Final = (
    "--keep max: and min: compare numbers: name a FIELD of numbers, or pass newest:FIELD or"
    " oldest:FIELD for dates"
)
"""Advice if a date or a text is in the field: skipping such records would leave none."""
_NO_TEXT = re.compile(r"(^|[\W_])(id|key|uid|guid|uuid|hash|url|uri|path|file)$", re.IGNORECASE)


class BadRecordError(Exception):
    """A record cannot be used; `problem` says why, `advice` what to do. Always caught here."""

    def __init__(self, problem: str, advice: str = f"fix the record or {_SKIP}") -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(problem)


def file_error(path: str, action: str, error: OSError) -> FileError:
    """Word a failed system call: `cannot ACTION PATH: why`."""
    return file_failure(action, path, error)


def quoted(names: Iterable[str]) -> str:
    """List names between double quotes on one line, at most 20 of them."""
    shown = [_one_line(name) for name in names]
    rest = len(shown) - _LISTED_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(f'"{name}"' for name in shown[:_LISTED_NAMES]) + more


def missing_field(
    field: str, present: Iterable[str], option: str, kind: str, text_like: str | None = None
) -> BadRecordError:
    """Word an absent field or column.

    Args:
        field: Its name.
        present: The existing names.
        option: The option that names it, such as --text.
        kind: The word for it: a field or a column.
        text_like: The field that most likely has the text, as a proposal for --text.
    """
    there = list(present)
    names = quoted(there)
    what = f"no {kind} {quoted([field])} ({f'it has {names}' if names else 'it has none'})"
    near = nearest_name(field, there)
    if near is not None and near.isprintable():
        return BadRecordError(what, f"did you mean {option} {_shell(near)}?")
    if option == "--text" and text_like is not None and text_like.isprintable():
        return BadRecordError(what, f"pass --text FIELD, such as --text {_shell(text_like)}")
    return BadRecordError(what, f"pass {option} FIELD")


def check_names(place: str, names: Sequence[str], expected: str | None = None) -> None:
    """Raise DataError if two columns have one name: a requested one, or any that is not blank."""
    once = {expected} if expected is not None else set(names) - {""}
    twice = next((name for name in names if name in once and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{place}: there are two columns {quoted([twice])}; rename one")


def longest_field(sizes: Mapping[str, int]) -> str | None:
    """The field that most likely holds the text: with most in it, and not named as ids are.

    Args:
        sizes: Characters by field.
    """
    likely = {name: size for name, size in sizes.items() if size and not _NO_TEXT.search(name)}
    return max(likely, key=likely.__getitem__, default=None)


def nearest_name(name: str, present: Iterable[str]) -> str | None:
    """The name that was most likely meant, or None."""
    plain = {other.strip().casefold(): other for other in reversed(list(present))}
    close = difflib.get_close_matches(name.strip().casefold(), plain, 1, 0.7)
    return plain[close[0]] if close else None


def _shell(name: str) -> str:
    return f"'{name}'" if " " in name else name


def _one_line(name: str) -> str:
    return name if name.isprintable() else name.encode("unicode_escape").decode()
