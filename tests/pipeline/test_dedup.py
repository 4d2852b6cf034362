"""A whole run equals the oracle, from files and from memory, with any number of threads."""

from __future__ import annotations

import importlib
import json
import math
import os
import warnings
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
import neardup.pipeline.fingerprint
from mode import Mode
from neardup.documents import ReadOptions
from neardup.errors import DataError, FileError, UsageError
from neardup.fingerprinting.fingerprint_files import read_fingerprints
from neardup.pipeline import (
    Choice,
    DedupResult,
    Limits,
    Outputs,
    Rule,
    dedup_files,
    fingerprint_files,
    pairs_file,
)
from suite import JIT, examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEEPS = ["first", "last", "longest"]
POLICIES = ["greedy", "components"]
SIMILARITIES = [0.1, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0]

vocabulary = st.sampled_from(["a", "b", "c", "d", "éa", "the", "of", "!"])
document = st.lists(vocabulary, max_size=6).map(" ".join)
documents = st.lists(document, max_size=14)
small_recipes = st.builds(
    nd.Recipe,
    ngram=st.sampled_from([1, 2]),
    bits=st.sampled_from([12, 64, 70]),
    weight=st.sampled_from(["set", "count"]),
)
distances = st.builds(Mode.of, distance=st.integers(0, 10), recipe=small_recipes)
measures = st.sampled_from(["jaccard", "cosine", "containment", "dice"])
similarities = st.builds(
    Mode.of, measure=measures, similarity=st.sampled_from(SIMILARITIES), recipe=small_recipes
)
verified = st.builds(
    Mode.of,
    distance=st.integers(0, 10),
    verify=st.sampled_from(SIMILARITIES),
    measure=measures,
    recipe=small_recipes,
)


@st.composite
def matchings(draw: st.DrawFn) -> Mode:
    """Every mode, keep, policy and number of threads."""
    return draw(st.one_of(distances, similarities, verified)).replace(
        keep=draw(st.sampled_from(KEEPS)),
        policy=draw(st.sampled_from(POLICIES)),
    )


def test_a_plan_that_cannot_work_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    source, state = tmp_path / "docs.jsonl", tmp_path / "state"
    for rule, plan in ((Rule(distance=3), "multi:2"), (Rule(), "scan")):
        using, outputs = Limits(plan=plan), Outputs(resume=str(state))
        with pytest.raises(UsageError, match="plan"):
            dedup_files([str(source)], outputs, rule, Choice(), ReadOptions(), using)
    assert not state.exists()


class Oracle:
    """What a run must decide, by comparing all pairs of documents in plain Python."""

    def __init__(self, texts: list[str], mode: Mode) -> None:
        recipe: Any = mode.rule.recipe
        self.rows = range(len(texts))
        self.values: list[Any] = [naive.fingerprint(text, recipe) for text in texts]
        self.features = [set(naive.features(naive.tokens(text, recipe), recipe)) for text in texts]
        self.rule, self.policy = mode.rule, mode.choice.policy
        self.order = list(self.rows)
        if mode.choice.keep == "longest":
            self.order.sort(key=lambda row: -len(texts[row]))
        elif mode.choice.keep == "last":
            self.order.reverse()

    def distance(self, a: int, b: int) -> int:
        return naive.distance(self.values[a], self.values[b])

    def similarity(self, a: int, b: int) -> float:
        left, right = self.features[a], self.features[b]
        return (
            len(left & right)
            / {
                "jaccard": len(left | right),
                "cosine": math.sqrt(len(left) * len(right)),
                "containment": min(len(left), len(right)),
                "dice": (len(left) + len(right)) / 2,
            }[self.rule.measure]
        )

    def matches(self, a: int, b: int) -> bool:
        if self.values[a] is None or self.values[b] is None:
            return False
        limit = self.rule.distance
        if limit is not None and self.distance(a, b) > limit:
            return False
        least = self.rule.verify if limit is not None else self.rule.similarity
        return least is None or self.similarity(a, b) >= least

    def decide(self) -> tuple[list[int], list[int]]:
        """For each document the one kept for it, and the one that names its cluster."""
        if self.policy == "greedy":
            kept: list[int] = []
            kept_by = list(self.rows)
            for row in self.order:
                kept_by[row] = next((x for x in kept if self.matches(x, row)), row)
                if kept_by[row] == row:
                    kept.append(row)
            return kept_by, kept_by
        label = list(self.rows)
        for a, b in combinations(self.rows, 2):
            if self.matches(a, b):
                low, high = sorted((label[a], label[b]))
                label = [low if x == high else x for x in label]
        return [next(x for x in self.order if label[x] == label[row]) for row in self.rows], label


