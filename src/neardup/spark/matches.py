"""The matches of documents: keys or blocks go to tasks by a plan made from counts.

By similarity: counts of features, keys under one order, pairs that share one, each measured where
the features of both are sent. By distance: each fingerprint once for each block. Of a key or block
that many have, every two pieces meet in a task of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.spark.engine import Route
from neardup.spark.workers import document_keys, key_pairs, measuring, near
from neardup.spark.workers.documents import DOCUMENTS
from neardup.spark.workers.partition_rows import in_turn, sent_in_turn

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import Match
    from neardup.spark.engine import Engine, Settings
    from neardup.spark.engine_session import Frame, Worker

__all__ = ["Matches", "measured", "with_measures"]

LEAST_CELL_BITS: Final = 10
MOST_CELL_BITS: Final = 24
MOST_PIECES: Final = 1 << 10
_NAMES: Final = [name.split()[0] for name in DOCUMENTS.split(", ")]


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches among DOCUMENTS that stand for themselves, or some of them.

    Args:
        engine: Where.
        documents: DOCUMENTS that were kept, among them those that stand for themselves.
        standing: These, lazily.
        rows: Their keys (KEYS), or by distance their codes (DOCUMENTS).
        settings: When two match.
        loads: The number of keys of each cell, by similarity.
    """

    engine: Engine
    documents: Frame
    standing: Frame
    rows: Frame
    settings: Settings
    loads: Any = None

    @classmethod
    def of(cls, engine: Engine, documents: Frame, standing: Frame, settings: Settings) -> Matches:
        """The matches of documents, whose keys are chosen under one order for all; runs."""
        if not settings.by_features:
            codes = engine.keep(standing.select(*_NAMES), "standing", DOCUMENTS)
            return cls(engine, documents, codes, codes, settings)
        chosen = standing.select("number", "within", "features", "codes")
        (row,) = documents.selectExpr("sum(octet_length(features)) AS bytes").collect()
        cells = _cells(engine, chosen, int(row["bytes"] or 0))
        step = partial(document_keys.keys_of, cells=cells, match=settings.match)
        keys = engine.step(chosen, step, document_keys.KEYS, keep="keys")
        loads = _loads(engine, keys.select("key"))
        return cls(engine, documents, standing, keys, settings, loads)

    def among(self, numbers: Frame | None = None) -> Frame:
        """Every pair that matches, of all documents or of those numbers: EDGES, lazily."""
        rows = self.rows
        if numbers is not None:
            rows = rows.join(numbers.select("number"), "number", "left_semi")
        return self._found(rows)

    def between(self, roles: Frame) -> Frame:
        """The matches of leaders with other documents: EDGES, leaders on the left.

        Args:
            roles: Of `number` and `leads`.
        """
        return self._found(self.rows.join(roles, "number"))

    def some(self, labels: Frame | None, seen: int, most: int) -> tuple[Frame, bool]:
        """Matches of documents with different labels, by similarity: at most some of a key.

        Args:
            labels: Of `number` and `label`; a document without one has its own number. None: all.
            seen: `most` of the round before; 0 in the first.
            most: How many others a document meets under a key.

        Returns:
            EDGES, kept, and whether there were more pairs.
        """
        rows = self.rows
        if labels is not None:
            columns = [name.split()[0] for name in document_keys.KEYS.split(", ")]
            rows = rows.join(labels, "number", "left").selectExpr(
                *columns, "coalesce(label, number) AS label"
            )
        pairs = self._pairs(rows, most=most, seen=seen)
        more = pairs.where(f"left = {key_pairs.MORE}").count() > 0
        pairs = pairs.where(f"left != {key_pairs.MORE}")
        edges = measured(
            self.engine, pairs, self.documents, self.settings.match, self.settings.measure
        )
        return self.engine.keep(edges, "some", measuring.EDGES), more

    def links(self) -> Frame:
        """Some matches by distance that join all documents of each group: PAIRS, kept."""
        links = self._near(
            self.rows, partial(near.near_links, settings=self.settings), key_pairs.PAIRS
        )
        return self.engine.keep(links, "near", key_pairs.PAIRS)

    def candidates_of(self, numbers: Frame | None = None) -> int:
        """The most pairs of heavy keys, by similarity.

        Keys that are not cut in pieces yet count as well, for 2^14 documents of one make 2^27
        pairs; cells that are as full as most, because light keys share them, do not.
        """
        loads = self.loads
        if numbers is not None:
            rows = self.rows.join(numbers.select("number"), "number", "left_semi")
            loads = _loads(self.engine, rows.select("key"))
        least = max(self.engine.limits.of_key >> 3, int(8 * loads.mean()) if loads.size else 0)
        heavy = loads[loads > least]
        return sum(load * (load - 1) // 2 for load in heavy.tolist())

    def _found(self, rows: Frame) -> Frame:
        settings, engine = self.settings, self.engine
        if settings.by_features:
            pairs = self._pairs(rows)
            return measured(engine, pairs, self.documents, settings.match, settings.measure)
        step = partial(near.near_pairs, settings=settings, leads="leads" in rows.columns)
        return self._near(rows, step, measuring.EDGES)

    def _pairs(self, rows: Frame, **listed: Any) -> Frame:
        """The pairs of rows of KEYS that may match, each once: PAIRS, kept."""
        engine, labels = self.engine, ["label"] * ("label" in rows.columns)
        is_all = rows is self.rows or bool(labels)
        loads = self.loads if is_all else _loads(engine, rows.select("key"))
        plan = _heavy(loads, engine.limits.of_key)
        carried = (*document_keys.CARRIED, *labels)
        leads = "leads" in rows.columns
        step = partial(key_pairs.candidates, match=self.settings.match, leads=leads, **listed)
        to: Route | str = "key"
        if len(plan.cells) or leads:
            schema = ", ".join([document_keys.POSTINGS, *(f"{x} long" for x in labels)])
            to = Route(partial(document_keys.routed, heavy=plan, carried=carried), schema)
        else:
            rows = rows.selectExpr("0 AS side", "key", *carried)
        pairs = engine.step(rows, step, key_pairs.PAIRS, to=to)
        return engine.keep(pairs, "pairs", key_pairs.PAIRS)

    def _near(self, rows: Frame, step: Worker, schema: str) -> Frame:
        settings, engine = self.settings, self.engine
        carried = near.carried_of(settings)
        sent = f"p int, side int, {near.blocks_schema(carried)}"
        passes = (settings.match.distance or 0) + 1
        count = self.documents.count()
        rows = rows.select("codes", *(x for x in (*carried, "leads") if x in rows.columns))
        at_once = max(1, min(passes, engine.limits.blocks // max(1, count)))
        frames = []
        for first in range(0, passes, at_once):
            chosen = range(first, min(first + at_once, passes))
            blocks = partial(near.blocks_of, settings=settings, blocks=chosen)
            plan = document_keys.NONE_HEAVY
            if count > engine.limits.of_block:
                plan = _heavy(_loads(engine, rows, blocks), engine.limits.of_block)
            sender = partial(document_keys.routed, heavy=plan, carried=carried)
            to = Route(partial(sent_in_turn, steps=(blocks,), last=sender), sent)
            keep = "near" if at_once < passes else ""
            frames.append(engine.step(rows, step, schema, to=to, keep=keep))
        return reduce(lambda one, other: one.unionByName(other), frames)


def measured(
    engine: Engine, pairs: Frame, documents: Frame, match: Match | None, measure: str
) -> Frame:
    """The EDGES of pairs, measured where the features of their documents are sent.

    Args:
        engine: Where.
        pairs: Of `left` and `right`.
        documents: DOCUMENTS.
        match: Give only pairs that match; None: all.
        measure: Of the similarity; "" for none.
    """
    p = f"CAST(pmod(xxhash64(right), {engine.parts}) AS int) AS p"
    requests = pairs.selectExpr(p, "left AS number").unionByName(
        pairs.selectExpr(p, "right AS number")
    )
    sent = engine.small(requests.distinct(), 2 * pairs.count()).join(documents, "number")
    columns = ("score", "within", "codes", "features")
    sent = sent.selectExpr("p", "number", "CAST(NULL AS long) AS right", *columns)
    kinds = ("double", "string", "binary", "binary")
    nulls = [f"CAST(NULL AS {k}) AS {c}" for c, k in zip(columns, kinds, strict=True)]
    both = sent.unionByName(pairs.selectExpr(p, "left AS number", "right", *nulls))
    step = partial(measuring.measure, match=match, measure_name=measure)
    return engine.step(both, step, measuring.EDGES, to="p")


def with_measures(engine: Engine, decisions: Frame, documents: Frame, measure: str) -> Frame:
    """DECISIONS with the distance and the similarity of each dropped document to the kept one."""
    pairs = decisions.where("number != kept_by").selectExpr("number AS left", "kept_by AS right")
    pairs = engine.keep(pairs, "pairs", key_pairs.PAIRS)
    measures = measured(engine, pairs, documents, None, measure).selectExpr(
        "left AS number", "distance", "similarity"
    )
    return decisions.drop("distance", "similarity").join(measures, "number", "left")


def _cells(engine: Engine, documents: Frame, nbytes: int) -> bytes:
    """The document frequency of each feature, in hashed cells: a byte for each.

    Args:
        engine: Where.
        documents: DOCUMENTS.
        nbytes: Of their features, about.
    """
    bits = (nbytes // 4).bit_length()
    bits = max(LEAST_CELL_BITS, min(MOST_CELL_BITS, bits))
    counted = engine.step(
        documents, partial(document_keys.cells_of, bits=bits), document_keys.CELLS
    )
    merge = partial(document_keys.merged_cells, bits=bits)
    rows = engine.step(counted, merge, document_keys.CELLS, to="one").collect()
    return bytes(rows[0]["cells"]) if rows else bytes(1 << bits)


def _loads(engine: Engine, rows: Frame, *first: Worker) -> Any:
    """The number of rows with the keys of each cell, after steps that make them; int64."""
    counted = engine.step(
        rows, partial(in_turn, steps=(*first, document_keys.loads_of)), document_keys.LOADS
    )
    loads = engine.step(
        counted, document_keys.merged_loads, document_keys.LOADS, to="one"
    ).collect()
    return np.frombuffer(bytes(loads[0]["loads"]), np.int64) if loads else np.zeros(0, np.int64)


def _heavy(loads: Any, most: int) -> document_keys.Heavy:
    cells = np.flatnonzero(loads > most)
    return document_keys.Heavy(cells, np.minimum(-(-loads[cells] // most), MOST_PIECES))
