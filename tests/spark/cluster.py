"""A standalone Spark cluster on loopback: a master and workers, from pyspark's own classes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cluster", "light", "started"]

PATIENCE: Final = 120.0
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What lets a Java process start sooner, which ends before it is warm."""
SETTINGS: Final = f"""spark.executor.memory 900m
spark.executor.extraJavaOptions {QUICK}
spark.driver.extraJavaOptions {QUICK}
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.ui.enabled false
"""


class Cluster:
    """Its address, and its workers as processes of sessions of their own."""

    def __init__(self, url: str, environment: dict[str, str], folder: Path) -> None:
        """Begin without workers."""
        self.url, self.environment = url, environment
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def launch(self, *command: str) -> subprocess.Popen[bytes]:
        """Start one of Spark's classes."""
        import pyspark

        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        log = (self._folder / f"{len(self._processes)}.log").open("wb")
        process = subprocess.Popen(
            [str(program), *command], env=self.environment, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one core."""
        options = ("--cores", "1", "--memory", "1g", "--host", "127.0.0.1", "--webui-port", "0")
        work = str(self._folder / f"work{len(self._processes)}")
        name = "org.apache.spark.deploy.worker.Worker"
        self.workers.append(self.launch(name, *options, "--work-dir", work, self.url))
        return self.workers[-1]

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        """Kill a process with all that it started."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def log_of(self, number: int) -> str:
        """What a process has said."""
        return (self._folder / f"{number}.log").read_text("utf-8", "replace")

    def close(self) -> None:
        """Kill all."""
        for process in reversed(self._processes):
            self.kill(process)


@contextmanager
def started(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a master and workers; all are gone at the end.

    Args:
        folder: For logs, settings and the workers' files.
        workers: How many, of one core each.
    """
    port, environment = _free_port(), light(folder)
    cluster = Cluster(f"spark://127.0.0.1:{port}", environment, folder)
    try:
        cluster.launch("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port",
                       str(port), "--webui-port", "0")  # fmt: skip
        for _ in range(workers):
            cluster.add_worker()
        _wait(cluster, workers)
        yield cluster
    finally:
        cluster.close()


def light(folder: Path) -> dict[str, str]:
    """The environment of a Spark on loopback that starts soon.

    Args:
        folder: For its settings and its files; it is made.
    """
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "spark-defaults.conf").write_text(SETTINGS, "utf-8")
    return {
        **os.environ,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PYSPARK_PYTHON": sys.executable,
    }


def _wait(cluster: Cluster, workers: int) -> None:
    until = time.monotonic() + PATIENCE
    while cluster.log_of(0).count("Registering worker") < workers:
        if time.monotonic() > until:
            raise TimeoutError(f"no {workers} workers after {PATIENCE} s: {cluster.log_of(1)}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        port: int = result.getsockname()[1]
        return port
