"""The file of records that could not be used."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Self

import orjson

from neardup.documents.files.output_set import OutputSet
from neardup.errors import DataError
from neardup.runtime.storage.durable_files import name_as_text

if TYPE_CHECKING:
    from types import TracebackType

    from neardup.documents.batch import ReadOptions
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.problems import BadRecordError

__all__ = ["Rejects", "refuse", "rejects_doubt"]


class Rejects:
    """Counts bad records and, given a path, writes them as JSON lines; a context manager.

    Each line has `file`, `row`, `reason`, and the record as `record`, or as `record_base64` where
    it is not valid UTF-8.

    Args:
        path: Where to write them, or None to count only.
        outputs: The set of outputs that the file belongs to, which then commits it. Without one,
            the file appears when the context ends without an exception.

    Example:
        >>> with Rejects(None) as rejects:
        ...     rejects.add("news.jsonl", 2, "not valid JSON", b"{")
        >>> rejects.count
        1
    """

    def __init__(self, path: str | None = None, outputs: OutputSet | None = None) -> None:
        """Open the file aside; UsageError or FileError if it cannot be created."""
        self.count = 0
        self._own = OutputSet() if outputs is None else None
        self._file: AtomicFile | None = None
        if path is not None:
            self._file = (outputs or self._own or OutputSet()).create(path)

    def add(self, source_name: str, row: int, reason: str, record: bytes) -> None:
        """Count one bad record and write it down."""
        self.count += 1
        if self._file is None:
            return
        line: dict[str, object] = {"file": name_as_text(source_name), "row": row, "reason": reason}
        try:
            line["record"] = record.decode()
        except UnicodeDecodeError:
            line["record_base64"] = base64.b64encode(record).decode()
        self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Publish the file, if it is not part of a larger set, or remove it after an exception."""
        if self._own is None:
            return
        with self._own:
            if kind is None:
                self._own.commit()


def rejects_doubt(accepted: int, rejected: int) -> str | None:
    """A warning if most records of a run were rejected; None if fewer were.

    Raises:
        DataError: If none is left. Call it before anything is published.

    Example:
        >>> rejects_doubt(1, 2)
        '2 of 3 records were rejected: check that the options name the right fields'
    """
    if rejected and not accepted:
        raise DataError(
            f"no record is left: {rejected:,} of {rejected:,} were rejected, and nothing is"
            " written; leave out --on-error skip to read why the first one was"
        )
    if rejected <= accepted:
        return None
    return (
        f"{rejected:,} of {accepted + rejected:,} records were rejected: check that the options"
        " name the right fields"
    )


def refuse(
    source: str,
    row: int,
    bad: BadRecordError,
    record: bytes,
    options: ReadOptions,
    rejects: Rejects | None,
) -> None:
    """Hand a bad record to the rejects, or raise DataError if the options say to stop."""
    if not options.skip_errors:
        raise DataError(f"{source}:{row}: {bad.problem}; {bad.advice}")
    if rejects is not None:
        rejects.add(source, row, bad.problem, record)
