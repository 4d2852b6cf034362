"""`--resp`: what clients of Redis ask, with redis-py and by hand."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from neardup.service.access import Access
from neardup.service.resp import RespServer
from neardup.service.service import Service as OwnService
from neardup.service.settings import Limits, Settings
from services import Service, words

redis = pytest.importorskip("redis")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

KEY, READ = "0123456789abcdef", "fedcba9876543210"


def resp_port(service: Service) -> int:
    """Where clients of Redis go."""
    match = re.search(r"redis://127\.0\.0\.1:(\d+)", service.line)
    assert match is not None, service.line
    return int(match[1])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "keys").write_text(f"write {KEY}\nread {READ}\n")
    with Service(folder / "index", "--resp", "0", "--keys", str(folder / "keys")) as server:
        yield server


@pytest.fixture(params=[2, 3])
def client(service: Service, request: pytest.FixtureRequest) -> Iterator[Any]:
    with redis.Redis(
        port=resp_port(service), password=KEY, protocol=request.param, socket_timeout=60
    ) as connection:
        yield connection


def test_near_items_are_there_and_others_are_added(client: Any, service: Service) -> None:
    seed = repr(client)
    text, other = words((seed, "a")), words((seed, "b"))
    assert client.ping()
    assert client.bf().exists("any", text) == 0
    assert client.bf().add("any", text) == 1
    assert client.bf().add("any", f"x{text}") == 0
    assert client.bf().add("other key", text) == 0
    assert client.bf().exists("any", f"x{text}") == 1
    assert client.bf().madd("any", text, other, f"x{other}") == [0, 1, 0]
    assert client.bf().mexists("any", other, "nothing like it at all") == [1, 0]
    body = {"id": "http", "text": f"x{other}"}
    answer = service.post("seen", body, headers={"authorization": f"Bearer {KEY}"}).json()
    assert answer["state"] == "seen"
    assert client.info()["documents"] >= 2


def test_a_pipeline_is_answered_in_order_and_reads_what_it_wrote(client: Any) -> None:
    texts = [words((repr(client), "pipeline", number // 2)) for number in range(1000)]
    with client.pipeline(transaction=False) as pipeline:
        for text in texts:
            pipeline.execute_command("BF.ADD", "key", text)
        pipeline.execute_command("BF.EXISTS", "key", texts[-1])
        pipeline.execute_command("PING")
        begin = time.monotonic()
        answers = pipeline.execute()
    assert [int(each) for each in answers[:-1]] == [1, 0] * 500 + [1]
    assert time.monotonic() - begin < 60  # a commit each would be a thousand


def test_what_a_pipeline_reads_is_before_what_it_writes_later(client: Any) -> None:
    with client.pipeline(transaction=False) as pipeline:
        for number in range(50):
            text = words((repr(client), "read first", number))
            pipeline.execute_command("BF.EXISTS", "key", text)
            pipeline.execute_command("BF.ADD", "key", text)
            pipeline.execute_command("BF.ADD", "key", f"x{text}")
        answers = [int(each) for each in pipeline.execute()]
    assert answers == [0, 1, 0] * 50


def test_of_simultaneous_twins_one_is_new(service: Service) -> None:
    result: list[int] = []

    def add(text: str) -> None:
        with redis.Redis(port=resp_port(service), password=KEY, protocol=2) as client:
            result.append(client.bf().add("key", text))

    threads = [threading.Thread(target=add, args=(words("twins"),)) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(result) == 1


def test_other_commands_and_bad_items_are_errors_and_the_connection_lives(client: Any) -> None:
    for command, message in (
        (("SET", "a", "b"), "unknown command 'SET': there are BF.ADD"),
        (("BF.ADD", "key"), "wrong number of arguments"),
        (("BF.ADD", "key", b"\xff\xfe"), "not a text in UTF-8"),
        (("BF.ADD", "key", "a " * (3 << 20)), "too-large"),
    ):
        with pytest.raises(redis.ResponseError, match=message):
            client.execute_command(*command)
    assert client.ping()


@pytest.mark.parametrize("protocol", [2, 3])
def test_keys(service: Service, protocol: int) -> None:
    def ask(key: str | None, command: str) -> Any:
        with redis.Redis(port=resp_port(service), protocol=protocol, password=key) as client:
            return client.execute_command(command, "key", words("asked with a key"))

    for key in (None, "of another service"):
        with pytest.raises(redis.AuthenticationError):
            ask(key, "BF.EXISTS")
    assert ask(READ, "BF.EXISTS") == 0
    with pytest.raises(redis.exceptions.NoPermissionError):
        ask(READ, "BF.ADD")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"PING\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n$99999999999\r\n",
        b"*99999999\r\n",
        b"*1\r\n:5\r\n",
        b"*1\r\n$65537\r\n",  # too long before AUTH
        b"*" + b"1" * 100_000,
        b"\x00\xff" * 100,
    ],
)
def test_what_is_not_resp_ends_the_connection_with_an_error(service: Service, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", resp_port(service)), 60) as client:
        client.sendall(sent)
        if not sent.endswith(b"\n"):
            client.shutdown(socket.SHUT_WR)
        try:
            answer = client.makefile("rb").read()
        except ConnectionResetError:
            answer = b"-ERR "
    assert answer.startswith(b"-ERR "), answer
    assert "Traceback" not in "".join(service.log)


def command(*parts: str) -> bytes:
    """A command of RESP: an array of strings, in ASCII here."""
    return "".join([f"*{len(parts)}\r\n", *(f"${len(x)}\r\n{x}\r\n" for x in parts)]).encode()


def test_hello_without_a_version_keeps_that_of_the_connection(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", resp_port(service)), 60) as client:
        for each in (("AUTH", KEY), ("HELLO", "3"), ("HELLO",), ("QUIT",)):
            client.sendall(command(*each))
        client.shutdown(socket.SHUT_WR)
        assert client.makefile("rb").read().count(b"%4\r\n") == 2


def test_half_a_command_is_ended_and_sigterm_answers_what_was_sent(tmp_path: Path) -> None:
    with Service(tmp_path / "index", "--resp", "0") as service:
        port = resp_port(service)
        with socket.create_connection(("127.0.0.1", port), 60) as half:
            half.sendall(b"*2\r\n$6\r\nBF.")
            with redis.Redis(port=port, protocol=3) as client:  # idle while the service ends
                assert client.bf().add("key", words("mine")) == 1
                assert half.makefile("rb").read() == b""
                assert service.stop() == 0
    with (
        Service(tmp_path / "index", "--resp", "0", "--readonly") as reader,
        redis.Redis(port=resp_port(reader), protocol=3) as client,
    ):
        assert client.bf().exists("key", words("mine")) == 1
        with pytest.raises(redis.exceptions.ReadOnlyError):
            client.bf().add("key", words("other"))


@contextlib.asynccontextmanager
async def own_service(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> AsyncIterator[tuple[OwnService, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A service in this process, and a client's connection to it."""
    monkeypatch.setattr(nd.DurableIndex, "warm_up", lambda *_, **__: 0.0)
    settings = Settings(limits=limits)
    index = nd.DurableIndex.open(folder, similarity=0.8, recipe=nd.Recipe())
    service = OwnService(index, settings, asyncio.get_running_loop(), has_keys=False)
    service.warm_up()
    server = RespServer(service, Access.of(settings))
    listener = socket.create_server(("127.0.0.1", 0))
    await server.start(listener)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    yield service, reader, writer
    writer.close()
    await server.stop(60)
    service.close()


