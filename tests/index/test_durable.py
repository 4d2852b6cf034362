"""The durable index: what is committed stays, readers follow, every refusal is one clear line."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import lmdb
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

import naive
import neardup as nd
from neardup.index.durable import environment
from neardup.index.durable.log_entries import Head, chunk_key
from stories import BATCH, KINDS, Story, agree, durable, quiet, small_segments
from suite import JIT, examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 600 if JIT else 60


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows make a segment, a joined record, a chunk of removals and a checkpoint."""
    small_segments(monkeypatch)
    monkeypatch.setattr("neardup.index.durable.log_store.MOST_SMALL", 4)
    monkeypatch.setattr("neardup.index.durable.log_store.SMALL_ROWS", 12)
    for name in (
        "durable.log_reading",
        "durable.log_store",
        "stored_rows",
        "durable.merge_jobs",
    ):
        monkeypatch.setattr(f"neardup.index.{name}.CHUNK_ROWS", 16)


class DurableStory(Story):
    """Whatever is called, a reader sees the last commit, and a rollback leads back to it."""

    kind = KINDS["durable"]

    @initialize(
        bits=st.sampled_from([64, 128]),
        distance=st.integers(0, 4),
        plan=st.sampled_from(["auto", "bits", "blocks"]),
        strings=st.booleans(),
    )
    def start(self, bits: int, distance: int, plan: str, strings: bool) -> None:
        super().start(bits, distance, plan, strings)
        self.reader = nd.DurableIndex.open(self.index.path, readonly=True)
        self.committed: dict[Any, tuple[int, float]] = {}
        self.look()

    @rule()
    def look(self) -> None:
        """Hold on to this moment, whose times must stay."""
        self.seen = self.index.snapshot()
        self.names = [identity for identity, _ in self.seen]
        self.times = self.seen.times(self.names).tolist()

    @invariant()
    def times_of_a_snapshot_stay(self) -> None:
        assert self.seen.times(self.names).tolist() == self.times

    @rule(smalls=st.lists(st.integers(0, 255), min_size=1, max_size=4))
    def commit(self, smalls: list[int]) -> None:
        self.index.commit()
        self.committed = dict(self.oracle.stored)
        self.read(smalls)

    @rule(smalls=st.lists(st.integers(0, 255), min_size=1, max_size=4), fresh=st.booleans())
    def read(self, smalls: list[int], fresh: bool = False) -> None:
        if fresh:
            self.reader = nd.DurableIndex.open(self.index.path, readonly=True)
        seen = naive.Index()
        seen.stored = self.committed
        agree(self.reader, seen, [self.value(x) for x in smalls], self.distance)

    @rule(batch=BATCH, is_taken_back=st.booleans())
    def transaction(self, batch: list[tuple[int, int]], is_taken_back: bool) -> None:
        super().transaction(batch, is_taken_back)
        self.committed = dict(self.oracle.stored)  # what was there before it is committed first

    @rule()
    def rollback(self) -> None:
        self.index.rollback()
        self.oracle.stored = dict(self.committed)

    @rule()
    def compact(self) -> None:
        self.index.compact()
        self.committed = dict(self.oracle.stored)

    @rule()
    def reopen(self) -> None:
        self.seen.close()
        super().reopen()
        self.committed = dict(self.oracle.stored)
        self.look()

    @rule()
    def check(self) -> None:
        assert self.index.check() == []

    def teardown(self) -> None:
        """Close the reader and the snapshot too."""
        if hasattr(self, "seen"):
            self.reader.close()
            self.seen.close()
        super().teardown()


def test_any_sequence_of_calls_with_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Timed(DurableStory):
        def __init__(self) -> None:
            super().__init__()
            clock = SimpleNamespace(time=lambda: self.time)
            monkeypatch.setattr("neardup.index.row_writer.time", clock)

    run_state_machine_as_test(
        Timed, settings=settings(max_examples=examples(50, 5), stateful_step_count=30)
    )


