"""A browser opens the page: the slider moves, nothing fails, hostile text stays text."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from neardup.pipeline.report import page
from test_page import HOSTILE, pair, report

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
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
    shown = report(dropped_border=(pair((HOSTILE, "b"), HOSTILE),), warnings=(HOSTILE,))
    (tmp_path / "page.html").write_text(page(shown))
    (tmp_path / "probe.html").write_text(PROBE)
    assert CHROMIUM is not None
    done = subprocess.run(
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
    found = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert found is not None
    assert "0.70: 6 kept, 3 dropped (at least kept); 3 have an earlier match" in found[1]
    assert "hidden=false" in found[1]
    assert "open=true" in found[1]
    assert "title=neardup: 7 of 10 kept" in found[1]
    width = re.search(r"width=(\d+)", found[1])
    assert width is not None
    assert int(width[1]) <= 375
    assert "CONSOLE" not in done.stderr
