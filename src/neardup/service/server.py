"""Runs a service: its socket, the order of start and end, and its log.

open the index, listen, answer /livez and /readyz, warm up, ready
SIGTERM or Ctrl-C: not ready, take no connections, answer what was asked, commit, close; before it
is ready there is nothing to answer, and nobody waits for what compiles
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import json
import logging
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import UsageError
from neardup.index import DurableIndex
from neardup.service.access import Access

try:
    import uvloop

    from neardup.service.application import Application
    from neardup.service.connections import address_of, http_server, listening
    from neardup.service.deadlines import Deadlines
    from neardup.service.resp import RespServer
    from neardup.service.service import Service
except ModuleNotFoundError as error:
    raise UsageError(f"the service needs {error.name}: pip install 'neardup[serve]'") from None

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from neardup.service.settings import Settings

__all__ = ["serve"]

_log: Final = logging.getLogger("neardup.service")


def serve(
    folder: str | Path, settings: Settings, tell: Callable[[str], None], **index_settings: Any
) -> None:
    """Serve the index in a folder until a signal comes.

    Args:
        folder: Of the index.
        settings: How.
        tell: Takes the line that says where it listens.
        index_settings: Settings of a new index, as for DurableIndex.open.

    Raises:
        UsageError, DataError, FileError: If it cannot be.
    """
    access = Access.of(settings)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_logs())
        listener = stack.enter_context(listening("--port", settings.host, settings.port))
        resp = None
        if settings.resp is not None:
            resp = stack.enter_context(listening("--resp", settings.host, settings.resp))
        index = DurableIndex.open(folder, readonly=settings.readonly, **index_settings)
        uvloop.run(_run(index, settings, access, listener, resp, tell))


async def _run(
    index: DurableIndex, settings: Settings, access: Access, listener: socket.socket,
    resp_listener: socket.socket | None, tell: Callable[[str], None],
) -> None:  # fmt: skip
    loop = asyncio.get_running_loop()
    service = Service(index, settings, loop, has_keys=access.has_keys)
    limits, deadlines = settings.limits, Deadlines(loop)
    application = Application(service, access, deadlines)
    server = http_server(application, deadlines, limits)
    resp = RespServer(service, access)
    resp_ending: list[asyncio.Task[None]] = []

    def end(name: str) -> None:
        if server.should_exit:  # the second signal
            server.force_exit = True
        _log.info("ending", extra={"fields": {"signal": name}})
        service.end()
        server.should_exit = True
        if resp_listener is not None and not resp_ending:
            resp_ending.append(asyncio.create_task(resp.stop(limits.drain_seconds)))

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end, each.name)
    too = ""
    if resp_listener is not None:
        await resp.start(resp_listener)
        too = f" and redis://{address_of(resp_listener)}"
    tell(f"serving {index.path} on http://{address_of(listener)}{too} (Ctrl-C ends it)")
    warming = _in_daemon(service.warm_up)

    async def warm() -> None:
        try:
            seconds = await warming
        except BaseException:
            server.should_exit = True
            raise
        _keep_what_is_loaded()
        fields = {"documents": len(index), "warm_seconds": round(seconds, 3)}
        _log.info("ready", extra={"fields": fields})

    warm_task = asyncio.create_task(warm())
    watch_task = asyncio.create_task(deadlines.watch())
    try:
        await server.serve(sockets=[listener])
        if warm_task.done():
            await warm_task
    finally:
        for task in (watch_task, warm_task):
            task.cancel()
        await asyncio.gather(*resp_ending)
        await loop.run_in_executor(None, service.close)
        _log.info("ended")


def _in_daemon(call: Callable[[], float]) -> asyncio.Future[float]:
    """The result of a call in a daemon thread, for which the process does not wait at its end."""
    future = concurrent.futures.Future[float]()
    future.set_running_or_notify_cancel()  # nobody can cancel it then

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # whoever waits raises it
            future.set_exception(error)

    threading.Thread(target=run, name="neardup-warming", daemon=True).start()
    return asyncio.wrap_future(future)


def _keep_what_is_loaded() -> None:
    """Exclude the objects of modules and compilers from garbage collection.

    They are some hundred thousand objects that live as long as the process. To look through them
    once in a while took a third of a request's time, and held up all threads for 0.1 seconds.
    """
    gc.collect()
    gc.freeze()


class _JsonLines(logging.Formatter):
    """A log formatter: a line of JSON for each record, with its `fields` as fields."""

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{when}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


@contextlib.contextmanager
def _logs() -> Iterator[None]:
    """Write the log records of neardup and of the server to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    levels = {"neardup": logging.INFO, "uvicorn.error": logging.WARNING, "asyncio": logging.WARNING}
    loggers = [*map(logging.getLogger, levels)]
    before = [(each.level, each.propagate) for each in loggers]
    for each, level in zip(loggers, levels.values(), strict=True):
        each.addHandler(handler)
        each.setLevel(level)
        each.propagate = False
    try:
        yield
    finally:
        for each, (level, propagate) in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.setLevel(level)
            each.propagate = propagate
