"""Labels of a corpus: clusters, or pairs that are duplicates, and pairs that are not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.documents import read_table
from neardup.errors import DataError, UsageError
from neardup.pipeline.evidence.pair_rows import field_of, pair_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from neardup.pipeline.evidence.pair_rows import PairRow
    from neardup.runtime.types import Rows

__all__ = ["Truth", "read_truth"]


@dataclass(frozen=True, slots=True)
class Truth:
    """Labels of documents 0 to n - 1.

    Args:
        cluster: int64 (n,): the cluster of each document; with labelled pairs, their components.
        listed: bool (n,): the document was labelled; others are left out.
        positive: int64 (p,), ascending: left * n + right of each labelled duplicate; None if all
            pairs of a cluster are duplicates.
        judged: int64 (q, 2): the only pairs that count, if some are labelled as different; None if
            every pair counts, and unlabelled pairs are different.
        unknown: The number of labels about other documents.
    """

    cluster: Any
    listed: Any
    positive: Any = None
    judged: Any = None
    unknown: int = 0

    @property
    def pairs(self) -> int:
        """The number of pairs that are duplicates."""
        if self.positive is not None:
            return int(self.positive.size)
        sizes = np.unique(self.cluster[self.listed], return_counts=True)[1]
        return int((sizes * (sizes - 1) // 2).sum())

    def are_true(self, left: Rows, right: Rows) -> Any:
        """Whether pairs (left below right) are duplicates; bool."""
        if self.positive is None:
            return self.cluster[left] == self.cluster[right]
        return np.isin(left * self.cluster.size + right, self.positive)

    def of_clusters(self) -> Any:
        """float64 (n,): duplicates, counted at the first document of their cluster."""
        pairs = np.zeros(self.cluster.size)
        if self.positive is None:
            names, sizes = np.unique(self.cluster[self.listed], return_counts=True)
            pairs[names] = sizes * (sizes - 1) / 2
        else:
            np.add.at(pairs, self.cluster[self.positive // self.cluster.size], 1.0)
        return pairs


def read_truth(path: str, names: Sequence[str]) -> Truth:
    """Read labels: a table with `id` and `cluster`, or one of pairs with or without a label.

    Args:
        path: A table, of any format that documents have.
        names: The ids of the documents.

    Raises:
        UsageError: If there are no documents, two have the same id, no label is about them, or it
            is not a table.
        DataError, FileError: If it is another table, has a document in two clusters, or cannot be
            read.
    """
    rows: dict[str, int] = {}
    for row, name in enumerate(names):
        if rows.setdefault(name, row) != row:
            raise UsageError(
                f"two documents have the same id, {name!r}: labels do not tell them apart; name"
                " another field with --id, or take one out"
            )
    if not names:
        raise UsageError("there are no documents to evaluate: the input of --docs is empty")
    table = read_table(path)
    first = next(table, None)
    if first is None:
        raise DataError(f"{path} has no labels")
    table = chain([first], table)
    names_clusters = {"id", "cluster"} <= first[1].keys()
    truth = _clusters(table, rows) if names_clusters else _pairs(pair_rows(path, table), rows)
    if not truth.listed.any():
        raise UsageError(
            f"{path} labels none of the documents: its ids are not theirs; name the field with --id"
        )
    return truth


def _clusters(table: Iterable[tuple[str, Mapping[str, Any]]], rows: Mapping[str, int]) -> Truth:
    cluster = np.arange(len(rows))
    listed = np.zeros(len(rows), np.bool_)
    firsts: dict[str, int] = {}
    clusters: dict[str, str] = {}
    unknown = 0
    for place, cells in table:
        line = {name: cell for name, cell in cells.items() if cell != ""}
        document, name = field_of(line, "id", place), field_of(line, "cluster", place)
        row = rows.get(document)
        if row is None:
            unknown += 1
            continue
        if (other := clusters.setdefault(document, name)) != name:
            raise DataError(
                f"{place}: {document!r} is in cluster {name!r} here and in {other!r} above; keep "
                "one of the rows"
            )
        cluster[row] = firsts.setdefault(name, row)
        listed[row] = True
    return Truth(cluster, listed, unknown=unknown)


def _pairs(pairs: Iterable[PairRow], rows: Mapping[str, int]) -> Truth:
    n, unknown = len(rows), 0
    answers: dict[tuple[int, int], bool] = {}
    for pair in pairs:
        one, other = rows.get(pair.first), rows.get(pair.second)
        if one is None or other is None:
            unknown += 1
        elif one != other:
            answers.pop(key := (min(one, other), max(one, other)), None)  # the last label counts
            if pair.label is not None or not pair.answered:
                answers[key] = pair.label is not False
    yes = np.array([pair for pair, label in answers.items() if label], np.int64).reshape(-1, 2)
    cluster = np.arange(n)
    for one, other in yes.tolist():
        a, b = _root(cluster, one), _root(cluster, other)
        cluster[max(a, b)] = min(a, b)
    cluster = np.array([_root(cluster, row) for row in range(n)], np.int64)
    positive = np.sort(yes[:, 0] * n + yes[:, 1])
    if len(yes) == len(answers):
        return Truth(cluster, np.full(n, bool(answers)), positive, unknown=unknown)
    judged = np.array(sorted(answers), np.int64).reshape(-1, 2)
    listed = np.zeros(n, np.bool_)
    listed[judged.ravel()] = True
    return Truth(cluster, listed, positive, judged, unknown)


def _root(parent: Rows, row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = int(parent[row])
    return row
