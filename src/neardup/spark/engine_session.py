"""Engines: Sail in this process, Spark in this process, or a cluster by its address."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final, Protocol

from neardup.errors import DataError, FileError, NeardupError, UsageError
from neardup.spark.engine_messages import line_of, stderr_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    Worker = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]

__all__ = ["Frame", "Session", "check_master", "mapped", "open_session"]


class Frame(Protocol):
    """The part of PySpark's DataFrame that is used, for its classic and its Connect class."""

    columns: list[str]
    schema: Any
    sparkSession: Any  # noqa: N815
    write: Any

    def collect(self) -> list[Any]:
        """The rows as a list."""

    def count(self) -> int:
        """The number of rows."""

    def crossJoin(self, other: Frame) -> Frame:  # noqa: N802
        """All pairs of rows."""

    def distinct(self) -> Frame:
        """Distinct rows."""

    def drop(self, *names: str) -> Frame:
        """The frame without some columns."""

    def dropDuplicates(self, subset: list[str]) -> Frame:  # noqa: N802
        """One row for each value of some columns."""

    def groupBy(self, name: str) -> Any:  # noqa: N802
        """The rows in groups."""

    def hint(self, name: str) -> Frame:
        """The frame with a hint to the planner, such as "broadcast"."""

    def join(self, other: Frame, on: str, how: str = "inner") -> Frame:
        """The joined rows of both frames."""

    def limit(self, num: int) -> Frame:
        """The first rows."""

    def mapInArrow(self, func: Worker, schema: Any) -> Frame:  # noqa: N802
        """The rows that a function returns."""

    def orderBy(self, *names: str) -> Frame:  # noqa: N802
        """The rows in order."""

    def repartition(self, parts: int, *names: str) -> Frame:
        """The rows in new partitions."""

    def select(self, *names: str) -> Frame:
        """Some columns."""

    def selectExpr(self, *expressions: str) -> Frame:  # noqa: N802
        """Columns by SQL expressions."""

    def toArrow(self) -> pa.Table:  # noqa: N802
        """The rows as an Arrow table."""

    def unionByName(self, other: Frame) -> Frame:  # noqa: N802
        """The rows of both frames."""

    def where(self, condition: str) -> Frame:
        """The rows that meet a condition."""

    def withColumnRenamed(self, existing: str, new: str) -> Frame:  # noqa: N802
        """The frame with a renamed column."""

    def withMetadata(self, name: str, metadata: dict[str, Any]) -> Frame:  # noqa: N802
        """The frame with metadata of a column."""


class Session(Protocol):
    """The part of PySpark's session that is used, for its classic and its Connect class."""

    read: Any
    conf: Any

    def createDataFrame(self, data: Sequence[Any] | pa.Table, schema: str = ...) -> Frame:  # noqa: N802
        """A frame of some rows."""


_MODES: Final = (
    "SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE",
)  # fmt: skip
"""Environment variables that make PySpark a client or Spark itself."""

LAST_WORDS: Final = 0.2
"""The seconds in which the last output of an ended process arrives."""
PATIENCE: Final = 10.0
"""The seconds within which a server must answer."""
TRIES_HERE: Final = 3
"""The attempts for Sail in this process, one second: it ends for good once the process is
interrupted."""
RETRIES: Final = 5
"""The attempts of a client to reach a lost engine: half a minute in all, instead of ten minutes."""
CONNECT_PORT: Final = 15002

_MASTER: Final = re.compile(
    r"sail|local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[\d+, *\d+, *\d+\]|yarn|k8s://.+|sc://.+"
    r"|spark://[^/,]+:\d+(,[^/,]+:\d+)*"
)

HINT: Final = (
    "pip install 'neardup[spark]' for Sail and Spark Connect, or 'neardup[spark-java]' for all"
)


def check_master(master: str) -> None:
    """Refuse an engine that is not available, before anything is read.

    Raises:
        UsageError: For an unknown master, a missing package, or missing Java.
    """
    if _MASTER.fullmatch(master) is None:
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
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home, "bin/java").exists():
        raise UsageError(
            f"JAVA_HOME is {home}, where there is no bin/java: set it to a Java 17 or later, unset"
            " it, or use --master sail, which needs none"
        )
    if not home and which("java") is None:
        raise UsageError(
            f"--master {master} needs Java 17 or later, and there is no java: install it, set"
            " JAVA_HOME, or use --master sail, which needs none"
        )
    if master == "yarn" and not any(map(os.environ.get, ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))):
        raise UsageError(
            "--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR, which name the folder with the"
            " cluster's settings: set one"
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
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error is told
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM")  # it is gone
        server, session = _started(master)
        try:
            yield session
        finally:
            with suppress(Exception):  # one that is lost says so where it was asked
                session.stop()
            if server is not None:
                server.stop()


def mapped(frame: Frame, step: Worker, schema: Any) -> Frame:
    """The result of `frame.mapInArrow` in the mode of the frame's own session."""
    is_client = type(frame).__module__.startswith("pyspark.sql.connect")
    with _mode(is_client=is_client):
        return frame.mapInArrow(partial(_in_one_line, step=step), schema)


def _in_one_line(batches: Iterable[pa.RecordBatch], step: Worker) -> Iterator[pa.RecordBatch]:
    """The batches of a step; on workers an error becomes one line, whatever names it has.

    The engines tell of an error in a report of many lines, of which we read its own again.
    """
    try:
        yield from step(batches)
    except (DataError, FileError, UsageError) as error:
        raise type(error)(" ".join(str(error).split("\n"))) from None


@contextmanager
def _mode(*, is_client: bool) -> Iterator[None]:
    """A context in which PySpark is a client, or Spark itself, whatever other sessions use.

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
    # What gRPC does when a process forks is for children that go on with it. Java's is replaced at
    # once, and now and then died of it where a session of Sail was open.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
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
        return None, _connected(master, RETRIES)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("neardup")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "FATAL",  # what fails is told once, by us
    }.items():
        builder = builder.config(name, value)
    logging.getLogger().addFilter(_no_traceback)
    with stderr_held() as lines:
        try:
            return None, builder.getOrCreate()
        except Exception as error:  # noqa: BLE001  # engines raise what they like
            time.sleep(LAST_WORDS)
            cause = "".join(lines) if "JAVA_GATEWAY_EXITED" in str(error) else str(error)
            why = line_of(cause.strip() or error)
    raise NeardupError(f"--master {master} did not start: {why}")


def _no_traceback(record: logging.LogRecord) -> bool:
    """A context that suppresses py4j's traceback of Ctrl-C."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")


def _check_answer(url: str) -> None:
    """Connect once before engines retry for many minutes; one of several masters must answer."""
    failed = None
    for each in url.partition("://")[2].partition("/")[0].split(","):
        host, _, port = each.rpartition(":") if ":" in each else (each, "", "")
        try:
            with socket.create_connection((host, int(port or CONNECT_PORT)), PATIENCE):
                return
        except (OSError, ValueError) as error:
            failed = error
    raise NeardupError(f"{url} does not answer: {failed}; is it started, and is this its address?")


def _connected(url: str, tries: int) -> Any:
    """A session; `tries` is the number of attempts to reach its server."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    try:
        session = SparkSession.builder.remote(url).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=tries)])
        session.range(1).count()
    except Exception as error:  # noqa: BLE001  # engines raise what they like
        raise NeardupError(f"{url} does not answer: {line_of(error)}") from None
    return session
