"""The pages of a service: forms that work without a script, and follow typing with one."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import neardup as nd
from chromium import CHROMIUM, Browser
from neardup.service.pages import fields_of, problem_page
from neardup.service.problem_details import Problem
from services import Service, words
from suite import needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = needs_jit

STORED = words("stored", 30)
ASKED = " ".join([*STORED.split()[:-1], "<b>other</b>"])
ATTACK = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("pages") / "index") as server:
        assert server.ask("seen", {"id": ATTACK, "text": STORED})["new"]
        assert not server.ask("seen", {"id": "again", "text": ASKED})["new"]
        yield server


def page_of(service: Service, path: str = "/", **fields: str) -> str:
    """The page that a form leads to."""
    response = service.client.post(path, data=fields, headers={"Origin": service.url.rstrip("/")})
    assert response.status_code == 200, response.text
    return response.text


def bars(page: str) -> list[str]:
    """The bits that are drawn, the highest first."""
    drawn = re.findall(r'<rect class="(kept|near)" x="\d+" width="8"', page)
    return ["1" if kind == "kept" else "0" for kind in drawn]


def test_asking_shows_what_is_near_why_and_the_state(service: Service) -> None:
    page = page_of(service, text=ASKED)
    assert "<b>1</b> near it" in page
    match = nd.compare(STORED, ASKED)
    assert f"<b>{match.jaccard:.3f}</b>" in page
    assert f"{match.shared} of {sum(match.features) - match.shared} features" in page
    value = nd.fingerprint(ASKED)
    assert "".join(bars(page)) == f"{value:064b}"
    assert "again" in page.partition("Recent duplicates")[2]
    assert ATTACK not in page
    assert "<b>other</b>" not in page
    assert f"\n{escape(ASKED)}</textarea>" in page  # to be changed, and asked about again


def test_a_new_text_and_one_without_tokens_are_said_to_be_so(service: Service) -> None:
    assert "it would be new" in page_of(service, text=words("new"))
    assert "no tokens" in page_of(service, text="...")
    assert "up to 200,000 characters" in page_of(service, text="a " * 150_000)


def test_comparing_shows_both_fingerprints_and_exact_similarities(service: Service) -> None:
    page = page_of(service, "/compare", first=STORED, second=ASKED)
    comparison = nd.compare(STORED, ASKED)
    assert f"{comparison.distance} of 64 bits" in page
    assert f"<dd>{comparison.jaccard:.3f}</dd>" in page
    assert page.count("cell differs") + page.count("cell on differs") == 2 * (
        comparison.distance or 0
    )
    equal = page_of(service, "/compare", first=STORED, second=STORED)
    assert 'cx="380.0" cy="178.0"' in equal  # at cosine 1, on the line of no bits
    assert "has no fingerprint" in page_of(service, "/compare", first="", second="a b c")


def test_bits_stand_in_bytes_so_that_they_can_be_read_on_a_phone(service: Service) -> None:
    page = page_of(service, "/compare", first=STORED, second=ASKED)
    (cells,) = re.findall(r'<div class="cells" role="img" aria-label="([^"]+)">', page)
    assert cells == f"Two fingerprints of 64 bits; {nd.compare(STORED, ASKED).distance} differ"
    assert page.count('<svg viewBox="0 0 80 40" aria-hidden="true">') == 8
    places = re.findall(r'x="(\d+)" width="8"', page_of(service, text=ASKED))
    assert [int(x) for x in places] == [10 * at + 8 * (at // 8) for at in range(64)]


def test_a_browser_is_told_in_words_what_was_wrong_and_what_to_do(service: Service) -> None:
    html = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    response = service.client.get("/nothing", headers=html)
    assert (response.status_code, response.headers["content-type"]) == (
        404,
        "text/html; charset=utf-8",
    )
    assert "<h2>There is nothing at this address</h2>" in response.text
    assert "<code>GET /openapi.json</code> lists the addresses" in response.text
    assert '<a href="/compare">Compare</a>' in response.text
    page = problem_page(Problem("not-ready", "the service is starting", retry_after=2)).decode()
    assert "<p>The service is starting.</p>" in page
    assert "Load this page again in 2 s." in page
    hostile = service.client.get("/%3Cscript%3E", headers=html)
    assert "<script>" not in hostile.text.partition("<main")[2].partition("</main>")[0]
    foreign = {**html, "Origin": "http://evil.example"}
    assert "may not call" in service.client.post("/", data={"text": "a"}, headers=foreign).text
    for accept in ("*/*", "application/json"):
        response = service.client.get("/nothing", headers={"accept": accept})
        assert response.json()["type"] == "/problems/not-found"
    for answer in (response, service.client.get("/"), service.client.get("/livez")):
        assert "unsafe-inline" not in answer.headers["content-security-policy"] + answer.text


def test_other_pages_may_not_send_forms_here(service: Service) -> None:
    for origin in ("http://evil.example", "null", f"{service.url.rstrip('/')}.evil.example"):
        response = service.client.post("/", data={"text": "a"}, headers={"Origin": origin})
        assert response.status_code == 403, origin
    assert service.client.put("/").headers["allow"] == "GET, HEAD, POST"


def test_a_key_is_the_password_of_the_page(tmp_path: Path) -> None:
    key = "k" * 20
    with Service(tmp_path / "index", NEARDUP_READ_KEY=key) as service:
        bare = httpx.get(f"{service.url}/")
        assert bare.status_code == 401
        assert any(each.startswith("Basic") for each in bare.headers.get_list("www-authenticate"))
        assert httpx.get(f"{service.url}/", auth=("me", key)).status_code == 200
        assert httpx.get(f"{service.url}/", auth=("me", "x" * 20)).status_code == 401


@pytest.mark.parametrize("store", ["none", "text"])
def test_an_index_by_distance_shows_bits_or_words(tmp_path: Path, store: Any) -> None:
    folder = tmp_path / "index"
    with nd.DurableIndex.create(folder, 16, recipe=nd.Recipe(), store=store) as index:
        index.add(["a"], [STORED])
    with Service(folder) as service:
        page = page_of(service, text=ASKED)
    assert ("<del>" in page) == (store == "text")
    apart = nd.compare(STORED, ASKED).distance
    drawn = page.count("cell differs") + page.count("cell on differs")
    assert drawn == (0 if store == "text" else 2 * (apart or 0))


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_answer_follows_typing_and_nothing_is_loaded_from_outside(
    service: Service, tmp_path: Path, width: int
) -> None:
    with Browser(tmp_path / "profile", (width, 900)) as browser:
        for path, name in (("", "text"), ("compare", "second")):
            browser.open(f"{service.url.rstrip('/')}/{path}")
            browser.value(
                f"(function(){{var area=document.querySelector('[name={name}]');"
                f"area.value={ASKED!r};"
                "area.dispatchEvent(new Event('input',{bubbles:true}))})()"
            )
            count = "document.querySelectorAll('#result .bits,#result .cells').length"
            browser.until(
                f"{count} && !document.getElementById('result').innerText.includes('18 of 64')"
            )
            assert "b>other</b" not in browser.value("document.getElementById('result').innerHTML")
            wide = "document.documentElement.scrollWidth"
            assert browser.value(wide) <= width
            loaded = "performance.getEntriesByType('resource').map(e => e.name)"
            assert all(each.startswith(service.url) for each in browser.value(loaded))
        assert browser.problems == []


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
@pytest.mark.parametrize("path", ["", "compare", "nothing"])
def test_the_first_key_press_offers_to_skip_to_the_content(
    service: Service, tmp_path: Path, path: str
) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.open(f"{service.url.rstrip('/')}/{path}")
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        focus = "document.activeElement"
        assert browser.value(f"{focus}.textContent") == "Skip to the content"
        assert browser.value(f"{focus}.getBoundingClientRect().left") >= 0
        browser.value(f"{focus}.click()")
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        assert browser.value(f"{focus}.closest('main') !== null")
        assert path == "nothing" or not browser.problems


def test_a_form_has_few_fields() -> None:
    """Of those of a name the first one counts; the pages have two."""
    assert fields_of(b"a=1&b=&a=2" + b"&c=3" * 6) == {"a": "1", "b": "", "c": "3"}
    assert fields_of(b"a=1" + b"&c=3" * 9) == {}
