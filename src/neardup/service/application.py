"""The ASGI application of the service: one table of routes, called for each request.

There is no framework between: 26 microseconds of a request go to the server, and one that routes
and validates took 140 more (docs/decisions/0022-service.md).
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import os
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from neardup.service.bodies import (
    ARROW,
    JSON,
    NDJSON,
    ClientGoneError,
    Request,
    arrow_rows,
    arrow_stream,
    arrow_table,
    decoded,
    media_type,
    read_whole,
)
from neardup.service.pages import fields_of, problem_page
from neardup.service.problem_details import KINDS, PROBLEM, Problem, page
from neardup.service.responses import HEADERS, HTML, Answer, send_answer
from neardup.service.streams import stream_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from neardup.service.access import Access, Right
    from neardup.service.columns import Columns
    from neardup.service.deadlines import Deadlines
    from neardup.service.operations import Rows
    from neardup.service.service import Service
    from neardup.service.settings import Limits

__all__ = ["Application", "Route"]

_log: Final = logging.getLogger("neardup.service")
_FORM: Final = b"application/x-www-form-urlencoded"
_encode: Final = msgspec.json.Encoder().encode


class Route(NamedTuple):
    """The methods, the right and the handler of one address.

    Args:
        methods: GET, HEAD and POST, as far as it has them.
        right: What it needs; None: anybody may.
        answer: Makes the answer; None if it was sent already.
    """

    methods: tuple[str, ...]
    right: Right | None
    answer: Callable[[Request], Awaitable[Answer | None]]


class Application:
    """The ASGI application of one service.

    Args:
        service: What they call.
        access: Who may.
        deadlines: End bodies that come too slowly.
    """

    def __init__(self, service: Service, access: Access, deadlines: Deadlines) -> None:
        """Build the table of routes."""
        self._deadlines = deadlines
        self._service, self._access, self._limits = service, access, service.limits
        self._prefix, self._numbers = os.urandom(4).hex(), itertools.count(1)
        self._headers = (*HEADERS, (b"neardup-recipe", service.digest.encode()))
        rows = service.operations
        self._decoders = {
            name: (
                msgspec.json.Decoder(each.row),
                msgspec.json.Decoder(list[each.row]),  # type: ignore[name-defined]
            )
            for name, each in rows.items()
        }
        self.routes: dict[str, Route] = {
            f"/v1/{name}": Route(_POST, each.right, self._rows_of(name, each))
            for name, each in rows.items()
        }
        whole: tuple[tuple[str, Right, Callable[[bytes], Awaitable[Any]]], ...] = (
            ("compare", "read", service.compare),
            ("explain", "read", service.explain),
            ("backup", "write", service.back_up),
        )
        for name, right, call in whole:
            self.routes[f"/v1/{name}"] = Route(_POST, right, self._whole_of(call))
        self.routes |= {
            "/livez": Route(_GET, None, _shown(lambda: _LIVE)),
            "/openapi.json": Route(_GET, None, _shown(lambda: Answer(service.openapi()))),
            # These wait for a commit that is under way.
            "/readyz": Route(_GET, None, _shown_by_a_thread(self._ready)),
            "/metrics": Route(
                _GET, "read", _shown_by_a_thread(lambda: Answer(service.metrics.text(), _METRICS))
            ),
            "/v1/index": Route(
                _GET, "read", _shown_by_a_thread(lambda: Answer(_encode(service.describe())))
            ),
        }
        for path, draw in (("/", service.ask_page), ("/compare", service.compare_page)):
            self.routes[path] = Route(_GET + _POST, "read", self._page_of(draw))
        for name in KINDS:
            text = Answer(page(name).encode(), b"text/plain; charset=utf-8")
            self.routes[f"/problems/{name}"] = Route(_GET, None, _shown(lambda text=text: text))  # type: ignore[misc]

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one ASGI request."""
        begin = time.perf_counter()
        headers = dict(scope["headers"])
        path, method = scope["path"], scope["method"]
        number = _request_id(headers) or b"%s-%x" % (self._prefix.encode(), next(self._numbers))
        common = [*self._headers, (b"x-request-id", number)]
        received = functools.partial(self._deadlines.within, self._limits.body_seconds, receive)
        request = Request(headers, received, send, common)
        route = self.routes.get(path)
        try:
            answer = await self._answer_of(request, route, path, method)
            if answer is not None:
                await send_answer(request, answer)
        except Problem as problem:  # frames of its traceback hold the body, some also the problem
            await _refuse(request, problem.with_traceback(None))
        except ClientGoneError:
            request.status = 499
        except Exception:  # noqa: BLE001  # a client has an answer, whatever went wrong
            _log.exception("a request failed", extra={"fields": {"request": _text(number)}})
            if not request.status:
                await _refuse(request, Problem("failure", "the log has the error"))
        finally:
            seconds, status = time.perf_counter() - begin, request.status
            self._service.metrics.answered("other" if route is None else path, status, seconds)
            has_failed = status >= 500 and path != "/readyz"  # a probe that says "not yet"
            if self._service.settings.log_requests or has_failed:
                fields = {
                    "request": _text(number), "method": method, "path": path,
                    "status": status, "seconds": round(seconds, 6),
                    "traceparent": _text(headers.get(b"traceparent", b"")),
                }  # fmt: skip
                level = logging.WARNING if has_failed else logging.INFO
                _log.log(level, "request", extra={"fields": fields})

    async def _answer_of(
        self, request: Request, route: Route | None, path: str, method: str
    ) -> Answer | None:
        """The answer to an allowed request; None if the handler already sent it."""
        headers = request.headers
        if self._access.origin is not None:
            self._allow_origin(headers, request.common)
            if method == "OPTIONS" and b"access-control-request-method" in headers:
                self._access.check(headers, None)
                return Answer(b"", JSON, 204)
        self._access.check(headers, None if route is None else route.right)
        if route is None:
            raise Problem("not-found", f"there is nothing at {path:.200}")
        if method not in route.methods:
            allowed = ((b"allow", ", ".join(route.methods).encode()),)
            raise Problem("method-not-allowed", f"{path} has no {method}", headers=allowed)
        return await route.answer(request)

    def _rows_of(self, name: str, rows: Rows) -> Callable[[Request], Awaitable[Answer | None]]:
        one, many = self._decoders[name]

        async def answer(request: Request) -> Answer | None:
            self._check(request)
            kind = media_type(request.headers)
            if kind == NDJSON:
                await stream_lines(request, rows, one, self._limits)
                return None
            body = await read_whole(request.receive, request.headers, self._limits)
            if kind == ARROW:
                return await self._arrow(rows, body)
            if body.lstrip()[:1] != b"[":
                (result,) = await rows.answers([decoded(one, body)])
                if isinstance(result, Problem):
                    raise result
                return Answer(_encode(result))
            documents = decoded(many, body)
            if len(documents) > self._limits.batch_rows:
                raise Problem(
                    "too-large",
                    f"the array has {len(documents):,} documents, and the limit is"
                    f" {self._limits.batch_rows:,}",
                )
            # A bad one refuses all, before any is written.
            for number, row in enumerate(documents, 1):
                try:
                    rows.check(row)
                except Problem as problem:
                    detail = f"document {number} of the array: {problem.detail}"
                    raise Problem(problem.name, detail) from None
            return Answer(_encode([_line(each) for each in await self._in_cuts(rows, documents)]))

        return answer

    async def _in_cuts(self, rows: Rows, documents: list[Any] | Columns) -> list[Any]:
        """The answers to many documents, which are written in cuts of a limited size."""
        limits = self._limits
        size = limits.cut_rows if isinstance(documents, list) else documents.cut_rows(limits)
        cuts = [documents[at : at + size] for at in range(0, len(documents), size)]
        done = [await rows.answers(cut, is_cut=len(cuts) > 1) for cut in cuts]
        return [answer for answers in done for answer in answers]

    async def _arrow(self, rows: Rows, body: bytes) -> Answer:
        loop = asyncio.get_running_loop()
        documents = await loop.run_in_executor(None, _documents_of, rows, body, self._limits)
        answers = await self._in_cuts(rows, documents)
        return Answer(await loop.run_in_executor(None, arrow_stream, answers), ARROW)

    def _whole_of(self, call: Callable[[bytes], Awaitable[Any]]) -> Any:
        async def answer(request: Request) -> Answer:
            self._check(request)
            if media_type(request.headers) != JSON:
                raise Problem("media-type", "this address reads application/json alone")
            body = await read_whole(request.receive, request.headers, self._limits)
            return Answer(_encode(await call(body)))

        return answer

    def _page_of(self, draw: Callable[[dict[str, str]], Awaitable[bytes]]) -> Any:
        async def answer(request: Request) -> Answer:
            fields: dict[str, str] = {}
            if request.headers.get(b"content-type", b"").partition(b";")[0] == _FORM:
                self._check(request)
                body = await read_whole(request.receive, request.headers, self._limits)
                fields = fields_of(body)
            return Answer(await draw(fields), HTML)

        return answer

    def _check(self, request: Request) -> None:
        """Refuse a request that comes before the service is ready, or with another recipe."""
        digest = request.headers.get(b"neardup-recipe")
        if digest is not None and _text(digest) != self._service.digest:
            raise Problem(
                "other-recipe",
                f"the request was made with recipe {_text(digest)!r}, and the index has"
                f" {self._service.digest!r}",
                closes=True,
            )
        if not self._service.is_open:
            raise Problem(
                "not-ready",
                self._service.why_not_ready() or "not ready",
                retry_after=2,
                closes=True,
            )

    def _ready(self) -> Answer:
        why = self._service.why_not_ready()
        readiness = {"ready": why is None, "why": why, "warnings": self._service.warnings()}
        return Answer(_encode(readiness), JSON, 200 if why is None else 503)

    def _allow_origin(self, headers: dict[bytes, bytes], common: list[tuple[bytes, bytes]]) -> None:
        origin = headers.get(b"origin")
        if origin is None or origin != self._access.origin:
            return
        common += [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", b"authorization, content-type, neardup-recipe"),
            (b"access-control-max-age", b"600"),
            (b"vary", b"origin"),
        ]


