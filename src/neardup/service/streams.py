"""Streams of NDJSON: each line is answered in order, while more lines arrive.

Three tasks: one reads lines, one has them written in cuts, and one sends answers. What has come
while a cut was committed is the next cut. Answers wait in memory, up to a limit, for a client that
sends all of its lines before it reads: with neither side reading, both would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from neardup.service.bodies import NDJSON, ClientGoneError, decoded, read_lines
from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.service.bodies import Request
    from neardup.service.operations import Rows
    from neardup.service.settings import Limits

__all__ = ["stream_lines"]

MOST_UNSENT: Final = 64 << 20
RETRY_SECONDS: Final = 0.02
_encode: Final = msgspec.json.Encoder().encode


async def stream_lines(
    request: Request, rows: Rows, decoder: msgspec.json.Decoder[Any], limits: Limits
) -> None:
    """Answer a stream line by line.

    Args:
        request: Its body are the lines.
        rows: What is done with them.
        decoder: Of one line.
        limits: Of a line and a cut.

    Raises:
        Problem: If nothing was answered yet, and the body cannot be read.
    """
    lines, answers = _Lines(limits), _Answers(request)
    reader = asyncio.create_task(lines.read(request, decoder))
    sender = asyncio.create_task(answers.send())
    try:
        while cut := await lines.cut():
            answers.put(await _answered(rows, cut, limits))
            await answers.wait_for_room(limits.body_seconds)
        try:
            await reader
        except Problem as problem:
            if not answers.began:
                raise
            answers.put([problem])
            answers.is_whole = False
        answers.end()
        await sender
    finally:
        reader.cancel()
        sender.cancel()


async def _answered(rows: Rows, cut: list[Any], limits: Limits) -> list[Any]:
    """The answers to a cut, in order; if the queue is full, the stream waits too."""
    good = [row for row in cut if not isinstance(row, Problem)]
    answers: Iterator[Any] = iter(())
    if good:
        loop = asyncio.get_running_loop()
        end = loop.time() + limits.queue_seconds
        while True:
            try:
                answers = iter(await rows.answers(good, is_cut=True))
                break
            except Problem as problem:
                if problem.name != "queue-full" or loop.time() > end:
                    answers = iter([problem] * len(good))
                    break
            await asyncio.sleep(RETRY_SECONDS)
    return [row if isinstance(row, Problem) else next(answers) for row in cut]


class _Lines:
    """Received lines that are not answered yet.

    Args:
        limits: Of a cut; two are read ahead.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rows = deque[tuple[Any, int]]()
        self._nbytes, self._is_done = 0, False
        self._more, self._has_capacity = asyncio.Event(), asyncio.Event()

    async def read(self, request: Request, decoder: msgspec.json.Decoder[Any]) -> None:
        """Read the body to its end; an invalid line becomes its Problem."""
        try:
            async for lines in read_lines(request.receive, self._limits):
                for line in lines:
                    if line and not line.isspace():
                        try:
                            row = decoded(decoder, line)
                        except Problem as problem:
                            row = problem
                        self._rows.append((row, len(line)))
                        self._nbytes += len(line)
                if self._rows:
                    self._more.set()
                while self._is_ahead:
                    self._has_capacity.clear()
                    await self._has_capacity.wait()
        finally:
            self._is_done = True
            self._more.set()

    @property
    def _is_ahead(self) -> bool:
        limits = self._limits
        return len(self._rows) > 2 * limits.cut_rows or self._nbytes > 2 * limits.cut_bytes

    async def cut(self) -> list[Any]:
        """The rows received after the last cut, as many as one commit takes; empty at the end."""
        while not self._rows:
            if self._is_done:
                return []
            self._more.clear()
            await self._more.wait()
        rows, size = list[Any](), 0
        while self._rows and len(rows) < self._limits.cut_rows and size < self._limits.cut_bytes:
            row, nbytes = self._rows.popleft()
            rows.append(row)
            size += nbytes
        self._nbytes -= size
        self._has_capacity.set()
        return rows


class _Answers:
    """Answers that are not sent yet.

    Args:
        request: Whose.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._unsent = deque[bytes]()
        self._nbytes, self._is_done = 0, False
        self._more, self._has_capacity = asyncio.Event(), asyncio.Event()
        self.began = False
        """Whether any answer was put."""
        self.is_whole = True
        """Whether the whole body was read; otherwise the connection is closed without an end mark.
        """

    def put(self, answers: list[Any]) -> None:
        """Queue answers to be sent."""
        lines = [
            _encode({"error": each.to_dict()} if isinstance(each, Problem) else each)
            for each in answers
        ]
        body = b"\n".join([*lines, b""])
        self._unsent.append(body)
        self._nbytes += len(body)
        self.began = True
        self._more.set()

    def end(self) -> None:
        """Mark the end of the stream."""
        self._is_done = True
        self._more.set()

    async def wait_for_room(self, seconds: float) -> None:
        """Wait for a client that reads slowly, up to a deadline.

        Raises:
            ClientGoneError: If it still reads nothing.
        """
        while self._nbytes > MOST_UNSENT:
            self._has_capacity.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._has_capacity.wait()
            except TimeoutError:
                raise ClientGoneError from None

    async def send(self) -> None:
        """Send queued answers until the end mark."""
        request, has_begun = self._request, False
        while True:
            await self._more.wait()
            self._more.clear()
            is_done = self._is_done
            if not has_begun:
                has_begun = True
                headers = [(b"content-type", NDJSON), *request.common]
                await request.begin(200, headers)
            while self._unsent:
                body = self._unsent.popleft()
                await request.send({"type": "http.response.body", "body": body, "more_body": True})
                self._nbytes -= len(body)
                self._has_capacity.set()
            if is_done:
                if self.is_whole:
                    await request.send({"type": "http.response.body", "body": b""})
                return
