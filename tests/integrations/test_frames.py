"""Frames of other libraries: what is kept is what `dedup` keeps, as the frame that it was."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import neardup as nd
from suite import needs_jit

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

import neardup.integrations.duckdb  # noqa: E402
import neardup.integrations.pandas  # noqa: E402
import neardup.integrations.polars  # noqa: E402

pytestmark = needs_jit

WORDS = [f"w{number}" for number in range(40)]
TEXTS = [" ".join([*WORDS[at % 7 :], str(at % 3)]) for at in range(60)]
TEXTS += ["", "alone in the world"]
KEPT = nd.dedup(TEXTS).kept
GROUPS = [str(at % 4) for at in range(len(TEXTS))]


def test_a_pandas_frame_keeps_its_index_and_columns() -> None:
    odd = [{"a": 1} if at % 2 else [1] for at in range(len(TEXTS))]
    df = pd.DataFrame({"body": TEXTS, "odd": odd}, index=[f"r{at}" for at in range(len(TEXTS))])
    kept = df.neardup.dedup("body")
    assert kept.index.tolist() == [f"r{at}" for at in np.flatnonzero(KEPT)]
    assert kept.columns.tolist() == ["body", "odd"]
    assert df[~df.neardup.is_duplicate("body")].equals(kept)


def test_options_name_columns_too() -> None:
    stars = list(range(len(TEXTS)))
    df = pd.DataFrame({"text": TEXTS, "group": GROUPS, "stars": stars})
    want = nd.dedup(df, within="group", keep="max:stars").kept
    assert (want != nd.dedup(df).kept).any()
    for frame in (df, pl.from_pandas(df)):
        kept = frame.neardup.dedup("text", within="group", keep="max:stars")
        assert list(kept["stars"]) == np.flatnonzero(want).tolist()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "2 columns are named 'text'"),
        (pd.DataFrame({"body": ["a"]}), "no column 'text': there are body"),
        (pl.DataFrame({"body": ["a"]}), "no column 'text': there are body"),
    ],
)
def test_a_column_that_cannot_be_meant_is_one_line(frame: Any, message: str) -> None:
    with pytest.raises(nd.UsageError, match=message):
        frame.neardup.dedup("text")


def test_polars_expressions_serve_lazy_frames_and_groups() -> None:
    df = pl.DataFrame({"id": range(len(TEXTS)), "group": GROUPS, "text": TEXTS})
    want = np.flatnonzero(KEPT).tolist()
    assert df.neardup.dedup()["id"].to_list() == want
    text = pl.col("text").neardup
    for engine in ("in-memory", "streaming"):
        lazy = df.lazy().filter(~text.is_duplicate()).collect(engine=engine)
        assert lazy["id"].to_list() == want
    over = df.filter(~text.is_duplicate().over("group"))["id"].to_list()
    assert over == np.flatnonzero(nd.dedup(df, within="group").kept).tolist()
    strict = df.filter(~text.is_duplicate(similarity=1.0))["id"].to_list()
    assert strict == np.flatnonzero(nd.dedup(TEXTS, similarity=1.0).kept).tolist()


@pytest.mark.parametrize("bits", [16, 64, 128])
def test_polars_fingerprints_are_those_of_the_library(bits: int) -> None:
    recipe = nd.Recipe(bits=bits)
    texts = [*TEXTS, None]
    column = pl.DataFrame({"text": texts}).select(pl.col("text").neardup.fingerprint(recipe))[
        "text"
    ]
    want = [None if text is None else nd.fingerprint(text, recipe) for text in texts]
    values = column.to_list()
    if bits > 64:
        values = [None if x is None else x[0] | x[1] << 64 for x in values]
    assert values == want


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["one two"])])
def test_a_null_is_no_duplicate(kind: Any) -> None:
    df = pl.DataFrame({"text": pl.Series(["one two", None, "one two", None], dtype=kind)})
    flags = df.select(pl.col("text").neardup.is_duplicate())["text"].to_list()
    assert flags == [False, False, True, False]


def test_simhash64_in_sql_is_the_fingerprint(request: pytest.FixtureRequest) -> None:
    con = duckdb.connect()
    request.addfinalizer(con.close)
    neardup.integrations.duckdb.register(con)
    con.execute("create table t as select * from (values (0, 'one two three'), (1, ''), (2, null),"
                " (3, 'One, two, THREE')) x(i, s)")  # fmt: skip
    rows = [row[0] for row in con.execute("select simhash64(s) from t order by i").fetchall()]
    one = nd.fingerprint("one two three")
    assert rows == [one, None, None, one]
    with pytest.raises(nd.UsageError, match="128 bits"):
        neardup.integrations.duckdb.register(con, nd.Recipe(bits=128))


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_a_missing_library_is_one_line_with_the_extra(library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; import neardup.integrations.{library}"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert f"pip install 'neardup[{library}]'" in process.stderr.splitlines()[-1]
