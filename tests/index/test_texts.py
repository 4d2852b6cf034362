"""Texts that an index keeps: read by id, counted, and removed for good."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import FileError, UsageError
from neardup.index.durable import environment, folder_store, log_store
from neardup.runtime.storage import durable_files
from stories import durable, quiet, reopened

if TYPE_CHECKING:
    from collections.abc import Callable

RECIPE = nd.Recipe(ngram=1)
MAKERS: dict[str, Any] = {
    "memory, distance": lambda: nd.Index(distance=3, recipe=RECIPE, store="text"),
    "memory, similarity": lambda: nd.Index(similarity=0.6, recipe=RECIPE, store="text"),
    "durable, distance": lambda: durable(distance=3, recipe=RECIPE, store="text"),
    "durable, similarity": lambda: durable(similarity=0.6, recipe=RECIPE, store="text"),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    """Either kind of index, in memory or in a folder."""
    return MAKERS[request.param]


def words(row: int, count: int = 20) -> str:
    """A text that shares no word with those of other rows, whose compressed form is its own too."""
    return " ".join(f"w{row}x{hash((row, at)) % 10**9}" for at in range(count)) + " éñ字"


def test_a_text_goes_with_its_document(make: Any) -> None:
    index = make()
    index.add(["a", "b"], [words(1), words(2)], payloads=[1, None])
    assert index.add("c", None) == 0
    assert [x.state for x in index.offer_many(["c", "d"], [words(1), words(3)])] == ["seen", "new"]
    assert index.add_if_new("b", words(4)) is None
    assert index.contents(["a", "b", "d"]) == [words(1), words(4), words(3)]
    with index.snapshot() as before:
        index.remove("a")
        index.touch("b")
        assert before.content("a") == words(1)
    with pytest.raises(KeyError):
        index.content("a")
    index.commit()
    index.compact()
    assert (index.store, index.stats()["store"]) == ("text", "text")
    with index.snapshot() as seen:
        assert [list(each) for _, _, each in seen.documents()] == [index.contents(["d", "b"])]
    other = make()
    other.add(["e", "b"], [words(5), words(6)])
    index.merge(other)
    assert index.contents(["d", "e", "b"]) == [words(3), words(5), words(6)]
    ready = pickle.loads(pickle.dumps(index.prepare("f", words(7))))  # noqa: S301
    assert index.add_new(ready)["state"].to_pylist() == ["new"]
    assert index.content("f") == words(7)


def test_texts_outlive_the_process(make: Any, tmp_path: Path) -> None:
    index = make()
    index.add(["a", "b"], [words(1), words(2)])
    index.remove("a")
    if hasattr(index, "path"):
        index = reopened(index)
        index.backup(tmp_path / "copy")
        copies = [index, nd.DurableIndex.open(tmp_path / "copy", store="text")]
    else:
        index.save(tmp_path / "saved")
        sent = pickle.loads(pickle.dumps(index))  # noqa: S301
        copies = [nd.Index.load(tmp_path / "saved"), sent]
    for each in copies:
        assert (each.store, each.content("b")) == ("text", words(2))
        each.add("c", words(3))
        assert each.contents(["c", "b"]) == [words(3), words(2)]


def test_what_has_no_text_needs_one(make: Any) -> None:
    index = make()
    for call in (index.add, index.add_new):
        with pytest.raises(UsageError, match="keeps texts, and 'a' comes with a fingerprint or"):
            call(["a"], [7] if index.by == "distance" else [[7, 8]])
    if index.by == "similarity":
        sets = index.sets_of([words(1), words(2)])
        with pytest.raises(UsageError, match="keeps texts, and 'a' comes with a fingerprint or"):
            index.add(["a", "b"], sets)
        index.add(["a", "b"], sets, [words(1), words(2)])
        assert index.contents(["b", "a"]) == [words(2), words(1)]
        assert index.features("a").tolist() == sets.of(0).tolist()
    bare = nd.Index(**{index.by: 3 if index.by == "distance" else 0.6}, recipe=RECIPE)
    bare.add("z", words(9))
    with pytest.raises(UsageError, match="contents would be missing"):
        index.merge(bare)
    bare.merge(index)
    assert bare.store == ("none" if index.by == "distance" else "features")


def test_the_store_is_checked(tmp_path: Path) -> None:
    for options in ({"similarity": 0.8}, {"distance": 3}):
        with pytest.raises(UsageError, match=r"store is 'texts'.*: use (one of none, )?features"):
            nd.Index(**options, store="texts")
    with pytest.raises(UsageError, match="store is 'none', which only an index by distance"):
        nd.DurableIndex.open(tmp_path / "index", similarity=0.8, store="none")
    nd.DurableIndex.create(tmp_path / "index", similarity=0.8, store="text").close()
    with pytest.raises(UsageError, match="made with 'text'"):
        nd.DurableIndex.open(tmp_path / "index", similarity=0.8, store="features")
    nd.DurableIndex.create(tmp_path / "plain", similarity=0.8).close()
    with pytest.raises(UsageError, match="made with 'features'"):
        nd.DurableIndex.open(tmp_path / "plain", store="text")


def traces(folder: Path, texts: list[str]) -> list[int]:
    """Which texts have bytes in any file of a folder, as they are or compressed."""
    data = b"".join(each.read_bytes() for each in folder.iterdir())
    result = []
    for at, text in enumerate(texts):
        plain = text.encode("utf8", "surrogatepass")
        packed = bytes(pa.compress(plain, codec="zstd", asbytes=True))
        # From the middle on: texts of alike letters begin with alike tables when compressed.
        pieces = [
            each[i : i + 24] for each in (plain, packed) for i in (len(each) // 2, len(each) - 24)
        ]
        if any(piece in data for piece in pieces):
            result.append(at)
    return result


LENGTHS = [4, 30, 120, 900]
"""Of texts in words: some share a page of the log, some have several."""


@pytest.mark.parametrize("kind", [{"distance": 3}, {"similarity": 0.6}], ids=str)
def test_no_byte_of_a_removed_text_is_left(kind: dict[str, Any], monkeypatch: Any) -> None:
    monkeypatch.setattr(log_store, "MOST_SMALL", 4)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, next(iter(kind)), 60)
    index = durable(**kind, recipe=RECIPE, store="text")
    texts = [words(row, LENGTHS[row % 4]) for row in range(240)]
    for first in range(0, 200, 8):
        index.add([f"id{row}" for row in range(first, first + 8)], texts[first : first + 8])
        index.commit()
    gone = list(range(0, 200, 3))
    index.remove([f"id{row}" for row in gone])
    index.commit()
    for row in range(1, 200, 9):  # replaced
        index.add(f"id{row}", texts[200 + row // 9])
        gone.append(row)
        index.commit()
    quiet(index)
    with index.snapshot() as seen:
        assert len(traces(index.path, [texts[row] for row in gone])) > 5  # in free pages
        index.compact()
        assert seen.content("id2") == texts[2]
    kept = sorted(set(range(200)) - set(gone)) + list(range(200, 223))
    assert traces(index.path, [texts[row] for row in gone]) == []
    assert len(traces(index.path, [texts[row] for row in kept])) == len(kept)
    assert index.content("id2") == texts[2]
    index.expire(time.time() + 1)
    index.compact()
    assert traces(index.path, texts) == []
    assert index.stats()["content_bytes"] == 0
    index.close()
    assert traces(index.path, texts) == []


class Moments:
    """Counts the calls by which a compaction changes the folder, and lets one of them fail.

    Args:
        at: Which; there is one before each call, and one after it.
        fail: What happens then, given the name of the call.
    """

    def __init__(self, at: int, fail: Callable[[str], None]) -> None:
        self.at, self.fail, self.count = at, fail, 0

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """Watch these calls from now on."""
        for owner, name in (
            (environment.Environment, "write"),
            (environment.Environment, "rewrite"),
            (Path, "replace"),
            (Path, "unlink"),
            (durable_files, "sync_folder"),
        ):
            patch.setattr(owner, name, self.watched(getattr(owner, name)))

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call between two moments."""

        def run(*arguments: Any, **options: Any) -> Any:
            self.pass_one(f"before {call.__name__}")
            result = call(*arguments, **options)
            self.pass_one(f"after {call.__name__}")
            return result

        return run

    def pass_one(self, name: str) -> None:
        """A moment passes."""
        self.count += 1
        if self.count - 1 == self.at:
            self.fail(name)


