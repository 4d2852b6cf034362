"""The clients: the same answers, typed, for threads and for asyncio; retries that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

import neardup as nd
from neardup.client import AsyncClient, Client, Match, Seen, ServiceError
from neardup.errors import UsageError
from services import Service, words

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("seen") / "index") as server:
        yield server


def test_a_client_for_threads(service: Service) -> None:
    with Client(service.url, recipe=nd.Recipe().digest) as client:
        assert client.ready()
        assert client.seen("a", words("a")) == Seen(True, "new")
        assert client.seen("b", words("a")) == Seen(False, "seen", Match("a", 1.0))
        rows = [(f"n{number}", words(("n", number // 2))) for number in range(1200)]
        result = list(client.seen_many(iter(rows)))
        assert [each.new for each in result] == [True, False] * 600
        assert client.query(words("a"), similarity=0.9) == [Match("a", 1.0)]
        assert list(client.query_many([words("a"), "none of it"])) == [[Match("a", 1.0)], []]
        assert client.nearest(words("a"), 1) == [Match("a", 1.0)]
        assert client.add("c", words("c"))
        assert not client.add("empty", "")
        assert list(client.add_many([("d", words("d"))])) == [True]
        assert (client.remove("c"), client.remove("c")) == (True, False)
        assert client.compare("a b c d", "a b c e")["shared"] == 1
        assert client.explain("a b c d")["recipe"]
        assert client.index()["digest"] == nd.Recipe().digest


def test_a_client_for_asyncio(service: Service) -> None:
    async def talk() -> None:
        async with AsyncClient(service.url) as client:
            assert await client.ready()
            twins = [client.seen(f"t{number}", words("twins")) for number in range(20)]
            result = await asyncio.gather(*twins)
            assert sum(each.new for each in result) == 1
            rows = [(f"m{number}", words(("m", number))) for number in range(600)]
            assert [each.new async for each in client.seen_many(rows)] == [True] * 600
            assert [each async for each in client.query_many([words(("m", 1))])] == [
                [Match("m1", 1.0)]
            ]
            assert await client.remove("m1")
            with pytest.raises(ServiceError) as refused:
                await client.seen(5, "an id of another kind")
            assert (refused.value.status, refused.value.problem) == (409, "other-ids")

    asyncio.run(talk())


def test_what_is_refused_for_a_while_is_sent_again() -> None:
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        if len(sent) == 1:
            raise httpx.ConnectError("not there yet")
        if len(sent) == 2:
            return httpx.Response(429, headers={"retry-after": "0"}, json={})
        return httpx.Response(200, json={"new": True, "state": "new"})

    with Client("http://service", transport=httpx.MockTransport(answer)) as client:
        assert client.seen("a", "text").new
    assert sent == [sent[0]] * 3


def test_a_service_that_is_not_there_is_an_error() -> None:
    with Client("http://127.0.0.1:9", retries=0) as client:
        assert not client.ready()
        with pytest.raises(ServiceError, match="cannot be reached"):
            client.index()


@pytest.mark.parametrize(
    ("status", "text"), [(200, "<html>"), (200, "{}"), (502, '"error"'), (404, "[1]")]
)
def test_something_else_that_answers_is_named(status: int, text: str) -> None:
    proxy = httpx.MockTransport(lambda _: httpx.Response(status, text=text))
    with (
        Client("http://proxy", transport=proxy) as client,
        pytest.raises(ServiceError, match=f"not a service of neardup: the answer is {status}"),
    ):
        client.seen("a", "text")
    with pytest.raises(UsageError, match="ASCII"):
        Client("http://proxy", key="schlüssel" * 2)


def test_another_recipe_and_a_bad_document_are_errors(service: Service) -> None:
    with (
        Client(service.url, recipe="0" * 16) as client,
        pytest.raises(ServiceError, match="another recipe"),
    ):
        client.query("text")
    with (
        Client(service.url) as client,
        pytest.raises(ServiceError, match="document 2 of the array"),
    ):
        list(client.seen_many([("x", "text"), ("y" * 2000, "text")]))