def test_a_command_of_many_cuts_is_not_refused_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> list[bytes]:
        limits = Limits(questions=0, cut_rows=2)
        async with own_service(tmp_path / "index", monkeypatch, limits) as (_, reader, writer):
            answers = []
            for count in (1, 5):
                writer.write(command("BF.MEXISTS", "key", *["one two three"] * count))
                answers.append(await reader.readline())
            return answers

    refused, answered = asyncio.run(story())
    assert b"queue-full" in refused
    assert answered == b"*5\r\n"


def test_a_pipeline_is_read_no_further_than_its_answers_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client that sends and sends fills the memory with commands that wait."""

    async def story() -> tuple[int, bytes]:
        limits = Limits(body_bytes=2000)
        async with own_service(tmp_path / "index", monkeypatch, limits) as (own, reader, writer):
            query, begun = own.operations["query"], list[int]()
            some, gate = asyncio.Event(), asyncio.Event()
            answers = query.answers

            async def slow(rows: list[Any], *, is_cut: bool = False) -> list[Any]:
                begun.append(len(rows))
                some.set()
                await gate.wait()
                return await answers(rows, is_cut=is_cut)

            monkeypatch.setattr(query, "answers", slow)
            writer.write(command("BF.EXISTS", "key", "x" * 500) * 100)
            await some.wait()
            await asyncio.sleep(0.2)
            before = len(begun)
            gate.set()
            return before, await reader.readexactly(4 * 100)

    before, answers = asyncio.run(story())
    assert before == 4  # these have more than 2,000 bytes
    assert answers == b":0\r\n" * 100


def resident(service: Service) -> int:
    """The memory of a service, in MB."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) // 1000


def test_texts_that_were_refused_are_not_kept_in_memory(tmp_path: Path) -> None:
    """They were, in cycles of an error and its traceback, until many more had come."""
    with Service(tmp_path / "index", "--resp", "0") as service:
        large = "x" * 5_000_000
        begin = 0
        for _ in range(17):
            with redis.Redis(port=resp_port(service)) as client:
                with pytest.raises(redis.ResponseError, match="too-large"):
                    client.bf().exists("key", large)
                with pytest.raises(redis.ResponseError, match="too-large"):
                    client.bf().add("key", large)
            rows = [f'{{"text": "{each}"}}' for each in (large, "one two three")]
            for kind, body in (("x-ndjson", "\n".join(rows)), ("json", rows[0])):
                headers = {"content-type": f"application/{kind}"}
                answer = service.client.post("/v1/query", content=body, headers=headers)
                assert "too-large" in answer.text
            begin = begin or resident(service)
        assert resident(service) - begin < 100


def test_a_client_that_leaves_before_its_answers_is_no_error(tmp_path: Path) -> None:
    with Service(tmp_path / "index", "--resp", "0") as service:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", resp_port(service)), 60) as client:
                client.sendall(command("BF.EXISTS", "key", words("long", 20_000)) * 25)
                reset = struct.pack("ii", 1, 0)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        assert service.ask("query", {"text": words("other")})["total"] == 0
        assert service.stop() == 0
    assert "Unhandled" not in "".join(service.log)
