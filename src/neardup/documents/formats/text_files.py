"""Text files: each is one document, and the kept ones are copied to a folder as they are."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections import Counter
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from neardup.documents.batch import Columns, string_array, too_long
from neardup.documents.extensions import EXTENSIONS, is_page
from neardup.documents.files.compression import (
    SHOWN_BYTES,
    codec_of_path,
    lacks_checksum,
)
from neardup.documents.files.encodings import UTF8, encoding_advice, encoding_of_bom
from neardup.documents.files.foreign import kind_of_bytes
from neardup.documents.files.problems import BadRecordError, file_error
from neardup.documents.files.remote import is_uri, locate, remote_errors
from neardup.documents.markup import declared_encoding
from neardup.documents.record_edits import without
from neardup.documents.rejects import refuse
from neardup.documents.source import BOM, DocumentFiles, check_flags
from neardup.errors import DataError, FileError, UsageError
from neardup.runtime.storage.durable_files import name_as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents.batch import Batch, ReadOptions
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.finding import InputFile
    from neardup.documents.rejects import Rejects

__all__ = ["TextFilesSource"]

_FIX: Final = "fix the file or pass --on-error skip"
_COPY_BYTES: Final = 8 << 20
_FILES_AT_ONCE: Final = 256
_ARCHIVED: Final = "archive"


class TextFilesSource(DocumentFiles):
    """Many text files as one input; a file's relative path is its document's id."""

    format = "text"

    def __init__(self, files: Sequence[InputFile], encoding: str | None = None) -> None:
        """Take files that were found; UsageError if two have the same relative path."""
        self.name = name_as_text(files[0].path) if len(files) == 1 else "text files"
        self.path = None
        self.relative = ""
        self.nbytes = sum(file.nbytes for file in files)
        self.bytes_read = 0
        self.notes, self.warnings = [], []
        for file in files:
            if file.inside is not None:
                self.archive = file.inside.archive_path
        self.has_pages = any(is_page(file.path) for file in files)
        self._encoding = encoding
        self._longest = 0
        self._encodings: Counter[str] = Counter()
        self._files = files
        self._accepted = np.zeros(len(files), np.bool_)
        self._sums = np.zeros(len(files), np.uint32)
        name, count = Counter(file.relative for file in files).most_common(1)[0]
        if count > 1:
            raise UsageError(
                f"{count} files are both named {name}; name the folder that holds them, so that"
                " their paths in it tell them apart"
            )

    @property
    def paths(self) -> list[str]:
        """The paths of all files, and of the archives that they are in."""
        archives = {x.inside.archive_path for x in self._files if x.inside is not None}
        return [*(file.path for file in self._files), *sorted(archives)]

    @property
    def files(self) -> Sequence[InputFile]:
        """The files, in order."""
        return self._files

    @property
    def relatives(self) -> list[str]:
        """See DocumentFiles.relatives."""
        return [file.relative for file in self._files]

    def layout(self) -> None:
        """Text files have no layout."""

    def records(self, options: ReadOptions, rejects: Rejects | None = None) -> Iterator[Batch]:
        """Read the documents; see Source.records."""
        _check_options(options)
        self._encodings.clear()
        self.is_unchecked = False
        for numbers in self._parts(np.arange(len(self._files)), options.batch_bytes):
            texts: list[str] = []
            rows = []
            longest = self._longest = options.record_bytes
            for i, data in zip(numbers, self._read(numbers, longest), strict=True):
                file = self._files[i]
                try:
                    if isinstance(data, _BrokenTextError):
                        raise data
                    if data is None:
                        raise _LongTextError(longest)
                    self._sums[i] = zlib.crc32(data)
                    texts.append(self._decoded(file.path, data, longest))
                except _BrokenTextError as bad:
                    shown = data if isinstance(data, bytes) else b""
                    shown = shown[: SHOWN_BYTES if bad.is_long else None]
                    refuse(file.path, bad.line, bad, shown, options, rejects)
                    continue
                self._accepted[i] = True
                rows.append(i)
            if rows:
                ids = string_array([name_as_text(self._files[i].relative) for i in rows])
                nbytes = sum(self._files[i].nbytes for i in numbers)
                yield Columns(string_array(texts), ids).batch(np.array(rows) + 1, nbytes)

    def rows(self) -> NoReturn:
        """See Source.rows."""
        raise UsageError(
            f"{self._files[0].path} is a text, not a table: use one of {', '.join(EXTENSIONS)}"
        )

    def are_pages(self, batch: Batch) -> list[bool] | None:
        """See Source.are_pages."""
        return [is_page(self._files[i].path) for i in (batch.rows - 1).tolist()]

    @property
    def encoding(self) -> str | None:
        """See Source.encoding; files are copied, so that it does not matter."""
        return None

    def noted(self) -> list[str]:
        """See Source.noted."""
        return [f"{n:,} files were read as {x}" for x, n in sorted(self._encodings.items())]

    @classmethod
    def write_joined(cls, sources: Any, keeps: Any, target: AtomicFile) -> None:  # noqa: ARG003
        """Refuse: documents of their own are not joined to one file."""
        raise UsageError(f"{target.path}: text files are written to a folder; name one (-o OUT/)")

    def copy_kept(self, keep: npt.NDArray[np.bool_], folder: Any) -> None:
        """Copy the kept files byte for byte to the same relative paths in a folder.

        Raises:
            FileError: If a file changed since it was read, or a read or write fails.
        """
        check_flags(self, keep, int(np.count_nonzero(self._accepted)))
        kept = np.flatnonzero(self._accepted)[keep]
        done = 0
        for numbers in self._parts(kept, _COPY_BYTES):
            for i, data in zip(numbers, self._read(numbers, sys.maxsize), strict=True):
                file = self._files[i]
                if not isinstance(data, bytes) or zlib.crc32(data) != self._sums[i]:
                    raise FileError(
                        f"{file.path} changed while it was being read;"
                        " run again when it is complete"
                    )
                is_copied = self.edits is None or self.edits.of_next()
                folder.add(file.relative, data if is_copied else self._edited(file.path, data))
                done += file.nbytes
                self.went_to(done)

    def stamps(self) -> list[tuple[str, int, int | str]]:
        """See Source.stamps; of a file behind a URI the size only."""
        stamps: list[tuple[str, int, int | str]] = []
        for file in self._files:
            changed: int | str = ""
            if file.inside is not None:
                changed = file.inside.stamp()[1]
            elif not is_uri(file.path):
                try:
                    changed = os.stat(file.place).st_mtime_ns  # noqa: PTH116
                except OSError as error:
                    raise file_error(file.path, "read", error) from None
            stamps.append((name_as_text(file.path), file.nbytes, changed))
        return stamps

    def close(self) -> None:
        """Do nothing: there are no temporary files."""

    def _decoded(self, path: str, data: bytes, longest: int) -> str:
        """The text of a file, in the encoding given, declared or seen."""
        self.is_unchecked |= codec_of_path(path) == "zstd" and lacks_checksum(data)
        data = _unpacked(path, data, longest)
        kind = kind_of_bytes(data, path)
        if kind is not None:
            advice = f"{kind.advice}, or pass --on-error skip"
            raise _BrokenTextError(f"{kind.name}, not a text", 1, advice)
        encoding = encoding_of_bom(data)
        try:
            if encoding is None and self._encoding is None:
                return data.removeprefix(BOM).decode()
            encoding = encoding or self._encoding or ""
            text = data.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            declared = _declared(data) if encoding is None and is_page(path) else None
            if declared is None:
                raise _undecodable(data, error) from None
            encoding, text = declared, data.decode(declared, "replace")
        self._encodings[encoding] += 1
        return text

    def _edited(self, path: str, data: bytes) -> bytes:
        """A file without what goes of its text, in its encoding and compression."""
        assert self.edits is not None  # noqa: S101  # see `copy_kept`
        text = self._decoded(path, data, self._longest)
        whole = _unpacked(path, data, self._longest)
        new = without(text, self.edits.take(text))
        for encoding in (encoding_of_bom(whole), self._encoding, "utf-8", _declared(whole)):
            if encoding is None:
                continue
            with suppress(UnicodeEncodeError):
                body = text.encode(encoding)
                if whole.endswith(body):  # what stands before it is a byte-order mark
                    mark = whole[: len(whole) - len(body)]
                    return _packed(path, mark + new.encode(encoding))
        raise DataError(
            f"{path}: it cannot be written back in the encoding that it was read in; convert it"
            " to UTF-8 first"
        )

    def _parts(self, numbers: npt.NDArray[np.int64], nbytes: int) -> Iterator[list[int]]:
        """Split file numbers, so that the files of a part hold about `nbytes` together."""
        part: list[int] = []
        size = 0
        for i in numbers.tolist():
            part.append(i)
            size += self._files[i].nbytes
            if size >= nbytes or len(part) == _FILES_AT_ONCE:
                yield part
                part, size = [], 0
        if part:
            yield part

    def _read(self, numbers: list[int], longest: int) -> Iterator[bytes | _BrokenTextError | None]:
        """The bytes of files; None for one that has more than `longest`."""
        files = [self._files[i] for i in numbers]
        for protocol, group in groupby(files, lambda file: _protocol(file, longest)):
            if protocol is None:
                yield from (None for _ in group)
            elif protocol == _ARCHIVED:
                yield from _read_archived(group)
            elif protocol:
                yield from _read_remote([file.path for file in group])
            else:
                yield from _read_local(group, longest)


class _BrokenTextError(BadRecordError):
    is_long = False

    def __init__(self, problem: str, line: int, advice: str = _FIX) -> None:
        super().__init__(problem, advice)
        self.line = line


class _LongTextError(_BrokenTextError):
    is_long = True

    def __init__(self, longest: int) -> None:
        bad = too_long(None, longest)
        super().__init__(bad.problem, 1, bad.advice)


def _undecodable(data: bytes, error: UnicodeDecodeError) -> _BrokenTextError:
    line = data.count(b"\n", 0, error.start) + 1
    where = f" (byte {error.start + 1} of the file)"
    if error.encoding != "utf-8":
        return _BrokenTextError(f"not {error.encoding}{where}", line, "pass another --encoding")
    what, advice = encoding_advice(data) or ("", _FIX)
    return _BrokenTextError(f"not UTF-8{where}{what}", line, advice)


def _check_options(options: ReadOptions) -> None:
    """Refuse options about fields, which a text file does not have."""
    chosen = {
        "--text": None if options.text == ("text",) else options.text[0],
        "--id": options.id,
        "--within": options.within,
        "--keep": options.number,
    }
    for option, name in chosen.items():
        if name is not None:
            raise UsageError(f"{option} names the field {name}, but text files have no fields")


def _protocol(file: InputFile, longest: int) -> str | None:
    """The protocol of a file; "" for one of this machine, None for one that is not fetched."""
    if file.inside is None and not is_uri(file.path):
        return ""
    if file.inside is not None and file.nbytes <= longest:
        return _ARCHIVED
    return None if file.nbytes > longest else file.path.partition("://")[0]


def _read_archived(files: Iterable[InputFile]) -> Iterator[bytes | _BrokenTextError | None]:
    """The bytes of files in archives; of one that is damaged, how."""
    for file in files:
        try:
            if file.inside is not None:
                with file.inside.open() as reading:
                    yield reading.readall()
        except DataError as error:
            problem = str(error).removeprefix(f"{file.path}: ").partition(";")[0]
            yield _BrokenTextError(problem, 1, "fetch it again, or pass --on-error skip")


def _read_local(files: Iterable[InputFile], longest: int) -> Iterator[bytes | None]:
    for file in files:
        try:
            with Path(file.place).open("rb", buffering=0) as opened:
                is_long = os.fstat(opened.fileno()).st_size > longest
                data = None if is_long else opened.readall()
        except OSError as error:
            raise file_error(file.path, "read", error) from None
        yield data


def _read_remote(uris: list[str]) -> Iterator[bytes]:
    """Fetch several files at once; all of one file system."""
    fs, _ = locate(uris[0])
    with remote_errors(uris[0], "read"):
        keys = [locate(uri)[1] for uri in uris]
        contents = fs.cat(keys)
        data = [contents] if isinstance(contents, bytes) else [contents[key] for key in keys]
    yield from data


def _unpacked(path: str, data: bytes, longest: int) -> bytes:
    codec = codec_of_path(path)
    try:
        if codec == "gzip":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacking:
                data = unpacking.read(longest + 1)
        elif codec is not None:
            data = pa.CompressedInputStream(pa.BufferReader(data), codec).read(longest + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _BrokenTextError(f"the {codec} stream is broken: {error}", 1) from None
    if len(data) > longest:
        raise _LongTextError(longest)
    return data


def _packed(path: str, data: bytes) -> bytes:
    codec = codec_of_path(path)
    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec is None:
        return data
    return bytes(pa.Codec(codec).compress(data, asbytes=True))


def _declared(data: bytes) -> str | None:
    """The encoding that a page declares, as browsers take it; None for UTF-8 and unknown ones."""
    name = declared_encoding(data)
    try:
        encoding = None if name is None else codecs.lookup(name).name
    except LookupError:
        return None
    encoding = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254"}.get(
        encoding or "", encoding
    )
    return None if encoding in UTF8 else encoding
