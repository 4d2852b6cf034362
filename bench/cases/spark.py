"""Spark and Sail beside one machine: pairs of fingerprints, and documents at similarity 0.8.

Fingerprints are random 64-bit numbers, 1 in 64 planted near another one; documents are 60 words of
50,000, a third of them copies of earlier ones with up to 4 words changed; of dense ones a tenth are
one text with a word changed, which transitive groups at 0.5 join; by distance ("dense_near") they
have 60 words, and nearly every two of them are within 8 bits. Every engine must find what one
machine finds ("exact"). The clock runs from the input as Parquet to the counted result, in
a session that has started, after a small run that warms the workers. "shuffled", "stages" and
"tasks" are from Spark's event log; "peak" is the sum of the resident sizes of all processes that
belong to the run, the Java one too, and "cpu" that of their processor seconds, "start_cpu" those of
the session's start and the small run; "worker" is the resident size of the largest executor with
its Python workers, where executors are processes of their own. Larger sizes, and one and two
executors, are run when they are asked for:

    NEARDUP_BENCH_SPARK=large python bench/run.py spark --rounds 1

and the largest, 2^26 fingerprints and 10^7 short documents (12 words, a third of them copies, half
of these with another last word), on one machine and on Sail, the documents also on Spark with 8 GB
of heap in place of 4:

    NEARDUP_BENCH_SPARK=huge python bench/run.py spark --rounds 1

The order of 2^22 ids that are text, in ranges and in one task; "largest" is how many rows other
tasks sent to one task:

    NEARDUP_BENCH_SPARK=order python bench/run.py spark --rounds 1
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model import OURS_SPARK, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

CASE = "spark"
DISTANCE = 3
PLANTED = 64
LARGEST = 1 << 26
MASTERS = ("here", "sail", "local[2]")
EXECUTORS = ("local-cluster[1,1,2048]", "local-cluster[2,1,2048]")
MOST_ROUNDS = 1
GIB = 2**30
SETTINGS = """spark.driver.memory {1}
spark.executor.memory 2g
spark.ui.enabled false
spark.eventLog.enabled true
spark.eventLog.dir file://{0}
spark.eventLog.rolling.enabled false
spark.eventLog.compress false
"""


def rows(quick: bool) -> list[Row]:
    """Time, bytes and tasks of each engine at each size."""
    queries = os.environ.get("NEARDUP_BENCH_SPARK")
    sizes = {"near": [1 << 14 if quick else 1 << 20], "alike": [1000 if quick else 10**5]}
    sizes["dense"] = sizes["dense_near"] = sizes["alike"]
    masters = MASTERS
    if queries == "large":
        sizes["near"].append(1 << 23)
        sizes |= {"alike": [10**5, 10**6], "short": [10**6]}
        masters += EXECUTORS
    elif queries == "huge":
        sizes |= {"near": [LARGEST], "short": [10**7]}
    elif queries == "order":
        count = 1 << 14 if quick else 1 << 22
        sizes, masters = {"ordered": [count], "ordered_at_once": [count]}, MASTERS[1:]
    table = []
    for function, counts in sizes.items():
        for n in counts:
            for master in masters[: 2 if n == LARGEST else None]:
                measured = Measurement.of(CASE, function, OURS_SPARK, n=n, master=master)
                name = f"{function}, n = {n:,}, {master}"
                table.append(Row(name, measured, (), None, "lower", unit="s"))
                units = {"cpu": "s", "start_cpu": "s", "shuffled_gb": "GB", "stages": "",
                         "tasks": "", "largest": "", "peak_gib": "GiB",
                         "worker_gib": "GiB"}  # fmt: skip
                for key, unit in units.items():
                    row = Row(f"{name}: {key}", measured, (), None, "lower", key, unit)
                    table.append(row)
    return table


def near(n: int, master: str) -> dict[str, Any]:
    """Seconds for all pairs within DISTANCE bits of n fingerprints."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(11)
    words = random.integers(0, 2**64, n, dtype=np.uint64)
    left, right = random.integers(0, n, (2, n // PLANTED))
    flipped = words[left]
    for _ in range(DISTANCE):
        flipped ^= np.uint64(1) << random.integers(0, 64, len(flipped)).astype(np.uint64)
    words[right] = flipped
    table = pa.table({"id": np.arange(n), "fingerprint": words.view(np.int64)})

    def here(table: Any) -> int:
        import neardup as nd

        return len(nd.pairs(table["fingerprint"].to_numpy().view(np.uint64), DISTANCE))

    def there(frame: Any) -> int:
        from neardup import spark

        return int(spark.pairs(frame, DISTANCE, parts=_parts(n)).count())

    return _measured(table, master, here, there)


def alike(n: int, master: str) -> dict[str, Any]:
    """Seconds to decide about n documents at similarity 0.8."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(5)
    words = np.array([f"{x:x}" for x in random.integers(0, 2**32, 50_000)])
    chosen = random.integers(0, len(words), (n, 60))
    for row in np.flatnonzero(random.random(n) < 1 / 3)[1:]:
        chosen[row] = chosen[random.integers(0, row)]
        chosen[row, random.integers(0, 60, random.integers(0, 5))] = random.integers(0, 50_000)
    texts = [" ".join(words[row]) for row in chosen]
    return _decided(pa.table({"id": np.arange(n), "text": texts}), master)


def dense(n: int, master: str) -> dict[str, Any]:
    """Seconds to decide about n documents of 18 words, a tenth of which are one group, at 0.5."""
    return _decided(_group_of_a_tenth(n, 18), master, similarity=0.5, policy="components")


def dense_near(n: int, master: str) -> dict[str, Any]:
    """Seconds for n documents of 60 words, a tenth of which are one group within 8 bits."""
    return _decided(_group_of_a_tenth(n, 60), master, distance=8, policy="components")


def _group_of_a_tenth(n: int, length: int) -> Any:
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(3)
    words = np.array([f"w{i}" for i in range(n)])
    rows = words[random.integers(0, n, (n, length))]
    near = np.flatnonzero(random.random(n) < 0.1)
    rows[near] = rows[0]
    rows[near, random.integers(0, length, len(near))] = words[random.integers(0, n, len(near))]
    return pa.table({"id": np.arange(n), "text": [" ".join(row) for row in rows]})


def short(n: int, master: str) -> dict[str, Any]:
    """Seconds to decide about n documents of 12 words at similarity 0.8."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    random = np.random.default_rng(5)
    words = pa.array([f"{x:x}" for x in random.integers(0, 2**32, 50_000)])
    chosen = random.integers(0, len(words), (n, 12), dtype=np.uint16)
    copies = np.flatnonzero(random.random(n) < 1 / 3)[1:]
    chosen[copies] = chosen[(random.random(len(copies)) * copies).astype(np.int64)]
    chosen[copies[::2], -1] = random.integers(0, len(words), len(copies[::2]))
    texts = [
        pc.binary_join_element_wise(*(words.take(pa.array(x)) for x in part.T.copy()), " ")
        for part in np.array_split(chosen, max(1, n >> 18))
    ]
    return _decided(pa.table({"id": np.arange(n), "text": pa.chunked_array(texts)}), master)


def ordered(n: int, master: str) -> dict[str, Any]:
    """Seconds to number n ids that are text in their order."""
    from neardup.spark.engine import Limits

    return _ordered(n, master, Limits())


def ordered_at_once(n: int, master: str) -> dict[str, Any]:
    """Seconds to number n ids that are text in their order, in one task."""
    from neardup.spark.engine import Limits

    return _ordered(n, master, Limits(ids=n))


def _ordered(n: int, master: str, limits: Any) -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    def here(table: Any) -> int:
        first = pc.sort_indices(table["id"])[: len(table) // 2]
        return int(pc.sum(table["id"].take(first).cast(pa.int64())).as_py())

    def there(frame: Any) -> int:
        from neardup.spark.dataframes import in_order
        from neardup.spark.engine import Engine

        count = frame.count()
        with tempfile.TemporaryDirectory() as work:
            engine = Engine(frame.sparkSession, work, _parts(n), limits)
            numbers = in_order(engine, frame, count, "id string").where(f"number <= {count // 2}")
            return int(numbers.selectExpr("sum(CAST(id AS long)) AS total").collect()[0]["total"])

    names = pa.array(np.random.default_rng(1).permutation(n)).cast(pa.string())
    return _measured(pa.table({"id": names}), master, here, there)


def _decided(table: Any, master: str, **options: Any) -> dict[str, Any]:
    options = options or {"similarity": 0.8}

    def here(table: Any) -> int:
        import neardup as nd

        return int(nd.dedup(table, id="id", **options).kept.sum())

    def there(frame: Any) -> int:
        from neardup import spark

        return int(spark.dedup(frame, parts=_parts(len(table)), **options).where("kept").count())

    return _measured(table, master, here, there)


def _parts(n: int) -> int:
    """A million rows each, and eight at least."""
    return max(8, n >> 20)


def _measured(table: Any, master: str, here: Any, there: Any) -> dict[str, Any]:
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "in.parquet", row_group_size=1 << 17)
        pq.write_table(table.slice(0, 1000), folder / "first.parquet")
        expected = here(table)  # also compiles what is not compiled
        if master == "here":
            with _peak() as peak:
                begin, used = time.perf_counter(), _used(os.getpid())
                result = here(pq.read_table(folder / "in.parquet"))
                seconds, cpu = time.perf_counter() - begin, _used(os.getpid()) - used
            messages = {}
        else:
            before_start = _used(os.getpid())
            memory = "1g" if master in EXECUTORS else "8g" if len(table) >= 10**7 else "4g"
            with _session(master, folder, memory) as session, _peak() as peak:
                there(session.read.parquet(str(folder / "first.parquet")))
                before, start_cpu = _told(folder), _used(os.getpid()) - before_start
                begin, used = time.perf_counter(), _used(os.getpid())
                result = there(session.read.parquet(str(folder / "in.parquet")))
                seconds, cpu = time.perf_counter() - begin, _used(os.getpid()) - used
            messages = {"start_cpu": start_cpu} | {
                key: value - before.get(key, 0) * (key != "largest")
                for key, value in _told(folder).items()
            }
    known = {"value": seconds, "cpu": cpu, "exact": result == expected, "peak_gib": peak[0] / GIB}
    return known | messages | ({"worker_gib": peak[1] / GIB} if peak[1] else {})


@contextmanager
def _session(master: str, folder: Path, memory: str) -> Iterator[Any]:
    from neardup import spark

    (folder / "conf").mkdir()
    (folder / "events").mkdir()
    settings = SETTINGS.format(folder / "events", memory)
    (folder / "conf" / "spark-defaults.conf").write_text(settings, "utf-8")
    os.environ["SPARK_CONF_DIR"] = str(folder / "conf")
    with spark.open_session(master) as session:
        yield session


def _told(folder: Path) -> dict[str, float]:
    """What ran and was shuffled until now, of Spark's event log; nothing where there is none."""
    stages = tasks = nbytes = largest = 0
    for file in (folder / "events").glob("*"):
        for line in file.read_text("utf-8").splitlines():
            stages += '"SparkListenerStageCompleted"' in line
            if '"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics") or {}
                tasks += 1
                nbytes += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
                sent = metrics.get("Shuffle Read Metrics", {}).get("Total Records Read", 0)
                largest = max(largest, sent)
    if not tasks:
        return {}
    return {"stages": stages, "tasks": tasks, "shuffled_gb": nbytes / 1e9, "largest": largest}


@contextmanager
def _peak() -> Iterator[list[int]]:
    """The greatest resident bytes of this process with all below it, and of one executor so."""
    result, stop = [0, 0], threading.Event()

    def watch() -> None:
        while True:
            result[0] = max(result[0], _resident(os.getpid()))
            result[1] = max([result[1], *map(_resident, _executors(os.getpid()))])
            if stop.wait(0.2):
                break

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield result
    finally:
        stop.set()
        watcher.join()


def _executors(process: int) -> list[int]:
    """The processes below this one that are executors."""
    try:
        below = _below(process)
        own = [x for x in below if b"ExecutorBackend" in Path(f"/proc/{x}/cmdline").read_bytes()]
    except OSError:
        return []
    return own + [result for x in below if x not in own for result in _executors(x)]


def _below(process: int) -> list[int]:
    result = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):  # a thread that has ended
            result += [int(x) for x in (task / "children").read_text().split()]
    return result


def _resident(process: int) -> int:
    """Resident bytes of a process and all below it; those that end meanwhile do not count."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(_resident, _below(process)))
    except OSError:
        return 0


def _used(process: int) -> float:
    """Processor seconds of a process and all below it, those that have ended too."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return own + sum(map(_used, _below(process)))
    except OSError:
        return 0.0
