"""The wording of what goes wrong, and what becomes of a bad record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable


__all__ = ["BadRecordError", "file_error", "missing_field", "quoted"]

_LISTED_NAMES = 20
_SKIP = "pass --on-error skip"


class BadRecordError(Exception):
    """One record cannot be used; `problem` says why and `advice` what to do. Never leaves here."""

    def __init__(self, problem: str, advice: str = f"fix the record or {_SKIP}") -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(problem)


def file_error(path: str, action: str, error: OSError) -> FileError:
    """Word a failed system call: `cannot ACTION PATH: why`."""
    return FileError(f"cannot {action} {path}: {error.strerror or error}")


def quoted(names: Iterable[str]) -> str:
    """List names between double quotes on one line, at most 20 of them."""
    shown = [_one_line(name) for name in names]
    rest = len(shown) - _LISTED_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(f'"{name}"' for name in shown[:_LISTED_NAMES]) + more


def missing_field(field: str, present: Iterable[str], option: str, kind: str) -> BadRecordError:
    """Word an absent field or column; `option` is the one that names it, such as --text."""
    names = quoted(present)
    there = f"it has {names}" if names else "it has none"
    return BadRecordError(f"no {kind} {quoted([field])} ({there})", f"pass {option} FIELD")


def _one_line(name: str) -> str:
    return name if name.isprintable() else name.encode("unicode_escape").decode()
