"""Readers of every call beside a writer that replaces, removes, commits and rolls back.

Every document says in its fingerprint and its content which version of the index it is of, so an
answer that mixes two moments shows. NEARDUP_STRESS_SECONDS makes it longer: `make index-stress`.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

import neardup as nd
from neardup.errors import UsageError
from stories import FOLDERS, small_segments
from suite import needs_jit

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_jit

SECONDS: Final = float(os.environ.get("NEARDUP_STRESS_SECONDS", "2"))
IDS: Final = [f"d{i}" for i in range(64)]
RARE: Final = IDS[::3]
"""Are there in even versions only."""
BITS: Final = 20
"""Of a version: half of the fingerprint, so that versions are far apart where they are spread."""


def value(identity: str, version: int) -> int:
    """A fingerprint that no other document or version is within the distance of."""
    spread = version * 0x9E3779B97F4A7C15 % 2**BITS
    return IDS.index(identity) * 0x9E3779B1 % 2**32 << 32 | spread << 8


def text(identity: str, version: int) -> str:
    """A content."""
    return f"{identity} {version}"


def there(version: int) -> list[str]:
    """The ids of a version."""
    return [identity for identity in IDS if version % 2 == 0 or identity not in RARE]


def write_version(index: nd.DurableIndex, version: int, *, in_one: bool) -> None:
    """Make the index what a version is: with one call, or with many."""
    names = there(version)
    rows = [value(each, version) for each in names]
    texts = [text(each, version) for each in names]
    if in_one:
        index.add(names, np.array(rows, np.uint64), texts)
    else:
        for each in zip(names, rows, texts, strict=True):
            index.add(*each)
    if version % 2:
        index.remove([each for each in RARE if each in index])


def write(path: Path, seconds: float) -> None:
    """One version a commit; between them, what is rolled back, and compaction."""
    with nd.DurableIndex.open(path) as index:
        version, end = index.added, time.monotonic() + seconds
        version += version % 2
        while time.monotonic() < end:
            version += 1
            if version % 5 == 0:
                index.add(IDS, np.array([value(each, 3) for each in IDS], np.uint64), IDS)
                index.rollback()
            write_version(index, version, in_one=version % 3 > 0)
            if version % 40 == 39:
                index.compact()
            else:
                index.commit()


def version_of(fingerprints: dict[str, int]) -> int | None:
    """The version that documents are of; None if they are of several, or not all of one."""
    spread = {(each & 0xFFFFFFFF) >> 8 for each in fingerprints.values()}
    if len(spread) != 1:
        return None
    version = spread.pop() * pow(0x9E3779B97F4A7C15, -1, 2**BITS) % 2**BITS
    whole = {identity: value(identity, version) for identity in there(version)}
    return version if fingerprints == whole else None


def iteration(index: Any) -> bool:
    return version_of(dict(index)) is not None


def documents(index: Any) -> bool:
    result: dict[str, int] = {}
    texts: list[str] = []
    for ids, codes, contents in index.documents():
        result |= dict(zip(ids.to_pylist(), codes[:, 0].tolist(), strict=True))
        texts += contents
    version = version_of(result)
    return version is not None and texts == [text(each, version) for each in result]


def by_id(index: Any) -> bool:
    steady = [each for each in IDS if each not in RARE]
    codes = index.fingerprints_by_id(steady)[:, 0].tolist()
    return len({(each & 0xFFFFFFFF) >> 8 for each in codes}) == 1


def contents(index: Any) -> bool:
    steady = [each for each in IDS if each not in RARE]
    contents = index.contents(steady)
    return len({each.partition(" ")[2] for each in contents}) == 1


def content(index: Any) -> bool:
    return index.content("d1") is not None


def counted(index: Any) -> bool:
    return len(index) in {len(IDS), len(IDS) - len(RARE)}


def contained(index: Any) -> bool:
    return "d1" in index and "x" not in index and index.number("d2") is not None


def asked(index: Any) -> bool:
    """What a snapshot has is what its queries find, singly and in batches."""
    with index.snapshot() as seen:
        before = dict(seen)
        table = seen.query_batch(list(before.values()))
        first = next(iter(before))
        return (
            version_of(before) is not None
            and table["id"].to_pylist() == list(before)
            and seen.query(before[first]) == [(first, 0)]
            and seen.nearest(before[first], 1) == [(first, 0)]
            and seen.content(first) == text(first, version_of(before) or 0)
        )


def batch(index: Any) -> bool:
    """All documents of the version of one are found, or none, if it is not the last any more."""
    version = (int(index.fingerprints_by_id(["d1"])[0, 0]) & 0xFFFFFFFF) >> 8
    version = version * pow(0x9E3779B97F4A7C15, -1, 2**BITS) % 2**BITS
    names = there(version)
    hits = index.query_batch([value(each, version) for each in names])["id"].to_pylist()
    return hits in (names, [])


EVERY_COMMIT: Final = [iteration, documents, by_id, contents, asked, batch, counted]
"""True of commits, not between the calls of one."""
EVERY_STATE: Final = [content, contained]


def read(
    index: Any, questions: list[Callable[[Any], bool]], stop: threading.Event, torn: list[str]
) -> None:
    """Ask all again and again."""
    while not stop.is_set():
        for question in questions:
            try:
                right = question(index)
            except Exception as error:  # noqa: BLE001  # every kind is a torn answer
                right = False
                torn.append(f"{question.__name__}: {error!r}")
            if not right:
                torn.append(question.__name__)


def ask(indexes: list[Any], questions: list[Any], write: Callable[[], None]) -> list[str]:
    """What was torn while something wrote."""
    stop, torn = threading.Event(), []
    readers = [
        threading.Thread(target=read, args=(index, questions, stop, torn)) for index in indexes
    ]
    for thread in readers:
        thread.start()
    try:
        write()
    finally:
        stop.set()
        for thread in readers:
            thread.join()
    return torn


@pytest.fixture
def path() -> Path:
    """The folder of an index that has a first version."""
    folder = Path(tempfile.mkdtemp(dir=FOLDERS))
    with nd.DurableIndex.open(folder, distance=2, store="text") as index:
        write_version(index, 0, in_one=True)
    return folder


def test_readers_beside_a_writer_of_their_process(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads share a reader, one has its own."""
    small_segments(monkeypatch)
    readers = [nd.DurableIndex.open(path, readonly=True) for _ in range(2)]
    questions = [*EVERY_COMMIT, *EVERY_STATE]
    assert ask([*readers, readers[0]], questions, lambda: write(path, SECONDS)) == []
    assert readers[0].check() == []


