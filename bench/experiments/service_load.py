"""Load for `neardup serve`: what a `seen` costs the server, how many it answers, how soon.

    python bench/experiments/service_load.py --stored 100000 --seconds 10
    python bench/experiments/service_load.py --what fingerprints
    python bench/experiments/service_load.py --what redis
    python bench/experiments/service_load.py --what hour --rate 1000 --max-age 1000s

The first asks about texts as fast as it can, and then with half of that rate; the second sends
fingerprints to an index by distance, singly and in Arrow batches; the third asks `SET NX` of a
Redis that syncs each command, and the disk how long that takes; the last asks at a steady rate for
an hour while documents expire, and prints each minute the server's memory and its longest answer,
with what the server did in the second or so around it.

Clients are connections of one asyncio loop that write requests by hand, so that the load takes
little of the processor beside the server. Texts have 2 kB, every tenth is a near twin, ids are
addresses. Processor time is the server's own, from /proc; on a machine that does other work it is
the figure to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import neardup as nd

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = [f"w{number:05}" for number in range(20_000)]
ADD_ROWS = 2000
ARROW_ROWS = 8192
ARROW = "application/vnd.apache.arrow.stream"
FIGURES = {
    "neardup_index_segments": "segments",
    "neardup_expired_total": "expired",
    "neardup_commit_duration_seconds_count": "commits",
    "neardup_commit_duration_seconds_sum": "commit_seconds",
}


def text_of(number: int) -> str:
    """A text of some 2 kB; every tenth is the one before it but for a word."""
    chosen = random.Random(number - (number % 10 == 9))
    words = chosen.choices(WORDS, k=286)
    if number % 10 == 9:
        words[100] = "other"
    return " ".join(words)


def fill(folder: str, stored: int) -> None:
    """An index with so many documents."""
    with nd.DurableIndex.open(folder, similarity=0.8, recipe=nd.Recipe()) as index:
        for first in range(0, stored, ADD_ROWS):
            rows = range(10**9 + 10 * first, 10**9 + 10 * (first + ADD_ROWS), 10)
            index.add([f"https://example.org/{row}" for row in rows], [text_of(r) for r in rows])
            index.commit()


def processor(pid: int, thread: int | None = None) -> float:
    """Seconds of user and system time of a process, or of one thread of it."""
    folder = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    fields = Path(f"{folder}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def answer(reader: asyncio.StreamReader, is_redis: bool) -> None:
    """Read one answer, which must be good."""
    if is_redis:
        line = await reader.readline()
        if line not in {b"+OK\r\n", b"$-1\r\n"}:
            raise SystemExit(line.decode())
        return
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head)
    if found is None or not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(head.decode())
    await reader.readexactly(int(found[1]))


async def client(
    port: int, requests: list[bytes], at: list[int], end: float, pause: float, is_redis: bool
) -> list[tuple[float, float]]:
    """One connection: a request as soon as the last one is answered, or one in each pause.

    With pauses a time begins when the request was due, so that one late answer delays none unseen.

    Returns:
        The seconds of each answer, and when they began.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds, due = list[tuple[float, float]](), time.perf_counter() + pause * random.random()
    while time.perf_counter() < end and at[0] < len(requests):
        request, at[0] = requests[at[0]], at[0] + 1  # before the pause, in which others take theirs
        if pause:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        begin, due = due if pause else time.perf_counter(), due + pause
        writer.write(request)
        await answer(reader, is_redis)
        seconds.append((time.perf_counter() - begin, begin))
    writer.close()
    return seconds


def request_of(number: int) -> bytes:
    """A request as it goes over the wire."""
    row = {"id": f"https://example.org/{number}", "text": text_of(number)}
    return request("application/json", json.dumps(row).encode())


def request(kind: str, body: bytes) -> bytes:
    """A question as it goes over the wire."""
    head = f"POST /v1/seen HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def measure(
    port: int, requests: list[bytes], connections: int, until: float, pause: float, is_redis: bool
) -> list[tuple[float, float]]:
    """All clients at once; the quickest answer first."""
    at = [0]
    end = time.perf_counter() + until
    clients = (client(port, requests, at, end, pause, is_redis) for _ in range(connections))
    return sorted(each for seconds in await asyncio.gather(*clients) for each in seconds)


