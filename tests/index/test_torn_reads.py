"""Readers of every call beside a writer that replaces, removes, commits and rolls back.

Every document says in its fingerprint and its content which version of the index it is of, so an
answer that mixes two moments shows. NEARDUP_STRESS_SECONDS makes it longer: `make index-stress`.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import lmdb
import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import UsageError
from neardup.index.durable.environment import Environment, TornReadError
from neardup.index.id_columns import IdColumn, IdColumns
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


def difference(**answers: tuple[Any, Any]) -> str:
    """The names of answers that are not what was expected, with both; "" if there is none."""
    return "; ".join(
        f"{name} is {answer!r}, not {expected!r}"
        for name, (answer, expected) in answers.items()
        if answer != expected
    )


def iteration(index: Any) -> str:
    result = dict(index)
    return "" if version_of(result) is not None else f"of no version: {result}"


def documents(index: Any) -> str:
    result: dict[str, int] = {}
    texts: list[str] = []
    for ids, codes, contents in index.documents():
        result |= dict(zip(ids.to_pylist(), codes[:, 0].tolist(), strict=True))
        texts += contents
    version = version_of(result)
    if version is None:
        return f"of no version: {result}"
    return difference(texts=(texts, [text(each, version) for each in result]))


def by_id(index: Any) -> str:
    steady = [each for each in IDS if each not in RARE]
    codes = index.fingerprints_by_id(steady)[:, 0].tolist()
    versions = {(each & 0xFFFFFFFF) >> 8 for each in codes}
    return difference(versions=(len(versions), 1)) and f"of several versions: {codes}"


def contents(index: Any) -> str:
    steady = [each for each in IDS if each not in RARE]
    contents = index.contents(steady)
    versions = {each.partition(" ")[2] for each in contents}
    return difference(versions=(len(versions), 1)) and f"of several versions: {contents}"


def content(index: Any) -> str:
    return "" if index.content("d1") is not None else "none"


def counted(index: Any) -> str:
    count = len(index)
    return "" if count in {len(IDS), len(IDS) - len(RARE)} else f"{count} documents"


def contained(index: Any) -> str:
    return difference(
        d1=("d1" in index, True),
        x=("x" in index, False),
        number=(index.number("d2") is None, False),
    )


def asked(index: Any) -> str:
    """What a snapshot has is what its queries find, singly and in batches."""
    with index.snapshot() as seen:
        wrong = wrong_answers(seen)
        if wrong:
            wrong += f"; asked again: {wrong_answers(seen) or 'all is right'}; {parts_of(seen)}"
    return wrong


def wrong_answers(seen: Any) -> str:
    before = dict(seen)
    version, first = version_of(before), next(iter(before))
    if version is None:
        return f"of no version: {before}"
    return difference(
        batch=(seen.query_batch(list(before.values()))["id"].to_pylist(), list(before)),
        query=(seen.query(before[first]), [(first, 0)]),
        nearest=(seen.nearest(before[first], 1), [(first, 0)]),
        content=(seen.content(first), text(first, version)),
    )


def parts_of(seen: Any) -> str:
    """The segments and the tail of a snapshot: file, rows, removed ones, numbers."""
    version = seen._snapshot.version  # noqa: SLF001
    parts = [
        (
            getattr(getattr(each, "file", None), "path", None),
            len(each),
            each.removed,
            each.numbers.tolist(),
            each.dead.tolist(),
        )
        for each in (*version.segments, version.tail)
    ]
    return f"parts {parts}"


def batch(index: Any) -> str:
    """All documents of the version of one are found, or none, if it is not the last any more."""
    version = (int(index.fingerprints_by_id(["d1"])[0, 0]) & 0xFFFFFFFF) >> 8
    version = version * pow(0x9E3779B97F4A7C15, -1, 2**BITS) % 2**BITS
    names = there(version)
    hits = index.query_batch([value(each, version) for each in names])["id"].to_pylist()
    return "" if hits in (names, []) else f"{hits} of version {version}"


EVERY_COMMIT: Final = [iteration, documents, by_id, contents, asked, batch, counted]
"""True of commits, not between the calls of one."""
EVERY_STATE: Final = [content, contained]


def read(
    index: Any, questions: list[Callable[[Any], str]], stop: threading.Event, torn: list[str]
) -> None:
    """Ask all again and again."""
    while not stop.is_set():
        for question in questions:
            try:
                wrong = question(index)
            except Exception as error:  # noqa: BLE001  # every kind is a torn answer
                wrong = repr(error)
            if wrong:
                torn.append(f"{question.__name__}: {wrong}")


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


class _LateEnvironment:
    """An LMDB environment whose next transaction has an older one's number, and the data of now.

    LMDB gives such a one if the thread pauses between the two, while others commit twice.
    """

    def __init__(self, env: Any, number: int) -> None:
        self._env, self._number = env, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def begin(self, **options: Any) -> Any:
        txn, number = self._env.begin(**options), self._number
        self._number = 0
        return _Numbered(txn, number) if number else txn


class _Numbered:
    def __init__(self, txn: Any, number: int) -> None:
        self._txn, self._number = txn, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._txn, name)

    def id(self) -> int:
        return self._number


def test_a_snapshot_has_no_data_of_a_later_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its documents and their contents are of one commit, also where LMDB confuses two."""
    reader, writer = nd.DurableIndex.open(path, readonly=True), nd.DurableIndex.open(path)
    environment = Environment.of(path / "log-1.mdb")
    known = environment.transaction
    for version in (2, 4):
        write_version(writer, version, in_one=True)
        writer.commit()
    late = _LateEnvironment(environment._env, known)  # noqa: SLF001
    monkeypatch.setattr(environment, "_env", late)
    assert asked(reader) == ""
    environment.release()


def test_a_reader_without_a_place_notices_a_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages may be overwritten, so that a read beside a commit counts for nothing."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    opened = lmdb.open

    def without_lock(*names: Any, lock: bool, **options: Any) -> Any:
        if lock:
            raise lmdb.ReadersFullError("as many readers as there are places")
        return opened(*names, lock=lock, **options)

    monkeypatch.setattr(lmdb, "open", without_lock)
    environment = Environment.of(path / "log-1.mdb")
    pin = environment.pin()
    assert pin.read(lambda txn: txn.has(b"log"))
    monkeypatch.setattr(Environment, "transaction", pin.number + 1)
    with pytest.raises(TornReadError, match="it changed during the read"):
        pin.read(lambda txn: txn.has(b"log"))
    pin.close()
    environment.release()


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


def test_threads_that_make_the_same_hash_table() -> None:
    """One that looks ids up keeps its own, also after another one has replaced it."""
    column = IdColumn(pa.array(["b", "a"], pa.large_string()))
    columns, first = IdColumns([column]), weakref.ref(column.slots)
    column.repeated()  # makes it again
    column._table = None  # noqa: SLF001  # as another thread found it
    assert column.table[1][2] is not first()
    gc.collect()
    assert first() is not None
    assert columns.places_of("a") == [(0, 1)]


def test_a_rollback_never_shows_an_empty_index(path: Path) -> None:
    """Another thread finds the committed documents all the time."""
    index = nd.DurableIndex.open(path)

    def work() -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            index.add("new", 1 << 63, "new")
            index.rollback()

    def found(asked: Any) -> str:
        hits = asked.query(value("d1", 0))
        return difference(d1=("d1" in asked, True), hits=(hits, [("d1", 0)]))

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
        assert by_id(seen) == ""
        assert contents(seen) == ""
        assert seen.query(value("d3", 0)) == [("d3", 0)]
    with pytest.raises(UsageError, match="closed"):
        seen.content("d1")
