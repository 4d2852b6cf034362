"""Connections: a listening socket, and an HTTP server with limits for the heads of requests."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from neardup.errors import FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.service.deadlines import Deadlines, Wait
    from neardup.service.settings import Limits

__all__ = ["Server", "address_of", "http_server", "listening"]

BACKLOG: Final = 2048
KEEP_ALIVE_SECONDS: Final = 75
_REFUSAL: Final = "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_LATE: Final = _REFUSAL.format("408 Request Timeout").encode()
_LARGE: Final = _REFUSAL.format("431 Request Header Fields Too Large").encode()


def http_server(application: Callable[..., Any], deadlines: Deadlines, limits: Limits) -> Server:
    """A server of an ASGI application.

    Args:
        application: What it calls.
        deadlines: End heads that come too slowly.
        limits: Of heads, and until connections are cut when the server ends.
    """
    own = {"deadlines": deadlines, "limits": limits}
    config = uvicorn.Config(
        application,
        http=type("Protocol", (_Protocol,), own), ws="none", lifespan="off",
        log_config=None, access_log=False, server_header=False, proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=round(limits.drain_seconds),
    )  # fmt: skip
    return Server(config)


class Server(uvicorn.Server):
    """An HTTP server that leaves signals to its caller, which ends its own work first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(HttpToolsProtocol):
    """The HTTP protocol of uvicorn, closing a connection whose head is too late or too large.

    It speaks no other protocol, whatever a client offers: Java's sends `Upgrade: h2c` by itself.
    """

    deadlines: ClassVar[Deadlines]
    limits: ClassVar[Limits]
    head: Wait | None = None
    data, again = b"", b""
    """What the parser is given, and what a new one is given after it."""
    incomplete = 0
    """Bytes since the last head or piece of a body: the parser stores them without a limit."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head_begins()

    def data_received(self, data: bytes) -> None:
        self.incomplete += len(data)
        while data:
            self.data, self.again = data, b""
            super().data_received(data)
            data = self.again
        self.data = b""
        if self.incomplete > self.limits.head_bytes:
            self._refuse(_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.head is None:
            self._head_begins()

    def on_headers_complete(self) -> None:
        self.incomplete = 0
        self._head_ended()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.incomplete = 0
        super().on_body(body)

    def _should_upgrade(self) -> bool:
        """Whether the parser takes what follows the head for another protocol."""
        return any(name == b"upgrade" for name, _ in self.headers)

    def handle_websocket_upgrade(self) -> None:
        """Have the request read again without the offer: the parser has left out its body."""
        offered = sys.exception()
        assert isinstance(offered, httptools.HttpParserUpgrade)  # noqa: S101  # its handler calls
        method, version = self.scope["method"], self.scope["http_version"]
        head = [b"%s %s HTTP/%s" % (method.encode(), self.url, version.encode())]
        head += [b"%s: %s" % each for each in self.headers if each[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.again = b"\r\n".join([*head, b"", self.data[offered.args[0] :]])

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_ended()
        super().connection_lost(exc)

    def _head_begins(self) -> None:
        self.head = self.deadlines.begin(self.limits.head_seconds, lambda: self._refuse(_LATE))

    def _head_ended(self) -> None:
        if self.head is not None:
            self.deadlines.end(self.head)
            self.head = None

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


def address_of(listener: socket.socket) -> str:
    """Host and port of a socket, as in a URL."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextlib.contextmanager
def listening(option: str, host: str, port: int, further: int = 0) -> Iterator[socket.socket]:
    """A listening socket.

    Args:
        option: Of the port, for messages.
        host: Name or address.
        port: 0 for one that is free.
        further: How many of the next ports are tried where one is taken.

    Raises:
        UsageError: For a host or port that cannot be.
        FileError: If the port, and those that were tried after it, cannot be listened on.
    """
    host = host.strip("[]")
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--host {host} {option} {port}: {error}; name another one") from None
    family, kind, protocol, _, address = addresses[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for each in range(port, port + 1 + further):
            try:
                listener.bind((address[0], each, *address[2:]))
                listener.listen(BACKLOG)
                break
            except (OSError, OverflowError) as error:
                if getattr(error, "errno", None) == errno.EADDRINUSE and each < port + further:
                    continue
                why = getattr(error, "strerror", None) or error
                raise FileError(
                    f"cannot listen on {host}:{each}: {why}; choose another {option}"
                ) from None
        listener.setblocking(False)
        yield listener
