"""Kills, missing syncs and full disks: what was committed stays.

`make crash-rounds` runs the long forms.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from crash_rounds import KINDS, State, story
from disk import Disk, Recording, recorded
from neardup.index.durable import folder_store
from neardup.index.durable.log_entries import Head
from suite import needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_jit

MOMENTS = int(os.environ.get("NEARDUP_CRASH_MOMENTS", "60"))
STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="strace is not installed")
COMMITS = 45


@pytest.mark.parametrize("kind", KINDS)
def test_kills_at_random_moments_lose_nothing(kind: str) -> None:
    rounds = "4"
    script = Path(__file__).with_name("crash_rounds.py")
    process = subprocess.run(
        [sys.executable, str(script), "--rounds", rounds, "--kind", kind],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "nothing lost" in process.stdout


WRITER = """
import os, sys, time
sys.path.insert(0, {tests!r})
import neardup as nd
from crash_rounds import KINDS, shrink, story
shrink()
kind = KINDS[sys.argv[3]]
index = nd.DurableIndex.open(sys.argv[1], **kind.options)
os.write(1, b"open")
for step, _ in zip(range(int(sys.argv[2])), story(kind, 7, {{}}, index)):
    os.write(1, b"commit")
    while step % 2 and index.stats()["merging"]:
        time.sleep(0.001)