def check(result: DedupResult, texts: list[str], mode: Mode, address: Any = int) -> None:
    """Compare a run with the oracle."""
    oracle, rule = Oracle(texts, mode), mode.rule
    kept_by, label = oracle.decide()
    assert result.kept.tolist() == [kept_by[row] == row for row in oracle.rows]
    assert result.cluster.tolist() == label
    exact = rule.distance is not None and rule.verify is None
    documented = result.duplicates.select(["dropped", "kept", "distance", "similarity", "cluster"])
    assert documented.to_pylist() == [
        {
            "dropped": address(row),
            "kept": address(kept_by[row]),
            "distance": oracle.distance(row, kept_by[row]),
            "similarity": None if exact else oracle.similarity(row, kept_by[row]),
            "cluster": address(label[row]),
        }
        for row in oracle.rows
        if kept_by[row] != row
    ]
    summary = result.summary
    assert summary.read == summary.kept + summary.dropped + summary.rejected == len(texts)
    assert summary.kept == sum(kept_by[row] == row for row in oracle.rows)
    assert summary.empty == oracle.values.count(None)
    assert summary.clusters == len({x for x in label if label.count(x) > 1})


@settings(max_examples=examples(300, 30))
@given(texts=documents, mode=matchings(), workers=st.sampled_from([1, 3]))
@example([], Mode.of(distance=3, keep="longest", policy="components"), 1)
@example([], Mode.of(keep="longest", policy="components"), 1)
@example(["", "", "!"], Mode.of(distance=3, keep="last"), 1)
@example(["", "", "!"], Mode.of(similarity=0.1, keep="last"), 1)
@pytest.mark.filterwarnings("ignore::neardup.DoubtfulResultWarning")
def test_a_run_in_memory_equals_the_oracle(texts: list[str], mode: Mode, workers: int) -> None:
    check(nd.dedup(texts, **mode.options, workers=workers), texts, mode)


@settings(max_examples=examples(60, 12))
@given(
    texts=documents,
    mode=matchings(),
    workers=st.sampled_from([1, 3]),
    batch_bytes=st.sampled_from([1, 40, 1 << 20]),
    memory=st.sampled_from([1 << 10, 1 << 20, 1 << 30]),
    cut=st.integers(0, 14),
)
def test_a_run_over_files_equals_the_oracle(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    mode: Mode,
    workers: int,
    batch_bytes: int,
    memory: int,
    cut: int,
) -> None:
    folder = tmp_path_factory.mktemp("run")
    parts = texts[:cut], texts[cut:]
    paths = [str(folder / name) for name in ("one.jsonl", "two.jsonl")]
    for path, part in zip(paths, parts, strict=True):
        Path(path).write_bytes(b"".join(line(text) for text in part))
    outputs = Outputs(*(str(folder / name) for name in ("out.jsonl", "dups.jsonl", "cl.jsonl")))
    read = ReadOptions(batch_bytes=batch_bytes)
    result = dedup_files(paths, outputs, *mode.both, read, Limits(memory, workers=workers))
    places = [
        f"{path}:{row}"
        for path, part in zip(paths, parts, strict=True)
        for row in range(1, len(part) + 1)
    ]
    check(result, texts, mode, places.__getitem__)
    kept = [text for text, kept in zip(texts, result.kept.tolist(), strict=True) if kept]
    assert (folder / "out.jsonl").read_bytes() == b"".join(line(text) for text in kept)
    assert rows_of(folder / "dups.jsonl") == result.duplicates.to_pylist()
    assert rows_of(folder / "cl.jsonl") == [
        {"id": places[row], "cluster": places[result.cluster[row]], "kept": bool(result.kept[row])}
        for row in range(len(texts))
    ]


