"""Bytes in and out of gzip and zstd, and the counting reader under every text format."""

from __future__ import annotations

import contextlib
import io
import lzma
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from neardup.documents.files.foreign import HEAD_BYTES, kind_of_bytes
from neardup.documents.files.problems import file_error
from neardup.errors import DataError, FileError
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

__all__ = [
    "CODECS",
    "MAGIC_BYTES",
    "SHOWN_BYTES",
    "UNCHECKED",
    "ByteReader",
    "LongLine",
    "codec_of_bytes",
    "codec_of_path",
    "encoder",
    "lacks_checksum",
    "line_ends",
]

CODECS: Final = {".gz": "gzip", ".zst": "zstd"}
MAGIC: Final = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
MAGIC_BYTES: Final = 4
_BUFFER_BYTES: Final = 1 << 20
_GZIP_LEVEL: Final = 6
_XZ_BYTES: Final = 1 << 28  # of memory that a stream may need
_COMPRESSED_BYTES: Final = 1 << 20  # of a member or frame, before compression
SHOWN_BYTES: Final = 1000
"""Bytes of a long record that are shown."""
UNCHECKED: Final = (
    "a .zst input carries no checksum of its content, so damage in it may be read as other records;"
    " the program zstd adds one"
)
"""The note about inputs without checksums."""
_DESCRIPTOR: Final = 4  # the byte of a zstd frame that says what its header has
_HAS_CHECKSUM: Final = 1 << 2  # a bit of it
_LINE_END: Final = ord("\n")
_DECODED_BYTES: Final = 1 << 15  # Arrow drops this much of what precedes a broken place


def codec_of_path(path: str) -> str | None:
    """Name the compression that a path's last extension stands for, or None."""
    return next((codec for end, codec in CODECS.items() if path.lower().endswith(end)), None)


def codec_of_bytes(head: bytes) -> str | None:
    """Name the compression that the first bytes of a stream stand for, or None."""
    return next((codec for codec, magic in MAGIC.items() if head.startswith(magic)), None)


def lacks_checksum(head: bytes) -> bool:
    """Whether the first bytes of a zstd stream say that its first frame has no checksum."""
    return len(head) > _DESCRIPTOR and not head[_DESCRIPTOR] & _HAS_CHECKSUM