"""


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of index."""
    return str(request.param)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory, kind: str) -> Recording:
    """Every system call by which a writer changed its files, and its acknowledgements."""
    folder = tmp_path_factory.mktemp("traced")
    code = WRITER.format(tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", code, str(folder / "index"), str(COMMITS), kind]
    return recorded(command, folder / "index", folder / "trace")


@needs_strace
def test_a_commit_syncs_its_pages_and_then_its_mark(recording: Recording) -> None:
    """One fdatasync for the pages, one synced write for the mark; nothing after the mark."""
    commits = recording.between_acknowledgements()
    assert len(commits) >= COMMITS
    plain = [calls for calls in commits if not any(call.kind == "rename" for call in calls)]
    assert len(plain) > COMMITS / 3
    for calls in plain:
        kinds = [call.kind for call in calls if call.path.endswith(".mdb")]
        assert Counter(kinds)["sync"] == 1
        assert kinds[-2:] == ["sync", "synced write"]
        assert kinds.count("synced write") == 1


@needs_strace
def test_a_segment_file_is_synced_and_named_before_the_log_mentions_it(
    recording: Recording,
) -> None:
    """Write aside, sync, rename, sync the folder, then commit, and then remove what is replaced.

    Whichever thread does it: a writer that compacts, or those that write in the background.
    """
    checkpoints = [
        calls
        for calls in [*recording.between_acknowledgements(), *recording.of_other_threads()]
        if any(call.kind == "rename" and ".nds" in call.path for call in calls)
        and any(call.kind == "synced write" for call in calls)
    ]
    assert len(checkpoints) > 3
    assert any(calls in checkpoints for calls in recording.of_other_threads())
    for calls in checkpoints:
        kinds = [(call.kind, "mdb" if ".mdb" in call.path else "") for call in calls]
        rename = max(
            i for i, call in enumerate(calls) if ".nds" in call.path and call.kind == "rename"
        )
        mark = next(
            i for i, kind in enumerate(kinds) if kind == ("synced write", "mdb") and i > rename
        )
        assert ("sync", "") in kinds[:rename]
        assert any(call.kind == "sync folder" for call in calls[rename:mark])
        unlinked = [
            i for i, call in enumerate(calls) if call.kind == "unlink" and ".nds" in call.path
        ]
        assert all(i > mark for i in unlinked if i > rename and calls[i].path.endswith(".nds"))


@needs_strace
def test_unsynced_writes_that_are_dropped_or_cut_lose_no_commit(
    recording: Recording, kind: str, tmp_path: Path
) -> None:
    """The power fails at a random call: any part of what was not synced may be missing."""
    case = KINDS[kind]
    states: list[State] = [{}, *islice(story(case, 7, {}), COMMITS)]
    rng = Random(11)
    opened = recording.first_acknowledgement
    for moment in range(MOMENTS):
        at = rng.randrange(opened, len(recording.calls) + 1)
        last = recording.acknowledged(at) - 1
        path = tmp_path / f"{moment}" / "index"
        Disk.after(recording.calls[:at], rng).write(path)
        with nd.DurableIndex.open(path, create=False) as index:
            contents = case.numbers(index)
            assert index.check() == []
        possible = states[last : last + 2]
        assert contents in [list(state.items()) for state in possible], (moment, at, last)
        shutil.rmtree(path.parent)


@needs_strace
def test_the_replay_notices_a_missing_sync(recording: Recording, kind: str, tmp_path: Path) -> None:
    """Without the syncs of segment files, or of the log, the same test finds losses."""
    case = KINDS[kind]
    states: list[State] = [{}, *islice(story(case, 7, {}), COMMITS)]
    for forgotten in ("sync", "sync folder"):
        calls = [call for call in recording.calls if call.kind != forgotten]
        rng, losses = Random(11), 0
        for moment in range(12):
            path = tmp_path / f"{forgotten}{moment}" / "index"
            Disk.after(calls, rng).write(path)
            try:
                with nd.DurableIndex.open(path, create=False) as index:
                    contents = case.numbers(index)
                    losses += contents != list(states[-1].items()) or index.check() != []
            except nd.NeardupError:
                losses += 1
        assert losses > 0, forgotten


def random_text(row: int) -> str:
    """Of 300 words that no other has."""
    rng = Random(row)
    return " ".join(f"{rng.getrandbits(60):x}" for _ in range(300))


def in_process(code: str, *arguments: Any, file_size: int | None = None) -> str:
    """Run code in a process of its own, whose files may not grow beyond a size."""

    def limit() -> None:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=limit,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


FILL = """
import sys, neardup as nd
index = nd.DurableIndex.open(sys.argv[1], distance=1, store="text")
done = errors = 0
text = "".join(f"{i * i}" for i in range(20_000))
for turn in range(10_000):
    index.add([f"{turn}-{i}" for i in range(20)], range(20), contents=[text[turn:]] * 20)
    try:
        index.commit()
    except nd.FileError as error:
        assert "\\n" not in str(error)
        print(error)
        try:
            index.commit()
        except nd.FileError:
            break
    done = turn + 1
print(done, len(index))
"""


def check_full(path: Path, output: str) -> None:
    """An error in one line; all commits are there, and the index goes on when there is room."""
    error, *_, counts = output.splitlines()
    count = int(counts.split()[0])
    assert count > 0
    assert str(path) in error
    with nd.DurableIndex.open(path) as index:
        assert index.check() == []
        assert len(index) == 20 * count
        index.add("later", 5, contents="text")
    with nd.DurableIndex.open(path, readonly=True) as index:
        assert "later" in index


def test_a_file_that_may_not_grow_is_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    output = in_process(FILL, path, file_size=1 << 21)
    assert "cannot write" in output
    check_full(path, output)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if (
        shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("this user cannot mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_a_clear_error_and_loses_nothing(small_disk: Path) -> None:
    path = small_disk / "index"
    output = in_process(FILL, path)
    assert "no space left" in output
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    check_full(path, output)


def change_all(index: Any, names: list[str], texts: list[str]) -> None:
    """Remove one and offer all, in a transaction."""
    with index.transaction() as t:
        t.remove(names[0])
        t.offer_many(names, texts)


def test_a_full_disk_takes_a_transaction_back_and_it_succeeds_later(small_disk: Path) -> None:
    """What it answered is not there, what was before it is, and questions are answered."""
    path, kind = small_disk / "index", KINDS["similarity"]
    texts = [random_text(row) for row in range(300)]
    names = [f"id{row}" for row in range(300)]
    names[100::50] = names[99:299:50]  # repeated ids, of twins
    texts[100::50] = texts[99:299:50]
    with nd.DurableIndex.open(path, **kind.options, recipe=nd.Recipe()) as index:
        with index.transaction() as t:
            first = t.offer_many(names[:20], texts[:20])
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes((3 << 20) + (1 << 19)))
        with pytest.raises(nd.FileError, match="no space left"):
            change_all(index, names, texts)
        assert (index.uncommitted, [name for name, _ in index]) == (0, names[:20])
        assert index.query(texts[0]) == [(names[0], 1.0)]
        assert index.offer_many(names[:20], texts[:20]) == [nd.index.Answer("stored")] * len(first)
        ballast.unlink()
        with index.transaction() as t:
            states = Counter(answer.state for answer in t.offer_many(names, texts))
        assert states == {"new": 276, "stored": 24}
    with nd.DurableIndex.open(path) as index:
        assert index.check() == []
        assert dict(zip(names, texts, strict=True)) == {
            name: index.content(name) for name, _ in index
        }


def test_a_full_disk_stops_a_checkpoint_which_succeeds_later(small_disk: Path) -> None:
    path = small_disk / "index"
    with nd.DurableIndex.open(path, distance=0) as index:
        index.add(range(5000), range(5000))
        index.commit()
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(3 << 20))
        index.add(range(10_000, 90_000), range(80_000))
        with pytest.raises(nd.FileError, match="cannot write") as caught:
            index.compact()
        assert "\n" not in str(caught.value)
        assert index.query(4999) == [(4999, 0), (14_999, 0)]
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    with nd.DurableIndex.open(path, readonly=True) as index:
        assert len(index) == 85_000
        assert index.check() == []
    assert [x.name for x in path.iterdir() if "tmp" in x.name] == []


def test_a_readonly_disk_can_be_read_and_not_written(small_disk: Path) -> None:
    path = small_disk / "index"
    with nd.DurableIndex.open(path, distance=0) as index:
        index.add(range(100), range(100))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(nd.FileError, match=re.escape(f"cannot write {path}: Read-only")):
        nd.DurableIndex.open(path)
    with pytest.raises(nd.FileError, match="Read-only"):
        nd.DurableIndex.open(small_disk / "new")
    with nd.DurableIndex.open(path, readonly=True) as index:
        assert index.query(99) == [(99, 0)]
        assert index.check() == []


def test_little_address_space_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "index"
    output = in_process(
        """
        import resource, sys, neardup as nd
        index = nd.DurableIndex.open(sys.argv[1] + "-warm")
        index.add(1, 1); index.query(1); index.close()
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        room = now + (200 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        index = nd.DurableIndex.open(sys.argv[1], distance=1, store="text")
        for turn in range(20):
            texts = [f"{turn} {i} " * 2000 for i in range(100)]
            index.add([f"{turn}-{i}" for i in range(100)], range(100), contents=texts)
            index.commit()
        print(len(index), index.query(1)[0])
        """,
        path,
    )
    assert output == "2000 ('0-1', 0)\n"


@pytest.mark.parametrize("call", ["commit", "commit to files", "transaction", "compact"])
def test_an_interrupt_after_the_sync_of_a_commit_does_not_undo_half_of_it(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the disk is waited for, so most interrupts of a commit are such."""
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "distance", 1000)
    index = nd.DurableIndex.open(tempfile.mkdtemp(), distance=0, store="text")
    index.add(range(100), range(100), ["a"] * 100)
    index.commit()
    write, rows = Head.write, range(100, 1200 if call == "commit to files" else 120)

    def interrupted(head: Head, number: int) -> None:
        write(head, number)
        monkeypatch.setattr(Head, "write", write)
        signal.raise_signal(signal.SIGINT)

    def add() -> None:
        if call == "transaction":
            with index.transaction():
                index.add(rows, rows, ["b"] * len(rows))
        else:
            index.add(rows, rows, ["b"] * len(rows))
            index.compact() if call == "compact" else index.commit()

    monkeypatch.setattr(Head, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add()
    assert (index.check(), len(index), index.uncommitted) == ([], rows[-1] + 1, 0)
    index.add(5000, 5000, "c")
    index.commit()
    assert index.check() == []
    index.close()
    again = nd.DurableIndex.open(index.path)
    assert [again.content(each) for each in (99, 100, rows[-1], 5000)] == ["a", "b", "b", "c"]
    assert len(again) == rows[-1] + 2
    again.close()
