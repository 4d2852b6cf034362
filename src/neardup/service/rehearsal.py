"""Every kind of call once, on an index that is thrown away: no request compiles anything."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any, Final

from neardup.fingerprinting.explanation import compare, explain
from neardup.index import DurableIndex

if TYPE_CHECKING:
    from neardup.index.hits import Id

__all__ = ["rehearse"]

ROWS: Final = 700
"""More than go to the tail at once, so that segments are searched as well."""


def rehearse(index: DurableIndex) -> None:
    """Make every call that a request can lead to, on scratch indexes like this one.

    Args:
        index: What they are like: kind, settings and recipe.
    """
    makers: tuple[Any, ...] = (int, "{:06}".format)
    if index.id_kind is not None:
        makers = (int,) if index.id_kind == "int" else ("{:06}".format,)
    for make in makers:
        with (
            tempfile.TemporaryDirectory(prefix="neardup-") as folder,
            _like(index, folder) as scratch,
        ):
            _calls(scratch, [make(row) for row in range(ROWS + 8)])
    if index.recipe is not None:
        text = "the lighthouse is lit again after a year of repairs"
        compare(text, f"{text} today", index.recipe)
        explain(text, None, index.recipe)
        explain(text, f"{text} today", index.recipe)


def _like(index: DurableIndex, folder: str) -> DurableIndex:
    if index.by == "similarity":
        return DurableIndex.open(
            folder, similarity=index.similarity, measure=index.measure, recipe=index.recipe
        )
    return DurableIndex.open(folder, index.distance, index.bits, index.recipe)


def _calls(scratch: DurableIndex, ids: list[Id]) -> None:
    for documents in _documents(scratch):
        first, rest = ids[:4], ids[4:]
        for few in (first[:1], first):
            with scratch.transaction() as writer:
                given = documents[: len(few)]
                writer.offer_many(writer.prepare(few, given, bad="report"))
                writer.offer_many(writer.prepare(few, list(reversed(given)), bad="report"))
                writer.touch(few[:1])
        with scratch.transaction() as writer:
            writer.add(rest, documents[4 : 4 + len(rest)])
            writer.add(first[:2], documents[:2])
        with scratch.transaction() as writer:
            writer.offer_many(writer.prepare(first, documents[2:6], bad="report"))
            writer.remove([first[0], rest[0]], missing="ignore")
            writer.expire(0.0)
        for document in documents[:3]:
            scratch.query(document, limit=10, committed=True)
        with scratch.snapshot(committed=True) as seen:
            for count in (1, ROWS + 20):
                seen.nearest(documents[0], count)
        scratch.remove(ids, missing="ignore")


def _documents(scratch: DurableIndex) -> list[list[Any]]:
    """Texts, and what stands for them."""
    found: list[list[Any]] = []
    if scratch.by == "similarity":
        found.append([[*range(row, row + 9)] for row in range(ROWS + 8)])
    else:
        found.append([row * 0x9E3779B97F4A7C15 % 2**scratch.bits for row in range(ROWS + 8)])
    if scratch.recipe is not None:
        words = [f"word{row % 97} and word{row % 89} of word{row}" for row in range(ROWS + 8)]
        found.append([f"a text of some words {each}, {each} again" for each in words])
    return found
