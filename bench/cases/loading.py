"""Loading an index on disk: what an added document costs, and how long others wait meanwhile.

"texts" are of some 400 bytes, added in batches of 10,000, each committed: processor time of the
process, user and system, merges included, beside that of making the same features and sorting them.
"sets" have 300 features; files are synced. "beside" offers batches of a hundred with their commits
and asks for single documents while 10,000 at a time are added and files are flushed and merged: the
longest answers of each, and the longest that a write and a sync of 4 KiB took in the same folder.
"followed" is the time from the end of a commit, in another process, until a query of a reader,
which asks every millisecond, finds what it has.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "loading"
MILLION = 1_000_000
BATCH = 10_000
WARM = 80_000
FEATURES = 300
MOST_ROUNDS = 1
GIB = 2**30
FOLLOWED = (1, 100, 1_000, 10_000)
PAUSE = 0.1


def rows(quick: bool) -> list[Row]:
    """Texts, sets, and what others wait."""
    n, report_rows = (20_000 if quick else MILLION), list[Row]()
    lower: dict[str, Any] = {"better": "lower"}
    run = Measurement.of(CASE, "texts", OURS, n=n)
    label = f"{n:,} texts of 400 bytes"
    report_rows += [
        Row(f"{label}: added and committed, processor", run, unit="us", **lower),
        Row(f"{label}: their features, sorted", run, key="features", unit="us", **lower),
        Row(f"{label}: times as much", run, (), 1.5, key="times", unit="", **lower),
        Row(f"{label}: longest add", run, key="add", unit="s", **lower),
        Row(f"{label}: longest commit", run, key="commit", unit="s", **lower),
    ]
    run = Measurement.of(CASE, "sets", OURS, n=n)
    label = f"{n:,} documents of {FEATURES} features"
    report_rows += [
        Row(f"{label}: added and committed", run, unit="/s"),
        Row(f"{label}: processor", run, key="processor", unit="us", **lower),
        Row(f"{label}: a feature is written, times", run, key="written", unit="", **lower),
        Row(f"{label}: most often", run, key="most", unit="", **lower),
        Row(f"{label}: on disk", run, key="disk", unit="GiB", **lower),
        Row(f"{label}: peak of memory", run, key="peak", unit="GiB", **lower),
    ]
    run = Measurement.of(CASE, "beside", OURS, seconds=5 if quick else 60)
    report_rows += [
        Row("beside loading, a batch of 100 and its commit: longest", run, unit="s", **lower),
        Row("of it add_new: longest", run, key="offer", unit="s", **lower),
        Row(
            "the writer's lock, processor time: longest",
            run,
            (),
            0.1,
            key="held",
            **lower,
            unit="s",
        ),
        Row("a query of what is committed: longest", run, key="query", unit="s", **lower),
        Row("a write and a sync of 4 KiB: longest", run, key="sync", unit="s", **lower),
    ]
    for count in FOLLOWED:
        commits = 10 if quick else min(100, 200_000 // count)
        run = Measurement.of(CASE, "followed", OURS, rows=count, commits=commits)
        label = f"a reader finds a commit of {count:,} documents"
        report_rows += [
            Row(f"{label}: median", run, (), 50, unit="ms", **lower),
            Row(f"{label}: longest", run, key="longest", unit="ms", **lower),
        ]
    return report_rows


def texts(n: int) -> dict[str, Any]:
    """Add texts, and make their features alone."""
    import numpy as np

    import neardup as nd
    from neardup.fingerprinting.sets_of_texts import feature_sets
    from neardup.index.incoming import sorted_sets

    random = np.random.default_rng(1)
    words = [f"w{number:x}" for number in random.integers(0, 2**24, 50_000).tolist()]
    documents = [
        " ".join(words[at] for at in row) for row in random.integers(0, len(words), (n, 51))
    ]
    recipe = nd.Recipe()
    with _Folder() as folder:
        _warm(folder, documents, recipe)
        alone = time.process_time()
        for first in range(0, n, BATCH):
            sorted_sets(*feature_sets(documents[first : first + BATCH], recipe, None))
        alone = time.process_time() - alone
        adds, commits, begin = list[float](), list[float](), time.process_time()
        index = nd.DurableIndex.open(folder / "index", similarity=0.8, recipe=recipe)
        for first in range(0, n, BATCH):
            ids = [f"https://example.org/page/{row}" for row in range(first, first + BATCH)]
            adds.append(_seconds(index.add, ids, documents[first : first + BATCH]))
            commits.append(_seconds(index.commit))
        _settle(index)
        spent = time.process_time() - begin
        index.close()
    return {
        "value": 1e6 * spent / n, "features": 1e6 * alone / n, "times": spent / alone,
        "add": max(adds), "commit": max(commits),
    }  # fmt: skip


def sets(n: int) -> dict[str, Any]:
    """Add sets of features; each row of a file that is written is counted."""
    import resource

    import numpy as np

    import neardup as nd
    from neardup.index.similarity_kind import BySimilarity

    random, write = np.random.default_rng(2), BySimilarity.write
    times, counting = np.zeros(n, np.uint8), threading.Lock()

    def counted(kind: Any, segment: Any, path: Path) -> None:
        with counting:
            times[segment.numbers] += 1
        write(kind, segment, path)

    with _Folder() as folder:
        _warm(folder, [_set(random) for _ in range(WARM // 8)], None)
        BySimilarity.write = counted  # type: ignore[method-assign]
        index = nd.DurableIndex.open(folder / "index", similarity=0.8)
        begin, spent = time.perf_counter(), time.process_time()
        for first in range(0, n, BATCH):
            index.add(np.arange(first, first + BATCH), _sets(random, BATCH))
            index.commit()
        _settle(index)
        seconds, spent = time.perf_counter() - begin, time.process_time() - spent
        disk = index.stats()["bytes_on_disk"]
        index.close()
    return {
        "value": n / seconds, "processor": 1e6 * spent / n, "disk": disk / GIB,
        # Once in the log, which no segment is.
        "written": 1 + float(times.mean()), "most": 1 + int(times.max()),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
    }  # fmt: skip


def beside(seconds: float) -> dict[str, Any]:
    """Offer and ask beside loading."""
    import numpy as np

    import neardup as nd

    random = np.random.default_rng(3)
    with _Folder() as folder:
        _warm(folder, [_set(random) for _ in range(WARM // 8)], None)
        index = nd.DurableIndex.open(folder / "index", similarity=0.8)
        index.warm_up(calls="all")
        index._lock = index._folder.lock = lock = _TimedLock()  # type: ignore[assignment]  # noqa: SLF001
        others = _Others(index, folder)
        longest = others.longest
        others.begin()
        end, first = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            documents = [_set(random) for _ in range(100)]
            took = others.note("offer", index.add_new, list(range(first, first + 100)), documents)
            took += others.note("commit", index.commit)
            longest["value"] = max(longest.get("value", 0.0), took)
            first += 100
        others.end()
        longest["documents"], longest["held"] = len(index), lock.longest
        index.close()
    return longest


def followed(rows: int, commits: int) -> dict[str, Any]:
    """Ask for the last document of each commit until it is there."""
    import numpy as np

    import neardup as nd

    context = multiprocessing.get_context("spawn")
    with _Folder() as folder:
        _warm(folder, [_set(np.random.default_rng(0)) for _ in range(WARM // 8)], None)
        nd.DurableIndex.open(folder / "index", similarity=0.8).close()
        own, its = context.Pipe()
        given = folder / "index", rows, commits, its
        writer = context.Process(target=_commit, args=given, daemon=True)
        writer.start()
        waits = list[float]()
        with nd.DurableIndex.open(folder / "index", readonly=True) as reader:
            reader.warm_up()
            for number in range(commits):
                queries = _set(np.random.default_rng(number))
                while not reader.query(queries):
                    time.sleep(0.001)
                answered = time.monotonic()
                waits.append(max(0.0, answered - own.recv()))
        writer.join()
    return {"value": 1e3 * float(np.median(waits[1:])), "longest": 1e3 * max(waits[1:])}


def _commit(folder: Path, rows: int, commits: int, told: Any) -> None:
    """Commit documents, the last one by the commit's number, and tell when each was done."""
    import numpy as np
    import pyarrow as pa

    import neardup as nd

    random = np.random.default_rng(1 << 20)
    with nd.DurableIndex.open(folder) as index:
        index.warm_up()
        for number in range(commits):
            last = pa.array([_set(np.random.default_rng(number))], pa.large_list(pa.uint64()))
            documents = pa.concat_arrays([_sets(random, rows - 1), last])
            index.add(np.arange(number * rows, (number + 1) * rows), documents)
            index.commit()
            told.send(time.monotonic())
            time.sleep(PAUSE)


