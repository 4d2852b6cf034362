"""The interface of every input format, and the parts that the text formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neardup.documents.extraction import Extraction
from neardup.documents.files.compression import UNCHECKED
from neardup.documents.files.remote import is_uri
from neardup.errors import DataError, UsageError
from neardup.runtime.storage.durable_files import name_as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from neardup.documents.batch import Batch, ReadOptions
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.input_bytes import Input
    from neardup.documents.files.problems import BadRecordError
    from neardup.documents.record_edits import TextEdits
    from neardup.documents.rejects import Rejects

__all__ = ["BOM", "DocumentFiles", "Source", "check_flags"]

BOM = b"\xef\xbb\xbf"


class Source(ABC):
    """One input: read once for its documents, a second time to write the kept ones.

    Its output in a folder is at the path `relative`: the base name, or, where a folder or a pattern
    was named, the path below it.
    """

    format: ClassVar[str]
    archive: str | None = None
    """The archive that it is in, if it is in one."""
    is_unchecked = False
    """Whether what was read of it is zstd without a checksum."""
    takes_edits: ClassVar[bool] = True
    """Whether something can go of a record's text when it is written."""
    compares: str | None = None
    """What decides the priority of its documents: "numbers" or "dates"; None if none has any."""
    edits: TextEdits | None = None
    """What goes of the records' texts when they are written; None copies the records."""
    workers = 1
    """Threads that writing may use."""
    outputs_at_once: ClassVar[int] = 4
    """Outputs of a folder that may be written at once: each needs memory of its own."""
    _on_progress: Callable[[int], object] | None = None
    _reported = 0

    def __init__(self, origin: Input) -> None:
        """Take the input; nothing is read yet."""
        self._input = origin
        self.name = name_as_text(origin.name)
        self.path = origin.path
        self.nbytes = origin.nbytes
        self.bytes_read = 0
        self.relative = f"stdin.{self.format}" if self.path is None else Path(self.path).name
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def batches(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the accepted records in order, in batches that are never empty.

        What was done that is not plain to see is then in `notes`, what looks wrong in `warnings`.
        `bytes_read` is then the input's size; of a stream, what was read up to its last document.

        Raises:
            UsageError: For options that the format cannot serve.
            DataError: At the first bad record unless the options skip them, and for an input that
                is broken as a whole, in any case.
            FileError: If the read fails, or the file changed during it.
        """
        extraction = Extraction(options.extract, pages=self.has_pages)
        passed = 0
        for batch in self.records(options, rejects):
            passed += batch.nbytes
            if batch.numbers is not None and batch.numbers.null_count < len(batch.numbers):
                self.compares = "dates" if self.has_dates(options) else "numbers"
            yield extraction.applied(batch, self.are_pages(batch))
        self.bytes_read = passed if self.nbytes is None else self.nbytes
        unchecked = UNCHECKED if self.is_unchecked else None
        self.notes = [*self.noted(), *filter(None, [extraction.note(), unchecked])]
        self.warnings = list(filter(None, [extraction.warning()]))

    @abstractmethod
    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read as `batches` does, with the texts as they stand in the input."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read every record with all its fields, and the number that messages call it by.

        Raises:
            UsageError: If it is not a table.
            DataError: At the first record that is broken.
            FileError: If the read fails, or the file changed during it.
        """

    def broken(self, row: int, bad: BadRecordError) -> DataError:
        """Word a record of `rows` that is broken."""
        return DataError(f"{self.name}:{row}: {bad.problem}; mend it or take it out")

    @property
    def encoding(self) -> str | None:
        """The encoding of its text, None for UTF-8 and for what is not a text."""
        return getattr(self._input, "encoding", None)

    @property
    def is_here(self) -> bool:
        """Whether it is files of this machine: reading them never waits for others."""
        return self.nbytes is not None and not is_uri(self.name)

    def noted(self) -> list[str]:
        """Notes from reading the input, one line each."""
        return [] if self.encoding is None else [f"{self.name} was read as {self.encoding}"]

    also_written: ClassVar[tuple[str, ...]] = ()
    """Other formats that kept records can be written in."""

    def named(self, relative: str) -> str:
        """The path that the output of an input at `relative` has in a folder."""
        return relative

    def has_dates(self, options: ReadOptions) -> bool:
        """Whether dates decide the priority of its documents, once it is read."""
        return options.dates

    has_pages = False
    """Whether there is a document whose name says that it is HTML."""

    def are_pages(self, batch: Batch) -> list[bool] | None:  # noqa: ARG002
        """Whether each document's name says that it is HTML; None where names do not say."""
        return None

    def check_output(self, out: str) -> None:  # noqa: B027  # most take any
        """Raise UsageError for an output that kept records cannot be written to."""

    @classmethod
    @abstractmethod
    def write_joined(
        cls,
        sources: Sequence[Any],
        keeps: Sequence[npt.NDArray[np.bool_]],
        target: AtomicFile,
    ) -> None:
        """Write the kept records of several read inputs of this format, one after the other."""

    @abstractmethod
    def layout(self) -> Any:
        """The layout that inputs of one output must share, such as the header; None: nothing."""

    def write_kept(self, keep: npt.NDArray[np.bool_], target: AtomicFile) -> None:
        """Write the kept records in the input's own format, columns and order.

        Args:
            keep: bool array, one flag for each accepted record, in order.
            target: Where to write.

        Raises:
            FileError: If the input changed since it was read, or a read or write fails.
        """
        self.write_joined([self], [keep], target)

    def begin_writing(self, tell: Callable[[int], object] | None, workers: int) -> None:
        """Let `tell` know of the bytes of input that writing goes through, and take threads."""
        self._on_progress, self._reported, self.workers = tell, 0, workers

    def went_to(self, place: int) -> None:
        """Report the bytes of input that writing has read, as compressed."""
        if self._on_progress is not None and place > self._reported:
            self._on_progress(place - self._reported)
            self._reported = place

    @property
    def paths(self) -> list[str]:
        """The paths that no output may replace."""
        return [] if self.path is None else [self.path]

    def stamps(self) -> list[tuple[str, int, int | str]]:
        """Path, bytes and time of change (ns since 1970, or a tag) of every file, to compare.

        Raises:
            UsageError: For a stream, which cannot be read again.
            FileError: If a file has gone.
        """
        return [self._input.stamp()]

    def close(self) -> None:
        """Remove the temporary copy, if there is one."""
        self._input.close()


class DocumentFiles(Source):
    """Many files as one input, each of them one document: kept ones are copied, not written."""

    @property
    @abstractmethod
    def relatives(self) -> list[str]:
        """The paths that the files would have in an output folder."""

    @abstractmethod
    def copy_kept(self, keep: npt.NDArray[np.bool_], folder: Any) -> None:
        """Copy the kept files byte for byte to the same relative paths in a folder.

        Args:
            keep: One flag for each accepted file, in order.
            folder: An AtomicFolder, or what else has its `add`.

        Raises:
            FileError: If a file changed since it was read, or a read or write fails.
        """


def check_flags(source: Source, keep: npt.NDArray[np.bool_], records: int) -> None:
    """Raise UsageError unless there is one flag for each accepted record."""
    if keep.shape != (records,):
        raise UsageError(
            f"{source.name}: {keep.size:,} keep flags for {records:,} records; pass one for each"
        )
