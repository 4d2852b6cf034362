"""The reference set on Spark: a DataFrame of texts, or an index exported as a Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents import OutputSet, ReadOptions
from neardup.errors import RecipeError, UsageError, suggests_names
from neardup.fingerprinting.question import Question
from neardup.fingerprinting.sets_of_texts import fingerprints_of_sets
from neardup.index.durable import DurableIndex
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.rule import Choice, Rule
from neardup.runtime.arrays import cut
from neardup.spark.exported_index_file import (
    MEASURE,
    SIMILARITY,
    ReferenceWriter,
    check_reference,
    metadata_of,
    reference_batches,
)
from neardup.spark.workers.documents import DOCUMENTS
from neardup.spark.workers.equal_documents import PAST
from neardup.spark.workers.partition_rows import MOST_VALUES, binary, flat, sorted_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from neardup.fingerprinting.recipe import Recipe
    from neardup.spark.engine import Engine
    from neardup.spark.engine_session import Frame

__all__ = [
    "export_index",
    "import_index",
    "numbered_reference",
    "question_of_file",
    "reference_of_file",
    "write_reference",
]

_COLUMNS: Final = "place long, id string, codes binary, features binary"


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
        if kind.by == "similarity":
            rule = Rule(kind.similarity, measure=kind.measure, recipe=recipe)
        else:
            rule = Rule(distance=min(kind.distance, recipe.bits - 1), recipe=recipe)
    reference = ReferenceIndex(Against(str(index)), rule, Choice(), ReadOptions())
    try:
        return write_reference(reference, recipe, str(path))
    finally:
        reference.close()


def write_reference(reference: ReferenceIndex, recipe: Recipe, path: str) -> int:
    """Write the documents of an index as SCHEMA, a number of them at a time.

    Raises:
        UsageError: As `export_index`.
    """
    metadata = {}
    if reference.is_similar:
        index: Any = reference.index
        metadata = {SIMILARITY: repr(index.similarity).encode(), MEASURE: index.measure.encode()}
    with OutputSet() as outputs:
        writer = ReferenceWriter(outputs.create(path), recipe, metadata)
        try:
            for names, codes, features in reference.documents():
                ids, words = names.cast(pa.string()), _codes_of(codes, recipe)
                if features is None:
                    writer.write(ids, words, pa.nulls(len(ids), pa.binary()))
                    continue
                sizes = np.array([len(each) for each in features], np.int64)
                for first, last in cut(np.maximum(sizes, 1), MOST_VALUES):
                    ends = np.append(0, np.cumsum(sizes[first:last]))
                    data = binary(np.concatenate(features[first:last]), ends)
                    writer.write(ids[first:last], words[first:last], data)
            writer.close()
        finally:
            writer.abandon()
        outputs.commit()
    return writer.rows


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


@suggests_names
def import_index(path: str | PathLike[str], index: str | PathLike[str], distance: int = 3) -> int:
    """Make a durable index from a file of `export_index`.

    Args:
        path: The file.
        index: A folder that does not exist yet.
        distance: Largest distance of a query, for one by distance.

    Returns:
        How many documents it has.

    Raises:
        DataError: If it is not such a file, or damaged; then no folder is made.
        FileError: If the file cannot be read, or the folder exists.
    """
    recipe, metadata = metadata_of(str(path))
    rows = nulls = 0
    for batch in reference_batches(str(path)):  # all of it, before there is a folder
        rows, nulls = rows + len(batch), nulls + batch.column("features").null_count
    is_similar = SIMILARITY in metadata
    has_features = is_similar or (rows > 0 and nulls == 0)
    kind: dict[str, Any] = {"distance": distance, "store": "features" if has_features else "none"}
    if is_similar:
        kind = {"similarity": float(metadata[SIMILARITY]), "measure": metadata[MEASURE].decode()}
    with DurableIndex.create(index, recipe=recipe, **kind) as target:
        for batch in reference_batches(str(path)):
            features: list[Any] = []
            if has_features:
                values, ends = flat(batch.column("features"))
                features = np.split(values, ends[1:-1])
            if is_similar:
                target.add(batch.column("id"), features)
                continue
            codes = flat(batch.column("codes"))[0].reshape(len(batch), -1)
            target.add(batch.column("id"), codes, *([features] if features else []))
        target.commit()
        return len(target)


def question_of_file(path: str) -> Question | None:
    """The question of the exported index in a file; None for an index by distance.

    Raises:
        DataError, FileError, RecipeError: As `metadata_of`.
    """
    recipe, metadata = metadata_of(path)
    if SIMILARITY not in metadata:
        return None
    return Question(recipe, float(metadata[SIMILARITY]), metadata[MEASURE].decode())


def reference_of_file(engine: Engine, path: str, rule: Rule) -> tuple[Frame, Frame]:
    """The rows (number, id) of a file of `export_index`, and its DOCUMENTS.

    The file is read once before, here: an engine does not look at its checksums.

    Raises:
        DataError: If it is not such a file, or damaged.
        RecipeError: If its recipe is another.
        UsageError: If it has no features, which the rule needs.
    """
    recipe, _ = metadata_of(path)
    if recipe.digest != rule.recipe.digest:
        raise RecipeError(
            f"{path} has recipe {recipe.digest}, the run {rule.recipe.digest}: fingerprints of"
            " two recipes cannot be compared; give the options that the index was made with"
        )
    check_reference(path)
    rows = engine.session.read.schema(_COLUMNS).parquet(path)
    if rule.by_features and rows.where("features IS NULL").limit(1).count():
        raise UsageError(
            f"{path} keeps fingerprints only, from which no similarity can be computed: give a"
            " distance without verify, or export an index that was made with --store features"
        )
    documents = engine.step(rows.drop("id"), reference_to_documents, DOCUMENTS, keep="past")
    return rows.selectExpr(f"place + {PAST} AS number", "id"), documents


def reference_to_documents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The DOCUMENTS of rows of `place`, `codes` and `features`; features ascending."""
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


def numbered_reference(numbered: Frame, documents: Frame) -> tuple[Frame, Frame]:
    """A DataFrame's documents (`number` and `id`; DOCUMENTS) as a reference set."""
    ids = numbered.selectExpr(f"number + {PAST} AS number", "id")
    columns = [name.split()[0] for name in DOCUMENTS.split(", ")]
    renumbered = documents.selectExpr(*(
        f"number + {PAST} AS number" if name == "number" else name for name in columns
    ))  # fmt: skip
    return ids, renumbered