class _Others:
    """Threads that load, ask and sync, and how long a call of each name took at most."""

    def __init__(self, index: Any, folder: Path) -> None:
        self.longest, self._index, self._folder = dict[str, float](), index, folder
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=each) for each in (self._load, self._ask, self._sync)
        ]

    def begin(self) -> None:
        for each in self._threads:
            each.start()

    def end(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def note(self, name: str, work: Callable[..., Any], *given: Any) -> float:
        took = _seconds(work, *given)
        self.longest[name] = max(self.longest.get(name, 0.0), took)
        return took

    def _load(self) -> None:
        import numpy as np

        draw, first = np.random.default_rng(4), 1 << 40
        while not self._stop.is_set():
            self._index.add(np.arange(first, first + BATCH), _sets(draw, BATCH))
            self._index.commit()
            first += BATCH

    def _ask(self) -> None:
        import numpy as np

        draw = np.random.default_rng(5)
        ask = functools.partial(self._index.query, committed=True)
        while not self._stop.wait(0.005):
            self.note("query", ask, _set(draw))

    def _sync(self) -> None:
        def sync() -> None:
            os.pwrite(descriptor, bytes(4096), 0)
            os.fsync(descriptor)

        descriptor = os.open(self._folder / "synced", os.O_WRONLY | os.O_CREAT)
        while not self._stop.wait(0.05):
            self.note("sync", sync)
        os.close(descriptor)


def _set(random: Any) -> Any:
    """Features of one document."""
    import numpy as np

    return random.integers(0, 2**64, FEATURES, dtype=np.uint64)


def _sets(random: Any, count: int) -> Any:
    """Features of many documents, as Arrow lists."""
    import numpy as np
    import pyarrow as pa

    features = random.integers(0, 2**64, count * FEATURES, dtype=np.uint64)
    offsets = np.arange(0, len(features) + 1, FEATURES)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(features))