TEXTS = {f"id{row}": words(row, LENGTHS[row % 4]) for row in range(24)}
GONE = ["id0", "id3", "id5", "id10"]
LEFT = {name: text for name, text in TEXTS.items() if name not in GONE}


@pytest.fixture
def filled() -> Path:
    """The folder of an index by similarity with TEXTS."""
    index = durable(similarity=0.6, recipe=RECIPE, store="text")
    index.add(list(TEXTS), list(TEXTS.values()))
    index.close()
    return index.path


def texts_of(index: Any) -> dict[str, str]:
    """All texts of an index by id."""
    names = [name for name, _ in index]
    return dict(zip(names, index.contents(names), strict=True))


def goes_on(path: Path, reader: Any) -> None:
    """Check what a compaction that did not end has left: all documents, for all who look."""
    assert texts_of(reader) == LEFT
    assert texts_of(nd.DurableIndex.open(path, readonly=True)) == LEFT
    with nd.DurableIndex.open(path) as index:
        assert index.check() == []
        assert texts_of(index) == LEFT
        index.add("later", words(100))
        index.commit()
        assert texts_of(reader) == LEFT | {"later": words(100)}
        index.compact()
        assert texts_of(reader) == texts_of(index) == LEFT | {"later": words(100)}
        assert index.check() == []
    assert traces(path, [TEXTS[name] for name in GONE]) == []
    assert [each.name for each in path.iterdir() if each.name.startswith(".")] == []


