"""The index by similarity against brute force, in memory and durable."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import naive
import neardup as nd
from neardup.index import ranking as similar_related
from neardup.index import row_writer as row_writing
from neardup.index import set_arrays as similar_arrays
from neardup.index import set_arrays as similar_places
from neardup.index import set_segments as similar_segment
from neardup.index import set_segments as similar_tail
from neardup.index.durable import commits as durable_follower
from neardup.index.durable import durable_index, folder_store
from neardup.index.segment_files import SegmentFile
from neardup.kernels.index import related as related_kernels
from neardup.kernels.index.similar import make_sketches
from stories import offered
from suite import JIT, examples, needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator

MEASURES = ("jaccard", "cosine", "containment", "dice")
FOLDERS = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)  # noqa: S108
FEW = [0, 2**64 - 1, 0x9E3779B97F4A7C15, *range(1, 20), *(x << 40 for x in range(1, 20))]
"""Features that many documents share: also those that tables treat apart."""

documents = st.one_of(
    st.sets(st.sampled_from(FEW), max_size=30),
    st.sets(st.integers(0, 2**64 - 1), max_size=12),
    st.integers(1, 6).map(lambda n: set(range(1 << 50, (1 << 50) + n))),
)


def memory(similarity: float, measure: str) -> Any:
    return nd.Index(similarity=similarity, measure=measure)


def durable(similarity: float, measure: str) -> Any:
    folder = tempfile.mkdtemp(dir=FOLDERS)
    return nd.DurableIndex.open(folder, similarity=similarity, measure=measure)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows fill a tail, a batch, a level and the log; merges of files go by slices."""
    monkeypatch.setattr(similar_tail, "TAIL_ROWS", 12)
    monkeypatch.setattr(similar_segment, "LEVEL_ROWS", 12)
    monkeypatch.setattr(similar_arrays, "SAMPLED_SETS", 10)
    monkeypatch.setattr(similar_arrays, "ENTRIES_A_RANGE", 7)
    monkeypatch.setattr(similar_places, "SPOOLED", 0)
    monkeypatch.setattr(similar_places, "SLICE", 16)
    monkeypatch.setattr(row_writing, "SMALL_BATCH", 6)
    monkeypatch.setattr(durable_follower, "SMALL_RECORD", 6)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)
    monkeypatch.setattr(similar_related, "SCANS", 1)
    monkeypatch.setattr(related_kernels, "FIRST_LOOK", 3)


def table_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def agree(index: Any, oracle: naive.SimilarIndex, queries: list[set[int]], least: float) -> None:
    """Compare every answer with the oracle's."""
    want = [oracle.query(query, least) for query in queries]
    given_queries = [sorted(query) for query in queries]
    hits = [index.query(query, least) for query in given_queries]
    assert [(list(each), each.total) for each in hits] == [(each, len(each)) for each in want]
    table = index.query_batch(given_queries, least)
    assert table.column_names == ["row", "id", "similarity"]
    assert table_rows(table) == [(row, *hit) for row, hits in enumerate(want) for hit in hits]
    limited = index.query(given_queries[0], least, limit=2)
    assert (list(limited), limited.total) == (want[0][:2], len(want[0]))
    limited = index.query_batch(given_queries, least, limit=1)
    assert table_rows(limited) == [(row, *hits[0]) for row, hits in enumerate(want) if hits]
    cut = sum(max(0, len(hits) - 1) for hits in want)
    assert limited.schema.metadata[b"cut"] == str(cut).encode()
    places = {identity: place for place, identity in enumerate(oracle.stored)}
    oldest = [
        (row, *min(hits, key=lambda hit: places[hit[0]])) for row, hits in enumerate(want) if hits
    ]
    assert table_rows(index.first_within(given_queries, least)) == oldest
    best = [oracle.query(query, 0.0)[:4] for query in queries]
    assert index.nearest(given_queries[0], 4) == best[0]
    nearest = table_rows(index.nearest_batch(given_queries, 4))
    assert nearest == [(row, *hit) for row, hits in enumerate(best) for hit in hits]
    cosine = naive.SimilarIndex("cosine")
    cosine.stored = oracle.stored
    assert index.nearest(given_queries[0], 4, by="cosine") == cosine.query(queries[0], 0.0)[:4]
    assert len(index) == len(oracle.stored)
    stored = [(identity, sorted(features)) for identity, (features, _) in oracle.stored.items()]
    assert [(identity, features.tolist()) for identity, features in index] == stored


