"""Files of other programs: their kinds, and the programs that convert them to text or records."""

from __future__ import annotations

import tarfile
from pathlib import PurePath
from typing import Final, NamedTuple

__all__ = ["HEAD_BYTES", "ForeignKind", "kind_of_bytes", "kind_of_path"]

HEAD_BYTES: Final = tarfile.BLOCKSIZE
"""Bytes that identify a kind: the header of a tar archive's first file."""


class ForeignKind(NamedTuple):
    """A kind of file, and advice on it."""

    name: str
    advice: str


_UNPACK: Final = "unpack it first, and name the files in it"
_PDF: Final = ForeignKind("a PDF file", "make a text of it: pdftotext FILE.pdf")
_DJVU: Final = ForeignKind("a DjVu file", "make a text of it: djvutxt FILE.djvu FILE.txt")
_RTF: Final = ForeignKind("an RTF file", "make a text of it: pandoc -t plain -o FILE.txt FILE.rtf")
_IMAGE: Final = ForeignKind("an image", "read the text in it: tesseract FILE.png FILE")
_SOUND: Final = ForeignKind(
    "a sound or film file", "make a text of it with a program for speech, such as whisper"
)
_OLE: Final = ForeignKind(
    "a document of old Office programs", "make a text of it: soffice --headless --convert-to txt"
)
_SLIDES: Final = ForeignKind(
    "a file of slides", "make a text of it: soffice --headless --convert-to pdf, then pdftotext"
)
_DATABASE: Final = ForeignKind(
    "an SQLite database", "write a table of it: sqlite3 -csv -header FILE.db 'select * from t'"
)
_EMAIL: Final = ForeignKind(
    "a message",
    "messages are read from a mailbox: (echo From -; cat FILE.eml; echo) >> mail.mbox",
)
_OUTLOOK: Final = ForeignKind(
    "a file of Outlook", "make a mailbox of it (msgconvert --mbox, readpst), which is read as .mbox"
)
_ZIP: Final = ForeignKind("a ZIP archive (.zip, .docx, .epub)", _UNPACK)
_SEVEN: Final = ForeignKind("a 7z archive", _UNPACK)
_RAR: Final = ForeignKind("a RAR archive", _UNPACK)
_TAR: Final = ForeignKind("a tar archive", _UNPACK)

_BY_BYTES: Final = (
    (b"PK\x03\x04", _ZIP),
    (b"PK\x05\x06", ForeignKind("a ZIP archive without files", _UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", _SEVEN),
    (b"Rar!\x1a\x07", _RAR),
    (b"\xfd7zXZ\x00", ForeignKind("xz data", _UNPACK)),
    (b"BZh91AY&SY", ForeignKind("bzip2 data", _UNPACK)),
    (b"\x1f\x8b\x08", ForeignKind("gzip data", _UNPACK)),
    (b"\x28\xb5\x2f\xfd", ForeignKind("zstd data", _UNPACK)),
    (b"%PDF-", _PDF),
    (b"AT&TFORM", _DJVU),
    (b"{\\rtf", _RTF),
    (b"\x89PNG\r\n", _IMAGE),
    (b"\xff\xd8\xff", _IMAGE),
    (b"GIF87a", _IMAGE),
    (b"GIF89a", _IMAGE),
    (b"II*\x00", _IMAGE),
    (b"MM\x00*", _IMAGE),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OLE),
    (b"SQLite format 3\x00", _DATABASE),
)
_BY_ENDING: Final = {
    ".pdf": _PDF, ".djvu": _DJVU, ".rtf": _RTF, ".doc": _OLE, ".ppt": _SLIDES, ".pptx": _SLIDES,
    ".odp": _SLIDES, ".eml": _EMAIL, ".msg": _OUTLOOK, ".pst": _OUTLOOK, ".7z": _SEVEN,
    ".rar": _RAR, ".sqlite": _DATABASE, ".sqlite3": _DATABASE, ".db": _DATABASE,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp"), _IMAGE),
    **dict.fromkeys((".mp3", ".wav", ".ogg", ".flac", ".mp4", ".mkv", ".webm"), _SOUND),
    **{
        f".{end}": ForeignKind(
            name, f"make a text of it: pandoc -t plain -o FILE.txt FILE.{end}"
        )
        for end, name in {
            "docx": "a Word document", "odt": "an OpenDocument text", "epub": "an e-book",
        }.items()
    },
}  # fmt: skip


def kind_of_bytes(head: bytes, path: str = "") -> ForeignKind | None:
    r"""The kind of a file by the first HEAD_BYTES of its data; None if it may be text.

    Args:
        head: The bytes.
        path: The file: its extension decides the kind of a ZIP or Office file.

    Example:
        >>> kind_of_bytes(b"PK\x03\x04...").name, kind_of_bytes(b"PK is a kind of sound")
        ('a ZIP archive (.zip, .docx, .epub)', None)
        >>> kind_of_bytes(b"PK\x03\x04...", "a.docx").name
        'a Word document'
    """
    kind = next((kind for magic, kind in _BY_BYTES if head.startswith(magic)), None)
    if kind in {_ZIP, _OLE}:
        return kind_of_path(path) or kind
    return _TAR if kind is None and _is_tar(head[:HEAD_BYTES]) else kind


def kind_of_path(path: str) -> ForeignKind | None:
    """The kind of a file by its extension, if other programs read it; else None.

    Example:
        >>> kind_of_path("paper.PDF").advice
        'make a text of it: pdftotext FILE.pdf'
    """
    return _BY_ENDING.get(PurePath(path).suffix.lower())


def _is_tar(head: bytes) -> bool:
    """Whether the header has a valid checksum, as in tar archives of every age."""
    if b"\0" not in head:  # a text, as a rule: nothing is computed
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
