"""Documents of the latest or earliest date, and of the largest number, are kept."""
# ruff: noqa: DTZ001  # dates without a time zone are tested

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from commands import Here
from neardup.documents import OutputSet, write_table
from neardup.documents.ordering import Order
from neardup.documents.sheets import workbook
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

TEXT: Final = "one two three four five six seven eight nine ten"
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def kept_row(dates: list[dt.datetime | None], *, newest: bool) -> int:
    """The definition: which of equal documents is kept; naive dates are in UTC, None comes last."""

    def distance(row: int) -> tuple[bool, int, int]:
        date = dates[row]
        if date is None:
            return True, 0, row
        aware = date if date.tzinfo else date.replace(tzinfo=dt.UTC)
        since = (aware - EPOCH) // dt.timedelta(microseconds=1)
        return False, -since if newest else since, row

    return min(range(len(dates)), key=distance)


ZONES = st.none() | st.integers(-14 * 60, 14 * 60).map(
    lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))
)
DATES = st.none() | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1), timezones=ZONES)


@given(dates=st.lists(DATES, min_size=2, max_size=6), newest=st.booleans())
def test_worths_have_the_order_of_the_definition(
    dates: list[dt.datetime | None], newest: bool
) -> None:
    order, sign = Order("at", dates=True), -1 if newest else 1
    given_texts = pa.array([None if date is None else date.isoformat() for date in dates])
    utc = [None if d is None else d if d.tzinfo else d.replace(tzinfo=dt.UTC) for d in dates]
    typed = pa.array(utc, pa.timestamp("us", "Europe/Berlin"))
    for column in (given_texts, given_texts.dictionary_encode(), typed):
        worths, bad = order.of_column(column)
        assert not bad.any()
        places = [(x is None, sign * (x or 0), i) for i, x in enumerate(worths.to_pylist())]
        assert min(places)[2] == kept_row(dates, newest=newest)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_of_every_type_are_worth_the_same(unit: str) -> None:
    dates = [dt.datetime(2024, 2, 29), None, dt.datetime(1969, 12, 31)]
    order = Order("at", dates=True)
    want = [(d.replace(tzinfo=dt.UTC) - EPOCH).total_seconds() * 1e6 if d else None for d in dates]
    kinds = (pa.timestamp(unit), pa.timestamp(unit, "UTC"), pa.date32(), pa.date64())
    columns = [pa.array(dates, kind) for kind in kinds]
    columns.append(pa.array(["2024-02-29", "", "1969-12-31T01:00+01:00"]))
    for column in columns:
        assert order.of_column(column)[0].to_pylist() == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2024-01-31", "2024-01-31T00:00:00+00:00"),
        ("2024", "2024-01-01T00:00:00+00:00"),
        ("2024-03", "2024-03-01T00:00:00+00:00"),
        (" 2024-01-31 09:30 ", "2024-01-31T09:30:00+00:00"),
        ("20240131T093000Z", "2024-01-31T09:30:00+00:00"),
        ("2024-01-31T09:30:00.123456-05:00", "2024-01-31T14:30:00.123456+00:00"),
        ("2024-W05-3", "2024-01-31T00:00:00+00:00"),
    ],
)
def test_iso_texts_are_dates(text: str, want: str) -> None:
    worth = (dt.datetime.fromisoformat(want) - EPOCH) // dt.timedelta(microseconds=1)
    assert Order("at", dates=True).of_text(text) == worth


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0,00", 0.0), ("1.234,50", 1234.5), ("-12,5", -12.5), ("1.234.567,891", 1234567.891),
        ("1234,567", 1234.567), ("0,125", 0.125), ("1.234", 1.234), ("1e3", 1000.0), (" ", None),
    ],
)  # fmt: skip
def test_a_comma_is_decimal(text: str, want: float | None) -> None:
    assert Order("n").of_text(text) == want