def load(
    pid: int, port: int, requests: list[bytes], connections: int, seconds: float, rate: float = 0,
    is_redis: bool = False, looks: list[Look] | None = None, **facts: object,
) -> float:  # fmt: skip
    """Ask, and print what it took; requests a second."""
    begin, clock = processor(pid), time.perf_counter()
    loop = processor(pid, pid)
    pause = connections / rate if rate else 0.0
    found = asyncio.run(measure(port, requests, connections, seconds, pause, is_redis))
    spent, wall = processor(pid) - begin, time.perf_counter() - clock
    line = {
        **facts,
        "connections": connections,
        "at_rate": round(rate),
        "requests": len(found),
        "requests_a_second": round(len(found) / wall),
        "server_us_a_request": round(1e6 * spent / len(found)),
        "loop_us_a_request": round(1e6 * (processor(pid, pid) - loop) / len(found)),
        "server_cores": round(spent / wall, 2),
        "p50_ms": round(1e3 * found[len(found) // 2][0], 1),
        "p99_ms": round(1e3 * found[len(found) * 99 // 100][0], 1),
        "longest_ms": round(1e3 * found[-1][0], 1),
        "load": round(os.getloadavg()[0], 1),
    }
    if looks is not None:
        took, begun = found[-1]
        line["around_the_longest"] = around(looks, pid, begun, begun + took)
    print(json.dumps(line), flush=True)
    return len(found) / wall


@contextlib.contextmanager
def service(folder: str, *options: str) -> Iterator[tuple[int, int]]:
    """Process and port of a service that is ready."""
    command = [sys.executable, "-m", "neardup", "serve", folder, "--port", "0", *options]
    begin = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  # our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        line = server.stdout.readline() if server.stdout else ""
        port = int(line.partition("127.0.0.1:")[2].split()[0])
        try:
            wait(port)
            seconds = round(time.perf_counter() - begin, 2)
            used = round(processor(server.pid), 2)
            print(json.dumps({"ready_seconds": seconds, "ready_processor": used}), flush=True)
            yield server.pid, port
        finally:
            server.terminate()


def texts(folder: str, given: argparse.Namespace) -> None:
    """Texts of 2 kB, as fast as they are answered, then at half of the last rate."""
    if not Path(folder).exists():
        fill(folder, given.stored)
    with service(folder) as (pid, port):
        first, rate = time.time_ns() // 1000 * 10, 0.0
        for connections in given.connections:
            requests = [request_of(first + row) for row in range(given.requests)]
            first += given.requests
            rate = load(pid, port, requests, connections, given.seconds, stored=given.stored)
        requests = [request_of(first + row) for row in range(given.requests)]
        load(
            pid, port, requests, given.connections[-1], given.seconds, rate / 2, stored=given.stored
        )
        print(json.dumps({"documents_a_commit": documents_a_commit(port)}), flush=True)


def metrics(port: int, *names: str) -> list[float]:
    """Figures of `/metrics`."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return [
        float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]
        for name in names
    ]


def documents_a_commit(port: int) -> float:
    """How many were written together, on average since the start."""
    total, count = metrics(port, *(f"neardup_batch_documents_{name}" for name in ("sum", "count")))
    return round(total / max(count, 1), 1)


@dataclass
class Look:
    """What the server and this process had used by a moment.

    Args:
        at: The moment, of time.perf_counter.
        threads: Of each thread of the server the seconds on a processor and, ready, without one.
        tool: The same of this process' first thread.
        figures: Of `/metrics`: `FIGURES`.
    """

    at: float
    threads: dict[int, tuple[float, float]]
    tool: tuple[float, float]
    figures: list[float]

    @classmethod
    def now(cls, pid: int, port: int) -> Look:
        """Linux only."""
        tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        return cls(
            time.perf_counter(),
            {task: scheduled(pid, task) for task in tasks},
            scheduled(os.getpid(), os.getpid()),
            metrics(port, *FIGURES),
        )


def scheduled(pid: int, thread: int) -> tuple[float, float]:
    """Seconds of a thread on a processor, and ready without one; none of it where it has ended."""
    with contextlib.suppress(OSError):
        used, waited, _ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
        return int(used) / 1e9, int(waited) / 1e9
    return 0.0, 0.0


@contextlib.contextmanager
def watch(pid: int, port: int) -> Iterator[list[Look]]:
    """Looks, one a second, which go on until the block ends."""
    looks, over = [Look.now(pid, port)], threading.Event()

    def look() -> None:
        while not over.wait(1):
            looks.append(Look.now(pid, port))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield looks
    finally:
        over.set()
        thread.join()


def around(looks: list[Look], pid: int, begin: float, end: float) -> dict[str, object]:
    """What happened between the last look before an answer and the first one after it.

    Of threads: seconds on a processor, and ready without one. The committer is the thread that has
    used most beside the loop; others flush, merge and read.
    """
    first = [look for look in looks if look.at <= begin][-1]
    last = next((look for look in looks if look.at >= end), looks[-1])
    others = [task for task in last.threads if task != pid]
    committer = max(others, key=lambda task: last.threads[task][0])
    parts: dict[str, list[int]] = {"loop": [pid], "committer": [committer]}
    parts["others"] = [task for task in others if task != committer]

    def more(at: int, tasks: list[int]) -> float:
        before = [first.threads.get(task, (0.0, 0.0))[at] for task in tasks]
        return round(sum(last.threads[task][at] for task in tasks) - sum(before), 3)

    figures = zip(FIGURES.values(), first.figures, last.figures, strict=True)
    return {
        "seconds": round(last.at - first.at, 2),
        **{name: [more(0, tasks), more(1, tasks)] for name, tasks in parts.items()},
        "load_tool": [round(last.tool[at] - first.tool[at], 3) for at in (0, 1)],
        **{name: round(after - before, 3) for name, before, after in figures},
    }


def requests_from(first: int, count: int) -> list[bytes]:
    """Requests about consecutive texts."""
    return [request_of(row) for row in range(first, first + count)]


def hour(folder: str, given: argparse.Namespace) -> None:
    """A steady rate, minute by minute, of an index whose documents expire."""
    if not Path(folder).exists():
        fill(folder, given.stored)
    first, count = time.time_ns() // 1000 * 10, round(60 * given.rate)
    with (
        service(folder, "--max-age", given.max_age) as (pid, port),
        ProcessPoolExecutor(1) as maker,
    ):
        following = maker.submit(requests_from, first, count)
        for minute in range(given.minutes):
            requests = following.result()
            following = maker.submit(requests_from, first + (minute + 1) * count, count)
            stored, segments, nbytes = metrics(
                port, *(f"neardup_index_{name}" for name in ("documents", "segments", "bytes"))
            )
            with watch(pid, port) as looks:
                load(
                    pid, port, requests, given.connections[-1], 60, given.rate, looks=looks,
                    minute=minute, stored=round(stored), segments=round(segments),
                    disk_mb=round(nbytes / 1e6), resident_mb=resident(pid),
                )  # fmt: skip


def resident(pid: int) -> dict[str, int]:
    """Memory of a process in megabytes: of its own, and of pages of files."""
    status = Path(f"/proc/{pid}/status").read_text()
    return {
        name: int(re.search(rf"^Rss{name}:\s+(\d+)", status, re.MULTILINE)[1]) // 1024  # type: ignore[index]
        for name in ("Anon", "File")
    }


def fingerprints(folder: str, given: argparse.Namespace) -> None:
    """Fingerprints by distance 3: singly, and in Arrow batches over one connection."""
    import numpy as np
    import pyarrow as pa

    nd.DurableIndex.create(folder, 3).close()
    random_codes = np.random.default_rng(1)
    with service(folder) as (pid, port):
        requests = []
        for row, code in enumerate(random_codes.integers(0, 2**63, given.requests).tolist()):
            body = json.dumps({"id": f"https://example.org/{row}", "fingerprint": code}).encode()
            requests.append(request("application/json", body))
        load(pid, port, requests, given.connections[-1], given.seconds, what="fingerprints, singly")
        requests, at = [], 0
        for _ in range(40):
            ids = [f"https://example.org/b{at + row}" for row in range(ARROW_ROWS)]
            codes = random_codes.integers(0, 2**63, ARROW_ROWS).astype(np.uint64)
            table, sink = pa.table({"id": ids, "fingerprint": codes}), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            requests.append(request(ARROW, sink.getvalue().to_pybytes()))
            at += ARROW_ROWS
        rate = load(pid, port, requests, 2, given.seconds, what="fingerprints, Arrow batches")
        print(json.dumps({"fingerprints_a_second": round(rate * ARROW_ROWS)}), flush=True)


def redis(folder: str, given: argparse.Namespace) -> None:
    """`SET NX` of the same ids, each on the disk before it is answered; and the disk alone."""
    Path(folder).mkdir()
    seconds = []
    with Path(folder, "sync").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(4096))
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(1e3 * (time.perf_counter() - begin))
    seconds.sort()
    print(json.dumps({"fdatasync_p50_ms": seconds[100], "fdatasync_p99_ms": seconds[197]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *("redis-server", "--port", str(port), "--dir", folder, "--save", ""),
        *("--appendonly", "yes", "--appendfsync", "always"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:  # noqa: S603
        try:
            time.sleep(2)
            requests = []
            for row in range(given.requests):
                key = f"https://example.org/{row}".encode()
                parts = b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in (b"SET", key, b"1", b"NX"))
                requests.append(b"*4\r\n" + parts)
            rate = 0.0
            for connections in given.connections:
                rate = load(
                    server.pid,
                    port,
                    requests,
                    connections,
                    given.seconds,
                    is_redis=True,
                    what="redis",
                )
            load(
                server.pid, port, requests, given.connections[-1], given.seconds, rate / 2,
                is_redis=True, what="redis",
            )  # fmt: skip
        finally:
            server.terminate()


WHAT = {"texts": texts, "fingerprints": fingerprints, "redis": redis, "hour": hour}


def main() -> None:
    """Fill, serve, load, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--what", choices=list(WHAT), default="texts")
    parser.add_argument("--folder", help="an index that is filled already, or is kept")
    parser.add_argument("--stored", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 100])
    parser.add_argument("--requests", type=int, default=30_000, help="at most, of each")
    parser.add_argument("--rate", type=float, default=1000, help="of an hour, in a second")
    parser.add_argument("--max-age", default="1000s", help="of an hour's documents")
    parser.add_argument("--minutes", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        WHAT[given.what](given.folder or f"{folder}/index", given)


def wait(port: int) -> None:
    """Until it is ready."""
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60):
                return
        except OSError:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
