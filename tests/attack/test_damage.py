"""Whatever happens to the bytes of an index: an answer is right, or DataError, or `check` tells."""

from __future__ import annotations

import functools
import random
import shutil
from typing import TYPE_CHECKING, Any

import lmdb
import numpy as np
import pytest

import neardup as nd
from damage import (
    PAGE,
    RIGHT,
    SILENT,
    answers,
    in_victim,
    make_index,
    problems_of,
    verdict,
)
from neardup.index.durable import folder_store
from neardup.index.segment_files import SegmentFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], Any]:
    """What copies an index of a kind to a folder, and gives its answers."""

    @functools.cache
    def made(kind: str) -> tuple[Path, Any]:
        folder = tmp_path_factory.mktemp("sound") / kind
        return folder, make_index(folder, kind, random.Random(3))

    def copied(kind: str, folder: Path) -> Any:
        source, expected = made(kind)
        shutil.copytree(source, folder)
        return expected

    return copied


def set_all(value: int) -> Callable[[Any], None]:
    return lambda array: array.fill(value)


def set_some(value: int) -> Callable[[Any], None]:
    return lambda array: array.reshape(-1)[1:-1:3].fill(value)


def damaged_array(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    """Overwrite an array of the index's segment."""
    path = next(folder.glob("segment-*.nds"))
    entry = SegmentFile(path).header["arrays"][name]
    data = bytearray(path.read_bytes())
    count = int(np.prod(entry["shape"]))
    change(np.frombuffer(data, entry["dtype"], count, entry["offset"]).reshape(entry["shape"]))
    path.write_bytes(data)


TOP = {"table_rows": 2**32 - 1, "table_starts": 2**32 - 1, "slots": 2**32 - 1, "ends": 2**62}


@pytest.mark.parametrize("change", [set_all, set_some])
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *(("str", name, value) for name, top in TOP.items() for value in (top, 0, 1, 700)),
        ("str", "ends", -1),
        ("str", "ids", 255),
        ("int", "table_rows", 2**31),
        ("int", "table_starts", 5000),
        ("int", "numbers", -1),
        ("int", "words", 0),
        ("int", "masks", 0),
        ("int", "table_factors", 0),
    ],
)
def test_arrays_full_of_the_worst_values_are_refused_or_found_by_check(
    kind: str, name: str, value: int, change: Any, tmp_path: Path, sound: Any
) -> None:
    index = tmp_path / "index"
    expected = sound(kind, index)
    damaged_array(index, name, change(value))
    code = in_victim(lambda: verdict(index, expected), tmp_path / "log")
    assert 0 <= code < SILENT, (tmp_path / "log").read_text()


def one_flip(folder: Path, name: str = "words") -> Path:
    def flip(array: Any) -> None:
        array.reshape(-1)[7] ^= 4

    damaged_array(folder, name, flip)
    return next(folder.glob("segment-*.nds"))


@pytest.mark.parametrize("name", ["words", "ids", "numbers"])
def test_what_is_damaged_is_not_rewritten_and_the_rest_stays_usable(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "distance", 16)
    index = tmp_path / "index"
    make_index(index, "int", random.Random(3), 120)
    path = one_flip(index, name)
    with nd.DurableIndex.open(index) as opened:
        before = len(opened)
        for begin in range(70_000, 70_100, 20):  # checkpoints, each of which would merge
            opened.add(range(begin, begin + 20), [f"w{i} new" for i in range(20)])
            opened.commit()
        assert len(opened) == before + 100
        assert opened.query("w3 new")
        with pytest.raises(nd.DataError, match=rf"{path.name} is damaged \(in {name}\)"):
            opened.compact()
    assert f"{path.name} is damaged (in {name})" in caplog.text
    assert any(path.name in problem for problem in nd.DurableIndex.open(index).check())
    with pytest.raises(nd.DataError, match=path.name):
        nd.DurableIndex.open(index, verify=True)


def test_the_checksums_of_a_sound_index_are_verified_at_opening(tmp_path: Path) -> None:
    expected = make_index(tmp_path / "index", "str", random.Random(3), 120)
    assert answers(tmp_path / "index", verify=True) == expected


def test_a_damaged_content_is_named(tmp_path: Path) -> None:
    index = tmp_path / "index"
    with nd.DurableIndex.open(index, store="features", recipe=nd.Recipe(ngram=1)) as writer:
        writer.add(["a", "b"], ["one two", "three four"])
        writer.commit()
        expected = writer.content("a").tobytes()
    path = next(index.glob("log-*.mdb"))
    data = path.read_bytes()
    assert expected in data
    path.write_bytes(data.replace(expected, expected[:-1] + bytes([expected[-1] ^ 1])))
    with nd.DurableIndex.open(index, readonly=True) as damaged:
        assert damaged.content("b") is not None
        with pytest.raises(nd.DataError, match=r"content of row 0 in .* is damaged"):
            damaged.content("a")
        assert any("1 contents are damaged" in problem for problem in damaged.check())


