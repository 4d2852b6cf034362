"""Find pairs of texts by their similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.documents import ReadOptions
from neardup.documents.markup import warn_of_markup
from neardup.documents.nested import column_of
from neardup.errors import suggests_names
from neardup.fingerprinting.recipe import recipe_of
from neardup.fingerprinting.values import distance as hamming_distance
from neardup.pipeline.run.in_memory import InMemory, as_arrow, check_documents, check_on_error
from neardup.pipeline.run.matching import partners
from neardup.pipeline.run.reading import Reader
from neardup.pipeline.run.rule import Limits, Rule
from neardup.runtime.memory import memory_bytes
from neardup.similarity.feature_sets import similarities
from neardup.similarity.join import similar_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["similar_pairs"]


@suggests_names
def similar_pairs(  # noqa: PLR0913
    texts: Any,
    similarity: float = 0.8,
    *,
    measure: str = "jaccard",
    recipe: Recipe | None = None,
    workers: int | None = None,
    memory: str | int | None = None,
    recall: float = 1.0,
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    on_error: str = "stop",
) -> pa.Table:
    """Find every pair of texts whose features are similar enough; each is verified, none is missed.

    Args:
        texts: A sequence of texts, or a table: of Arrow, pandas, polars, or a Dataset of Hugging
            Face.
        similarity: Least similarity of the feature sets, above 0, up to 1.
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How to tokenise, hash and fingerprint; Recipe() unless given.
        workers: Threads; the processors at hand unless given.
        memory: Budget, such as "2G".
        recall: As for `dedup`.
        text: Column of a table with the texts, or several, joined.
        id: Column of a table with ids.
        on_error: "stop" at a null, or "skip" it: that row is in no pair.

    Returns:
        Arrow table of left int64, right int64 (rows), distance int32 (of the fingerprints),
        similarity float64; left < right, sorted; with `id` also left_id and right_id, of that
        column's type. Texts without features match nothing.

    Raises:
        UsageError: For a value out of range, something that is not a text, or a missing column.
        DataError: For a null, unless skipped.

    Example:
        >>> similar_pairs(["a b c d e", "A, b, c, d, e!", "f"]).to_pylist()
        [{'left': 0, 'right': 1, 'distance': 0, 'similarity': 1.0}]
    """
    chosen = recipe_of(recipe)
    rule = Rule(similarity, measure=measure, recipe=chosen, recall=recall)
    limits = Limits(memory_bytes(memory), workers=workers)
    with Reader([""], rule, limits) as reader:
        check_documents(texts)
        source = as_arrow(texts)
        fields = (text,) if isinstance(text, str) else tuple(text)
        read = ReadOptions(fields, id, check_on_error(on_error), extract="none")
        given = InMemory(source, read)
        warn_of_markup(*(batch.texts for batch in given.batches))
        for batch in given.batches:
            reader.add(0, batch)
        documents = reader.finish()
        sets, codes = documents.sets, documents.codes
        among = partners(rule, sets, workers)
        chunks = list(similar_sets(sets, rule.match, workers, among))
        found = np.concatenate([np.zeros((0, 2), np.int64), *chunks])
        left, right = found[np.lexsort((found[:, 1], found[:, 0]))].T
        rows = given.rows
        columns = {
            "left": rows[left],
            "right": rows[right],
            "distance": pa.array(hamming_distance(codes[left], codes[right]), pa.int32()),
            "similarity": similarities(sets, left, right, measure),
        }
    if id is not None:
        ids = column_of(source, id)
        for side in ("left", "right"):
            columns[f"{side}_id"] = ids.take(pa.array(columns[side]))
    return pa.table(columns)
