"""The SQL of docs/guide/databases.md: pairs and lookups are those of `nd.pairs`.

`make sql-million` runs it with a million fingerprints, and prints what took how long.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from suite import ROOT, needs_jit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = needs_jit

PAGE = (ROOT / "docs" / "guide" / "databases.md").read_text("utf-8")
ROWS = int(os.environ.get("NEARDUP_SQL_ROWS", "3000"))


def blocks(heading: str) -> list[str]:
    """The SQL under a heading of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", section, re.DOTALL)


def stored() -> tuple[list[str], Any]:
    """Ids and fingerprints: neighbours of 1 to 4 bits, pairs by the sign alone, a null."""
    draw = np.random.default_rng(4)
    codes = draw.integers(0, 2**64, ROWS, np.uint64)
    for row in range(1, ROWS, 3):
        for _ in range(row % 4 + 1):
            codes[row] = codes[row - 1] if _ == 0 else codes[row]
            codes[row] ^= np.uint64(1) << np.uint64(draw.integers(0, 64))
    codes[2::30] = codes[:-2:30] ^ np.uint64(1 << 63)
    codes[5] = codes[6] ^ np.uint64(0xFFFF)
    mask = np.zeros(ROWS, np.bool_)
    mask[-1] = True
    return [f"d{row:07}" for row in range(ROWS)], np.ma.MaskedArray(codes, mask)


IDS, CODES = stored()
SIGNED = [None if value is np.ma.masked else int(np.int64(np.uint64(value).view(np.int64)))
          for value in CODES]  # fmt: skip


def pairs() -> set[tuple[str, str]]:
    """Of ids, by `nd.pairs`."""
    pairs = nd.pairs(CODES, distance=3)
    lefts, rights = pairs["left"].to_pylist(), pairs["right"].to_pylist()
    return {(IDS[left], IDS[right]) for left, right in zip(lefts, rights, strict=True)}


def check_pairs(select: Callable[[str], list[Any]]) -> None:
    """Compare them with `nd.pairs`; each comes once."""
    want = timed("nd.pairs", pairs)
    actual = timed("all pairs", lambda: select("select one, other from pairs;"))
    assert set(map(tuple, actual)) == want
    assert len(actual) == len(want)


def check_lookups(lookup: Callable[[int], list[tuple[str, int]]], *, signed: bool) -> None:
    """Compare lookups with an index."""
    index = nd.Index(distance=3)
    index.add(IDS, CODES)
    rows = [*range(60), 600]
    values = [SIGNED[row] if signed else int(CODES[row]) for row in rows]
    result = timed("61 lookups", lambda: list(map(lookup, values)))
    for row, hits in zip(rows, result, strict=True):
        assert sorted(hits) == sorted(index.query(int(CODES[row])))


def timed(what: str, call: Callable[[], Any]) -> Any:
    """What a call gives; its seconds are printed."""
    begin = time.perf_counter()
    result = call()
    print(f"{what}: {time.perf_counter() - begin:.3f} s of {ROWS:,}")  # noqa: T201
    return result


def test_sqlite() -> None:
    schema, lookup, view = blocks("SQLite")
    with sqlite3.connect(":memory:") as base:
        base.executescript(schema)
        base.executemany("insert into fp (id, fp) values (?, ?)", zip(IDS, SIGNED, strict=True))
        check_lookups(lambda q: base.execute(lookup, {"q": q}).fetchall(), signed=True)
        base.executescript(view)
        check_pairs(lambda query: base.execute(query).fetchall())
        trap = base.execute("select typeof(-9223372036854775808 - 1)").fetchone()
        assert trap == ("real",), "the page says why the sign is counted apart"
    base.close()


def test_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    (script,) = blocks("DuckDB")
    monkeypatch.chdir(tmp_path)
    column = pa.array(CODES.data, pa.uint64(), mask=CODES.mask)
    pq.write_table(pa.table({"id": IDS, "fingerprint": column}), "fps.parquet")
    with duckdb.connect() as base:
        base.execute(script)
        check_pairs(lambda query: base.execute(query).fetchall())
        query = "select id, distance from within3(?::ubigint)"
        check_lookups(lambda q: base.execute(query, [q]).fetchall(), signed=False)


