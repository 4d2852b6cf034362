"""Asking an index: what is within a distance, what is nearest, what is there.

Each call brings what it is given into fingerprints, takes one snapshot, and asks that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.fingerprinting.values import check_distance
from neardup.index.attachments import Beside
from neardup.index.base.asking import Asking, Moment
from neardup.index.hits import Hits
from neardup.index.incoming import (
    as_count,
    codes_of,
    fingerprint_of_text,
    many_fingerprints,
    one_fingerprint,
)
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from neardup.index.kind_settings import Settings
    from neardup.index.protocol import Documents, Id, Ids
    from neardup.index.snapshot import Snapshot
    from neardup.runtime.types import Code, Codes

__all__ = ["IndexView", "Queries"]

_ONE_ROW: Final = np.zeros(1, np.int64)


class Queries(Asking):
    """Every question about an index; what it holds is what `_read` says.

    Args:
        settings: Of the index.
        distance: That queries search unless they say a smaller one; the settings' unless said.
    """

    def __init__(self, settings: Settings, distance: int | None = None) -> None:
        """Ask nothing yet."""
        super().__init__(settings)
        self._distance = settings.distance if distance is None else distance
        self._narrow_end = 1 << settings.bits if settings.width == 1 else 0

    @property
    def distance(self) -> int:
        """The distance that queries search unless they say a smaller one."""
        return self._distance

    @property
    def bits(self) -> int:
        """Width of the fingerprints."""
        return int(self._settings.bits)

    def __repr__(self) -> str:
        """What it holds, for people."""
        kind, count = type(self).__name__, len(self)
        return f"<{kind} of {count:,} documents, {self.bits} bits, distance {self.distance}>"

    def __iter__(self) -> Iterator[tuple[Id, int]]:
        """Each document's (id, fingerprint), in order of insertion, as they were at the start."""
        for ids, codes in self.batches():
            columns = [codes[:, w].tolist() for w in range(codes.shape[1])]
            for identity, *parts in zip(ids.to_pylist(), *columns, strict=True):
                yield identity, sum(part << 64 * w for w, part in enumerate(parts))

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """All ids (an Arrow array) and fingerprints, uint64 (n, width), in order of insertion."""
        held: Snapshot = self._read()
        return held.batches()

    def query(
        self, fingerprint: Documents, distance: int | None = None, limit: int | None = None
    ) -> Hits[int]:
        """Find every stored document within the distance.

        Args:
            fingerprint: An int, uint64 (width,), or a text if the index has a recipe.
            distance: At most the index's, which it is unless said.
            limit: The most to return.

        Returns:
            A list of (id, distance), by distance, then by insertion; its `total` says how many
            there are, more than returned where `limit` cut.

        Raises:
            UsageError: For a larger distance than the index was made for, or a wrong fingerprint.
        """
        codes = self._one(fingerprint)
        reach = self._reach(distance)
        if limit is not None:
            limit = as_count("limit", limit)
        if codes is None:
            return Hits([], 0)
        found, total = self._read().hits(codes, reach, limit)
        self._counters.asked(1, total)
        if not total:
            return Hits([], 0)
        return Hits([(hit[2], hit[0]) for hit in found[:limit]], total)

    def query_batch(
        self,
        fingerprints: Documents,
        distance: int | None = None,
        limit: int | None = None,
        workers: int | None = None,
    ) -> pa.Table:
        """Find every stored document within the distance of each of many.

        Args:
            fingerprints: uint64 (q,) or (q, width), a list of ints, Arrow, or texts.
            distance: At most the index's, which it is unless said.
            limit: The most for one query.
            workers: Threads; unless said one per core where that pays, and one for little work.

        Returns:
            pyarrow.Table with row (int64: which query), id, distance (int16), sorted by row,
            distance and insertion. Its schema's metadata says under "cut" how many `limit` cut.

        Raises:
            UsageError: As `query`.
        """
        return self._answers(fingerprints, distance, limit, workers)

    def fingerprint_of(self, text: str) -> int | None:
        """Fingerprint a text by the index's recipe, as neardup.fingerprint.

        Raises:
            UsageError: If it has none.
        """
        return fingerprint_of_text(text, self._settings)

    def fingerprints_of(self, texts: Any) -> Codes:
        """Fingerprint texts by the index's recipe, as neardup.fingerprints.

        Raises:
            UsageError: If it has none.
        """
        return codes_of(texts, self._settings)

    def first_within(
        self, fingerprints: Documents, distance: int | None = None, limit: int = 1
    ) -> pa.Table:
        """Find for each of many the document within the distance that was added first.

        Args:
            fingerprints: As of `query_batch`.
            distance: As of `query_batch`.
            limit: So many that were added first.

        Returns:
            row, id, distance as of `query_batch`, but in order of insertion: at most `limit` for a
            row.
        """
        return self._answers(fingerprints, distance, limit, None, by_age=True)

    def fingerprints_by_id(self, ids: Ids) -> Codes:
        """The stored fingerprints of one document or many, uint64 (n, width).

        Raises:
            KeyError: If an id is not present.
        """
        snapshot = self._read()
        codes: Codes = snapshot.contents_at(snapshot.present(ids))
        return codes

    def nearest(self, fingerprint: Documents, n: int = 10) -> list[tuple[Id, int]]:
        """The n stored documents with the smallest distances, however large these are.

        Args:
            fingerprint: As of `query`.
            n: How many.

        Returns:
            A list of (id, distance), by distance, then by insertion.

        Raises:
            UsageError: For n below 0 or a wrong fingerprint.
        """
        n = as_count("n", n)
        codes = self._one(fingerprint)
        if codes is None or n == 0:
            return []
        snapshot = self._read()
        found, total = snapshot.hits(codes, self.distance, n)
        if total < n:
            table = snapshot.nearest(codes[None, :], _ONE_ROW, n, None)
            return list(zip(table["id"].to_pylist(), table["distance"].to_pylist(), strict=True))
        return [(hit[2], hit[0]) for hit in found[:n]]

    def nearest_batch(self, fingerprints: Any, n: int = 10, workers: int | None = None) -> Any:
        """The n stored documents nearest to each of many, however far; one scan for all of them.

        Args:
            fingerprints: As of `query_batch`.
            n: How many for each.
            workers: Threads; one per core unless said.

        Returns:
            pyarrow.Table with row (int64: which query), id, distance (int16), sorted by row,
            distance and insertion.

        Raises:
            UsageError: As `nearest`.
        """
        n = as_count("n", n)
        codes, rows = many_fingerprints(fingerprints, self._settings)
        chosen = slice(None) if n else slice(0)
        return self._read().nearest(codes[chosen], rows[chosen], max(n, 1), workers)

    def _answers(
        self,
        fingerprints: Any,
        distance: int | None,
        limit: int | None,
        workers: int | None,
        *,
        by_age: bool = False,
    ) -> pa.Table:
        codes, rows = many_fingerprints(fingerprints, self._settings)
        reach = self._reach(distance)
        threads = None if workers is None else worker_count(workers)
        if limit is not None:
            limit = as_count("limit", limit)
        found = self._read().search(codes, rows, reach, limit, threads, by_age=by_age)
        self._counters.asked(len(codes), len(found))
        return found

    def _reach(self, distance: int | None) -> int:
        if distance is None:
            return self._distance
        check_distance(distance)
        if distance > self.distance:
            raise UsageError(
                f"distance is {distance}, but the index was made for {self.distance}:"
                " use `nearest`, or make an index for the larger one"
            )
        return distance

    def _one(self, fingerprint: Any) -> Code | None:
        """Bring one fingerprint into uint64 (width,); None for a document without one."""
        if type(fingerprint) is int and 0 <= fingerprint < self._narrow_end:
            codes = np.empty(1, np.uint64)
            codes[0] = fingerprint
            return codes
        return one_fingerprint(fingerprint, self._settings)


class IndexView(Moment, Queries):
    """An index as it was at one moment: every call sees the same.

    Args:
        held: What it held.
        distance: Of the index.
        beside: What is kept beside rows in memory.
    """

    def __init__(self, held: Snapshot, distance: int, beside: Beside | None = None) -> None:
        """Keep it."""
        Queries.__init__(self, held.settings, distance)
        self._held, self._beside = held, beside or Beside()