def line_ends(data: bytes) -> int:
    """The number of line ends, in a twentieth of the time of `data.count` (measured)."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LINE_END))


class LongLine(NamedTuple):
    """A skipped line that is longer than the limit."""

    nbytes: int  # its end included; of an incompletely read line, the bytes read
    begin: bytes  # its first SHOWN_BYTES
    quotes: int  # how many " are in it


class ByteReader:
    """Reads one input front to back: decompresses, counts, and copies to a spool if given one.

    Args:
        name: The input's name, for messages.
        file: An unbuffered binary file; it is closed with the reader.
        codec: "gzip", "zstd", "bz2", "xz" or None.
        head: Bytes already taken from the file.
        spool: Where to copy every decompressed byte, or None.
    """

    def __init__(
        self,
        name: str,
        file: io.RawIOBase,
        codec: str | None = None,
        head: bytes = b"",
        spool: BinaryIO | None = None,
    ) -> None:
        """Wrap the file; nothing is read yet."""
        self._name = name
        self._codec = codec
        self._counted = _Counted(file, head)
        self._decoded: _Decoded | None = None
        self._is_begun = False
        self.long_line: LongLine | None = None
        raw: io.RawIOBase = self._counted
        if codec is not None:
            raw = self._decoded = _Decoded(self._counted, codec)
        self._seekable = codec is None and spool is None and file.seekable()
        self._buffered = io.BufferedReader(
            raw if spool is None else _Tee(raw, spool),
            _BUFFER_BYTES if codec is None else _DECODED_BYTES,  # larger reads pass the buffer by
        )

    @property
    def codec(self) -> str | None:
        """The compression of the input; None if it is not compressed."""
        return self._codec

    @property
    def consumed(self) -> int:
        """Bytes of the input, compressed as it is, taken so far."""
        return self._counted.count

    @property
    def failure(self) -> str | None:
        """The reason why the compressed stream ended early, if it did."""
        return None if self._decoded is None else self._decoded.failure

    @property
    def is_unchecked(self) -> bool:
        """Whether the input is zstd and, as far as it was read, without a checksum."""
        return self._codec == "zstd" and lacks_checksum(self._counted.head)

    def block(
        self, nbytes: int, row: int, longest: int | None = None, *, passes: bool = True
    ) -> bytes:
        """Read whole lines, ends included, of at least `nbytes` together; b"" at the end.

        A line above `longest` ends the block, which may then be empty, and is skipped: `long_line`
        describes it, and is None if there was none.

        Args:
            nbytes: The number of bytes at which to stop.
            row: The number of lines read before, for messages.
            longest: The most bytes of a line without its end; None for any number.
            passes: Whether to skip a longer line, which may never end; otherwise the reader cannot
                be used after a `long_line`.

        Raises:
            DataError: If the compressed stream is broken; names the line reached. Also if the first
                bytes are not a text.
            FileError: If the read fails.
        """
        with self._named_errors():
            self.long_line = None
            nbytes = nbytes if longest is None else min(nbytes, longest)
            block = self._buffered.read(nbytes)
            if len(block) == nbytes and not block.endswith(b"\n"):
                block = self._to_line_end(block, longest, passes=passes)
        self._check_begin(block or (self.long_line.begin if self.long_line else b""))
        self._check_stream(block, row)
        return block

    def piece(self, nbytes: int, row: int) -> bytes:
        """As `block`, but the last line may go on."""
        block = self.read(nbytes)
        self._check_begin(block)
        self._check_stream(block, row)
        return block

    def _check_begin(self, block: bytes) -> None:
        """Refuse an input whose first block is not text."""
        kind = None if self._is_begun else kind_of_bytes(block[:HEAD_BYTES], self._name)
        self._is_begun = True
        if kind is not None:
            raise DataError(f"{self._name}: it is {kind.name}, which cannot be read: {kind.advice}")

    def _to_line_end(self, block: bytes, longest: int | None, *, passes: bool) -> bytes:
        if longest is None:
            return block + self._buffered.readline()
        begin = block.rfind(b"\n") + 1
        limit = longest + 1 - (len(block) - begin)
        rest = self._buffered.readline(limit)
        if len(rest) < limit or rest.endswith(b"\n"):
            return block + rest
        line = block[begin:] + rest
        nbytes, quotes = len(line), line.count(b'"')
        while (
            passes and not rest.endswith(b"\n") and (rest := self._buffered.readline(_BUFFER_BYTES))
        ):
            nbytes += len(rest)
            quotes += rest.count(b'"')
        self.long_line = LongLine(nbytes, line[:SHOWN_BYTES], quotes)
        return block[:begin]

    def _check_stream(self, block: bytes, row: int) -> None:
        if self.failure is not None:
            reached = row + max(line_ends(block), 1)
            raise DataError(
                f"{self._name}:{reached}: the {self._codec} stream is broken near here:"
                f" {self.failure}; fetch or compress the file again"
            )

    def read(self, nbytes: int) -> bytes:
        """Read `nbytes`, fewer only at the end."""
        with self._named_errors():
            return self._buffered.read(nbytes)

    def skip(self, nbytes: int) -> None:
        """Skip `nbytes`."""
        if self._seekable:
            self._buffered.seek(nbytes, io.SEEK_CUR)
            return
        while nbytes > 0 and (data := self.read(min(nbytes, _BUFFER_BYTES))):
            nbytes -= len(data)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except FileError:
            raise
        except OSError as error:
            raise file_error(self._name, "read", error) from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._buffered.close()
        self._counted.close()


class _Counted(io.RawIOBase):
    def __init__(self, file: io.RawIOBase, head: bytes) -> None:
        self._file = file
        self._rest = head
        self.head = head  # the first bytes, to be looked at again
        self.count = len(head)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def readinto(self, buffer: Any) -> int:
        if self._rest:
            n = min(len(buffer), len(self._rest))
            buffer[:n] = self._rest[:n]
            self._rest = self._rest[n:]
            return n
        n = self._file.readinto(buffer) or 0
        if len(self.head) <= _DESCRIPTOR:
            self.head += bytes(buffer[: min(n, _DESCRIPTOR + 1)])
        self.count += n
        return n

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Decoded(io.RawIOBase):
    """A stream that ends where its compression breaks, with the reason in `failure`.

    So the reader gets every complete line first, and can name the line where it broke.
    """

    def __init__(self, file: io.RawIOBase, codec: str) -> None:
        self._stream: Any = (
            _Xz(file)
            if codec == "xz"
            else pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)
        )
        self.failure: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.failure is not None:
            return 0
        try:
            return int(self._stream.readinto(buffer[:_DECODED_BYTES]))
        except FileError:
            raise
        except OSError as error:
            if error.errno is not None:
                raise
            self.failure = str(error)
            return 0


class _Xz:
    """A decoder of one .xz stream, or several one after the other."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file
        self._stream, self._rest = self._new_stream(), b""

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._read(len(buffer))
        except lzma.LZMAError as error:
            raise OSError(str(error)) from None
        buffer[: len(data)] = data
        return len(data)

    def _read(self, nbytes: int) -> bytes:
        while True:
            if self._stream.eof:  # others may follow, and zeros between them
                rest = self._stream.unused_data.lstrip(b"\0")
                rest = rest or (self._file.read(_BUFFER_BYTES) or b"").lstrip(b"\0")
                if not rest:
                    return b""
                self._stream, self._rest = self._new_stream(), rest
            if not self._rest and self._stream.needs_input:
                self._rest = self._file.read(_BUFFER_BYTES) or b""
                if not self._rest:
                    raise lzma.LZMAError("it ends too early")
            data, self._rest = self._stream.decompress(self._rest, nbytes), b""
            if data:
                return data

    @staticmethod
    def _new_stream() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_BYTES)


