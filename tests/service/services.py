"""A service in a process of its own, as users run it, and requests to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Service", "words"]

SECONDS: Final = 300


def words(seed: object, count: int = 40) -> str:
    """A text of its own, always the same for a seed."""
    import random

    chosen = random.Random(repr(seed))
    return " ".join(f"w{chosen.randrange(10**6)}" for _ in range(count))


class Service:
    """`neardup serve` of a folder, on a free port.

    Args:
        folder: Of the index.
        options: Of the command; an index is made unless they say otherwise.
        environment: More variables.
    """

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.folder = folder
        if "--similarity" not in options and "--distance" not in options and not folder.exists():
            options = (*options, "--similarity", "0.8")
        command = [sys.executable, "-m", "neardup", "serve", str(folder), "--port", "0", *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        self.log: list[str] = []
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self.log.extend, args=(self.process.stderr,))
        self._reader.start()
        self.line = self.process.stdout.readline()
        match = re.search(r"http://\S+", self.line)
        if match is None:
            self.process.wait(SECONDS)
            raise AssertionError(f"{self.line}{''.join(self.log)}")
        self.url = match[0]
        self.client = httpx.Client(base_url=self.url, timeout=SECONDS)
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + SECONDS
        while self.client.get("/readyz").status_code != 200:
            assert time.monotonic() < end, self.log
            assert self.process.poll() is None, self.log
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def post(self, path: str, json: Any, **options: Any) -> httpx.Response:
        """Send JSON to an address of /v1."""
        return self.client.post(f"/v1/{path}", json=json, **options)

    def ask(self, path: str, json: Any) -> Any:
        """The answer to JSON, which must be one."""
        response = self.post(path, json)
        assert response.status_code == 200, response.text
        return response.json()

    def stop(self) -> int:
        """End it as systemd does; the exit code."""
        self.process.terminate()
        return self.process.wait(60)
