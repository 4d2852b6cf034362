"""The most similar documents at any similarity: exact, by similarity or weighted cosine.

The first queries compare all documents. Later ones use lists of the sets that have a feature, which
are then made and stay in memory.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.errors import UsageError
from neardup.fingerprinting.sets_of_texts import set_weights
from neardup.runtime.arrays import frozen
from neardup.runtime.free_memory import free_memory
from neardup.runtime.threads import in_threads, worker_count
from neardup.similarity.measures import MEASURES, ROUNDING

if TYPE_CHECKING:
    from neardup.index.kind_settings import SimilaritySettings
    from neardup.index.set_arrays import Sets
    from neardup.kernels.index.related import Compared, Lists, Living, Met, WeightedQuery
    from neardup.runtime.types import Flags, Hashes, RowNumbers, Rows, Scores
    from neardup.similarity.measures import Measure

__all__ = ["BY", "RankedSets", "Ranking", "all_living", "living_sets"]

BY: Final = ("similarity", "cosine")
SCANS: Final = 8
"""Queries that compare all sets before lists are made, which takes about as long."""
FEATURES_A_BUCKET: Final = 16
LIST_BYTES: Final = 5
"""Bytes of a feature in the lists, approximately."""
MOST_LISTED: Final = (1 << 32) - 1
"""The most features of lists: their places have 32 bits."""
WINDOWS: Final = (0.8, 0.5, 0.0)
"""Sets of this share of a query's size, up to its inverse, are compared first."""
SETS_A_TASK: Final = 1 << 14


class Ranking(NamedTuple):
    """The order in which related documents are returned.

    Args:
        measure: The row of the measure.
        weights: From `set_weights`; None if every feature has the same weight.
    """

    measure: Measure
    weights: tuple[Any, int] | None

    @classmethod
    def of(cls, settings: SimilaritySettings, by: str) -> Ranking:
        """The ranking by the index's similarity, or by the cosine of its recipe's weights.

        Raises:
            UsageError: For another name, or weights that do not follow from features.
            RecipeError: If the recipe's document frequencies are not loaded.
        """
        if by not in BY:
            raise UsageError(f"by is {by!r}: use one of {', '.join(BY)}")
        if by == "similarity":
            return cls(settings.kind, None)
        return cls(MEASURES["cosine"], set_weights(settings.recipe))

    def query_of(self, features: Hashes) -> WeightedQuery:
        """A query of these features: uint64, ascending, not empty."""
        from neardup.kernels.index.related import WeightedQuery, weigh

        weights = np.ones(len(features), np.float64)
        if self.weights is not None:
            weigh(features, *self.weights, weights)
        # Added up one by one, as for stored sets, so that equal sets have equal sums.
        return WeightedQuery(frozen(features), frozen(weights), float(np.cumsum(weights)[-1]))

    def sums(self, sets: Sets) -> Any:
        """The sum of the weights of each set's features: float64 (m,)."""
        from neardup.kernels.index.related import sum_weights

        if self.weights is None:
            return np.diff(sets.offsets).astype(np.float64)
        sums, (table, missing) = np.empty(sets.size, np.float64), self.weights
        features, offsets = frozen(sets.features), frozen(sets.offsets)

        def run(_: int, first: int) -> None:
            last = min(sets.size, first + SETS_A_TASK)
            sum_weights(features, offsets, first, last, table, missing, sums)

        in_threads(worker_count(None), run, range(0, sets.size, SETS_A_TASK))
        return sums


def living_sets(members: RowNumbers, starts: Rows, dead: Flags) -> Living:
    """The sets of a segment that have a stored document, as Living."""
    from neardup.kernels.index.related import Living

    return Living(frozen(members), frozen(starts), frozen(dead))


def all_living() -> Living:
    """The sets of a segment without removed documents, as Living."""
    return living_sets(np.zeros(0, np.uint32), np.zeros(1, np.int64), np.zeros(0, np.bool_))


