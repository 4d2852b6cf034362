"""A server for Redis clients: BF.ADD and similar commands, in RESP 2 and 3 (`--resp PORT`).

    BF.ADD key item         1: no document near the item was stored; it is now. 0: one is
    BF.MADD key item ...    the same for many
    BF.EXISTS key item      1: a stored document is near
    BF.MEXISTS key item ... the same for many

An item is a text, and its id a hash of its bytes; the key names nothing but this index. Commands
go the way of `/v1/seen` and `/v1/query`: the same committer, limits and keys. Those of a pipeline
are committed together; one that reads waits for the writes before it, and a write for the reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from neardup.runtime.version import __version__
from neardup.service.messages import Document, Query
from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Coroutine

    from neardup.service.access import Access, Right
    from neardup.service.service import Service

__all__ = ["RespServer"]

MOST_WAITING: Final = 512
"""The most commands of a pipeline that are read before their answers are sent."""
LEAST_BYTES: Final = 1 << 16
"""The most bytes of a command before AUTH, where keys are required."""
_RIGHTS: Final[dict[bytes, tuple[Right, int | None]]] = {
    b"BF.ADD": ("write", 1), b"BF.MADD": ("write", None),
    b"BF.EXISTS": ("read", 1), b"BF.MEXISTS": ("read", None), b"INFO": ("read", 0),
}  # fmt: skip
_CODES: Final = {
    "key-missing": "NOAUTH", "key-only-reads": "NOPERM", "read-only": "READONLY",
    "not-ready": "LOADING",
}  # fmt: skip
_log: Final = logging.getLogger("neardup.service")
_NEW: Final = {"new", "empty"}
"""What was stored under its hash before, Redis does not call new."""
Answer: TypeAlias = "bytes | Awaitable[bytes]"


class RespServer:
    """The connections of Redis clients.

    Args:
        service: What they ask.
        access: Who may.
    """

    def __init__(self, service: Service, access: Access) -> None:
        """Store the service; nothing listens yet."""
        self.service, self.access = service, access
        self._connections = dict[asyncio.Task[None], _Connection]()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Listen for connections."""
        self._server = await asyncio.start_server(self._connected, sock=listener)

    async def stop(self, seconds: float) -> None:
        """Accept no more connections, answer the pending commands, and close all connections."""
        assert self._server is not None  # noqa: S101  # it was started
        self._server.close()
        for each in self._connections.values():
            each.end()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=seconds)
            for task in late:
                task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a handler runs in one
        connection = self._connections[task] = _Connection(self, reader, writer)
        try:
            await connection.run()
        finally:
            del self._connections[task]
            writer.close()


