"""What every input format offers, and what the text formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neardup.documents.spans import Spans, copy_runs
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from neardup.documents.atomic import AtomicFile
    from neardup.documents.batch import Batch, ReadOptions
    from neardup.documents.rejects import Rejects
    from neardup.documents.spool import Input

__all__ = ["Source", "TextSource"]

BOM = b"\xef\xbb\xbf"


class Source(ABC):
    """One input: read once for its documents, a second time to write the kept ones.

    Its output in a folder is at the path `relative`: the base name, or, where a folder or a pattern
    was named, the path below it.
    """

    format: ClassVar[str]

    def __init__(self, origin: Input) -> None:
        """Take the input; nothing is read yet."""
        self._input = origin
        self.name = origin.name
        self.path = origin.path
        self.nbytes = origin.nbytes
        self.relative = f"stdin.{self.format}" if self.path is None else Path(self.path).name

    @abstractmethod
    def batches(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the accepted records in order, in batches that are never empty.

        Raises:
            DataError: At the first bad record unless the options skip them, and for an input that
                is broken as a whole, in any case.
            FileError: If the read fails, or the file changed meanwhile.
        """

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
        """What must be equal in inputs written to one output, such as the header; None: nothing."""

    def write_kept(self, keep: npt.NDArray[np.bool_], target: AtomicFile) -> None:
        """Write the kept records in the input's own format, columns and order.

        Args:
            keep: bool array, one flag for each accepted record, in order.
            target: Where to write.

        Raises:
            FileError: If the input changed since it was read, or a read or write fails.
        """
        self.write_joined([self], [keep], target)

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
        target.write(next((header for header in headers if header), b""))
        for source, keep in zip(sources, keeps, strict=True):
            source.write_records(keep, target)

    def header(self) -> bytes:
        """What goes before the records, byte for byte; empty if there is nothing."""
        return b""

    def write_records(self, keep: npt.NDArray[np.bool_], target: AtomicFile) -> None:
        """Copy the kept records; what is there already gets a line end first if it has none."""
        check_flags(self, keep, self._spans.accepted)
        self._input.check_unchanged()
        runs = self._spans.runs(keep)
        if len(runs) and not target.ends_line:
            target.write(b"\n")
        with self._input.open() as reader:
            copy_runs(reader, runs, target)
        self._input.check_unchanged()


def check_flags(source: Source, keep: npt.NDArray[np.bool_], records: int) -> None:
    """Raise UsageError unless there is one flag for each accepted record."""
    if keep.shape != (records,):
        raise UsageError(
            f"{source.name}: {keep.size:,} keep flags for {records:,} records; pass one for each"
        )
