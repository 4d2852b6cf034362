"""What the threads of a service do for each other, in this process."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import neardup as nd
from neardup.errors import FileError
from neardup.index.durable import folder_store, merge_jobs
from neardup.service.access import Access
from neardup.service.application import Application
from neardup.service.deadlines import Deadlines
from neardup.service.service import Service
from neardup.service.service_metrics import Metrics
from neardup.service.settings import Limits, Settings
from services import words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


def run(folder: Path, story: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    """Let a client tell a story to a service of this process; kernels load when they are called."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        index = nd.DurableIndex.open(folder, similarity=0.8, recipe=nd.Recipe())
        settings = Settings(**options)
        service = Service(index, settings, loop, has_keys=False)
        service.warm_up()
        transport = httpx.ASGITransport(
            Application(service, Access.of(settings), Deadlines(loop)), raise_app_exceptions=True
        )
        try:
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", timeout=60
            ) as client:
                await story(client)
        finally:
            await loop.run_in_executor(None, service.close)

    asyncio.run(serve())


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nd.DurableIndex, "warm_up", lambda *_, **__: 0.0)


@pytest.mark.parametrize("path", ["seen", "add"])
def test_features_of_much_text_are_not_made_by_the_thread_that_commits(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[tuple[int, str]] = []
    prepare = nd.DurableIndex.prepare

    def noted(self: Any, ids: Any, documents: Any, **given: Any) -> Any:
        name = threading.current_thread().name.rpartition("_")[0]
        threads.append((len(documents), name))
        return prepare(self, ids, documents, **given)

    monkeypatch.setattr(nd.DurableIndex, "prepare", noted)
    large, small = words("large", 60_000), words("small")
    twins = [{"id": "a", "text": large}, {"id": "b", "text": small}, {"id": "c", "text": large}]

    async def story(client: httpx.AsyncClient) -> None:
        response = await client.post(f"/v1/{path}", json=twins)
        states = [each["state"] for each in response.json()]
        assert states == (["new", "new", "seen"] if path == "seen" else ["added"] * 3)
        assert threads == [(3, "neardup-query")]
        again = await client.post(f"/v1/{path}", json={"id": "d", "text": small})
        assert again.json()["state"] == ("seen" if path == "seen" else "added")
        assert len(threads) == 2
        assert threads[1] == (1, "")  # by the committer
        for row in ({"id": 7, "text": large}, [{"id": 7, "text": large}]):
            refused = await client.post(f"/v1/{path}", json=row)
            assert "the ids of this index are of kind str" in refused.text
        assert (await client.get("/v1/index")).json()["documents"] == (2 if path == "seen" else 4)
        metrics = (await client.get("/metrics")).text
        assert "neardup_queue_documents 0.0" in metrics
        assert "neardup_queue_bytes 0.0" in metrics

    run(tmp_path / "index", story)


@pytest.mark.parametrize("path", ["/v1/index", "/metrics", "/readyz"])
def test_who_asks_for_numbers_during_a_commit_keeps_nobody_waiting(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed, waited = threading.Event(), []
    stats = nd.DurableIndex.stats

    def waiting(index: nd.DurableIndex) -> dict[str, Any]:
        waited.append(committed.wait(5))
        return stats(index)

    async def story(client: httpx.AsyncClient) -> None:
        with monkeypatch.context() as during:
            during.setattr(nd.DurableIndex, "stats", waiting)
            answer = asyncio.create_task(client.get(path))
            await asyncio.sleep(0)
            assert (await client.get("/livez")).status_code == 200
            committed.set()
            assert (await answer).status_code == 200
        assert waited
        assert all(waited)

    run(tmp_path / "index", story)


def test_readyz_names_a_merge_that_failed_until_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 20)

    def fail(*_: object) -> None:
        raise FileError("no room for a merge")

    async def story(client: httpx.AsyncClient) -> None:
        async def ask(first: int) -> Any:
            rows = [{"id": f"d{n}", "text": words(n)} for n in range(first, first + 40)]
            for row in rows:
                response = await client.post("/v1/seen", json=row)
                assert response.json()["state"] == "new", response.text
            ready = await client.get("/readyz")
            assert ready.status_code == 200
            return ready.json()["warnings"]

        async def until(failed: bool, first: int) -> None:
            for number in range(100):
                warnings = await ask(first + 40 * number)
                assert all("no room for a merge" in each for each in warnings)
                if bool(warnings) == failed:
                    break
                await asyncio.sleep(0.05)
            metrics = (await client.get("/metrics")).text
            assert f"neardup_merge_failed {float(failed)}" in metrics

        with monkeypatch.context() as broken:
            broken.setattr(merge_jobs, "in_files", fail)
            await until(True, 0)
        await until(False, 10_000)

    run(tmp_path / "index", story)
    with nd.DurableIndex.open(tmp_path / "index", readonly=True) as index:
        assert index.check() == []
        assert all(f"d{n}" in index for n in range(40))


def test_a_stream_whose_first_line_is_too_long_is_refused_as_a_whole(tmp_path: Path) -> None:
    headers = {"content-type": "application/x-ndjson"}

    async def story(client: httpx.AsyncClient) -> None:
        line = b"x" * (Limits().body_bytes + 1)
        refused = await client.post("/v1/seen", content=line, headers=headers)
        assert (refused.status_code, refused.json()["type"]) == (413, "/problems/too-large")
        whole = b'{"id": "a", "text": "one two three"}\n' * 2
        answers = await client.post("/v1/seen", content=whole, headers=headers)
        assert answers.text.count("\n") == 2

    run(tmp_path / "index", story)


def test_an_unexpected_error_is_an_answer_and_the_next_request_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("nobody thought of this")

    async def story(client: httpx.AsyncClient) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(nd.DurableIndex, "query", fail)
            failed = await client.post("/v1/query", json={"text": words("a")})
        assert (failed.status_code, failed.json()["type"]) == (500, "/problems/failure")
        assert "nobody thought" not in failed.text
        answered = await client.post("/v1/query", json={"text": words("a")})
        assert answered.json() == {"matches": [], "total": 0}

    run(tmp_path / "index", story)


def test_an_array_of_several_cuts_is_not_refused_halfway(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        for count, status in ((2, 429), (3, 200)):
            rows = [{"text": words(number)} for number in range(count)]
            assert (await client.post("/v1/query", json=rows)).status_code == status

    run(tmp_path / "index", story, limits=Limits(questions=0, cut_rows=2))


@pytest.mark.parametrize("path", ["/", "/metrics", "/v1/index"])
def test_each_address_that_fails_is_logged(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("nobody thought of this")

    async def story(client: httpx.AsyncClient) -> None:
        with monkeypatch.context() as broken:
            for name in ("text", "recent"):
                broken.setattr(Metrics, name, fail)
            broken.setattr(Service, "describe", fail)
            assert (await client.get(path)).status_code == 500

    run(tmp_path / "index", story)
    fields = [each.fields for each in caplog.records if each.message == "request"]  # type: ignore[attr-defined]
    assert [(each["path"], each["status"]) for each in fields] == [(path, 500)]


def test_pages_of_the_named_origin_may_read_answers(tmp_path: Path) -> None:
    ours, allowed = "https://pages.example", "access-control-allow-origin"

    async def story(client: httpx.AsyncClient) -> None:
        asks = {"origin": ours, "access-control-request-method": "POST"}
        before = await client.options("/v1/seen", headers=asks)
        assert (before.status_code, before.headers[allowed]) == (204, ours)
        answered = await client.get("/livez", headers=asks)
        assert (answered.json(), answered.headers[allowed]) == ({"live": True}, ours)
        assert allowed not in (await client.get("/livez")).headers

    run(tmp_path / "index", story, origin=ours)


def test_explained_texts_may_have_as_many_characters_as_others(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        for size, status in ((20, 200), (21, 413)):
            answer = await client.post("/v1/explain", json={"text": "a" * size})
            assert answer.status_code == status, answer.text

    run(tmp_path / "index", story, limits=Limits(text_characters=20))
