"""A crawl of a real site, stopped, gone on with and crawled again: no page is its own duplicate."""

from __future__ import annotations

import http.server
import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from services import Service
from suite import needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("scrapy")

pytestmark = needs_jit

PAGES, COPIES = 60, 15
MENU = "".join(f'<a href="/p/{at}">Item {at} of the menu of this site</a>' for at in range(1, 20))
FOOT = "All rights reserved by the owner of this site, terms and conditions apply. " * 5


def articles() -> list[str]:
    """Sixty articles of random words; the last fifteen are earlier ones with two words changed."""
    draw = random.Random(3)
    texts = [" ".join(f"w{draw.randrange(5000)}" for _ in range(80)) for _ in range(PAGES - COPIES)]
    for at in range(COPIES):
        words = texts[at].split()
        words[40:42] = ["changed", "words"]
        texts.append(" ".join(words))
    return texts


class Site:
    """Articles at /p/0, /p/1, ..., each in one template with a menu of links and the next page."""

    def __init__(self) -> None:
        self.articles = articles()
        site = self

        class Pages(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                at = int(self.path.rpartition("/")[2])
                if at >= PAGES:
                    self.send_error(404)
                    return
                page = (
                    f"<html><head><title>Page {at}</title></head><body><nav>{MENU}</nav><main>"
                    f"<article><p>{site.articles[at]}</p></article></main><footer>{FOOT}</footer>"
                    f'<a href="/p/{at + 1}">next</a></body></html>'
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/p/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def crawled(self, folder: Path, **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Crawl: statistics, and the items that passed by url."""
        output = folder / "crawl.json"
        program = Path(__file__).with_name("crawl.py")
        options = {"NEARDUP_INDEX": folder / "seen", "NEARDUP_SIMILARITY": 0.8} | settings
        words = [f"{name}={value}" for name, value in options.items() if value is not None]
        process = subprocess.run(
            [sys.executable, program, f"{self.url}0", output, *words], check=False, timeout=300,
            capture_output=True, text=True,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        assert not process.stderr, process.stderr
        result = json.loads(output.read_text())
        items = {int(item["url"].removeprefix(self.url)): item for item in result["items"]}
        assert len(items) == len(result["items"])
        return result["stats"], items


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    server = Site()
    yield server
    server.server.shutdown()
    server.server.server_close()


def original(page: int) -> int:
    """The page that it was made from, or itself."""
    return page - (PAGES - COPIES) if page >= PAGES - COPIES else page


def test_a_crawl_that_was_stopped_goes_on_and_is_the_same_again(site: Site, tmp_path: Path) -> None:
    begun, first = site.crawled(tmp_path, CLOSESPIDER_PAGECOUNT=20)
    assert begun["neardup/new"] == len(first) < PAGES - COPIES
    assert len({original(page) for page in first}) == len(first)

    stats, second = site.crawled(tmp_path)
    assert first.keys() <= second.keys(), "what was stored passes again"
    assert sorted(map(original, second)) == list(range(PAGES - COPIES))
    assert stats["neardup/stored"] == len(first)
    assert stats["neardup/seen"] == stats["item_dropped_count"] == COPIES
    assert stats["neardup/new"] == PAGES - COPIES - len(first)
    assert "log_count/ERROR" not in stats

    again, third = site.crawled(tmp_path)
    assert third.keys() == second.keys()
    assert (again["neardup/stored"], again["neardup/seen"]) == (PAGES - COPIES, COPIES)

    changed = min(page for page in second if original(page) >= COPIES)
    site.articles[changed] = "another text stands here now since the page was written again"
    try:
        last, fourth = site.crawled(tmp_path, NEARDUP_MARK=True)
    finally:
        site.articles = articles()
    assert last["neardup/replaced"] == 1
    assert len(fourth) == PAGES
    for page, item in fourth.items():
        assert ("near_duplicate_of" in item) == (page not in second)
        if page not in second:
            near = int(item["near_duplicate_of"].removeprefix(site.url))
            assert original(near) == original(page)
            want = nd.compare(*(site.articles[each] for each in (near, page))).jaccard
            assert item["similarity"] == pytest.approx(want)


def test_pages_are_compared_by_their_main_content(site: Site, tmp_path: Path) -> None:
    pytest.importorskip("resiliparse")
    stats, items = site.crawled(tmp_path, NEARDUP_TEXT="page", NEARDUP_EXTRACT="main")
    assert sorted(map(original, items)) == list(range(PAGES - COPIES))
    assert stats["neardup/seen"] == COPIES


def test_the_service_at_a_url_is_asked(site: Site, tmp_path: Path) -> None:
    with Service(tmp_path / "served") as service:
        settings = {"NEARDUP_INDEX": service.url, "NEARDUP_SIMILARITY": None}
        stats, items = site.crawled(tmp_path, **settings)
        again, _ = site.crawled(tmp_path, **settings)
    assert sorted(map(original, items)) == list(range(PAGES - COPIES))
    assert stats["neardup/seen"] == COPIES
    assert again["neardup/stored"] == PAGES - COPIES
    assert again["neardup/seen"] == COPIES


def test_an_index_that_cannot_be_opened_stops_the_crawl_with_one_line(
    site: Site, tmp_path: Path
) -> None:
    with (
        nd.DurableIndex.open(tmp_path / "seen", similarity=0.8, recipe=nd.Recipe()),
        pytest.raises(AssertionError, match="is open for writing"),
    ):
        site.crawled(tmp_path)