def test_what_a_comma_means_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('text;n\na b;2\nc d;"1,234"\n')
    with pytest.raises(DataError, match=r'in.csv:3: n is "1,234", 1.234 or 1234; write it with'):
        nd.dedup(tmp_path / "in.csv", keep="max:n")


AT: Final = [dt.datetime(2023, 5, 1), dt.datetime(2024, 5, 1, 12), None, dt.datetime(2024, 1, 1)]


def written(path: Path, values: list[Any]) -> Path:
    """A file of equal texts, and a column of values that its extension's format can hold."""
    rows = [{"text": TEXT, "at": value} for value in values]
    texts = [x if x is None or isinstance(x, str) else x.isoformat() for x in values]
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["text", "at"], *([TEXT, x or ""] for x in texts)])
    elif path.suffix in {".jsonl", ".json"}:
        records = [{"text": TEXT} | ({} if x is None else {"at": x}) for x in texts]
        lines = "\n".join(map(json.dumps, records)) + "\n"
        path.write_text(lines if path.suffix == ".jsonl" else json.dumps(records))
    elif path.suffix == ".xlsx":
        path.write_bytes(workbook("w", ["text", "at"], [[TEXT, x] for x in values]))
    else:
        table = pa.Table.from_pylist(rows)
        with OutputSet() as outputs:
            write_table(outputs, str(path), table.schema, table.to_batches())
            outputs.commit()
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.parquet", "a.arrow", "a.xlsx"])
@pytest.mark.parametrize("texts", [False, True])
def test_the_newest_and_the_oldest_of_files_are_kept(
    name: str, texts: bool, tmp_path: Path
) -> None:
    if name.endswith("xlsx"):
        pytest.importorskip("xlsxwriter")
    values: list[Any] = [x.isoformat() if x and texts else x for x in AT]
    path = written(tmp_path / name, values)
    for keep, row in (("newest:at", 1), ("oldest:at", 0)):
        result = nd.dedup(path, keep=keep)
        assert result.kept.nonzero()[0].tolist() == [row]
        assert "1 document has no date in the field at, and comes" in "".join(result.summary.notes)
    if name.endswith(("parquet", "arrow", "xlsx")) and not texts:
        assert nd.dedup(path, keep="max:at").kept.nonzero()[0].tolist() == [1]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_dates_of_another_form_are_read_by_the_date_format(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, ["09.05.2023", "01.01.2024", None, "31.12.2023"])
    for keep, row in (("newest:at", 1), ("min:at", 0)):
        kept = nd.dedup(path, keep=keep, date_format="%d.%m.%Y").kept
        assert kept.nonzero()[0].tolist() == [row]
    with pytest.raises(DataError, match=r'at is "09.05.2023", not a date; .*pass --date-format'):
        nd.dedup(path, keep="newest:at")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_an_unreadable_date_is_a_bad_record(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    written(tmp_path / name, ["2024-01-01", "soon", "2024-02-01"])
    row = 2 if name != "a.csv" else 3
    out, err = here("dedup", name, "-o", "out/", "--keep", "newest:at", code=1)
    assert (out, err.split("; ")[0]) == ("", f'neardup: {name}:{row}: at is "soon", not a date')
    assert not (tmp_path / "out").exists()
    skip = ("--on-error", "skip", "--rejects", "r.jsonl", "--duplicates", "d.csv")
    here("dedup", name, "-o", "out/", "--keep", "newest:at", *skip)
    (reject,) = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert (reject["row"], reject["reason"]) == (row, 'at is "soon", not a date')
    assert f"{name}:{row + 1}" in (tmp_path / "d.csv").read_text().splitlines()[1].split(",")[1]


def test_a_field_of_another_type_is_refused_with_the_right_advice(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [TEXT], "at": [17], "s": ["x"]}), tmp_path / "a.parquet")
    for keep, message in (
        (
            "newest:at",
            r'"at" is int64, not a date, a timestamp or a string; pass for numbers',
        ),
        ("max:s", r'"s" is string, not a number, a date or a timestamp; pass for texts that are'),
    ):
        with pytest.raises(DataError, match=message):
            nd.dedup(tmp_path / "a.parquet", keep=keep)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXT, "at": 17}))
    with pytest.raises(DataError, match="at is a number, not a date; --keep newest: and oldest:"):
        nd.dedup(tmp_path / "a.jsonl", keep="newest:at")
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXT}))
    with pytest.raises(UsageError, match="no record has a date in the field at"):
        nd.dedup(tmp_path / "a.jsonl", keep="newest:at")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "newest:"}, "newest:FIELD, oldest:FIELD"),
        ({"date_format": "%d.%m.%Y"}, "a date format requires newest:FIELD or oldest:FIELD"),
        ({"keep": "newest:at", "date_format": "dd.mm.yyyy"}, "it has no directive"),
        ({"keep": "newest:at", "date_format": "%d.%Q"}, "'Q' is a bad directive"),
    ],
)
def test_a_keep_or_a_form_that_says_nothing_is_refused(
    options: dict[str, str], message: str
) -> None:
    table = pa.table({"text": [TEXT], "at": ["2024-01-01"]})
    with pytest.raises(UsageError, match=message):
        nd.dedup(table, **options)


