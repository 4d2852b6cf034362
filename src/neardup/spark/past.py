"""Documents that came before: a DataFrame of texts, or an index as a Parquet file.

The file has `place` (long, from the first that was added), `id`, `codes` and `features` (uint64s as
bytes, little-endian; features are null where the index keeps none), and the recipe in its metadata,
with the similarity and the measure of an index by similarity.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.documents import OutputSet, ReadOptions
from neardup.errors import DataError, FileError, RecipeError, UsageError
from neardup.fingerprinting.feature_sets import fingerprints_of_sets
from neardup.fingerprinting.recipe import Recipe
from neardup.index.durable.index import DurableIndex
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.matching import Matching
from neardup.spark.session import mapped
from neardup.spark.workers.classes import PAST
from neardup.spark.workers.documents import DOCUMENTS
from neardup.spark.workers.tables import binary, flat, sorted_sets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from neardup.spark.engine import Engine

__all__ = ["export_index", "import_index", "numbered_past", "past_of_file", "write_past"]

SCHEMA: Final = pa.schema(
    [("place", pa.int64()), ("id", pa.string()), ("codes", pa.binary()), ("features", pa.binary())]
)
_COLUMNS: Final = "place long, id string, codes binary, features binary"
_RECIPE: Final = b"neardup:recipe"
_BITS: Final = b"neardup:bits"
_SIMILARITY: Final = b"neardup:similarity"
_MEASURE: Final = b"neardup:measure"


def export_index(index: str | PathLike[str], path: str | PathLike[str]) -> int:
    """Write a durable index as a Parquet file, for `dedup(against=)` on Spark.

    Args:
        index: Its folder.
        path: The file, which appears when it is whole.

    Returns:
        How many documents it has.

    Raises:
        UsageError: If it has no recipe, or is by similarity and its recipe's fingerprints cannot be
            told from features alone.
        FileError, DataError: As `DurableIndex.open`.
    """
    with DurableIndex.open(index, create=False, readonly=True) as opened:
        kind: Any = opened
        recipe = opened.recipe
        if recipe is None:
            raise UsageError(f"{index} has no recipe: export an index that was made with one")
        if hasattr(kind, "similarity"):
            matching = Matching(kind.similarity, measure=kind.measure, recipe=recipe)
        else:
            matching = Matching(distance=min(kind.distance, recipe.bits - 1), recipe=recipe)
    known = ReferenceIndex(Against(str(index)), matching, ReadOptions())
    try:
        return write_past(known, recipe, str(path))
    finally:
        known.close()


def write_past(known: ReferenceIndex, recipe: Recipe, path: str) -> int:
    """Write the documents of an index as SCHEMA; some are held at a time.

    Raises:
        UsageError: As `export_index`.
    """
    told = {_RECIPE: recipe.to_json().encode(), _BITS: str(recipe.bits).encode()}
    if known.is_similar:
        index: Any = known.index
        told |= {_SIMILARITY: repr(index.similarity).encode(), _MEASURE: index.measure.encode()}
    schema, place = SCHEMA.with_metadata(told), 0
    with OutputSet() as outputs:
        file = outputs.create(path)
        with pq.ParquetWriter(pa.PythonFile(file, "w"), schema) as writer:
            for names, codes, features in known.documents():
                count = len(names)
                data = pa.nulls(count, pa.binary())
                if features is not None:
                    ends = np.append(0, np.cumsum([len(each) for each in features]))
                    none = np.zeros(0, np.uint64)
                    data = binary(np.concatenate([none, *features]), ends)
                columns = [
                    pa.array(np.arange(place, place + count)),
                    names.cast(pa.string()),
                    _codes_of(codes, recipe),
                    data,
                ]
                writer.write_table(pa.table(columns, schema=schema))
                place += count
        outputs.commit()
    return place


def _codes_of(documents: Any, recipe: Recipe) -> pa.Array:
    """The fingerprints of documents, uint64 (n, width), or of their Sets, none of them empty."""
    codes = documents
    if not isinstance(documents, np.ndarray):
        codes = fingerprints_of_sets(documents.features, documents.offsets, recipe)
    count, width = codes.shape
    if not width:
        raise UsageError(
            f"the recipe's fingerprints ({recipe.digest}) cannot be told from the features that an"
            " index by similarity keeps, and on Spark they are needed: use --engine local, or an"
            " index made with --distance and --store features"
        )
    return binary(codes.reshape(-1), np.arange(count + 1) * width)


def import_index(path: str | PathLike[str], index: str | PathLike[str], distance: int = 3) -> int:
    """Make a durable index of a file that `export_index` wrote.

    Args:
        path: The file.
        index: Folder that is not there yet.
        distance: Largest distance of a query, for one by distance.

    Returns:
        How many documents it has.

    Raises:
        DataError: If the file is none of these.
        FileError: If the file cannot be read, or the folder exists.
    """
    told = _told(str(path))
    recipe = Recipe.from_json(told[_RECIPE])
    with pq.ParquetFile(path) as file:
        batches = file.iter_batches()
        first = next(batches, None)
        is_similar = _SIMILARITY in told
        kind: dict[str, Any] = {"distance": distance, "store": "features"}
        if is_similar:
            kind = {"similarity": float(told[_SIMILARITY]), "measure": told[_MEASURE].decode()}
        elif first is None or first.column("features").null_count:
            kind["store"] = "none"
        with DurableIndex.create(index, recipe=recipe, **kind) as made:
            for batch in chain([] if first is None else [first], batches):
                features: list[Any] = []
                if is_similar or kind["store"] == "features":
                    values, ends = flat(batch.column("features"))
                    features = np.split(values, ends[1:-1])
                if is_similar:
                    made.add(batch.column("id"), features)
                    continue
                codes = flat(batch.column("codes"))[0].reshape(len(batch), -1)
                made.add(batch.column("id"), codes, *([features] if features else []))
            made.commit()
            return len(made)


def past_of_file(engine: Engine, path: str, matching: Matching) -> tuple[Any, Any]:
    """Read a file of `export_index`: (number, id), and DOCUMENTS.

    Raises:
        RecipeError: If its recipe is another.
        UsageError: If it has no features, which the matching needs.
    """
    recipe = _recipe_of(path)
    if recipe.digest != matching.recipe.digest:
        raise RecipeError(
            f"{path} has recipe {recipe.digest}, the run {matching.recipe.digest}: fingerprints of"
            " two recipes cannot be compared; give the options that the index was made with"
        )
    rows = engine.session.read.schema(_COLUMNS).parquet(path)
    if matching.by_features and rows.where("features IS NULL").limit(1).count():
        raise UsageError(
            f"{path} keeps fingerprints only, from which no similarity can be computed: give a"
            " distance without verify, or export an index that was made with --store features"
        )
    documents = mapped(rows.drop("id"), past_to_documents, DOCUMENTS)
    ids = rows.selectExpr(f"place + {PAST} AS number", "id")
    return ids, engine.keep(documents, "past", DOCUMENTS)


def past_to_documents(batches: Any) -> Iterator[pa.RecordBatch]:
    """Make rows of `place`, `codes` and `features` DOCUMENTS; features in ascending order."""
    for batch in batches:
        count = len(batch)
        features, ends = flat(batch.column("features").fill_null(b""))
        columns = {
            "number": batch.column("place").to_numpy() + PAST,
            "address": pa.nulls(count, pa.string()),
            "score": np.zeros(count),
            "within": pa.nulls(count, pa.string()),
            "codes": batch.column("codes"),
            "features": binary(sorted_sets(features, ends), ends),
            "rejected": np.zeros(count, np.int64),
        }
        yield pa.record_batch(columns)


def numbered_past(numbered: Any, documents: Any) -> tuple[Any, Any]:
    """Let documents of a DataFrame (`number` and `id`; DOCUMENTS) have come before."""
    ids = numbered.selectExpr(f"number + {PAST} AS number", "id")
    columns = [name.split()[0] for name in DOCUMENTS.split(", ")]
    made = documents.selectExpr(*(
        f"number + {PAST} AS number" if name == "number" else name for name in columns
    ))  # fmt: skip
    return ids, made


def _recipe_of(path: str) -> Recipe:
    return Recipe.from_json(_told(path)[_RECIPE])


def _told(path: str) -> dict[bytes, bytes]:
    """What a file of `export_index` says of itself."""
    try:
        told = pq.read_schema(path).metadata or {}
    except OSError as error:
        raise FileError(f"cannot read {path}: {error}; name a file of export_index") from None
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is no Parquet file: {error}") from None
    if _RECIPE not in told:
        raise DataError(f"{path} was not written by export_index: it names no recipe")
    return dict(told)
