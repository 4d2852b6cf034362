"""Texts that are not UTF-8: detecting their encoding, and reading and writing them as UTF-8."""

from __future__ import annotations

import codecs
import io
import re
import zlib
from typing import TYPE_CHECKING, Any, Final

from neardup.documents.files.compression import ByteReader
from neardup.documents.files.input_bytes import WrappedInput
from neardup.errors import DataError

if TYPE_CHECKING:
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.input_bytes import Input

__all__ = [
    "UTF8",
    "DecodedInput",
    "EncodedFile",
    "decoded_as",
    "encoding_advice",
    "encoding_of_bom",
    "guessed",
]

UTF8: Final = ("utf-8", "utf-8-sig", "ascii")
_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARACTER: Final = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_LETTER: Final = re.compile(rb"[A-Za-z\x80-\xff]")
_TURKISH: Final = re.compile(rb"[\xd0\xdd\xde\xf0\xfd\xfe]")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_LEAST_BYTES: Final = 8
_BLOCK_BYTES: Final = 1 << 20


def encoding_of_bom(head: bytes) -> str | None:
    """The encoding that the first bytes say, unless it is UTF-8."""
    return next((name for bom, name in _BOMS if head.startswith(bom)), None)


def decoded_as(data: bytes, declared: str | None) -> str:
    r"""The text of bytes in the declared encoding, or in UTF-8 or the most likely one.

    Bytes that these cannot decode are replaced.

    Example:
        >>> decoded_as(b"gr\xfc\xdfe", "utf-8"), decoded_as("Tee".encode("utf-16-le"), "utf-16-le")
        ('grüße', 'Tee')
    """
    for name in (declared, "utf-8", guessed(data)):
        try:
            return data.decode(name or "utf-8").encode(errors="replace").decode()
        except (LookupError, UnicodeError):
            continue
    return data.decode(errors="replace")


def guessed(data: bytes) -> str | None:
    """The encoding that most likely explains bytes that are not UTF-8.

    Returns:
        Its name, "?" for one of the many others with bytes above 127, or None if the bytes rather
        are damaged UTF-8 or no text at all.

    Example:
        >>> guessed("Müller, größer".encode("latin-1"))
        'cp1252'
    """
    if (known := encoding_of_bom(data)) is not None:
        return known
    zeros = [data[i::2].count(0) / max(1, len(data[i::2])) for i in (0, 1)]
    if max(zeros) > 0.4 and min(zeros) < 0.1 and len(data) >= _LEAST_BYTES:
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    high = len(_HIGH.findall(data))
    whole = sum(map(len, _CHARACTER.findall(data)))
    if high == 0 or 2 * whole > high or _CONTROL.search(data):
        return None
    turkish = len(_TURKISH.findall(data))
    letters = len(_LETTER.findall(data))
    if 5 * turkish >= high and turkish > 1:
        return "cp1254"
    return "?" if 5 * high > 2 * letters and high > 8 else _western(data)


def _western(data: bytes) -> str:
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def encoding_advice(data: bytes) -> tuple[str, str] | None:
    """A hint and advice for bytes that are not UTF-8; None if no encoding explains them.

    Args:
        data: The surrounding bytes.

    Returns:
        The end of a sentence that begins with "not UTF-8", and the advice.
    """
    name = guessed(data)
    if name is None:
        return None
    if name == "?":
        return "", "pass --encoding NAME, such as cp1251, gb18030, big5 or shift_jis"
    return f", it looks like {name}", f"pass --encoding {name}"


class DecodedInput(WrappedInput):
    """An input in another encoding, read as UTF-8.

    Args:
        origin: The input.
        encoding: Its encoding. Reading to the end checks that the text encodes to the same bytes,
            since kept records are written so.
    """

    def __init__(self, origin: Input, encoding: str) -> None:
        """Wrap it; nothing is read."""
        super().__init__(origin)
        self.encoding = encoding

    def open(self) -> ByteReader:
        """Start reading from the first byte, decompressed and as UTF-8."""
        return _Reader(self.name, self._origin.open(), self.encoding)


class _Reader(ByteReader):
    """Counts the bytes of the input, not those of UTF-8."""

    def __init__(self, name: str, inner: ByteReader, encoding: str) -> None:
        super().__init__(name, _Utf8(name, inner, encoding))
        self._inner = inner

    @property
    def consumed(self) -> int:
        """Bytes of the input, compressed as it is, taken so far."""
        return self._inner.consumed

    @property
    def is_unchecked(self) -> bool:
        """See ByteReader.is_unchecked."""
        return self._inner.is_unchecked


class _Utf8(io.RawIOBase):
    def __init__(self, name: str, inner: ByteReader, encoding: str) -> None:
        self._name, self._inner, self._encoding = name, inner, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoder = codecs.getincrementalencoder(encoding)()
        self._waiting = b""
        self._lines = 0
        self._sums = [0, 0]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            block = self._inner.piece(_BLOCK_BYTES, self._lines)
            try:
                text = self._decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line = self._lines + self._before(error).count("\n") + 1
                raise DataError(
                    f"{self._name}:{line}: not {self._encoding}"
                    f" (byte {error.object[error.start]:#04x}): pass another --encoding"
                ) from None
            self._sums[0] = zlib.crc32(block, self._sums[0])
            self._sums[1] = zlib.crc32(self._encoder.encode(text, final=not block), self._sums[1])
            if not block:
                self._check()
                return 0
            self._lines += text.count("\n")
            self._waiting = text.encode("utf-8", "surrogatepass")
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def _before(self, error: UnicodeDecodeError) -> str:
        return bytes(error.object[: error.start]).decode(self._encoding, "replace")

    def _check(self) -> None:
        if self._sums[0] != self._sums[1]:
            raise DataError(
                f"{self._name}: {self._encoding} writes some of its characters in several ways, so"
                " that what is kept would not come out as it was; convert it first: iconv -f"
                f" {self._encoding} -t utf-8"
            )

    def close(self) -> None:
        if not self.closed:
            self._inner.__exit__(None, None, None)
        super().close()


class EncodedFile:
    """An output that takes UTF-8 and writes another encoding.

    Args:
        target: For the encoded bytes.
        encoding: Their encoding.
    """

    def __init__(self, target: AtomicFile, encoding: str) -> None:
        """Begin at the start of a file, or of one more input in it."""
        self._target = target
        self.path = target.path
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoder = codecs.getincrementalencoder(encoding)()
        self.ends_line = target.ends_line

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes of UTF-8, which may end within a character."""
        if len(data):
            self._target.write(self._encoder.encode(self._decoder.decode(data)))
            self.ends_line = data[-1:] == b"\n" or bytes(data) == codecs.BOM_UTF8
        return len(data)

    def finish(self) -> None:
        """End the text: an encoding with several character sets goes back to its first one."""
        self._target.write(self._encoder.encode("", final=True))