_GET: Final = ("GET", "HEAD")
_POST: Final = ("POST",)
_LIVE: Final = Answer(b'{"live":true}')
_METRICS: Final = b"text/plain; version=0.0.4; charset=utf-8"


def _shown(show: Callable[[], Answer]) -> Callable[[Request], Awaitable[Answer]]:
    async def answer(_: Request) -> Answer:
        return show()

    return answer


def _shown_by_a_thread(show: Callable[[], Answer]) -> Callable[[Request], Awaitable[Answer]]:
    async def answer(_: Request) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(None, show)

    return answer


def _documents_of(rows: Rows, body: bytes, limits: Limits) -> list[Any] | Columns:
    """The documents of an Arrow stream: as columns if these hold everything, otherwise as rows."""
    table = arrow_table(body, limits)
    columns = rows.columns(table)
    return arrow_rows(table, rows.row) if columns is None else columns


def _line(answer: Any) -> Any:
    return {"error": answer.to_dict()} if isinstance(answer, Problem) else answer


async def _refuse(request: Request, problem: Problem) -> None:
    request.common.extend(problem.headers)
    if problem.retry_after is not None:
        request.common.append((b"retry-after", b"%d" % problem.retry_after))
    if problem.closes:
        request.common.append((b"connection", b"close"))
    answer = Answer(_encode(problem.to_dict()), PROBLEM, problem.status)
    if b"text/html" in request.headers.get(b"accept", b""):  # a browser, which shows it to somebody
        answer = Answer(problem_page(problem), HTML, problem.status)
    await send_answer(request, answer)


def _request_id(headers: dict[bytes, bytes]) -> bytes | None:
    """The client's X-Request-ID, if it is short and printable; otherwise a new id."""
    value = headers.get(b"x-request-id")
    if value and len(value) <= 100 and value.isascii() and value.decode().isprintable():
        return value
    return None


def _text(value: bytes) -> str:
    return value[:200].decode("latin-1")
