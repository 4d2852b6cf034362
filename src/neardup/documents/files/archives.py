"""Archives as folders: the entries of a .zip or .tar file, each an input of its own.

A ZIP archive and a tar archive on this disk are read in place. A compressed tar archive can only be
read from front to back, so it is unpacked to one temporary file, which has its entries.
"""

from __future__ import annotations

import io
import os
import posixpath
import stat
import tarfile
import weakref
import zipfile
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from lzma import LZMAError
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from neardup.documents.files.compression import ByteReader, codec_of_path
from neardup.documents.files.finding import InputFile, check_relative, find_files
from neardup.documents.files.input_bytes import find_input
from neardup.documents.files.problems import file_error, quoted
from neardup.documents.files.remote import is_uri
from neardup.errors import DataError, NeardupError, UsageError
from neardup.runtime.storage.durable_files import check_system
from neardup.runtime.storage.temporary import spill_error, temporary_file

if TYPE_CHECKING:
    from neardup.documents.files.finding import ArchivedFile
    from neardup.documents.files.input_bytes import Input

__all__ = ["ARCHIVES", "Entry", "EntryInput", "find_documents", "is_archive"]

_TARS: Final[dict[str, str | None]] = {
    ".tar": None,
    ".tar.gz": "gzip",
    ".tgz": "gzip",
    ".tar.zst": "zstd",
    ".tar.bz2": "bz2",
    ".tbz2": "bz2",
    ".tar.xz": "xz",
    ".txz": "xz",
}
ARCHIVES: Final = (".zip", *_TARS)
MOST_TIMES: Final = 256
"""The largest ratio of unpacked to packed bytes of an archive above LEAST_BYTES."""
LEAST_BYTES: Final = 1 << 30
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_ENCRYPTED: Final = 1  # a bit of an entry's flags
_LINK_BYTES: Final = 4096
_LINKS: Final = 40  # a longer chain counts as a circle, as in the kernel
_HEADER_BYTES: Final = 1 << 22  # that one header of a tar archive may have
_PIECE_BYTES: Final = 1 << 20
_BROKEN: Final = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, NotImplementedError,
    ValueError, OverflowError, RuntimeError,
)  # fmt: skip


def is_archive(path: str) -> bool:
    """Whether the extension says that a file is an archive that is read as a folder.

    Example:
        >>> is_archive("Corpus.ZIP"), is_archive("news.jsonl.gz")
        (True, False)
    """
    return path.lower().endswith(ARCHIVES)


def find_documents(path: str, tmp: str | None = None) -> list[InputFile]:
    """Find files as `find_files` does, with the entries of archives in the archives' place.

    A path may also lead into an archive: to an entry, or to a folder in it.

    Args:
        path: As for `find_files`.
        tmp: Folder for an unpacked tar archive.

    Raises:
        DataError: For an archive that is damaged, encrypted or without files, for one with names
            that lead out of it, or one that unpacks to a disproportionate size.
        FileError: As `find_files`.
    """
    archive, below = _led_into(path)
    files = []
    for file in find_files(archive):
        if file.path == "-" or not is_archive(file.path):
            files.append(file)
            continue
        prefix = "" if file.is_named else f"{file.relative}/"
        for entry in _opened(file.path, tmp).listed():
            relative = _below(entry.name, below)
            if relative is not None:
                place = f"{file.path}/{entry.name}"
                files.append(InputFile(place, prefix + relative, entry.nbytes, inside=entry))
    if below and not files:
        raise DataError(f"{archive}: there is no {quoted([below])} in it")
    return files


def _led_into(path: str) -> tuple[str, str]:
    """An archive and the path below it that a path leads to; the path itself and "" if none."""
    if path == "-" or is_uri(path) or os.path.lexists(path):
        return path, ""
    parts = path.split("/")
    for i in range(len(parts) - 1, 0, -1):
        archive = "/".join(parts[:i])
        if is_archive(archive) and os.path.isfile(archive):  # noqa: PTH113
            return archive, posixpath.normpath("/".join(parts[i:]))
    return path, ""