class _Connection:
    """The connection of one Redis client.

    Args:
        server: Which.
        reader: Of its commands.
        writer: Of answers.
    """

    def __init__(
        self, server: RespServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._service, self._access = server.service, server.access
        self._rights: set[Right] = set() if server.access.has_keys else {"read", "write"}
        self._is_new = False
        """Whether the client speaks RESP 3, which has maps and booleans."""
        self._answers: asyncio.Queue[Answer | None] = asyncio.Queue(MOST_WAITING)
        self._writes, self._reads = set[asyncio.Task[bytes]](), set[asyncio.Task[bytes]]()
        self._reading = asyncio.create_task(self._read_all())

    async def run(self) -> None:
        """Answer commands until the client or the service ends."""
        sender = asyncio.create_task(self._send())
        await asyncio.wait({self._reading, sender}, return_when=asyncio.FIRST_COMPLETED)
        self.end()
        if not sender.done():
            await self._answers.put(None)
        with contextlib.suppress(ConnectionError):
            await sender

    def end(self) -> None:
        """Read no more commands; answer those already read."""
        self._reading.cancel()

    async def _read_all(self) -> None:
        closed = ConnectionError, asyncio.IncompleteReadError, TimeoutError
        most, waiting = self._service.limits.body_bytes, 0
        with contextlib.suppress(*closed):
            while True:
                try:
                    command = await self._read()
                except Problem as problem:  # where the next command begins, nobody knows
                    await self._answers.put(_error(problem))
                    return
                if self._reads and command and _RIGHTS.get(command[0], ("read",))[0] == "write":
                    await asyncio.wait(self._reads)  # which must not see what it writes
                await self._answers.put(self._begin(command))
                if command[:1] == [b"QUIT"]:
                    return
                waiting += sum(map(len, command))
                if waiting > most:
                    await self._answers.join()
                    waiting = 0

    async def _read(self) -> list[bytes]:
        """The next command.

        Raises:
            Problem: If it is not a number, or too large.
        """
        reader, limits = self._reader, self._service.limits
        most = limits.body_bytes if self._rights else LEAST_BYTES
        parts = list[bytes]()
        try:
            count = _count(await reader.readline(), b"*", limits.batch_rows + 2)
            async with asyncio.timeout(limits.body_seconds):
                for _ in range(count):
                    size = _count(await reader.readline(), b"$", most)
                    most -= size
                    parts.append((await reader.readexactly(size + 2))[:-2])
        except ValueError:  # no end of a line within what is read at once
            raise Problem("malformed-body", "Protocol error: a line is too long") from None
        return [parts[0].upper(), *parts[1:]] if parts else []

    def _begin(self, command: list[bytes]) -> Answer:
        """The answer to a command, or an awaitable of it."""
        name, arguments = command[0] if command else b"PING", command[1:]
        try:
            if name not in _RIGHTS:
                return self._of_connection(name, arguments)
            right, count = _RIGHTS[name]
            self._check(name, right, arguments, count)
            if name == b"INFO":
                return asyncio.create_task(self._described())
            items = [(each, each.decode()) for each in arguments[1:]]
        except UnicodeDecodeError:
            return _error(Problem("invalid-document", "an item is not a text in UTF-8"))
        except Problem as problem:
            return _error(problem)
        if right == "read":
            before = list(self._writes)
            return _kept(self._reads, self._query(items, before, is_one=count == 1))
        return _kept(self._writes, self._written(items, is_one=count == 1))

    def _check(self, name: bytes, right: Right, arguments: list[bytes], count: int | None) -> None:
        """Refuse a command that is not allowed now or has wrong arguments, with a Problem."""
        if right not in self._rights:
            which = "key-only-reads" if self._rights else "key-missing"
            raise Problem(which, "send AUTH with a key that may")
        if name == b"INFO":
            return
        if len(arguments) < 2 or (count is not None and len(arguments) != count + 1):
            raise Problem("invalid-document", f"wrong number of arguments for {_text(name)}")
        if not self._service.is_open:
            raise Problem("not-ready", "the service is starting")

    def _of_connection(self, name: bytes, arguments: list[bytes]) -> bytes:
        """The answer to a command about the connection itself."""
        if name == b"PING":
            return _bulk(arguments[0]) if arguments else b"+PONG\r\n"
        if name == b"QUIT":
            return b"+OK\r\n"
        if name == b"AUTH" and arguments:
            self._authorise(arguments[-1])
            return b"+OK\r\n"
        if name == b"HELLO":
            if arguments[:1] not in ([], [b"2"], [b"3"]):
                return b"-NOPROTO unsupported protocol version\r\n"
            upper = [each.upper() for each in arguments]
            if b"AUTH" in upper and len(arguments) > upper.index(b"AUTH") + 2:
                self._authorise(arguments[upper.index(b"AUTH") + 2])
            if not self._rights:
                raise Problem("key-missing", "HELLO must be called with AUTH and a key")
            self._is_new = arguments[:1] == [b"3"] or (self._is_new and not arguments)
            facts = {"server": "neardup", "version": __version__, "mode": "standalone"}
            body = b"".join(_bulk(each.encode()) for pair in facts.items() for each in pair)
            proto = _bulk(b"proto") + (b":3\r\n" if self._is_new else b":2\r\n")
            return (b"%%%d\r\n" % 4 if self._is_new else b"*%d\r\n" % 8) + body + proto
        if name in {b"SELECT", b"CLIENT"}:  # a library's greeting: nothing to choose
            return b"+OK\r\n"
        raise Problem(
            "not-found",
            f"unknown command '{_text(name)}': there are BF.ADD, BF.MADD, BF.EXISTS, BF.MEXISTS,"
            " PING, INFO, AUTH, HELLO and QUIT",
        )

    def _authorise(self, key: bytes) -> None:
        if not self._access.has_keys:
            return
        self._rights = self._access.rights(key)
        if not self._rights:
            raise Problem("key-missing", "the key is not one of this service")

    async def _described(self) -> bytes:
        loop = asyncio.get_running_loop()
        return _bulk(_info(await loop.run_in_executor(None, self._service.describe)))

    async def _written(self, items: list[tuple[bytes, str]], *, is_one: bool) -> bytes:
        kind = self._service.id_kind
        rows = [Document(_id(data, kind), text) for data, text in items]
        return await self._answered("seen", rows, lambda found: found.state in _NEW, is_one=is_one)

    async def _query(
        self, items: list[tuple[bytes, str]], before: list[asyncio.Task[bytes]], *, is_one: bool
    ) -> bytes:
        if before:
            await asyncio.wait(before)
        rows = [Query(text, limit=1) for _, text in items]
        return await self._answered("query", rows, lambda found: found.total > 0, is_one=is_one)

    async def _answered(self, name: str, rows: list[Any], says: Any, *, is_one: bool) -> bytes:
        begin, status = time.perf_counter(), 200
        size, parts = self._service.limits.cut_rows, list[bytes]()
        try:
            for at in range(0, len(rows), size):
                cut = self._service.operations[name].answers(
                    rows[at : at + size], is_cut=len(rows) > size
                )
                parts += [
                    _error(each) if isinstance(each, Problem) else self._flag(says(each))
                    for each in await cut
                ]
            return parts[0] if is_one else b"*%d\r\n%s" % (len(parts), b"".join(parts))
        except Problem as problem:
            status = problem.status
            return _error(problem.with_traceback(None))
        except Exception:  # noqa: BLE001  # as a request: the next one is answered
            status = 500
            _log.exception("a command failed")
            return _error(Problem("failure", "the log has the error"))
        finally:
            seconds = time.perf_counter() - begin
            self._service.metrics.answered(f"resp {name}", status, seconds)

    def _flag(self, value: bool) -> bytes:
        if self._is_new:
            return b"#t\r\n" if value else b"#f\r\n"
        return b":%d\r\n" % value

    async def _send(self) -> None:
        """Send the answers in the order of the commands."""
        while (answer := await self._answers.get()) is not None:
            data = answer if isinstance(answer, bytes) else await answer
            if self._writer.is_closing():  # the client is gone
                return
            self._writer.write(data)
            self._answers.task_done()
            if self._answers.empty():
                await self._writer.drain()


def _kept(tasks: set[asyncio.Task[bytes]], work: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
    """A task of some work, which is among these tasks until it is done."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def _count(line: bytes, mark: bytes, most: int) -> int:
    """The number in the head of an array or of a bulk string."""
    if not line:
        raise ConnectionResetError  # between two commands: the client is done
    number = line[1:].strip()
    if line[:1] != mark or not number.isdigit() or not line.endswith(b"\r\n"):
        raise Problem("malformed-body", f"Protocol error: expected '{_text(mark)}' and a number")
    if len(number) > 12 or int(number) > most:
        raise Problem("too-large", f"the command has more than {most:,}")
    return int(number)


def _id(data: bytes, kind: str | None) -> str | int:
    """The id of an item: a hash of its bytes, of the kind that the index has."""
    digest = hashlib.blake2b(data, digest_size=16)
    if kind == "int":
        return int.from_bytes(digest.digest()[:8], "little", signed=True)
    return digest.hexdigest()


def _info(facts: dict[str, Any]) -> bytes:
    lines = ["# neardup", *(f"{name}:{each}" for name, each in facts.items() if name != "recipe")]
    return "\r\n".join([*lines, ""]).encode()


def _bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


def _error(problem: Problem) -> bytes:
    code = _CODES.get(problem.name, "ERR")
    detail = " ".join(problem.detail.split())
    return f"-{code} {problem.name}: {detail}\r\n".encode()


def _text(value: bytes) -> str:
    return value[:100].decode("latin-1")