class Story(RuleBasedStateMachine):
    """Any sequence of calls leaves an index that answers as the oracle does."""

    make = staticmethod(memory)
    reader: Any = None

    @initialize(
        similarity=st.sampled_from([0.3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.95, 1.0]),
        measure=st.sampled_from(MEASURES),
        strings=st.booleans(),
    )
    def start(self, similarity: float, measure: str, strings: bool) -> None:
        self.index = self.make(similarity, measure)
        self.oracle, self.similarity = naive.SimilarIndex(measure), similarity
        self.name: Any = str if strings else int
        self.time = 100.0

    @rule(identity=st.integers(0, 40), document=documents)
    def add(self, identity: int, document: set[int]) -> None:
        self.time += 1
        count = self.index.add(self.name(identity), sorted(document))
        assert count == bool(document)
        self.oracle.add(self.name(identity), document, self.time)

    @rule(first=st.integers(0, 40), batch=st.lists(documents, max_size=30))
    def add_many(self, first: int, batch: list[set[int]]) -> None:
        self.time += 1
        ids = [self.name((first + i * i) % 41) for i in range(len(batch))]
        self.index.add(ids, [sorted(each) for each in batch])
        for identity, document in zip(ids, batch, strict=True):
            self.oracle.add(identity, document, self.time)

    @rule(
        batch=st.lists(st.tuples(st.integers(0, 40), documents), max_size=9),
        stored=st.sampled_from(["replace", "keep"]),
    )
    def add_new(self, batch: list[tuple[int, set[int]]], stored: Any) -> None:
        self.time += 1
        ids = [self.name(identity) for identity, _ in batch]
        want = [
            naive.offer(self.oracle, name, document, self.similarity, stored=stored, now=self.time)
            for name, (_, document) in zip(ids, batch, strict=True)
        ]
        given_documents = [sorted(document) for _, document in batch]
        assert offered(self.index.add_new(ids, given_documents, stored=stored)) == want

    @rule(identity=st.integers(0, 40), document=documents)
    def add_if_new(self, identity: int, document: set[int]) -> None:
        self.time += 1
        name = self.name(identity)
        _, near = naive.offer(self.oracle, name, document, self.similarity, now=self.time)
        assert self.index.add_if_new(name, sorted(document)) == near

    @precondition(lambda self: self.oracle.stored)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        chosen = data.draw(
            st.lists(st.sampled_from(list(self.oracle.stored)), unique=True, max_size=20)
        )
        assert self.index.remove(chosen) == len(chosen)
        for identity in chosen:
            del self.oracle.stored[identity]
            assert identity not in self.index

    @precondition(lambda self: self.oracle.stored)
    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        self.time += 1
        stored = list(self.oracle.stored)
        chosen = data.draw(st.lists(st.sampled_from(stored), min_size=1, max_size=9, unique=True))
        assert self.index.touch(chosen) == len(chosen)
        for identity in chosen:
            self.oracle.add(identity, self.oracle.stored[identity][0], self.time)

    @rule(first=st.integers(0, 40), batch=st.lists(documents, max_size=30), data=st.data())
    def merge_one_with_removed_rows(
        self, first: int, batch: list[set[int]], data: st.DataObject
    ) -> None:
        self.time += 1
        other = memory(self.similarity, self.oracle.measure)
        theirs = naive.SimilarIndex(self.oracle.measure)
        ids = [self.name((first + i * i) % 41) for i in range(len(batch))]
        other.add(ids, [sorted(each) for each in batch])
        for identity, document in zip(ids, batch, strict=True):
            theirs.add(identity, document, self.time)
        if theirs.stored:
            stored = list(theirs.stored)
            gone = data.draw(st.lists(st.sampled_from(stored), unique=True))
            other.remove(gone)
            for identity in gone:
                del theirs.stored[identity]
        self.index.merge(other)
        for identity, (document, at) in theirs.stored.items():
            self.oracle.add(identity, document, at)

    @rule(back=st.integers(0, 6))
    def expire(self, back: int) -> None:
        before = self.time - back
        assert self.index.expire(before) == self.oracle.expire(before)

    @rule()
    def compact(self) -> None:
        self.index.compact()

    @rule()
    def reopen(self) -> None:
        """Pickle it."""
        self.index = pickle.loads(pickle.dumps(self.index))  # noqa: S301

    @rule(queries=st.lists(documents, min_size=1, max_size=4), more=st.booleans())
    def query(self, queries: list[set[int]], more: bool) -> None:
        least = (1 + self.similarity) / 2 if more else self.similarity
        agree(self.index, self.oracle, queries, least)

    @precondition(lambda self: self.oracle.stored)
    @rule(data=st.data())
    def query_what_is_stored(self, data: st.DataObject) -> None:
        stored = data.draw(st.sampled_from([x for x, _ in self.oracle.stored.values()]))
        dropped = data.draw(st.sets(st.sampled_from(sorted(stored)), max_size=3))
        agree(self.index, self.oracle, [stored, stored - dropped], self.similarity)


