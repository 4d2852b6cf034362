"""The most similar documents by weighted cosine, and where many are removed, equal or alike."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.index import ranking as similar_related
from neardup.index import row_writer as row_writing
from neardup.index import set_segments as similar_tail
from neardup.index.set_arrays import Sets
from neardup.kernels.index import related as related_kernels
from neardup.similarity.measures import MEASURES
from suite import JIT, examples

if TYPE_CHECKING:
    from pathlib import Path

WORDS = [f"w{i}" for i in range(60)]
texts = st.lists(
    st.integers(0, 3599).map(lambda x: WORDS[math.isqrt(x)]), min_size=1, max_size=25
).map(" ".join)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are made at once; few rows are a segment, few sets a range."""
    monkeypatch.setattr(similar_related, "SCANS", 0)
    if not JIT:  # what is compiled has its own
        monkeypatch.setattr(related_kernels, "FIRST_LOOK", 8)
        monkeypatch.setattr(related_kernels, "RANGE", 16)
        monkeypatch.setattr(related_kernels, "BLOCK", 4)
    monkeypatch.setattr(row_writing, "SMALL_BATCH", 4)
    monkeypatch.setattr(similar_tail, "TAIL_ROWS", 16)


def learned(documents: list[str]) -> tuple[nd.DocumentFrequencies, nd.Recipe]:
    plain = nd.Recipe(ngram=1)
    table = nd.DocumentFrequencies.learn(documents, plain)
    return table, nd.Recipe(ngram=1, weight="tfidf", idf=table.digest)


def cosine(left: str, right: str, table: nd.DocumentFrequencies) -> float:
    one, two = set(left.split()), set(right.split())
    squares = {word: table.idf(word) ** 2 for word in one | two}
    product = sum(squares[word] for word in one & two)
    sums = [sum(squares[word] for word in words) for words in (one, two)]
    return product / math.sqrt(sums[0] * sums[1])


def agree(hits: list[tuple[Any, float]], want: dict[Any, float], n: int) -> None:
    """The n largest, each with its own value; of equal ones (but for rounding) any."""
    best = sorted((value for value in want.values() if value > 0), reverse=True)[:n]
    assert [value for _, value in hits] == pytest.approx(best)
    assert dict(hits) == pytest.approx({identity: want[identity] for identity, _ in hits})


@given(st.lists(texts, min_size=1, max_size=60), texts, st.integers(1, 12), st.data())
@settings(max_examples=examples(80, 5))
def test_nearest_by_cosine_is_exact_for_tfidf(
    documents: list[str], query: str, n: int, data: st.DataObject
) -> None:
    table, recipe = learned([*documents, query])
    index = nd.Index(similarity=0.8, recipe=recipe)
    index.add(range(len(documents)), documents)
    gone = data.draw(st.sets(st.integers(0, len(documents) - 1), max_size=len(documents)))
    for row in gone:
        index.remove(row)
    index.add(1000, query)
    want = {
        row: cosine(query, text, table) for row, text in enumerate(documents) if row not in gone
    }
    agree(index.nearest(query, n, by="cosine"), want | {1000: 1.0}, n)
    assert index.nearest(query, 1, by="cosine")[0][1] == 1.0


