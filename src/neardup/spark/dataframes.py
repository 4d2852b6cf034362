"""The calls on DataFrames of PySpark, classic and Connect, lazily but for what a plan needs."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from neardup.documents.markup import warn_of_markup
from neardup.errors import DataError, UsageError, suggests_names, warn_of_doubt
from neardup.fingerprinting.recipe import recipe_of
from neardup.pipeline.rule_of import rule_of
from neardup.pipeline.run.rule import Choice, Rule
from neardup.spark.decision_plan import decide, edges_of, named, with_ids
from neardup.spark.engine import Engine, Settings
from neardup.spark.engine_messages import worker_errors
from neardup.spark.engine_session import mapped
from neardup.spark.exported_index import numbered_reference, question_of_file, reference_of_file
from neardup.spark.workers.documents import (
    DOCUMENTS,
    codes_to_documents,
    fingerprinted,
    texts_to_documents,
)
from neardup.spark.workers.equal_documents import PAST
from neardup.spark.workers.file_inputs import Shipped

if TYPE_CHECKING:
    from os import PathLike

    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe
    from neardup.spark.engine_session import Frame

__all__ = ["dedup", "fingerprints", "in_order", "pairs", "similar_pairs"]

SAMPLED_OF_RANGE: Final = 64
"""The sampled ids of each range that decide where it ends."""
ORDER: Final = "neardup.order"
FIRST_TEXTS: Final = 100
_INTEGERS: Final = {"tinyint", "smallint", "int", "bigint"}


def fingerprints(df: Frame, text: str = "text", recipe: Recipe | None = None) -> Frame:
    """Fingerprint a column of texts, lazily.

    Args:
        df: A DataFrame of PySpark.
        text: Its column with the texts; null is a text without tokens.
        recipe: The recipe, up to 64 bits; by default Recipe().

    Returns:
        The DataFrame with a column `fingerprint`, long: the 64 bits, as signed numbers have them;
        null for a text without tokens.

    Raises:
        UsageError: For a missing column, one of that name that is there, or a wider recipe.
    """
    _check_columns(df, text)
    chosen = recipe_of(recipe)
    if chosen.idf is not None and not chosen.idf.startswith("jieba:"):
        raise UsageError(f"idf is {chosen.idf}: the engine has no such table; use dedup, or jieba")
    if chosen.bits > 64 or "fingerprint" in df.columns:
        raise UsageError(
            f"a column fingerprint of {chosen.bits} bits: use 64 bits or fewer, and a DataFrame"
            " without a column of that name"
        )
    schema = df.selectExpr("*", "CAST(NULL AS long) AS fingerprint").schema
    return mapped(df, partial(fingerprinted, text=text, recipe=Shipped(chosen.to_json())), schema)


@suggests_names
def pairs(
    df: Frame,
    distance: int = 3,
    *,
    fingerprint: str = "fingerprint",
    id: str = "id",  # noqa: A002
    bits: int = 64,
    work: str | None = None,
    parts: int | None = None,
) -> Frame:
    """Find every pair of fingerprints within a distance: none missed, each once.

    Args:
        df: A DataFrame of PySpark.
        distance: Most bits in which they differ.
        fingerprint: Column of longs, as `fingerprints` makes it; null matches nothing.
        id: Column that names rows; each value once.
        bits: Width of a fingerprint, up to 64.
        work: As for `dedup`.
        parts: As for `dedup`.

    Returns:
        DataFrame of left, right (ids, the lower first) and distance.

    Raises:
        UsageError: For a missing column, one of another type, or a distance out of range.
        DataError: For ids that are null, or not unique.
    """
    settings = replace(Settings.of(Rule(distance=distance), Choice()), bits=bits)
    _check_columns(df, fingerprint, id)
    kind = _kind_of(df, fingerprint)
    if kind not in _INTEGERS:
        raise UsageError(
            f"column {fingerprint!r} is {kind}: give fingerprints as longs, as `fingerprints` makes"
            " them"
        )
    with worker_errors():
        engine = _engine(df, work, parts)
        columns = f"CAST({_quoted(fingerprint)} AS long) AS fingerprint"
        names, rows = _numbered(engine, df, id, None, [columns])
        documents = engine.step(rows, codes_to_documents, DOCUMENTS)
        return _named_pairs(engine, documents, names, settings).drop("similarity")


@suggests_names
def similar_pairs(
    df: Frame,
    similarity: float = 0.8,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002
    measure: str = "jaccard",
    recipe: Recipe | None = None,
    work: str | None = None,
    parts: int | None = None,
) -> Frame:
    """Find every pair of texts whose features are similar enough; each is verified, none is missed.

    Args:
        df: A DataFrame of PySpark.
        similarity: Least similarity, above 0, up to 1.
        text: Its column with the texts.
        id: Column that names rows; each value once.
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How to tokenise, hash and fingerprint; by default Recipe().
        work: As for `dedup`.
        parts: As for `dedup`.

    Returns:
        DataFrame of left, right (ids, the lower first), distance and similarity.

    Raises:
        UsageError: For a missing column or a value out of range.
        DataError: For ids that are null, or not unique.
    """
    rule = Rule(similarity, measure=measure, recipe=recipe_of(recipe))
    _check_columns(df, text, id)
    with worker_errors():
        engine = _engine(df, work, parts)
        _look_at_texts(df, text)
        names, documents = _documents(engine, df, rule, Choice(), (text, id, None, None))
        return _named_pairs(engine, documents, names, Settings.of(rule, Choice()))


@suggests_names
def dedup(  # noqa: PLR0913
    df: Frame,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002
    order_by: str | None = None,
    similarity: float | None = None,
    distance: int | None = None,
    verify: float | None = None,
    measure: str | None = None,
    recipe: Recipe | None = None,
    question: Question | None = None,
    keep: str = "first",
    date_format: str | None = None,
    policy: str = "greedy",
    within: str | None = None,
    against: Frame | str | PathLike[str] | None = None,
    work: str | None = None,
    parts: int | None = None,
) -> Frame:
    """Decide about every row, as `neardup.dedup` does about the rows in that order.

    Args:
        df: A DataFrame of PySpark, classic or Connect.
        text: Column with the texts; null is a text without tokens.
        id: Column that names rows; each value once.
        order_by: Column whose order is the order of the documents, ties by id; by default the id,
            which for text is t10 before t2.
        similarity: As for `neardup.dedup`, like all that follow up to `within`.
        distance: Exact mode instead.
        verify: With a distance: least similarity as well.
        measure: The measure of similarity.
        recipe: The recipe; by default Recipe().
        question: All three instead, as one value.
        keep: "first", "last", "longest", "max:FIELD" or "min:FIELD" for numbers, "newest:FIELD" or
            "oldest:FIELD" for dates.
        date_format: The form of dates that are texts, such as "%d.%m.%Y"; by default ISO 8601.
        policy: "greedy" or "components".
        within: Column that documents must have in common.
        against: Documents that came before, and stay: a DataFrame with the same columns, in the
            order of its ids, or the path of a file of `export_index`, whose question decides the
            parts of one that are not named. What matches one of them is dropped for the first that
            it matches.
        work: Folder that the engine and its workers see, for what is written between the steps,
            and where the result is read from; by default a temporary one of this machine, which is
            removed when the process ends.
        parts: Partitions; by default the number that the documents fill, at most that of
            spark.sql.shuffle.partitions.

    Returns:
        DataFrame of id, kept (boolean), kept_id, distance, similarity (both null unless dropped;
        similarity is null without features) and cluster (the id that names the group). With policy
        "components" also via: the next document on a way of matches to the one kept. The metadata
        of the field id name the columns of the order, first to last, under "neardup.order".

    Warns:
        DoubtfulResultWarning: If most of the first texts begin like HTML; and without `order_by`
            for ids that are text of several lengths.

    Raises:
        UsageError: For a missing column, or options that are wrong.
        DataError: For ids that are null, or not unique.
        NeardupError: If the engine fails.
    """
    choice = Choice(keep, policy, date_format=date_format)
    stored = None
    if isinstance(against, str | os.PathLike):
        stored = partial(_rule_of_file, os.fspath(against))
    rule = rule_of(question, similarity, distance, verify, measure, recipe, stored)
    settings = Settings.of(rule, choice, within)
    _check_columns(df, text, id, *(x for x in (order_by, within, choice.number) if x))
    with worker_errors():
        engine = _engine(df, work, parts)
        _look_at_texts(df, text)
        names, documents = _documents(engine, df, rule, choice, (text, id, order_by, within))
        documents = engine.keep(documents, "documents", DOCUMENTS)
        ids = _ids_of(names, documents)
        if order_by is None:
            _look_at_order(ids, id)
        reference = None
        if against is not None:
            reference = _reference_of(engine, against, rule, choice, (text, id, None, within))
        decided = decide(
            engine, documents, settings, None if reference is None else reference[1]
        ).decided
        if reference is not None:
            names = ids.unionByName(reference[0])
        with_via = policy == "components"
        decisions = named(decided, names, with_via=with_via)
        columns = ["id", "coalesce(NOT dropped, true) AS kept", "coalesce(kept, id) AS kept_id",
                   "distance", "similarity", "coalesce(cluster, id) AS cluster"]  # fmt: skip
        columns += ["via"] * with_via
        order = [x for x in (order_by, id) if x is not None]
        rows = ids.join(decisions, "number", "left").selectExpr(*columns)
        return rows.withMetadata("id", {ORDER: order})


def _rule_of_file(path: str) -> Rule | None:
    own = question_of_file(path)
    return None if own is None else Rule(own.similarity, None, None, own.measure, own.recipe)


def _reference_of(
    engine: Engine,
    against: Frame | str | PathLike[str],
    rule: Rule,
    choice: Choice,
    names: tuple[str, str, str | None, str | None],
) -> tuple[Frame, Frame]:
    if choice.policy != "greedy":
        raise UsageError("policy components joins all that matches: against requires greedy")
    if isinstance(against, str | os.PathLike):
        if names[3] is not None:
            raise UsageError(f"within {names[3]!r}: an exported index does not know that column")
        return reference_of_file(engine, os.fspath(against), rule)
    _check_columns(against, names[0], names[1], *(x for x in names[3:] if x))
    own, documents = _documents(engine, against, rule, Choice(), names)
    documents = engine.keep(documents, "past", DOCUMENTS)
    return numbered_reference(_ids_of(own, documents), documents)


def _engine(df: Frame, work: str | None, parts: int | None) -> Engine:
    session = df.sparkSession
    if work is None:
        work = tempfile.mkdtemp(prefix="neardup-")
        atexit.register(shutil.rmtree, work, ignore_errors=True)
    most = int(session.conf.get("spark.sql.shuffle.partitions", "8")) if parts is None else parts
    if most < 1:
        raise UsageError(f"parts is {most}: use 1 or more")
    engine = Engine(session, work, most)
    engine.is_free = parts is None
    return engine


def _check_columns(df: Frame, *names: str) -> None:
    for name in names:
        if name not in df.columns:
            raise UsageError(f"no column {name!r}: there are {', '.join(df.columns)}")


def _kind_of(df: Frame, name: str) -> str:
    kind: str = next(x.dataType.simpleString() for x in df.schema.fields if x.name == name)
    return kind


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _documents(
    engine: Engine,
    df: Frame,
    rule: Rule,
    choice: Choice,
    names: tuple[str, str, str | None, str | None],
) -> tuple[Frame | str, Frame]:
    """What `with_ids` takes, and DOCUMENTS, lazily."""
    text, id_, order_by, within = names
    columns = [f"CAST({_quoted(text)} AS string) AS text", _measured(df, choice)]
    columns.append(f"CAST({'NULL' if within is None else _quoted(within)} AS string) AS within")
    ids, rows = _numbered(engine, df, id_, order_by, columns)
    step = partial(
        texts_to_documents,
        recipe=engine.ship(rule.recipe),
        keep=choice.keep,
        order=choice.order,
        by_features=rule.by_features,
    )
    return ids, engine.step(rows, step, DOCUMENTS)


def _ids_of(names: Frame | str, documents: Frame) -> Frame:
    """The `id` of each `number`, of what `with_ids` takes and kept DOCUMENTS."""
    if isinstance(names, str):
        return documents.selectExpr("number", f"CAST(number AS {names}) AS id")
    return names


def _measured(df: Frame, choice: Choice) -> str:
    """The column that decides the priority: dates unchanged, other values as numbers.

    Raises:
        UsageError: If it has another type.
    """
    name = choice.number
    if name is None:
        return "CAST(NULL AS double) AS measured"
    kind = _kind_of(df, name)
    if kind in {"date", "timestamp", "timestamp_ntz"} or (choice.dates and kind == "string"):
        return f"{_quoted(name)} AS measured"
    if choice.dates:
        raise UsageError(
            f"column {name!r} is {kind}: newest and oldest compare dates; use max or min"
        )
    return f"CAST({_quoted(name)} AS double) AS measured"


def _look_at_texts(df: Frame, text: str) -> None:
    """Warn if most of the first texts begin like HTML."""
    first = df.selectExpr(f"CAST({_quoted(text)} AS string) AS text").limit(FIRST_TEXTS)
    warn_of_markup(*first.toArrow()["text"].cast(pa.large_string()).drop_null().chunks)


def _look_at_order(ids: Frame, name: str) -> None:
    """Warn if ids are text, and not so that numbers in them are in order."""
    if _kind_of(ids, "id") != "string":
        return
    (size,) = ids.selectExpr("min(length(id)) AS least", "max(length(id)) AS most").collect()
    if size["least"] != size["most"]:
        warn_of_doubt(
            f"the documents are in the order of column {name!r}, which is text (t10 comes before"
            f" t2): pass order_by= with the column of another order, or {name!r} if that is meant"
        )


def _numbered(
    engine: Engine, df: Frame, id_: str, order_by: str | None, columns: list[str]
) -> tuple[Frame | str, Frame]:
    """What `with_ids` takes, and the rows with their numbers.

    Integers that are not negative are numbers themselves, in their own order; others are numbered,
    see `in_order`.
    """
    name, kind = _quoted(id_), _kind_of(df, id_)
    is_whole = order_by is None and kind in _INTEGERS
    (row,) = df.selectExpr(
        "count(*) AS rows", f"count({name}) AS ids", f"count(DISTINCT {name}) AS distinct",
        *([f"min({name}) AS least", f"max({name}) AS most"] if is_whole else ()),
    ).collect()  # fmt: skip
    if row["ids"] < row["rows"]:
        raise DataError(
            f"column {id_!r} is null in {row['rows'] - row['ids']:,} of {row['rows']:,} rows:"
            " give every row an id"
        )
    if row["distinct"] < row["ids"]:
        raise DataError(
            f"column {id_!r} has {row['distinct']:,} values for {row['rows']:,} rows: make it"
            " unique, or drop the repeated rows first"
        )
    columns = ["CAST(NULL AS string) AS address", *columns]
    if is_whole and row["rows"] and row["least"] >= 0 and row["most"] < PAST:
        return kind, df.selectExpr(f"CAST({name} AS long) AS number", *columns)
    places = [] if order_by is None else [f"{_quoted(order_by)} AS place"]
    keys = df.selectExpr(f"{name} AS id", *places)
    numbers = in_order(engine, keys, row["rows"], f"id {kind}")
    return numbers, df.selectExpr(f"{name} AS id", *columns).join(numbers, "id").drop("id")


def in_order(engine: Engine, keys: Frame, count: int, id_: str) -> Frame:
    """The ids of rows of `id`, and of `place` if it decides before them, as (id, number), kept.

    The order is cut in ranges of about `limits.ids` rows, and each is numbered in a task. How many
    rows come before a range is counted in what was written. As ids are unique, it makes no
    difference where the cuts are, nor whether a task runs twice.
    """
    columns = ["place", "id"] if "place" in keys.columns else ["id"]
    bounds = _bounds(engine, keys, columns, count)
    ranged = keys.selectExpr("*", "0 AS part") if bounds is None else _cut(keys, bounds, columns)
    places = (
        f"row_number() OVER (PARTITION BY part ORDER BY {', '.join(columns)}"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"  # Sail has no ranges of binary
    )
    ranked = engine.keep(
        ranged.selectExpr("id", "part", f"CAST({places} AS long) AS number"),
        "numbers",
        f"{id_}, part int, number long",
    )
    if bounds is None:
        return ranked.drop("part")
    sizes = sorted((row["part"], row["count"]) for row in ranked.groupBy("part").count().collect())
    before = accumulate((size for _, size in sizes), initial=0)
    starts = [(part, start) for (part, _), start in zip(sizes, before, strict=False)]
    first = engine.session.createDataFrame(starts, "part int, before long")
    return ranked.join(first, "part").selectExpr("id", "before + number AS number")


def _bounds(engine: Engine, keys: Frame, columns: list[str], count: int) -> pa.Table | None:
    """The bounds of the ranges of an order, of a sample by hash; None for a single range."""
    ranges = -(-count // engine.limits.ids)
    if ranges <= 1:
        return None
    step = max(1, count // (ranges * SAMPLED_OF_RANGE))
    sample = keys.where(f"pmod(xxhash64(id), {step}) = 0").orderBy(*columns).toArrow()
    ranges = max(1, min(ranges, len(sample)))
    cuts = [len(sample) * i // ranges for i in range(1, ranges)]
    bounds: dict[str, pa.Array] = {"part": pa.array(range(ranges), pa.int32())}
    for name in columns:
        bounds[f"low_{name}"] = sample[name].take(pa.array([None, *cuts], pa.int64()))
        bounds[f"high_{name}"] = sample[name].take(pa.array([*cuts, None], pa.int64()))
    return pa.table(bounds)


def _cut(keys: Frame, bounds: pa.Table, columns: list[str]) -> Frame:
    """The rows, each with its `part`."""
    return keys.crossJoin(keys.sparkSession.createDataFrame(bounds)).where(
        f"(part = 0 OR NOT {_before('low', columns)})"
        f" AND (part = {len(bounds) - 1} OR {_before('high', columns)})"
    )


def _before(end: str, columns: list[str]) -> str:
    """Whether a row comes before one end of a range; null places come first."""
    by_id = f"id < {end}_id"
    if columns == ["id"]:
        return f"({by_id})"
    return (
        f"coalesce(place < {end}_place OR (place IS NULL AND {end}_place IS NOT NULL)"
        f" OR (place <=> {end}_place AND {by_id}), false)"
    )


def _named_pairs(engine: Engine, documents: Frame, names: Frame | str, settings: Settings) -> Frame:
    edges = edges_of(engine, documents, settings)
    for side in ("left", "right"):
        edges = with_ids(edges, names, side, f"{side}_id")
    return edges.selectExpr("left_id AS left", "right_id AS right", "distance", "similarity")
