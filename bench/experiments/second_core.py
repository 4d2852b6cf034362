"""What a second core can give on this machine, and what the steps of a run make of it.

    python bench/experiments/second_core.py

First parts that know nothing of us, on one thread and on two at once: hashing in registers, reading
and copying memory beyond the caches, touching fresh pages. Two of them at once are never quicker
than the machine is; where each takes more processor time than alone, they share what they need.
Then our own: fingerprints of texts in memory, and whole commands on one core (`taskset -c 0`) and
on two, with page faults, time in the system and switches of threads.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import corpora, processes

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS: Final = 5
SIZE: Final = 1 << 27
COMMANDS: Final = ("fingerprint .parquet", "dedup .jsonl --distance 3", "dedup .jsonl")


def in_registers() -> None:
    """SHA-256 of what stays in the first cache."""
    hashlib.sha256(bytes(1 << 25)).digest()


def parts() -> dict[str, Callable[[], Any]]:
    """Work of a tenth of a second or less; each thread has arrays of its own."""
    here = threading.local()

    def arrays() -> tuple[Any, Any]:
        if not hasattr(here, "arrays"):
            here.arrays = np.ones(SIZE // 8, np.uint64), np.ones(SIZE // 8, np.uint64)
        match: tuple[Any, Any] = here.arrays
        return match

    def touch_pages() -> None:
        with mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
            pages = np.frombuffer(fresh, np.uint8)
            pages[:: mmap.PAGESIZE] = 1
            del pages

    def read_memory() -> None:
        arrays()[0].sum()

    return {
        "hash 32 MB in registers": in_registers,
        "read 128 MB": read_memory,
        "copy 128 MB": lambda: np.copyto(*arrays()),
        "touch 128 MB of fresh pages": touch_pages,
    }


def measured(work: Callable[[], Any], threads: int) -> tuple[float, float]:
    """Seconds, and processor seconds of one thread: the least of the rounds."""
    barrier = threading.Barrier(threads)
    best = [[1e9] * threads, [1e9] * threads]

    def run(number: int) -> None:
        work()
        for _ in range(ROUNDS):
            barrier.wait()
            start, start_cpu = time.perf_counter(), time.thread_time()
            work()
            best[1][number] = min(best[1][number], time.thread_time() - start_cpu)
            barrier.wait()
            best[0][number] = min(best[0][number], time.perf_counter() - start)

    started = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return max(best[0]), sum(best[1]) / threads


def fingerprints(path: str) -> dict[int, tuple[float, float]]:
    """Seconds, and processor seconds, of fingerprints of texts in memory, by threads."""
    import neardup as nd

    texts = corpora.read_texts(path, 60)
    results = {}
    for workers in (1, 2, 1, 2):
        start, start_cpu = time.perf_counter(), time.process_time()
        nd.fingerprints(texts, workers=workers)
        new = time.perf_counter() - start, time.process_time() - start_cpu
        results[workers] = min(new, results.get(workers, new))
    return results


def reading(path: str, *, keep_features: bool) -> tuple[float, float, float]:
    """Processor seconds of the step that reads: of two of its threads, and of all.

    Of the thread that parses, and of the one that hands texts to the others and takes what they
    made of them.
    """
    from neardup.documents import ReadOptions, open_sources
    from neardup.pipeline.run.read_documents import Reader
    from neardup.pipeline.run.rule import Limits, Rule
    from neardup.runtime.threads import read_ahead

    least = 1e9, 1e9, 1e9
    for _ in range(ROUNDS):
        parsed = [0.0]

        def batches(parsed: list[float] = parsed) -> Any:
            (source,) = open_sources([path])
            start = time.thread_time()
            for batch in source.batches(ReadOptions()):
                parsed[0] += time.thread_time() - start
                yield batch
                start = time.thread_time()

        rule = Rule(distance=None if keep_features else 3)
        with Reader([path], rule, Limits(workers=2)) as reader:
            start, start_all = time.thread_time(), time.process_time()
            for batch in read_ahead(batches()):
                reader.add(0, batch)
            reader.finish()
            own = time.thread_time() - start
            least = min(least, (parsed[0], own, time.process_time() - start_all), key=sum)
    return least


def command(path: str, words: str, cores: int) -> dict[str, float]:
    """What a whole command took on so many cores."""
    name, ending, *options = words.split()
    pinned = ["taskset", "-c", "0"] if cores == 1 else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        full = [*pinned, processes.program(), name, path, *options, "--json"]
        full += ["-o", str(Path(folder, "out" + ending)), "--workers", str(cores)]
        done = subprocess.run(full, capture_output=True, check=True, text=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    steps = json.loads(done.stdout)["seconds"]
    return {
        **{f"{step}, s": seconds for step, seconds in steps.items()},
        "user, s": after.ru_utime - before.ru_utime,
        "system, s": after.ru_stime - before.ru_stime,
        "faults": after.ru_minflt - before.ru_minflt,
        "switches, waiting": after.ru_nvcsw - before.ru_nvcsw,
        "switches, put off": after.ru_nivcsw - before.ru_nivcsw,
    }


def main() -> None:
    """Print two tables."""
    print("| work | one thread: s, processor s | two at once | processor time of each |")
    print("|---|---:|---:|---:|")
    for name, work in parts().items():
        (one, one_cpu), (two, two_cpu) = (measured(work, threads) for threads in (1, 2))
        print(
            f"| {name} | {one:.3f}, {one_cpu:.3f} | {two:.3f}, {two_cpu:.3f}"
            f" | x {two_cpu / one_cpu:.2f} |"
        )
    path = corpora.speed_corpus(300)["path"]
    result = fingerprints(path)
    (one, one_cpu), (two, two_cpu) = result[1], result[2]
    print(
        f"| fingerprints of 60 MB | {one:.2f}, {one_cpu:.2f} | {two:.2f}, {two_cpu:.2f} in all"
        f" | x {two_cpu / one_cpu:.2f} |\n"
    )
    print("| read 300 MB | parses: processor s | hands over, takes | all | limit of many cores |")
    print("|---|---:|---:|---:|---:|")
    for keep in (False, True):
        parses, hands, every = reading(path, keep_features=keep)
        name = "and keep the features" if keep else "fingerprints only"
        limit = every / max(parses, hands)
        print(f"| {name} | {parses:.2f} | {hands:.2f} | {every:.2f} | x {limit:.2f} |")
    print()
    for words in COMMANDS:
        table = [command(path, words, cores) for cores in (1, 2, 1, 2)]
        print(f"| {words} | one core | two cores |\n|---|---:|---:|")
        for key in table[0]:
            one, two = (min(row[key] for row in table[first::2]) for first in (0, 1))
            print(f"| {key} | {one:,.2f} | {two:,.2f} |")
        print()


if __name__ == "__main__":
    main()
