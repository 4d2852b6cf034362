"""Benchmarks: records are kept, tables are made from them, and what bench imports exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
import pytest

from suite import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BENCH: Final = ROOT / "bench"
CASES: Final = sorted(p.stem for p in (BENCH / "cases").glob("[a-z]*.py"))
RECORDS: Final = sorted((BENCH / "results").glob("*/*.json"))
FACTS: Final = {"cpu": "Intel(R) Xeon(R) CPU E5 @ 2.30GHz", "cores": 2, "date": "2026-11-22"}
WITHOUT: Final = "## Without a record"


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module that writes records."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("harness.records")
    for name in [x for x in sys.modules if x.split(".")[0] in {"harness", "cases"}]:
        del sys.modules[name]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool that writes tables."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("benchmark_tables")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of records in a git of its own, with one record that is committed."""
    folder = tmp_path / "results"
    (folder / "pairs").mkdir(parents=True)
    (folder / "pairs" / "intel-xeon-e5-2-cores.json").write_text("{}\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "measured")
    return folder


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


def test_a_committed_record_is_replaced_and_git_keeps_it(records: Any, results: Path) -> None:
    path = records.keep("pairs", FACTS, {"lines": []}, results)
    assert path == results / "pairs" / "intel-xeon-e5-2-cores.json"
    assert json.loads(path.read_text()) == {"case": "pairs", "machine": FACTS, "lines": []}


def test_a_record_that_is_not_committed_is_never_overwritten(records: Any, results: Path) -> None:
    records.check_committed(["pairs", "index"], FACTS, results)
    records.keep("pairs", FACTS, {"lines": ["first"]}, results)
    for _ in range(2):
        with pytest.raises(records.UncommittedRecordError, match=r"pairs.*commit it"):
            records.keep("pairs", FACTS, {"lines": ["second"]}, results)
        git(results, "add", ".")
    assert "first" in (results / "pairs" / "intel-xeon-e5-2-cores.json").read_text()
    records.keep("index", FACTS, {}, results)
    with pytest.raises(records.UncommittedRecordError):
        records.keep("index", FACTS, {}, results)


def test_without_git_no_record_is_overwritten(records: Any, tmp_path: Path) -> None:
    records.keep("pairs", FACTS, {}, tmp_path)
    with pytest.raises(records.UncommittedRecordError):
        records.keep("pairs", FACTS, {}, tmp_path)


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_record_says_what_where_and_when(path: Path, records: Any) -> None:
    record = records.read(path)
    facts = {"commit", "date", "cpu", "cores", "load_at_start", "python", "libraries"}
    assert facts <= set(record.machine)
    assert records.path_of(record.value["case"], record.machine) == path


def test_the_tables_of_benchmarks_are_fresh(tables: Any) -> None:
    stale = [p for p in (*tables.PAGES, tables.MEASURED) if p.read_text("utf-8") != tables.fresh(p)]
    assert not stale, "run python tools/benchmark_tables.py"


def test_the_plots_of_benchmarks_are_fresh(tables: Any) -> None:
    stale = [x for x, svg in tables.plots().items() if (tables.FOLDER / x).read_text() != svg]
    assert not stale, "run python tools/benchmark_tables.py"


def test_a_changed_figure_makes_a_table_stale(tables: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = tables.PAGES[1].read_text("utf-8")
    page.write_text(text.replace("| 637 |", "| 638 |").replace(" 99 |", " 98 |"), "utf-8")
    assert page.read_text("utf-8") != text
    assert " 98 |" not in tables.fresh(page)


def test_every_table_of_benchmarks_is_made_from_a_record(tables: Any) -> None:
    text = (ROOT / "docs" / "design" / "benchmarks.md").read_text("utf-8")
    by_hand = tables.MARKED.sub("", text.partition(WITHOUT)[0])
    assert [line for line in by_hand.splitlines() if line.startswith("|")] == []
    named = [
        name for page in tables.PAGES for _, name, _ in tables.MARKED.findall(page.read_text())
    ]
    assert sorted(named) == sorted(tables.TABLES)


@pytest.mark.parametrize("case", CASES)
def test_a_case_can_be_loaded_and_says_its_rows(case: str, records: Any) -> None:
    assert records
    assert callable(importlib.import_module(f"cases.{case}").rows)


def similarity(one: str, other: str) -> float:
    """Share of the runs of three words that two texts without punctuation have in common."""
    left, right = (
        {tuple(words[at : at + 3]) for at in range(len(words) - 2)}
        for words in (one.split(), other.split())
    )
    return len(left & right) / len(left | right)


def test_planted_texts_differ_from_their_originals_and_are_similar_enough(
    records: Any, tmp_path: Path
) -> None:
    assert records
    planted = importlib.import_module("harness.planted")
    texts = [" ".join(f"w{i * j % 97}" for i in range(30 + 5 * j)) for j in range(1, 200)]
    copies = list(planted.first_bytes(planted.planted(texts), 3 * sum(map(len, texts))))
    by_name = dict(copies)
    near = [name for name in by_name if name.endswith(planted.NEAR)]
    assert len(near) > 10
    result = [similarity(by_name[n], by_name[n.removesuffix(planted.NEAR)]) for n in near]
    assert min(result) >= 0.8
    assert max(result) < 1
    assert by_name["0:0"] != by_name["1:0"]
    for kind in ("jsonl", "parquet"):
        planted.write(copies, tmp_path / f"texts.{kind}")
    assert planted.texts_in(tmp_path) == list(by_name.values())
    read = pq.read_table(tmp_path / "texts.parquet").to_pylist()
    assert [(row["id"], row["text"]) for row in read] == copies


def test_growing_texts_begin_with_those_of_fewer(records: Any) -> None:
    assert records
    growing = importlib.import_module("harness.growing_texts")
    assert set(growing.SHAPES) == set(re.findall(r"^- (\w+):", growing.__doc__, re.MULTILINE))
    for shape in ("footers", "templates", "records", "scripts"):
        texts = growing.make(shape, 10_030)
        assert len(texts) == 10_030
        assert texts[:30] == growing.make(shape, 30)
    pages = growing.make("footers", 8)
    assert {similarity(pages[0], page) for page in pages[1:]} == {58 / 118}


@pytest.mark.parametrize(
    ("seconds", "value", "highest"),
    [
        ([1, 2, 4, 8], 1, 1),
        ([0.01, 0.16, 0.32, 1.28, 2.56], 4 / 3, 2),
        ([1, 4], 2, 2),
        ([0.01, 0.02], 1, 1),
    ],
)
def test_a_power_is_that_of_the_last_three_doublings(
    records: Any, seconds: list[float], value: float, highest: float
) -> None:
    assert records
    result = importlib.import_module("cases.growth").powers(seconds)
    assert result == {"value": pytest.approx(value), "highest": pytest.approx(highest)}


def names_of_ours() -> dict[str, set[str]]:
    """Who imports which name of neardup, in functions too: "module:name" to files."""
    result: dict[str, set[str]] = {}
    for folder in ("bench/harness", "bench/cases", "bench/experiments", "tools"):
        for file in (ROOT / folder).glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neardup"):
                    for alias in node.names:
                        result.setdefault(f"{node.module}:{alias.name}", set()).add(file.name)
    return result


def test_what_bench_and_tools_import_of_neardup_exists() -> None:
    missing = []
    for each, files in names_of_ours().items():
        module, _, name = each.partition(":")
        try:
            here = hasattr(importlib.import_module(module), name)
            here = here or importlib.util.find_spec(f"{module}.{name}") is not None
        except ModuleNotFoundError:
            here = False
        if not here:
            missing.append((each, sorted(files)))
    assert missing == []


def test_every_case_is_listed() -> None:
    listed = (BENCH / "README.md").read_text("utf-8")
    assert [case for case in CASES if f"`{case}`" not in listed] == []


def test_texts_are_planted_at_exact_similarities(records: Any) -> None:
    assert records
    near = importlib.import_module("harness.near_texts")
    texts = near.make(300, seed=1)
    assert texts[:20] == near.make(20, seed=1)
    assert {len(set(near.shingles(text))) for text in texts} == {near.FEATURES}
    for how, least, most in (
        (near.ABOVE, Fraction(8, 10), Fraction(283, 315)),
        (near.AT, Fraction(8, 10), Fraction(8, 10)),
        (near.BELOW, Fraction(221, 315), Fraction(251, 315)),
    ):
        planted = near.plant(texts, 400, 3, how)
        pairs = zip(planted.texts, planted.rows, strict=True)
        result = [Fraction(*near.similarity(text, texts[row])) for text, row in pairs]
        assert (min(result), max(result)) == (least, most)
        assert [
            near.similar(t, texts[r]) for t, r in zip(planted.texts, planted.rows, strict=True)
        ] == [x >= Fraction(8, 10) for x in result]


def test_a_part_of_a_case_is_measured_and_the_rest_stays_as_it_was(
    records: Any, monkeypatch: pytest.MonkeyPatch, results: Path
) -> None:
    assert records
    runs, model = (importlib.import_module(f"harness.{name}") for name in ("run", "model"))
    few, many = (model.Measurement.of("pairs", "ours", "ours", n=n) for n in (10, 200))
    assert few.has({"n": "10|20"})
    assert few.has({"function": "ours"})
    assert not many.has({"n": "10|20"})
    calls = []

    def run(measurement: Any, _python: str, limit: float) -> dict[str, Any]:
        calls.append(measurement)
        return {"over": limit} if measurement == many else {"value": 2.0}

    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setattr(sys, "argv", ["run.py", "pairs", "--where", "n=200", "--rounds", "2"])
    arguments = runs.parse()
    assert runs.partial(arguments)
    rows = [model.Row("few", few), model.Row("many", many)]
    result = runs.measure(rows, arguments, 2, 7.0)
    assert calls == [many]
    assert result[few] == []
    assert {"over": 7.0}.items() <= result[many][0].items()
    notes = list(runs.report.notes(rows[1], result))
    assert notes == ['pairs, ours ours {"n": 200}: stopped after 7 s']
    raw = runs.report.recorded([], {few: [{"value": 1.0}]}, [])
    records.keep("index", FACTS, raw, results)
    assert records.outcomes("index", FACTS, results) == {few: [{"value": 1.0}]}
    assert records.outcomes("durable", FACTS, results) == {}
