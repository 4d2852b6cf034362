"""Offer sets to a tail one after the other: each is appended unless another is near."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.kernels.index.scoring import (
    lookup_count,
    new_scratch,
    query_of,
    reached,
)
from neardup.kernels.index.sets import first_places
from neardup.kernels.index.tail import PLACE, ROW, TailSets, append_chosen, bucket_in, tail_at
from neardup.kernels.jit import inner, kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Float64s, Int64s, Rows
    from neardup.kernels.similarity.join_arguments import Condition


@inner
def _nearest_of_new(
    query: Any, tail: TailSets, first: int, condition: Condition, chosen: Any, marks: Int64s,
    q: int, scores: Float64s,
) -> int:  # fmt: skip
    """The first of the most similar rows from `first` on, if above scores[q]; -1 for none.

    scores[q] becomes its similarity. Chains have the newest row first, so a row before `first` ends
    the walk of a chain.
    """
    heads, entries = tail.heads, tail.entries
    nearest, best = np.int64(-1), scores[q]
    for k in range(lookup_count(query.size, condition)):
        key = query.features[query.begin + chosen[k]]
        link = np.int64(heads[bucket_in(heads, key)])
        while link:
            packed = entries[2 * link - 1]
            number = np.int64(packed & ROW)
            if number < first:
                break
            if entries[2 * link - 2] == key and marks[number - first] != q:
                place = np.int64(packed >> np.uint64(16) & PLACE)
                similarity = reached(query, k, tail, number, place, condition)
                if similarity >= 0.0:
                    marks[number - first] = q
                    is_nearer = similarity > best or (similarity == best and 0 <= number < nearest)
                    if similarity >= condition.similarity and is_nearer:
                        nearest, best = number, similarity
            link = np.int64(packed >> np.uint64(32))
    scores[q] = best
    return nearest


class Offered(NamedTuple):
    """Rows and entries that a tail has, and the conditions of `offer_sets`."""

    first: int
    used: int
    made_for: Condition
    condition: Condition


@inner
def _offer_all(
    queries: Any, scores: Float64s, sets: TailSets, offered: Offered, scratch: Any, marks: Int64s,
    near: Rows,
) -> int:  # fmt: skip
    """Do the work of `offer_sets`, which makes the arrays, so that nothing is allocated here."""
    first, used, number = offered.first, offered.used, offered.first
    for q in range(scores.size):
        query = query_of(queries, q, scratch)
        prefix = lookup_count(query.size, offered.made_for)
        first_places(
            query.features, query.begin, query.begin + query.size, prefix, sets.order,
            scratch.chosen, scratch.heavy,
        )  # fmt: skip
        near[q] = np.int64(-1)
        if number > first:
            near[q] = _nearest_of_new(
                query, sets, first, offered.condition, scratch.chosen, marks, q, scores
            )
        if near[q] < 0 and scores[q] < 0:
            used = append_chosen(query, sets, number, used, prefix, scratch.chosen)
            number += 1
    return used


@kernel
def offer_sets(
    queries: Any, scores: Float64s, tail: Int64s, first: int, used: int, made_for: Condition,
    condition: Condition, near: Rows,
) -> int:  # fmt: skip
    """Append each of many sets to a tail, unless one that is stored or was appended is near.

    The tail must have room for all of them. O(features), and what each shares with the others.

    Args:
        queries: Queries: the sets.
        scores: float64 (n,): how similar the most similar stored set is, below 0 where none is
            near; written: the same of the most similar one of all.
        tail: int64: what `tail_sets` gives.
        first: Rows that the tail has.
        used: Entries that the tail has.
        made_for: Condition of the tail.
        condition: Condition at which sets are near: the same, or a larger similarity.
        near: int64 (n,), written: the appended row that is more similar than all stored ones, or
            -1. A document with neither was appended.

    Returns:
        The new number of entries of the tail.
    """
    scratch, marks = new_scratch(queries), np.full(scores.size, np.int64(-1))
    offered = Offered(first, used, made_for, condition)
    return _offer_all(queries, scores, tail_at(tail), offered, scratch, marks, near)
