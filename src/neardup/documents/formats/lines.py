"""Inputs of records that are lines of text: what JSON lines and CSV share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.documents.files.encodings import EncodedFile
from neardup.documents.formats.field_spans import Spans
from neardup.documents.formats.kept_runs import copy_in_threads, copy_runs
from neardup.documents.record_edits import EditedRecords
from neardup.documents.source import Source, check_flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.record_edits import TextEdits

__all__ = ["TextSource"]


class TextSource(Source):
    """An input whose records are stretches of bytes, kept exactly as they are."""

    def __init__(self, origin: Input) -> None:
        """Take the input; nothing is read yet."""
        super().__init__(origin)
        self._spans = Spans()

    @classmethod
    def write_joined(
        cls,
        sources: Sequence[TextSource],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write the first header that there is, then the kept records of every input."""
        headers = [source.header() for source in sources]
        encoding = sources[0].encoding
        written = target if encoding is None else EncodedFile(target, encoding)
        written.write(next((header for header in headers if header), b""))
        for source, keep in zip(sources, keeps, strict=True):
            source.write_records(keep, written)
        if isinstance(written, EncodedFile):
            written.finish()

    def header(self) -> bytes:
        """The bytes before the records; empty if there are none."""
        return b""

    def edited(self, record: str, edits: TextEdits) -> str:
        """A record without what goes of its text, of a format that takes edits."""
        raise NotImplementedError

    def write_records(self, keep: npt.NDArray[np.bool_], target: AtomicFile | EncodedFile) -> None:
        """Copy the kept records; what is there already gets a line end first if it has none."""
        check_flags(self, keep, self._spans.accepted)
        self._input.check_unchanged()
        runs = self._spans.runs(keep)
        if len(runs) and not target.ends_line:
            target.write(b"\n")
        if not self._copied_in_threads(runs, target):
            into: AtomicFile | EncodedFile | EditedRecords = target
            if self.edits is not None:
                lengths = self._spans.kept_lengths(keep)
                into = EditedRecords(target, lengths, self.edits, self.edited)
            with self._input.open() as reader:
                copy_runs(reader, runs, into, self.went_to)
        self._input.check_unchanged()

    def _copied_in_threads(
        self, runs: npt.NDArray[np.int64], target: AtomicFile | EncodedFile
    ) -> bool:
        """Copy the runs if they are in a file as they are to be written; whether they were."""
        if self.edits is not None or isinstance(target, EncodedFile) or not self._input.is_plain:
            return False
        with self._input.open_file() as file:
            return copy_in_threads(file.fileno(), runs, target, self.went_to, self.workers)
