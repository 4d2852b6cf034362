"""Ready means ready: after /readyz nothing compiles, whatever is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from suite import IMPORTS, needs_jit

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM: Final = """
import io, json, os, random, re, signal, sys, threading, time
from pathlib import Path
import httpx, pyarrow as pa, redis
import neardup as nd
from neardup.service import Settings, serve
from suite import compiled_kernels

folder, kind, id_kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
made = {
    "similarity": dict(similarity=0.8, recipe=nd.Recipe()),
    "distance": dict(distance=3, recipe=nd.Recipe()),
    "kept texts": dict(similarity=0.7, recipe=nd.Recipe(), store="text"),
    "features": dict(similarity=0.6, measure="containment"),
}[kind]
failures = []

def text_of(number, size=60):
    chosen = random.Random(number)
    return " ".join(f"w{chosen.randrange(3000)}" for _ in range(size))

def document(number, size=60):
    if kind == "features":
        return {"features": [3 * number + each for each in range(size)]}
    if kind == "distance" and number % 5 == 4:
        return {"fingerprint": number * 0x9E3779B97F4A7C15 % 2**63}
    return {"text": text_of(number, size)}

def name(number):
    return number if id_kind == "int" else f"id{number}"

def ask(url, port):
    number = 0
    with httpx.Client(base_url=url, timeout=300) as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.1)
        before = compiled_kernels()
        assert len(before) > 10
        def post(path, body, kind="application/json", **given):
            found = client.post(path, headers={"content-type": kind}, **{body[0]: body[1]})
            assert found.status_code == 200, (path, found.text)
            return found
        for path in "seen query first nearest add seen query nearest remove".split():
            for size in (1, 7, 600, 4000):
                row = document(number, size)
                post(f"/v1/{path}", ("json", trimmed(path, {"id": name(number), **row})))
                number += 1
            rows = [{"id": name(number + at), **document(number + at)} for at in range(700)]
            for at in range(100):
                rows[600 + at] = {**rows[at], "id": name(number + 2000 + at)}
            rows = [trimmed(path, each) for each in rows][: 8 if path == "nearest" else None]
            number += 3000
            post(f"/v1/{path}", ("json", rows))
            post(f"/v1/{path}", ("json", rows[:9]))
            lines = "\\n".join(map(json.dumps, rows))
            post(f"/v1/{path}", ("content", lines), "application/x-ndjson")
            for column in ("text", "features", "fingerprint"):
                some = [each for each in rows if column in each]
                if some:
                    table, sink = pa.Table.from_pylist(some), io.BytesIO()
                    with pa.ipc.new_stream(sink, table.schema) as stream:
                        stream.write_table(table)
                    arrow = "application/vnd.apache.arrow.stream"
                    post(f"/v1/{path}", ("content", sink.getvalue()), arrow)
        if kind != "features":
            for reach in ({"limit": 1}, {"limit": 1000}):
                post("/v1/query", ("json", {"text": text_of(1), **reach}))
            post("/v1/compare", ("json", {"a": text_of(1), "b": text_of(1) + " more"}))
            post("/v1/explain", ("json", {"text": text_of(1)}))
            post("/v1/explain", ("json", {"text": text_of(1), "other": text_of(2)}))
            for path, fields in (("/", {"text": text_of(1)}),
                                 ("/compare", {"first": text_of(1), "second": text_of(2)})):
                assert client.get(path).status_code == 200
                found = client.post(path, data=fields, headers={"origin": url})
                assert found.status_code == 200, found.text
            with redis.Redis(port=port, protocol=2) as other:
                other.bf().madd("key", *map(text_of, range(9)))
                other.bf().exists("key", text_of(3))
                other.info()
        post("/v1/backup", ("json", {}))
        for path in ("/v1/index", "/metrics", "/openapi.json", "/livez"):
            assert client.get(path).status_code == 200
        new = compiled_kernels() - before
        assert not new, "\\n".join(map(str, sorted(new)))

def trimmed(path, row):
    taken = {"remove": ["id"], "query": ["text", "features", "fingerprint"],
             "nearest": ["text", "features", "fingerprint"]}.get(path)
    return {field: row[field] for field in row if taken is None or field in taken}

def run(line):
    def body():
        try:
            ask(re.search(r"http://\\S+", line)[0], int(re.search(r"redis://\\S+:(\\d+)", line)[1]))
        except BaseException as error:
            failures.append(error)
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=body).start()

serve(folder / "index", Settings(port=0, resp=0, backups=folder / "backups"), run, **made)
if failures:
    raise failures[0]
"""


@needs_jit
@pytest.mark.parametrize(
    ("kind", "ids"),
    [("similarity", "str"), ("distance", "str"), ("features", "int"), ("kept texts", "int")],
)
def test_nothing_compiles_after_readyz(kind: str, ids: str, tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), kind, ids],
        capture_output=True, text=True, check=False, env=os.environ | IMPORTS,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-5000:]