def line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


def rows_of(path: Path) -> list[Any]:
    return [json.loads(row) for row in path.read_bytes().splitlines()]


TEXTS = ["to be or not", "that is the question", "", "To be, or NOT!", "to be or not"]
KEPT = [True, True, True, False, False]


def frame(library: str) -> Any:
    return importlib.import_module(library).DataFrame({"text": TEXTS, "id": list("abcde")})


@pytest.mark.parametrize(
    "source",
    [
        TEXTS,
        tuple(TEXTS),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
        pa.table({"text": TEXTS}),
        pa.concat_tables([pa.table({"text": TEXTS[:3]}), pa.table({"text": TEXTS[3:]})]),
        pa.record_batch({"text": TEXTS}),
        pa.table({"text": TEXTS}).to_reader(),
        np.array(TEXTS, object),
    ],
    ids=lambda source: type(source).__name__,
)
def test_any_form_of_documents_is_taken(source: Any) -> None:
    result = nd.dedup(source)
    assert result.kept.tolist() == KEPT
    assert result.duplicates["kept"].to_pylist() == [0, 0]
    assert result.clusters()["cluster"].to_pylist() == result.cluster.tolist()
    assert result.summary.empty == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_and_series_are_taken(library: str) -> None:
    pytest.importorskip(library)
    table = frame(library)
    assert nd.dedup(table).kept.tolist() == KEPT
    assert nd.dedup(table, id="id").duplicates["kept"].to_pylist() == ["a", "a"]
    assert nd.dedup(table["text"]).kept.tolist() == KEPT


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([70, 71, 72, 73]),
        pa.array(["a", "b", "c", "d"]).dictionary_encode(),
        pa.chunked_array([[1.5], [], [2.5, 3.5, 4.5]]),
        pa.array([3, 2, 1, 0], pa.timestamp("s")),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_in_memory_come_out_as_they_are_given(ids: Any) -> None:
    table = pa.table({"text": ["a b c", None, "A b c", "d"], "id": ids})
    result = nd.dedup(table, id="id", on_error="skip", policy="components")
    names = table["id"].to_pylist()
    assert result.duplicates.select(["dropped", "kept", "cluster", "via"]).to_pylist() == [
        {"dropped": names[2], "kept": names[0], "cluster": names[0], "via": names[0]}
    ]
    assert result.clusters()["id"].type == ids.type
    assert result.clusters()["id"].to_pylist() == [names[0], names[2], names[3]]
    dropped = result.duplicates["dropped"][0].cast(pa.string()).as_py()
    assert "[-a-]{+A+} b c" in str(result.why(dropped))
    assert nd.dedup([], similarity=0.5).clusters().num_rows == 0


def test_what_is_no_text_says_what_to_pass() -> None:
    table = pa.table({"text": ["a b c"], "id": [1]})
    with pytest.raises(UsageError, match=r"a table with the columns text, id: pass one"):
        nd.fingerprints(table)
    for kind in (pa.float64(), pa.null(), pa.int64()):
        assert nd.similar_pairs(pa.array([], kind)).num_rows == 0
    explained = nd.explain("a b c d")
    assert repr(explained) == f"Explanation(fingerprint={explained.fingerprint:#x}, features=2)"
    assert repr(nd.explain("a b c", "a b c")) == (
        "PairExplanation(distance=0, shared=1, differing=0)"
    )


