"""The review as one of the room's servers: its port, its clients, and several who answer."""

from __future__ import annotations

import builtins
import http.client
import json
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import neardup as nd
from commands import Here
from full_disk import largest_file
from neardup.documents import ReadOptions
from neardup.pipeline.judgement.answers import read_answers
from neardup.pipeline.judgement.review_session import Review, ReviewOptions
from neardup.service.review_server import ReviewServer
from suite import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

SLOW = 300 if LONG else 20
"""Clients that send half a request."""


def reviewed(folder: Path) -> Review:
    rows = [json.dumps({"id": f"d{i}", "text": f"the harbour opened again {i}"}) for i in range(5)]
    (folder / "docs.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "pairs.csv").write_text("first,second\nd0,d1\nd0,d2\nd0,d3\nd0,d4\n")
    options, docs = ReviewOptions(str(folder / "said.jsonl")), [str(folder / "docs.jsonl")]
    return Review(
        str(folder / "pairs.csv"), docs, options, nd.Recipe(ngram=1), ReadOptions(id="id")
    )


@contextmanager
def served(review: Review, *arguments: Any) -> Iterator[ReviewServer]:
    with ReviewServer(review, *arguments) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
    review.close()


def ask(server: ReviewServer, path: str = "", **form: Any) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    body = urlencode(form) if form else None
    connection.request("POST" if form else "GET", f"/{server.token}/{path}", body)
    answer = connection.getresponse()
    result = answer.status, answer.read().decode()
    connection.close()
    return result


def test_a_taken_port_is_named_and_the_next_one_used(tmp_path: Path) -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with served(reviewed(tmp_path), taken, said.append) as server:
            assert server.server_port > taken
            assert ask(server)[0] == 200
            expected = f"port {taken} is taken: the review is on port {server.server_port}"
            assert said == [expected]


def test_slow_clients_hold_nobody_up(tmp_path: Path) -> None:
    with served(reviewed(tmp_path)) as server, ExitStack() as stack:
        for number in range(SLOW):
            address = ("127.0.0.1", server.server_port)
            slow = stack.enter_context(socket.create_connection(address))
            head = b"POST /%s/answer HTTP/1.1\r\nHost: 127.0.0.1\r\n" % server.token.encode()
            slow.sendall(head if number % 2 else head + b"Content-Length: 9\r\n\r\npair")
        code, page = ask(server)
        assert code == 200
        assert "Are these duplicates?" in page
        assert ask(server, "answer", pair=0, answer="yes")[0] == 303
    assert len(read_answers(str(tmp_path / "said.jsonl"))) == 1


def test_the_second_of_two_browsers_learns_what_the_first_has_said(tmp_path: Path) -> None:
    with served(reviewed(tmp_path)) as server:
        ask(server)
        assert ask(server, "answer", pair=0, before="", answer="yes")[0] == 303
        code, page = ask(server, "answer", pair=0, before="", answer="no")
        assert code == 409
        assert "another reviewer answered yes first" in page
        assert 'name="before" value="yes"' in page
        assert ask(server, "answer", pair=0, before="", answer="yes")[0] == 303  # they agree
        assert ask(server, "answer", pair=0, before="yes", answer="no")[0] == 303
        page = ask(server)[1]
        assert "1 of 4 pairs answered" in page
    assert [x.answer for x in read_answers(str(tmp_path / "said.jsonl")).values()] == ["no"]


def test_a_refused_request_ends_its_connection_and_others_share_one(tmp_path: Path) -> None:
    with served(reviewed(tmp_path)) as server:
        for path, status in (("", 200), ("nowhere", 404), ("answer", 405)):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            connection.request("GET", f"/{server.token}/{path}")
            answer = connection.getresponse()
            assert (answer.status, answer.will_close) == (status, status != 200)
            connection.close()


class _Held:
    """A review whose first call waits until it may end."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.moments: list[str] = []

    def status(self) -> dict[str, Any]:
        self.moments.append("begin")
        self.begun.set()
        self.may_end.wait(60)
        self.moments.append("end")
        return {}

    def close(self) -> None:
        pass


def test_a_review_is_called_by_one_request_after_the_other() -> None:
    review: Any = _Held()
    with served(review) as server, ThreadPoolExecutor(8) as clients:
        requests = [clients.submit(ask, server, "status") for _ in range(8)]
        assert review.begun.wait(60)
        for _ in range(8):  # so that the loop has read the other requests
            assert ask(server, "nowhere")[0] == 404
        review.may_end.set()
        assert [request.result()[0] for request in requests] == [200] * 8
    assert review.moments == ["begin", "end"] * 8


def test_two_reviews_share_a_file_of_answers(tmp_path: Path) -> None:
    with served(reviewed(tmp_path)) as one, served(reviewed(tmp_path)) as other:
        assert ask(one)[1].split('name="pair" value="')[1][0] == "0"
        ask(other)
        assert ask(one, "answer", pair=0, before="", answer="yes")[0] == 303
        assert ask(other, "answer", pair=0, before="", answer="no")[0] == 409
        number = ask(other)[1].split('name="pair" value="')[1].split('"')[0]
        assert number == "1"  # the pair that the other has answered is not asked again
        with largest_file((tmp_path / "said.jsonl").stat().st_size + 9):
            assert ask(other, "answer", pair=1, before="", answer="no")[0] == 507
        assert ask(one)[0] == 200
        assert ask(other, "answer", pair=1, before="", answer="no")[0] == 303
        assert json.loads(ask(one, "status")[1])["answered"] == 2
    lines = (tmp_path / "said.jsonl").read_text().splitlines()
    assert [json.loads(line)["answer"] for line in lines] == ["yes", "no"]


def test_a_review_without_a_server_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    load = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "uvloop":
            raise ModuleNotFoundError("No module named 'uvloop'", name="uvloop")
        return load(name, *rest)

    here = Here(tmp_path, monkeypatch, capsys)
    monkeypatch.delitem(sys.modules, "neardup.service.review_server")
    monkeypatch.setattr(builtins, "__import__", refuse)
    _, err = here("review", "pairs.csv", "docs.jsonl", code=2)
    assert "review requires uvloop: pip install 'neardup[serve]'" in err
    assert err.count("\n") == 1
