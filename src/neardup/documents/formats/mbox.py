"""Mailboxes: one message after the other, each after a line that begins with "From "."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents.batch import Gathered, ReadOptions, too_long
from neardup.documents.files.compression import SHOWN_BYTES, line_ends
from neardup.documents.files.problems import BadRecordError
from neardup.documents.formats.field_spans import Spans
from neardup.documents.formats.jsonl import RecordParser
from neardup.documents.formats.lines import TextSource
from neardup.documents.messages import message_record
from neardup.documents.rejects import refuse
from neardup.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents.batch import Batch
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.compression import ByteReader
    from neardup.documents.rejects import Rejects

__all__ = ["MboxSource"]

_BLOCK_BYTES: Final = 1 << 20
_BETWEEN: Final = re.compile(rb"\n\r?\n(?=From )")
_BLANK: Final = (b"\n\n", b"\n\r\n")


class MboxSource(TextSource):
    """A mailbox; a message is what is between two lines "From ...", the later one after a blank."""

    format = "mbox"
    takes_edits = False
    _end = b""

    def layout(self) -> None:
        """Any mailbox may follow any other."""

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the messages; see Source.records. Their row is their number, from 1."""
        parser = RecordParser(replace(options, date_format=None))
        self._spans = Spans()
        gathered, rows, size, consumed = Gathered(options), [], 0, 0
        with self._input.open() as reader:
            for row, (nbytes, data) in enumerate(self._messages(reader, options), 1):
                try:
                    if nbytes > options.record_bytes:
                        raise too_long(nbytes, options.record_bytes)
                    gathered.add(*parser.of(message_record(data, f"{self.name}:{row}")))
                except BadRecordError as bad:
                    self._spans.add(np.array([nbytes]), np.zeros(1, np.bool_))
                    shown = data[: SHOWN_BYTES if nbytes > options.record_bytes else None]
                    refuse(self.name, row, bad, shown, options, rejects)
                    continue
                self._spans.add(np.array([nbytes]), np.ones(1, np.bool_))
                rows.append(row)
                size += nbytes
                if size >= options.batch_bytes:
                    yield gathered.columns().batch(np.array(rows), reader.consumed - consumed)
                    gathered, rows, size, consumed = Gathered(options), [], 0, reader.consumed
            if rows:
                yield gathered.columns().batch(np.array(rows), reader.consumed - consumed)
            self.is_unchecked = reader.is_unchecked
        self._input.check_unchanged()

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See Source.rows."""
        options = ReadOptions()
        with self._input.open() as reader:
            for row, (nbytes, data) in enumerate(self._messages(reader, options), 1):
                try:
                    if nbytes > options.record_bytes:
                        raise too_long(nbytes, options.record_bytes)
                    yield row, message_record(data, f"{self.name}:{row}")
                except BadRecordError as bad:
                    raise self.broken(row, bad) from None
        self._input.check_unchanged()

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[Any],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write the kept messages as they are, with a blank line after those of each mailbox."""
        gap = b""
        for source, keep in zip(sources, keeps, strict=True):
            if gap and keep.any():
                target.write(gap)
                gap = b""
            source.write_records(keep, target)
            if keep.size and keep[-1]:
                gap = source.gap()

    def gap(self) -> bytes:
        """The bytes that must follow before another message may."""
        if self._end.endswith(_BLANK):
            return b""
        return b"\n" if self._end.endswith(b"\n") else b"\n\n"

    def _messages(self, reader: ByteReader, options: ReadOptions) -> Iterator[tuple[int, bytes]]:
        """Size and bytes of each message; of one that is too long, its begin."""
        longest, passes = options.record_bytes, options.skip_errors
        lines, size, self._end = 0, 0, b"\n\n"
        parts: list[bytes] = []
        is_open = False
        while (block := reader.block(_BLOCK_BYTES, lines, longest, passes=passes)) or (
            reader.long_line
        ):
            lines += line_ends(block)
            # A blank line may end the block before.
            begins = [x.end() - len(self._end) for x in _BETWEEN.finditer(self._end + block)]
            if not is_open and (not begins or block[: begins[0]].strip()):
                raise DataError(
                    f'{self.name}:1: a mailbox begins with a line such as "From a@b.c Mon Jan  1'
                    ' 00:00:00 2024"; put one before each message, and a blank line between'
                )
            at = 0
            for begin in begins:
                if is_open:
                    parts.append(block[at:begin])
                    yield size + begin - at, b"".join(parts)
                    at, size, parts = begin, 0, []
                is_open = True
            if size <= longest:  # of one that is too long no more is kept
                parts.append(block[at:])
            size += len(block) - at
            self._end = (self._end + block)[-3:]
            if reader.long_line is not None:
                size += reader.long_line.nbytes
                self._end = b"?\n"
                if not passes:
                    break
        if is_open:
            yield size, b"".join(parts)
