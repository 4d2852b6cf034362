"""What survives: kill -9 under load, a full disk, SIGTERM, clients that die, many idle ones.

`python tests/service/test_service_endures.py 50` kills one so many times: `make serve-rounds`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

import neardup as nd
from neardup.fingerprinting.fingerprints import feature_hashes
from requests_damaged import attack
from services import Service, words
from suite import needs_jit, without_kernels

CLIENTS = 8


def story(number: int) -> dict[str, Any]:
    """A document; every fourth is a twin of the one before it."""
    text = words(("story", number - (number % 4 == 3)), 30)
    return {"id": f"d{number}", "text": f"x{text}" if number % 4 == 3 else text}


class Log:
    """What the clients were answered, on the disk before the next request.

    Args:
        path: A line of JSON for each answer.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+")
        self._lock = threading.Lock()
        self.unanswered: list[dict[str, Any]] = []
        self._next = self.answered = 0

    def next(self) -> dict[str, Any]:
        """A document that nobody sent."""
        with self._lock:
            self._next += 1
            return story(self._next)

    def write(self, row: dict[str, Any], answer: dict[str, Any]) -> None:
        """An answer came."""
        with self._lock:
            self._file.write(json.dumps([row, answer]) + "\n")
            self._file.flush()
            self.answered += 1

    def wait(self, answers: int) -> None:
        """Until so many answers came: how soon they come is no matter of a test."""
        end = time.monotonic() + 120
        while self.answered < answers:
            assert time.monotonic() < end, f"{self.answered} answers in two minutes"
            time.sleep(0.05)

    def read(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """All answers."""
        self._file.seek(0)
        return [(row, answer) for row, answer in map(json.loads, self._file)]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def load(url: str, log: Log) -> None:
    """Send documents until the service is gone."""
    with httpx.Client(base_url=url, timeout=60) as client:
        while True:
            row = log.next()
            try:
                response = client.post("/v1/seen", json=row)
            except httpx.TransportError:
                log.unanswered.append(row)
                return
            if response.status_code == 503:  # it is ending
                log.unanswered.append(row)
                return
            assert response.status_code == 200, response.text
            log.write(row, response.json())


def check(folder: Path, log: Log) -> int:
    """Compare the index with what the clients were answered; how many answers there are."""
    recipe, answers = nd.Recipe(), log.read()
    texts = {row["id"]: row["text"] for row, _ in answers}
    features: dict[str, set[int]] = {}
    for name, text in texts.items():
        features[name] = set(feature_hashes(text, recipe).tolist())
    with nd.DurableIndex.open(folder, readonly=True) as index:
        assert index.check() == []
        for row, answer in answers:
            name = row["id"]
            if answer["new"]:
                assert name in index, f"{name} was acknowledged and is lost"
                continue
            other, similarity = answer["match"]["id"], answer["match"]["similarity"]
            assert name not in index
            assert other in index
            if other in features:
                mine, its = features[name], features[other]
                assert len(mine & its) / len(mine | its) == similarity >= 0.8
    new = {row["id"] for row, answer in answers if answer["new"]}
    for name in new:
        number = int(name[1:])
        if number % 4 == 3 and f"d{number - 1}" in new:
            mine, its = features[name], features[f"d{number - 1}"]
            assert len(mine & its) / len(mine | its) < 0.8, f"both twins of {name} are new"
    return len(answers)


def rounds(folder: Path, count: int, seconds: float) -> int:
    """Kill a service under load so many times; how many answers were compared."""
    log, chance = Log(folder / "answers.jsonl"), random.Random(count)
    for _ in range(count):
        with Service(folder / "index") as service:
            again, log.unanswered = log.unanswered, []
            for row in again:  # whatever the kill did to it, it is answered now
                log.write(row, service.ask("seen", row))
            with ThreadPoolExecutor(CLIENTS) as pool:
                running = [pool.submit(load, service.url, log) for _ in range(CLIENTS)]
                log.wait(log.answered + 10)
                time.sleep(seconds * (0.5 + chance.random()))
                service.process.send_signal(signal.SIGKILL)
                for each in running:
                    each.result()
        check(folder / "index", log)
    size = len(log.read())
    log.close()
    return size


def test_a_kill_under_load_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    assert rounds(tmp_path, 2, 1.0) >= 20


def test_ten_seconds_of_load_then_sigterm_answers_what_was_asked_and_hangs_on_no_connection(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path / "answers.jsonl")
    with (
        Service(tmp_path / "index") as service,
        socket.create_connection(("127.0.0.1", service.port)),  # idle, and never used
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        service.client.get("/livez")  # and this connection is kept alive
        running = [pool.submit(load, service.url, log) for _ in range(CLIENTS)]
        log.wait(25)
        time.sleep(10)
        begin = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - begin < 15
        for each in running:
            each.result()
    assert check(tmp_path / "index", log) >= 25
    log.close()


@needs_jit
def test_sigterm_while_kernels_compile_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    nd.DurableIndex.open(tmp_path / "index", similarity=0.8, recipe=nd.Recipe()).close()
    (tmp_path / "scratch").mkdir()
    environment = without_kernels(tmp_path / "kernels") | {"TMPDIR": str(tmp_path / "scratch")}
    command = [sys.executable, "-m", "neardup", "serve", str(tmp_path / "index"), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving")
        time.sleep(1)
        process.terminate()
        _, log = process.communicate(timeout=10)
    assert process.returncode == 0, log
    assert '"ended"' in log
    assert '"ready"' not in log
    assert not list((tmp_path / "scratch").glob("neardup-*/*/*"))


def test_a_full_disk_refuses_writes_and_answers_queries_until_there_is_room(
    tmp_path: Path,
) -> None:
    with Service(tmp_path / "index") as service:
        first = {"id": "first", "text": words("first")}
        service.ask("seen", first)
        nobody = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        row = {"id": "second", "text": words("second")}
        response = service.post("seen", row)
        assert (response.status_code, response.json()["type"]) == (507, "/problems/disk-full"), (
            response.text
        )
        assert service.ask("query", {"text": first["text"]})["matches"]
        assert service.ask("query", {"text": row["text"]})["matches"] == []
        assert service.client.get("/readyz").json()["why"].startswith("writes are refused")
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, nobody)
        end = time.monotonic() + 30
        while service.client.get("/readyz").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert service.ask("seen", row) == {"new": True, "state": "new"}
        assert service.stop() == 0


def test_idle_connections_half_bodies_and_clients_that_die_harm_nobody(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the service inherits it
    idle = min(int(os.environ.get("NEARDUP_IDLE_CONNECTIONS", "300")), hard - 200)
    with Service(tmp_path / "index") as service, contextlib.ExitStack() as stack:
        for _ in range(idle):
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
        for number in range(50):
            row = json.dumps({"id": f"dead{number}", "text": words(("dead", number))})
            head = f"POST /v1/seen HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(row)}\r\n"
            whole = f"{head}Content-Type: application/json\r\n\r\n{row}".encode()
            with socket.create_connection(("127.0.0.1", service.port)) as client:
                client.sendall(whole)
            half = socket.create_connection(("127.0.0.1", service.port))
            stack.enter_context(half).sendall(whole.replace(b"dead", b"half")[:-20])
        assert service.ask("seen", {"id": "alive", "text": words("alive")})["new"]
        assert 1 <= service.client.get("/v1/index").json()["documents"] <= 51
        assert service.stop() == 0
    with nd.DurableIndex.open(tmp_path / "index", readonly=True) as index:
        assert not any(f"half{number}" in index for number in range(50))


def test_damaged_requests_are_refused(tmp_path: Path) -> None:
    assert attack(tmp_path, 4.0, 1) > 0


def test_an_address_that_others_reach_needs_a_key_and_an_index_a_similarity(
    tmp_path: Path,
) -> None:
    for options, message in (
        (("--similarity", "0.8", "--host", "0.0.0.0"), "there are no keys"),  # noqa: S104
        ((), "neardup index create"),
        (("--similarity", "0.8", "--max-age", "soon"), "--max-age is 'soon'"),
    ):
        command = [sys.executable, "-m", "neardup", "serve", str(tmp_path / "none"), *options]
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert process.returncode == 2
        assert message in process.stderr
        assert process.stderr.count("\n") == 1
        assert not (tmp_path / "none").exists()


def test_serve_waits_for_another_writer_and_names_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "neardup", "serve", str(tmp_path), "--port", "0"]
    message = f"is open for writing in process {os.getpid()}"
    with nd.DurableIndex.open(tmp_path, similarity=0.8, recipe=nd.Recipe()):
        for options, waited in (((), ":"), (("--wait", "1s"), " after 1 s of waiting:")):
            process = subprocess.run(
                [*command, *options], capture_output=True, text=True, check=False, timeout=60
            )
            assert process.returncode != 0
            assert message + waited in process.stderr
    process = subprocess.run(
        [*command, "--readonly", "--wait", "1s"], capture_output=True, text=True, check=False
    )
    assert "--wait and --readonly exclude each other" in process.stderr


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        count = int(sys.argv[1])
        print(f"{count} kills, {rounds(Path(folder), count, 1.5)} answers, all there")  # noqa: T201