def test_a_kill_at_any_moment_of_a_compaction_loses_and_leaves_nothing(filled: Path) -> None:
    for at in range(100):
        path = filled.with_name(f"{filled.name}-{at}")
        shutil.copytree(filled, path)
        reader = nd.DurableIndex.open(path, readonly=True)
        assert texts_of(reader) == TEXTS
        child = os.fork()
        if child == 0:
            compact_until(path, at)
        _, status = os.waitpid(child, 0)
        goes_on(path, reader)
        reader.close()
        shutil.rmtree(path)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0
            break
    assert at > 10


def compact_until(path: Path, at: int) -> None:
    """Remove GONE and compact in a child, which is killed at a moment."""
    code = 1
    try:
        index = nd.DurableIndex.open(path)
        index.remove(GONE)
        index.commit()
        with pytest.MonkeyPatch.context() as patch:
            Moments(at, lambda _: os.kill(os.getpid(), signal.SIGKILL)).patch(patch)
            index.compact()
        code = 0
    finally:
        os._exit(code)


def test_a_compaction_that_fails_anywhere_loses_nothing(filled: Path) -> None:
    """Also what is committed afterwards by the same writer, and seen by readers of that time."""

    def fail(name: str) -> None:
        if name == "before write":
            raise FileError("no space left on device")
        if name != "after write":
            raise OSError(errno.ENOSPC, "No space left on device")

    for at in range(100):
        path = filled.with_name(f"{filled.name}-{at}")
        shutil.copytree(filled, path)
        index, reader = nd.DurableIndex.open(path), nd.DurableIndex.open(path, readonly=True)
        assert texts_of(reader) == TEXTS
        index.remove(GONE)
        index.commit()
        moments = Moments(at, fail)
        with pytest.MonkeyPatch.context() as patch:
            moments.patch(patch)
            with contextlib.suppress(FileError):
                index.compact()
        during = nd.DurableIndex.open(path, readonly=True)
        index.add("more", words(50))
        index.commit()
        index.remove("more")
        index.add("more", words(60))
        index.commit()
        for each in (index, reader, during):
            assert texts_of(each) == LEFT | {"more": words(60)}
        index.close()
        with nd.DurableIndex.open(path) as index:
            assert texts_of(index) == LEFT | {"more": words(60)}
            index.remove("more")
        goes_on(path, reader)
        reader.close()
        during.close()
        shutil.rmtree(path)
        if moments.count <= at:
            break
    assert at > 10