def _below(name: str, folder: str) -> str | None:
    """The path of an entry below a folder, or its last part if that is the entry itself."""
    if not folder:
        return name
    if name == folder:
        return posixpath.basename(name)
    return name[len(folder) + 1 :] if name.startswith(f"{folder}/") else None


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in an archive.

    Args:
        archive: Its archive.
        name: Its path there.
        nbytes: Its size.
        place: Where it is: a ZipInfo, or the offset of its bytes.
    """

    archive: Archive
    name: str
    nbytes: int
    place: Any

    @property
    def archive_path(self) -> str:
        """See ArchivedFile."""
        return self.archive.origin.name

    def open(self) -> io.RawIOBase:
        """See ArchivedFile."""
        return self.archive.opened(self)

    def stamp(self) -> tuple[int, int | str]:
        """See ArchivedFile."""
        return self.nbytes, self.archive.origin.stamp()[2]

    def check_unchanged(self) -> None:
        """See ArchivedFile."""
        self.archive.origin.check_unchanged()


class EntryInput:
    """An entry of an archive as an input, which is opened again for a second reading."""

    is_plain = False

    def __init__(self, path: str, entry: ArchivedFile, tmp: str | None = None) -> None:
        """Take it; nothing is read."""
        self.name = path
        self.path: str | None = entry.archive_path
        self.nbytes: int | None = entry.nbytes
        self._entry, self._tmp = entry, tmp

    def open(self) -> ByteReader:
        """See Input.open."""
        return ByteReader(self.name, self._entry.open(), codec_of_path(self.name))

    def open_file(self) -> io.RawIOBase:
        """See Input.open_file."""
        return self._entry.open()

    def open_raw(self) -> pa.NativeFile:
        """See Input.open_raw: of a ZIP archive, a temporary copy."""
        file = self._entry.open()
        if not isinstance(file, _Range):
            copied = temporary_file(self._tmp, "entries of archives")
            _copy(file, copied, self._tmp)
            return pa.PythonFile(copied, mode="r")
        return pa.PythonFile(file, mode="r")

    def check_unchanged(self) -> None:
        """See Input.check_unchanged."""
        self._entry.check_unchanged()

    def stamp(self) -> tuple[str, int, int | str]:
        """See Input.stamp."""
        return (self.name, *self._entry.stamp())

    def close(self) -> None:
        """See Input.close: the archive is closed when nothing refers to it."""


class Archive(ABC):
    """A file that is read as a folder; its entries share it.

    Args:
        origin: The file.
    """

    def __init__(self, origin: Input) -> None:
        """Open it; nothing is read yet."""
        self.origin = origin
        self._file: Any = None
        self._keep(origin.open_file())
        self._links: dict[str, str] = {}
        self._entries: dict[str, Entry] = {}

    def listed(self) -> list[Entry]:
        """The files in it, sorted by path; as in a folder, without hidden ones and devices.

        Of several entries with one name the last counts, as in unpacking.

        Raises:
            DataError: If it is damaged, has no files, or is not to be trusted.
        """
        try:
            self._list()
        except NeardupError:
            raise
        except _BROKEN as error:
            raise self._broken(str(error)) from None
        for name in self._links:
            target = self._target(name)
            if target is not None:
                self._entries[name] = replace(target, name=name)
        visible = [x for x in self._entries if not any(y[:1] == "." for y in x.split("/"))]
        if not visible:
            raise DataError(f"{self.origin.name}: the archive has no documents; name another one")
        entries = [self._entries[name] for name in sorted(visible)]
        self._entries = {}  # a circle of references would keep the file open
        self._check_size(sum(entry.nbytes for entry in entries), self.origin.nbytes or 0)
        return entries

    @abstractmethod
    def _list(self) -> None:
        """Read the names of all entries, by `_add` and `_links`."""

    @abstractmethod
    def opened(self, entry: Entry) -> io.RawIOBase:
        """Start reading an entry."""

    def _keep(self, file: Any) -> None:
        """Read from a file, which is closed with its last entry."""
        self._file = file
        weakref.finalize(self, file.close)

    def _name(self, name: str) -> str:
        """The path of an entry; DataError if it leads out of the archive."""
        try:
            check_relative(name.removeprefix("./"), "")
        except DataError:
            raise DataError(
                f"{self.origin.name}: its entry {quoted([name])} leads out of the archive, so"
                " it is not read; unpack entries that you trust, and name the folder"
            ) from None
        return posixpath.normpath(name)

    def _add(self, name: str, nbytes: int, place: Any) -> None:
        self._links.pop(name, None)
        self._entries[name] = Entry(self, name, nbytes, place)

    def _add_link(self, name: str, target: str) -> None:
        self._entries.pop(name, None)
        self._links[name] = target

    def _target(self, name: str) -> Entry | None:
        """The file that a link leads to; None outside of the archive, or in a circle."""
        for _ in range(_LINKS):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(name), self._links[name]))
            if name not in self._links:
                return self._entries.get(name)
        return None

    def _refused(self, what: str) -> DataError:
        return DataError(f"{self.origin.name}: {what}: unpack it first, and name the folder")

    def _broken(self, why: str) -> DataError:
        why = " ".join(why.split())
        return DataError(f"{self.origin.name}: the archive is damaged: {why}; fetch it again")

    def _check_size(self, unpacked: int, packed: int) -> None:
        if unpacked > max(LEAST_BYTES, MOST_TIMES * packed):
            raise self._refused(
                f"it unpacks to more than {MOST_TIMES} times its {packed:,} bytes, as bombs do"
            )


class _Zip(Archive):
    def __init__(self, origin: Input) -> None:
        super().__init__(origin)
        self._keep(io.BufferedReader(self._file))
        self._zip: Any = None

    def _list(self) -> None:
        self._zip = zipfile.ZipFile(self._file)
        for info in self._zip.infolist():
            mode = info.external_attr >> 16
            if info.is_dir() or stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFLNK}:
                self._name(info.filename.rstrip("/") or ".")
                continue
            name = self._name(info.filename)
            if info.flag_bits & _ENCRYPTED:
                raise self._refused(f"its entry {quoted([name])} is encrypted")
            if info.compress_type not in _METHODS:
                raise self._refused(
                    f"its entry {quoted([name])} is compressed by method {info.compress_type},"
                    " which is not read"
                )
            if stat.S_ISLNK(mode) and info.file_size <= _LINK_BYTES:
                self._add_link(name, self._zip.read(info).decode(errors="surrogateescape"))
            else:
                self._add(name, info.file_size, info)

    def opened(self, entry: Entry) -> io.RawIOBase:
        return _Unzipped(entry, self._zip)


class _Unzipped(io.RawIOBase):
    """The bytes of an entry of a ZIP archive, whose checksum is compared at the end."""

    def __init__(self, entry: Entry, archive: zipfile.ZipFile) -> None:
        self._name = f"{entry.archive.origin.name}/{entry.name}"
        self._entry = entry
        self._file: Any = None
        self._file = self._tried(lambda: archive.open(entry.place))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return int(self._tried(lambda: self._file.readinto(buffer)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()

    def _tried(self, read: Any) -> Any:
        try:
            return read()
        except NeardupError:
            raise
        except _BROKEN as error:
            raise _damaged(self._name, error) from None
        except OSError as error:
            raise file_error(self._name, "read", error) from None


class _Tar(Archive):
    def __init__(self, origin: Input, codec: str | None, tmp: str | None) -> None:
        check_system(f"{origin.name}, a tar archive,")
        super().__init__(origin)
        if codec is not None or is_uri(origin.name):
            self._unpack(codec, tmp)

    def _unpack(self, codec: str | None, tmp: str | None) -> None:
        """Read from a temporary file of what it is before compression."""
        packed = self._file
        self._keep(copy := temporary_file(tmp, "unpacked archives"))
        with ByteReader(self.origin.name, packed, codec) as reader:
            size = 0
            while piece := reader.read(_PIECE_BYTES):
                _write(copy, piece, tmp)
                size += len(piece)
                self._check_size(size, reader.consumed)
            if reader.failure is not None:
                raise self._broken(f"its {codec} stream breaks: {reader.failure}")
        copy.flush()

    def _list(self) -> None:
        self._file.seek(0)
        tar: Any
        headers = _Headers(self._file)
        with tarfile.open(
            fileobj=cast("Any", headers),
            mode="r:",
            encoding="utf-8",
            errors="surrogateescape",
        ) as tar:
            while (info := tar.next()) is not None:
                headers.end()
                tar.members.clear()  # it would keep them all
                self._take(info)
            end = tar.offset
        self._check_end(end)

    def _take(self, info: tarfile.TarInfo) -> None:
        if info.name in {".", "./"}:
            return
        name = self._name(info.name)
        if info.issparse():
            raise self._refused(f"its entry {quoted([name])} is a sparse file")
        if info.isfile():
            self._add(name, info.size, info.offset_data)
        elif info.islnk():
            target = self._name(info.linkname)
            if target not in self._entries:
                raise self._broken(
                    f"{quoted([name])} links to a file that the archive does not contain"
                )
            self._add(name, self._entries[target].nbytes, self._entries[target].place)
        elif info.issym():
            self._add_link(name, info.linkname)

    def _check_end(self, end: int) -> None:
        """Raise an error if the archive is cut or damaged where tarfile sees its end.

        tarfile ends silently at a broken header, and would lose the entries after it.
        """
        block = os.pread(self._file.fileno(), tarfile.BLOCKSIZE, end)
        if len(block) < tarfile.BLOCKSIZE:
            raise self._broken("it has no end mark, so that something may be missing")
        if any(block):
            raise self._broken(f"at byte {end:,} there is no header of an entry")

    def opened(self, entry: Entry) -> io.RawIOBase:
        return _Range(f"{self.origin.name}/{entry.name}", self._file, entry)


class _Headers:
    """The headers that tarfile reads of an archive, none of which may fill the memory."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell
        self._nbytes = 0

    def end(self) -> None:
        """Note that a header has been read; since Python 3.14 it takes several calls."""
        self._nbytes = 0

    def read(self, nbytes: int) -> bytes:
        self._nbytes += nbytes
        if self._nbytes > _HEADER_BYTES:
            raise tarfile.ReadError(f"a header has more than {_HEADER_BYTES:,} bytes")
        data: bytes = self._file.read(nbytes)
        return data