def program(name: str) -> str | None:
    """A program of PostgreSQL, which Debian does not put in the path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(places[-1]) if places else shutil.which(name)


@pytest.fixture
def psql() -> Iterator[Callable[[str], str]]:
    """A server of its own, in a folder, on a socket; runs SQL and gives what it prints."""
    names = ("initdb", "pg_ctl", "psql")
    result = {name: program(name) for name in names}
    if None in result.values():
        pytest.skip("PostgreSQL is not installed: on Debian, apt-get install postgresql")
    options: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # the path of a socket is short
    if os.geteuid() == 0:  # the server refuses to run as root
        options |= {"user": "nobody", "group": "nogroup", "extra_groups": [], "cwd": folder}
        shutil.chown(folder, "nobody", "nogroup")
    data = str(folder / "data")

    def ran(*command: Any, script: str | None = None) -> str:
        process = subprocess.run(
            command, check=True, input=script, stdout=subprocess.PIPE, text=True, **options
        )
        return process.stdout

    def run(script: str) -> str:
        return ran(result["psql"], "-h", folder, "-U", "me", "-d", "postgres", "-X", "-q", "-At",
                   "-v", "ON_ERROR_STOP=1", script=script)  # fmt: skip

    server = [result["pg_ctl"], "-D", data, "-w", "-l", folder / "log"]
    ran(result["initdb"], "-D", data, "-U", "me", "-A", "trust", "-N")
    ran(*server, "-o", f"-k {folder} -h '' -F", "start")
    try:
        yield run
    finally:
        ran(*server, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def test_postgresql(psql: Callable[[str], str]) -> None:
    schema, indexes, view = blocks("PostgreSQL")
    rows = "".join(
        f"{identity},{'' if value is None else value}\n"
        for identity, value in zip(IDS, SIGNED, strict=True)
    )
    psql(f"{schema}\ncopy fp (id, fp) from stdin csv;\n{rows}\\.\n{indexes}{view}")
    check_pairs(lambda query: [line.split("|") for line in psql(query).splitlines()])

    def lookup(q: int) -> list[tuple[str, int]]:
        lines = psql(f"select id, distance from within3({q});").splitlines()  # noqa: S608
        return [(line.split("|")[0], int(line.split("|")[1])) for line in lines]

    check_lookups(lookup, signed=True)


@pytest.fixture
def mariadb() -> Iterator[Callable[[str], list[list[str]]]]:
    """A server of its own, in a folder, on a socket; runs SQL and gives the rows of the last."""
    programs = ("mariadb-install-db", "mariadbd", "mariadb", "mariadb-admin")
    if None in map(shutil.which, programs):
        pytest.skip("MariaDB is not installed: on Debian, apt-get install mariadb-server")
    folder = Path(tempfile.mkdtemp(prefix="my", dir="/tmp"))
    user = "nobody" if os.geteuid() == 0 else str(os.environ.get("USER"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
    data, socket = f"--datadir={folder}/data", f"--socket={folder}/socket"
    environment = os.environ | {"TMPDIR": str(folder)}  # where its user may write
    client = ["--no-defaults", socket, "--user=root"]
    subprocess.run(
        [programs[0], "--no-defaults", data, f"--user={user}", "--skip-test-db",
         "--auth-root-authentication-method=normal"],
        check=True, capture_output=True, env=environment,
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs[1], "--no-defaults", data, socket, f"--user={user}", "--skip-networking"],
            stdout=log, stderr=log, env=environment,
        )  # fmt: skip
    ping = [programs[3], *client, "--wait=60", "--silent", "ping"]
    subprocess.run(ping, check=True, capture_output=True, timeout=120)

    def run(script: str) -> list[list[str]]:
        process = subprocess.run(
            [programs[2], *client, "--local-infile", "--batch", "--skip-column-names"],
            check=True, input=script, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return [line.split("\t") for line in process.stdout.splitlines()]

    try:
        run("create database b")
        yield lambda script: run(f"use b;{script}")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def test_mariadb(mariadb: Callable[[str], list[list[str]]], tmp_path: Path) -> None:
    schema, lookup = blocks("MariaDB")
    (load,) = re.findall(r"`(load data [^`]*)`", PAGE.replace("\n", " "))
    rows = zip(IDS, SIGNED, strict=True)
    lines = [f"{identity},{'' if value is None else value}\n" for identity, value in rows]
    (tmp_path / "fps.csv").write_text("".join(["id,fingerprint\n", *lines]))
    mariadb(f"{schema}{load.replace('fps.csv', str(tmp_path / 'fps.csv'))};analyze table fp;")
    check_pairs(mariadb)
    check_lookups(
        lambda q: [(one, int(two)) for one, two in mariadb(f"set @q = {q};{lookup}")], signed=True
    )