NUMBERS_BESIDE_DATES: Final = (
    "b.parquet: at has dates, and in a.jsonl it has numbers, which cannot be compared; write them"
)


def test_numbers_in_one_input_and_dates_in_another_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXT, "at": 17}) + "\n")
    written(tmp_path / "b.parquet", AT)
    written(tmp_path / "c.parquet", [None, None])
    numbers, dates, nulls = (tmp_path / x for x in ("a.jsonl", "b.parquet", "c.parquet"))
    with pytest.raises(
        DataError, match=r"b.parquet: at has dates, and in .*a.jsonl it has numbers"
    ):
        nd.dedup([numbers, nulls, dates], keep="max:at")
    _, err = here("dedup", "a.jsonl", "b.parquet", "-o", "out/", "--keep", "min:at", code=1)
    assert NUMBERS_BESIDE_DATES in err
    assert not (tmp_path / "out").exists()
    assert nd.dedup([nulls, dates], keep="max:at").kept.nonzero()[0].tolist() == [3]
    assert nd.dedup([nulls, numbers], keep="max:at").kept.nonzero()[0].tolist() == [2]


def tables() -> list[Any]:
    result: list[Any] = [pa.table({"text": [TEXT] * 4, "at": pa.array(AT, pa.timestamp("ns"))})]
    result.append(pa.table({"text": [TEXT] * 4, "at": [x and x.isoformat() for x in AT]}))
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    result.append(result[0].to_pandas())
    result.append(result[1].to_pandas())
    result.append(pandas.DataFrame({"text": [TEXT] * 4, "at": [x and x.date() for x in AT]}))
    result.append(polars.from_arrow(result[0]))
    result.append(polars.from_arrow(result[1]))
    return result


def test_the_newest_and_the_oldest_of_tables_in_memory_are_kept() -> None:
    for table in tables():
        for keep, row in (("newest:at", 1), ("oldest:at", 0)):
            assert nd.dedup(table, keep=keep).kept.nonzero()[0].tolist() == [row]


def test_an_unreadable_date_in_memory_is_an_error_or_skipped() -> None:
    table = pa.table({"text": [TEXT] * 3, "at": ["2024-01-01", "31.12.2023", "2024-02-01"]})
    with pytest.raises(DataError, match=r'row 1: at is "31.12.2023", not a date .1 of 3 rows'):
        nd.dedup(table, keep="newest:at")
    assert nd.dedup(table, keep="newest:at", on_error="skip").kept.tolist() == [False, False, True]
    numbers = pa.table({"text": [TEXT] * 2, "n": [1.0, math.nan]})
    with pytest.raises(UsageError, match="use one of dates"):
        nd.dedup(numbers, keep="newest:n")
