"""Documents on their way in: fingerprinted, and reduced to what the later steps need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.addresses import Addresses
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.pipeline.run.matching import Grouping, Matching, group, priorities
from neardup.runtime.progress import Quiet
from neardup.runtime.storage.spool import FeatureSpool
from neardup.similarity.feature_sets import FeatureSets, Work
from neardup.similarity.join import CHUNK_FEATURES
from neardup.similarity.spilled import Spill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Batch
    from neardup.pipeline.run.folder.resume import Resume
    from neardup.pipeline.run.resources import Resources
    from neardup.runtime.progress import Progress

__all__ = ["Collection"]


class Collection:
    """What stays of the documents once their text is gone: O(1) for each, and the feature spool.

    Args:
        names: The inputs' names, for addresses.
        matching: Decides what must stay.
        resources: How much memory it may take, where the rest goes, threads, and the plan.
        resume: What an earlier run has done already, and where to keep what this one does.
        keep_features: Keep the features even if the search does not need them.
        restrict: Documents match only within a group, if the batches have any; else groups are
            noted only.
        progress: Told where the search is, in bytes of `match_bytes`.
    """

    def __init__(
        self,
        names: Sequence[str],
        matching: Matching,
        resources: Resources,
        resume: Resume | None = None,
        *,
        keep_features: bool = False,
        restrict: bool = True,
        progress: Progress | None = None,
    ) -> None:
        """Begin without documents; UsageError for a plan that does not suit the matching."""
        matching.check_plan(resources.plan)
        self._keep_features = keep_features or matching.by_features
        self.addresses = Addresses(names)
        self.nbytes = 0
        self._restrict = restrict
        self._progress, self._matched = progress or Quiet(), 0
        self._text_bytes: list[Any] = []
        self._matching = matching
        self._resources = resources
        self._measured: list[Any] = [np.zeros(0)]
        self._groups = _GroupNumbers()
        self._references: list[Any] = []
        self._resume = resume
        limit = resources.memory // 8
        self._spool = (
            FeatureSpool(limit, resources.tmp)
            if resume is None
            else FeatureSpool(limit, resources.tmp, resume.features)
        )
        self._done: list[tuple[Any, Any]] = [] if resume is None else [resume.fingerprints()]
        self._fingerprinter = self._new_fingerprinter()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads and remove the spool."""
        self._fingerprinter.close()
        self._spool.close()

    def add(self, source: int, batch: Batch) -> None:
        """Take a batch of documents of input number `source`."""
        if self._resume is None or not self._resume.passes(batch):
            self._fingerprinter.add(batch.texts)
        self.addresses.add(source, batch.rows, batch.ids)
        self.nbytes += batch.nbytes
        if self._keep_features:
            self._text_bytes.append(pc.binary_length(batch.texts).to_numpy())
        if self._matching.keep == "longest":
            self._measured.append(np.asarray(pc.utf8_length(batch.texts), np.float64))
        elif batch.numbers is not None:
            self._measured.append(batch.numbers.to_numpy(zero_copy_only=False))
        if batch.within is not None:
            self._groups.add(batch.within)
        if self._resume is not None and self._resume.is_due:
            self._keep(self._resume)

    def finish(self) -> Any:
        """Wait for the fingerprints; uint64 (n, width), masked where a document is empty."""
        if self._resume is None:
            values = self._fingerprinter.finish()
            self._offsets = self._fingerprinter.feature_offsets()
            return values
        self._resume.check_end()
        self._keep(self._resume)
        counts = np.concatenate([part for _, part in self._done])
        self._offsets = np.append(0, np.cumsum(counts))
        values = np.concatenate([part for part, _ in self._done])
        empty = np.repeat(counts[:, None] == 0, values.shape[1], axis=1)
        return np.ma.MaskedArray(values, empty) if empty.any() else values

    def _new_fingerprinter(self) -> Fingerprinter:
        spool = self._spool if self._keep_features else None
        return Fingerprinter(self._matching.recipe, self._resources.workers, spool)

    def _keep(self, resume: Resume) -> None:
        """Wait for the fingerprints of what was added since the last time, and keep them."""
        values = np.ma.getdata(self._fingerprinter.finish())
        counts = np.diff(self._fingerprinter.feature_offsets())
        self._fingerprinter.close()
        self._fingerprinter = self._new_fingerprinter()
        if len(counts):
            self._done.append((values, counts))
            resume.keep(values, counts)

    @property
    def matching(self) -> Matching:
        """How the run decides."""
        return self._matching

    @property
    def workers(self) -> int | None:
        """Threads that the run may use; None: all."""
        return self._resources.workers

    @property
    def feature_count(self) -> int:
        """Features of all documents, if the search needs them."""
        return self._spool.nbytes // 8

    @property
    def sizes(self) -> Any:
        """How many features each document has, after `finish`, if they are kept; int64 (n,)."""
        return np.diff(self._offsets)

    @property
    def match_bytes(self) -> int | None:
        """How much the search goes through, if it is one of features; None: not known."""
        return 8 * self.feature_count if self._matching.by_features else None

    def _end_chunk(self) -> None:
        """Between two chunks of the search."""
        self._spool.forget_pages()
        step = min(8 * CHUNK_FEATURES, 8 * self.feature_count - self._matched)
        self._matched += step
        self._progress.advance(step)

    def sets(self, values: Any) -> FeatureSets:
        """The feature sets, after `finish`, whose result is `values`."""
        return FeatureSets(
            self._spool.finish(),
            self._offsets,
            np.ma.getdata(values),
            cell_limit=self._resources.memory // 8,
            groups=self.match_groups(),
            forget=self._end_chunk,
            spill=Spill(self._resources.memory // 2, self._resources.tmp),
        )

    def add_references(self, values: Any, features: Any, counts: Any) -> None:
        """Append documents of an index, after `finish`.

        Args:
            values: uint64 (m, width): their fingerprints.
            features: uint64: their distinct feature hashes, one document after the other.
            counts: int64 (m,): how many each has.
        """
        self._spool.append(features)
        ends = self._offsets[-1] + np.cumsum(counts)
        self._offsets = np.concatenate([self._offsets, ends])
        self._references.append(values)

    def known_values(self) -> Any:
        """The fingerprints of the documents that `add_references` brought: uint64 (m, width)."""
        return np.concatenate(
            [np.zeros((0, self._matching.recipe.words), np.uint64), *self._references]
        )

    def drop_features(self) -> None:
        """Give the disk space of the features back, once all is decided."""
        self._spool.close()

    def features_of(self, documents: Any) -> list[Any]:
        """The distinct feature hashes of each of some documents, after `finish`."""
        features, offsets = self._spool.finish(), self._offsets
        begins, ends = offsets[documents].tolist(), offsets[documents + 1].tolist()
        return [features[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def feature_sets(self, begin: int, end: int) -> tuple[Any, Any]:
        """A copy of the features of documents from `begin` to `end`, and where each one's begin."""
        offsets = self._offsets[begin : end + 1]
        return self._spool.finish()[offsets[0] : offsets[-1]].copy(), offsets - offsets[0]

    def group(self, values: Any, work: Work | None = None, decided: Any = None) -> Grouping:
        """Decide for every document.

        Args:
            values: What `finish` returned, and then `known_values`.
            work: Told what a greedy search on features took.
            decided: int64: documents that match nothing any more, since that is decided.
        """
        own = len(values) - sum(len(each) for each in self._references)
        order = np.concatenate([np.arange(own, len(values)), self.order(own)])
        if decided is not None:
            order = order[~np.isin(order, decided)]
        known = int(np.count_nonzero(order >= own))
        sets = self.sets(values) if self._matching.by_features else None
        groups = self.match_groups()
        return group(self._matching, self._resources, values, order, sets, groups, work, known)

    def order(self, own: int) -> Any:
        """The run's `own` documents from the highest priority to the lowest; int64 (own,)."""
        return priorities(own, self._matching.keep, np.concatenate(self._measured))

    def text_bytes(self) -> Any:
        """Bytes of each document's text, if features are kept; int64 (n,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._text_bytes])

    def groups(self) -> tuple[Any, list[str | None]]:
        """The number of each document's group, int32 (n,), None without groups; their values."""
        return self._groups.numbers(), self._groups.values()

    def match_groups(self) -> Any:
        """The number of the group within which each document matches; None: all may."""
        return self._groups.numbers() if self._restrict else None


class _GroupNumbers:
    """Numbers the distinct values of a field in the order of their appearance; null is one."""

    def __init__(self) -> None:
        self._references: dict[str | None, int] = {}
        self._parts: list[Any] = []

    def add(self, values: pa.Array) -> None:
        encoded = values.dictionary_encode(null_encoding="encode")
        known = self._references
        numbers = [known.setdefault(x, len(known)) for x in encoded.dictionary.to_pylist()]
        self._parts.append(np.array(numbers, np.int32)[encoded.indices.to_numpy()])

    def values(self) -> list[str | None]:
        """What the numbers stand for."""
        return list(self._references)

    def numbers(self) -> Any:
        """int32 (n,), or None if nothing was added."""
        if not self._parts:
            return None
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]
