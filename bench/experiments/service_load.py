"""Load for `neardup serve`: what a `seen` costs the server, how many it answers, how soon.

    python bench/experiments/service_load.py --stored 100000 --seconds 10

Clients are connections of one asyncio loop that write requests by hand, so that the load takes
little of the processor beside the server. Texts have 2 kB, every tenth is a near twin, ids are
addresses. Processor time is the server's own, from /proc; on a machine that does other work it is
the figure to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import neardup as nd

WORDS = [f"w{number:05}" for number in range(20_000)]
ADD_ROWS = 2000


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


async def client(port: int, requests: list[bytes], at: list[int], end: float) -> list[float]:
    """One connection: the next request as soon as the last one is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds = []
    while time.perf_counter() < end and at[0] < len(requests):
        request, at[0] = requests[at[0]], at[0] + 1
        begin = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head)
        if found is None or not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(head.decode())
        await reader.readexactly(int(found[1]))
        seconds.append(time.perf_counter() - begin)
    writer.close()
    return seconds


def request_of(number: int) -> bytes:
    """A request as it goes over the wire."""
    row = {"id": f"https://example.org/{number}", "text": text_of(number)}
    body = json.dumps(row).encode()
    head = "POST /v1/seen HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def measure(port: int, requests: list[bytes], connections: int, until: float) -> list[float]:
    """All clients at once."""
    at = [0]
    end = time.perf_counter() + until
    found = await asyncio.gather(*(client(port, requests, at, end) for _ in range(connections)))
    return sorted(each for seconds in found for each in seconds)


def main() -> None:
    """Fill, serve, load, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stored", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 100])
    parser.add_argument("--requests", type=int, default=30_000, help="at most, of each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fill(f"{folder}/index", given.stored)
        command = [sys.executable, "-m", "neardup", "serve", f"{folder}/index", "--port", "0"]
        with subprocess.Popen(  # noqa: S603  # our own command
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            line_of_start = server.stdout.readline() if server.stdout else ""
            port = int(line_of_start.partition("127.0.0.1:")[2].split()[0])
            try:
                wait(port)
                first = 0
                for connections in given.connections:
                    requests = [request_of(first + row) for row in range(given.requests)]
                    first += given.requests
                    begin, clock = processor(server.pid), time.perf_counter()
                    loop = processor(server.pid, server.pid)
                    found = asyncio.run(measure(port, requests, connections, given.seconds))
                    spent, wall = processor(server.pid) - begin, time.perf_counter() - clock
                    loop = processor(server.pid, server.pid) - loop
                    line = {
                        "stored": given.stored,
                        "connections": connections,
                        "requests": len(found),
                        "requests_a_second": round(len(found) / wall),
                        "server_us_a_request": round(1e6 * spent / len(found)),
                        "loop_us_a_request": round(1e6 * loop / len(found)),
                        "server_cores": round(spent / wall, 2),
                        "p50_ms": round(1e3 * found[len(found) // 2], 1),
                        "p99_ms": round(1e3 * found[len(found) * 99 // 100], 1),
                        "longest_ms": round(1e3 * found[-1], 1),
                    }
                    print(json.dumps(line), flush=True)
            finally:
                server.terminate()


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