class DurableStory(Story):
    """The same in a folder, with a reader beside."""

    make = staticmethod(durable)

    @rule()
    def reopen(self) -> None:
        """Close it and open it again."""
        self.index.close()
        self.index = nd.DurableIndex.open(self.index.path)

    @rule(query=documents)
    def commit(self, query: set[int]) -> None:
        self.index.commit()
        if self.reader is None:
            self.reader = nd.DurableIndex.open(self.index.path, readonly=True)
        want = self.oracle.query(query, self.similarity)
        assert list(self.reader.query(sorted(query))) == want
        assert len(self.reader) == len(self.oracle.stored)
        assert self.index.check() == []

    @rule()
    def roll_back_nothing(self) -> None:
        self.index.commit()
        self.index.rollback()

    def teardown(self) -> None:
        for index in (self.reader, getattr(self, "index", None)):
            if index is not None:
                index.close()


@pytest.mark.parametrize("story", [Story, DurableStory], ids=["memory", "durable"])
def test_any_story_ends_as_the_oracle_says(
    story: type[Story], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Timed(story):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            clock = SimpleNamespace(time=lambda: self.time)
            monkeypatch.setattr("neardup.index.row_writer.time", clock)

    run_state_machine_as_test(
        Timed, settings=settings(max_examples=examples(40, 6), stateful_step_count=25)
    )


@given(
    st.integers(1, 400), st.integers(1, 60), st.integers(1, 60), st.sampled_from(MEASURES),
    st.integers(0, 2**32),
)  # fmt: skip
@settings(max_examples=examples(60, 6))
def test_a_pair_exactly_at_the_threshold_is_found_and_one_below_is_not(
    common: int, mine: int, theirs: int, measure: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    values = [int(x) for x in random.integers(0, 2**64, common + mine + theirs + 1, np.uint64)]
    left = set(values[: common + mine])
    right = set(values[:common]) | set(values[common + mine : -1])
    reached = naive.similarity(left, right, measure)
    index = nd.Index(similarity=reached, measure=measure)
    index.add(["tail"], [sorted(left)])
    index.add([f"segment {i}" for i in range(9)], [sorted(left)] * 9)
    assert [score for _, score in index.query(sorted(right))] == [reached] * 10
    less = right - {min(left & right)} | {values[-1]}
    assert list(index.query(sorted(less))) == []


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("size", [1, 2, 3, 100, 10_000 if JIT else 300])
def test_documents_of_every_size_find_themselves(size: int, measure: str) -> None:
    index = nd.Index(similarity=0.8, measure=measure)
    random = np.random.default_rng(size)
    sets = [random.integers(0, 2**64, size, np.uint64) for _ in range(10)]
    index.add(range(10), sets)
    index.add(10, sets[3])
    assert list(index.query(sets[3])) == [(3, 1.0), (10, 1.0)]


@needs_jit
def test_the_size_of_a_bucket_and_of_a_place_has_no_limit() -> None:
    shared = np.arange(1, 6000, dtype=np.uint64)
    many = [np.append(shared, np.uint64(10**9 + i)) for i in range(60)]
    index = nd.Index(similarity=0.99)
    index.add(range(60), many)
    assert len(index.query(many[0])) == 60


def test_what_is_shared_may_come_behind_what_is_not() -> None:
    """Each query lacks three features of a document and has three others, rare or not."""
    index, oracle, chance = memory(0.6, "jaccard"), naive.SimilarIndex("jaccard"), random.Random(5)
    stored = [{chance.getrandbits(64) for _ in range(12)} for _ in range(100)]
    for identity, features in enumerate(stored):
        index.add(identity, sorted(features))
        oracle.add(identity, features)
    queries = [
        {*chance.sample(sorted(each), 9), *(chance.getrandbits(64) for _ in range(3))}
        for each in stored
    ]
    agree(index, oracle, queries, 0.6)


def test_texts_by_a_recipe() -> None:
    index = nd.Index(similarity=0.5, recipe=nd.Recipe(ngram=1))
    assert index.add(["a", "b", "none"], ["one two three four", "five six", ""]) == 2
    assert index.query("ONE two three!") == [("a", 0.75)]
    assert index.query("") == []
    assert index.query_batch(["five six", "", "one two"])["id"].to_pylist() == ["b", "a"]
    assert index.query("one two \ud800 three four")[0][0] == "a"
    assert index.nearest("four seven eight nine") == [("a", 1 / 7)]
    assert isinstance(index, nd.Index)


@pytest.mark.parametrize("kind", [pa.list_(pa.uint64()), pa.large_list(pa.int64())])
def test_features_come_as_arrow_lists(kind: Any) -> None:
    index = nd.Index(similarity=0.8)
    index.add(["a", "b", "c"], pa.array([[3, 1, 2, 2], None, [9]], kind))
    assert (len(index), "b" in index) == (2, False)
    assert index.query_batch(pa.array([[1, 2, 3]], kind))["id"].to_pylist() == ["a"]
    assert index.features("a").tolist() == [1, 2, 3]
    (one,) = pa.array([[2, 3, 1]], kind)
    assert index.query(one) == index.query(one.values) == [("a", 1.0)]


def test_a_format_that_is_not_read_any_more_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_index, "FORMAT", 4)
    with pytest.raises(nd.errors.DataError, match="has index format 4, made by"):
        nd.DurableIndex.open(tmp_path / "old", similarity=0.8)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    index = nd.Index(similarity=0.8, measure="cosine", recipe=nd.Recipe())
    index.add([f"d{i}" for i in range(40)], [f"text of number {i} in the file" for i in range(40)])
    index.remove("d3")
    index.save(tmp_path / "seen")
    again = nd.Index.load(tmp_path / "seen")
    assert (again.similarity, again.measure, len(again)) == (0.8, "cosine", 39)
    assert again.query("text of number 7 in the file") == [("d7", 1.0)]
    assert again.add("d3", "text of number 3 in the file") == 1
    again.save(tmp_path / "seen")
    with (tmp_path / "seen").open("r+b") as file:
        file.seek(-9, 2)
        file.write(b"x")
    with pytest.raises(nd.DataError, match="damaged"):
        nd.Index.load(tmp_path / "seen")


def test_an_empty_index_is_saved_too(tmp_path: Path) -> None:
    nd.Index(similarity=0.8).save(tmp_path / "seen")
    assert nd.Index.load(tmp_path / "seen").query([1, 2]) == []


def test_indexes_are_merged() -> None:
    one, two = nd.Index(similarity=0.8), nd.Index(similarity=0.5)
    one.add(["a", "b"], [[1, 2], [3]])
    two.add(["b", "c"], [[4], [5]])
    one.merge(two)
    assert [identity for identity, _ in one] == ["a", "b", "c"]
    assert one.query([4]) == [("b", 1.0)]


def refusals() -> Iterator[tuple[str, Any]]:
    index = nd.Index(similarity=0.8)
    recipe = nd.Index(similarity=0.8, recipe=nd.Recipe())
    yield "the index was made for 0.8: use", lambda: index.query([1], 0.7)
    yield "above 0, up to 1", lambda: index.query([1], 1.1)
    yield "it takes feature hashes, not texts: for texts make one", lambda: index.query("a text")
    yield "it takes feature hashes, not texts", lambda: index.add(["a"], ["a text"])
    yield "use a text, or an array", lambda: recipe.add("a", 5)
    yield "whole numbers from 0", lambda: index.query([-1])
    yield "whole numbers from 0", lambda: index.add("a", [1.5])
    yield "similarity is '0.9': use a number", lambda: index.query([1], "0.9")  # type: ignore[arg-type]
    yield "recipe is 'x': pass", lambda: nd.Index(similarity=0.8, recipe="x")  # type: ignore[arg-type]
    yield "recipe is 'x': pass", lambda: nd.Index(bits=64, recipe="x")  # type: ignore[arg-type]
    yield "texts and feature hashes are mixed", lambda: recipe.add(["a", "b"], ["x", [1]])
    yield (
        "1 features are null",
        lambda: index.add(["a"], pa.array([[1, None]], pa.list_(pa.uint64()))),
    )
    yield "features are float64 of shape", lambda: index.query(np.zeros(2))
    yield "lists of double", lambda: index.query_batch(pa.array([[0.5]]))
    yield "2 ids for 1 documents", lambda: index.add(["a", "b"], [[1]])
    yield "measure is 'cos'", lambda: nd.Index(similarity=0.8, measure="cos")
    yield "similarity is 0", lambda: nd.Index(similarity=0)
    yield "distance is 3, which only an index by distance", lambda: nd.Index(3, similarity=0.8)
    yield "give similarity=0.8", lambda: nd.Index(measure="cosine")
    yield "merge one with similarity=", lambda: index.merge(nd.Index(distance=3))


@pytest.mark.parametrize(
    ("message", "call"), list(refusals()), ids=lambda x: x if type(x) is str else ""
)
def test_bad_input_is_one_line(message: str, call: Any) -> None:
    with pytest.raises(nd.UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", [{"store": "none"}, {"plan": "scan"}, {"bits": 64}], ids=str)
def test_an_option_of_distances_is_refused_and_makes_no_folder(
    tmp_path: Path, option: dict[str, Any]
) -> None:
    """Nor is it ignored by an index that exists."""
    (name,) = option
    folder = tmp_path / "seen"
    wrong = f"{name} is .*, which only an index by distance takes, and this one is by similarity"
    with pytest.raises(nd.UsageError, match=wrong):
        nd.DurableIndex.open(folder, similarity=0.8, **option)
    assert not folder.exists()
    nd.DurableIndex.open(folder, similarity=0.8, store="features", plan="auto").close()
    with pytest.raises(nd.UsageError, match=wrong):
        nd.DurableIndex.open(folder, **option)
    assert nd.DurableIndex.open(folder, store="features", readonly=True).store == "features"


@pytest.mark.parametrize("options", [{"distance": 3}, {"similarity": 0.8}], ids=str)
def test_indexes_of_two_recipes_are_not_merged(options: dict[str, Any]) -> None:
    one, two = (nd.Index(recipe=nd.Recipe(ngram=n), **options) for n in (1, 2))
    with pytest.raises(
        nd.RecipeError, match=f"{two.recipe.digest}, this one's {one.recipe.digest}"
    ):
        one.merge(two)


def test_another_kind_of_index_is_refused(tmp_path: Path) -> None:
    nd.DurableIndex.open(tmp_path / "d", distance=3).close()
    nd.DurableIndex.open(tmp_path / "s", similarity=0.8, recipe=nd.Recipe()).close()
    opened = nd.DurableIndex.open
    with pytest.raises(nd.UsageError, match=r"similarity is 0.8, but .* is by distance, up to 3"):
        opened(tmp_path / "d", similarity=0.8)
    with pytest.raises(
        nd.UsageError, match=r"distance is 3, which only .* is by similarity, from 0.8"
    ):
        opened(tmp_path / "s", distance=3)
    with pytest.raises(nd.UsageError, match=r"made for 0.8"):
        opened(tmp_path / "s", similarity=0.5)
    with pytest.raises(nd.UsageError, match=r"measure is 'cosine', but .* 'jaccard'"):
        opened(tmp_path / "s", similarity=0.8, measure="cosine")
    with pytest.raises(nd.RecipeError, match="documents of two recipes"):
        opened(tmp_path / "s", recipe=nd.Recipe(ngram=2))
    with opened(tmp_path / "s", similarity=0.9) as index:
        assert (index.similarity, isinstance(index, nd.DurableIndex)) == (0.9, True)


CHILD = """
import sys, neardup as nd
from neardup.index.durable import folder_store
from neardup.index import set_arrays as places
folder_store.FLUSH_ROWS["similarity"], places.SPOOLED, places.SLICE = 40, 0, 50
index = nd.DurableIndex.open(sys.argv[1])
for i in range(int(sys.argv[2]), 10**6):
    index.add([f"{i} {j}" for j in range(3)], [[10 * i + j, 5, 7] for j in range(3)])
    if i % 7 == 6:
        index.remove(f"{i - 1} 0")
    index.commit()
    print(i, flush=True)
"""


@needs_jit
def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    home = tmp_path / "index"
    nd.DurableIndex.open(home, similarity=1.0).close()
    last = -1
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(home), str(last + 1)],
            stdout=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            for line in child.stdout:
                last = int(line)
                if last % 29 == 28:
                    child.kill()
        with nd.DurableIndex.open(home) as index:
            assert index.check() == []
            committed = index.added // 3
            assert committed in {last + 1, last + 2}
            last = committed - 1
            gone = {i - 1 for i in range(last + 1) if i % 7 == 6}
            assert len(index) == 3 * (last + 1) - len(gone)
            for i in range(last + 1):
                hit = [] if i in gone else [(f"{i} 0", 1.0)]
                assert list(index.query([10 * i, 5, 7])) == hit


def damaged_array(home: Path, name: str) -> None:
    """Change one value of an array of the index's largest segment."""
    path = max(home.glob("segment-*.nds"), key=lambda each: each.stat().st_size)
    entry = SegmentFile(path).header["arrays"][name]
    data = bytearray(path.read_bytes())
    data[entry["offset"] + np.dtype(entry["dtype"]).itemsize * (entry["shape"][0] // 2)] ^= 4
    path.write_bytes(data)


def filled(home: Path, count: int) -> None:
    with nd.DurableIndex.open(home, similarity=0.5) as index:
        sets = [np.arange(10 * i, 10 * i + 12, dtype=np.uint64) for i in range(count)]
        index.add([f"d{i}" for i in range(count)], pa.array([each.tolist() for each in sets]))
        index.compact()


@pytest.mark.parametrize(
    "name",
    [
        *("offsets", "set_of", "members", "member_starts", "sizes", "firsts"),
        *("order_keys", "order_ranks", "starts", "rest_starts"),
    ],
)
def test_a_damaged_array_that_leads_to_others_is_refused_at_opening(
    name: str, tmp_path: Path
) -> None:
    filled(tmp_path / "index", 100)
    damaged_array(tmp_path / "index", name)
    with pytest.raises(nd.DataError, match="is damaged"):
        nd.DurableIndex.open(tmp_path / "index")


@pytest.mark.parametrize("name", ["features", "entries", "numbers", "ids"])
def test_what_is_damaged_is_not_rewritten_and_the_rest_stays_usable(
    name: str, tmp_path: Path
) -> None:
    home = tmp_path / "index"
    filled(home, 100)
    damaged_array(home, name)
    with nd.DurableIndex.open(home) as index:
        for i in range(60):
            index.add(f"new{i}", [7 << 50, i << 40])
            index.commit()
        assert ("new5", 1.0) in index.query([7 << 50, 5 << 40])
        assert len(index) == 160
        if name != "entries":  # which a merge makes again
            with pytest.raises(nd.DataError, match=f"damaged .in {name}"):
                index.compact()
            assert any(name in problem for problem in index.check())


def variants(count: int) -> list[Any]:
    """A page of 40 features of which each one has replaced two."""
    random = np.random.default_rng(4)
    pages = np.repeat(np.arange(1, 41, dtype=np.uint64)[None, :], count, axis=0)
    for _ in range(2):
        pages[np.arange(count), random.integers(0, 40, count)] = random.integers(
            1 << 40, 1 << 60, count, np.uint64
        )
    return list(pages)


@pytest.mark.parametrize("kind", ["equal", "variants", "one feature that all have"])
def test_what_is_skewed_is_found_and_cut_as_brute_force_says(kind: str) -> None:
    count = 120 if JIT else 30
    pages = variants(count) if kind == "variants" else [np.arange(1, 9, dtype=np.uint64)] * count
    if kind == "one feature that all have":
        pages = [np.array([7, *range(100 * i, 100 * i + 6)], np.uint64) for i in range(1, count)]
    index, oracle = nd.Index(similarity=0.8), naive.SimilarIndex("jaccard")
    index.add(range(len(pages)), pages)
    for row, page in enumerate(pages):
        oracle.add(row, set(page.tolist()))
    index.remove(list(range(0, len(pages), 5)))
    for row in range(0, len(pages), 5):
        del oracle.stored[row]
    for query in pages[:4]:
        want = oracle.query(set(query.tolist()), 0.8)
        for limit in (None, 0, 1, 7):
            hits = index.query(query, limit=limit)
            assert (list(hits), hits.total) == (want[:limit], len(want))
        table = index.query_batch([query] * 3, limit=2)
        assert table["id"].to_pylist() == [identity for identity, _ in want[:2]] * 3
        assert table.schema.metadata[b"cut"] == str(3 * max(0, len(want) - 2)).encode()
        first = index.first_within([query]).to_pylist()
        assert [each["id"] for each in first] == sorted(identity for identity, _ in want)[:1]


@needs_jit
def test_a_limit_bounds_what_a_batch_holds() -> None:
    index = nd.Index(similarity=0.8)
    pages = variants(400)
    index.add(range(400), pages)
    index.compact()
    queries = pages * 5
    index.query_batch(queries[:10], limit=1)
    tracemalloc.start()
    result = index.query_batch(queries, limit=1, workers=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    hits = int(result.schema.metadata[b"cut"]) + len(result)
    assert len(result) == len(queries)
    assert peak < hits * 24 / 4


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_more_hits_than_there_is_room_for_at_first_are_all_found(
    measure: str, share: float
) -> None:
    count, draw = 700 if JIT else 200, np.random.default_rng(7)
    settled = int(share * count)
    universe = draw.integers(0, 1 << 64, 24, np.uint64)
    sets = [draw.choice(universe, draw.integers(14, 21), replace=False) for _ in range(count)]
    index = nd.Index(similarity=0.5, measure=measure)
    if settled:
        index.add(list(range(settled)), sets[:settled])
        index.compact()
    for row in range(settled, count):
        index.add(row, sets[row])
    queries = [np.sort(each) for each in sets[:: count // 4]]
    hits = index.query_batch(queries, workers=1).to_pylist()
    for at, query in enumerate(queries):
        scores = [naive.similarity(set(query.tolist()), set(x.tolist()), measure) for x in sets]
        due = {row: score for row, score in enumerate(scores) if score >= 0.5}
        assert len(due) > (256 if JIT else 64)
        assert {hit["id"]: hit["similarity"] for hit in hits if hit["row"] == at} == due
        assert dict(index.query(query)) == due
        assert index.query(query, limit=5) == index.query(query)[:5]


@pytest.mark.parametrize("rows", [1, 700], ids=["one by one", "a batch"])
def test_one_query_with_more_hits_than_its_room_holds_finds_all(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar_tail, "FIRST_ROWS", 2048)
    monkeypatch.setattr(similar_tail, "TAIL_ROWS", 2048)
    count, size = 700 if JIT else 300, 40
    page = np.arange(1, size + 1, dtype=np.uint64) << np.uint64(50)
    variants = np.repeat(page[None], count, axis=0)
    variants[np.arange(count), np.arange(count) % size] += np.arange(1, count + 1, dtype=np.uint64)
    index = nd.Index(similarity=0.8)
    for first in range(0, count, rows):
        index.add(np.arange(first, min(count, first + rows)), variants[first : first + rows])
    hits = index.query(page)
    assert (list(hits), hits.total) == ([(row, 39 / 41) for row in range(count)], count)
    limited = index.query(page, limit=3)
    assert (list(limited), limited.total) == (list(hits)[:3], count)
    assert index.query(page, 0.96) == []


def test_one_query_of_more_features_than_its_room_holds_is_answered() -> None:
    index = nd.Index(similarity=0.8)
    long = np.arange(5000, dtype=np.uint64) << np.uint64(40)
    assert index.add_if_new("a", long) is None
    assert index.add_if_new("b", long[:4500]) == ("a", 0.9)
    assert index.query(long[:4000]) == [("a", 0.8)]


@settings(max_examples=examples(60, 20), deadline=None)
@given(st.sets(st.integers(0, 2**64 - 1), min_size=1), st.sets(st.integers(0, 2**64 - 1)))
def test_sketches_differ_in_no_more_bits_than_sets_in_features(
    some: set[int], others: set[int]
) -> None:
    sets = [np.array(sorted(each), np.uint64) for each in (some, some ^ others)]
    offsets = np.array([0, len(sets[0]), len(sets[0]) + len(sets[1])])
    for words in (1, 2, 4):
        sketches = np.empty(2 * words, np.uint64)
        make_sketches(np.concatenate(sets), offsets, sketches, words)
        apart = sum(int(x ^ y).bit_count() for x, y in zip(*sketches.reshape(2, -1), strict=True))
        assert apart <= len(others)
        assert (apart - len(others)) % 2 == 0
