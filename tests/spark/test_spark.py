"""DataFrames on Sail are decided as tables on one machine, for any number of partitions."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup import spark
from neardup.errors import DataError, UsageError
from neardup.fingerprinting.sets_of_texts import feature_sets
from neardup.spark.dataframes import in_order
from neardup.spark.engine import Engine, Limits
from spark_cases import DOCUMENTS, WARNINGS, decided, decided_here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = WARNINGS

CASES: Final[list[tuple[dict[str, Any], int]]] = [
    ({"similarity": 0.8}, 1),
    ({"similarity": 0.5}, 7),
    ({"similarity": 0.5}, 64),
    ({"similarity": 0.4, "policy": "components", "keep": "longest"}, 2),
    ({"similarity": 0.5, "measure": "containment", "keep": "last"}, 2),
    ({"similarity": 0.6, "measure": "cosine", "within": "language"}, 2),
    ({"similarity": 0.6, "measure": "dice", "policy": "components"}, 3),
    ({"distance": 8}, 7),
    ({"distance": 12, "policy": "components", "keep": "max:stars"}, 2),
    ({"distance": 20, "verify": 0.3, "keep": "min:stars"}, 2),
    ({"distance": 12, "recipe": nd.Recipe(bits=128, weight="count")}, 2),
]


@pytest.mark.parametrize(("options", "parts"), CASES, ids=str)
def test_a_dataframe_is_decided_as_a_table(frame: Any, options: dict[str, Any], parts: int) -> None:
    assert decided(spark.dedup(frame, parts=parts, **options)) == decided_here(options)


@pytest.mark.parametrize("options", [{"similarity": 0.5}, {"distance": 12}], ids=str)
def test_no_number_of_partitions_and_no_second_run_changes_a_byte(
    frame: Any, options: dict[str, Any]
) -> None:
    table = [
        spark.dedup(frame, parts=parts, **options).toArrow().sort_by("id").combine_chunks()
        for parts in (1, 2, 7, 7, 64)
    ]
    assert all(each.equals(table[0]) for each in table)


@pytest.mark.parametrize(
    ("is_free", "cells", "parts"), [(True, 1, 8), (True, 90, 90), (True, 999, 200), (False, 1, 200)]
)
def test_without_a_number_partitions_are_what_documents_fill(
    session: Any, monkeypatch: pytest.MonkeyPatch, is_free: bool, cells: int, parts: int
) -> None:
    monkeypatch.setattr("neardup.spark.engine.BYTES_A_PART", 10)
    engine = Engine(session, "", 200)
    engine.is_free = is_free
    engine.fit(session.createDataFrame([(b"0123456789" * cells,)], "features binary"))
    assert engine.parts == parts


def test_the_order_is_that_of_the_column_that_is_named(session: Any) -> None:
    table = DOCUMENTS.append_column("at", pa.array(range(82, 0, -1)))
    actual = spark.dedup(session.createDataFrame(table), order_by="at", similarity=0.5, parts=3)
    expected = nd.dedup(DOCUMENTS.take(list(range(81, -1, -1))), id="id", similarity=0.5)
    kept = [row[0] for row in decided(actual) if row[1]]
    ids = DOCUMENTS["id"].to_pylist()[::-1]
    assert kept == sorted(x for x, keep in zip(ids, expected.kept, strict=True) if keep)


def test_the_result_says_the_order_of_the_documents(session: Any) -> None:
    table = DOCUMENTS.append_column("at", pa.array(range(82, 0, -1)))
    frame = session.createDataFrame(table)
    by_id, by_column = (spark.dedup(frame, similarity=0.5, order_by=x) for x in (None, "at"))
    assert by_id.schema["id"].metadata == {"neardup.order": ["id"]}
    assert by_column.where("kept").schema["id"].metadata == {"neardup.order": ["at", "id"]}
    names = table.set_column(0, "id", pa.array([f"t{i}" for i in range(82)]))
    with pytest.warns(nd.DoubtfulResultWarning, match="column 'id', which is text") as warnings:
        spark.dedup(session.createDataFrame(names), similarity=0.5)
    assert [each.filename for each in warnings] == [__file__]
    spark.dedup(session.createDataFrame(names), similarity=0.5, order_by="id")
    numbers = table.set_column(0, "id", pa.array(range(82)))
    spark.dedup(session.createDataFrame(numbers), similarity=0.5)


def test_frames_of_raw_html_are_told(session: Any) -> None:
    pages = [None, *(f"<html><p>{text}</p>" for text in DOCUMENTS["text"].to_pylist()[1:])]
    frame = session.createDataFrame(DOCUMENTS.set_column(1, "text", pa.array(pages)))
    for call in (spark.dedup, spark.similar_pairs):
        with pytest.warns(
            nd.DoubtfulResultWarning, match="100% of the first texts begin"
        ) as warnings:
            call(frame, similarity=0.5)
        assert [each.filename for each in warnings] == [__file__]


def text_ids(count: int) -> list[str]:
    return [f"t{i}" for i in np.random.default_rng(4).permutation(count).tolist()]


ORDERS: Final[dict[str, tuple[list[Any], pa.DataType | None]]] = {
    "ids that are text": (text_ids(90), None),
    "ids that are numbers": (list(range(-40, 50)), None),
    "equal places": ([["b", "a", None][i % 3] for i in range(90)], pa.string()),
    "one place": ([1.5] * 90, pa.float64()),
    "places that are not numbers": ([[float("nan"), -0.5, None, float("-inf")][i % 4]
                                    for i in range(90)], pa.float64()),
    "days": ([date(2024 - i % 7, 3, 1) for i in range(90)], pa.date32()),
    "moments": ([datetime(2024 - i % 7, 3, 1, 12, tzinfo=UTC) for i in range(90)],
                pa.timestamp("us", "UTC")),
    "decimals": ([Decimal(i % 11 - 5) / 4 for i in range(90)], pa.decimal128(9, 2)),
    "truths": ([[True, False, None][i % 3] for i in range(90)], pa.bool_()),
    "bytes": ([bytes([255 - i % 5, i % 2]) for i in range(90)], pa.binary()),
}  # fmt: skip


@pytest.mark.parametrize("limit", [2, 44, 89, 90])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_an_order_in_ranges_is_that_of_one_task(
    session: Any, tmp_path: Path, order: tuple[list[Any], pa.DataType | None], limit: int
) -> None:
    values, kind = order
    ids = values if kind is None else text_ids(90)
    table = pa.table({"id": ids} | ({} if kind is None else {"place": pa.array(values, kind)}))
    id_kind = "long" if pa.types.is_integer(table.schema.field("id").type) else "string"
    keys = session.createDataFrame(table).repartition(5)
    engine = Engine(session, str(tmp_path), 3, Limits(ids=limit))
    result = in_order(engine, keys, 90, f"id {id_kind}").toArrow().sort_by("number")

    def place(row: int) -> tuple[Any, ...]:
        """Null first, what is not a number last."""
        value = None if kind is None else values[row]
        has_none = value is None or value != value  # noqa: PLR0124  # not a NaN
        return value is not None, has_none, 0 if has_none else value, ids[row]

    assert result["id"].to_pylist() == [ids[row] for row in sorted(range(90), key=place)]
    assert result["number"].to_pylist() == list(range(1, 91))
    written = pq.read_table(next(tmp_path.glob("*-numbers")))
    most = max(x["counts"] for x in written["part"].value_counts().to_pylist())
    assert most == 90 if limit == 90 else most < 90


INTEGERS: Final = {
    "from 0": (range(82), pa.int16()),
    "far apart": (range(3, 82 * 10**16, 10**16), pa.int64()),
    "some negative": (range(-9, 73), pa.int32()),
    "some too large": (range(2**62 - 9, 2**62 + 73), pa.int64()),
}


@pytest.mark.parametrize("policy", ["greedy", "components"])
@pytest.mark.parametrize(("ids", "kind"), INTEGERS.values(), ids=INTEGERS)
def test_ids_that_are_integers_are_decided_as_text(
    session: Any, ids: range, kind: pa.DataType, policy: str
) -> None:
    options: dict[str, Any] = {"similarity": 0.5, "policy": policy}
    names = dict(zip(DOCUMENTS["id"].to_pylist(), ids, strict=True))
    table = DOCUMENTS.set_column(0, "id", pa.array(ids, kind))
    frame = session.createDataFrame(table).repartition(3)
    result = spark.dedup(frame, parts=3, **options)
    assert decided(result) == [tuple(names.get(x, x) for x in row) for row in decided_here(options)]
    assert {result.schema[x].dataType for x in ("id", "kept_id", "cluster")} == {
        frame.schema["id"].dataType
    }
    pairs = spark.similar_pairs(frame, 0.5, parts=3).toArrow().to_pylist()
    assert {(row["left"], row["right"]) for row in pairs} == {
        (ids[row["left"]], ids[row["right"]])
        for row in nd.similar_pairs(DOCUMENTS["text"], 0.5).to_pylist()
    }
    by_past = [
        decided(spark.dedup(session.createDataFrame(x.slice(40)), similarity=0.5, parts=3,
                            against=session.createDataFrame(x.slice(0, 40))))
        for x in (table, DOCUMENTS)
    ]  # fmt: skip
    assert by_past[0] == [tuple(names.get(x, x) for x in row) for row in by_past[1]]


def test_frames_without_rows_are_decided(session: Any) -> None:
    empty = session.createDataFrame(DOCUMENTS).where("false")
    assert spark.dedup(empty, similarity=0.5).count() == 0


SMALL: Final = [
    Limits(edges=1),
    Limits(edges=40, of_key=3, of_block=5, candidates=1 << 40),
    Limits(edges=9, of_key=3, of_block=5, candidates=0),
    Limits(features=30, others=1),
]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[[Limits], None]:
    """Let every engine have these limits."""
    plain = Engine.__init__

    def limit(limits: Limits) -> None:
        def begin(self: Any, session: Any, work: str, parts: int) -> None:
            plain(self, session, work, parts, limits)

        monkeypatch.setattr(Engine, "__init__", begin)

    return limit


@pytest.mark.parametrize("limits", SMALL, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {"similarity": 0.3, "policy": "components"},
        {"similarity": 0.3, "keep": "last"},
        {"similarity": 0.4, "keep": "max:stars"},
        {"distance": 14, "policy": "components", "keep": "longest"},
        {"distance": 14, "keep": "min:stars"},
    ],
    ids=str,
)
def test_pieces_waves_and_rounds_decide_as_one_task(
    frame: Any, limited: Callable[[Limits], None], options: dict[str, Any], limits: Limits
) -> None:
    limited(limits)
    assert decided(spark.dedup(frame, parts=3, **options)) == decided_here(options)


@pytest.mark.parametrize("limits", SMALL, ids=str)
def test_pieces_list_the_pairs_of_one_task(
    frame: Any, limited: Callable[[Limits], None], limits: Limits
) -> None:
    limited(limits)
    ids = DOCUMENTS["id"].to_pylist()
    near = spark.pairs(spark.fingerprints(frame), 14, parts=3).toArrow().to_pylist()
    expected = nd.pairs(nd.fingerprints(DOCUMENTS["text"]), 14).to_pylist()
    assert sorted(map(tuple, map(dict.values, near))) == [
        (ids[x["left"]], ids[x["right"]], x["distance"]) for x in expected
    ]
    alike = spark.similar_pairs(frame, 0.4, parts=3).toArrow().to_pylist()
    expected = nd.similar_pairs(DOCUMENTS["text"], 0.4).to_pylist()
    assert sorted(map(tuple, map(dict.values, alike))) == [
        (ids[x["left"]], ids[x["right"]], x["distance"], x["similarity"]) for x in expected
    ]


SKEWED: Final = int(os.environ.get("NEARDUP_SPARK_SKEW", "2000"))
"""Documents of the tests of skew; `make spark-rounds` has a million."""


def skewed(kind: str, count: int) -> pa.Table:
    """Documents of which very many are equal, share a few words, or are one component."""
    random = np.random.default_rng(3)
    words = np.array([f"w{i}" for i in range(count)])
    rows = words[random.integers(0, count, (count, 18))]
    if kind == "equal":
        rows[count // 100 :] = rows[0]
    elif kind == "a key in 30%":
        rows[random.random(count) < 0.3, 4:9] = rows[0, :5]
        rows[-9:] = rows[:9]
    else:
        near = np.flatnonzero(random.random(count) < 0.1)
        rows[near] = rows[0]
        rows[near, random.integers(0, 18, len(near))] = words[random.integers(0, count, len(near))]
    ids = [f"{i:09}" for i in range(count)]
    return pa.table({"id": ids, "text": [" ".join(row) for row in rows]})


@pytest.mark.parametrize("kind", ["equal", "a key in 30%", "a component of a tenth"])
@pytest.mark.parametrize("policy", ["greedy", "components"])
def test_skew_is_decided_as_on_one_machine(
    session: Any, limited: Callable[[Limits], None], kind: str, policy: str, tmp_path: Path
) -> None:
    count = SKEWED
    if count < 100_000:
        scale = max(1, count // 10_000)
        limited(Limits(edges=500 * scale, of_key=50 * scale, of_block=100 * scale, candidates=4))
    documents = skewed(kind, count)
    pq.write_table(documents, tmp_path / "in.parquet", row_group_size=1 << 17)
    options: dict[str, Any] = {"similarity": 0.5, "policy": policy}
    frame = session.read.parquet(str(tmp_path / "in.parquet"))
    table = spark.dedup(frame, parts=7, **options)
    assert decided(table) == decided_here(options, documents)


@pytest.mark.parametrize("store", ["features", "none", "text"])
@pytest.mark.parametrize("options", [{"distance": 8}, {"similarity": 0.5}, {"distance": 20,
    "verify": 0.4, "keep": "last"}], ids=str)  # fmt: skip
def test_the_past_drops_what_matches_it(
    session: Any, tmp_path: Path, store: str, options: dict[str, Any]
) -> None:
    if store == "none" and options != {"distance": 8}:
        pytest.skip("fingerprints alone have no similarity")
    past, batch = DOCUMENTS.slice(0, 40), DOCUMENTS.slice(40)
    index = tmp_path / "index"
    with nd.DurableIndex.create(index, 20, recipe=nd.Recipe(), store=store) as writer:
        values = nd.fingerprints(past["text"])
        features, ends = feature_sets(past["text"], nd.Recipe())
        split = np.split(features, ends[1:-1])
        contents = {"features": split, "text": past["text"].to_pylist()}
        args = [contents[store]] if store in contents else []
        writer.add(past["id"].combine_chunks(), values, *args)
        writer.commit()
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in batch.to_pylist()), "utf-8"
    )
    expected = nd.dedup(
        tmp_path / "in.jsonl", id="id", against=index,
        duplicates=tmp_path / "dropped.jsonl", **options,
    )  # fmt: skip
    assert any(x["kept"] < "040" for x in expected.duplicates.to_pylist()), "the past drops nothing"
    rows = [
        (x["dropped"], x["kept"], x["distance"], x["similarity"], x["cluster"])
        for x in expected.duplicates.to_pylist()
    ]
    file = tmp_path / "past.parquet"
    assert spark.export_index(index, file) == 40
    for against in (str(file), session.createDataFrame(past)):
        actual = spark.dedup(session.createDataFrame(batch), against=against, parts=3, **options)
        assert [(x[0], *x[2:6]) for x in decided(actual) if not x[1]] == sorted(rows)
    again = tmp_path / "again"
    assert spark.import_index(file, again, 20) == 40
    with nd.DurableIndex.open(again, readonly=True) as one, nd.DurableIndex.open(index) as other:
        assert one.query_batch(values, 20).equals(other.query_batch(values, 20))


@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_a_past_by_similarity_goes_to_the_engine_and_back(
    session: Any, tmp_path: Path, measure: str
) -> None:
    past, batch = DOCUMENTS.slice(0, 40), DOCUMENTS.slice(40)
    index, file, again = tmp_path / "index", tmp_path / "past.parquet", tmp_path / "again"
    kind: dict[str, Any] = {"similarity": 0.5, "measure": measure}
    with nd.DurableIndex.create(index, recipe=nd.Recipe(), **kind) as writer:
        writer.add(["none", *past["id"].to_pylist()], ["", *past["text"].to_pylist()])
        writer.commit()
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in batch.to_pylist()), "utf-8"
    )
    names = {"id": "id", "against": index, "similarity": 0.6, "measure": measure}
    expected = nd.dedup(tmp_path / "in.jsonl", duplicates=tmp_path / "dropped.jsonl", **names)
    rows = [tuple(x.values())[:5] for x in expected.duplicates.to_pylist()]
    assert any(row[1] < "040" for row in rows), "the past drops nothing"
    assert spark.export_index(index, file) == 40
    actual = spark.dedup(session.createDataFrame(batch), against=str(file), parts=3,
                        similarity=0.6, measure=measure)  # fmt: skip
    assert [(x[0], *x[2:6]) for x in decided(actual) if not x[1]] == sorted(rows)
    frame = session.createDataFrame(batch)
    named = spark.dedup(frame, against=str(file), similarity=0.5, measure=measure, parts=3)
    assert decided(spark.dedup(frame, against=str(file), parts=3)) == decided(named)
    assert spark.import_index(file, again) == 40
    texts = batch["text"].to_pylist()
    with nd.DurableIndex.open(again, readonly=True) as one, nd.DurableIndex.open(index) as other:
        assert one.query_batch(texts, 0.5).equals(other.query_batch(texts, 0.5))


def test_an_index_that_an_engine_cannot_take_is_one_line(tmp_path: Path) -> None:
    wide: dict[str, Any] = {"similarity": 0.8, "recipe": nd.Recipe(bits=128)}
    with nd.DurableIndex.create(tmp_path / "wide", **wide) as index:
        index.add(["a"], ["one two three four"])
        index.commit()
    with pytest.raises(nd.UsageError, match=r"cannot be told from the features .* --engine local"):
        spark.export_index(tmp_path / "wide", tmp_path / "past.parquet")
    nd.DurableIndex.create(tmp_path / "bare", distance=3).close()
    with pytest.raises(nd.UsageError, match="bare has no recipe: export an index"):
        spark.export_index(tmp_path / "bare", tmp_path / "past.parquet")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["bare", "wide"]


@pytest.mark.parametrize("parts", [1, 7])
def test_pairs_by_distance_are_those_of_one_machine(frame: Any, parts: int) -> None:
    table = spark.pairs(spark.fingerprints(frame), 12, parts=parts).toArrow()
    ids = DOCUMENTS["id"]
    expected = nd.pairs(nd.fingerprints(DOCUMENTS["text"]), 12)
    rows = [(ids[x["left"]].as_py(), ids[x["right"]].as_py(), x["distance"]) for x in
            expected.to_pylist()]  # fmt: skip
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == rows


@pytest.mark.parametrize("parts", [1, 7])
def test_similar_pairs_are_those_of_one_machine(frame: Any, parts: int) -> None:
    table = spark.similar_pairs(frame, 0.5, parts=parts).toArrow()
    ids = DOCUMENTS["id"].to_pylist()
    expected = [
        (ids[left], ids[right], *more)
        for left, right, *more in map(
            dict.values, nd.similar_pairs(DOCUMENTS["text"], 0.5).to_pylist()
        )
    ]
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == expected


def test_wrong_columns_and_ids_are_named(frame: Any) -> None:
    with pytest.raises(nd.UsageError, match="no column 'body': there are id, text"):
        spark.dedup(frame, text="body")
    with pytest.raises(nd.DataError, match="'language' is null in 27 of 82 rows"):
        spark.dedup(frame, id="language")
    with pytest.raises(nd.DataError, match="'id' has 1 values for 82 rows"):
        spark.dedup(frame.selectExpr("1 AS id", "text"))
    with pytest.raises(nd.UsageError, match="column 'text' is string: give fingerprints as longs"):
        spark.pairs(frame, fingerprint="text")


def test_dates_decide_as_in_a_table(session: Any) -> None:
    days = ["2024-02-01", "2024-01-31", None, "2024-02-01"]
    table = pa.table({"id": [0, 1, 2, 3], "text": ["one two three four"] * 4, "day": days})
    frame = session.createDataFrame(table.to_pylist(), "id long, text string, day string")
    typed = frame.selectExpr("id", "text", "CAST(day AS date) AS day")
    for each in (frame, typed):
        for keep in ("newest:day", "oldest:day"):
            rows = spark.dedup(each, keep=keep, parts=2).toArrow().sort_by("id").to_pylist()
            assert [row["kept"] for row in rows] == nd.dedup(table, keep=keep).kept.tolist()
    with pytest.raises(UsageError, match="column 'id' is bigint: newest and oldest compare dates"):
        spark.dedup(frame, keep="newest:id")
    with pytest.raises(DataError, match=r'day is "2024-0.-..", not a date of .*; fix these rows'):
        spark.dedup(frame, keep="newest:day", date_format="%d.%m.%Y").toArrow()
