"""Answers in a run: two documents match because somebody said so, or do not, whatever is measured.

A run decides as always. Then the groups of similar documents that an answer touches are decided
again: in order of priority, a document is dropped if it matches one that is kept. What no answer
touches stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import UsageError
from neardup.hamming.clusters import components
from neardup.pipeline.judgement.answers import read_answers
from neardup.similarity.feature_sets import FeatureSets, similarities
from neardup.similarity.join import similar_components

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents.addresses import Addresses
    from neardup.pipeline.run.collection import Collection
    from neardup.pipeline.run.matching import Grouping, Matching

__all__ = ["Decisions", "check_decisions", "decide_again", "with_decisions"]

ROWS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Decisions:
    """Answers about documents of a run, by their numbers.

    Args:
        yes: Pairs that match, the smaller number first.
        no: Pairs that do not.
        unknown: Answers about documents that the run does not have.
    """

    yes: frozenset[tuple[int, int]]
    no: frozenset[tuple[int, int]]
    unknown: int = 0

    @classmethod
    def read(cls, path: str, addresses: Addresses, documents: int) -> Decisions:
        """Read a file of answers; those that are unsure decide nothing.

        Raises:
            UsageError: If two documents have a name that an answer uses.
            DataError, FileError: If it is no such file.
        """
        answers = [x for x in read_answers(path).values() if x.answer != "unsure"]
        names = sorted({name for x in answers for name in (x.first, x.second)})
        rows = _rows_of(names, addresses, documents)
        found: dict[str, set[tuple[int, int]]] = {"yes": set(), "no": set()}
        unknown = 0
        for answer in answers:
            pair = rows.get(answer.first), rows.get(answer.second)
            if pair[0] is None or pair[1] is None or pair[0] == pair[1]:
                unknown += 1
                continue
            found[answer.answer].add((min(pair[0], pair[1]), max(pair[0], pair[1])))
        return cls(frozenset(found["yes"]), frozenset(found["no"]), unknown)

    @property
    def note(self) -> str:
        """What was taken, for the summary."""
        told = f"answers taken as given: {len(self.yes):,} duplicates, {len(self.no):,} different"
        lost = f"; {self.unknown:,} name documents that the inputs lack"
        return told + (lost if self.unknown else "")


def _rows_of(names: list[str], addresses: Addresses, documents: int) -> dict[str, int]:
    """The documents of these names."""
    wanted, found = pa.array(names, pa.large_string()), {}
    for begin in range(0, documents if names else 0, ROWS_AT_ONCE):
        rows = np.arange(begin, min(begin + ROWS_AT_ONCE, documents))
        places = pc.index_in(addresses.of(rows), value_set=wanted)
        for at in np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)):
            name = names[places[int(at)].as_py()]
            if name in found:
                raise UsageError(
                    f"two documents have the id {name!r:.80}: answers do not tell them apart"
                )
            found[name] = int(rows[at])
    return found


def check_decisions(matching: Matching, against: object) -> None:
    """Refuse now what could not be decided after hours.

    Raises:
        UsageError: For a run against an index.
        DataError, FileError: If it is no file of answers.
    """
    if matching.decisions is None:
        return
    if against is not None:
        raise UsageError("decisions are about documents of the inputs: leave out against")
    read_answers(matching.decisions)


def with_decisions(
    grouping: Grouping, matching: Matching, collection: Collection, values: Any
) -> tuple[Grouping, list[str]]:
    """A decision with the matching's answers taken as given, if any, and a line that says so.

    Raises:
        UsageError: If two documents have a name that an answer uses.
        DataError, FileError: If it is no file of answers.
    """
    if matching.decisions is None:
        return grouping, []
    decisions = Decisions.read(matching.decisions, collection.addresses, len(values))
    found = decide_again(grouping, decisions, matching, collection, values)
    return found, [decisions.note]


def decide_again(
    grouping: Grouping,
    decisions: Decisions,
    matching: Matching,
    collection: Collection,
    values: Any,
) -> Grouping:
    """Decide for every document with answers taken as given; the policy is greedy.

    Args:
        grouping: Without them.
        decisions: They.
        matching: When documents match otherwise.
        collection: Of the documents, after `finish`.
        values: What `finish` returned.
    """
    if not decisions.yes and not decisions.no:
        return grouping
    sets = collection.sets(values)
    order = collection.order(len(values))
    judge = _Judge(decisions, matching, sets, values, collection.match_groups())
    kept_by = grouping.kept_by.copy()
    score = None if grouping.similarity is None else grouping.similarity.copy()
    for members in _touched(decisions, matching, sets, values, collection):
        inside = order[np.isin(order, members)]
        kept: list[int] = []
        for row in inside.tolist():
            found = judge.first_match(row, kept)
            kept_by[row] = row if found is None else found[0]
            if score is not None:
                score[row] = 1.0 if found is None else found[1]
            if found is None:
                kept.append(row)
    return replace(grouping, kept_by=kept_by, label=kept_by, similarity=score)


def _touched(
    decisions: Decisions,
    matching: Matching,
    sets: FeatureSets,
    values: Any,
    collection: Collection,
) -> Iterator[Any]:
    """The groups of similar documents with an answer, joined where one says yes."""
    if matching.by_features:
        label = similar_components(sets, matching.match, collection.workers)
    else:
        groups = collection.match_groups()
        k, bits = matching.distance or 0, matching.recipe.bits
        label = components(values, k, bits, workers=collection.workers, groups=groups)
    root: dict[int, int] = {}

    def top(group: int) -> int:
        while root.setdefault(group, group) != group:
            group = root[group]
        return group

    for first, second in (*decisions.yes, *decisions.no):
        one, other = top(int(label[first])), top(int(label[second]))
        if (first, second) in decisions.yes:
            root[max(one, other)] = min(one, other)
    parts: dict[int, list[int]] = {}
    for group in root:
        parts.setdefault(top(group), []).append(group)
    for groups_of_one in parts.values():
        yield np.flatnonzero(np.isin(label, groups_of_one))


class _Judge:
    """Tells whether documents match: as was said, else as is measured."""

    def __init__(
        self, decisions: Decisions, matching: Matching, sets: FeatureSets, values: Any, groups: Any
    ) -> None:
        self._said = dict.fromkeys(decisions.yes, True) | dict.fromkeys(decisions.no, False)
        self._named = {row for pair in self._said for row in pair}
        self._matching, self._sets, self._groups = matching, sets, groups
        self._codes, self._empty = np.ma.getdata(values), np.ma.getmaskarray(values)[:, 0]

    def first_match(self, row: int, kept: list[int]) -> tuple[int, float] | None:
        """The first of the kept documents that a document matches, and their similarity."""
        if not kept:
            return None
        others = np.array(kept, np.int64)
        matches, score = self._measured(row, others)
        if row in self._named:
            for at, other in enumerate(kept):
                pair = (min(row, other), max(row, other))
                matches[at] = self._said.get(pair, bool(matches[at]))
        found = np.flatnonzero(matches)
        return (kept[found[0]], float(score[found[0]])) if found.size else None

    def _measured(self, row: int, others: Any) -> tuple[Any, Any]:
        matches = ~self._empty[others] & (not self._empty[row])
        if self._groups is not None:
            matches &= self._groups[others] == self._groups[row]
        if self._matching.distance is not None:
            differ = np.bitwise_count(self._codes[others] ^ self._codes[row])
            matches &= differ.sum(axis=1, dtype=np.int64) <= self._matching.distance
        score = np.ones(others.size)
        if self._matching.by_features:
            rows = np.full(others.size, row, np.int64)
            score = similarities(self._sets, others, rows, self._matching.measure)
            matches &= score >= self._matching.match.similarity
        return matches, score