def test_readers_beside_a_writer_of_another_process(path: Path) -> None:
    """As before, without a lock that both know."""
    reader = nd.DurableIndex.open(path, readonly=True)
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=write, args=(path, SECONDS))

    def work() -> None:
        writer.start()
        writer.join()

    assert ask([reader, reader], [*EVERY_COMMIT, *EVERY_STATE], work) == []
    assert writer.exitcode == 0


def test_threads_that_share_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They see what is not committed, but never half a call, and a rollback at once."""
    small_segments(monkeypatch)
    index = nd.DurableIndex.open(path)
    steady = [each for each in IDS if each not in RARE]

    def work() -> None:
        end, version = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            version += 2
            codes = [value(each, version) for each in steady]
            index.add(steady, np.array(codes, np.uint64), [text(x, version) for x in steady])
            if version % 3:
                index.rollback()
            else:
                index.commit()

    assert ask([index, index], [by_id, contents, content, contained, counted], work) == []


def test_a_rollback_never_shows_an_empty_index(path: Path) -> None:
    """Another thread finds the committed documents all the time."""
    index = nd.DurableIndex.open(path)

    def work() -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            index.add("new", 1 << 63, "new")
            index.rollback()

    def found(asked: Any) -> bool:
        return "d1" in asked and asked.query(value("d1", 0)) == [("d1", 0)]

    assert ask([index], [found, contained], work) == []


def test_a_snapshot_stays_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is replaced, committed, compacted and expired after it."""
    small_segments(monkeypatch)
    reader = nd.DurableIndex.open(path, readonly=True)
    with reader.snapshot() as seen, nd.DurableIndex.open(path) as writer:
        late = seen.documents()
        for version in range(2, 40, 2):
            write_version(writer, version, in_one=version % 3 == 0)
            writer.commit()
        writer.expire(time.time() + 1)
        writer.compact()
        assert len(reader) == 0
        assert version_of(dict(seen)) == 0
        assert [x for *_, texts in late for x in texts] == [text(each, 0) for each in IDS]
        assert by_id(seen)
        assert contents(seen)
        assert seen.query(value("d3", 0)) == [("d3", 0)]
    with pytest.raises(UsageError, match="closed"):
        seen.content("d1")
