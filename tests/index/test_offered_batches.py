"""A batch that is offered is answered as its documents one after the other would be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import DataError
from neardup.index import code_segments, row_writer, set_segments
from stories import durable, reopened
from suite import examples, needs_jit

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "memory, distance": (nd.Index, {"distance": 2, "bits": 8}),
    "memory, wide": (nd.Index, {"distance": 3, "bits": 70}),
    "memory, similarity": (nd.Index, {"similarity": 0.5}),
    "memory, containment": (nd.Index, {"similarity": 0.7, "measure": "containment"}),
    "durable, distance": (durable, {"distance": 2, "bits": 8}),
    "durable, similarity": (durable, {"similarity": 0.5}),
}
codes = st.one_of(st.none(), st.integers(0, 255))
sets = st.one_of(st.none(), st.sets(st.integers(0, 14), max_size=8).map(sorted))
ids = st.one_of(st.integers(0, 12), st.integers(100, 10_000))
"""Some repeat in a batch and after it, others are new."""


def batches(documents: Any) -> Any:
    """Batches of (id, document), with the choice for stored ids."""
    return st.lists(
        st.tuples(
            st.lists(st.tuples(ids, documents), max_size=40),
            st.sampled_from(["replace", "replace", "keep", "error"]),
            st.sets(st.integers(0, 12), max_size=3),
        ),
        max_size=4,
    )


def one_by_one(index: Any, rows: list[tuple[Any, Any]], stored: Any) -> list[Any]:
    """The oracle: a loop. It ends behind the first error."""
    answers: list[Any] = []
    for name, document in rows:
        try:
            answers.append(index.offer(name, document, stored=stored, payload=len(answers)))
        except DataError as error:
            return [*answers, str(error)]
    return answers


def at_once(index: Any, rows: list[tuple[Any, Any]], stored: Any) -> list[Any]:
    """What is tested; after an error only that is known, and what is stored."""
    names, documents = [row[0] for row in rows], [row[1] for row in rows]
    try:
        return index.offer_many(names, documents, stored=stored, payloads=list(range(len(rows))))
    except DataError as error:
        return [str(error)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strings", [False, True])
def test_a_batch_is_answered_as_a_loop(
    monkeypatch: pytest.MonkeyPatch, kind: str, strings: bool
) -> None:
    for module in (code_segments, set_segments):
        monkeypatch.setattr(module, "TAIL_ROWS", 7)
    monkeypatch.setattr(row_writer, "CUT", 11)
    make, options = KINDS[kind]

    @settings(max_examples=examples(60, 6))
    @given(batches(codes if "distance" in options else sets))
    def check(story: Any) -> None:
        loop, many = make(**options), make(**options)
        for rows, stored, removed in story:
            named = [(f"d{name}" if strings else name, document) for name, document in rows]
            if "distance" not in options:
                named = [(n, d and np.array(d, np.uint64)) for n, d in named]
            want, got = one_by_one(loop, named, stored), at_once(many, named, stored)
            assert got == (want[-1:] if want and isinstance(want[-1], str) else want)
            names = [f"d{each}" for each in removed] if strings else list(removed)
            assert loop.remove(names, missing="ignore") == many.remove(names, missing="ignore")
            if make is durable:
                many = reopened(many)
        assert [(n, np.asarray(d).tolist()) for n, d in many] == [
            (n, np.asarray(d).tolist()) for n, d in loop
        ]
        stored_ids = [n for n, _ in loop]
        assert many.payloads(stored_ids) == loop.payloads(stored_ids)
        counters = [each.stats()["counters"] for each in (loop, many)]
        if make is not durable:
            assert counters[0] == counters[1]

    check()


@needs_jit
@pytest.mark.parametrize("options", [{"similarity": 0.8}, {"distance": 3}], ids=str)
def test_a_large_batch_of_twins_is_answered_as_a_loop(options: dict[str, Any]) -> None:
    """More than a cut and than a tail holds, at the sizes that the product has."""
    random = np.random.default_rng(7)
    count = 12_000
    names = [f"https://example.org/{n}" for n in random.permutation(count)]
    names[4000:8000:7] = names[:4000:7]
    if "distance" in options:
        documents: list[Any] = random.integers(0, 1 << 62, count).tolist()
        documents[::5] = [each ^ 1 for each in documents[1::5]]
    else:
        documents = [random.integers(0, 1 << 40, 20).astype(np.uint64) for _ in range(count)]
        for row in range(0, count, 5):
            documents[row] = documents[row + 1][:18]
    loop, many = nd.Index(**options), nd.Index(**options)
    want = [loop.offer(*row) for row in zip(names, documents, strict=True)]
    assert many.offer_many(names, documents) == want
    assert {each.state for each in want} == {"new", "seen", "replaced"}
    assert [n for n, _ in many] == [n for n, _ in loop]