def test_what_was_not_committed_is_gone_and_what_was_is_there() -> None:
    index = durable(1)
    index.add(["a", "b"], [1, 2])
    index.commit()
    index.add("c", 3)
    index.remove("a")
    assert (len(index), index.uncommitted) == (2, 2)
    index.rollback()
    assert (list(index), index.uncommitted) == ([("a", 1), ("b", 2)], 0)


def test_the_number_of_commits_is_noted_beside_the_log(tmp_path: Path) -> None:
    """So a log of before them is recognised."""
    with nd.DurableIndex.open(tmp_path / "i", distance=3) as index:
        for commits in (1, 2):
            index.add([f"d{commits}"], [commits])
            index.commit()
            assert Head(tmp_path / "i").number() == commits


def test_a_with_statement_commits_unless_its_body_raises() -> None:
    path = durable().path
    with nd.DurableIndex.open(path) as index:
        index.add("a", 1)
    with pytest.raises(nd.UsageError), nd.DurableIndex.open(path) as index:
        assert index.add("b", 1) == index.add(5, 1)
    with nd.DurableIndex.open(path) as index:
        assert list(index) == [("a", 1)]


def test_many_small_commits_are_joined_and_a_reader_in_between_misses_nothing() -> None:
    index = durable(0)
    readers = [nd.DurableIndex.open(index.path, readonly=True) for _ in range(3)]
    for i in range(37):
        index.add(i, i)
        if i % 3 == 2:
            index.remove(i - 1)
        index.commit()
        for step, reader in enumerate(readers, 1):
            if i % (5 * step) == 0:
                assert list(reader) == list(index)
    stats = quiet(index)
    assert stats["log_rows"] < 40
    assert list(nd.DurableIndex.open(index.path, readonly=True)) == list(index)


