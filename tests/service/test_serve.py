"""What the service answers: one document or many, in each form, by each kind of index."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pytest

import neardup as nd
from neardup.fingerprinting.fingerprints import feature_hashes
from neardup.service.connections import listening
from services import Service, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NDJSON = {"content-type": "application/x-ndjson"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One by similarity, for all tests of this file that need no other."""
    with Service(tmp_path_factory.mktemp("seen") / "index") as started:
        assert started.ask("seen", {"id": "so that ids are strings", "text": "of a fixture"})["new"]
        yield started


def near(text: str) -> str:
    """The same text but for a word."""
    first, _, rest = text.partition(" ")
    return f"{first}x {rest}"


def test_new_near_again_and_empty(service: Service) -> None:
    text = words("first")
    assert service.ask("seen", {"id": "a", "text": text}) == {"new": True, "state": "new"}
    answer = service.ask("seen", {"id": "b", "text": near(text)})
    similarity = nd.compare(text, near(text)).jaccard
    match = {"id": "a", "similarity": similarity}
    assert answer == {"new": False, "state": "seen", "match": match}
    assert service.ask("seen", {"id": "a", "text": text}) == {"new": True, "state": "stored"}
    other = {"id": "a", "text": words("other")}
    assert service.ask("seen", other) == {"new": True, "state": "replaced"}
    assert service.ask("seen", {"id": "c", "text": ""}) == {"new": True, "state": "empty"}


def test_of_simultaneous_twins_exactly_one_is_new(service: Service) -> None:
    gate = threading.Barrier(16)

    def send(name: str, text: str) -> bool:
        gate.wait(60)
        return bool(service.ask("seen", {"id": name, "text": text})["new"])

    for number in range(20):
        with ThreadPoolExecutor(16) as pool:
            text = words(("twins", number))
            result = list(pool.map(send, [f"t{number}.{i}" for i in range(16)], [text] * 16))
        assert result.count(True) == 1


def test_one_id_at_once_from_many_is_stored_once(service: Service) -> None:
    text = words("same id")
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda _: service.ask("seen", {"id": "same", "text": text}), range(64))
        )
    assert sorted(each["state"] for each in answers) == ["new"] + ["stored"] * 63


def test_query_nearest_add_and_remove(service: Service) -> None:
    text = words("queried")
    assert service.ask("add", {"id": "q", "text": text}) == {"state": "added"}
    assert service.ask("query", {"text": near(text)})["matches"][0]["id"] == "q"
    assert service.ask("query", {"text": near(text), "similarity": 1.0}) == {
        "matches": [],
        "total": 0,
    }
    nearest = service.ask("nearest", {"text": " ".join(text.split()[:20]), "n": 1})
    assert [each["id"] for each in nearest["matches"]] == ["q"]
    assert service.ask("remove", {"id": "q"}) == {"removed": True}
    assert service.ask("remove", {"id": "q"}) == {"removed": False}
    assert service.ask("query", {"text": text})["matches"] == []


def test_features_stand_for_a_text(service: Service) -> None:
    text = words("features")
    features = feature_hashes(text, nd.Recipe()).tolist()
    assert service.ask("seen", {"id": "f", "text": text})["state"] == "new"
    matches = service.ask("query", {"features": features})["matches"]
    assert matches == [{"id": "f", "similarity": 1.0}]


def test_compare_and_explain_are_those_of_the_library(service: Service) -> None:
    a, b = "to be or not to be that is it", "to be or not to be that is all"
    answer = service.ask("compare", {"a": a, "b": b})
    assert answer["jaccard"] == nd.compare(a, b).jaccard
    assert service.ask("explain", {"text": a}) == json.loads(
        json.dumps(nd.explain(a).to_dict(), default=lambda value: value.item())
    )
    assert service.ask("explain", {"text": a, "other": b})


