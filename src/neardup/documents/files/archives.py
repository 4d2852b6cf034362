"""Archives and packed data, told by their first bytes: none of them is read as text or records."""

from __future__ import annotations

import tarfile
from typing import Final

__all__ = ["HEAD_BYTES", "packed_as"]

HEAD_BYTES: Final = tarfile.BLOCKSIZE
"""What tells them: the header of a tar archive's first file."""
_KINDS: Final = (
    (b"PK\x03\x04", "a ZIP archive (.zip, .docx, .epub)"),
    (b"PK\x05\x06", "a ZIP archive without files"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"BZh91AY&SY", "bzip2 data"),
    (b"\x1f\x8b\x08", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
)


def packed_as(head: bytes) -> str | None:
    r"""What the first HEAD_BYTES of decompressed data say that it is; None where it may be text.

    Example:
        >>> packed_as(b"PK\x03\x04..."), packed_as(b"PK is a kind of sound")
        ('a ZIP archive (.zip, .docx, .epub)', None)
    """
    kind = next((kind for magic, kind in _KINDS if head.startswith(magic)), None)
    return "a tar archive" if kind is None and _is_tar(head[:HEAD_BYTES]) else kind


def _is_tar(head: bytes) -> bool:
    """Whether the header's checksum is right, which tar archives of every age have."""
    if b"\0" not in head:  # a text, as a rule: nothing is computed
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
