"""The examples of docs/guide/serve.md: what a reader types is answered as it is shown."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from neardup.service.problem_details import KINDS
from services import Service
from suite import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "guide" / "serve.md"
ADDRESS = "http://127.0.0.1:8080"


def test_what_the_guide_shows_is_what_comes(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    examples = [part for block in blocks for part in block.split("\n\n") if part.startswith("curl")]
    assert len(examples) == 2
    with Service(tmp_path / "index") as service:
        for example in examples:
            command, _, answer = example.strip().rpartition("\n")
            process = subprocess.run(  # noqa: S602  # as a reader types it
                command.replace(ADDRESS, service.url),
                shell=True,
                capture_output=True,
                text=True,
                check=True,
            )
            assert process.stdout == answer
        (session,) = [block for block in blocks if block.startswith(">>>")]
        service.ask("remove", {"id": "page-1"})
        test = doctest.DocTestParser().get_doctest(
            session.replace(ADDRESS, service.url), {}, PAGE.name, str(PAGE), 0
        )
        runner = doctest.DocTestRunner(verbose=False)
        output: list[str] = []
        runner.run(test, out=output.append, clear_globs=False)
        test.globs["client"].close()
        assert not runner.failures, "".join(output)


class Busy(BaseHTTPRequestHandler):
    """Refuses the first two requests as the service does, then answers with what was sent."""

    received: list[Any]

    def do_POST(self) -> None:
        """Read one document."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append(json.loads(body))
        status = (429, 503, 200)[min(len(self.received), 3) - 1]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if status != 200:
            self.send_header("retry-after", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(("language", "needed"), [("sh", "curl"), ("py", "requests")])
def test_clients_of_other_languages_send_again_what_was_refused(language: str, needed: str) -> None:
    if language == "sh" and shutil.which(needed) is None:
        pytest.skip("curl is not installed")
    if language == "py":
        pytest.importorskip(needed)
    (block,) = re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    handler = type("Refusing", (Busy,), {"received": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text = block.replace(ADDRESS, f"http://127.0.0.1:{server.server_port}")
        program = ["bash", "-c", text] if language == "sh" else [sys.executable, "-c", text]
        shown = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
        server.shutdown()
    assert len(handler.received) == 3
    assert str(handler.received[0]["id"]) in shown.stdout
    assert handler.received[0] == handler.received[2]


def test_refusals_that_tell_a_client_to_wait_say_how_long() -> None:
    raised = set()
    sources = (ROOT / "src" / "neardup" / "service").rglob("*.py")
    for file in (x for x in sources if x.name != "resp.py"):  # RESP has no headers
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="Problem"), args=[ast.Constant(value=kind), *_], keywords=named
                ) if "Retry-After" in KINDS[kind].remedy:
                    raised.add(kind)
                    assert "retry_after" in {x.arg for x in named}, f"{file}:{node.lineno}"
    assert raised >= {"queue-full", "not-ready", "too-late"}