def test_an_array_is_answered_in_order(service: Service) -> None:
    texts = [words(("array", number // 2)) for number in range(1200)]
    rows = [{"id": f"array{number}", "text": text} for number, text in enumerate(texts)]
    answer = service.ask("seen", rows)
    assert [each["new"] for each in answer] == [True, False] * 600
    assert [each["match"]["id"] for each in answer[1::2]] == [
        f"array{i}" for i in range(0, 1200, 2)
    ]


def test_lines_are_answered_line_for_line_and_a_bad_one_alone_is_refused(service: Service) -> None:
    lines: list[bytes] = []
    for number in range(1500):
        row = {"id": f"line{number}", "text": words(("line", number // 2))}
        lines.append(json.dumps(row).encode())
    lines[100] = b'{"id": "line100", "text": 5}'
    lines[700] = b"{"
    lines[900] = b'{"id": 900, "text": "an id of another kind"}'
    response = service.client.post("/v1/seen", content=b"\n".join(lines), headers=NDJSON)
    answers = [json.loads(line) for line in response.text.splitlines()]
    assert len(answers) == 1500
    refused = {i: each["error"]["type"] for i, each in enumerate(answers) if "error" in each}
    assert refused == {
        100: "/problems/invalid-document",
        700: "/problems/malformed-body",
        900: "/problems/other-ids",
    }
    assert answers[101] == {"new": True, "state": "new"}
    assert answers[1499]["match"]["id"] == "line1498"


def test_a_line_is_answered_before_the_next_one_is_sent(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), 60) as stream:
        head = f"POST /v1/seen HTTP/1.1\r\nHost: localhost:{service.port}\r\n"
        head += "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        stream.sendall(head.encode())
        reader = stream.makefile("rb")
        for number in range(3):
            line = json.dumps({"id": f"slow{number}", "text": words(("slow", number))}) + "\n"
            stream.sendall(f"{len(line):x}\r\n{line}\r\n".encode())
            while b'"state":"new"' not in reader.readline():
                pass
        stream.sendall(b"0\r\n\r\n")


def test_a_client_that_reads_only_at_the_end_gets_all_answers(service: Service) -> None:
    count = 40_000  # answers of megabytes: more than the buffers of a connection hold
    body = b"".join(b'{"id": "gone%d"}\n' % number for number in range(count))
    response = service.client.post("/v1/remove", content=body, headers=NDJSON)
    assert response.text == '{"removed":false}\n' * count


def test_arrow_in_arrow_out(service: Service) -> None:
    texts = [words(("arrow", number // 2)) for number in range(700)]
    table = pa.table({"id": [f"arrow{number}" for number in range(700)], "text": texts})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    response = service.client.post("/v1/seen", content=bytes(sink.getvalue()), headers=ARROW)
    assert response.headers["content-type"] == ARROW["content-type"]
    answers = pa.ipc.open_stream(response.content).read_all()
    assert answers["new"].to_pylist() == [True, False] * 350
    assert answers["match"].to_pylist()[1]["id"] == "arrow0"


def test_what_the_index_is_and_probes(service: Service) -> None:
    answer = service.client.get("/v1/index").json()
    recipe = nd.Recipe()
    assert (answer["by"], answer["similarity"], answer["digest"]) == (
        "similarity",
        0.8,
        recipe.digest,
    )
    assert answer["ids"] == "str"
    assert service.client.get("/livez").json() == {"live": True}
    assert service.client.get("/readyz").json() == {"ready": True, "why": None, "warnings": []}
    text = service.client.get("/metrics").text
    assert f"neardup_index_documents {float(answer['documents'])}" in text
    assert 'neardup_seen_total{state="seen"}' in text
    assert service.client.get("/").status_code == 200
    assert service.client.head("/livez").text == ""


REFUSED = {
    "not JSON": ("seen", b"{", {}, 400, "malformed-body"),
    "not UTF-8": ("seen", b'{"id": "a", "text": "\xff"}', {}, 400, "malformed-body"),
    "no text": ("seen", b'{"id": "x"}', {}, 422, "invalid-document"),
    "a number": ("seen", b'{"id": "x", "text": 5}', {}, 422, "invalid-document"),
    "two kinds": (
        "seen", b'{"id": "x", "text": "a", "features": []}', {}, 422, "invalid-document",
    ),
    "a fingerprint": ("seen", b'{"id": "x", "fingerprint": 5}', {}, 422, "invalid-document"),
    "a negative feature": ("seen", b'{"id": "x", "features": [-1]}', {}, 422, "invalid-document"),
    "another field": ("seen", b'{"id": "x", "txt": "a"}', {}, 422, "invalid-document"),
    "a query with another field": (
        "query", b'{"text": "a", "id": "x"}', {}, 422, "invalid-document",
    ),
    "a first with another field": (
        "first", b'{"id": "x", "text": "a", "n": 1}', {}, 422, "invalid-document",
    ),
    "a nearest with another field": (
        "nearest", b'{"text": "a", "limit": 1}', {}, 422, "invalid-document",
    ),
    "a removal with another field": (
        "remove", b'{"id": "x", "text": "a"}', {}, 422, "invalid-document",
    ),
    "a lower similarity": (
        "query", b'{"text": "a b c d", "similarity": 0.1}', {}, 422, "invalid-document",
    ),
    "an id of another kind": ("seen", b'{"id": 5, "text": "a b c d e"}', {}, 409, "other-ids"),
    "a first id of another kind": ("first", b'{"id": 5, "text": "a b"}', {}, 409, "other-ids"),
    "a long id": ("remove", b'{"id": "%s"}' % (b"i" * 2000), {}, 413, "too-large"),
    "a long text": (
        "seen", b'{"id": "x", "text": "%s"}' % (b"a " * (3 << 20)), {}, 413, "too-large",
    ),
    "a large body": ("seen", b" " * (17 << 20), {}, 413, "too-large"),
    "a form": (
        "seen", b"id=a", {"content-type": "application/x-www-form-urlencoded"}, 415, "media-type",
    ),
    "another recipe": (
        "seen", b'{"id": "x", "text": "a"}', {"neardup-recipe": "0" * 16}, 409, "other-recipe",
    ),
    "another host": (
        "seen", b'{"id": "x", "text": "a"}', {"host": "example.org"}, 403, "host-not-allowed",
    ),
    "another origin": (
        "seen", b'{"id": "x", "text": "a"}', {"origin": "https://example.org"}, 403,
        "origin-not-allowed",
    ),
    "no folder for backups": ("backup", b"{}", {}, 409, "no-backups"),
    "no such address": ("nothing", b"{}", {}, 404, "not-found"),
    "not an Arrow stream": ("seen", b"abc", ARROW, 400, "malformed-body"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why_and_has_a_page(service: Service, case: str) -> None:
    path, body, headers, status, name = REFUSED[case]
    all_headers = {"content-type": "application/json"} | headers
    try:
        response = service.client.post(f"/v1/{path}", content=body, headers=all_headers)
    except httpx.WriteError:  # the service closed the connection before all was sent
        assert status == 413
        return
    problem = response.json()
    assert (response.status_code, problem["type"]) == (status, f"/problems/{name}"), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["detail"]
    assert service.client.get(problem["type"]).text.startswith(problem["title"])
    assert service.client.get("/v1/seen").headers["allow"] == "POST"


def test_a_request_keeps_its_id_and_headers_are_safe(service: Service) -> None:
    headers = service.client.get("/livez", headers={"x-request-id": "mine-1"}).headers
    assert headers["x-request-id"] == "mine-1"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


def test_half_a_body_is_ended_and_others_are_answered(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), 60) as half:
        head = f"POST /v1/seen HTTP/1.1\r\nHost: localhost:{service.port}\r\n"
        head += 'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"id"'
        half.sendall(head.encode())
        assert service.ask("query", {"text": words("first")})
        answer = half.makefile("rb").read()  # to the end: the connection is closed
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"body-too-slow" in answer


BODY = b"POST /v1/seen HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
MANY = b"".join(b"X%d: 0123456789\r\n" % number for number in range(5000))


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /", b"a" * 90_000),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", b"a" * 90_000),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n", MANY),
        (BODY + b"2\r\n[]\r\n0\r\n", MANY),
        (BODY + b"2;", b"a" * 90_000),
    ],
    ids=["path", "header", "headers", "trailers", "extension"],
)
def test_a_head_without_end_is_refused_before_it_fills_the_memory(
    service: Service, begin: bytes, piece: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", service.port), 60) as client:
        client.sendall(begin)
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            any(map(client.sendall, repeat(piece, 1000)))
        assert service.ask("query", {"text": words("first")})


def test_a_large_head_is_answered_and_a_larger_one_is_told(service: Service) -> None:
    for size, status in ((60_000, b"200"), (300_000, b"431")):
        with socket.create_connection(("127.0.0.1", service.port), 60) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ")
            client.sendall(b"a" * size)
            if status == b"200":
                client.sendall(b"\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 " + status


@pytest.mark.parametrize("encoding", ["gzip", "br", "x, gzip"])
def test_an_encoded_body_is_refused_by_the_name_of_its_encoding(
    service: Service, encoding: str
) -> None:
    row = gzip.compress(json.dumps({"id": "packed", "text": "one two three"}).encode())
    headers = {"content-type": "application/json", "content-encoding": encoding}
    answer = service.client.post("/v1/seen", content=row, headers=headers)
    assert answer.status_code == 415
    assert answer.json()["detail"] == f"Content-Encoding is {encoding!r}: send the body without any"


OFFERS = [
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n",
    b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n",
]


@pytest.mark.parametrize("offer", OFFERS, ids=["h2c", "websocket"])
@pytest.mark.parametrize("cut", [0, 60, -60, -2, None], ids=repr)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_request_that_offers_another_protocol_is_answered_in_this_one(
    service: Service, offer: bytes, cut: int | None, *, is_chunked: bool
) -> None:
    """As clients of Java do, to which a body that is left out would be malformed."""
    body = json.dumps({"text": words("offered")}).encode()
    length = b"Content-Length: %d\r\n" % len(body)
    if is_chunked:
        length, body = (
            b"Transfer-Encoding: chunked\r\n",
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
        )
    head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    data = head + offer + length + b"\r\n" + body
    with socket.create_connection(("127.0.0.1", service.port), 60) as client:
        for _ in range(2):  # on one connection
            for piece in (data[:cut], data[cut:] if cut is not None else b""):
                client.sendall(piece)
                time.sleep(0.02)
            read_totals(client, 1)
        client.sendall(data * 400)
        read_totals(client, 400)
        client.sendall(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n" + offer + b"\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 40")


def read_totals(client: socket.socket, count: int) -> None:
    """Read this number of answers to queries that find nothing."""
    answer = b""
    while answer.count(b'{"matches":[],"total":0}') < count:
        piece = client.recv(1 << 16)
        assert piece, answer
        answer += piece
    assert answer.count(b"HTTP/1.1 200 OK") == count


def test_the_port_of_a_service_that_ended_is_free_at_once() -> None:
    with listening("--port", "127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


def test_a_client_that_leaves_within_its_body_is_counted_as_one(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), 60) as half:
        head = b"POST /v1/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        half.sendall(head + b"Content-Length: 100\r\n\r\n{")
    end = time.monotonic() + 30
    while 'status="499"' not in (text := service.client.get("/metrics").text):
        assert time.monotonic() < end, text
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("headers", "size", "closes"),
    [
        ({"content-type": "text/plain"}, 10, True),
        ({"content-encoding": "gzip"}, 10, True),
        ({"neardup-recipe": "other"}, 10, True),
        ({}, 17 << 20, True),
        ({}, 10, False),
    ],
)
def test_a_connection_closes_where_the_rest_of_a_body_is_not_read(
    service: Service, headers: dict[str, str], size: int, *, closes: bool
) -> None:
    headers = {"content-type": "application/json"} | headers
    answer = service.client.post("/v1/query", content=b"x" * size, headers=headers)
    assert answer.status_code >= 400
    assert (answer.headers.get("connection") == "close") is closes


@pytest.mark.parametrize("bits", [64, 128])
def test_fingerprints_of_an_index_by_distance(tmp_path: Path, bits: int) -> None:
    folder = tmp_path / "index"
    nd.DurableIndex.create(folder, 3, bits).close()
    with Service(folder) as service:
        large = 2**bits - 1
        assert service.ask("seen", {"id": 1, "fingerprint": large})["new"]
        match = {"id": 1, "distance": 2}
        answer = service.ask("seen", {"id": 2, "fingerprint": large ^ 5})
        assert answer == {"new": False, "state": "seen", "match": match}
        assert service.ask("query", {"fingerprint": large ^ 5}) == {"matches": [match], "total": 1}
        assert service.post("seen", {"id": 3, "text": "no recipe"}).status_code == 422
        assert service.post("compare", {"a": "x", "b": "y"}).status_code == 422
        many = [{"id": 10 + row, "fingerprint": (row + 1) << 20} for row in range(5)]
        assert [each["new"] for each in service.ask("seen", many)] == [True] + [False] * 4
        assert service.stop() == 0


def test_keys_rights_and_names(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# of the crawler\nwrite 0123456789abcdef\nread fedcba9876543210\n")
    row = {"id": "a", "text": words("keys")}
    with Service(tmp_path / "index", "--keys", str(keys), "--host", "0.0.0.0") as service:  # noqa: S104

        def status(key: str | None, path: str = "seen", json: Any = row) -> int:
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            return service.post(path, json, headers=headers).status_code

        assert (status(None), status("wrong"), status("fedcba9876543210")) == (401, 401, 403)
        assert status("0123456789abcdef") == 200
        assert status("fedcba9876543210", "query", {"text": row["text"]}) == 200
        assert service.client.get("/metrics").status_code == 401
        assert service.client.get("/livez", headers={"host": "example.org"}).status_code == 200
        assert "0123456789abcdef" not in "".join(service.log)


def test_old_documents_go_and_those_seen_again_stay(tmp_path: Path) -> None:
    options = ("--max-age", "3s", "--age", "seen", "--similarity", "0.8")
    with Service(tmp_path / "index", *options) as service:
        service.ask("seen", {"id": "old", "text": words("old")})
        service.ask("seen", {"id": "again", "text": words("again")})
        end = time.monotonic() + 60
        while "neardup_expired_total 1.0" not in service.client.get("/metrics").text:
            assert service.ask("seen", {"id": "twin", "text": words("again")})["state"] == "seen"
            assert time.monotonic() < end
            time.sleep(0.3)
        matches = service.ask("query", {"text": words("again")})["matches"]
        assert [each["id"] for each in matches] == ["again"]


def test_a_backup_is_an_index(tmp_path: Path) -> None:
    with Service(tmp_path / "index", "--backups", str(tmp_path / "copies")) as service:
        service.ask("seen", {"id": "a", "text": words("copied")})
        answer = service.ask("backup", {})
    with nd.DurableIndex.open(tmp_path / "copies" / answer["backup"], readonly=True) as copy:
        assert list(copy.query(words("copied"))) == [("a", 1.0)]


def test_a_reader_beside_the_writer(tmp_path: Path) -> None:
    row = {"id": "a", "text": words("read")}
    with Service(tmp_path / "index") as writer:
        writer.ask("seen", row)
        with Service(tmp_path / "index", "--readonly") as reader:
            assert reader.ask("query", {"text": row["text"]})["total"] == 1
            assert reader.post("seen", row).json()["type"] == "/problems/read-only"
            writer.ask("seen", {"id": "b", "text": words("later")})
            assert reader.ask("query", {"text": words("later")})["total"] == 1
