"""Small values beside documents: in each kind of index, through all that may happen to it."""

from __future__ import annotations

import pickle
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import neardup as nd
from neardup.errors import UsageError
from neardup.index.durable import folder_store
from stories import FOLDERS, small_segments
from suite import examples

KINDS: Final = {
    "distance": {"distance": 0},
    "similarity": {"similarity": 1.0},
    "texts": {"distance": 0, "store": "text"},
}
MEMORY: Final = ["distance", "similarity"]
JSON: Final = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.recursive(
        st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=5)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=4,
    ),
)


def made(kind: str, *, durable: bool) -> Any:
    if durable:
        return nd.DurableIndex.open(tempfile.mkdtemp(dir=FOLDERS), **KINDS[kind])
    return nd.Index(**KINDS[kind])


def document(kind: str, value: int) -> Any:
    return np.array([value, 1 << 40], np.uint64) if kind == "similarity" else value


def put(index: Any, kind: str, ids: list[int], payloads: Any) -> None:
    documents: Any = [document(kind, 1000 + each) for each in ids]
    more = {"contents": [f"text {each}" for each in ids]} if kind == "texts" else {}
    index.add(ids, documents, payloads=payloads, **more)


EACH: Final = pytest.mark.parametrize(
    ("kind", "durable"), [(each, True) for each in KINDS] + [(each, False) for each in MEMORY]
)


class Story(RuleBasedStateMachine):
    """A life of an index with payloads, beside a dict."""

    @initialize(which=st.sampled_from([(x, True) for x in KINDS] + [(x, False) for x in MEMORY]))
    def begin(self, which: tuple[str, bool]) -> None:
        self.kind, self.is_durable = which
        self.index = made(self.kind, durable=self.is_durable)
        self.expected: dict[int, Any] = {}
        self.committed: dict[int, Any] = {}
        self.views: list[tuple[Any, dict[int, Any]]] = []

    @rule(rows=st.dictionaries(st.integers(0, 40), JSON, min_size=1, max_size=30))
    def add(self, rows: dict[int, Any]) -> None:
        put(self.index, self.kind, list(rows), list(rows.values()))
        for identity, payload in rows.items():
            self.expected.pop(identity, None)
            self.expected[identity] = payload

    @rule(identity=st.integers(0, 40))
    def add_without(self, identity: int) -> None:
        put(self.index, self.kind, [identity], None)
        self.expected.pop(identity, None)
        self.expected[identity] = None

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.expected:
            gone = data.draw(st.sets(st.sampled_from(sorted(self.expected))))
            self.index.remove(list(gone))
            for each in gone:
                del self.expected[each]

    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        if self.expected:
            ids = data.draw(st.lists(st.sampled_from(sorted(self.expected)), unique=True))
            self.index.touch(ids)
            for each in ids:
                self.expected[each] = self.expected.pop(each)

    @rule()
    def commit(self) -> None:
        self.index.commit()
        self.committed = dict(self.expected)

    @rule()
    def roll_back(self) -> None:
        if self.is_durable:
            self.index.rollback()
            self.expected = dict(self.committed)

    @rule()
    def compact(self) -> None:
        self.index.compact()
        self.committed = dict(self.expected)

    @rule()
    def look(self) -> None:
        self.views.append((self.index.snapshot(), dict(self.expected)))

    @rule()
    def keep(self) -> None:
        """Bring it back from where it is kept."""
        self.committed = dict(self.expected)
        if self.is_durable:
            for view, _ in self.views:
                view.close()
            self.views = []
            self.index.close()
            assert self.index.check() == []
            self.index = nd.DurableIndex.open(self.index.path)
            return
        file = tempfile.mkdtemp(dir=FOLDERS) + "/index"
        self.index.save(file)
        agrees(nd.Index.load(file), self.expected)
        self.index = pickle.loads(pickle.dumps(self.index))  # noqa: S301

    @rule()
    def merge(self) -> None:
        for durable in {self.is_durable, True}:
            other = made(self.kind, durable=durable)
            other.add(-1, document(self.kind, 7), payloads="mine", **self._content())
            other.merge(self.index)
            agrees(other, {-1: "mine"} | self.expected)
            other.close()

    @rule()
    def back_up(self) -> None:
        if self.is_durable:
            target = Path(tempfile.mkdtemp(dir=FOLDERS)) / "copy"
            self.index.backup(target)
            with nd.DurableIndex.open(target, readonly=True) as copy:
                assert copy.check() == []
                agrees(copy, self.committed)

    @invariant()
    def all_agree(self) -> None:
        if hasattr(self, "index"):
            agrees(self.index, self.expected)
            for view, expected in self.views:
                agrees(view, expected)

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.index.close()

    def _content(self) -> dict[str, Any]:
        return {"contents": "a text"} if self.kind == "texts" else {}


