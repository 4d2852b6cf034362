"""Runs a service: the socket, the order of starting and ending, and its log.

open the index, listen, answer /livez and /readyz, warm up, ready
SIGTERM or Ctrl-C: not ready, take no connections, answer what was asked, commit, close
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import FileError, UsageError
from neardup.index import DurableIndex
from neardup.service.access import Access

try:
    import uvicorn
    import uvloop
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    from neardup.service.application import Application
    from neardup.service.deadlines import Deadlines
    from neardup.service.resp import RespServer
    from neardup.service.service import Service
except ModuleNotFoundError as error:
    raise UsageError(f"the service needs {error.name}: pip install 'neardup[serve]'") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from neardup.service.deadlines import Wait
    from neardup.service.settings import Settings

__all__ = ["serve"]

BACKLOG: Final = 2048
_LATE: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
KEEP_ALIVE_SECONDS: Final = 75
_log: Final = logging.getLogger("neardup.service")


def serve(folder: str | Path, settings: Settings, tell: Callable[[str], None], **made: Any) -> None:
    """Serve the index in a folder until a signal comes.

    Args:
        folder: Of the index.
        settings: How.
        tell: Takes the line that says where it listens.
        made: What a new index is made with: as of DurableIndex.open.

    Raises:
        UsageError, DataError, FileError: If it cannot be.
    """
    access = Access.of(settings)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_logs())
        listener = stack.enter_context(_listener("--port", settings.host, settings.port))
        resp = None
        if settings.resp is not None:
            resp = stack.enter_context(_listener("--resp", settings.host, settings.resp))
        index = DurableIndex.open(folder, readonly=settings.readonly, **made)
        uvloop.run(_run(index, settings, access, listener, resp, tell))


async def _run(
    index: DurableIndex, settings: Settings, access: Access, listener: socket.socket,
    resp_listener: socket.socket | None, tell: Callable[[str], None],
) -> None:  # fmt: skip
    loop = asyncio.get_running_loop()
    service = Service(index, settings, loop, has_keys=access.has_keys)
    limits, deadlines = settings.limits, Deadlines(loop)
    config = uvicorn.Config(
        Application(service, access, deadlines),
        http=_protocol(deadlines, limits.head_seconds), ws="none", lifespan="off",
        log_config=None, access_log=False, server_header=False, proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=round(limits.drain_seconds),
    )  # fmt: skip
    server = _Server(config)
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
        too = f" and redis://{_address(resp_listener)}"
    tell(f"serving {index.path} on http://{_address(listener)}{too} (Ctrl-C ends it)")
    warming = loop.run_in_executor(None, service.warm_up)

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
        await warm_task
    finally:
        watch_task.cancel()
        await asyncio.gather(*resp_ending)
        await loop.run_in_executor(None, service.close)
        _log.info("ended")


def _keep_what_is_loaded() -> None:
    """Have the collector pass over what modules and compilers made.

    They are some hundred thousand objects that live as long as the process. To look through them
    once in a while took a third of a request's time, and held up all threads for 0.1 seconds.
    """
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """Leaves signals to `_run`, which ends the service before it ends the server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _protocol(deadlines: Deadlines, seconds: float) -> type[HttpToolsProtocol]:
    """HTTP as uvicorn has it, but a head that does not come in time closes the connection."""

    class Protocol(HttpToolsProtocol):
        head: Wait | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.head = deadlines.begin(seconds, self._close_late)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self.head is None:
                self.head = deadlines.begin(seconds, self._close_late)

        def on_headers_complete(self) -> None:
            self._head_ended()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_ended()
            super().connection_lost(exc)

        def _head_ended(self) -> None:
            if self.head is not None:
                deadlines.end(self.head)
                self.head = None

        def _close_late(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(_LATE)
                self.transport.close()

    return Protocol


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextlib.contextmanager
def _listener(option: str, host: str, port: int) -> Iterator[socket.socket]:
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--host {host} {option} {port}: {error}; name another one") from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise FileError(
                f"cannot listen on {host}:{port}: {why}; choose another {option}"
            ) from None
        listener.setblocking(False)
        yield listener


class _JsonLines(logging.Formatter):
    """A line of JSON for each record; `fields` of a record are fields of the line."""

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
    """Send the records of neardup and of the server to the standard error, as lines of JSON."""
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