def test_pairs_of_texts_refuse_a_null_or_skip_it() -> None:
    texts = ["x y z", None, "a b c", "A b c", ""]
    table = pa.table({"text": texts, "id": [9, 8, 7, 6, 5]})
    for source in (texts, table, table["text"]):
        with pytest.raises(DataError, match=r"row 1: text is null .*on_error='skip'"):
            nd.similar_pairs(source)
        pairs = nd.similar_pairs(source, on_error="skip")
        assert [(x["left"], x["right"]) for x in pairs.to_pylist()] == [(2, 3)]
    pairs = nd.similar_pairs(table, on_error="skip", id="id")
    assert (pairs["left_id"].to_pylist(), pairs["right_id"].to_pylist()) == ([7], [6])
    with pytest.raises(UsageError, match="on_error is 'ignore': use stop or skip"):
        nd.similar_pairs(texts, on_error="ignore")
    assert nd.fingerprints(texts).mask[:, 0].tolist() == [False, True, False, False, True]


def test_null_is_a_bad_record_in_memory_as_in_files(tmp_path: Path) -> None:
    texts = ["x y z", "a b c", None, "a b c"]
    table = pa.table({"text": texts, "id": list("abcd")})
    path = tmp_path / "docs.parquet"
    pq.write_table(table, path)
    for source in (texts, table, path):
        with pytest.raises(DataError, match=r"null.*skip"):
            nd.dedup(source)
    for source in (texts, table):
        result = nd.dedup(source, on_error="skip")
        assert result.kept.tolist() == [True, True, False, False]
        assert result.cluster.tolist() == [0, 1, 2, 1]
        assert result.duplicates.to_pylist()[0]["dropped"] == 3
        counts = result.summary
        assert (counts.read, counts.kept, counts.dropped, counts.rejected) == (4, 2, 1, 1)
    assert nd.dedup(path, on_error="skip").summary.rejected == 1
    with pytest.raises(DataError, match="row 1: id is null"):
        nd.dedup(pa.table({"text": ["a", "b"], "id": ["1", None]}), id="id")


def test_pandas_missing_values_are_bad_records() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["a b c", None, float("nan"), "a b c"], dtype=object)
    with pytest.raises(DataError, match=r"row 1: text is null .2 of 4 rows"):
        nd.dedup(series)
    result = nd.dedup(series, on_error="skip")
    assert result.kept.tolist() == [True, False, False, False]
    assert result.summary.rejected == 2


def test_empty_and_mixed_data_frames_are_no_surprise() -> None:
    pandas = pytest.importorskip("pandas")
    assert nd.dedup(pandas.DataFrame({"text": []})).summary.read == 0
    assert nd.dedup(pandas.DataFrame({"text": []}, dtype=str)).summary.read == 0
    with pytest.raises(UsageError, match=r"cannot be read as Arrow.*column text.*astype"):
        nd.dedup(pandas.DataFrame({"text": ["a", 3]}, dtype=object))


