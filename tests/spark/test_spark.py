"""On an engine the same is decided as on one machine: files, DataFrames, any number of partitions.

Sail runs in this process; Spark itself, which is slow to start, in one of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup import spark
from neardup.fingerprinting.feature_sets import feature_sets
from neardup.spark.engine import Engine, Limits
from neardup.spark.session import check_master

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

WORDS: Final = np.array(["a", "harbour", "opened", "on", "monday", "after", "three", "days"])


def texts(count: int, seed: int = 7) -> list[str]:
    """Documents that repeat, with a few words changed, some equal, some empty."""
    random = np.random.default_rng(seed)
    made: list[list[str]] = []
    for _ in range(count):
        if made and random.random() < 0.6:
            text = list(made[random.integers(len(made))])
            for _ in range(random.integers(3)):
                text[random.integers(len(text))] = str(random.choice(WORDS)) if text else ""
        else:
            text = [f"{random.choice(WORDS)}{random.integers(9)}" for _ in range(18)]
        made.append(text)
    return [*(" ".join(text) for text in made), "", "..."]


DOCUMENTS: Final = pa.table(
    {
        "id": [f"{i:03}" for i in range(82)],
        "text": texts(80),
        "language": [["en", "de", None][i % 3] for i in range(82)],
        "stars": [None if i % 5 == 0 else float(i % 7) for i in range(82)],
    }
)

CASES: Final[list[tuple[dict[str, Any], int]]] = [
    ({"similarity": 0.8}, 1),
    ({"similarity": 0.5}, 7),
    ({"similarity": 0.5}, 64),
    ({"similarity": 0.4, "policy": "components", "keep": "longest"}, 2),
    ({"similarity": 0.5, "measure": "containment", "keep": "last"}, 2),
    ({"similarity": 0.6, "measure": "cosine", "within": "language"}, 2),
    ({"distance": 8}, 7),
    ({"distance": 12, "policy": "components", "keep": "max:stars"}, 2),
    ({"distance": 20, "verify": 0.3, "keep": "min:stars"}, 2),
    ({"distance": 12, "recipe": nd.Recipe(bits=128, weight="count")}, 2),
]


def engine_or_skip(master: str) -> None:
    """Skip, and say why, where an engine is missing."""
    try:
        check_master(master)
    except nd.UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    engine_or_skip("sail")
    with spark.open_session("sail") as opened:
        yield opened


@pytest.fixture(scope="module")
def frame(session: Any) -> Any:
    return session.createDataFrame(DOCUMENTS)


def decided(found: Any) -> list[tuple[Any, ...]]:
    """The rows of a DataFrame's decision, in the order of the ids."""
    rows = found.toArrow().sort_by("id").to_pylist()
    names = ("id", "kept", "kept_id", "distance", "similarity", "cluster")
    return [(*(row[name] for name in names), row.get("via")) for row in rows]


def decided_here(options: dict[str, Any], documents: pa.Table = DOCUMENTS) -> list[tuple[Any, ...]]:
    """What one machine decides, in the same form."""
    result = nd.dedup(documents, id="id", **options)
    assert len(result.duplicates), "nothing is dropped at all"
    ids = documents["id"].to_pylist()
    dropped = {row["dropped"]: row for row in result.duplicates.to_pylist()}
    cluster = [ids[at] for at in result.cluster.tolist()]
    return [
        (own, False, row["kept"], row["distance"], row["similarity"], group, row.get("via"))
        if (row := dropped.get(own))
        else (own, True, own, None, None, group, None)
        for own, group in zip(ids, cluster, strict=True)
    ]


@pytest.mark.parametrize(("options", "parts"), CASES, ids=str)
def test_a_dataframe_is_decided_as_a_table(frame: Any, options: dict[str, Any], parts: int) -> None:
    assert decided(spark.dedup(frame, parts=parts, **options)) == decided_here(options)


def test_the_order_is_that_of_the_column_that_is_named(session: Any) -> None:
    table = DOCUMENTS.append_column("at", pa.array(range(82, 0, -1)))
    found = spark.dedup(session.createDataFrame(table), order_by="at", similarity=0.5, parts=3)
    wanted = nd.dedup(DOCUMENTS.take(list(range(81, -1, -1))), id="id", similarity=0.5)
    kept = [row[0] for row in decided(found) if row[1]]
    ids = DOCUMENTS["id"].to_pylist()[::-1]
    assert kept == sorted(x for x, keep in zip(ids, wanted.kept, strict=True) if keep)


