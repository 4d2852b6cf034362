"""Documents prepared in any thread or process, and offered later; bad rows among them."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import neardup as nd
from neardup.errors import UsageError
from neardup.index import Prepared
from stories import durable, offered

RECIPE = nd.Recipe(ngram=1)
MAKERS: dict[str, Any] = {
    "memory, distance": lambda: nd.Index(distance=4, recipe=RECIPE),
    "memory, similarity": lambda: nd.Index(similarity=0.6, recipe=RECIPE),
    "durable, distance": lambda: durable(distance=4, recipe=RECIPE, store="text"),
    "durable, similarity": lambda: durable(similarity=0.6, recipe=RECIPE),
}
TEXTS = ["one two three four", "", "one two three four five", "six seven eight", "  !"]
NAMES = ["a", "b", "c", "d", "e"]
FOUR = "nine ten eleven twelve"


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    """Either kind of index, in memory or in a folder."""
    return MAKERS[request.param]


def test_what_is_prepared_elsewhere_is_answered_as_what_is_given(make: Any) -> None:
    plain, index = make(), make()
    ready = pickle.loads(pickle.dumps(index.prepare(NAMES, TEXTS, payloads=NAMES)))  # noqa: S301
    want = offered(plain.add_new(NAMES, TEXTS, payloads=NAMES))
    assert offered(index.add_new(ready)) == want
    assert [state for state, _ in want].count("empty") == 2
    assert index.payloads([x[0] for x in index]) == [x[0] for x in index]
    assert dict(plain).keys() == dict(index).keys()
    again = index.offer_many(index.prepare(NAMES, TEXTS))
    assert again[0].state == "stored"


def test_what_is_prepared_is_added_as_what_is_given(make: Any) -> None:
    plain, index, payloads = make(), make(), [1, 2, 3, 4, 5]
    for names in (NAMES, ["a", "b", "b", "c", "a"]):  # of equal ids the last one counts
        ready = index.prepare(names, TEXTS, payloads=payloads)
        assert index.add(ready) == plain.add(names, TEXTS, payloads=payloads)
        present = [name for name, _ in plain]
        assert [name for name, _ in index] == present
        assert index.payloads(present) == plain.payloads(present)
        for text in filter(None, TEXTS):
            assert index.query(text) == plain.query(text)


def test_parts_are_joined_in_their_order(make: Any) -> None:
    whole, index, payloads = make(), make(), [None, None, {"x": 1}, 2, None]
    parts = [
        index.prepare("a", TEXTS[0]),
        index.prepare(NAMES[1:4], TEXTS[1:4], payloads=payloads[1:4]),
        index.prepare("e", TEXTS[4]),
    ]
    joined = Prepared.joined(parts)
    assert len(joined) == 5
    assert offered(index.add_new(joined)) == offered(whole.add_new(NAMES, TEXTS, payloads=payloads))
    for name, _ in whole:
        assert index.payload(name) == whole.payload(name)
    mixed = Prepared.joined([make().prepare("x", "one"), make().prepare([7], [FOUR])])
    assert [each.state for each in make().offer_many(mixed)] == ["new", "refused"]
    with pytest.raises(UsageError, match="no prepared documents"):
        Prepared.joined([])


def test_documents_are_prepared_while_the_lock_is_held(make: Any) -> None:
    index, ready = make(), []
    with index.transaction() as transaction:
        transaction.add("x", FOUR)
        thread = threading.Thread(target=lambda: ready.append(index.prepare(NAMES, TEXTS)))
        thread.start()
        thread.join(60)
        assert len(ready[0]) == 5


def test_what_was_prepared_for_another_index_is_refused() -> None:
    ready = nd.Index(similarity=0.6, recipe=RECIPE).prepare("a", "one two three")
    for other in (
        nd.Index(similarity=0.6, recipe=nd.Recipe(ngram=2)),
        nd.Index(distance=4, recipe=RECIPE),
        durable(distance=4, recipe=RECIPE, store="text"),
    ):
        with pytest.raises(UsageError, match="prepare them with this index"):
            other.offer_many(ready)
    assert nd.Index(similarity=0.9, recipe=RECIPE).offer_many(ready)[0].state == "new"
    with pytest.raises(UsageError, match="take no other arguments"):
        nd.Index(similarity=0.6, recipe=RECIPE).add_new(ready, ["one"])


def test_one_bad_row_refuses_no_other(make: Any) -> None:
    index = make()
    ids = ["a", 7, "c", "d", "e\ud800", "f"]
    documents = ["one two", FOUR, 5.5, "six seven eight", "x y z", "   "]
    payloads = [1, 2, 3, object(), 5, 6]
    problems = index.check_rows(ids, documents, payloads=payloads)
    assert [each is None for each in problems] == [True, False, False, False, False, True]
    assert "ids of kind str, not int" in problems[1]
    assert "which cannot be kept" in problems[3]
    assert "lone surrogate" in problems[4]
    ready = index.prepare(ids, documents, payloads=payloads, bad="report")
    states = [each.state for each in index.offer_many(ready)]
    assert states == ["new", "refused", "refused", "refused", "refused", "empty"]
    assert index.payload("a") == 1
    assert index.check_rows(["a", "b"], ["x", "y"]) == [None, None]
    assert index.check_rows([1], ["x"]) == ["the index has ids of kind str, not int"]
    assert index.check_rows(7, "x")[0] is not None
    with pytest.raises(UsageError, match="2 ids for 1"):
        index.check_rows(["a", "b"], ["x"])
    with pytest.raises(UsageError, match="use 'error' or 'report'"):
        index.prepare("a", "x", bad="drop")


def test_arrays_of_ones_own_are_sifted_as_well() -> None:
    near = nd.Index(distance=1)
    assert near.check_rows(np.arange(3), [1, -1, 1 << 70])[0] is None
    assert near.check_rows([1, 2], np.array([5, 6], np.uint64)) == [None, None]
    similar = nd.Index(similarity=0.5)
    problems = similar.check_rows([1, 2, 3], [np.arange(3, dtype=np.uint64), [1.5], None])
    assert [each is None for each in problems] == [True, False, True]


@pytest.mark.parametrize("kind", [{"distance": 3}, {"similarity": 0.8}])
def test_a_lone_surrogate_counts_as_the_replacement_character_alone_and_in_a_batch(
    kind: dict[str, Any],
) -> None:
    texts = ["one and \ud800 three", None, "one and \ufffd three", "quite another text"]
    index = nd.Index(recipe=nd.Recipe(), **kind)
    assert index.check_rows(["a", "b", "c", "d"], texts) == [None] * 4
    answers = index.offer_many(["a", "b", "c", "d"], texts)
    assert [each.state for each in answers] == ["new", "empty", "seen", "new"]
    assert [hit[0] for hit in index.query(texts[0])] == ["a"]
    assert index.query_batch(texts)["id"].to_pylist() == ["a", "a", "d"]


@pytest.mark.parametrize("payload", [None, {"page": 7}])
def test_one_document_is_prepared_with_its_payload(payload: Any) -> None:
    index = nd.Index(distance=3)
    assert index.offer_many(index.prepare("a", 5, payloads=payload))[0].state == "new"
    assert index.payload("a") == payload


def test_ids_of_numpy_are_stored_as_whole_numbers_beside_a_bad_document() -> None:
    index = nd.Index(distance=1)
    ready = index.prepare(np.array([1, 2, 3], np.int32), [5, "bad", 7 << 20], bad="report")
    assert list(map(type, ready.ids)) == [int, np.int32, int]
    assert list(ready.problems) == [1]
    index.add_new(ready)
    assert [type(identity) for identity, _ in index.query(5)] == [int]
