"""Compare a run's documents with those of an index, which came before: `dedup --against`.

The index's documents have the highest priority and are kept, whatever they match: a document is
dropped if it matches one of them, or a kept one of its own run. So batch after batch against an
index that is updated gives what one run over all batches gives.

An index by similarity is asked, and so is one by distance where fingerprints alone decide: that
costs what the run's documents cost. By features, the documents of an index by distance take part in
the exact join, from what it keeps beside fingerprints; that costs time linear in the index.

A run sees one commit of the index, whatever a service writes to it meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, RecipeError, UsageError
from neardup.fingerprinting.feature_sets import fingerprints_of_sets
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.index.similar.incoming import sorted_sets
from neardup.pipeline.run.matching import Grouping, References
from neardup.runtime.storage.spool import FeatureSpool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents import ReadOptions
    from neardup.pipeline.run.collection import Collection
    from neardup.pipeline.run.matching import Matching

__all__ = ["Against", "ReferenceIndex"]

QUERIES_A_BATCH: Final = 1 << 16
_NONE: Final = np.empty(0, np.uint64)
ROWS_A_COMMIT: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Against:
    """Which index a run is compared with.

    Args:
        folder: Of the index.
        update: Add the kept documents to it, once the outputs are there.
    """

    folder: str
    update: bool = False


class ReferenceIndex:
    """The index of a run.

    Args:
        against: Which.
        matching: Of the run.
        read: Of the run.
        workers: Of the run.

    Raises:
        UsageError: If the index does not keep what the matching needs, was made for a smaller
            distance, or the run is one that an index cannot serve.
        RecipeError: If its recipe is another.
        FileError, DataError: As DurableIndex.open.
    """

    def __init__(
        self, against: Against, matching: Matching, read: ReadOptions, workers: int | None = None
    ) -> None:
        """Open the index."""
        from neardup.index.durable.index import DurableIndex
        from neardup.index.durable.similar.index import DurableSimilarIndex

        self._against, self._matching, self._workers = against, matching, workers
        self.has_ids = read.id is not None
        self.index = DurableIndex.open(against.folder, create=False, readonly=not against.update)
        self.is_similar = isinstance(self.index, DurableSimilarIndex)
        self._seen = self.index.snapshot()
        try:
            self._check(read)
        except BaseException:
            self.close()
            raise
        counts = {"documents": len(self._seen), "added": self._seen.added}
        self.facts = {"path": against.folder, **counts}

    @property
    def updates(self) -> bool:
        """Whether the kept documents are added."""
        return self._against.update

    @property
    def needs_features(self) -> bool:
        """Whether the features of the run's documents are stored."""
        return self._against.update and self.index.store == "features"

    def close(self) -> None:
        """Close the index; what was not committed is dropped."""
        self._seen.close()
        if self._against.update:
            self.index.rollback()
        self.index.close()

    def group(self, collection: Collection, values: Any) -> Grouping:
        """Decide for every document of the run; `beside` has those of the index that it names."""
        with self._seen:  # what is removed from the index is freed then
            if self.is_similar:
                return self._by_similarity(collection, values)
            if self._matching.by_features:
                return self._by_features(collection, values)
            return self._by_fingerprints(collection, values)

    def _by_fingerprints(self, collection: Collection, values: Any) -> Grouping:
        found = self._first(values)
        rows = found["row"].to_numpy()
        rest = np.ma.MaskedArray(np.ma.getdata(values), np.ma.getmaskarray(values).copy())
        rest[rows] = np.ma.masked
        grouping = collection.group(rest)
        named = found["id"].combine_chunks().dictionary_encode()
        kept_by = grouping.kept_by.copy()
        kept_by[rows] = len(values) + named.indices.to_numpy()
        codes = self._seen.fingerprints_by_id(named.dictionary)
        return Grouping(kept_by, kept_by, grouping.similarity, References(named.dictionary, codes))

    def _by_similarity(self, collection: Collection, values: Any) -> Grouping:
        least, count = self._matching.match.similarity, len(values)
        seen: Any = self._seen
        rows, scores, ids = [], [np.empty(0)], []
        for begin in range(0, count, QUERIES_A_BATCH):
            end = min(begin + QUERIES_A_BATCH, count)
            sets = sorted_sets(*collection.feature_sets(begin, end))
            found = seen.first_within(sets, least)
            rows.append(found["row"].to_numpy() + begin)
            scores.append(found["similarity"].to_numpy())
            ids.append(found["id"].cast(pa.large_string()))
        matched = np.concatenate([np.empty(0, np.int64), *rows])
        grouping = collection.group(values, decided=matched)
        named = pa.chunked_array(ids or [[]], pa.large_string()).combine_chunks()
        named = named.dictionary_encode()
        assert grouping.similarity is not None  # noqa: S101  # it is measured by features
        kept_by, similarity = grouping.kept_by.copy(), grouping.similarity.copy()
        kept_by[matched] = count + named.indices.to_numpy()
        similarity[matched] = np.concatenate(scores)
        kept = seen.sets_by_id(self._as_stored(named.dictionary))
        codes = fingerprints_of_sets(kept.features, kept.offsets, self._matching.recipe)
        return Grouping(kept_by, kept_by, similarity, References(named.dictionary, codes))

    def _as_stored(self, ids: Any) -> Any:
        return ids.cast(pa.int64()) if self._seen.id_kind == "int" else ids

    def _first(self, values: Any) -> pa.Table:
        """For each document the first of the index within the distance, in bounded memory."""
        distance = self._matching.distance
        tables = []
        for begin in range(0, len(values), QUERIES_A_BATCH):
            part = self._seen.first_within(values[begin : begin + QUERIES_A_BATCH], distance)
            rows = pa.array(part["row"].to_numpy() + begin)
            tables.append(part.set_column(0, "row", rows))
        if not tables:
            return self._seen.first_within(values, distance)
        return pa.concat_tables(tables)

    def _by_features(self, collection: Collection, values: Any) -> Grouping:
        n = len(values)
        ids = []
        for names, codes, features in self.documents():
            ids.append(names)
            counts = np.array([len(each) for each in features], np.int64)
            collection.add_references(codes, np.concatenate([_NONE, *features]), counts)
        theirs = collection.known_values()
        empty = np.concatenate([np.ma.getmaskarray(values), np.zeros(theirs.shape, bool)])
        whole = np.ma.MaskedArray(np.concatenate([np.ma.getdata(values), theirs]), empty)
        grouping = collection.group(whole)
        similarity = None if grouping.similarity is None else grouping.similarity[:n]
        kept_by = grouping.kept_by[:n].copy()
        rows = np.flatnonzero(kept_by >= n)
        named, places = np.unique(kept_by[rows] - n, return_inverse=True)
        kept_by[rows] = n + places
        every = pa.concat_arrays(ids) if ids else pa.array([], pa.string())
        chosen = References(every.take(pa.array(named)), theirs[named], named, every)
        return Grouping(kept_by, kept_by, similarity, chosen)

    def texts(self, ids: list[str]) -> list[str | None]:
        """The texts of some of its documents; None where it does not keep them."""
        if self.index.store != "text" or not ids:
            return [None] * len(ids)
        return list(self.index.contents(ids))

    def documents(self) -> Iterator[tuple[Any, Any, Any]]:
        """Some documents at a time, from the first: ids, fingerprints, and features if kept."""
        for names, codes, contents in self._seen.documents():
            features: Any = None
            if self.index.store != "none":
                self._check_contents(names, contents)
                features = self._features(contents) if self.index.store == "text" else contents
            yield names, codes, features

    def _check_contents(self, names: Any, contents: list[Any]) -> None:
        lost = next((i for i, each in enumerate(contents) if each is None), None)
        if lost is not None:
            raise DataError(
                f"{self._against.folder} keeps {self.index.store}, and has none of"
                f" {names[lost].as_py()!r}: add that document again, or make the index anew"
            )

    def _features(self, texts: list[str]) -> list[Any]:
        with (
            FeatureSpool(1 << 30) as spool,
            Fingerprinter(self._matching.recipe, self._workers, spool) as fingerprinter,
        ):
            fingerprinter.add(pa.array(texts, pa.large_string()))
            fingerprinter.finish()
            features, offsets = spool.finish().copy(), fingerprinter.feature_offsets().tolist()
            return [features[begin:end] for begin, end in pairwise(offsets)]

    def _check(self, read: ReadOptions) -> None:
        index, matching, folder = self.index, self._matching, self._against.folder
        if index.recipe is None or index.recipe.digest != matching.recipe.digest:
            found = "none" if index.recipe is None else index.recipe.digest
            raise RecipeError(
                f"{folder} has recipe {found}, the run {matching.recipe.digest}: fingerprints of"
                " two recipes cannot be compared; give the options that the index was made with"
            )
        if matching.policy != "greedy":
            raise UsageError("--policy components joins all that matches: --against needs greedy")
        if read.within is not None:
            raise UsageError(f"--within {read.within}: {folder} does not know that field")
        if self.is_similar:
            self._check_similar(index, matching)
        elif matching.by_features and index.store == "none":
            raise UsageError(
                f"{folder} keeps fingerprints only, from which no similarity can be computed: give"
                f" --distance (up to {index.distance}) without --verify, or make the index with"
                " --store features"
            )
        elif not matching.by_features and (matching.distance or 0) > index.distance:
            raise UsageError(
                f"--distance is {matching.distance}, but {folder} was made for {index.distance}"
            )

    def _check_similar(self, index: Any, matching: Matching) -> None:
        folder = self._against.folder
        if matching.distance is not None:
            raise UsageError(
                f"--distance is {matching.distance}, but {folder} is by similarity, from"
                f" {index.similarity}: leave it out, or make an index with --distance"
            )
        if matching.measure != index.measure:
            raise UsageError(
                f"--measure is {matching.measure}, but {folder} was made with {index.measure}"
            )
        if matching.match.similarity < index.similarity:
            raise UsageError(
                f"--similarity is {matching.match.similarity}, but {folder} was made for"
                f" {index.similarity}: ask for that or more, or make an index for less"
            )
