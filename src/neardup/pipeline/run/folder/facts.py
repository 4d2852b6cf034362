"""What a run is about, and in what two runs differ: inputs, recipe, options, version."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import FileError, UsageError
from neardup.pipeline.run.rule import settings
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.rule import Choice, Rule

__all__ = ["check_facts", "run_facts"]

VERSION: Final = 2
"""Of the layout of the state on disk."""


def run_facts(
    sources: Sequence[Source],
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    index: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that the result depends on, as values that JSON can hold.

    Args:
        sources: The inputs.
        rule: When documents match.
        choice: Which are kept.
        read: Which fields it reads, and of which format.
        index: What it knows of an index that came before: "path", "documents", "added", "own_ids".

    Raises:
        UsageError: If an input is a stream, which cannot be read again.
        FileError: If an input has gone.
    """
    every, form = settings(rule, choice), read.input_format
    options = {name: every[name] for name in ("similarity", "measure", "distance", "recall")}
    return {
        "state": VERSION,
        "version": __version__,
        "digest": rule.recipe.digest,
        "recipe": json.loads(rule.recipe.to_json()),
        "options": options
        | {
            "policy": choice.policy,
            "keep": choice.keep,
            "text": ",".join(read.text),
            "id": read.id,
            "within": read.within,
            "extract": read.extract,
            "format": form.name if form.sheet is None else f"{form.name}:{form.sheet}",
            "delimiter": form.delimiter,
            "encoding": form.encoding,
            "against": None if index is None else index["path"],
            "own_ids": None if index is None else index["own_ids"],
            "decisions": _digest_of(choice.decisions),
        },
        "index": index,
        "inputs": [list(stamp) for source in sources for stamp in source.stamps()],
    }


def _digest_of(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


def check_facts(
    before: dict[str, Any], now: dict[str, Any], folder: str, *, updating: bool = False
) -> None:
    """Compare two runs.

    Args:
        before: Of the run that left the folder.
        now: Of this one.
        folder: Where its state is, for the message.
        updating: Whether the run was killed while it added to its index, so that this may differ.

    Raises:
        UsageError: Names the first thing that differs, what it was and what it is.
    """
    for name, title in (("state", "its format"), ("version", "neardup")):
        if before[name] != now[name]:
            raise UsageError(
                f"{folder} was left by another version ({title} {before[name]}, now {now[name]}):"
                f" use that one, or remove {folder} to start anew"
            )
    if before["digest"] != now["digest"]:
        what = _difference(before["recipe"], now["recipe"]) or (
            f"its digest was {before['digest']}, now it is {now['digest']}"
        )
        raise UsageError(f"the recipe changed since {folder} was left: {what}; {_next(folder)}")
    what = _difference(before["options"], now["options"])
    if what:
        raise UsageError(f"an option changed since {folder} was left: {what}; {_next(folder)}")
    _check_inputs(before["inputs"], now["inputs"], folder)
    was, here = before["index"], now["index"]
    if was != here and not updating:
        raise UsageError(
            f"{here['path']} changed since {folder} was left: it had {was['documents']:,} documents"
            f" of {was['added']:,} ever added, now {here['documents']:,} of {here['added']:,};"
            f" remove {folder} to start anew"
        )


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    for name in sorted({*before, *now}):
        was, is_now = before.get(name), now.get(name)
        if was != is_now:
            return f"{name} was {_short(was)}, now it is {_short(is_now)}"
    return ""


def _check_inputs(before: list[Any], now: list[Any], folder: str) -> None:
    was, here = ({row[0]: row for row in rows} for rows in (before, now))
    for path, row in here.items():
        if path not in was:
            raise UsageError(f"{path} is no input of the run that left {folder}; {_next(folder)}")
        if row != was[path]:
            raise UsageError(
                f"{path} changed since {folder} was left: it had {_stamp(was[path])}, now"
                f" {_stamp(row)}; {_next(folder)}"
            )
    for path in was:
        if path not in here:
            raise UsageError(
                f"{path} is an input of the run that left {folder}, and is not one now;"
                f" {_next(folder)}"
            )
    if before != now:
        raise UsageError(
            f"the inputs were in another order when {folder} was left; {_next(folder)}"
        )


def _next(folder: str) -> str:
    return f"put it back, or remove {folder} to start anew"


def _stamp(row: list[Any]) -> str:
    _, nbytes, changed = row
    when = changed
    if isinstance(changed, int):
        when = datetime.fromtimestamp(changed / 1e9, UTC).isoformat(" ", "microseconds")
    return f"{nbytes:,} bytes of {when}"


def _short(value: Any) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