def _warm(folder: Path, documents: list[Any], recipe: Any) -> None:
    """Load an index of its own, so that nothing compiles and no kernel is loaded later."""
    import neardup as nd

    with nd.DurableIndex.open(folder / "warm", similarity=0.8, recipe=recipe) as index:
        for first in range(0, WARM, 20_000):
            some = documents[first : first + 20_000]
            index.add([f"warm {first + row}" for row in range(len(some))], some)
            index.commit()
            index.query(documents[0])
        _settle(index)
        index.compact()


def _settle(index: Any) -> None:
    """Wait until nothing goes on in the background."""
    while index.stats()["merging"]:
        time.sleep(0.01)


def _seconds(work: Callable[..., Any], *given: Any) -> float:
    """The wall time of a call."""
    begin = time.perf_counter()
    work(*given)
    return time.perf_counter() - begin


class _TimedLock:
    """An RLock that knows the longest processor time for which a thread had it."""

    def __init__(self) -> None:
        self._lock, self._depth, self._begin, self.longest = threading.RLock(), 0, 0.0, 0.0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._begin = time.thread_time()

    def __exit__(self, *_: object) -> None:
        if self._depth == 1:
            self.longest = max(self.longest, time.thread_time() - self._begin)
        self._depth -= 1
        self._lock.release()


class _Folder:
    """A folder beside the current one, which is on a disk, while it is used."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(dir="."))
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)
