"""Compare a run's documents with those of an index, which came before: `dedup --against`.

The index's documents have the highest priority and are kept, whatever they match: a document is
dropped if it matches one of them, or a kept one of its own run. So batch after batch against an
index that is updated gives what one run over all batches gives.

An index by similarity is asked, and so is one by distance where fingerprints alone decide: that
costs what the run's documents cost. By features, the documents of an index by distance take part in
the exact join, from what it keeps beside fingerprints; that costs time linear in the index.

A run sees one commit of the index, whatever a service writes to it meanwhile, and also versions of
documents that the run itself replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import DataError, RecipeError, UsageError
from neardup.fingerprinting.feature_sets import fingerprints_of_sets
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.fingerprinting.values import distance
from neardup.index.hits import ABSENT, OTHER, SAME
from neardup.index.incoming import sorted_sets
from neardup.index.memory_index import Index
from neardup.pipeline.run.matching import Grouping, References
from neardup.runtime.storage.spool import FeatureSpool

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.documents import ReadOptions
    from neardup.pipeline.run.collection import Collection
    from neardup.pipeline.run.matching import Matching

__all__ = ["Against", "ReferenceIndex"]

QUERIES_A_BATCH: Final = 1 << 16
_NONE: Final = np.empty(0, np.uint64)
Versions: TypeAlias = "npt.NDArray[np.int8]"


@dataclass(frozen=True, slots=True)
class Against:
    """Which index a run is compared with.

    Args:
        folder: Of the index.
        update: Add the kept documents to it, once the outputs are there.
        own_ids: "seen": what a document's own id has is compared with it like any other. "keep": it
            is not, and a document that the index has unchanged is not compared at all; among the
            documents of the run it still is.

    Raises:
        UsageError: For another `own_ids`.
    """

    folder: str
    update: bool = False
    own_ids: str = "seen"

    def __post_init__(self) -> None:
        """Refuse what is unknown."""
        if self.own_ids not in {"seen", "keep"}:
            raise UsageError(f"own_ids is {self.own_ids!r:.60}: use 'seen' or 'keep'")


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
        from neardup.index.durable import DurableIndex

        self._against, self._matching, self._workers = against, matching, workers
        self.has_ids, self.own_ids = read.id is not None, against.own_ids
        self.index = DurableIndex.open(against.folder, create=False, readonly=not against.update)
        self.is_similar = self.index.by == "similarity"
        self._seen = self.index.snapshot()
        try:
            self._check(read)
        except BaseException:
            self.close()
            raise
        counts = {"documents": len(self._seen), "added": self._seen.added}
        self.facts = {"path": against.folder, **counts, "own_ids": self.own_ids}

    @property
    def updates(self) -> bool:
        """Whether the kept documents are added."""
        return self._against.update

    @property
    def keeps_own(self) -> bool:
        """Whether a document is not compared with what its own id has."""
        return self.own_ids == "keep"

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
        found, own = self._first(collection, values)
        rows = found["row"].to_numpy()
        rest = np.ma.MaskedArray(np.ma.getdata(values), np.ma.getmaskarray(values).copy())
        rest[rows] = np.ma.masked
        grouping = collection.group(rest)
        named = found["id"].combine_chunks().dictionary_encode()
        kept_by = grouping.kept_by.copy()
        kept_by[rows] = len(values) + named.indices.to_numpy()
        codes = self._seen.fingerprints_by_id(named.dictionary)
        references = References(named.dictionary, codes)
        return Grouping(kept_by, kept_by, grouping.similarity, references, own=own)

    def _by_similarity(self, collection: Collection, values: Any) -> Grouping:
        seen: Any = self._seen
        found, own = self._first(collection, values)
        matched = found["row"].to_numpy()
        grouping = collection.group(values, decided=matched)
        named = found["id"].combine_chunks().dictionary_encode()
        assert grouping.similarity is not None  # noqa: S101  # it is measured by features
        kept_by, similarity = grouping.kept_by.copy(), grouping.similarity.copy()
        kept_by[matched] = len(values) + named.indices.to_numpy()
        similarity[matched] = found["similarity"].to_numpy()
        kept = seen.sets_by_id(named.dictionary)
        codes = fingerprints_of_sets(kept.features, kept.offsets, self._matching.recipe)
        references = References(named.dictionary.cast(pa.large_string()), codes)
        return Grouping(kept_by, kept_by, similarity, references, own=own)

    def _first(self, collection: Collection, values: Any) -> tuple[pa.Table, Versions]:
        """For each document the first of the index that matches, and how its own id is stored.

        Some documents at a time: memory is bounded.
        """
        matching = self._matching
        least: Any = matching.match.similarity if self.is_similar else matching.distance
        tables, versions = [], [np.empty(0, np.int8)]
        for begin in range(0, max(len(values), 1), QUERIES_A_BATCH):
            end = min(begin + QUERIES_A_BATCH, len(values))
            contents: Any = values[begin:end]
            if self.is_similar:
                contents = sorted_sets(*collection.feature_sets(begin, end))
            names = collection.addresses.of(np.arange(begin, end))
            own = self._own(names, contents, values[begin:end])
            is_changed = self.keeps_own and bool((own == OTHER).any())
            found = self._seen.first_within(contents, least, 2 if is_changed else 1)
            if self.keeps_own:
                found = _but_own(found, names, own)
            rows = pa.array(found["row"].to_numpy() + begin)
            tables.append(found.set_column(0, "row", rows))
            versions.append(own)
        return pa.concat_tables(tables), np.concatenate(versions)

    def _own(self, names: Any, contents: Any, values: Any) -> Versions:
        """How the own id of each of some documents is stored: see Grouping.own.

        Args:
            names: Arrow strings: the addresses.
            contents: Sets, or fingerprints.
            values: Their fingerprints, masked where a document is empty.
        """
        ids, is_id = names, ~np.ma.getmaskarray(values)[:, 0]
        if self._seen.id_kind == "int":
            numbers = [_whole(name) for name in names.to_pylist()]
            is_id &= np.array([number is not None for number in numbers], np.bool_)
            ids = pa.array([number or 0 for number in numbers], pa.int64())
        plain = contents if self.is_similar else np.ma.getdata(contents)
        versions = self._seen.versions(ids, plain)
        return np.where(is_id & (self.has_ids | (versions == SAME)), versions, ABSENT)

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
        every = pa.concat_arrays(ids).cast(pa.large_string()) if ids else pa.array([], pa.string())
        names = collection.addresses.of(np.arange(n))
        own = self._own(names, values, values)
        if self.keeps_own and (own != ABSENT).any():
            grouping = self._again(collection, whole, grouping, every, own)
        similarity = None if grouping.similarity is None else grouping.similarity[:n]
        kept_by = grouping.kept_by[:n].copy()
        rows = np.flatnonzero(kept_by >= n)
        named, places = np.unique(kept_by[rows] - n, return_inverse=True)
        kept_by[rows] = n + places
        chosen = References(every.take(pa.array(named)), theirs[named], named, every)
        return Grouping(kept_by, kept_by, similarity, chosen, own=own)

    def _again(
        self, collection: Collection, whole: Any, grouping: Grouping, every: Any, own: Versions
    ) -> Grouping:
        """A decision about the run's and the index's documents, but without matches of own ids.

        Args:
            collection: Of both.
            whole: Fingerprints of both.
            grouping: The decision with such matches.
            every: The ids of the index's documents.
            own: How the own ids of the run's documents are stored.
        """
        n = len(own)
        matched = np.flatnonzero((grouping.kept_by[:n] >= n) & (own != SAME))
        kept_by = grouping.kept_by[matched] - n
        is_own = pc.equal(every.take(pa.array(kept_by)), collection.addresses.of(matched))
        rest = matched[np.array(is_own, np.bool_)]
        found = self._first_others(collection, whole, n, rest)
        lost = np.setdiff1d(rest, np.array(list(found), np.int64))
        decided = np.setdiff1d(matched, lost)
        again = collection.group(whole, decided=np.append(decided, np.arange(n, len(whole))))
        assert again.similarity is not None and grouping.similarity is not None  # noqa: S101, PT018
        again.kept_by[decided] = grouping.kept_by[decided]
        again.similarity[decided] = grouping.similarity[decided]
        for row, (place, score) in found.items():
            again.kept_by[row], again.similarity[row] = n + place, score
        return again

    def _first_others(
        self, collection: Collection, whole: Any, first: int, rows: Any
    ) -> dict[int, tuple[int, float]]:
        """For some documents the first of the index that matches but what its id has, if one does.

        Args:
            collection: Of the run's documents and the index's.
            whole: Fingerprints of both.
            first: Where the index's begin.
            rows: The documents, which become an index: the others are asked of it, once each.

        Returns:
            For a row the place in the index, and the similarity.
        """
        match, codes, bits = self._matching.match, np.ma.getdata(whole), self._matching.recipe.bits
        changed = Index(similarity=match.similarity, measure=match.measure)
        changed.add(rows, collection.features_of(rows))
        names = dict(zip(rows.tolist(), collection.addresses.of(rows).to_pylist(), strict=True))
        found: dict[int, tuple[int, float]] = {}
        place = 0
        for ids, _, features in self.documents() if len(rows) else ():
            table = changed.query_batch([np.asarray(each) for each in features])
            for at, row, score in zip(*table.to_pydict().values(), strict=True):
                reference = place + at
                is_near = match.distance is None or match.distance >= distance(
                    codes[row], codes[first + reference], bits
                )
                if row not in found and is_near and str(ids[at].as_py()) != names[row]:
                    found[row] = reference, score
            place += len(ids)
        return found

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
        if self.keeps_own and not self.has_ids:
            raise UsageError(
                "--own-ids keep needs --id FIELD: file:row says where a document was, not which"
            )
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


def _but_own(found: pa.Table, names: Any, own: Versions) -> pa.Table:
    """The first match of each row but what its own id has; none of a row that is unchanged.

    Args:
        found: Matches, rows ascending: row and id.
        names: Arrow strings: the rows' addresses.
        own: How these are stored.
    """
    rows = found["row"].to_numpy()
    is_own = pc.equal(found["id"].cast(pa.large_string()), names.take(pa.array(rows)))
    keep = np.flatnonzero(~np.array(is_own, np.bool_) & (own[rows] != SAME))
    return found.take(pa.array(keep[np.unique(rows[keep], return_index=True)[1]]))


def _whole(name: str) -> int | None:
    """A whole number of 64 signed bits from how it is written; None if it is none."""
    try:
        number = int(name)
    except ValueError:
        return None
    return number if str(number) == name and -(2**63) <= number < 2**63 else None