class _Tee(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, spool: BinaryIO) -> None:
        self._raw = raw
        self._spool = spool

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._raw.readinto(buffer) or 0
        try:
            self._spool.write(buffer[:n])
        except OSError as error:
            raise file_error("the temporary copy of the input", "write", error) from None
        return n


class Encoder(Protocol):
    """A filter for an output's bytes."""

    def write(self, data: bytes | memoryview) -> Any:
        """Take more bytes."""

    def close(self) -> None:
        """Write the end of the compressed stream; the file below stays open."""


def encoder(file: BinaryIO, codec: str | None, workers: int | None = None) -> Encoder:
    """An encoder that writes compressed data to `file`; closing it leaves the file open.

    Args:
        file: Where to write.
        codec: "gzip", "zstd", or None for none.
        workers: Threads that compress; by default all available processors.
    """
    if codec is None:
        return _Plain(file)
    return _Compressor(file, _COMPRESS[codec], worker_count(workers))


def _gzip(data: bytes) -> bytes:
    return zlib.compress(data, _GZIP_LEVEL, wbits=31)


def _zstd(data: bytes) -> bytearray:
    """A frame with the checksum of its content, which Arrow leaves out (RFC 8878, 3.1.1)."""
    from neardup.kernels.documents.checksum import content_checksum

    frame = bytearray(pa.Codec("zstd").compress(data, asbytes=True))
    frame[_DESCRIPTOR] |= _HAS_CHECKSUM
    frame += int(content_checksum(np.frombuffer(data, np.uint8))).to_bytes(4, "little")
    return frame


_COMPRESS: Final[dict[str, Callable[[bytes], bytes | bytearray]]] = {"gzip": _gzip, "zstd": _zstd}


class _Plain:
    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write

    def close(self) -> None:
        """Do nothing: there is no stream to end."""


class _Compressor:
    """Compresses blocks in threads; several members or frames are one stream to every reader.

    gzip (RFC 1952, 2.2) and zstd (RFC 8878, 3) define consecutive members and frames.
    """

    def __init__(
        self, file: BinaryIO, compress: Callable[[bytes], bytes | bytearray], workers: int
    ) -> None:
        self._file = file
        self._compress = compress
        self._workers = workers
        self._threads = ThreadPoolExecutor(self._workers, "neardup-compress")
        self._block = bytearray()
        self._waiting: deque[Future[bytes | bytearray]] = deque()

    def write(self, data: bytes | memoryview) -> None:
        self._block += data
        if len(self._block) >= _COMPRESSED_BYTES:
            self._send()
            self._write_until(2 * self._workers)

    def close(self) -> None:
        self._send()
        self._write_until(0)
        self._threads.shutdown()

    def _send(self) -> None:
        block, self._block = bytes(self._block), bytearray()
        self._waiting.append(self._threads.submit(self._compress, block))

    def _write_until(self, waiting: int) -> None:
        while len(self._waiting) > waiting:
            self._file.write(self._waiting.popleft().result())
