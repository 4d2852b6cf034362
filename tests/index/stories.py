"""A life of an index, against a dict: what every kind of index must answer."""

from __future__ import annotations

import contextlib
import copy
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import naive
import neardup as nd
from neardup.index.durable import folder_store

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


@dataclass(frozen=True)
class Kind:
    """A kind of index: how one is made, and what brings it back from where it is kept."""

    make: Callable[..., Any]
    reopened: Callable[[Any], Any] = lambda index: index
    end: Callable[[Any], None] = lambda _: None


MEMORY_DISK: Final = Path("/dev/shm")  # noqa: S108  # syncs cost nothing there


FOLDERS: Final = tempfile.mkdtemp(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)


def durable(*arguments: Any, **options: Any) -> nd.DurableIndex:
    """A new durable index."""
    return nd.DurableIndex.open(tempfile.mkdtemp(dir=FOLDERS), *arguments, **options)


def reopened(index: nd.DurableIndex) -> nd.DurableIndex:
    """Closed and opened again."""
    index.close()
    return nd.DurableIndex.open(index.path)


def end(index: nd.DurableIndex) -> None:
    """Close it and remove its folder, so that many lives need no more room than one."""
    index.close()
    shutil.rmtree(index.path)


KINDS: Final = {"memory": Kind(nd.Index), "durable": Kind(durable, reopened, end)}


def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows fill a tail, a batch, a level and the log."""
    for name in ("code_segments",):
        monkeypatch.setattr(f"neardup.index.{name}.TAIL_ROWS", 16)
    monkeypatch.setattr("neardup.index.code_segments.GROWTH", 4)
    monkeypatch.setattr("neardup.index.row_writer.SMALL_BATCH", 8)
    monkeypatch.setitem(folder_store.FLUSH_ROWS, "distance", 40)


def quiet(index: nd.DurableIndex) -> dict[str, Any]:
    """What an index says of itself once nothing goes on in the background."""
    while index.stats()["merging"]:
        time.sleep(0.001)
    return index.stats()


def agree(index: Any, oracle: naive.Index, queries: list[int], distance: int) -> None:
    """Compare every answer with the oracle's."""
    want = [oracle.query(query, distance) for query in queries]
    assert [index.query(query) for query in queries] == want
    limited = index.query(queries[0], limit=2)
    assert (list(limited), limited.total) == (want[0][:2], len(want[0]))
    rows = [(row, *hit) for row, hits in enumerate(want) for hit in hits]
    place = {identity: at for at, identity in enumerate(oracle.stored)}
    table = index.query_batch(queries)
    assert table.column_names == ["row", "id", "distance"]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == rows
    for limit in (0, 1, 3):
        few = index.query_batch(queries, limit=limit)
        first = [(row, *hit) for row, hits in enumerate(want) for hit in hits[:limit]]
        assert list(zip(*few.to_pydict().values(), strict=True)) == first
        assert few.schema.metadata[b"cut"] == f"{len(rows) - len(first)}".encode()
    oldest = [
        (row, *min(hits, key=lambda hit: place[hit[0]])) for row, hits in enumerate(want) if hits
    ]
    assert list(zip(*index.first_within(queries).to_pydict().values(), strict=True)) == oldest
    assert len(index) == len(oracle.stored)
    assert list(index) == [(identity, f) for identity, (f, _) in oracle.stored.items()]


def offered(table: Any) -> list[tuple[str, tuple[Any, Any] | None]]:
    """State and match of each row of what `add_new` returned."""
    rows = [list(row.values()) for row in table.to_pylist()]
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert all(row[1] == (row[4] in {"new", "replaced", "stored"}) for row in rows)
    return [(row[4], None if row[2] is None else (row[2], row[3])) for row in rows]


BATCH: Final = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=9)
"""Ids, some of which repeat, and bits of fingerprints, some of which are near others."""


class StoppedError(Exception):
    """Raised in the body of a transaction."""