SMALL: Final = [
    Limits(edges=1),
    Limits(edges=40, of_key=3, of_block=5, candidates=1 << 40),
    Limits(edges=9, of_key=3, of_block=5, candidates=0),
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
    wanted = nd.pairs(nd.fingerprints(DOCUMENTS["text"]), 14).to_pylist()
    assert sorted(map(tuple, map(dict.values, near))) == [
        (ids[x["left"]], ids[x["right"]], x["distance"]) for x in wanted
    ]
    alike = spark.similar_pairs(frame, 0.4, parts=3).toArrow().to_pylist()
    wanted = nd.similar_pairs(DOCUMENTS["text"], 0.4).to_pylist()
    assert sorted(map(tuple, map(dict.values, alike))) == [
        (ids[x["left"]], ids[x["right"]], x["distance"], x["similarity"]) for x in wanted
    ]


SKEWED: Final = int(os.environ.get("NEARDUP_SPARK_SKEW", "2000"))
"""Documents of the tests of skew; `make spark-rounds` has a million."""


def skewed(kind: str) -> pa.Table:
    """Documents of which very many are equal, share a few words, or are one component."""
    random = np.random.default_rng(3)
    words = np.array([f"w{i}" for i in range(SKEWED)])
    rows = words[random.integers(0, SKEWED, (SKEWED, 18))]
    if kind == "equal":
        rows[SKEWED // 100 :] = rows[0]
    elif kind == "a key in 30%":
        rows[random.random(SKEWED) < 0.3, 4:9] = rows[0, :5]
        rows[-9:] = rows[:9]
    else:
        near = np.flatnonzero(random.random(SKEWED) < 0.1)
        rows[near] = rows[0]
        rows[near, random.integers(0, 18, len(near))] = words[random.integers(0, SKEWED, len(near))]
    ids = [f"{i:09}" for i in range(SKEWED)]
    return pa.table({"id": ids, "text": [" ".join(row) for row in rows]})


@pytest.mark.parametrize("kind", ["equal", "a key in 30%", "a component of a tenth"])
@pytest.mark.parametrize("policy", ["greedy", "components"])
def test_skew_is_decided_as_on_one_machine(
    session: Any, limited: Callable[[Limits], None], kind: str, policy: str
) -> None:
    scale = max(1, SKEWED // 10_000)
    limited(Limits(edges=500 * scale, of_key=50 * scale, of_block=100 * scale, candidates=4))
    documents = skewed(kind)
    options: dict[str, Any] = {"similarity": 0.5, "policy": policy}
    found = spark.dedup(session.createDataFrame(documents), parts=7, **options)
    assert decided(found) == decided_here(options, documents)


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
    with nd.DurableIndex.create(index, 20, recipe=nd.Recipe(), store=store) as made:
        values = nd.fingerprints(past["text"])
        features, ends = feature_sets(past["text"], nd.Recipe())
        split = np.split(features, ends[1:-1])
        contents = {"features": split, "text": past["text"].to_pylist()}
        args = [contents[store]] if store in contents else []
        made.add(past["id"].combine_chunks(), values, *args)
        made.commit()
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in batch.to_pylist()), "utf-8"
    )
    wanted = nd.dedup(
        tmp_path / "in.jsonl", id="id", against=index,
        duplicates=tmp_path / "dropped.jsonl", **options,
    )  # fmt: skip
    assert any(x["kept"] < "040" for x in wanted.duplicates.to_pylist()), "the past drops nothing"
    rows = [
        (x["dropped"], x["kept"], x["distance"], x["similarity"], x["cluster"])
        for x in wanted.duplicates.to_pylist()
    ]
    file = tmp_path / "past.parquet"
    assert spark.export_index(index, file) == 40
    for against in (str(file), session.createDataFrame(past)):
        found = spark.dedup(session.createDataFrame(batch), against=against, parts=3, **options)
        assert [(x[0], *x[2:6]) for x in decided(found) if not x[1]] == sorted(rows)
    again = tmp_path / "again"
    assert spark.import_index(file, again, 20) == 40
    with nd.DurableIndex.open(again, readonly=True) as one, nd.DurableIndex.open(index) as other:
        assert one.query_batch(values, 20).equals(other.query_batch(values, 20))


@pytest.mark.parametrize("parts", [1, 7])
def test_pairs_by_distance_are_those_of_one_machine(frame: Any, parts: int) -> None:
    found = spark.pairs(spark.fingerprints(frame), 12, parts=parts).toArrow()
    ids = DOCUMENTS["id"]
    wanted = nd.pairs(nd.fingerprints(DOCUMENTS["text"]), 12)
    rows = [(ids[x["left"]].as_py(), ids[x["right"]].as_py(), x["distance"]) for x in
            wanted.to_pylist()]  # fmt: skip
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows


@pytest.mark.parametrize("parts", [1, 7])
def test_similar_pairs_are_those_of_one_machine(frame: Any, parts: int) -> None:
    found = spark.similar_pairs(frame, 0.5, parts=parts).toArrow()
    ids = DOCUMENTS["id"].to_pylist()
    wanted = [
        (ids[left], ids[right], *more)
        for left, right, *more in map(
            dict.values, nd.similar_pairs(DOCUMENTS["text"], 0.5).to_pylist()
        )
    ]
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == wanted


def test_wrong_columns_and_ids_are_named(frame: Any) -> None:
    with pytest.raises(nd.UsageError, match="no column 'body': there are id, text"):
        spark.dedup(frame, text="body")
    with pytest.raises(nd.DataError, match="'language' is null in 27 of 82 rows"):
        spark.dedup(frame, id="language")
    with pytest.raises(nd.DataError, match="'id' has 1 values for 82 rows"):
        spark.dedup(frame.selectExpr("1 AS id", "text"))
    with pytest.raises(nd.UsageError, match="recall"):
        spark.files.settings_of(nd.pipeline.run.matching.Matching(0.8, recall=0.9))


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Call the command in a folder that has the documents in three files."""
    for part in range(3):
        rows = DOCUMENTS.slice(part * 28, 28).to_pylist()
        lines = (json.dumps(row) + "\n" for row in rows)
        (folder / f"in{part}.jsonl").write_text("".join(lines), "utf-8")
    command = [sys.executable, "-m", "neardup", "dedup", "in*.jsonl", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def outputs(folder: Path, name: str, *options: str) -> dict[str, bytes]:
    """What a run writes: the kept files and the tables."""
    done = run(folder, "-o", f"{name}/", "--duplicates", f"{name}.csv", "--clusters",
               f"{name}.jsonl", *options)  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = [*sorted((folder / name).iterdir()), folder / f"{name}.csv", folder / f"{name}.jsonl"]
    return {file.name.replace(name, ""): file.read_bytes() for file in files}


@pytest.mark.parametrize("master", ["sail", "local[2]"])
def test_files_come_out_byte_for_byte(master: str, tmp_path: Path) -> None:
    engine_or_skip(master)
    options = ("--similarity", "0.5", "--keep", "longest")
    here = outputs(tmp_path, "here", *options)
    assert outputs(tmp_path, "there", *options, "--engine", "spark", "--master", master) == here
    assert not list(tmp_path.glob(".neardup-*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "sparks"), "--engine is 'sparks': use local or spark"),
        (("--master", "sail"), "--master belongs to --engine spark"),
        (("--engine", "spark", "--resume", "state"), "--resume belongs to --engine local"),
        (("--engine", "spark", "--report", "r.html"), "--report and --summary belong to --engine"),
        (("--engine", "spark", "--memory", "2G"), "--memory belongs to --engine local"),
        (("--engine", "spark", "--plan", "scan", "--distance", "3"), "--plan belongs to --engine"),
        (("--engine", "spark", "--recall", "0.9"), "--recall below 1 belongs to --engine local"),
        (("--engine", "spark", "--master", "moon"), "--master is 'moon': use sail, local"),
        (("--engine", "spark", "-o", "one.jsonl"), "-o is 'one.jsonl': with --engine spark name"),
        (("--engine", "spark", "-o", "."), "-o is '.': with --engine spark name"),
        (("--engine", "spark", "-o", "./"), "-o ./ exists: name a new folder, or remove it"),
    ],
)
def test_wrong_use_is_one_line(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    if "spark" in options:
        engine_or_skip("sail")
    done = run(tmp_path, "-o", "out/", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("master", ["sc://127.0.0.1:9", "spark://127.0.0.1:9", "sc://localhost:x"])
def test_an_engine_that_does_not_answer_is_told_at_once(master: str, tmp_path: Path) -> None:
    engine_or_skip(master)
    done = run(tmp_path, "-o", "out/", "--engine", "spark", "--master", master)
    assert done.returncode == 1, done.stderr
    assert f"{master} does not answer" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(tmp_path.iterdir())) == 3


def test_a_bad_record_is_told_as_on_one_machine(tmp_path: Path) -> None:
    engine_or_skip("sail")
    (tmp_path / "in9.jsonl").write_text('{"id": "x"}\n', "utf-8")
    done = run(tmp_path, "-o", "out/", "--engine", "spark")
    assert done.returncode == 1, done.stderr
    assert "in9.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(x.name for x in tmp_path.iterdir()) == ["in0.jsonl", "in1.jsonl", "in2.jsonl",
                                                          "in9.jsonl"]  # fmt: skip


def same_here_and_there(folder: Path, inputs: list[str], *options: str) -> None:
    """Run on one machine and on Sail, and compare every byte that comes out."""
    engine_or_skip("sail")
    found = []
    for name, engine in (("here", ()), ("there", ("--engine", "spark"))):
        out = folder / f"out-{name}"
        out.mkdir()
        tables = {"--duplicates": "dropped.jsonl", "--clusters": "groups.jsonl"}
        if "--on-error" in options:
            tables["--rejects"] = "rejects.jsonl"
        asked = [x for option, file in tables.items() for x in (option, str(out / file))]
        command = [sys.executable, "-m", "neardup", "dedup", *inputs, "-o", f"{out}/kept/", *asked]
        done = subprocess.run(
            [*command, *options, *engine], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        files = sorted(x for x in out.rglob("*") if x.is_file())
        found.append({x.relative_to(out): x.read_bytes() for x in files})
    assert found[0] == found[1]
    assert found[0][Path("dropped.jsonl")], "nothing is dropped at all"


def test_text_files_are_copied_as_on_one_machine(tmp_path: Path) -> None:
    for number, row in enumerate(DOCUMENTS.to_pylist()):
        file = tmp_path / "pages" / f"{number % 5}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(row["text"], "utf-8")
    (tmp_path / "pages" / "bad.txt").write_bytes(b"\xff\xfe\xff")
    options = ("--on-error", "skip", "--similarity", "0.5", "--policy", "components")
    same_here_and_there(tmp_path, ["pages"], *options)


def test_bad_records_and_document_frequencies_travel(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in DOCUMENTS.to_pylist()]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[:40], "{", *lines[40:]]), "utf-8")
    (tmp_path / "b.jsonl").write_text('{"id": 3}\n' + lines[7] + "\n", "utf-8")
    (tmp_path / "c.jsonl").write_text('{"text": "like no other text here"}\n', "utf-8")
    table = nd.DocumentFrequencies.learn(DOCUMENTS["text"], nd.Recipe(ngram=1))
    table.save(str(tmp_path / "words.idf"))
    recipe = ("--ngram", "1", "--weight", "tfidf", "--idf", "words.idf", "--distance", "9")
    inputs = ["a.jsonl", "b.jsonl", "c.jsonl"]
    same_here_and_there(tmp_path, inputs, "--on-error", "skip", *recipe)


def test_an_index_drops_what_it_holds(tmp_path: Path) -> None:
    lines = [json.dumps(row) + "\n" for row in DOCUMENTS.to_pylist()]
    (tmp_path / "old.jsonl").write_text("".join(lines[:40]), "utf-8")
    (tmp_path / "new.jsonl").write_text("".join(lines[40:]), "utf-8")
    command = [sys.executable, "-m", "neardup", "index"]
    for more in (
        ["create", "seen", "--distance", "12", "--store", "features"],
        ["add", "seen", "old.jsonl", "--id", "id"],
    ):
        subprocess.run([*command, *more], cwd=tmp_path, check=True, capture_output=True)
    options = ("--id", "id", "--against", "seen", "--similarity", "0.5", "--keep", "longest")
    same_here_and_there(tmp_path, ["new.jsonl"], *options)


def test_what_runs_on_workers_loads_no_pipeline() -> None:
    folder = Path(spark.__file__).parent / "workers"
    modules = ", ".join(f"neardup.spark.workers.{x.stem}" for x in folder.glob("[a-z]*.py"))
    code = f"import sys, {modules}; print([x for x in sys.modules if 'pipeline' in x])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_missing_packages_and_java_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.spark.session.find_spec", lambda _: None)
        with pytest.raises(nd.UsageError, match=r"pip install 'neardup\[spark\]'"):
            check_master("sail")
    monkeypatch.setattr("neardup.spark.session.find_spec", lambda _: object())
    monkeypatch.setattr("neardup.spark.session.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(nd.UsageError, match="there is no java"):
        check_master("local[2]")


def test_sail_and_spark_serve_one_process() -> None:
    engine_or_skip("local[2]")
    code = """
from neardup import spark
from neardup.fingerprinting.feature_sets import feature_sets
texts = [(0, "a harbour opened on monday"), (1, "A harbour opened, on Monday!"), (2, "other")]
for inner, outer in (("sail", "local[2]"), ("local[2]", "sail")):
    with spark.open_session(outer) as one, spark.open_session(inner) as other:
        for session in (one, other, one):
            frame = session.createDataFrame(texts, "id long, text string")
            assert spark.fingerprints(frame).where("fingerprint = 0").count() == 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
