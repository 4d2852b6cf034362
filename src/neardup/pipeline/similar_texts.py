"""Find pairs of texts by their similarity."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from neardup.documents import ReadOptions
from neardup.documents.markup import check_extract, warn_of_markup
from neardup.documents.nested import column_of
from neardup.errors import suggests_names
from neardup.fingerprinting.recipe import recipe_of
from neardup.fingerprinting.values import distance as hamming_distance
from neardup.index.memory_index import Index
from neardup.pipeline.run.in_memory import InMemory, as_arrow, check_documents, check_on_error
from neardup.pipeline.run.read_documents import Reader
from neardup.pipeline.run.rule import Limits, Rule
from neardup.runtime.free_memory import memory_bytes
from neardup.similarity.feature_sets import similarities
from neardup.similarity.join import similar_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.recipe import Recipe
    from neardup.runtime.types import Rows

__all__ = ["similar_pairs"]


@suggests_names
def similar_pairs(  # noqa: PLR0913
    texts: Any,
    right: Any = None,
    similarity: float = 0.8,
    *,
    measure: str = "jaccard",
    recipe: Recipe | None = None,
    workers: int | None = None,
    memory: str | int | None = None,
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    on_error: str = "stop",
    extract: str | None = None,
) -> pa.Table:
    """Find every pair of texts whose features are similar enough; each is verified, none is missed.

    Args:
        texts: A sequence of texts, or a table: of Arrow, pandas, polars, or a Dataset of Hugging
            Face.
        right: Other texts: only pairs of one of `texts` and one of these are searched. A number in
            its place is the similarity.
        similarity: Least similarity of the feature sets, above 0, up to 1.
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How to tokenise, hash and fingerprint; by default Recipe().
        workers: Number of threads; by default all available processors.
        memory: Budget, such as "2G".
        text: Column of a table with the texts, or several, joined.
        id: Column of a table with ids.
        on_error: "stop" at a null, or "skip" it: that row is in no pair.
        extract: Of a text that is HTML, what is compared: the "main" content (an extra), "all" that
            is visible, or "none" of this, its markup too, which is the default.

    Returns:
        Arrow table of left int64, right int64 (rows), distance int32 (of the fingerprints),
        similarity float64, sorted by left and right; with one side, left < right. With `id` also
        left_id and right_id, of that column's type. Texts without features match nothing.

    Raises:
        UsageError: For a value out of range, a document that is not a text, or a missing column.
        DataError: For a null, unless skipped.

    Example:
        >>> similar_pairs(["a b c d e", "A, b, c, d, e!", "f"]).to_pylist()
        [{'left': 0, 'right': 1, 'distance': 0, 'similarity': 1.0}]
        >>> similar_pairs(["a b c d e", "f"], ["F", "f"])["right"].to_pylist()
        [0, 1]
    """
    if isinstance(right, int | float) and not isinstance(right, bool):
        right, similarity = None, right
    rule = Rule(similarity, measure=measure, recipe=recipe_of(recipe))
    limits = Limits(memory_bytes(memory), workers=workers)
    fields = (text,) if isinstance(text, str) else tuple(text)
    check_extract(extract)
    read = ReadOptions(fields, id, check_on_error(on_error), extract=extract)
    with _Side(texts, rule, limits, read) as one:
        if right is None:
            return _table(one, one, *_within(one, rule, workers))
        with _Side(right, rule, limits, read) as other:
            return _table(one, other, *_across(one, other, rule, workers))


class _Side:
    """The documents of one argument, and their source."""

    def __init__(self, texts: Any, rule: Rule, limits: Limits, read: ReadOptions) -> None:
        check_documents(texts)
        self.source, self.read = as_arrow(texts, read.fields), read
        self._reader = Reader([""], rule, limits)
        in_memory = InMemory(self.source, replace(read, extract=read.extract or "none"))
        if read.extract is None:
            warn_of_markup(*(batch.texts for batch in in_memory.batches))
        with ExitStack() as stack:
            stack.enter_context(self._reader)
            for batch in in_memory.batches:
                self._reader.add(0, batch)
            self.rows, self.documents = in_memory.rows, self._reader.finish()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # what the interpreter gives


def _within(side: _Side, rule: Rule, workers: int | None) -> tuple[Rows, Rows, Any]:
    """The pairs of one side, and the similarity of each."""
    sets = side.documents.sets
    chunks = list(similar_sets(sets, rule.match, workers))
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *chunks])
    left, right = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T
    return left, right, similarities(sets, left, right, rule.measure)


def _across(one: _Side, other: _Side, rule: Rule, workers: int | None) -> tuple[Rows, Rows, Any]:
    """The pairs of two sides: the right one becomes an index, which the left one queries."""
    index = Index(similarity=rule.match.similarity, measure=rule.measure)
    stored, queries = (np.flatnonzero(side.documents.sizes) for side in (other, one))
    if not len(stored) or not len(queries):
        return stored[:0], queries[:0], np.zeros(0)
    index.add(stored, other.documents.features_of(stored))
    table = index.query_batch(one.documents.features_of(queries), workers=workers)
    left, right = queries[table["row"].to_numpy()], table["id"].to_numpy()
    order = np.lexsort((right, left))
    return left[order], right[order], table["similarity"].to_numpy()[order]


def _table(one: _Side, other: _Side, left: Rows, right: Rows, similarity: Any) -> pa.Table:
    """The pairs by their original rows, with ids if there are any."""
    codes = one.documents.codes[left], other.documents.codes[right]
    columns = {
        "left": one.rows[left],
        "right": other.rows[right],
        "distance": pa.array(hamming_distance(*codes), pa.int32()),
        "similarity": similarity,
    }
    if one.read.id is not None:
        for name, side in (("left", one), ("right", other)):
            ids = column_of(side.source, one.read.id)
            columns[f"{name}_id"] = ids.take(pa.array(columns[name]))
    return pa.table(columns)
