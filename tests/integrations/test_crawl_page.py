"""The commands of docs/guide/crawl.md, on the crawl of a site on this machine."""

from __future__ import annotations

import http.server
import random
import re
import shutil
import subprocess
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from commands import Here
from suite import ROOT, needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("fastwarc")
pytest.importorskip("resiliparse")

pytestmark = [
    needs_jit,
    pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed"),
]

PAGE = (ROOT / "docs" / "guide" / "crawl.md").read_text("utf-8")
ARTICLES = 8
MENU = "".join(f'<a href="/{at}.html">Item {at} of the menu of this site</a>' for at in range(9))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; says nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def site(folder: Path) -> None:
    """Articles in one template; the last is the first but for a word."""
    draw = random.Random(2)
    texts = [" ".join(f"w{draw.randrange(5000)}" for _ in range(90)) for _ in range(ARTICLES)]
    for at, text in enumerate([*texts, texts[0].replace(" ", " other ", 1)]):
        body = f"<nav>{MENU}</nav><main><article><p>{text}</p></article></main>"
        (folder / f"{at}.html").write_text(f"<html><body>{body}</body></html>")
    (folder / "index.html").write_text(f"<html><body>{MENU}</body></html>")


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "site").mkdir()
    site(tmp_path / "site")
    handler = partial(Quiet, directory=str(tmp_path / "site"))
    commands = [
        line
        for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)
        for line in block.split("\n")
    ]
    here = Here(tmp_path, monkeypatch, capfd)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        crawl = commands.pop(0).replace(
            "https://example.org/", f"http://127.0.0.1:{server.server_port}/"
        )
        process = subprocess.run(
            [*crawl.split(), "--quiet"], cwd=tmp_path, check=False, timeout=120
        )
        server.shutdown()
    assert process.returncode in {0, 8}, "robots.txt is missing, of which wget says 8"
    for command in filter(None, commands):
        here.shell(command)
    dropped = (tmp_path / "dropped.csv").read_text().split("\n")[1]
    one, kept = dropped.split(",")[:2]
    assert one.endswith(f"/{ARTICLES}.html")
    assert kept.endswith("/0.html")
    assert one.startswith("http://"), "wget's brackets are not part of an address"
    said = here.shell(commands[-2].replace("new.warc.gz", "next.warc.gz"))[1]
    assert re.search(rf"own id +{ARTICLES + 2} ", said), said  # and the first page, and wget's log
