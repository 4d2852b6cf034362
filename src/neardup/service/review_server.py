"""The review for one person on this machine: loopback only, a secret in the address, no account.

What guards it: it listens on 127.0.0.1; the path holds a token that only the terminal shows; a
request under another name (DNS rebinding) or from another page is refused; texts are inert, and the
page may load nothing and run only its own script (Content-Security-Policy).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import secrets
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from urllib.parse import parse_qs

from neardup.errors import FileError, UsageError
from neardup.pipeline.report.frame import json_data
from neardup.service.access import Access
from neardup.service.problem_details import Problem
from neardup.service.review_pages import end_page, pair_page
from neardup.service.settings import Limits

try:
    import uvloop

    from neardup.service.bodies import JSON, ClientGoneError, Request, read_whole
    from neardup.service.connections import address_of, http_server, listening
    from neardup.service.deadlines import Deadlines
    from neardup.service.responses import HEADERS, HTML, Answer, send_answer
except ModuleNotFoundError as error:
    raise UsageError(f"review requires {error.name}: pip install 'neardup[serve]'") from None

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.pipeline.judgement.so_far import SoFar
    from neardup.pipeline.report import PairShown

    class Session(Protocol):
        """A review: pairs by number, one after the other, and what was answered."""

        def following(self) -> int | None: ...
        def before(self, number: int | None) -> int | None: ...
        def pair(self, number: int) -> PairShown | None: ...
        def answer_of(self, number: int) -> str | None: ...
        def answer(self, number: int, label: str) -> bool: ...
        def status(self) -> dict[str, Any]: ...
        def so_far(self) -> SoFar: ...


__all__ = ["ReviewServer"]

ADDRESS: Final = "127.0.0.1"
FURTHER_PORTS: Final = 20
_LIMITS: Final = Limits(body_bytes=4096, drain_seconds=2)
_TEXT: Final = b"text/plain; charset=utf-8"


class ReviewServer:
    """The server of one review, until it is shut down.

    Args:
        review: The session.
        port: Where; 0 for any that is free. If it is taken, the next one that is free is used.
        tell: Takes a line for the terminal: a port that is taken, an answer that was not kept.

    Raises:
        UsageError: For a port that cannot be.
        FileError: If it, and those after it, cannot be listened on.
    """

    def __init__(
        self, review: Session, port: int = 0, tell: Callable[[str], None] | None = None
    ) -> None:
        """Listen on a port; nothing is answered before `serve_forever`."""
        if port > 65535:
            raise UsageError(f"port is {port}: use a number from 0 to 65535")
        self.review, self._tell = review, tell or (lambda _: None)
        self.token = secrets.token_urlsafe(24)
        self._access = Access((), ADDRESS)
        self._stack = contextlib.ExitStack()
        further = min(FURTHER_PORTS, 65535 - port) if port else 0
        self._listener = self._stack.enter_context(listening("--port", ADDRESS, port, further))
        # One thread calls the review, one call after the other: what was looked up before an
        # answer is kept holds until it is kept, however many browsers are open.
        self._worker = self._stack.enter_context(ThreadPoolExecutor(1, "neardup-review"))
        self._ending = threading.Event()
        self._end: Callable[[], None] = self._ending.set
        if port and self.server_port != port:
            self._tell(f"port {port} is taken: the review is on port {self.server_port}")

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the socket."""
        self._stack.close()

    @property
    def server_port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """The address with its secret."""
        return f"http://{address_of(self._listener)}/{self.token}/"

    def serve_forever(self) -> None:
        """Answer requests until Ctrl-C or `shutdown`."""
        uvloop.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`, from any thread."""
        self._end()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)

        async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
            await self._answered(deadlines, scope, receive, send)

        server = http_server(application, deadlines, _LIMITS)

        def end() -> None:
            server.force_exit = server.should_exit  # the second time
            server.should_exit = True

        def end_from_outside() -> None:
            loop.call_soon_threadsafe(end)

        self._end = end_from_outside
        server.should_exit = self._ending.is_set()  # before the loop ran
        if threading.current_thread() is threading.main_thread():
            loop.add_signal_handler(signal.SIGINT, end)
        watch_task = asyncio.create_task(deadlines.watch())
        try:
            await server.serve(sockets=[self._listener])
        finally:
            self._end = self._ending.set
            watch_task.cancel()

    async def _answered(
        self, deadlines: Deadlines, scope: dict[str, Any], receive: Any, send: Any
    ) -> None:
        """Answer an ASGI request."""
        received = functools.partial(deadlines.within, _LIMITS.body_seconds, receive)
        request = Request(dict(scope["headers"]), received, send, [*HEADERS])
        try:
            answer = await self._answer_of(request, scope)
        except Problem as problem:
            answer = _refusal(problem.status, problem.detail)
        except ClientGoneError:
            return
        if answer.status >= 400:  # what is left of the request's body is not read
            request.common.append((b"connection", b"close"))
        await send_answer(request, answer)

    async def _answer_of(self, request: Request, scope: dict[str, Any]) -> Answer:
        self._access.check(request.headers, None)
        token, _, path = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return _refusal(403, "open the address that the terminal shows")
        posts = scope["method"] == "POST"
        if scope["method"] not in {"GET", "HEAD", "POST"} or path not in {"", "status", "answer"}:
            return _refusal(404, "there is no such page: open the address that the terminal shows")
        if posts != (path == "answer"):
            return _refusal(
                405, f"pages take GET; an answer is sent by POST to /{self.token}/answer"
            )
        call: Callable[[], Answer]
        if posts:
            fields = _fields(await read_whole(request.receive, request.headers, _LIMITS))
            call = functools.partial(self._kept, request, fields)
        elif path == "status":
            call = self._status
        else:
            call = functools.partial(self._page, _fields(scope["query_string"]).get("pair"))
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    def _status(self) -> Answer:
        return Answer(json_data(self.review.status()).encode(), JSON)

    def _page(self, place: str | None) -> Answer:
        """The page of a pair, by its number, or of the next pair."""
        number = self.review.following() if place is None else _number(place)
        if number is None and place is None:
            page = end_page(self.review.before(None), self.review.so_far())
            return Answer(page, HTML)
        return self._pair(number, 200)

    def _pair(self, number: int | None, status: int) -> Answer:
        review = self.review
        pair = None if number is None else review.pair(number)
        if number is None or pair is None:
            return _refusal(404, "there is no such pair: open the address that the terminal shows")
        before, answer, so_far = review.before(number), review.answer_of(number), review.so_far()
        page = pair_page(pair, number, before, answer, so_far, was_answered=status == 409)
        return Answer(page, HTML, status)

    def _kept(self, request: Request, fields: dict[str, str]) -> Answer:
        """Store an answer, unless the pair was answered after the page was loaded."""
        number, answer = _number(fields.get("pair", "")), fields.get("answer", "")
        if number is not None and "before" in fields:
            now = self.review.answer_of(number) or ""
            if now not in {fields["before"], answer}:
                return self._pair(number, 409)
        try:
            kept = number is not None and self.review.answer(number, answer)
        except FileError as error:
            self._tell(f"an answer was not kept: {error}")
            why = f"this answer was not kept: {error}; then go back and answer again"
            return _refusal(507, why)
        if not kept:
            return _refusal(
                400, "there is no such pair or answer: go back, and load the page again"
            )
        request.common.append((b"location", f"/{self.token}/".encode()))
        return Answer(b"", _TEXT, 303)


def _fields(query: bytes) -> dict[str, str]:
    """The first value of each field of a form or a query."""
    try:
        fields = parse_qs(
            query.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=9
        )
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _refusal(status: int, why: str) -> Answer:
    return Answer(f"neardup: {why}\n".encode("utf-8", "replace"), _TEXT, status)
