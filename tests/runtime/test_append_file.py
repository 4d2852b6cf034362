"""What is appended to a file is there whole or not at all, wherever the disk becomes full."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from full_disk import largest_file
from neardup.errors import FileError
from neardup.runtime.storage import append_file
from neardup.runtime.storage.append_file import AppendFile

if TYPE_CHECKING:
    from pathlib import Path


class ShortWrites:
    """Stands for `os`: of each write a few bytes are taken, and none beyond a size in all."""

    def __init__(self, piece: int, room: int) -> None:
        self._piece, self.room = piece, room

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: Any) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(descriptor, data[: min(self._piece, self.room)])
        self.room -= written
        return written


FIRST, SECOND = b"the first line\n", b"and another one\n"


@pytest.mark.parametrize("piece", [1, 4, 100])
def test_a_write_that_stops_at_any_byte_leaves_no_part(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in range(len(SECOND)):
        path = tmp_path / f"{room}"
        file = AppendFile(path)
        file.write(FIRST)
        full = ShortWrites(piece, room)
        with monkeypatch.context() as patch:
            patch.setattr(append_file, "os", full)
            with pytest.raises(FileError, match="no space left on device; free some space"):
                file.write(SECOND)
        assert path.read_bytes() == FIRST
        file.write(SECOND)
        mark = file.mark()
        file.check(0, mark)
        assert mark["nbytes"] == len(FIRST + SECOND)
        assert path.read_bytes() == FIRST + SECOND
        file.close()


def test_a_file_that_may_not_grow_keeps_its_whole_lines(tmp_path: Path) -> None:
    for most in range(len(FIRST), len(FIRST + SECOND)):
        path = tmp_path / f"{most}"
        file = AppendFile(path)
        file.write(FIRST)
        with largest_file(most), pytest.raises(FileError, match="File too large"):
            file.write(SECOND)
        assert path.read_bytes() == FIRST
        file.close()


def test_what_another_process_appended_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "both"
    mine, other = AppendFile(path), AppendFile(path)

    class Between(ShortWrites):
        def write(self, descriptor: int, data: Any) -> int:
            if not self.room:
                other.write(b"whole\n")
            return super().write(descriptor, data)

    between = Between(100, 3)
    with monkeypatch.context() as patch:
        patch.setattr(append_file, "os", between)
        patch.setattr(other, "write", lambda data: os.write(other.fileno(), data))
        with pytest.raises(FileError):
            mine.write(SECOND)
    assert path.read_bytes() == SECOND[:3] + b"whole\n"
    mine.close()
    other.close()


def test_a_mark_knows_nothing_of_what_was_cut_off(tmp_path: Path) -> None:
    with contextlib.closing(AppendFile(tmp_path / "file")) as file:
        file.write(FIRST)
        first = file.mark()
        file.write(b"not wanted")
        file.cut(first["nbytes"])
        file.write(SECOND)
        file.check(first["nbytes"], file.mark())
        assert file.read() == FIRST + SECOND