class Dataset:
    """As much of one of Hugging Face as is mode: rows are dictionaries until they are Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._table.to_pylist())

    @property
    def column_names(self) -> list[str]:
        return self._table.column_names

    def select_columns(self, names: list[str]) -> Dataset:
        return type(self)(self._table.select(names))

    def with_format(self, name: str) -> pa.Table:
        assert name == "arrow"
        return self._table


class IterableDataset(Dataset): ...


class _LazyFrame:
    def collect(self) -> None: ...


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.int64()])
@pytest.mark.parametrize("holder", [lambda table: table, Dataset])
def test_ids_of_any_type_name_the_documents(
    kind: pa.DataType, holder: Callable[[pa.Table], Any]
) -> None:
    """Polars gives Arrow its strings as views, of which Arrow takes no rows."""
    ids = pa.array(["7", "8", "9"]).cast(kind)
    text = pa.array(["a b c d", "A b c d!", None], pa.string_view())
    source = holder(pa.table({"text": text, "id": ids}))
    names = ids.to_pylist()
    duplicates = nd.dedup(source, id="id", on_error="skip").duplicates.to_pylist()
    assert [(x["dropped"], x["kept"]) for x in duplicates] == [(names[1], names[0])]
    pairs = nd.similar_pairs(source, id="id", on_error="skip").to_pylist()
    assert [(x["left_id"], x["right_id"]) for x in pairs] == [(names[0], names[1])]


def test_texts_may_be_categories_of_polars() -> None:
    views = pa.array(["a b c d", "x"], pa.string_view())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.uint32()), views)
    assert nd.fingerprints(coded).shape == (4, 1)
    source = pa.table({"text": coded, "within": coded})
    result = nd.dedup(source, within="within", on_error="skip")
    assert result.kept.tolist() == [True, True, False, False]


@pytest.mark.parametrize("source", [{"text": ["a", "b"]}, _LazyFrame()])
def test_texts_alone_are_no_mapping_and_no_plan_of_a_table(source: Any) -> None:
    with pytest.raises(UsageError, match=r"mapping|the result of its collect\(\)"):
        nd.similar_pairs(source)
    with pytest.raises(UsageError, match=r"mapping|cannot be read as an array"):
        nd.fingerprints(source)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ({"text": ["a", "b"]}, {}, "a mapping .its first key is 'text'"),
        ({"x1": "same words", "x2": "same words"}, {}, "a mapping"),
        ({}, {}, "a mapping"),
        (["a b c"], {"text": "body"}, "plain texts have no fields, and text names 'body'"),
        (["a b c"], {"id": "key"}, "plain texts have no fields, and id names 'key'"),
        (["a b c"], {"delimiter": ";"}, "delimiter, encoding and records require files"),
        ([{"text": "a"}], {}, "row 0 is dict, not str: pass pyarrow.Table.from_pylist"),
        (IterableDataset(pa.table({"text": ["a"]})), {}, "has no rows yet: pass a list of its"),
        (_LazyFrame(), {}, r"pass the result of its collect\(\)"),
        (
            pa.table({"body": ["long text"], "id": ["1"]}),
            {},
            "there are body, id; pass text='body'",
        ),
    ],
)
def test_what_is_hardly_meant_is_refused(
    source: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        nd.dedup(source, **options)


def test_names_of_files_are_not_taken_as_texts(tmp_path: Path) -> None:
    names = []
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the same words")
        names.append(str(tmp_path / name))
    with pytest.raises(UsageError, match=r"names of files.*pass \[pathlib.Path"):
        nd.dedup(names)
    assert nd.dedup([*names, "no file"]).summary.kept == 3
    assert nd.dedup([tmp_path / "a.txt", tmp_path / "b.txt"]).summary.dropped == 1


@pytest.mark.parametrize("bits", [8, 64, 130])
def test_a_distance_that_any_two_documents_have_is_refused(bits: int) -> None:
    for distance in (bits, bits + 6):
        with pytest.raises(UsageError, match=f"distance is {distance}, and .* have {bits} bits"):
            nd.dedup(["a"], distance=distance, recipe=nd.Recipe(bits=bits))


def test_a_distance_that_strangers_have_is_told_with_the_number_of_their_pairs() -> None:
    texts = [f"w{i} v{i} u{i} t{i} s{i}" for i in range(200)]
    with pytest.warns(nd.DoubtfulResultWarning, match="among 200 of them"):
        result = nd.dedup(texts, distance=24)
    (line,) = result.summary.warnings
    number = int(line.partition("about ")[2].split()[0].replace(",", ""))
    pairs = nd.pairs(nd.fingerprints(texts), distance=24).num_rows
    assert number / 1.25 < pairs < number * 1.25
    assert nd.dedup(texts, distance=24, verify=0.8).summary.warnings == []
    assert nd.dedup(texts, distance=8).summary.warnings == []


def test_several_fields_are_joined_in_memory_as_in_files(tmp_path: Path) -> None:
    table = pa.table(
        {"title": ["a b", "a b", "a"], "body": ["c d", "c d", "b c d"], "n": [7, 8, 9]}
    )
    path = tmp_path / "docs.parquet"
    pq.write_table(table, path)
    in_memory = nd.dedup(table, text=["title", "body"], id="n")
    from_file = nd.dedup(path, text=["title", "body"], id="n")
    for name in ("dropped", "kept", "cluster"):
        duplicates = in_memory.duplicates[name].to_pylist()
        assert list(map(str, duplicates)) == from_file.duplicates[name].to_pylist()
    assert in_memory.duplicates["dropped"].to_pylist() == [8, 9]


def test_nothing_is_no_documents() -> None:
    sources: list[Any] = [
        [],
        pa.table({"text": pa.array([], pa.string())}),
        pa.array([], pa.string()),
    ]
    for source in sources:
        result = nd.dedup(source)
        assert result.kept.shape == result.cluster.shape == (0,)
        assert result.duplicates.num_rows == result.summary.read == 0


def test_numbers_of_threads_do_not_change_a_larger_run() -> None:
    count = 3000 if JIT else 60
    texts = [f"{i % 37} {i % 53} {i % 11} words {'x' * (i % 5)}" for i in range(count)]
    for mode in ({"distance": 8}, {"similarity": 0.5}):
        runs = [
            nd.dedup(texts, recipe=nd.Recipe(ngram=1), keep="longest", workers=workers, **mode)
            for workers in (1, 2, 5)
        ]
        for run in runs[1:]:
            assert np.array_equal(run.kept, runs[0].kept)
            assert run.duplicates.equals(runs[0].duplicates)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "best"}, "keep is 'best': use one of first, last, longest"),
        ({"policy": "all"}, "policy is 'all': use one of greedy, components"),
        ({"distance": -1}, "distance is -1: use 0 or more"),
        ({"distance": 1.5}, "distance is 1.5"),
        ({"similarity": 0}, "similarity is 0: use a number above 0, up to 1"),
        ({"similarity": 1.01}, "similarity is 1.01"),
        ({"similarity": float("nan")}, "similarity is nan"),
        ({"similarity": "0.8"}, "similarity is '0.8': use a number"),
        ({"similarity": True}, "similarity is True"),
        ({"recipe": "gaoya"}, r"recipe is 'gaoya': pass .*neardup\.preset"),
        ({"update": True}, "update requires against"),
        ({"measure": "cos"}, "measure is 'cos': use one of jaccard, cosine, containment, dice"),
        ({"similarity": 0.8, "distance": 3}, "similarity and distance exclude each other"),
        ({"verify": 0.8}, "verify requires distance"),
        ({"distance": 3, "measure": "cosine"}, "measure is 'cosine', and requires similarity"),
        ({"distance": 3, "verify": 2}, "use a number above 0, up to 1"),
        ({"memory": "much"}, "memory is 'much'|much"),
        ({"on_error": "ignore"}, "on_error is 'ignore': use stop or skip"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 10**11}, "workers is 100000000000: use a whole number from 1 to 4,096"),
        ({"clusters": "out.csv"}, "no output file"),
        ({"id": "key"}, "no column 'key': there are text, list"),
        ({"text": ["text", "body"]}, "no column 'body'"),
        ({"text": []}, "text"),
        ({"keep": "max:text"}, "is string: use one of numbers or dates, or newest or oldest for"),
        ({"keep": "newest:list"}, r"column 'list' is list<.*>: use one of dates$"),
    ],
)
def test_a_wrong_argument_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nd.dedup(pa.table({"text": TEXTS, "list": [[1]] * len(TEXTS)}), **options)


def test_what_is_no_text_is_refused() -> None:
    for source in ([1, 2], pa.array([1, 2]), pa.table({"text": [1, 2]}), 7, [b"\xff"]):
        with pytest.raises(UsageError):
            nd.dedup(source)


def test_a_path_reads_a_file_and_writes_only_what_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(b"".join(line(text) for text in TEXTS))
    sources: list[Any] = [path, str(path), [path]]
    for source in sources:
        result = nd.dedup(source)
        assert result.kept.tolist() == KEPT
        assert result.duplicates["kept"].to_pylist() == [f"{path}:1"] * 2
    assert sorted(x.name for x in tmp_path.iterdir()) == ["docs.jsonl"]
    written = nd.dedup([str(path)], tmp_path / "out.jsonl", clusters=tmp_path / "cl.parquet")
    assert written.summary.outputs == [str(tmp_path / "out.jsonl"), str(tmp_path / "cl.parquet")]
    assert pq.read_table(tmp_path / "cl.parquet")["kept"].to_pylist() == KEPT


def test_bad_records_stop_a_run_or_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(line("a b c") + b"{\n" + line("a b c"))
    with pytest.raises(DataError, match=r"docs\.jsonl:2: not valid JSON"):
        nd.dedup(path, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    result = nd.dedup(path, tmp_path / "out.jsonl", on_error="skip")
    summary = result.summary
    assert (summary.read, summary.kept, summary.dropped, summary.rejected) == (3, 1, 1, 1)
    assert result.duplicates["dropped"].to_pylist() == [f"{path}:3"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(line("a b c"))
    with pytest.raises(FileError, match="no folder"):
        nd.dedup(path, tmp_path / "out.jsonl", duplicates=tmp_path / "none" / "dups.csv")
    with pytest.raises(UsageError, match="is an input"):
        nd.dedup(path, tmp_path / "out.jsonl", clusters=path)
    assert [x.name for x in tmp_path.iterdir()] == ["docs.jsonl"]


@pytest.mark.parametrize(
    ("inputs", "output", "tables", "message"),
    [
        ("lines", "out/", {}, r"out/a\.jsonl is a folder"),
        ("lines", "lines/", {}, r"a\.jsonl is an input"),
        ("lines", "kept.jsonl", {"duplicates": "d.csv"}, r"\.d\.csv\.options\.json is a folder"),
        ("lines", "new/", {"clusters": "new/a.jsonl"}, "there is no folder"),
        ("lines", "./", {"clusters": "a.jsonl"}, r"a\.jsonl is named for two outputs"),
        ("lines", "d.csv/new/", {}, "d.csv is a file"),
        ("texts", "d.csv/new/", {}, "d.csv is a file"),
        ("texts", "empty/", {"duplicates": "empty/d.csv"}, r"d\.csv is in .*empty/, which is for"),
        ("texts", "new/", {"clusters": "new/c.csv"}, r"c\.csv is in .*new/, which is for"),
    ],
)
def test_outputs_that_could_not_be_written_are_refused_before_documents_are_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inputs: str,
    output: str,
    tables: dict[str, str],
    message: str,
) -> None:
    for name in ("lines", "texts", "out/a.jsonl", ".d.csv.options.json", "empty"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lines" / "a.jsonl").write_bytes(line("a b c"))
    (tmp_path / "texts" / "a.txt").write_text("a b c")
    (tmp_path / "d.csv").write_text("")
    monkeypatch.setattr("neardup.pipeline.deduplicate.read_sources", None)
    with pytest.raises((UsageError, FileError), match=message):
        nd.dedup(
            [tmp_path / inputs],
            f"{tmp_path}/{output}",
            **{name: tmp_path / path for name, path in tables.items()},
        )


@pytest.mark.parametrize("output", ["new/", "out.jsonl"])
def test_a_folder_that_takes_no_files_is_refused_before_documents_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(line("a b c"))
    monkeypatch.setattr("neardup.pipeline.deduplicate.read_sources", None)
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.R_OK)  # root may do all
    with pytest.raises(FileError, match=f"you may not write to {tmp_path}; name another folder"):
        nd.dedup(path, f"{tmp_path}/{output}")


@pytest.mark.parametrize("rows", [1, 3, 4, 100])
def test_parts_of_a_fingerprint_file_are_in_the_order_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(neardup.pipeline.fingerprint, "ROWS_A_PART", rows)
    texts = ["", "a b c d", *(f"text {i} of many" for i in range(15))]
    halves = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for path, part in zip(halves, (texts[:7], texts[7:]), strict=True):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in part))
    summary = fingerprint_files(
        [str(path) for path in halves],
        str(tmp_path / "fps.parquet"),
        nd.Recipe(),
        ReadOptions(batch_bytes=40),
    )
    fingerprints = read_fingerprints(str(tmp_path / "fps.parquet"))
    assert (summary.documents, summary.empty) == (len(texts), 1)
    assert fingerprints.ids.to_pylist() == [
        f"{path}:{row + 1}"
        for path, part in zip(halves, (texts[:7], texts[7:]), strict=True)
        for row in range(len(part))
    ]
    assert fingerprints.values.tolist() == nd.fingerprints(texts).tolist()


@settings(max_examples=examples(40, 8))
@given(texts=documents, recipe=small_recipes, k=st.integers(0, 10))
def test_fingerprints_and_pairs_of_files_equal_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], recipe: Any, k: int
) -> None:
    folder = tmp_path_factory.mktemp("fps")
    source, fps, pairs = (str(folder / x) for x in ("docs.jsonl", "fps.parquet", "pairs.parquet"))
    Path(source).write_bytes(b"".join(line(text) for text in texts))
    summary = fingerprint_files([source], fps, recipe, ReadOptions())
    values = [naive.fingerprint(text, recipe) for text in texts]
    stored = pq.read_table(fps)
    assert stored["id"].to_pylist() == [f"{source}:{i + 1}" for i in range(len(texts))]
    assert [
        None
        if x is None
        else sum(w << 64 * i for i, w in enumerate(x if recipe.words > 1 else [x]))
        for x in stored["fingerprint"].to_pylist()
    ] == values
    assert summary.empty == values.count(None)
    expected = naive.pairs(values, k)
    summary = pairs_file(fps, pairs, k)
    assert summary.pairs == len(expected)
    matched = {row for left, right, _ in expected for row in (left, right)}
    ids = sum(len(stored["id"][row].as_py()) for row in matched)
    assert summary.spilled >= 8 * recipe.words * len(texts) + ids
    table = pq.read_table(pairs)
    rows = zip(*(table[name].to_pylist() for name in ("left", "right", "distance")), strict=True)
    assert list(rows) == expected
    assert table["left_id"].to_pylist() == [f"{source}:{left + 1}" for left, _, _ in expected]


@given(documents, st.sampled_from([("distance", 3), ("distance", 12), ("similarity", 0.3)]))
@example(["a b c d", "b c d e", "c d e f", "d e f g"], ("similarity", 0.3))
def test_matches_lead_from_each_dropped_document_to_the_kept_one(
    texts: list[str], mode: tuple[str, Any]
) -> None:
    recipe = nd.Recipe(ngram=1, bits=24)
    how: dict[str, Any] = {mode[0]: mode[1], "recipe": recipe}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        duplicates = nd.dedup(texts, policy="components", **how).duplicates.to_pylist()
        if mode[0] == "distance":
            near = nd.pairs(nd.fingerprints(texts, recipe=recipe), distance=mode[1], bits=24)
        else:
            near = nd.similar_pairs(texts, mode[1], recipe=recipe)
    matches = {frozenset((row["left"], row["right"])) for row in near.to_pylist()}
    steps = {int(row["dropped"]): int(row["via"]) for row in duplicates}
    for row in duplicates:
        at, kept, count = int(row["dropped"]), int(row["kept"]), 0
        while at != kept:
            assert frozenset((at, steps[at])) in matches
            at, count = steps[at], count + 1
        assert count == _shortest(matches, int(row["dropped"]), kept)


def _shortest(matches: set[frozenset[int]], start: int, end: int) -> int:
    count, reached = 0, {start}
    while end not in reached:
        reached |= {x for pair in matches if pair & reached for x in pair}
        count += 1
    return count


def test_the_way_to_the_kept_one_is_written_and_survives_a_stop(tmp_path: Path) -> None:
    chain = ["a b c d", "b c d e", "c d e f", "d e f g"]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in chain))
    how: dict[str, Any] = {"similarity": 0.5, "recipe": nd.Recipe(ngram=1)}
    out = tmp_path / "dropped.csv"
    nd.dedup(path, policy="components", duplicates=out, resume=tmp_path / "state", **how)
    lines = [line.rpartition(",")[2].strip() for line in out.read_text().splitlines()]
    assert lines == ["via", *(f"{path}:{row}" for row in (1, 2, 3))]
    assert nd.dedup(path, **how).duplicates.column_names[-1] == "cluster"
