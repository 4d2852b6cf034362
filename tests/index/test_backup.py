"""Backups of a live index: each is one commit, whole, and an index of its own."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import neardup as nd
from neardup.errors import DataError, FileError
from neardup.index.durable import folder_store
from neardup.index.segment_files import SegmentFile
from stories import FOLDERS, small_segments
from suite import JIT

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = [f"d{i}" for i in range(60)]
BACKUPS = 12 if JIT else 4


def by_distance(path: Path) -> Any:
    return nd.DurableIndex.open(path, distance=1, store="text")


def by_similarity(path: Path) -> Any:
    return nd.DurableIndex.open(path, similarity=0.9)


def write(index: Any, version: int) -> None:
    """Every document says the version."""
    if hasattr(index, "similarity"):
        index.add(NAMES, [[version, 1000 + i] for i in range(60)])
    else:
        codes = np.array([version << 8 | i for i in range(60)], np.uint64)
        index.add(NAMES, codes, [f"{each} {version}" for each in NAMES])


def versions(index: Any) -> set[int]:
    """Of all documents and of what is kept of them."""
    result: set[int] = set()
    for ids, codes, contents in index.documents():
        assert len(ids) == len(contents)
        if hasattr(index, "similarity"):
            result |= {int(each.min()) for each in contents}
        else:
            result |= {code >> 8 for code in codes[:, 0].tolist()}
            result |= {int(each.partition(" ")[2]) for each in contents}
    return result


@pytest.fixture(params=[by_distance, by_similarity])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Either kind of index, with small segments."""
    small_segments(monkeypatch)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 100)
    return request.param


@pytest.fixture
def folder() -> Path:
    """Where syncs cost little."""
    return Path(tempfile.mkdtemp(dir=FOLDERS))


def test_each_backup_beside_a_writer_is_one_commit(make: Callable[..., Any], folder: Path) -> None:
    index, stop = make(folder / "index"), threading.Event()
    write(index, 1)
    index.commit()

    def work() -> None:
        version = 1
        while not stop.is_set():
            version += 1
            write(index, version)
            if version % 7 == 0:
                index.compact()
            else:
                index.commit()

    writer = threading.Thread(target=work)
    writer.start()
    reader = nd.DurableIndex.open(folder / "index", readonly=True)
    try:
        for number in range(BACKUPS):
            (reader if number % 2 else index).backup(folder / f"{number}")
            with nd.DurableIndex.open(folder / f"{number}") as copy:
                assert copy.check() == []
                assert (len(copy), len(versions(copy))) == (60, 1)
                write(copy, 0)
            with nd.DurableIndex.open(folder / f"{number}", readonly=True) as copy:
                assert versions(copy) == {0}
    finally:
        stop.set()
        writer.join()
    index.close()
    assert index.check() == []


def test_files_are_linked_and_outlive_the_index(make: Callable[..., Any], folder: Path) -> None:
    with make(folder / "index") as index:
        write(index, 1)
        index.compact()
        index.add("later", 5 << 32, "text") if not hasattr(index, "similarity") else None
        index.backup(folder / "copy")
        (file,) = (folder / "copy").glob("segment-*.nds")
        assert file.stat().st_nlink == 2
        write(index, 2)
        index.compact()
    with nd.DurableIndex.open(folder / "copy", readonly=True) as copy:
        assert versions(copy) == {1}
        assert "later" not in copy


def test_another_disk_gets_copies(
    make: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    with make(folder / "index") as index:
        write(index, 3)
        index.compact()
        index.backup(folder / "copy")
    with nd.DurableIndex.open(folder / "copy", readonly=True, verify=True) as copy:
        assert versions(copy) == {3}


def test_what_is_there_is_not_overwritten(folder: Path) -> None:
    with by_distance(folder / "index") as index:
        index.backup(folder / "copy")
        with pytest.raises(FileError, match="exists and is not empty: name a new folder"):
            index.backup(folder / "copy")
        (folder / "file").touch()
        with pytest.raises(FileError, match="exists and is not empty"):
            index.backup(folder / "file")
        with pytest.raises(FileError, match="is in the index: back up to a folder elsewhere"):
            index.backup(folder / "index" / "deep" / "copy")
        with pytest.raises(FileError, match="cannot write"):
            index.backup(folder / "file" / "copy")
    assert sorted(each.name for each in folder.iterdir()) == ["copy", "file", "index"]


def test_a_damaged_backup_is_not_restored(folder: Path) -> None:
    with by_distance(folder / "index") as index:
        write(index, 1)
        index.compact()
        index.backup(folder / "copy")
    (file,) = (folder / "copy").glob("segment-*.nds")
    data = bytearray(file.read_bytes())
    data[SegmentFile(file).header["arrays"]["words"]["offset"]] ^= 1
    file.unlink()
    file.write_bytes(data)
    with pytest.raises(DataError, match="is damaged"):
        nd.DurableIndex.open(folder / "copy", readonly=True, verify=True)