class Story(RuleBasedStateMachine):
    """Any sequence of calls leaves an index that answers as the oracle does."""

    kind = KINDS["memory"]

    @initialize(
        bits=st.sampled_from([8, 64, 70]),
        distance=st.integers(0, 4),
        plan=st.sampled_from(["auto", "scan", "bits", "blocks", "multi"]),
        strings=st.booleans(),
    )
    def start(self, bits: int, distance: int, plan: str, strings: bool) -> None:
        name = f"multi:{distance + 2}" if plan == "multi" else plan
        self.index = self.kind.make(distance, bits=bits, plan=name)
        self.oracle, self.bits, self.distance = naive.Index(), bits, distance
        self.name: Callable[[int], Any] = str if strings else int
        self.time = 100.0

    def teardown(self) -> None:
        """Let it go: what patches the clock keeps the machine."""
        if hasattr(self, "index"):
            self.kind.end(self.index)

    def value(self, small: int) -> int:
        """A fingerprint with a few bits set, the top one too."""
        return (small & 0x7F) | (small >> 7) << (self.bits - 1)

    @rule(identity=st.integers(0, 60), small=st.integers(0, 255))
    def add(self, identity: int, small: int) -> None:
        self.time += 1
        self.index.add(self.name(identity), self.value(small))
        self.oracle.add(self.name(identity), self.value(small), self.time)

    @rule(first=st.integers(0, 60), smalls=st.lists(st.integers(0, 255), max_size=40))
    def add_many(self, first: int, smalls: list[int]) -> None:
        self.time += 1
        batch = [(self.name((first + i * i) % 61), self.value(x)) for i, x in enumerate(smalls)]
        self.index.add([identity for identity, _ in batch], [value for _, value in batch])
        for identity, value in batch:
            self.oracle.add(identity, value, self.time)

    @rule(
        batch=BATCH,
        empty=st.booleans(),
        stored=st.sampled_from(["replace", "keep"]),
    )
    def add_new(self, batch: list[tuple[int, int]], empty: bool, stored: Any) -> None:
        self.time += 1
        ids = [self.name(identity) for identity, _ in batch]
        values: list[int | None] = [self.value(small) for _, small in batch]
        if empty and values:
            values[-1] = None
        want = [
            naive.offer(self.oracle, *each, self.distance, stored=stored, now=self.time)
            for each in zip(ids, values, strict=True)
        ]
        assert offered(self.index.add_new(ids, values, stored=stored)) == want

    @rule(batch=BATCH, is_taken_back=st.booleans())
    def transaction(self, batch: list[tuple[int, int]], is_taken_back: bool) -> None:
        before = copy.deepcopy(self.oracle)
        with contextlib.suppress(StoppedError), self.index.transaction():
            self.add_new(batch, empty=True, stored="replace")
            for identity in sorted(self.oracle.stored)[:3]:
                self.index.remove(identity)
                del self.oracle.stored[identity]
            if is_taken_back:
                raise StoppedError
        if is_taken_back:
            self.oracle = before

    @rule(identity=st.integers(0, 60), small=st.integers(0, 255))
    def add_if_new(self, identity: int, small: int) -> None:
        self.time += 1
        name, value = self.name(identity), self.value(small)
        _, near = naive.offer(self.oracle, name, value, self.distance, now=self.time)
        assert self.index.add_if_new(name, value) == near

    @precondition(lambda self: self.oracle.stored)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        present = sorted(self.oracle.stored)
        chosen = data.draw(st.lists(st.sampled_from(present), unique=True, max_size=30))
        assert self.index.remove(chosen) == len(chosen)
        for identity in chosen:
            del self.oracle.stored[identity]

    @precondition(lambda self: self.oracle.stored)
    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        self.time += 1
        stored = sorted(self.oracle.stored)
        chosen = data.draw(st.lists(st.sampled_from(stored), min_size=1, max_size=9, unique=True))
        assert self.index.touch(chosen) == len(chosen)
        for identity in chosen:
            self.oracle.add(identity, self.oracle.stored[identity][0], self.time)

    @rule(first=st.integers(0, 60), smalls=st.lists(st.integers(0, 255), max_size=40))
    def merge_one_with_removed_rows(self, first: int, smalls: list[int]) -> None:
        self.time += 1
        other, theirs = nd.Index(self.distance, bits=self.bits), naive.Index()
        for i, small in enumerate(smalls):
            other.add(self.name((first + i * i) % 61), self.value(small))
            theirs.add(self.name((first + i * i) % 61), self.value(small), self.time)
        for identity in sorted(theirs.stored)[::2]:
            other.remove(identity)
            del theirs.stored[identity]
        self.index.merge(other)
        for identity, (value, at) in theirs.stored.items():
            self.oracle.add(identity, value, at)

    @rule(back=st.integers(0, 6))
    def expire(self, back: int) -> None:
        before = self.time - back
        assert self.index.expire(before) == self.oracle.expire(before)

    @rule()
    def compact(self) -> None:
        self.index.compact()

    @rule()
    def reopen(self) -> None:
        self.index = self.kind.reopened(self.index)

    @rule(smalls=st.lists(st.integers(0, 255), min_size=1, max_size=5))
    def query(self, smalls: list[int]) -> None:
        queries = [self.value(x) for x in smalls]
        agree(self.index, self.oracle, queries, self.distance)
        assert self.index.nearest(queries[0], 7) == self.oracle.query(queries[0], self.bits)[:7]

    @invariant()
    def holds_what_was_added(self) -> None:
        assert len(self.index) == len(self.oracle.stored)
        for identity in range(0, 61, 10):
            assert (self.name(identity) in self.index) == (
                self.name(identity) in self.oracle.stored
            )
