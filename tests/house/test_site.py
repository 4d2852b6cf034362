"""The site is built without a warning, its links lead somewhere, and its API page has all names."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pytest

import neardup as nd
from chromium import CHROMIUM, Browser
from suite import ROOT

if TYPE_CHECKING:
    from pathlib import Path

API: Final = ROOT / "docs" / "reference" / "api.md"
NEEDED: Final = ("sphinx", "myst_parser", "furo")


class Page(HTMLParser):
    """The anchors of a page, and where its links, scripts and pictures lead."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of a tag."""
        named = dict(attrs)
        self.anchors.add(named.get("id") or "")
        self.links += [x for x in (named.get("href"), named.get("src")) if x and tag != "base"]


def test_the_site_is_built_and_whole(tmp_path: Path) -> None:
    for name in NEEDED:
        pytest.importorskip(name, reason="the site needs pip install 'neardup[docs]'")
    process = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"),
            *("-c", "docs", "-d", str(tmp_path / "doctrees"), ".", str(tmp_path / "site")),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    site = (tmp_path / "site").resolve()
    assert not broken_links(site)
    assert not loaded_from_elsewhere(site)
    index = (site / "searchindex.js").read_text("utf-8")
    assert "docs/guide/contamination" in index
    if CHROMIUM is not None:
        check_on_a_phone(site, tmp_path / "profile")


def check_on_a_phone(site: Path, profile: Path) -> None:
    """Figures keep their size and scroll, commands wrap, and the page fits the screen."""
    with Browser(profile, (390, 800)) as browser:
        for page in ("docs/design/benchmarks", "docs/guide/serve", "docs/reference/fingerprints"):
            browser.open((site / f"{page}.html").as_uri())
            assert browser.value("document.documentElement.scrollWidth") == 390
            figures = "[...document.querySelectorAll('p > img[src$=\".svg\"]')]"
            assert browser.value(f"{figures}.every(x => x.clientWidth >= x.naturalWidth)")
            blocks = "[...document.querySelectorAll('.highlight-sh pre, .highlight-console pre')]"
            assert browser.value(f"{blocks}.every(x => x.scrollWidth <= x.clientWidth)")


def broken_links(site: Path) -> list[str]:
    """Links to a file or an anchor that is not there."""
    pages = {file: Page(file) for file in site.rglob("*.html")}
    broken = []
    for file, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            page_of_target = pages.get(target)
            if not target.exists() or (
                page_of_target and unquote(address.fragment) not in page_of_target.anchors
            ):
                broken.append(f"{file.relative_to(site)}: {link}")
    return broken


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Scripts, pictures and style sheets that a reader's browser would fetch from the network."""
    loaded = []
    for file in site.rglob("*.html"):
        text = file.read_text("utf-8")
        loaded += re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="([^"]+)"', text)
    return [address for address in loaded if "://" in address or address.startswith("//")]


def documented() -> dict[str, Any]:
    """The objects of the API page by their public names."""
    objects = {}
    for path in re.findall(r"^\.\. auto\w+:: (\S+)$", API.read_text("utf-8"), re.MULTILINE):
        module, _, name = path.rpartition(".")
        objects[path] = getattr(importlib.import_module(module), name)
    return objects


EXAMPLES_ELSEWHERE: Final = {
    "neardup.spark.": "docs/guide/spark.md; a session takes seconds, and tests/spark runs each",
    "neardup.client.AsyncClient": "its calls are those of Client; test_client.py runs it",
    "neardup.integrations.datatrove.": "docs/guide/integrations.md; test_datatrove.py runs each",
}
"""Public names whose docstring has no example: the page that has one, and the test of the name."""


def test_every_public_name_has_an_example_that_runs() -> None:
    """test_names.py runs the examples of all modules."""
    lacking = [
        path
        for path, value in documented().items()
        if ">>>" not in (inspect.getdoc(value) or "")
        and not path.startswith(tuple(EXAMPLES_ELSEWHERE))
    ]
    assert lacking == []


METHODS_ELSEWHERE: Final = {
    **EXAMPLES_ELSEWHERE,
    "neardup.client.Client.": "docs/guide/serve.md shows the calls, and test_client.py runs each",
    "neardup.integrations.scrapy.": "Scrapy calls them: tests/integrations/crawl.py",
    "neardup.integrations.pandas.FrameAccessor.is_duplicate": "test_frames.py",
    "neardup.integrations.polars.ExpressionNamespace.fingerprint": "test_frames.py",
    "neardup.Explanation.to_dict": "what the command prints with --json",
    "neardup.PairExplanation.to_dict": "what the command prints with --json",
    "neardup.Index.holding": "for modules of neardup",
    "neardup.DurableIndex.warm_up": "as Index.warm_up",
    "neardup.compat.simhash.SimhashIndex.get_keys": "of the package: test_dropin.py",
    "neardup.compat.simhash.SimhashIndex.bucket_size": "of the package: test_dropin.py",
}
"""Methods without an example in their docstring or their class's, and who shows or runs them."""


def test_every_public_method_has_an_example_that_runs() -> None:
    lacking = []
    for path, value in documented().items():
        for method, member in vars(value).items() if inspect.isclass(value) else ():
            call = getattr(member, "__func__", member)
            if method.startswith("_") or not inspect.isfunction(call):
                continue
            shown = ">>>" in (call.__doc__ or "") or f".{method}(" in (value.__doc__ or "")
            if not shown and not f"{path}.{method}".startswith(tuple(METHODS_ELSEWHERE)):
                lacking.append(f"{path}.{method}")
    assert lacking == []


def test_the_api_page_has_every_public_name() -> None:
    named = set(documented())
    rooms = ["neardup.client", "neardup.compat.simhash", "neardup.compat.stored", "neardup.spark"]
    public = {f"neardup.{name}" for name in nd.__all__ if not name.startswith("__")}
    for room in rooms:
        public |= {f"{room}.{name}" for name in importlib.import_module(room).__all__}
    assert not public - named
