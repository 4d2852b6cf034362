"""Answers in a run: a person's answer about two documents overrides their measured similarity.

A run decides as usual. Then the groups of similar documents with an answer are decided again: in
order of priority, a document is dropped if it matches a kept one. Other groups stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import UsageError
from neardup.hamming.clusters import components
from neardup.pipeline.judgement.answers import read_answers
from neardup.similarity.feature_sets import similarities
from neardup.similarity.join import similar_components

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.documents.record_addresses import Addresses
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Choice, Limits, Rule
    from neardup.runtime.types import Flags, Rows

__all__ = ["Decisions", "check_decisions", "decide_again", "with_decisions"]

ROWS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Decisions:
    """Answers about documents of a run, by their numbers.

    Args:
        yes: Pairs that match, the smaller number first.
        no: Pairs that do not match.
        unknown: The number of answers about other documents.
    """

    yes: frozenset[tuple[int, int]]
    no: frozenset[tuple[int, int]]
    unknown: int = 0

    @classmethod
    def read(cls, path: str, addresses: Addresses, documents: int) -> Decisions:
        """Read a file of answers; unsure ones decide nothing.

        Raises:
            UsageError: If two documents have a name that an answer uses.
            DataError, FileError: If it is not such a file.
        """
        answers = [x for x in read_answers(path).values() if x.answer != "unsure"]
        names = sorted({name for x in answers for name in (x.first, x.second)})
        rows = _rows_of(names, addresses, documents)
        pairs: dict[str, set[tuple[int, int]]] = {"yes": set(), "no": set()}
        unknown = 0
        for answer in answers:
            pair = rows.get(answer.first), rows.get(answer.second)
            if pair[0] is None or pair[1] is None or pair[0] == pair[1]:
                unknown += 1
                continue
            pairs[answer.answer].add((min(pair[0], pair[1]), max(pair[0], pair[1])))
        return cls(frozenset(pairs["yes"]), frozenset(pairs["no"]), unknown)

    @property
    def note(self) -> str:
        """A note on the answers used, for the summary."""
        note = f"answers taken as given: {len(self.yes):,} duplicates, {len(self.no):,} different"
        lost = f"; {self.unknown:,} name documents that the inputs lack"
        return note + (lost if self.unknown else "")


def _rows_of(names: list[str], addresses: Addresses, documents: int) -> dict[str, int]:
    """The documents of these names."""
    name_array, row_of = pa.array(names, pa.large_string()), {}
    for begin in range(0, documents if names else 0, ROWS_AT_ONCE):
        rows = np.arange(begin, min(begin + ROWS_AT_ONCE, documents))
        places = pc.index_in(addresses.of(rows), value_set=name_array)
        for at in np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)):
            name = names[places[int(at)].as_py()]
            if name in row_of:
                raise UsageError(
                    f"two documents have the id {name!r:.80}: answers do not tell them apart"
                )
            row_of[name] = int(rows[at])
    return row_of


def check_decisions(choice: Choice, against: object) -> None:
    """Refuse, before hours of work, a run that cannot use answers.

    Raises:
        UsageError: For a run against an index.
        DataError, FileError: If it is not a file of answers.
    """
    if choice.decisions is None:
        return
    if against is not None:
        raise UsageError("decisions are about documents of the inputs: leave out against")
    read_answers(choice.decisions)


def with_decisions(
    decision: Decision, documents: Documents, rule: Rule, choice: Choice, limits: Limits
) -> tuple[Decision, list[str]]:
    """A decision that follows the choice's answers, if any, and a note about them.

    Raises:
        UsageError: If two documents have a name that an answer uses.
        DataError, FileError: If it is not a file of answers.
    """
    if choice.decisions is None:
        return decision, []
    decisions = Decisions.read(choice.decisions, documents.addresses, documents.own)
    again = decide_again(decision, decisions, documents, rule, choice, limits)
    return again, [decisions.note]


def decide_again(
    decision: Decision,
    decisions: Decisions,
    documents: Documents,
    rule: Rule,
    choice: Choice,
    limits: Limits,
) -> Decision:
    """Decide for every document, with answers that override matches; the policy is greedy.

    Args:
        decision: Without the answers.
        decisions: The answers.
        documents: The documents.
        rule: When other documents match.
        choice: The order of priority.
        limits: Threads.
    """
    if not decisions.yes and not decisions.no:
        return decision
    order = documents.order(choice.keep)
    judge = _Judge(decisions, rule, documents)
    kept_by = decision.kept_by.copy()
    score = None if decision.similarity is None else decision.similarity.copy()
    for members in _touched(decisions, documents, rule, limits.workers):
        inside = order[np.isin(order, members)]
        kept: list[int] = []
        for row in inside.tolist():
            match = judge.first_match(row, kept)
            kept_by[row] = row if match is None else match[0]
            if score is not None:
                score[row] = 1.0 if match is None else match[1]
            if match is None:
                kept.append(row)
    return replace(decision, kept_by=kept_by, label=kept_by, similarity=score)


def _touched(
    decisions: Decisions, documents: Documents, rule: Rule, workers: int | None
) -> Iterator[Rows]:
    """The groups of similar documents with an answer, joined where one says yes."""
    if rule.by_features:
        label = similar_components(documents.sets, rule.match, workers)
    else:
        k, bits, groups = rule.distance or 0, rule.recipe.bits, documents.sets.groups
        label = components(documents.values, k, bits, workers=workers, groups=groups)
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
    """Decides whether documents match: by an answer, or by measurement."""

    def __init__(self, decisions: Decisions, rule: Rule, documents: Documents) -> None:
        self._said = dict.fromkeys(decisions.yes, True) | dict.fromkeys(decisions.no, False)
        self._named = {row for pair in self._said for row in pair}
        self._rule, self._sets, self._groups = rule, documents.sets, documents.sets.groups
        self._codes, self._empty = documents.codes, documents.empty

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
        rows = np.flatnonzero(matches)
        return (kept[rows[0]], float(score[rows[0]])) if rows.size else None

    def _measured(self, row: int, others: Rows) -> tuple[Flags, npt.NDArray[np.float64]]:
        matches = ~self._empty[others] & (not self._empty[row])
        if self._groups is not None:
            matches &= self._groups[others] == self._groups[row]
        if self._rule.distance is not None:
            differ = np.bitwise_count(self._codes[others] ^ self._codes[row])
            matches &= differ.sum(axis=1, dtype=np.int64) <= self._rule.distance
        score = np.ones(others.size)
        if self._rule.by_features:
            rows = np.full(others.size, row, np.int64)
            score = similarities(self._sets, others, rows, self._rule.measure)
            matches &= score >= self._rule.match.similarity
        return matches, score