def test_the_closest_by_weights_may_have_any_number_of_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sets of about the size of the query come first only where all features weigh the same."""
    monkeypatch.setattr(similar_related, "SCANS", 100)
    random = np.random.default_rng(11)
    lists = [
        [f"w{int(word)}" for word in random.pareto(0.7, size) * 3 % 500]
        for size in random.integers(4, 60, 100)
    ]
    documents = [" ".join(words[cut:]) for words in lists for cut in (1, 0)]
    table, recipe = learned(documents)
    index = nd.Index(similarity=0.8, recipe=recipe)
    index.add(range(len(documents)), documents)
    for query in documents[1:20:2]:
        want = {number: cosine(query, text, table) for number, text in enumerate(documents)}
        agree(index.nearest(query, 1, by="cosine"), want, 1)


def test_equal_documents_come_by_insertion_and_removed_ones_not() -> None:
    index = nd.Index(similarity=0.9)
    index.add(range(100), [[1, 2, 3, 4]] * 90 + [[1, 9, 8]] * 10)
    index.remove(list(range(85)))
    assert index.nearest([1, 2, 7], 4) == [(i, 0.4) for i in (85, 86, 87, 88)]
    assert index.nearest([1, 2, 7], 7)[4:] == [(89, 0.4), (90, 0.2), (91, 0.2)]
    assert index.nearest([1, 2, 7], 0) == index.nearest([5], 3) == []


@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from(["jaccard", "cosine", "dice"]))
@settings(max_examples=examples(150, 5))
def test_where_the_most_similar_are_removed_the_next_ones_come(
    seed: int, n: int, measure: str
) -> None:
    random = np.random.default_rng(seed)
    sets = [
        np.unique((random.pareto(0.8, size) * 3).astype(np.uint64))
        for size in random.integers(1, 20, 50)
    ]
    index, oracle = nd.Index(similarity=1.0, measure=measure), naive.SimilarIndex(measure)
    index.add(range(len(sets)), sets)
    gone = random.permutation(len(sets))[: random.integers(1, 40)]
    index.remove(gone.tolist())
    for row in np.setdiff1d(np.arange(len(sets)), gone).tolist():
        oracle.add(row, set(sets[row].tolist()), 0.0)
    for query in sets[:12]:
        assert index.nearest(query, n) == oracle.query(set(query.tolist()), 0.0)[:n]


@pytest.mark.parametrize("by", ["similarity", "cosine"])
@pytest.mark.parametrize("measure", ["jaccard", "cosine", "containment", "dice"])
def test_real_words_as_brute_force_says(by: str, measure: str) -> None:
    random = np.random.default_rng(5)
    sets = [
        np.unique((random.pareto(0.8, size) * 3).astype(np.uint64))
        for size in random.integers(1, 90, 400 if JIT else 60)
    ]
    index = nd.Index(similarity=0.95, measure=measure)
    index.add(range(len(sets)), sets)
    for query in sets[:25]:
        mine = set(query.tolist())
        want = {}
        for i, other in enumerate(sets):
            shared = len(mine & set(other.tolist()))
            of = {
                "jaccard": len(mine) + len(other) - shared,
                "containment": min(len(mine), len(other)),
                "dice": (len(mine) + len(other)) / 2,
            }
            of["cosine"] = math.sqrt(len(mine) * len(other))
            want[i] = shared / of[measure if by == "similarity" else "cosine"]
        best = sorted((-value, i) for i, value in want.items() if value)[:10]
        assert index.nearest(query, 10, by=by) == [(i, -value) for value, i in best]


def test_lists_and_comparing_all_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    sets = [np.unique(random.zipf(1.3, 40).astype(np.uint64)) for _ in range(300 if JIT else 40)]
    index = nd.Index(similarity=0.95)
    index.add(range(len(sets)), sets)
    with_lists = index.nearest_batch(sets, 5).to_pylist()
    assert len(with_lists) == 5 * len(sets)
    monkeypatch.setattr(similar_related, "SCANS", 1 << 60)
    index.compact()
    again = nd.Index(similarity=0.95)
    again.merge(index)
    assert again.nearest_batch(sets, 5).to_pylist() == with_lists


def test_more_features_than_places_of_32_bits_are_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(similar_related, "SCANS", 0)
    index = nd.Index(similarity=0.9)
    index.add([*range(900)], [np.arange(at, at + 20, dtype=np.uint64) for at in range(900)])
    listed = index.nearest(np.arange(500, 510, dtype=np.uint64), 7)
    monkeypatch.setattr(similar_related, "MOST_LISTED", 900 * 20 - 1)
    monkeypatch.setattr(similar_related, "_lists", None)  # is not called
    assert (
        pickle.loads(pickle.dumps(index)).nearest(  # noqa: S301  # ours
            np.arange(500, 510, dtype=np.uint64), 7
        )
        == listed
    )


def test_a_folder_answers_as_memory_does(tmp_path: Path) -> None:
    documents = [f"the {a} of the {b}" for a in WORDS[:9] for b in WORDS[:9]]
    _, recipe = learned(documents)
    index = nd.Index(similarity=0.8, recipe=recipe)
    with nd.DurableIndex.open(tmp_path / "i", similarity=0.8, recipe=recipe) as durable:
        for each in (index, durable):
            each.add(range(len(documents)), documents)
    with nd.DurableIndex.open(tmp_path / "i", readonly=True) as reader:
        for by in ("similarity", "cosine"):
            want = index.nearest("w3 of w5", 10, by=by)
            assert reader.nearest("w3 of w5", 10, by=by) == want
            assert reader.snapshot().nearest("w3 of w5", 10, by=by) == want
            assert [
                each["id"] for each in reader.nearest_batch(["", "w3 of w5"], 10, by).to_pylist()
            ] == [identity for identity, _ in want]


def test_what_cannot_be_weighed_is_refused() -> None:
    index = nd.Index(similarity=0.8, recipe=nd.Recipe(weight="log"))
    with pytest.raises(nd.UsageError, match="weighs by 'log', and an index keeps features without"):
        index.nearest("a text", 3, by="cosine")
    with pytest.raises(nd.UsageError, match="by is 'dice': use one of similarity, cosine"):
        index.nearest("a text", 3, by="dice")
    table, _ = learned(["a b"])
    recipe = nd.Recipe(ngram=1, weight="tfidf", idf=table.digest, hash="murmur3")
    with pytest.raises(nd.UsageError, match="hash is 'murmur3' with seed 0, and document freq"):
        nd.Index(similarity=0.8, recipe=recipe).nearest("a b", 3, by="cosine")


def test_how_often_a_word_occurs_does_not_matter() -> None:
    _, recipe = learned(["a b", "b c"])
    index = nd.Index(similarity=0.8, recipe=recipe)
    index.add("x", "a b a a")
    assert index.nearest("b a", 1, by="cosine") == [("x", 1.0)]


@pytest.mark.parametrize("measure", ["jaccard", "cosine", "containment", "dice"])
def test_only_living_sets_are_ranked_and_of_these_n(measure: str) -> None:
    """What a search of ever more sets gave, where nearly all were removed, in one."""
    random = np.random.default_rng(3)
    lists = [np.unique(random.integers(0, 40, 12).astype(np.uint64)) for _ in range(200)]
    sets = sets_by_size(lists)
    dead = np.ones(sets.size, np.bool_)
    dead[[5, 50, 150]] = False
    living = similar_related.living_sets(
        np.arange(sets.size, dtype=np.uint32), np.arange(sets.size + 1), dead
    )
    ranking = similar_related.Ranking(MEASURES[measure], None)
    numbers, scores = similar_related.RankedSets().best(
        sets, np.arange(20, dtype=np.uint64), ranking, 3, 0.0, living
    )
    assert sorted(numbers.tolist()) == [5, 50, 150]
    assert (scores > 0).all()


def sets_by_size(lists: list[Any]) -> Sets:
    ordered = sorted(lists, key=len)
    return Sets(np.concatenate(ordered), np.cumsum([0, *map(len, ordered)]))
