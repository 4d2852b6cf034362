"""Files behind a URI, such as s3://bucket/news.jsonl.gz, through fsspec if it is installed."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup.documents.files.compression import ByteReader, codec_of_path
from neardup.errors import FileError, NeardupError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ATOMIC", "RemoteInput", "as_local", "is_uri", "locate", "remote_errors"]

ATOMIC: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"})
"""Protocols with atomic uploads."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]*://")
_STAMPS: Final = ("size", "ETag", "etag", "mtime", "LastModified", "last_modified", "created")
_EXTRAS: Final = {"s3": "s3", "s3a": "s3"}


def is_uri(path: str) -> bool:
    """Whether a path names a file elsewhere.

    Example:
        >>> is_uri("s3://bucket/news.jsonl"), is_uri("news.jsonl"), is_uri("file:///news.jsonl")
        (True, False, False)
    """
    return _URI.match(path) is not None and as_local(path) == path


def as_local(path: str) -> str:
    """Give the plain path of a file:// or local:// URI; any other path as it is."""
    for scheme in ("file://", "local://"):
        if path.lower().startswith(scheme):
            return path[len(scheme) :]
    return path


def locate(uri: str) -> tuple[Any, str]:
    """Give the fsspec file system of a URI, and the path in it.

    Raises:
        UsageError: If fsspec or its package for the protocol is not installed, or the protocol is
            unknown.
        FileError: If the file system cannot be reached.
    """
    protocol = uri.partition("://")[0].lower()
    extra = _EXTRAS.get(protocol, "remote")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UsageError(
            f"{uri}: {protocol}:// needs fsspec; install it: pip install 'neardup[{extra}]'"
        ) from None
    with remote_errors(uri, "open"):
        try:
            filesystem_and_key: tuple[Any, str] = url_to_fs(uri)
        except ImportError as error:
            raise UsageError(f"{uri}: {_one_line(error)}") from None
        except ValueError as error:
            raise UsageError(f"{uri}: {_one_line(error)}; use a path or a known URI") from None
        return filesystem_and_key


@contextmanager
def remote_errors(uri: str, action: str) -> Iterator[None]:
    """Turn any error of a file system into `cannot ACTION URI: why`."""
    try:
        yield
    except NeardupError:
        raise
    except FileNotFoundError:
        raise FileError(f"cannot {action} {uri}: No such file or directory") from None
    except Exception as error:  # noqa: BLE001  # each file system has its client's own errors
        raise FileError(f"cannot {action} {uri}: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class RemoteInput:
    """A file behind a URI: nothing is copied, a second reading opens it again."""

    is_plain = False

    def __init__(self, uri: str) -> None:
        """Look it up; FileError if it does not exist."""
        self.name = uri
        self.path: str | None = uri
        self._fs, self._key = locate(uri)
        info = self._info()
        if info["type"] != "file":
            raise FileError(f"cannot read {uri}: it is a directory; name the files in it")
        self.nbytes: int | None = info.get("size")
        self._state = _state(info)

    def open(self) -> ByteReader:
        """Start reading from the first byte, decompressed."""
        return ByteReader(self.name, self.open_file(), codec_of_path(self.name))

    def open_raw(self) -> pa.NativeFile:
        """Open the file as it is, for reading anywhere in it."""
        return pa.PythonFile(self.open_file(), mode="r")

    def check_unchanged(self) -> None:
        """Raise FileError if the file's size, time or tag changed."""
        self._fs.invalidate_cache(self._key)
        if _state(self._info()) != self._state:
            raise FileError(
                f"{self.name} changed while it was being read; run again when it is complete"
            )

    def stamp(self) -> tuple[str, int, int | str]:
        """The URI, the size, and the file system's mark of the file's version."""
        return self.name, self.nbytes or 0, " ".join(str(x) for x in self._state[1:] if x)

    def close(self) -> None:
        """Do nothing: the file stays where it is."""

    def _info(self) -> dict[str, Any]:
        with remote_errors(self.name, "read"):
            info: dict[str, Any] = self._fs.info(self._key)
            return info

    def open_file(self) -> io.RawIOBase:
        """Start reading the file as it is."""
        with remote_errors(self.name, "read"):
            return _RemoteFile(self.name, self._fs.open(self._key, "rb"))


class _RemoteFile(io.RawIOBase):
    def __init__(self, uri: str, file: Any) -> None:
        self._uri = uri
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:
        with remote_errors(self._uri, "read"):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with remote_errors(self._uri, "read"):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _state(info: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(info.get(name) for name in _STAMPS)
