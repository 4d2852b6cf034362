"""The review for one person on this machine: loopback only, a secret in the address, no account.

What guards it: it listens on 127.0.0.1; the path holds a token that only the terminal shows; a
request under another name (DNS rebinding) or from another page is refused; texts are inert, and the
page may load nothing and run only its own script (Content-Security-Policy).
"""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from neardup.errors import FileError, UsageError
from neardup.pipeline.report.frame import frame, json_data
from neardup.pipeline.report.page import card

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.pipeline.judgement.so_far import SoFar
    from neardup.pipeline.report import PairShown

    class Session(Protocol):
        """A review: pairs by number, one after the other, and what was answered."""

        def following(self) -> int | None: ...
        def before(self, number: int | None) -> int | None: ...
        def pair(self, number: int) -> PairShown | None: ...
        def said(self, number: int) -> str | None: ...
        def answer(self, number: int, said: str) -> bool: ...
        def status(self) -> dict[str, Any]: ...
        def so_far(self) -> SoFar: ...


__all__ = ["ReviewServer", "end_page", "pair_page"]

ADDRESS: Final = "127.0.0.1"
MOST_BODY: Final = 4096
SECONDS: Final = 30


class ReviewServer(ThreadingHTTPServer):
    """Serves one review until it is shut down.

    Args:
        review: The session.
        port: Where; 0 for any that is free.
        tell: Takes a line for the terminal: an answer that could not be kept.

    Raises:
        UsageError: For a port that cannot be.
        FileError: If it is taken.
    """

    daemon_threads = True

    def __init__(
        self, review: Session, port: int = 0, tell: Callable[[str], None] | None = None
    ) -> None:
        """Listen; nothing is answered before `serve_forever`."""
        self.review, self.tell = review, tell
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OverflowError:
            raise UsageError(f"port is {port}: use a number from 0 to 65535") from None
        except OSError as error:
            raise FileError(
                f"cannot listen on {ADDRESS}:{port}: {error.strerror}; choose another --port"
            ) from None

    @property
    def url(self) -> str:
        """The address with its secret."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> set[str]:
        """The names under which it may be asked."""
        return {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a browser goes away."""


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    server_version = "neardup"
    sys_version = ""
    timeout = SECONDS

    def do_GET(self) -> None:  # http.server names it
        where = self._checked()
        if where is None:
            return
        path, query = where
        review = self.server.review
        if path == "status":
            self._send(HTTPStatus.OK, json_data(review.status()), "application/json")
        elif path:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        else:
            asked = _number(parse_qs(query).get("pair", [""])[0])
            self._show(review.following() if asked is None else asked)

    def do_POST(self) -> None:  # http.server names it
        where = self._checked()
        if where is None:
            return
        if where[0] != "answer":
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        length = _number(self.headers.get("Content-Length", ""))
        if length is None or length > MOST_BODY:
            self._refuse(HTTPStatus.BAD_REQUEST, f"an answer has up to {MOST_BODY} bytes")
            return
        form = parse_qs(self.rfile.read(length).decode("utf-8", "replace"))
        number, said = _number(form.get("pair", [""])[0]), form.get("answer", [""])[0]
        try:
            kept = number is not None and self.server.review.answer(number, said)
        except FileError as error:
            if self.server.tell is not None:
                self.server.tell(f"an answer was not kept: {error}")
            why = f"this answer was not kept: {error}; then go back and answer again"
            self._refuse(HTTPStatus.INSUFFICIENT_STORAGE, why)
            return
        if not kept:
            self._refuse(HTTPStatus.BAD_REQUEST, "no such pair or answer: open the page anew")
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"/{self.server.token}/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _checked(self) -> tuple[str, str] | None:
        """Path below the token and query of a request that is ours; else it was refused."""
        origin, hosts = self.headers.get("Origin"), self.server.hosts
        foreign = origin is not None and origin.removeprefix("http://") not in hosts
        if self.headers.get("Host") not in hosts or foreign:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is for this machine only")
            return None
        parts = urlsplit(self.path)
        token, _, path = parts.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "open the address that the terminal shows")
            return None
        return path, parts.query

    def _show(self, number: int | None) -> None:
        review = self.server.review
        so_far, before = review.so_far(), review.before(number)
        if number is None:
            self._send(HTTPStatus.OK, end_page(before, so_far))
            return
        pair = review.pair(number)
        if pair is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such pair")
            return
        page = pair_page(pair, number, before, review.said(number), so_far)
        self._send(HTTPStatus.OK, page)

    def _refuse(self, code: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._send(code, f"neardup: {why}\n", "text/plain")

    def _send(self, code: HTTPStatus, text: str, kind: str = "text/html") -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(code)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "same-origin"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal shows the address only."""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


_KEYS: Final = """
addEventListener("keydown",function(event){
if(event.ctrlKey||event.metaKey||event.altKey||event.repeat)return;
var name={y:"yes",n:"no",u:"unsure",b:"back",Backspace:"back"}[event.key];
var button=name&&document.getElementById(name);if(button){event.preventDefault();button.click()}});
"""
_BUTTONS: Final = (("yes", "y", "Duplicates"), ("no", "n", "Different"), ("unsure", "u", "Unsure"))


def pair_page(
    pair: PairShown,
    number: int,
    before: int | None,
    said: str | None,
    so_far: SoFar,
) -> str:
    """One pair and its buttons.

    Args:
        pair: It.
        number: Its own.
        before: The number of the pair that Back leads to, if there is one.
        said: What was answered before.
        so_far: What the answers tell.
    """
    buttons = "".join(
        f'<button id="{name}" name="answer" value="{name}"{" class=said" if said == name else ""}>'
        f"{title} <kbd>{key}</kbd></button>"
        for name, key, title in _BUTTONS
    )
    back = ""
    if before is not None:
        back = (
            f'<form method="get" action="./"><input type="hidden" name="pair" value="{before}">'
            '<button id="back">Back <kbd>b</kbd></button></form>'
        )
    told = (
        ""
        if said is None
        else f'<p class="note">You said: {said}. Answering again replaces it.</p>'
    )
    body = (
        '<section id="judge"><h2>Are these duplicates?</h2><div class="answers">'
        f'<form method="post" action="answer"><input type="hidden" name="pair" value="{number}">'
        f"{buttons}</form>{back}</div>{told}{card(pair, 1)}</section>"
    )
    return _page(body, so_far)


def end_page(before: int | None, so_far: SoFar) -> str:
    """What is shown when every pair was answered."""
    back = ""
    if before is not None:
        back = (
            '<div class="answers"><form method="get" action="./"><input type="hidden" name="pair"'
            f' value="{before}"><button id="back">Back <kbd>b</kbd></button></form></div>'
        )
    body = (
        '<section id="judge"><h2>All pairs are judged</h2><p>Nothing is left to ask. End the'
        f" command with Ctrl-C; your answers are in its file.</p>{back}</section>"
    )
    return _page(body, so_far)


def _page(body: str, so_far: SoFar) -> str:
    links = (("judge", "Pair"), ("told", "So far"))
    return frame(
        "neardup: review",
        "Review",
        links,
        body + so_far.section,
        so_far.numbers,
        _KEYS,
        forms=True,
    )
