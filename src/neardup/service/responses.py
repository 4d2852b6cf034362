"""Whole answers, and the headers that all answers of the service share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from neardup.service.bodies import JSON

if TYPE_CHECKING:
    from neardup.service.bodies import Request

__all__ = ["HEADERS", "HTML", "Answer", "send_answer"]

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
HTML: Final = b"text/html; charset=utf-8"
_PAGE_HEADERS: Final = {  # a page says itself what it may load, and a form names where it came from
    b"content-security-policy": b"frame-ancestors 'none'",
    b"referrer-policy": b"same-origin",
}


class Answer(NamedTuple):
    """A whole answer: status, media type, body and headers."""

    body: bytes
    kind: bytes = JSON
    status: int = 200


async def send_answer(request: Request, answer: Answer) -> None:
    """Send a whole answer; a page carries its own content security policy."""
    length, common = b"%d" % len(answer.body), request.common
    if answer.kind == HTML:
        common = [(name, _PAGE_HEADERS.get(name, value)) for name, value in common]
        common.append((b"cross-origin-resource-policy", b"same-origin"))
    headers = [(b"content-type", answer.kind), (b"content-length", length), *common]
    await request.begin(answer.status, headers)
    await request.send({"type": "http.response.body", "body": answer.body})