def agrees(index: Any, expected: dict[int, Any]) -> None:
    assert [identity for identity, _ in index] == list(expected)
    assert index.payloads(list(expected)) == list(expected.values())


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_segments(monkeypatch)
    monkeypatch.setattr("neardup.index.set_segments.TAIL_ROWS", 12)
    monkeypatch.setattr("neardup.index.set_segments.LEVEL_ROWS", 12)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "similarity", 40)


Story.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=25)
TestStory = Story.TestCase


@EACH
def test_payloads_go_with_the_documents_that_are_stored(kind: str, *, durable: bool) -> None:
    if kind == "texts":
        pytest.skip("takes contents")
    with made(kind, durable=durable) as index:
        assert index.offer(1, document(kind, 5), payload={"seen": 1}).is_new
        assert not index.offer(2, document(kind, 5), payload={"seen": 2}).is_new
        assert index.add_if_new(3, document(kind, 6), payload=b"\0\xff") is None
        documents: Any = [document(kind, 5), document(kind, 7), None]
        table = index.add_new([4, 5, 6], documents, payloads=pa.array(["x", "y", "z"]))
        assert table["is_new"].to_pylist() == [False, True, False]
        assert index.payloads([1, 3, 5]) == [{"seen": 1}, b"\0\xff", "y"]
        assert index.payload(5) == "y"
        with pytest.raises(KeyError):
            index.payload(2)


@EACH
def test_what_cannot_be_kept_is_refused_and_nothing_is_stored(kind: str, *, durable: bool) -> None:
    with made(kind, durable=durable) as index:
        for payload, why in [
            (object(), "is <object .* which cannot be kept"),
            (2**64, "cannot be kept"),
            ("a" * 4095, "of 1 has 4,097 bytes, and the most is 4,096"),
            (b"a" * 4096, "of 1 has 4,097 bytes"),
        ]:
            with pytest.raises(UsageError, match=why):
                put(index, kind, [1], [payload])
        with pytest.raises(UsageError, match="1 ids for 2 payloads: give one for each id"):
            put(index, kind, [1], [1, 2])
        with pytest.raises(UsageError, match="payloads are str: give a list"):
            put(index, kind, [1, 2], "ab")
        assert len(index) == 0
        put(index, kind, [1, 2], ["a" * 4094, b"a" * 4095])
        assert index.payloads([1, 2]) == ["a" * 4094, b"a" * 4095]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_payload_is_noticed(kind: str) -> None:
    with made(kind, durable=True) as index:
        put(index, kind, [1, 2], ["a payload to find", None])
    [log] = index.path.glob("log-*.mdb")
    value = bytearray(log.read_bytes())
    value[value.index(b"payload to find")] ^= 1
    log.write_bytes(value)
    with nd.DurableIndex.open(index.path, readonly=True) as index:
        with pytest.raises(nd.DataError, match=r"content of row 0 .* is damaged"):
            index.payload(1)
        assert "1 contents are damaged" in index.check()[0]


@pytest.mark.parametrize("kind", MEMORY)
def test_snapshots_beside_a_writer_see_one_moment(kind: str) -> None:
    index, stopped = made(kind, durable=False), threading.Event()
    ids = list(range(20))
    put(index, kind, ids, [0] * 20)

    def write() -> None:
        for turn in range(1, 400):
            put(index, kind, ids, [turn] * 20)
        stopped.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stopped.is_set():
        view = index.snapshot()
        for result in (index.payloads(ids), view.payloads(ids)):
            assert len(set(result)) == 1
            assert result[0] is not None
    writer.join()
