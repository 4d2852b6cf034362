"""A browser opens the page: the slider moves, nothing fails, hostile text stays text."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

import neardup as nd
from chromium import CHROMIUM, Browser
from neardup.documents import ReadOptions
from neardup.pipeline.judgement.review_session import Review, ReviewOptions
from neardup.pipeline.report import page
from neardup.service.review_server import ReviewServer
from test_page import DROPPED, HOSTILE, pair, report

if TYPE_CHECKING:
    from pathlib import Path

PROBE = """
<title>probe</title><iframe src="page.html" id="f" width="375" height="700"></iframe><pre></pre>
<script>onload=function(){var f=document.getElementById("f"),d=f.contentDocument,s=
d.getElementById("slider");s.value=0;s.dispatchEvent(new f.contentWindow.Event("input"));
var wide=d.documentElement.scrollWidth;
d.defaultView.location.hash="#p1";setTimeout(function(){
document.querySelector("pre").textContent="["+d.getElementById("reading").textContent+"] hidden="+
s.hidden+" width="+wide+" open="+d.getElementById("p1").open+" buttons="+
d.querySelectorAll("th button").length+" title="+d.title},300)}</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
def test_the_page_works_in_a_browser(tmp_path: Path) -> None:
    record = report(dropped_border=(pair((HOSTILE, "b"), HOSTILE),), warnings=(HOSTILE,))
    (tmp_path / "page.html").write_text(page(record))
    (tmp_path / "probe.html").write_text(PROBE)
    assert CHROMIUM is not None
    process = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            *("--allow-file-access-from-files", "--virtual-time-budget=3000", "--dump-dom"),
            *(f"--user-data-dir={tmp_path / 'profile'}", f"file://{tmp_path / 'probe.html'}"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    match = re.search(r"<pre>(.*?)</pre>", process.stdout, re.DOTALL)
    assert match is not None
    assert "0.70: 6 kept, 3 dropped (at least kept); 3 have an earlier match" in match[1]
    assert "hidden=false" in match[1]
    assert "open=true" in match[1]
    assert "title=neardup: 7 of 10 kept" in match[1]
    width = re.search(r"width=(\d+)", match[1])
    assert width is not None
    assert int(width[1]) <= 375
    assert "CONSOLE" not in process.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
def test_the_slider_and_the_tables_answer_to_a_person(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page(report(dropped_border=(pair((HOSTILE, "b")),))))
    with Browser(tmp_path / "profile", (375, 700), dark=True) as browser:
        browser.open((tmp_path / "page.html").as_uri())
        browser.value("document.getElementById('slider').focus()")
        browser.press("Home", loads=False)
        browser.value("document.getElementById('slider').value=0;0")
        browser.value("document.getElementById('slider').dispatchEvent(new Event('input'));0")
        assert "0.70: 6 kept" in browser.value("document.getElementById('reading').textContent")
        heads = "document.querySelector('#sources th button')"
        browser.value(f"{heads}.click();{heads}.click();0")
        assert browser.value("document.querySelector('#sources td').textContent") == "y"
        assert browser.value("document.documentElement.scrollWidth") <= 375
        browser.value("document.activeElement.blur();0")
        browser.press("j", loads=False)
        assert browser.value("document.activeElement.tagName") == "SUMMARY"
        assert browser.problems == []


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
def test_j_brings_the_next_head_to_the_top_and_the_filter_hides(tmp_path: Path) -> None:
    pairs = tuple(pair((f"a{i}", f"b{i}"), f"word{i} " * 400) for i in range(6))
    record = report(dropped_border=pairs, removed=DROPPED)
    (tmp_path / "page.html").write_text(page(record))
    top = "Math.round(document.activeElement.closest('.pair').getBoundingClientRect().top)"
    for size in ((1000, 800), (375, 700)):
        with Browser(tmp_path / f"profile{size[0]}", size) as browser:
            browser.open((tmp_path / "page.html").as_uri())
            for number in range(1, 5):
                browser.press("j", loads=False)
                assert browser.value("document.activeElement.closest('.pair').id") == f"p{number}"
                assert 0 <= browser.value(top) < 60
            header = "document.querySelector('header')"
            assert browser.value(f"{header}.scrollWidth<={header}.clientWidth")
            browser.value("document.getElementById('filter').value='K3'")
            browser.value("document.getElementById('filter').dispatchEvent(new Event('input'));0")
            rows = "document.querySelectorAll('#dropped tbody tr:not([hidden])').length"
            assert browser.value(rows) == 1
            assert browser.value("document.getElementById('found').textContent") == (
                "pairs: 0; all dropped, by name: 1"
            )
            assert browser.problems == []


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
def test_keys_answer_and_go_back_in_a_review(tmp_path: Path) -> None:
    texts = [f"the harbour opened again {i}" for i in range(4)] + [HOSTILE]
    rows = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "pairs.csv").write_text("first,second\nd0,d1\nd0,d2\nd0,d3\nd0,d4\n")
    options, paths = ReviewOptions(str(tmp_path / "said.jsonl")), [str(tmp_path / "docs.jsonl")]
    read = ReadOptions(id="id")
    judged = Review(str(tmp_path / "pairs.csv"), paths, options, nd.Recipe(ngram=1), read)
    with ReviewServer(judged) as server, Browser(tmp_path / "profile") as browser:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        browser.open(server.url)
        for key in ("y", "n", "u", "b"):
            browser.press(key)
        assert "You said: unsure" in browser.value("document.body.textContent")
        browser.press("y")
        browser.press("n")
        assert "All pairs are judged" in browser.value("document.body.textContent")
        server.shutdown()
        thread.join()
        assert browser.problems == []
    judged.close()
    said = [
        json.loads(line)["answer"] for line in (tmp_path / "said.jsonl").read_text().splitlines()
    ]
    assert said == ["yes", "no", "unsure", "yes", "no"]
    assert len(judged.answers) == 4
