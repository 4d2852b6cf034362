"""An index beside forks, and programs that change their folder."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import neardup as nd


def run(code: str, folder: Path) -> str:
    """What a Python program prints; it must end well."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)],
        capture_output=True, text=True, timeout=120, check=False, cwd=folder.parent,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_child_that_is_forked_holds_no_lock_on(tmp_path: Path) -> None:
    """A killed writer's index can be opened, though a child lives."""
    folder = tmp_path / "index"
    code = """
        import os, sys, time
        import neardup as nd
        index = nd.DurableIndex.open(sys.argv[1])
        index.add(1, 5)
        index.commit()
        child = os.fork()
        if child == 0:
            sys.stdout.close(); sys.stderr.close(); os.close(1); os.close(2)
            time.sleep(60)
            os._exit(0)
        print(child, flush=True)
        os.kill(os.getpid(), 9)
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    child = int(process.stdout)
    try:
        with nd.DurableIndex.open(folder) as index:
            assert list(index) == [(1, 5)]
    finally:
        os.kill(child, signal.SIGKILL)


def test_paths_are_resolved_once(tmp_path: Path) -> None:
    """Daemons change to the root folder."""
    code = """
        import os, sys
        import neardup as nd
        index = nd.DurableIndex.open("index")
        reader = nd.DurableIndex.open("index", readonly=True)
        os.chdir("/")
        for turn in range(3):
            index.add([turn, turn + 10], [turn, turn + 10])
            index.commit()
            index.compact()
        assert len(reader) == 6, len(reader)
        assert index.check() == []
        assert index.stats()["documents"] == 6
        index.close()
    """
    run(code, tmp_path / "index")


def test_a_child_opens_the_index_that_its_parent_has_open(tmp_path: Path) -> None:
    """To read it, and, after the parent has closed it, to write."""
    code = """
        import os, sys
        import neardup as nd
        def child(work):
            process = os.fork()
            if process == 0:
                try:
                    work()
                except SystemExit as ended:
                    os._exit(int(ended.code))
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(1)
                os._exit(0)
            assert os.waitpid(process, 0)[1] == 0
        def read():
            for _ in range(3):
                with nd.DurableIndex.open(sys.argv[1], readonly=True) as found:
                    assert list(found) == [(1, 5)], list(found)
        def write():
            with nd.DurableIndex.open(sys.argv[1]) as found:
                found.add(2, 6)
        index = nd.DurableIndex.open(sys.argv[1])
        index.add(1, 5)
        index.commit()
        reader = nd.DurableIndex.open(sys.argv[1], readonly=True)
        child(read)
        child(lambda: exit(list(reader) != [(1, 5)]))
        def refused():
            index.add(3, 7)
            try:
                index.commit()
            except nd.errors.UsageError:
                return
            raise AssertionError
        child(refused)
        index.close()
        child(write)
        assert list(reader) == [(1, 5), (2, 6)]
        with reader.snapshot() as view:
            child(lambda: exit(list(reader) != [(1, 5), (2, 6)]))
            assert list(view) == [(1, 5), (2, 6)]
    """
    run(code, tmp_path / "index")


@pytest.mark.parametrize("call", ["index.commit()", "index.compact()", "index.close()"])
def test_a_child_writes_no_file_beside_its_parent(call: str, tmp_path: Path) -> None:
    """Its files had the names of those that the parent wrote next, and it removed them again."""
    code = """
        import os, sys
        import neardup as nd
        from neardup.index.durable import folder_store
        folder_store.FLUSH_ROWS["distance"] = 40
        index = nd.DurableIndex.open(sys.argv[1])
        index.add(range(100), range(100))
        go = os.pipe()
        process = os.fork()
        if process == 0:
            os.read(go[0], 1)
            try:
                CALL
            except nd.errors.UsageError:
                os._exit(0)
            os._exit(1)
        index.commit()
        os.write(go[1], b"1")
        assert os.waitpid(process, 0)[1] == 0
        assert index.check() == [], index.check()
        index.close()
        with nd.DurableIndex.open(sys.argv[1]) as again:
            assert list(again) == [(row, row) for row in range(100)]
    """
    run(code.replace("CALL", call), tmp_path / "index")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system has no smaps")
def test_a_query_of_a_cold_file_does_not_read_ahead(tmp_path: Path) -> None:
    """The maps are for random reads; "rr" among the flags of a map says so."""
    with nd.DurableIndex.open(tmp_path / "index", distance=1) as index:
        index.add(range(5000), range(5000))
        index.compact()
    with nd.DurableIndex.open(tmp_path / "index", readonly=True) as reader:
        assert reader.query(77)
        parts = Path("/proc/self/smaps").read_text().split("VmFlags:")
        flags = [
            after.partition("\n")[0].split()
            for before, after in itertools.pairwise(parts)
            if f"{tmp_path}/index/segment-" in before
        ]
        assert flags
        assert all("rr" in each for each in flags)
        assert reader.warm_up() > 0


def test_a_program_that_ends_without_closing_lets_the_background_end(tmp_path: Path) -> None:
    """No thread can be started then: the one that writes the file sums it up by itself."""
    code = """
        import sys, threading, time
        import neardup as nd
        from neardup.index.distance_kind import ByDistance
        from neardup.index.durable import folder_store
        folder_store.FLUSH_ROWS["distance"] = 40
        write = ByDistance.write
        def late(*given):
            while threading.main_thread().is_alive():
                time.sleep(0.01)
            write(*given)
        ByDistance.write = late
        index = nd.DurableIndex.open(sys.argv[1])
        for first in (0, 30, 60):
            index.add(list(range(first, first + 30)), list(range(first, first + 30)))
            index.commit()
        print(index.stats()["merging"])
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "index")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stdout, process.stderr) == (0, "True\n", "")
    with nd.DurableIndex.open(tmp_path / "index", readonly=True) as reader:
        assert list(reader) == [(row, row) for row in range(90)]
        assert reader.stats()["segments"][0]["file"] is not None
