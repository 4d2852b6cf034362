"""The engine: Sail in this process, Spark in this process, or a cluster by its address."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import DataError, FileError, NeardupError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["check_master", "mapped", "open_session"]

_MODES: Final = (
    "SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE",
)  # fmt: skip
"""What PySpark reads of the environment, and leaves there, to be a client or Spark itself."""

PATIENCE: Final = 10.0
"""Seconds until a server must answer."""
TRIES_HERE: Final = 3
"""In a second: Sail, in this process, ends as soon as the process is interrupted, and for good."""
CONNECT_PORT: Final = 15002
MASTER_PORT: Final = 7077

HINT: Final = (
    "pip install 'neardup[spark]' for Sail and Spark Connect, or 'neardup[spark-java]' for all"
)


def check_master(master: str) -> None:
    """Refuse an engine that is not there, before anything is read.

    Raises:
        UsageError: For an unknown master, a missing package, or missing Java.
    """
    known = master == "sail" or master.startswith(("local", "spark://", "sc://", "yarn", "k8s://"))
    if not known:
        raise UsageError(
            f"--master is {master!r}: use sail, local[2], spark://HOST:PORT, sc://HOST:PORT, yarn"
        )
    if find_spec("pyspark") is None:
        raise UsageError(f"--engine spark needs pyspark, which is not installed: {HINT}")
    if master == "sail" and find_spec("pysail") is None:
        raise UsageError(f"--master sail needs pysail, which is not installed: {HINT}")
    if master == "sail" or master.startswith("sc://"):
        if find_spec("grpc") is None:
            raise UsageError(f"--master {master} needs grpcio, which is not installed: {HINT}")
        return
    if find_spec("py4j") is None:
        raise UsageError(
            f"--master {master} needs Spark itself, and pyspark-client is only its client: pip"
            " uninstall pyspark-client, then pip install 'neardup[spark-java]'"
        )
    java = Path(os.environ.get("JAVA_HOME", ""), "bin/java")
    if which("java") is None and not (os.environ.get("JAVA_HOME") and java.exists()):
        raise UsageError(
            f"--master {master} needs Java 17 or later, and there is no java: install it, set"
            " JAVA_HOME, or use --master sail, which needs none"
        )


@contextmanager
def open_session(master: str = "sail") -> Iterator[Any]:
    """Start an engine, or connect to one, and stop it at the end.

    Args:
        master: "sail"; "local[2]" or "spark://HOST:PORT" for Spark, which takes Java; or
            "sc://HOST:PORT" for Spark Connect.

    Raises:
        UsageError: As `check_master`.
        NeardupError: If it does not start or answer.
    """
    check_master(master)
    with warnings.catch_warnings(), _mode(is_client=master.startswith(("sail", "sc://"))):
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
        server, session = _started(master)
        try:
            yield session
        finally:
            with suppress(Exception):  # one that is lost says so where it was asked
                session.stop()
            if server is not None:
                server.stop()


def mapped(frame: Any, step: Callable[[Any], Any], schema: Any) -> Any:
    """`frame.mapInArrow`, in the mode of the frame's own session where there are others beside."""
    is_client = type(frame).__module__.startswith("pyspark.sql.connect")
    with _mode(is_client=is_client):
        return frame.mapInArrow(partial(_in_one_line, step=step), schema)


def _in_one_line(batches: Iterable[Any], step: Callable[[Any], Any]) -> Iterator[Any]:
    """On the workers: let what goes wrong be one line, whatever names are in it.

    The engines tell of an error in a report of many lines, of which we read its own again.
    """
    try:
        yield from step(batches)
    except (DataError, FileError, UsageError) as error:
        raise type(error)(" ".join(str(error).split("\n"))) from None


@contextmanager
def _mode(*, is_client: bool) -> Iterator[None]:
    """Let PySpark be a client, or Spark itself, whatever another session made of it; then restore.

    A client's session leaves its mode in the environment, where Spark itself, in this process or
    one that it starts, finds it and refuses to start.
    """
    before = {name: os.environ.pop(name) for name in _MODES if name in os.environ}
    os.environ["SPARK_API_MODE"] = "connect" if is_client else "classic"
    if is_client:
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    try:
        yield
    finally:
        for name in _MODES:
            os.environ.pop(name, None)
        os.environ.update(before)


def _started(master: str) -> tuple[Any, Any]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master == "sail":
        os.environ.setdefault("RUST_LOG", "error")
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        host, port = server.listening_address
        return server, _connected(f"sc://{host}:{port}", TRIES_HERE)
    if master.startswith(("sc://", "spark://")):
        _check_answer(master)
    if master.startswith("sc://"):
        return None, _connected(master)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("neardup")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "FATAL",  # what fails is told once, by us
    }.items():
        builder = builder.config(name, value)
    try:
        return None, builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  # engines raise what they like
        raise NeardupError(f"--master {master} did not start: {_line(error)}") from None


def _check_answer(url: str) -> None:
    """Knock where engines try again for many minutes; of several masters one must answer."""
    failed = None
    for each in url.partition("://")[2].partition("/")[0].split(","):
        host, _, port = each.rpartition(":") if ":" in each else (each, "", "")
        default = CONNECT_PORT if url.startswith("sc://") else MASTER_PORT
        try:
            with socket.create_connection((host, int(port or default)), PATIENCE):
                return
        except (OSError, ValueError) as error:
            failed = error
    raise NeardupError(f"{url} does not answer: {failed}; is it started, and is this its address?")


def _connected(url: str, tries: int | None = None) -> Any:
    """A session; `tries` is how often it tries again to reach its server, for minutes if None."""
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.remote(url).create()
        if tries is not None:
            from pyspark.sql.connect.client.retries import DefaultPolicy

            session.client.set_retry_policies([DefaultPolicy(max_retries=tries)])
        session.range(1).count()
    except Exception as error:  # noqa: BLE001  # engines raise what they like
        raise NeardupError(f"{url} does not answer: {_line(error)}") from None
    return session


def _line(error: Exception) -> str:
    """The first line of an engine's message; what follows are its own stack traces."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
