"""Queries of an index of either kind: near documents, and its statistics."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from neardup.hamming.search.plan_comparison import PlanTable
    from neardup.index.base_index import BaseIndex
    from neardup.index.durable.durable_index import DurableIndex
    from neardup.index.index_plans import SimilarPlanTable

__all__ = [
    "SIMILAR_HITS",
    "Answer",
    "IndexStats",
    "Reach",
    "Related",
    "ask_one",
    "ask_texts",
    "check_by",
    "check_reach",
    "index_stats",
    "related_to",
]

MOST_SHOWN, WIDTH = 1000, 60
"""Characters of a text that are read, and shown."""
SIMILAR_HITS: Final = pa.schema(
    [("query", pa.large_string()), ("id", pa.large_string()), ("similarity", pa.float64())]
)


@dataclass(frozen=True, slots=True)
class Reach:
    """Options of a query; by default it returns all within the index's distance or similarity.

    A smaller `distance` or a larger `similarity` narrows it. With `csv_safe`, cells of a CSV table
    that a spreadsheet would compute get a quote ('). `nearest` returns that number of the closest
    documents instead, at any distance; in an index by similarity also `by` "cosine".
    """

    distance: int | None = None
    limit: int | None = None
    similarity: float | None = None
    csv_safe: bool = False
    nearest: int | None = None
    by: str = "similarity"


def ask_texts(
    index: BaseIndex, ids: Any, texts: Any, reach: Reach, counts: dict[str, int]
) -> pa.Table:
    """The documents similar to each text: the columns of SIMILAR_HITS; adds to `counts`."""
    sets = index.sets_of(texts)
    if reach.nearest is None:
        hits = index.query_batch(sets, reach.similarity, reach.limit)
        counts["cut"] += int(hits.schema.metadata[b"cut"])
    else:
        hits = index.nearest_batch(sets, reach.nearest, reach.by)
    rows = hits["row"].to_numpy()
    counts["queries"] += sets.size
    counts["empty"] += int(np.count_nonzero(np.diff(sets.offsets) == 0))
    counts["matched"] += len(np.unique(rows))
    counts["hits"] += len(rows)
    named = ids.take(pa.array(rows)).cast(pa.large_string())
    columns = [named, hits["id"].cast(pa.large_string()), hits["similarity"]]
    return pa.table(columns, schema=SIMILAR_HITS)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one query.

    Args:
        hits: (id, distance) or (id, similarity), the closest first.
        total: The number of all hits; None if a fixed number was requested.
        what: "distance" or "similarity".
        is_empty: Whether the text has no tokens.
    """

    hits: list[tuple[Any, Any]]
    total: int | None
    what: str
    is_empty: bool = False


def ask_one(index: DurableIndex, query: str | int, reach: Reach) -> Answer:
    """Query an index of either kind with one text or fingerprint.

    Raises:
        UsageError: For a fingerprint or a distance with an index by similarity, or the reverse.
    """
    check_reach(index, reach)
    nearest = reach.nearest
    if index.by == "similarity":
        if not isinstance(query, str):
            raise UsageError(
                f"--fingerprint is {query}, but the index is by similarity of features: use"
                " --query-text"
            )
        features, what = index.sets_of([query]).features, "similarity"
        is_empty = not len(features)
        if nearest is not None:
            return Answer(list(index.nearest(features, nearest)), None, what, is_empty)
        similar = index.query(features, reach.similarity, reach.limit)
        return Answer(list(similar), similar.total, what, is_empty)
    code = index.fingerprint_of(query) if isinstance(query, str) else query
    if nearest is not None:
        return Answer(index.nearest(code, nearest), None, "distance", code is None)
    hits = index.query(code, reach.distance, reach.limit)
    return Answer(hits, hits.total, "distance", code is None)


@dataclass(frozen=True, slots=True)
class Related:
    """A stored document that is near another.

    Args:
        identity: Its id.
        value: Its distance or similarity.
        what: Which of them.
        words: The beginning of its text, if texts are stored.
    """

    identity: str | int
    value: float
    what: str
    words: str | None


def related_to(index: DurableIndex, identity: Any, n: int, by: str) -> list[Related]:
    """The stored documents nearest to a stored one, without itself.

    Raises:
        DataError: If it is not stored.
        UsageError: For a cosine of an index by distance.
    """
    what = "similarity" if index.by == "similarity" else "distance"
    with index.snapshot() as seen:
        try:
            if seen.by == "similarity":
                hits: list[Any] = seen.nearest(seen.features(identity), n + 1, by)
            else:
                check_by(index, by)
                hits = seen.nearest(seen.fingerprints_by_id([identity])[0], n + 1)
        except KeyError:
            raise DataError(f"{index.path}: no document has the id {identity!r}") from None
        hits = [hit for hit in hits if hit[0] != identity][:n]
        has_texts = index.store == "text" and hits
        texts = seen.contents([hit[0] for hit in hits]) if has_texts else [None] * len(hits)
    return [
        Related(name, value, what, None if text is None else _first_words(text))
        for (name, value), text in zip(hits, texts, strict=True)
    ]


def check_by(index: Any, by: str) -> None:
    """Refuse a ranking other than by distance for an index by distance.

    Raises:
        UsageError: If it is refused.
    """
    if index.by == "distance" and by != "similarity":
        raise UsageError(
            f"--by is {by}, but the index is by distance, up to {index.distance}: make one with"
            " --similarity"
        )


def _first_words(text: str) -> str:
    return textwrap.shorten(text[:MOST_SHOWN], WIDTH, placeholder=" ...")


def check_reach(index: Any, reach: Reach) -> None:
    """Refuse a distance for an index by similarity, and a similarity for one by distance.

    Raises:
        UsageError: If it is refused.
    """
    if index.by == "similarity":
        if reach.distance is not None:
            raise UsageError(
                f"--distance is {reach.distance}, but the index is by similarity, from"
                f" {index.similarity}: use --similarity"
            )
    elif reach.similarity is not None:
        raise UsageError(
            f"--similarity is {reach.similarity}, but the index is by distance, up to"
            f" {index.distance}: use --distance, or make one with --similarity"
        )


SAMPLE_ROWS: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class IndexStats:
    """The statistics of an index, and the costs of the ways to search it.

    Args:
        stats: From DurableIndex.stats.
        plans: Compared for its number of documents; None for an empty index.
    """

    stats: dict[str, Any]
    plans: PlanTable | SimilarPlanTable | None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {**self.stats, "plans": self.plans.to_pylist() if self.plans else []}

    def __str__(self) -> str:
        """Lines for people."""
        stats = self.stats
        by_distance = "similarity" not in stats
        lines = [
            f"documents    {stats['documents']:,}, and {stats['removed']:,} removed, to compact",
            *(_by_distance(stats) if by_distance else _by_similarity(stats)),
            f"ids          {_IDS[stats['ids']]}",
            f"stored       {_stored(stats)}",
            *([] if stats["extract"] is None else [f"of HTML      {stats['extract']}"]),
            f"on disk      {stats['bytes_on_disk']:,} bytes, {stats['log_rows']:,} rows in the log",
        ]
        lines += [
            f"part {i:<7} {part['rows']:,} rows, {part['removed']:,} removed: {_made_of(part)}"
            for i, part in enumerate(stats["segments"], 1)
        ]
        if stats["tail_rows"]:
            scanned = ", which queries scan" if by_distance else ""
            lines.append(f"newest       {stats['tail_rows']:,} rows{scanned}")
        return "\n".join([*lines, *(["", str(self.plans)] if self.plans else [])])


def _by_distance(stats: dict[str, Any]) -> list[str]:
    return [
        f"fingerprints {stats['bits']} bits, recipe {stats['recipe'] or 'none'}",
        f"queries      within {stats['distance']} bits, plan {stats['plan']}",
    ]


def _by_similarity(stats: dict[str, Any]) -> list[str]:
    return [
        f"features     recipe {stats['recipe'] or 'none'}",
        f"queries      {stats['measure']} from {stats['similarity']}",
    ]


def _made_of(part: dict[str, Any]) -> str:
    """The content of a segment of either kind, as text."""
    if "sets" in part:
        return f"{part['sets']:,} different documents, {part['features']:,} features"
    return (
        f"plan {part['plan']}, {part['tables']} tables of {part['key_bits']} bits,"
        f" {part['table_bytes']:,} bytes"
    )


_IDS: Final = {None: "none yet", "int": "whole numbers", "str": "strings"}
_KEPT: Final = {"none": "", "features": "feature hashes", "text": "texts"}


def _stored(stats: dict[str, Any]) -> str:
    """The kind of stored contents, as text, with their bytes if they are not in rows."""
    rows, kept = "fingerprints", _KEPT[stats["store"]]
    if "similarity" in stats:
        rows, kept = "feature hashes", "texts" if kept == "texts" else ""
    return f"{rows} and {kept}, {stats['content_bytes']:,} bytes" if kept else rows


def index_stats(index: DurableIndex) -> IndexStats:
    """The statistics of an index, and a comparison of the plans for its fingerprints.

    Args:
        index: The index.
    """
    from neardup.hamming.search.plan_comparison import plan
    from neardup.index.index_plans import FEATURES, plan_parts

    stats, count = index.stats(), len(index)
    if not count:
        return IndexStats(stats, None)
    if index.by == "similarity":
        stored = stats["segments"]
        sets = sum(part["sets"] for part in stored)
        features = sum(part["features"] for part in stored) / sets if sets else FEATURES
        parts = [part["rows"] for part in stored] + [stats["tail_rows"]] * bool(stats["tail_rows"])
        workload = features, float(index.similarity), index.measure
        texts = stats["content_bytes"] / count if stats["store"] == "text" else 0.0
        return IndexStats(stats, plan_parts(parts, *workload, texts))
    step = max(1, count // SAMPLE_ROWS)
    codes = np.concatenate([codes[::step] for _, codes in index.batches()])
    reach = index.distance
    return IndexStats(stats, plan(count, reach, index.bits, fingerprints=codes))