def entries(
    index: Path, name: bytes, change: Callable[[Any, list[tuple[bytes, bytes]]], None]
) -> None:
    """Change entries of one of the log's databases; LMDB finds nothing wrong in that."""
    path = max(index.glob("log-*.mdb"))
    with lmdb.open(str(path), subdir=False, max_dbs=4) as env:
        database = env.open_db(name, create=False)
        with env.begin(write=True, db=database) as txn:
            change(txn, [(bytes(key), bytes(value)) for key, value in txn.cursor()])


def lose(txn: Any, entries: list[tuple[bytes, bytes]]) -> None:
    txn.delete(entries[0][0])


def move(txn: Any, entries: list[tuple[bytes, bytes]]) -> None:
    key, value = entries[0]
    txn.delete(key)
    txn.put(key[:-1] + bytes([key[-1] ^ 64]), value)


def swap(txn: Any, entries: list[tuple[bytes, bytes]]) -> None:
    for (key, _), (_, value) in zip(entries, entries[::-1], strict=True):
        txn.put(key, value)


@pytest.mark.parametrize("change", [lose, move, swap])
@pytest.mark.parametrize("name", [b"log", b"removed", b"content", b"meta"])
def test_what_is_lost_or_moved_in_the_log_is_found(
    name: bytes, change: Any, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    make_index(index, "str", random.Random(3), 120)
    with nd.DurableIndex.open(index) as more:
        for identity in "xy":  # two records
            more.add([identity], ["one two"])
            more.commit()
    assert problems_of(index) == []
    entries(index, name, change)
    if (name, change) == (b"removed", swap):
        assert problems_of(index) == []  # there is only one
        return
    if name != b"content":
        with pytest.raises(nd.DataError):
            nd.DurableIndex.open(index, readonly=True)
    assert problems_of(index)
    with pytest.raises(nd.DataError):
        nd.DurableIndex.open(index, verify=True)


def test_a_log_without_its_last_commit_is_refused(tmp_path: Path) -> None:
    index = tmp_path / "index"
    with nd.DurableIndex.open(index) as writer:
        writer.add("a", 1)
    path = index / "log-1.mdb"
    before = path.read_bytes()
    with nd.DurableIndex.open(index) as writer:
        writer.add("b", 2)
    path.write_bytes(before)
    with pytest.raises(
        nd.DataError, match=r"it has commit 1, and there was commit 2.*remove .*head"
    ):
        nd.DurableIndex.open(index)
    (index / "head").unlink()
    assert list(nd.DurableIndex.open(index)) == [("a", 1)]


def test_an_index_of_an_earlier_format_is_refused_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("neardup.index.durable.durable_index.FORMAT", 4)
        with pytest.raises(nd.DataError, match=r"has index format 4, .*create it again"):
            nd.DurableIndex.open(tmp_path / "index", store="text", recipe=nd.Recipe())
    files = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    with pytest.raises(nd.DataError, match=r"has index format 4, .*create it again"):
        nd.DurableIndex.open(tmp_path / "index")
    assert {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()} == files


def test_a_file_of_zeros_is_no_index(tmp_path: Path) -> None:
    make_index(tmp_path / "index", "int", random.Random(1), 60)
    path = next((tmp_path / "index").glob("segment-*.nds"))
    path.write_bytes(bytes(PAGE))
    with pytest.raises(nd.DataError, match="does not begin as a segment"):
        nd.DurableIndex.open(tmp_path / "index")


def test_a_log_whose_pages_have_other_flags_is_refused_or_the_answers_are_right(
    tmp_path: Path,
) -> None:
    index, copy = tmp_path / "index", tmp_path / "copy"
    expected = make_index(index, "str", random.Random(1), 300)
    path = next(index.glob("log-*.mdb"))
    flags = 10  # of a page's first bytes, as LMDB has them
    places = [(page + flags, bit) for page in range(0, path.stat().st_size, PAGE) for bit in (0, 1)]

    def work() -> int:
        for place, bit in places:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(index, copy)
            data = bytearray(path.read_bytes())
            data[place] ^= 1 << bit
            (copy / path.name).write_bytes(data)
            if verdict(copy, expected) >= SILENT:
                return SILENT
        return RIGHT

    assert in_victim(work, tmp_path / "log", 120) == RIGHT, (tmp_path / "log").read_text()