def test_expiry_and_insertion_times_survive_reopening(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    clock = SimpleNamespace(time=lambda: now[0])
    monkeypatch.setattr("neardup.index.row_writer.time", clock)
    index = durable(0)
    for i in range(60):
        now[0] += 10
        index.add(f"{i}", i)
        if i % 7 == 0:
            index.commit()
    index = KINDS["durable"].reopened(index)
    assert index.expire(before=1000.0 + 10 * 31) == 30
    index = KINDS["durable"].reopened(index)
    assert [identity for identity, _ in index] == [f"{i}" for i in range(30, 60)]


@pytest.mark.parametrize("kept", ["text", "features"])
def test_contents_are_kept_replaced_and_removed_with_their_documents(kept: str) -> None:
    recipe = nd.Recipe()
    index = durable(3, recipe=recipe, store=kept)
    texts = [f"the harbour of town {i} opened again on Monday" for i in range(ROWS // 10)]
    texts[3] = "ä lone surrogate \ud800 in it" if kept == "text" else texts[3]

    def want(text: str) -> Any:
        from neardup.fingerprinting.fingerprints import feature_hashes

        return text if kept == "text" else feature_hashes(text, recipe).tolist()

    def have(identity: str) -> Any:
        value = index.content(identity)
        return value if value is None or kept == "text" else value.tolist()

    fingerprints = [nd.fingerprint(text.replace("\ud800", ""), recipe) for text in texts]
    index.add([f"{i}" for i in range(len(texts))], fingerprints, contents=texts)
    index.add("1", "another text about the budget")
    index.remove("2")
    for _ in range(2):
        assert have("1") == want("another text about the budget")
        assert [have(f"{i}") for i in (0, 3, 4)] == [want(texts[i]) for i in (0, 3, 4)]
        with pytest.raises(KeyError):
            index.content("2")
        assert index.check() == []
        index = KINDS["durable"].reopened(index)
    index.compact()
    assert have("0") == want(texts[0])
    with pytest.raises(nd.UsageError, match="contents"):
        index.add("9", 7)


def test_compacting_gives_space_back_and_readers_go_on() -> None:
    index = durable(0, store="text")
    reader = nd.DurableIndex.open(index.path, readonly=True)
    rng = np.random.default_rng(1)
    for turn in range(8):
        ids = [f"{turn}-{i}" for i in range(50)]
        index.add(ids, range(50), contents=[rng.bytes(6000).hex() for _ in ids])
        index.commit()
        if turn:
            index.remove([f"{turn - 1}-{i}" for i in range(50)])
    index.commit()
    before = index.stats()["bytes_on_disk"]
    assert len(reader) == 50
    index.compact()
    assert index.stats()["bytes_on_disk"] < before / 2
    assert list(reader) == list(index)
    index.add("x", 2**63, contents="text")
    index.commit()
    assert reader.query(2**63) == [("x", 0)]
    assert sorted(p.name for p in index.path.glob("log-*")) == ["log-2.mdb", "log-2.mdb-lock"]
    assert index.check() == reader.check() == []


@pytest.mark.parametrize("is_late", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_log_that_is_replaced_while_a_reader_opens_it_is_not_made_anew(
    monkeypatch: pytest.MonkeyPatch, *, is_open: bool, is_late: bool
) -> None:
    """LMDB makes a file that is not there: the reader found it empty, and called it damaged."""
    index = durable(0)
    index.add([0, 1], [0, 1])
    index.commit()
    reader = nd.DurableIndex.open(index.path, readonly=True) if is_open else None
    index.compact()  # what is open goes on to log-2
    index.close()

    def replace(log: Path) -> None:
        if log.name != "log-4.mdb":
            number = int(log.stem.partition("-")[2])
            shutil.copy(log, log.with_name(f"log-{number + 1}.mdb"))
            environment.remove_environment(log)

    opened = environment.Environment._opened  # noqa: SLF001 - what comes before LMDB sees the file

    def opened_late(self: environment.Environment, writable: bool) -> Any:
        replace(self.path)
        return opened(self, writable)

    if is_late:
        monkeypatch.setattr(environment.Environment, "_opened", opened_late)
    else:
        monkeypatch.setattr(environment, "check_pages", replace)
    reader = reader or nd.DurableIndex.open(index.path, readonly=True)
    assert list(reader) == [(0, 0), (1, 1)]
    reader.close()
    assert {each.name for each in index.path.glob("log-*")} == {"log-4.mdb", "log-4.mdb-lock"}


def test_a_reader_that_looks_while_the_log_is_written_anew_goes_on_with_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old log has its mark then, and the new one has no name yet."""
    index = durable(0)
    reader = nd.DurableIndex.open(index.path, readonly=True)
    rewrite = environment.Environment.rewrite

    def looked_at(*args: Any, **options: Any) -> None:
        assert reader.query(0) == [(0, 0)]
        rewrite(*args, **options)

    monkeypatch.setattr(environment.Environment, "rewrite", looked_at)
    index.add(0, 0)
    index.commit()
    index.compact()
    index.add(1, 1)
    index.commit()
    assert reader.query(1) == [(1, 0)]


def test_threads_that_share_a_reader_follow_from_one_log_to_the_next() -> None:
    """One thread leaves the old log, and closes it, while others look at it."""
    index = durable(0)
    reader = nd.DurableIndex.open(index.path, readonly=True)
    has_ended = threading.Event()

    def look() -> int:
        looks = 0
        while not has_ended.is_set():
            stored = len(reader)
            assert reader.stats()["documents"] >= stored
            assert reader.query(1 << 63) == []
            looks += 1
        return looks

    with ThreadPoolExecutor(4) as pool:
        looking = [pool.submit(look) for _ in range(4)]
        try:
            for number in range(40):
                index.add(number, number)
                index.commit()
                index.compact()
        finally:
            has_ended.set()
        assert sum(each.result() for each in looking)
    assert len(reader) == 40


def test_a_smaller_distance_may_be_asked_for_and_a_larger_one_is_refused() -> None:
    index = durable(3)
    index.add(range(50), range(50))
    index.close()
    with nd.DurableIndex.open(index.path, distance=1) as narrow:
        assert narrow.distance == 1
        assert narrow.query(0) == [(0, 0), (1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (32, 1)]
        narrow.add(50, 2**63)
    with nd.DurableIndex.open(index.path) as whole:
        assert whole.query(0b111 << 61) == [(50, 2), (0, 3)]
    with pytest.raises(nd.UsageError, match=r"distance is 4.*made for 3"):
        nd.DurableIndex.open(index.path, distance=4)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bits": 128}, nd.UsageError, "bits is 128.* 64"),
        ({"plan": "scan"}, nd.UsageError, "plan is 'scan'"),
        ({"store": "text"}, nd.UsageError, "store is 'text'"),
        ({"recipe": nd.Recipe(ngram=2)}, nd.RecipeError, f"{nd.Recipe(ngram=2).digest}.*without"),
    ],
)
def test_other_settings_than_the_index_was_made_with_are_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    path = durable(3).path
    with pytest.raises(error, match=words) as caught:
        nd.DurableIndex.open(path, **options)
    assert "\n" not in str(caught.value)
    nd.DurableIndex.open(path).close()


def test_another_recipe_is_refused_by_both_digests_and_its_own_is_remembered() -> None:
    recipe, other = nd.Recipe(ngram=2), nd.Recipe(ngram=4)
    path = durable(3, recipe=recipe).path
    with pytest.raises(nd.RecipeError, match=f"{other.digest}.*{recipe.digest}"):
        nd.DurableIndex.open(path, recipe=other)
    assert nd.DurableIndex.open(path).recipe == recipe


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_second_writer_is_refused_with_the_number_of_the_first() -> None:
    index = durable(3)
    with pytest.raises(nd.FileError, match=f"process {os.getpid()}"):
        nd.DurableIndex.open(index.path)
    process = run_python(
        """
        import sys, neardup as nd
        try: nd.DurableIndex.open(sys.argv[1])
        except nd.FileError as error: print(error)
        print(len(nd.DurableIndex.open(sys.argv[1], readonly=True)))
        """,
        str(index.path),
    )
    assert f"process {os.getpid()}" in process.stdout
    assert process.stdout.splitlines()[-1] == "0"
    index.close()
    nd.DurableIndex.open(index.path).close()


FOLLOWER = """
import sys, neardup as nd
index = nd.DurableIndex.open(sys.argv[1], readonly=True)
for line in sys.stdin: print(index.query(int(line)), len(index), flush=True)
"""


def test_a_writer_that_waits_says_once_for_which_process(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "neardup")
    with durable(3) as index, pytest.raises(nd.FileError, match=r"after 0\.1 s of waiting"):
        nd.DurableIndex.open(index.path, wait=0.1)
    waiting = f"{index.path}: waiting for process {os.getpid()}, which writes"
    assert [message for message in caplog.messages if "waiting" in message] == [waiting]


def test_a_reader_in_another_process_follows_and_cannot_write() -> None:
    index = durable(1)
    reader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            FOLLOWER,
            str(index.path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    for turn in range(60):
        index.add([turn, 1000 + turn], [1 << turn, 5 << 50])
        if turn % 9 == 8:
            index.remove(1000 + turn)
        index.commit()
        if turn == 30:
            index.compact()
        reader.stdin.write(f"{3 << turn}\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{index.query(3 << turn)} {len(index)}\n"
    reader.stdin.close()
    assert reader.wait() == 0
    reader.stdout.close()
    with pytest.raises(nd.UsageError, match="open for reading"):
        nd.DurableIndex.open(index.path, readonly=True).add(1, 1)


def test_a_closed_index_says_so() -> None:
    index = durable()
    index.close()
    index.close()
    for call in (lambda: index.query(1), lambda: index.add(1, 1), index.commit, lambda: len(index)):
        with pytest.raises(nd.UsageError, match="closed"):
            call()


def test_the_garbage_collector_may_close_an_index_while_another_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    abandoned: list[Any] = [nd.DurableIndex.open(tmp_path / "a", distance=3)]
    abandoned[0].itself = abandoned
    opened = environment.lmdb.open

    def collecting(*arguments: Any, **options: Any) -> Any:
        abandoned.clear()
        gc.collect()
        return opened(*arguments, **options)

    monkeypatch.setattr(environment.lmdb, "open", collecting)
    other = threading.Thread(
        target=lambda: nd.DurableIndex.open(tmp_path / "b", distance=3).close(), daemon=True
    )
    other.start()
    other.join(20)
    assert not other.is_alive()
    nd.DurableIndex.open(tmp_path / "a", distance=3).close()


@pytest.mark.parametrize("path", [None, 5, b"folder"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for call in (nd.DurableIndex.open, nd.Index.load, nd.Index(distance=1).save):
        with pytest.raises(nd.UsageError, match="use a string or a pathlib"):
            call(path)


def test_what_is_no_index_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, error in ((tmp_path, nd.DataError), (tmp_path / "file", nd.DataError)):
        with pytest.raises(error, match="not an index"):
            nd.DurableIndex.open(path)
    for options in ({"readonly": True}, {"create": False}):
        with pytest.raises(nd.FileError, match="no index in"):
            nd.DurableIndex.open(tmp_path / "absent", **options)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["file"]


def filled() -> nd.DurableIndex:
    """An index with two segments, removals, and a log."""
    index = durable(3, plan="blocks", store="text")
    for first in (0, 50):
        ids = range(first, first + 50)
        index.add(ids, ids, contents=["text"] * 50)
        index.commit()
    index.remove([3, 60])
    index.add(200, 9, contents="text")
    index.close()
    return index


def segment_of(index: nd.DurableIndex) -> Path:
    return next(index.path.glob("segment-*.nds"))


def overwrite(path: Path, at: int, data: bytes) -> None:
    """Change bytes in the middle of a file."""
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        file.write(data)


def flip(path: Path, at: int) -> None:
    """Turn one bit of a byte."""
    overwrite(path, at, bytes([path.read_bytes()[at] ^ 4]))


DAMAGES: list[tuple[str, Callable[[nd.DurableIndex], Any]]] = [
    ("damaged", lambda index: overwrite(segment_of(index), 70, b"\xff")),
    ("bytes, not", lambda index: os.truncate(segment_of(index), 5000)),
    ("0 bytes", lambda index: os.truncate(segment_of(index), 0)),
    ("is missing", lambda index: segment_of(index).unlink()),
    ("does not begin", lambda index: overwrite(segment_of(index), 0, b"x")),
    ("newer neardup", lambda index: overwrite(segment_of(index), 8, b"\x09")),
    ("empty", lambda index: os.truncate(index.path / "log-1.mdb", 0)),
    ("damaged", lambda index: os.truncate(index.path / "log-1.mdb", 9000)),
    ("damaged", lambda index: overwrite(index.path / "log-1.mdb", 0, bytes(8192))),
]


@pytest.mark.parametrize(("words", "damage"), DAMAGES)
@pytest.mark.parametrize("readonly", [False, True])
def test_a_damaged_index_is_refused_in_one_line_that_says_what_to_do(
    words: str, damage: Callable[[nd.DurableIndex], Any], readonly: bool
) -> None:
    index = filled()
    damage(index)
    with pytest.raises(nd.DataError, match=words) as caught:
        nd.DurableIndex.open(index.path, readonly=readonly)
    assert "\n" not in str(caught.value)
    assert any(advice in str(caught.value) for advice in ("restore", "install"))
    assert words in "".join(index.check())


@pytest.mark.parametrize("array", ["words", "numbers", "table_words", "masks"])
def test_check_finds_a_byte_that_changed_in_any_array(array: str) -> None:
    from neardup.index.segment_files import SegmentFile

    index = filled()
    path = segment_of(index)
    file = SegmentFile(path)
    assert index.check() == []
    flip(path, file.header["arrays"][array]["offset"])
    (problem,) = index.check()
    assert str(path) in problem
    assert array in problem
    assert "restore" in problem


def test_check_finds_a_byte_that_changed_in_the_log() -> None:
    index = filled()
    log = index.path / "log-1.mdb"
    flip(log, log.read_bytes().index(b"NDR1") + 60)
    assert "record" in index.check()[0]
    with pytest.raises(nd.DataError, match=r"record .* is damaged"):
        nd.DurableIndex.open(index.path)


def test_removed_rows_of_an_unknown_file_are_damage() -> None:
    index = filled()
    log = lmdb.open(os.fsencode(index.path / "log-1.mdb"), subdir=False, max_dbs=8, lock=False)
    with log, log.begin(write=True) as txn:
        txn.put(chunk_key("segment-99.nds", 0), b"", db=log.open_db(b"removed", txn))
    with pytest.raises(nd.DataError, match=r"'segment-99.nds', which has none"):
        nd.DurableIndex.open(index.path)


def test_a_segment_of_another_index_is_noticed() -> None:
    one, two = filled(), filled()
    other = durable(3, plan="blocks", store="text")
    other.add(range(60), range(60), contents=["t"] * 60)
    other.close()
    segment_of(one).write_bytes(segment_of(other).read_bytes())
    with pytest.raises(nd.DataError, match="not the file that the index names"):
        nd.DurableIndex.open(one.path)
    assert "not the file" in one.check()[0]
    assert two.check() == []


def test_a_newer_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.index.durable.durable_index.FORMAT", 99)
    with pytest.raises(nd.DataError, match=r"format 99.*install a newer"):
        durable()


@pytest.mark.parametrize("data", [b"short", bytes(1 << 13)])
def test_pages_that_lmdb_has_not_written_are_damaged(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(nd.DataError, match="its pages do not agree"):
        environment.check_pages(tmp_path / "log", 1 << 20)


def test_the_map_grows_where_address_space_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "MAP_SIZES", (1 << 17,))
    index = durable(0, store="text")
    reader = nd.DurableIndex.open(index.path, readonly=True)
    rng = np.random.default_rng(1)
    for turn in range(10):
        ids = [f"{turn}-{i}" for i in range(30)]
        index.add(ids, range(30), contents=[rng.bytes(1000).hex() for _ in ids])
        index.commit()
        assert len(reader) == len(index) == 30 * (turn + 1)


def test_statistics_add_up() -> None:
    with nd.DurableIndex.open(filled().path) as index:
        stats = quiet(index)
        assert stats["documents"] == 99
        assert stats["removed"] == 2
        assert sum(each["rows"] for each in stats["segments"]) + stats["tail_rows"] == 101
        assert stats["store"] == "text"
        assert stats["bytes_on_disk"] >= sum(each["file_bytes"] for each in stats["segments"])


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("strings", [False, True])
def test_a_saved_memory_index_is_the_same_when_it_is_loaded(
    tmp_path: Path, bits: int, strings: bool
) -> None:
    rng = np.random.default_rng(2)
    index = nd.Index(2, bits=bits)
    for part in range(3):
        fresh = [int.from_bytes(rng.bytes(bits // 8), "little") for _ in range(50)]
        named = [f"é{part}-{i}" if strings else i * (-1) ** i + part for i in range(50)]
        index.add(named, fresh)
        index.remove(named[7])
        index.save(tmp_path / "saved")
        loaded = nd.Index.load(tmp_path / "saved")
        assert list(loaded) == list(index)
        queries = [f ^ 1 << (bits - 1) for f in fresh[:10]]
        assert loaded.query_batch(queries).equals(index.query_batch(queries))
        index = loaded


def test_a_damaged_or_other_saved_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    with pytest.raises(nd.FileError, match="no such file"):
        nd.Index.load(path)
    index = nd.Index(2, recipe=nd.Recipe(), plan="blocks")
    index.add("a", 5)
    index.save(path)
    with pytest.raises(nd.RecipeError, match=nd.Recipe().digest):
        nd.Index.load(path, recipe=nd.Recipe(ngram=7))
    flip(path, -1)
    with pytest.raises(nd.DataError, match="damaged"):
        nd.Index.load(path)
    with pytest.raises(nd.DataError, match="durable"):
        nd.Index.load(segment_of(filled()))
    with pytest.raises(nd.FileError, match="cannot write"):
        index.save(tmp_path / "absent" / "saved")