class _Range(io.RawIOBase):
    """A stretch of a file; several can be read at once, since none moves the file's position."""

    def __init__(self, name: str, file: Any, entry: Entry) -> None:
        self._name, self._file = name, file
        self._begin, self._size, self._at = entry.place, entry.nbytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = min(len(buffer), self._size - self._at)
        if n <= 0:
            return 0
        try:
            n = os.preadv(self._file.fileno(), [memoryview(buffer)[:n]], self._begin + self._at)
        except OSError as error:
            raise file_error(self._name, "read", error) from None
        if not n:
            raise _damaged(self._name, "it ends too early")
        self._at += n
        return n

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence, self._size))
        return self._at

    def tell(self) -> int:
        return self._at


def _opened(path: str, tmp: str | None) -> Archive:
    origin = find_input(path, tmp)
    if origin.nbytes is None:
        raise UsageError(f"{path}: an archive cannot be a stream; use a file")
    lowered = path.lower()
    if lowered.endswith(".zip"):
        return _Zip(origin)
    ending = max((x for x in _TARS if lowered.endswith(x)), key=len)
    return _Tar(origin, _TARS[ending], tmp)


def _copy(file: io.RawIOBase, target: Any, tmp: str | None) -> None:
    with file:
        while piece := file.read(_PIECE_BYTES):
            _write(target, piece, tmp)
    target.flush()
    target.seek(0)


def _write(target: Any, data: bytes, tmp: str | None) -> None:
    try:
        target.write(data)
    except OSError as error:
        raise spill_error(tmp, "unpacked archives", error) from None


def _damaged(name: str, why: object) -> DataError:
    return DataError(f"{name}: the archive is damaged here: {why}; fetch it again")
