"""Every index answers as a dictionary and a loop would, with every plan, in every state."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import random
import shutil
import threading
import time
from itertools import count
from math import comb
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    run_state_machine_as_test,
)

import naive
import neardup as nd
from neardup.index.durable.folder_store import FolderStore
from neardup.index.hits import ABSENT, OTHER, SAME
from neardup.index.memory_store import MemoryStore
from stories import (
    FOLDERS,
    KINDS,
    Kind,
    Story,
    agree,
    durable,
    reopened,
    small_segments,
)
from suite import JIT, examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ROWS: Final = 105 if JIT else 24
MOST_LOOKUPS: Final = 3_000 if JIT else 100


atexit.register(shutil.rmtree, FOLDERS, ignore_errors=True)


@pytest.fixture(params=KINDS if JIT else ["memory"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of index; both run the same kernels."""
    return KINDS[request.param]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows fill a tail, a batch, a level and a heavy bucket: so tests cross all boundaries."""
    small_segments(monkeypatch)
    monkeypatch.setattr("neardup.hamming.search.table_search.HEAVY_BUCKET", 8)
    monkeypatch.setattr("neardup.hamming.search.table_search.HEAVY_TIMES", 1)


def plans(bits: int, distance: int) -> list[str]:
    """All exact plans that work for a width and a distance."""
    names = ["auto", "scan", "bits", "blocks"]
    if distance + 2 <= bits and comb(distance + 2, 2) <= (64 if JIT else 12):
        names.append(f"multi:{distance + 2}")
    if sum(comb(bits, flips) for flips in range(min(distance, bits) + 1)) <= MOST_LOOKUPS:
        names.append("probe")
    if 0 < distance < 12:
        most = MOST_LOOKUPS if JIT else MOST_LOOKUPS // 16
        lookups = {m: m * comb(-(-bits // m), distance // m) for m in {2, distance}}
        names += [f"mih:{m}" for m, count in lookups.items() if count <= most]
    return names


DISTANCES: Final = (0, 1, 2, 3, 7, 12)
CASES: Final = [
    (bits, distance, plan)
    for bits in (33, 64, 128, 256)
    for distance in (*DISTANCES, bits, bits + 5)
    for plan in plans(bits, distance)
]


def near(rng: Any, value: int, bits: int, flips: int) -> int:
    """The fingerprint with so many of its bits turned."""
    for bit in rng.choice(bits, min(flips, bits), replace=False).tolist():
        value ^= 1 << bit
    return value


def one_of(rng: Any, bits: int, known: list[int], distance: int) -> int:
    """A random fingerprint, or one about as near as `distance` to a known one."""
    if known and rng.random() < 0.6:
        source = known[int(rng.integers(len(known)))]
        return near(rng, source, bits, int(rng.integers(0, distance + 3)))
    return int.from_bytes(rng.bytes(32), "little") >> (256 - bits)


@pytest.mark.parametrize(("bits", "distance", "plan"), CASES)
def test_every_plan_answers_as_brute_force_does(
    kind: Kind, bits: int, distance: int, plan: str
) -> None:
    """While documents are added singly and in batches, replaced and removed."""
    rng = np.random.default_rng(bits + distance)
    index, oracle = kind.make(distance, bits=bits, plan=plan), naive.Index()
    named: Callable[[int], Any] = str if distance % 2 else int
    known: list[int] = []
    for turn in range(3):
        batch = []
        for _ in range(ROWS // 3):
            known.append(one_of(rng, bits, known, distance))
            batch.append((named(int(rng.integers(ROWS))), known[-1]))
        for identity, fingerprint in batch:
            oracle.add(identity, fingerprint)
        if turn % 2:
            for identity, fingerprint in batch:
                index.add(identity, fingerprint)
        else:
            index.add([each for each, _ in batch], [each for _, each in batch])
        for identity in list(oracle.stored)[:: 5 + turn]:
            del oracle.stored[identity]
            index.remove(identity)
        queries = [one_of(rng, bits, known, distance) for _ in range(12)]
        agree(index, oracle, queries, distance)
        ranked = [oracle.query(query, bits) for query in queries]
        assert index.nearest(queries[0]) == ranked[0][:10]
        for n in (1, 7, ROWS):
            expected = [hits[:n] for hits in ranked]
            assert index.nearest(queries[0], n) == expected[0]
            columns = zip(*index.nearest_batch(queries, n).to_pydict().values(), strict=True)
            assert [*columns] == [(row, *hit) for row, hits in enumerate(expected) for hit in hits]
        index = kind.reopened(index)


def shapes(bits: int, distance: int) -> dict[str, list[int]]:
    """Collections that break naive tables."""
    rng = np.random.default_rng(distance)
    everything = (1 << bits) - 1
    wide = [one_of(rng, bits, [], 0) for _ in range(ROWS)]
    block = everything >> (bits // (distance + 1))
    return {
        "equal": [wide[0]] * ROWS,
        "one block constant": [each & block for each in wide],
        "all blocks but one constant": [each & ~block for each in wide],
        "few values": [each & 7 for each in wide],
        "top bit": [everything, 1 << (bits - 1), 0, everything ^ 1, everything >> 1] * (ROWS // 5),
        "boilerplate": [near(rng, wide[0], bits, int(rng.integers(8))) for _ in wide],
        "one": wide[:1],
    }


@pytest.mark.parametrize("shape", shapes(64, 3))
@pytest.mark.parametrize(("bits", "distance"), [(64, 3), (64, 1), (100, 2), (33, 5)])
def test_skew_changes_no_answer(kind: Kind, bits: int, distance: int, shape: str) -> None:
    """Heavy buckets, handed to searchers of their own, find the same."""
    values = shapes(bits, distance)[shape]
    rng = np.random.default_rng(1)
    queries = [near(rng, values[i % len(values)], bits, i % (distance + 2)) for i in range(8)]
    oracle = naive.Index()
    for identity, value in enumerate(values):
        oracle.add(identity, value)
    for plan in plans(bits, distance):
        index = kind.make(distance, bits=bits, plan=plan)
        index.add(range(len(values)), values)
        agree(index, oracle, queries, distance)
        for smaller in {0, distance - 1}:
            assert index.query(queries[1], smaller) == oracle.query(queries[1], smaller)


@pytest.mark.parametrize("plan", ["auto", "scan", "bits", "blocks", "multi:5", "probe"])
def test_an_empty_index_finds_nothing(kind: Kind, plan: str) -> None:
    """New, and after all was removed."""
    index = kind.make(3 if plan != "probe" else 1, plan=plan)
    for _ in range(2):
        assert index.query(5) == []
        assert index.nearest(5) == []
        assert index.query_batch([5, 6]).num_rows == index.nearest_batch([5, 6]).num_rows == 0
        assert index.query_batch(np.zeros(0, np.uint64)).num_rows == 0
        assert (len(index), list(index), "a" in index) == (0, [], False)
        index.add([f"{i}" for i in range(40)], range(40))
        index.remove([f"{i}" for i in range(40)])


def test_masked_and_missing_documents_are_left_out(kind: Kind) -> None:
    """A document without features has no fingerprint, so it is not stored and finds nothing."""
    index = kind.make(1)
    masked = np.ma.masked_array(np.arange(40, dtype=np.uint64), np.arange(40) % 3 == 0)
    assert index.add(range(40), masked) == 26
    assert (0 in index, 1 in index) == (False, True)
    assert index.add(100, None) == 0
    assert index.query_batch(masked[:3])["row"].unique().to_pylist() == [1, 2]
    missing = pa.array([None, 1], pa.uint64())
    assert index.query_batch(missing)["row"].unique().to_pylist() == [1]
    assert index.query(None) == []
    assert index.add_if_new(200, None) is None
    assert 200 not in index


def test_every_form_of_fingerprints_and_ids_is_taken(kind: Kind) -> None:
    """Bit 63 too, in signed and unsigned arrays."""
    values = [0, 2**63, 2**64 - 1, 1]
    array = np.array(values, np.uint64)
    forms = (values, array, array[:, None], array.view(np.int64), pa.array(array))
    ids: tuple[Any, ...] = (range(4), np.arange(4), pa.array([0, 1, 2, 3], pa.int32()))
    ids += (pa.chunked_array([[0, 1], [2, 3]]), pa.array([0, 1, 2, 3]).dictionary_encode())
    for form in forms:
        for each in ids:
            index = kind.make(0)
            assert index.add(each, form) == 4
            assert list(index) == list(enumerate(values))
            assert index.query(array[1:2]) == index.query(np.uint64(2**63)) == [(1, 0)]


def test_a_null_value_of_a_dictionary_is_a_missing_id(kind: Kind) -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    with pytest.raises(nd.UsageError, match="1 ids are missing"):
        kind.make(0).add(ids, [1, 2, 3])


def masked(values: list[int | None], bits: int) -> Any:
    """A masked array of fingerprints."""
    codes = np.array([words_of(value or 0, bits) for value in values], np.uint64)
    missing = np.array([value is None for value in values], np.bool_)
    codes = codes.reshape(len(values), -(-bits // 64))
    return np.ma.MaskedArray(codes, np.broadcast_to(missing[:, None], codes.shape))


def arrow_lists(values: list[int | None], bits: int) -> Any:
    """An Arrow array of fixed-size lists."""
    lists = [None if value is None else words_of(value, bits) for value in values]
    return pa.array(lists, pa.list_(pa.uint64(), -(-bits // 64)))


FORMS: Final[dict[str, Callable[[list[int | None], int], Any]]] = {
    "list with None": lambda values, _: values,
    "masked": masked,
    "Arrow lists": arrow_lists,
    "chunks": lambda values, bits: pa.chunked_array(
        [arrow_lists(values[:2], bits), arrow_lists(values[2:], bits)]
    ),
    "a slice": lambda values, bits: arrow_lists([7, None, *values, 9], bits)[2:-1],
}


def words_of(value: int, bits: int) -> list[int]:
    """A fingerprint's uint64 words, the low one first."""
    return [value >> 64 * w & (1 << 64) - 1 for w in range(-(-bits // 64))]


@pytest.mark.parametrize("form", FORMS)
@given(
    bits=st.sampled_from([64, 70, 128]),
    values=st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=30),
)
@settings(max_examples=examples(25, 5))
def test_what_is_missing_moves_no_other_document(
    form: str, bits: int, values: list[int | None]
) -> None:
    """Each id keeps its own fingerprint, each row of a batch its own answers."""
    given_form = FORMS[form](values, bits)
    index = nd.Index(0, bits=bits)
    stored = [(row, value) for row, value in enumerate(values) if value is not None]
    assert index.add(range(len(values)), given_form) == len(stored)
    assert list(index) == stored
    table = index.query_batch(given_form)
    pairs = set(zip(table["row"].to_pylist(), table["id"].to_pylist(), strict=True))
    assert pairs == {(i, j) for i, one in stored for j, two in stored if one == two}


@given(st.lists(st.text() | st.sampled_from(["", "a\0b", "\ud800", "x" * 70_000]), max_size=12))
@settings(max_examples=examples(60, 15))
def test_any_text_is_an_id_or_refused(ids: list[str]) -> None:
    """What UTF-8 cannot hold is refused before anything is stored, singly and in lists."""
    index, oracle = nd.Index(0), {}
    for number, identity in enumerate(ids):
        if "\ud800" in identity:
            for wrong in (identity, [f"other {number}", identity]):
                with pytest.raises(nd.UsageError, match="surrogate"):
                    index.add(wrong, number if isinstance(wrong, str) else [number, number])
            continue
        oracle.pop(identity, None)
        oracle[identity] = number
        index.add(identity, number)
    index.compact()
    assert list(index) == list(oracle.items())


def test_a_failed_or_empty_first_call_decides_nothing(kind: Kind) -> None:
    """What kind the ids are is decided by the first document that is stored."""
    index = kind.make(3)
    for wrong in (lambda: index.add("a", -1), lambda: index.add_if_new("a", -1)):
        with pytest.raises(nd.UsageError):
            wrong()
    assert index.add("a", None) == 0
    assert index.add_if_new("a", None) is None
    assert index.id_kind is None
    assert index.add(1, 1) == 1


def pickled(index: nd.Index) -> nd.Index:
    """A copy by way of a pickle."""
    copied = pickle.loads(pickle.dumps(index))  # noqa: S301  # ours
    assert isinstance(copied, nd.Index)
    return copied


class Named(nd.Index):
    """A user's own index."""

    def names(self) -> list[Any]:
        return [identity for identity, _ in self]


@pytest.mark.parametrize("options", [{"distance": 1}, {"similarity": 0.5}])
def test_a_class_of_a_user_stays_what_it_is(options: dict[str, Any], tmp_path: Path) -> None:
    index = Named(**options)
    index.add(["a", "b"], [[1, 2, 3], [7, 8, 9]] if "similarity" in options else [1, 255])
    index.save(tmp_path / "seen")
    for each in (index, pickled(index), Named.load(tmp_path / "seen")):
        assert type(each) is Named
        assert isinstance(each, Named)
        assert each.names() == ["a", "b"]
        assert each.query([1, 2, 3] if "similarity" in options else 0)[0][0] == "a"


def test_each_kind_names_the_other_ones_reach() -> None:
    by_distance, by_similarity = nd.Index(3), nd.Index(similarity=0.8)
    assert (hasattr(by_distance, "similarity"), hasattr(by_similarity, "distance")) == (
        False,
        False,
    )
    with pytest.raises(
        nd.UsageError, match=r"asks for 0\.9, but the index is by distance: use dist"
    ):
        by_distance.query(7, similarity=0.9)
    with pytest.raises(nd.UsageError, match=r"asks for 2, but the index is by similarity"):
        by_similarity.query_batch([[7]], distance=2)
    assert by_distance.query(7, 2) == by_distance.query(7, distance=2) == []
    assert by_similarity.query([7], 0.9) == by_similarity.query([7], similarity=0.9) == []


def test_a_memory_index_can_be_pickled() -> None:
    """The copy answers alike, goes on alike, and expires alike."""
    index = nd.Index(2, bits=70)
    assert list(pickled(index)) == []
    index.add([f"{i}" for i in range(50)], [i << 65 for i in range(31)] + [None] * 19)
    index.remove(["3", "4"])
    index.add("late", 5)
    copied = pickled(index)
    assert (repr(copied), copied.id_kind) == (repr(index), "str")
    assert repr(index) == "<Index of 30 documents, 70 bits, distance 2>"
    for each in (index, copied):
        each.add("later", 5)
    assert list(copied) == list(index)
    assert copied.query(5) == index.query(5)
    assert copied.expire(time.time() + 60) == 31


def test_a_durable_index_is_opened_anew_in_another_process() -> None:
    """Neither a pickle nor a fork carries a writer along; the child of a fork changes nothing."""
    index = durable(3)
    index.add(["a", "b"], [1, 2])
    index.commit()
    with pytest.raises(nd.UsageError, match="send its path"):
        pickle.dumps(index)
    child = os.fork()
    if child == 0:
        try:
            index.add("c", 3)
            index.commit()
        except nd.UsageError as error:
            os._exit(42 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    index.add("d", 4)
    index = reopened(index)
    assert [identity for identity, _ in index] == ["a", "b", "d"]
    assert index.check() == []


def test_an_index_without_a_reach_is_by_distance_3(kind: Kind) -> None:
    index = kind.make()
    index.add(["three", "four"], [0b111, 0b1111])
    assert (index.by, index.distance) == ("distance", 3)
    assert index.query(0) == [("three", 3)]


def test_an_id_is_absent_or_stored_with_other_content_or_the_same(kind: Kind) -> None:
    index = kind.make(3)
    index.add([1, 2, 3], [10, 20, 30])
    index.remove(2)
    states = index.versions([1, 2, 3, 4], np.array([[10], [20], [31], [40]], np.uint64))
    assert states.tolist() == [SAME, ABSENT, OTHER, ABSENT]
    assert len({SAME, ABSENT, OTHER}) == 3


def test_texts_stand_where_fingerprints_do(kind: Kind) -> None:
    """With a recipe texts are folded, in adding and asking."""
    recipe = nd.Recipe()
    index = kind.make(3, recipe=recipe)
    texts = ["the harbour opened again on Monday", "a budget for the coming year", ""]
    assert index.add(["a", "b", "c"], texts) == 2
    assert index.query(texts[0].upper()) == [("a", 0)]
    assert index.query_batch(pa.array(texts))["id"].to_pylist() == ["a", "b"]
    assert index.query(nd.fingerprint(texts[1], recipe)) == [("b", 0)]


def test_add_if_new_keeps_the_first_of_near_documents(kind: Kind) -> None:
    """It names the nearest, and of equally near ones the one that was added first."""
    index = kind.make(2)
    assert index.add_if_new("a", 0b0111) is None
    assert index.add_if_new("b", 0b0001) == ("a", 2)
    assert index.add_if_new("c", 0b111000) is None
    assert index.add_if_new("d", 0b0011) == ("a", 1)
    assert [identity for identity, _ in index] == ["a", "c"]


def test_a_limit_says_that_it_cut(kind: Kind) -> None:
    """The nearest are kept; `total` and "cut" say how many there are."""
    index = kind.make(3)
    index.add(range(50), [0] * 30 + [1] * 20)
    hits = index.query(1, limit=22)
    assert hits == [(i, 0) for i in range(30, 50)] + [(0, 1), (1, 1)]
    assert (hits.total, hits.cut) == (50, True)
    assert (index.query(1).total, index.query(1).cut) == (50, False)
    table = index.query_batch([1, 0xF << 40, 0], limit=10)
    assert table["row"].to_pylist() == [0] * 10 + [2] * 10
    assert table.schema.metadata[b"cut"] == b"80"
    assert index.query_batch([1]).schema.metadata[b"cut"] == b"0"


def test_workers_change_nothing(kind: Kind) -> None:
    """One, two and five threads give identical tables."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**64, ROWS, dtype=np.uint64)
    for plan in ("auto", "bits", "blocks"):
        index = kind.make(3, plan=plan)
        index.add(range(ROWS), values)
        tables = [index.query_batch(values, workers=workers) for workers in (1, 2, 5)]
        assert tables[0].equals(tables[1])
        assert tables[0].equals(tables[2])


def test_merging_adds_the_documents_of_another_index(kind: Kind) -> None:
    """As if they had been added now, in their order; ids of both are replaced."""
    one, two, oracle = kind.make(2), kind.make(3), naive.Index()
    rng = np.random.default_rng(5)
    for index, start in ((one, 0), (two, 20)):
        for identity in range(start, start + 40):
            value = int(rng.integers(0, 2**8))
            index.add(identity, value)
            oracle.add(identity, value)
    one.merge(two)
    agree(one, oracle, list(range(0, 256, 17)), 2)


WRONG: Final = [
    (lambda index: index.add("b", 2), "kind int, not str"),
    (lambda index: index.add([1, "b"], [1, 2]), "mixed"),
    (lambda index: index.add([1, None], [1, 2]), "missing"),
    (lambda index: index.add([1.5], [1]), "double"),
    (lambda index: index.add(2**63, 1), "does not fit"),
    (lambda index: index.add([2**64 - 1], [1]), "does not fit"),
    (lambda index: index.add(pa.array([2, 2**63], pa.uint64()), [1, 2]), f"id {2**63} does not"),
    (lambda index: index.add(True, 1), "bool"),
    (lambda index: index.add([1, 2], [1]), "2 ids for 1 fingerprints"),
    (lambda index: index.add(1, -1), "-1"),
    (lambda index: index.add(1, 2**64), "18446744073709551616"),
    (lambda index: index.add(1, 1.5), "float"),
    (lambda index: index.add(1, np.zeros(2, np.uint64)), r"shape \(2,\)"),
    (lambda index: index.add([1], np.zeros((1, 2), np.uint64)), "2 words|128 bits"),
    (lambda index: index.add(1, "text"), "recipe"),
    (lambda index: index.add(None, 1), "None"),
    (lambda index: index.add(b"a", 1), "bytes"),
    (lambda index: index.add({2, 3}, [1, 2]), "set"),
    (lambda index: index.add({2: 3}, [1]), "dict"),
    (lambda index: index.add((i for i in [2, 3]), [1, 2]), "generator"),
    (lambda index: index.add([2, 3], [1, "text"]), "mixed"),
    (lambda index: [2] in index, "list"),
    (lambda index: True in index, "bool"),
    (lambda index: index.remove(None), "None"),
    (lambda index: index.query(1, limit=-1), "limit is -1"),
    (lambda index: index.query(1, limit=1.5), "limit is 1.5"),
    (lambda index: index.query_batch([1], limit=True), "limit is True"),
    (lambda index: index.nearest(1, "2"), "n is '2'"),
    (lambda index: index.expire("today"), "today"),
    (lambda index: index.expire(float("nan")), "nan"),
    (lambda index: index.merge([1]), "list is not an index"),
    (lambda index: index.query(1, distance=4), "distance is 4"),
    (lambda index: index.query(1, distance=-1), "-1"),
    (lambda index: index.nearest(1, -1), "-1"),
    (lambda index: index.query_batch(np.zeros(3)), "float64"),
    (lambda index: index.merge(nd.Index(3, bits=128)), "128 bits"),
]


@pytest.mark.parametrize(("wrong", "word"), WRONG)
def test_wrong_usage_is_one_clear_line_and_changes_nothing(
    kind: Kind, wrong: Callable[[Any], Any], word: str
) -> None:
    """Each message names the bad value."""
    index = kind.make(3)
    index.add(1, 7)
    with pytest.raises(nd.UsageError, match=word) as caught:
        wrong(index)
    assert "\n" not in str(caught.value)
    assert list(index) == [(1, 7)]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"distance": -1}, "-1"),
        ({"distance": 1.5}, "1.5"),
        ({"bits": 0}, "bits is 0"),
        ({"bits": 128, "recipe": nd.Recipe()}, "recipe"),
        ({"plan": "magic"}, "magic"),
        ({"plan": "scna"}, "did you mean 'scan'"),
        ({"plan": "scan:3"}, "unknown"),
        ({"plan": "multi"}, "a number of blocks"),
        ({"plan": "multi:3"}, "too few"),
        ({"plan": "multi:65"}, "more blocks"),
        ({"plan": "multi:60"}, "tables"),
        ({"plan": "mih:65"}, "1 to 64"),
        ({"distance": 12, "plan": "probe"}, "signatures"),
        ({"plan": "multi:4x4"}, "a number of blocks"),
        ({"plan": "bands:0.9"}, "unknown"),
        ({"plan": "permute:0"}, "permutations"),
    ],
)
def test_an_index_that_cannot_be_is_refused(
    kind: Kind, arguments: dict[str, Any], word: str
) -> None:
    """In one line that says what would do."""
    with pytest.raises(nd.UsageError, match=word) as caught:
        kind.make(**({"distance": 3} | arguments))
    assert "\n" not in str(caught.value)


def test_removing_an_absent_document_is_a_key_error_and_removes_nothing(kind: Kind) -> None:
    """In a list too."""
    index = kind.make(3)
    index.add(["a", "b"], [1, 2])
    for ids in ("c", ["a", "c"], 5, ["a", "a", "x"]):
        with pytest.raises(KeyError):
            index.remove(ids)
    assert len(index) == 2


def test_queries_are_right_while_another_thread_writes(kind: Kind) -> None:
    """What stays is always found, what was never near is not, whatever is added and removed."""
    index = kind.make(2)
    steady = [i * 0x01010101 << 8 for i in range(40)]
    index.add([f"s{i}" for i in range(40)], steady)
    names = [f"s{i}" for i in range(5)]
    stop, wrong = threading.Event(), []

    def write() -> None:
        rng = np.random.default_rng(2)
        for turn in range(60 if JIT else 4):
            new = [f"{turn}-{i}" for i in range(20)]
            index.add(new, [int(x) << 40 | 0xFFFF for x in rng.integers(0, 2**20, 20)])
            index.remove(new[::2])
            for each in new[1::2]:
                index.remove(each)
        stop.set()

    def ask() -> None:
        for turn in count():
            if stop.is_set() and turn > 20:
                return
            hits = index.query(steady[turn % 40] ^ 3)
            table = index.query_batch(steady[:5])
            if (hits, table["id"].to_pylist()) != ([(f"s{turn % 40}", 2)], names):
                wrong.append(turn)

    readers = [threading.Thread(target=ask) for _ in range(2)]
    for thread in readers:
        thread.start()
    write()
    for thread in readers:
        thread.join()
    assert wrong == []
    assert len(index) == 40


def test_an_id_that_another_thread_replaces_is_never_missed(kind: Kind) -> None:
    """A query finds what it was, what it is, or both; singly and in batches."""
    index = kind.make(2)
    names, size = [f"s{i}" for i in range(12)], 12
    index.add(names, range(0, 16 * size, 16))
    stop, missed = threading.Event(), []

    def write() -> None:
        for turn in range(200 if JIT else 20):
            index.add(names, [16 * i | turn & 1 for i in range(size)])
            index.add("s3", 48)
        stop.set()

    def ask() -> None:
        while not stop.is_set():
            table = index.query_batch([16 * i for i in range(size)])
            pairs = set(zip(table["row"].to_pylist(), table["id"].to_pylist(), strict=True))
            missed.extend(i for i in range(size) if (i, f"s{i}") not in pairs)
            missed.extend([-1] * ("s3" not in [identity for identity, _ in index.query(48)]))

    reader = threading.Thread(target=ask)
    reader.start()
    write()
    reader.join()
    assert missed == []


@pytest.mark.parametrize("name", KINDS)
def test_any_sequence_of_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add, replace, remove, expire, merge levels, compact, reopen, ask."""

    class Timed(Story):
        kind = KINDS[name]

        def __init__(self) -> None:
            super().__init__()
            clock = SimpleNamespace(time=lambda: self.time)
            monkeypatch.setattr("neardup.index.row_writer.time", clock)

    run_state_machine_as_test(
        Timed, settings=settings(max_examples=examples(60, 6), stateful_step_count=25)
    )


def test_ids_of_any_width_are_looked_up(kind: Kind) -> None:
    """A narrow one was read beyond its end."""
    index = kind.make(0)
    index.add(range(1000, 0, -1), range(1000))
    for type_ in (np.int8, np.uint16, np.int32, np.uint64):
        assert type_(7) in index
        assert index.number(type_(7)) == index.number(7) == 993
    kind.end(index)


@pytest.mark.parametrize("bits", [64, 128])
def test_one_query_also_finds_rows_behind_many_that_are_far(kind: Kind, bits: int) -> None:
    rng = random.Random(3)
    index, far = kind.make(3, bits=bits), [rng.getrandbits(bits) for _ in range(300)]
    index.add(range(300), far)
    assert [index.query(far[row] ^ 1) for row in (0, 127, 128, 299)] == [
        [(0, 1)], [(127, 1)], [(128, 1)], [(299, 1)]
    ]  # fmt: skip
    kind.end(index)


def test_ids_have_64_signed_bits(kind: Kind) -> None:
    ends = [-(2**63), 2**63 - 1]
    index = kind.make(0)
    index.add(ends, [1, 2])
    index.add(ends[1], 3)
    assert list(index) == [(ends[0], 1), (ends[1], 3)]
    kind.end(index)


@pytest.mark.parametrize("bits", [1, 8, 70])
def test_one_fingerprint_has_no_bit_beyond_those_of_the_index(kind: Kind, bits: int) -> None:
    """As many have none: what tables of blocks find would not be what a scan finds."""
    index, width = kind.make(0, bits=bits), -(-bits // 64)
    most = np.full(width, 2**64 - 1, np.uint64)
    most[-1] = 2 ** (bits % 64) - 1
    index.add("most", most)
    more = most.copy()
    more[-1] = 2 ** (bits % 64)
    for call in (lambda one: index.add("more", one), index.query, index.nearest):
        with pytest.raises(nd.UsageError, match="bits set beyond"):
            call(more)
    assert list(index) == [("most", 2**bits - 1)]
    kind.end(index)


STORES: dict[str, Any] = {"memory": MemoryStore, "durable": FolderStore}
"""The store of each of KINDS."""


def test_a_row_has_no_payload_of_one_that_was_undone(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = kind.make(0)
    store = next(each for name, each in STORES.items() if kind is KINDS[name])
    note = store.added_one

    def interrupted(self: Any, *arguments: Any) -> None:
        note(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(store, "added_one", interrupted)
        index.add("undone", 1, payloads="no")
    index.add("other", 2)
    index.commit()
    index = kind.reopened(index)
    assert (list(index), index.payload("other")) == ([("other", 2)], None)
    kind.end(index)


@pytest.mark.parametrize("step", ["added_one", "added", "removed"])
@pytest.mark.parametrize("rows", [1, 3, 700])
def test_an_interrupt_within_a_change_leaves_nothing_of_it(
    kind: Kind, step: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither rows, nor removals of the replaced ones, nor contents under other rows' numbers."""
    index = kind.make(0, store="text")
    before = {f"d{at}": at for at in range(4)}
    index.add(list(before), [*before.values()], ["old"] * 4, payloads=["old"] * 4)
    index.commit()
    index.add("d4", 4, "new", payloads="new")
    index.remove("d0")
    names, values = [*(f"d{at}" for at in range(2, rows + 2))], [*range(1000, 1000 + rows)]
    store = next(each for name, each in STORES.items() if kind is KINDS[name])
    note = getattr(store, step)

    def interrupted(self: Any, *arguments: Any) -> None:
        note(self, *arguments)
        raise KeyboardInterrupt

    def changes() -> None:
        if rows == 1:
            index.add(names[0], values[0], "no", payloads="no")
        else:
            index.add(names, values, ["no"] * rows, payloads=["no"] * rows)
        index.remove("d1")

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(store, step, interrupted)
        changes()
    old = dict(index)
    assert set(old) >= {"d1" if step == "removed" else "d4"}
    index.add(["e", "f"], [77, 78], ["e", "f"], payloads=[None, "f"])
    index.commit()
    index = kind.reopened(index)
    assert dict(index) == old | {"e": 77, "f": 78}
    assert index.check() == []
    for name, value in old.items():
        text = "no" if value >= 1000 else "new" if name == "d4" else "old"
        assert (index.content(name), index.payload(name)) == (text, text)
    assert [index.content(name) for name in "ef"] == ["e", "f"]
    assert index.payloads(["e", "f"]) == [None, "f"]
    kind.end(index)