class RankedSets:
    """The sets of a segment, and data for ranking them, which is made at its first use."""

    def __init__(self) -> None:
        """Begin empty; each ranking is computed at its first use."""
        self._lock = threading.Lock()
        self._sums: dict[bool, Any] = {}
        self._lower_bounds: dict[bool, Any] = {}
        self._lists: Lists | None = None
        self._questions = 0
        self._scratch: list[Met] = []

    def best(
        self, sets: Sets, features: Any, ranking: Ranking, n: int, floor: float, living: Living
    ) -> tuple[Any, Any]:
        """The n most similar living sets, and all that tie with the last of them.

        Args:
            sets: Of the segment, by size.
            features: Of the query: uint64, ascending, not empty.
            ranking: The order.
            n: How many.
            floor: Less similar ones may be left out.
            living: Which sets have a document that is not removed.

        Returns:
            Sets, int64, and similarities, float64, above 0, in no order: every other living set is
            less similar than each of these.
        """
        from neardup.kernels.index.related import Compared

        query = ranking.query_of(features)
        compared = Compared(
            frozen(sets.features), frozen(sets.offsets), frozen(self._weighed(sets, ranking)),
            living,
        )  # fmt: skip
        if ranking.measure.bounds_sizes and (lists := self._lists_of(sets)) is not None:
            ranked: tuple[Any, Any] = self._ranked(query, lists, compared, ranking, n, floor)
            return ranked
        return compare_all(query, compared, ranking, n, floor)

    def _weighed(self, sets: Sets, ranking: Ranking) -> Any:
        kind = ranking.weights is None
        if kind not in self._sums:
            with self._lock:
                if kind not in self._sums:
                    self._sums[kind] = ranking.sums(sets)
        return self._sums[kind]

    def _least(self, sums: Scores, ranking: Ranking) -> Any:
        kind = ranking.weights is None
        if kind not in self._lower_bounds:
            with self._lock:
                if kind not in self._lower_bounds:
                    self._lower_bounds[kind] = _lower_bounds(sums)
        return self._lower_bounds[kind]

    def _lists_of(self, sets: Sets) -> Lists | None:
        """The lists, made after some queries, if there is memory for them."""
        if self._lists is None:
            self._questions += 1
            if self._questions > SCANS:
                with self._lock:
                    if self._lists is None and _may_be_listed(len(sets.features)):
                        self._lists = _lists(sets)
        return self._lists

    def _ranked(
        self,
        query: WeightedQuery,
        lists: Lists,
        compared: Compared,
        ranking: Ranking,
        n: int,
        floor: float,
    ) -> Any:
        from neardup.kernels.index.related import Met, rank_sets

        try:
            scratch = self._scratch.pop()
        except IndexError:
            count = len(compared.sums)
            scratch = Met(np.zeros(count, np.float32), np.empty(count, np.uint32))
        lower_bounds = self._least(compared.sums, ranking)
        ranked = rank_sets(
            query, lists, compared, lower_bounds, ranking.measure.number, n, floor, scratch
        )
        self._scratch.append(scratch)
        return ranked


def compare_all(
    query: WeightedQuery, compared: Compared, ranking: Ranking, n: int, floor: float
) -> tuple[Any, Any]:
    """As RankedSets.best, by comparison with all sets, or with those of similar size.

    Where all features have the same weight, sets must be sorted by size. Those of about the query's
    size are compared first, and the search ends if n of them are as similar as one of another size
    can be.
    """
    from neardup.kernels.index.related import score_related

    count, parts, measure = len(compared.sums), list[tuple[Any, Any]](), ranking.measure
    has_sizes = ranking.weights is None and measure.bounds_sizes
    first = last = int(np.searchsorted(compared.sums, query.own)) if has_sizes else 0
    for share in WINDOWS if has_sizes else (0.0,):
        begin, end, reach = 0, count, 0.0
        if share:
            reach = measure.score(share, share, 1.0) * (1 + ROUNDING)
            edges = np.searchsorted(compared.sums, [query.own * share, query.own / share])
            begin, end = int(edges[0]), int(edges[1])
        for low, high in ((begin, first), (last, end)):
            scores = np.empty(max(0, high - low), np.float64)
            score_related(query, compared, low, low + len(scores), measure.number, scores)
            kept = np.flatnonzero((scores > 0) & (scores >= floor))
            parts.append((kept + low, scores[kept]))
        first, last = min(first, begin), max(last, end)
        best = np.concatenate([scores for _, scores in parts])
        if len(best) > n:
            floor = max(floor, float(np.partition(best, len(best) - n)[len(best) - n]))
        if floor > reach:
            break
    numbers = np.concatenate([numbers for numbers, _ in parts])
    return numbers[best >= floor], best[best >= floor]


def _lower_bounds(sums: Scores) -> Any:
    from neardup.kernels.index.related import BLOCK

    return frozen(np.minimum.reduceat(sums, np.arange(0, len(sums), BLOCK)))


def _may_be_listed(features: int) -> bool:
    """Whether lists of this number of features have 32-bit places, and fit in memory."""
    return features <= MOST_LISTED and features * LIST_BYTES < free_memory() // 2


def _lists(sets: Sets) -> Lists:
    from neardup.kernels.index.related import Lists, make_lists

    bits = np.uint64(max(1, (len(sets.features) // FEATURES_A_BUCKET).bit_length()))
    starts, numbers = make_lists(frozen(sets.features), frozen(sets.offsets), bits)
    return Lists(frozen(starts[:-1]), frozen(numbers), bits)
