"""Which documents match: keys or blocks sent to tasks that a plan made from counts has cut.

By similarity: counts of features, keys under one order, pairs that share one, each measured where
the features of both are sent. By distance: each fingerprint once for each block. Of a key or block
that many have, every two pieces meet in a task of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.spark.session import mapped
from neardup.spark.workers import candidates, keys, measuring, near
from neardup.spark.workers.documents import DOCUMENTS
from neardup.spark.workers.tables import in_turn

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import Match
    from neardup.spark.engine import Engine, Settings

__all__ = ["Matches"]

LEAST_CELL_BITS: Final = 10
MOST_CELL_BITS: Final = 24
MOST_PIECES: Final = 1 << 10
_NAMES: Final = [name.split()[0] for name in DOCUMENTS.split(", ")]


@dataclass(frozen=True, slots=True)
class Matches:
    """Finds the matches among DOCUMENTS that stand for themselves, or some of them.

    Args:
        engine: Where.
        documents: DOCUMENTS that were kept.
        rows: Their keys (KEYS), or by distance the documents again.
        settings: When two match.
    """

    engine: Engine
    documents: Any
    rows: Any
    settings: Settings

    @classmethod
    def of(cls, engine: Engine, documents: Any, settings: Settings) -> Matches:
        """Choose the keys of documents, under one order for all; runs."""
        documents = engine.keep(documents.select(*_NAMES), "standing", DOCUMENTS)
        if not settings.by_features:
            return cls(engine, documents, documents, settings)
        step = partial(keys.keys_of, cells=_cells(documents), match=settings.match)
        return cls(
            engine, documents, engine.keep(mapped(documents, step, keys.KEYS), "keys", keys.KEYS),
            settings,
        )  # fmt: skip

    def among(self, numbers: Any = None) -> Any:
        """Every pair that matches, of all documents or of those numbers: EDGES, lazily."""
        rows = self.rows
        if numbers is not None:
            rows = rows.join(numbers.select("number"), "number", "left_semi")
        return self._found(rows)

    def between(self, roles: Any) -> Any:
        """Every match of a document that leads with one that does not: EDGES, the leader left.

        Args:
            roles: Of `number` and `leads`.
        """
        return self._found(self.rows.join(roles, "number"))

    def candidates_of(self, numbers: Any = None) -> int:
        """How many pairs heavy keys alone would bring about, at most; by similarity.

        Keys that are not cut in pieces yet count as well, for 2^14 documents of one make 2^27
        pairs; cells that are as full as most, because light keys share them, do not.
        """
        rows = self.rows
        if numbers is not None:
            rows = rows.join(numbers.select("number"), "number", "left_semi")
        loads = _loads(rows.select("key"))
        least = max(self.engine.limits.of_key >> 3, int(8 * loads.mean()) if loads.size else 0)
        heavy = loads[loads > least]
        return sum(load * (load - 1) // 2 for load in heavy.tolist())

    def _found(self, rows: Any) -> Any:
        settings, engine, leads = self.settings, self.engine, "leads" in rows.columns
        if settings.by_features:
            plan = _heavy(rows.select("key"), engine.limits.of_key)
            step = partial(keys.routed, heavy=plan, parts=engine.parts, carried=keys.CARRIED)
            sent = engine.exchange(mapped(rows, step, keys.POSTINGS))
            listed = mapped(
                sent,
                partial(candidates.candidates, match=settings.match, leads=leads),
                candidates.PAIRS,
            )
            pairs = engine.keep(listed.distinct(), "pairs", candidates.PAIRS)
            return measured(engine, pairs, self.documents, settings.match, settings.measure)
        return self._near(rows, leads=leads)

    def _near(self, rows: Any, *, leads: bool) -> Any:
        settings, engine = self.settings, self.engine
        carried = near.carried_of(settings)
        schema, passes = near.blocks_schema(carried), (settings.match.distance or 0) + 1
        count = self.documents.count()
        rows = rows.select("codes", *(x for x in (*carried, "leads") if x in rows.columns))
        at_once = max(1, min(passes, engine.limits.blocks // max(1, count)))
        found = []
        for first in range(0, passes, at_once):
            chosen = range(first, min(first + at_once, passes))
            step = partial(near.blocks_of, settings=settings, blocks=chosen)
            plan = keys.NONE_HEAVY
            if count > engine.limits.of_block:
                plan = _heavy(rows, engine.limits.of_block, step)
            routed = partial(keys.routed, heavy=plan, parts=engine.parts, carried=carried)
            both = partial(in_turn, steps=(step, routed))
            sent = engine.exchange(mapped(rows, both, f"p int, side int, {schema}"))
            step = partial(near.near_pairs, settings=settings, leads=leads)
            found.append(mapped(sent, step, measuring.EDGES))
            if at_once < passes:
                found[-1] = engine.keep(found[-1], "near", measuring.EDGES)
        return reduce(lambda one, other: one.unionByName(other), found)


def measured(engine: Engine, pairs: Any, documents: Any, match: Match | None, measure: str) -> Any:
    """Measure pairs where the documents that they name are sent: EDGES.

    Args:
        engine: Where.
        pairs: Of `left` and `right`.
        documents: DOCUMENTS.
        match: Give only pairs that match; None: all.
        measure: Of the similarity; "" for none.
    """
    wanted = mapped(pairs, partial(measuring.requests, parts=engine.parts), measuring.REQUESTS)
    sent = wanted.distinct().join(documents, "number")
    columns = ("score", "within", "codes", "features")
    sent = sent.selectExpr("p", "number", "CAST(NULL AS long) AS right", *columns)
    asked = mapped(pairs, partial(measuring.asked, parts=engine.parts), measuring.ASKED)
    kinds = ("double", "string", "binary", "binary")
    nulls = [f"CAST(NULL AS {k}) AS {c}" for c, k in zip(columns, kinds, strict=True)]
    both = sent.unionByName(asked.selectExpr("p", "number", "right", *nulls))
    step = partial(measuring.measure, match=match, measure_name=measure)
    return mapped(engine.exchange(both), step, measuring.EDGES)


def _cells(documents: Any) -> bytes:
    """In how many documents each feature is, in hashed cells: a byte for each."""
    (row,) = documents.selectExpr("sum(octet_length(features)) AS bytes").collect()
    bits = (int(row["bytes"] or 0) // 4).bit_length()
    bits = max(LEAST_CELL_BITS, min(MOST_CELL_BITS, bits))
    counted = mapped(documents, partial(keys.cells_of, bits=bits), keys.CELLS)
    merged = mapped(counted.repartition(1), partial(keys.merged_cells, bits=bits), keys.CELLS)
    rows = merged.collect()
    return bytes(rows[0]["cells"]) if rows else bytes(1 << bits)


def _loads(rows: Any, *first: Any) -> Any:
    """How many rows there are of the keys of each cell, after steps that make them; int64."""
    counted = mapped(rows, partial(in_turn, steps=(*first, keys.loads_of)), keys.LOADS)
    found = mapped(counted.repartition(1), keys.merged_loads, keys.LOADS).collect()
    return np.frombuffer(bytes(found[0]["loads"]), np.int64) if found else np.zeros(0, np.int64)


def _heavy(rows: Any, most: int, *first: Any) -> keys.Heavy:
    loads = _loads(rows, *first)
    cells = np.flatnonzero(loads > most)
    return keys.Heavy(cells, np.minimum(-(-loads[cells] // most), MOST_PIECES))
