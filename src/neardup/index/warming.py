"""Every call of an index, made once on scratch indexes, so that no served call compiles."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["TEXTS", "call_everything"]

ROWS: Final = 2000
FEW: Final = 80
LONG: Final = 5000
"""Features of a document that is too long for the workspace of one query."""
TEXTS: Final = (
    "a text to begin with, in plain letters", "Ein zweiter Text: mit Umlauten wie ä, ö und ü",
    "第三个文本没有空格", "", " ".join(f"word{i} and {i * i}" for i in range(1000)),
)  # fmt: skip
"""Texts of each kind that takes a path of its own."""


Scratch: TypeAlias = Any
"""A BaseIndex, which this file may not import."""


def call_everything(
    make: Callable[[], Scratch], example: Callable[[int], Any], *, takes_texts: bool,
    id_kind: str | None,
) -> None:  # fmt: skip
    """Make every call of a kind of index, on indexes that are closed afterwards.

    Args:
        make: Makes an index without documents.
        example: The content of a document by its number: a fingerprint, or features.
        takes_texts: Whether it has a recipe.
        id_kind: Of the ids, "int" or "str"; None: both are used.
    """
    numbers = [example(row) for row in range(ROWS)]
    numbers[::8] = numbers[1::8]  # some are near each other
    order = np.random.default_rng(0).permutation(ROWS).tolist()
    named: dict[str, list[list[Any]]] = {
        "int": [list(range(ROWS)), order], "str": [[f"id {row}" for row in order]]
    }  # fmt: skip
    for ids in named[id_kind] if id_kind else [*named["int"], *named["str"]]:
        with make() as index:
            _write(index, ids, numbers)
            _ask(index, ids, numbers)
            index.remove(ids[:FEW:2])
            _ask(index, ids, numbers)
            index.commit()
            index.compact()
            _ask(index, ids, numbers)
            index.touch(ids[FEW : 2 * FEW])
            index.expire(time.time() - 1e9)
            index.add_new(ids[:FEW], numbers[:FEW], _contents(index, FEW), stored="keep")
            index.commit()
            index.compact()
        if takes_texts:
            with make() as index:
                _write(index, ids[: len(TEXTS)], list(TEXTS), contents=False)
                _ask(index, ids[1:3], list(TEXTS))
                index.query_batch(pa.array(TEXTS))


def _write(index: Scratch, ids: list[Any], documents: list[Any], *, contents: bool = True) -> None:
    """Add and offer documents in every way; all are stored afterwards."""
    kept = _contents(index, len(documents)) if contents else None
    content = kept and kept[0]
    index.add(ids[0], documents[0], content)
    for at in range(2):
        index.offer(ids[at], documents[at], content=content, payload={"at": at})
    index.offer(ids[0], documents[1], content=content)
    half = len(documents) // 2
    index.add_new(ids[:half], documents[:half], kept and kept[:half])
    shared = [documents[0]] * half  # near stored ones, and each other
    index.add_new(ids[:half], shared, kept and kept[:half], stored="keep")
    index.offer_many(index.prepare(ids[half:], documents[half:], kept and kept[half:]))
    index.commit()
    index.add(ids, documents, kept)
    index.add(ids[: len(ids) // 8], documents[: len(ids) // 8], kept and kept[: len(ids) // 8])
    index.commit()


def _contents(index: Scratch, count: int) -> list[Any] | None:
    """Contents for documents that are not texts, as the index stores them; None if none."""
    if index.store == "text":
        return ["a text"] * count
    if index.by == "similarity" or index.store == "none":
        return None
    return [np.arange(3, dtype=np.uint64)] * count


def _ask(index: Scratch, ids: Sequence[Any], documents: list[Any]) -> None:
    """Query the index and its views in every way."""
    with index.snapshot() as seen, index.snapshot(committed=True) as committed:
        for each in (index, seen, committed):
            each.query(documents[0])
            each.query(documents[0], limit=1)
            each.query_batch(documents[:FEW])
            each.query_batch(documents[:FEW], limit=1, workers=2)
            each.first_within(documents[:FEW])
            for by in [None, "cosine"] if index.by == "similarity" else [None]:
                for n in (1, len(index) + 1):
                    # Weights by frequencies that are not loaded, or by counts, are refused.
                    with contextlib.suppress(NeardupError):
                        each.nearest(documents[0], n, by)
                        each.nearest_batch(documents[:2], n, by)
            present = [name for name in ids[:FEW] if name in each]
            each.times(present)
            each.payloads(present)
            each.contents(present)
    if index.by == "similarity":
        index.query(np.arange(LONG, dtype=np.uint64))
        few = [np.arange(5, dtype=np.uint64)] * 2
        index.query_batch(few)
        index.query_batch(pa.array(few))
