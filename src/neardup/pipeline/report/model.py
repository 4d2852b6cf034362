"""The content of a report: numbers and texts, already counted, sampled and shortened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "ClusterGroup",
    "ClusterShown",
    "CurvePoint",
    "Matrix",
    "PairShown",
    "Report",
    "size_classes",
]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The result at one threshold.

    Attributes:
        similarity: The threshold.
        kept: Documents kept: exact at the run's own threshold, elsewhere estimated from `matched`.
        matched: The exact number of documents with an earlier one at least this similar; None if
            unknown.
    """

    similarity: float
    kept: int
    matched: int | None


@dataclass(frozen=True, slots=True)
class PairShown:
    """Two documents, the earlier one first.

    Attributes:
        names: Their ids or addresses.
        similarity: Of their features.
        distance: Of their fingerprints; None if they are not known.
        shared: The number of features of both.
        only: The numbers of features of the first alone, and of the second alone.
        runs: (kind, text) of their words: "equal", "removed" (only in the first), "added"; None if
            a text is unknown.
        longest: The longest run of equal words.
        note: What the runs leave out, or why there are none.
        fields: Name of each field that is shown next to the text, its value in the first and in the
            second.
        verdicts: The fate of each: "kept" or "dropped"; empty without a decision.
    """

    names: tuple[str, str]
    similarity: float
    distance: int | None
    shared: int
    only: tuple[int, int]
    runs: tuple[tuple[str, str], ...] | None = None
    longest: str = ""
    note: str = ""
    fields: tuple[tuple[str, str | None, str | None], ...] = ()
    verdicts: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class ClusterShown:
    """One cluster.

    Attributes:
        name: Of the document that names it.
        size: Documents, the kept one included.
        weakest: Least similarity of a dropped document and the one kept for it.
        diameter: Least similarity of any two of `compared` documents.
        compared: The number of documents for the diameter; fewer than `size` in a large cluster.
        features: Fewest and most features of a document.
        pair: The pair of the weakest link.
    """

    name: str
    size: int
    weakest: float
    diameter: float
    compared: int
    features: tuple[int, int]
    pair: PairShown | None


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """Some clusters, and the criterion by which they were chosen."""

    title: str
    clusters: tuple[ClusterShown, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The number of documents of each source that were dropped for one of each source.

    Attributes:
        field: The field of the source.
        names: Of the sources, the largest first; the last may be all others together.
        documents: The number of documents of each.
        dropped: Rows by the source of the dropped document, columns by that of the kept one.
    """

    field: str
    names: tuple[str, ...]
    documents: tuple[int, ...]
    dropped: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a page about a run.

    Attributes:
        read: Records seen; kept + equal + near + rejected, always.
        kept: Documents kept.
        equal: Dropped documents that have the same features as the kept one.
        near: Other dropped documents.
        rejected: Records that could not be used.
        empty: Kept documents without features.
        clusters: Groups of two documents or more.
        text_bytes: Bytes of all documents' text, and of the dropped ones'.
        threshold: The run's own; 0 if it has none.
        measure: The measure of similarity.
        policy: "greedy" or "components".
        curve: Thresholds, ascending.
        joined: Whether the earlier documents below the threshold were searched.
        dropped_border: The least similar pairs of a kept and a dropped document.
        kept_border: The most similar pairs below the threshold, of which the second was kept.
        sizes: (least, most, clusters) of each class of cluster sizes.
        groups: Clusters shown.
        warnings: Points that a person should check.
        matrix: Sources, if there are several.
        facts: (name, value) of the search and its guarantees.
        settings: (name, value) of the options.
        left_out: What the page does not show.
        command: To repeat the run.
        inputs: Their names.
        changed: The date of the last change of the newest one, "" if unknown.
        removed: (similarity, kept, dropped) of dropped documents, the least similar first.
    """

    read: int
    kept: int
    equal: int
    near: int
    rejected: int
    empty: int
    clusters: int
    text_bytes: tuple[int, int]
    threshold: float
    measure: str
    policy: str
    curve: tuple[CurvePoint, ...]
    joined: bool
    dropped_border: tuple[PairShown, ...]
    kept_border: tuple[PairShown, ...]
    sizes: tuple[tuple[int, int, int], ...]
    groups: tuple[ClusterGroup, ...]
    warnings: tuple[str, ...]
    matrix: Matrix | None
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    command: str | None = None
    inputs: tuple[str, ...] = ()
    changed: str = ""
    removed: tuple[tuple[float, str, str], ...] = ()

    @property
    def dropped(self) -> int:
        """Documents dropped."""
        return self.equal + self.near

    def numbers(self) -> dict[str, Any]:
        """All numbers of the report, as `--summary` writes them."""
        return {
            "read": self.read,
            "kept": self.kept,
            "dropped": self.dropped,
            "equal": self.equal,
            "near": self.near,
            "rejected": self.rejected,
            "empty": self.empty,
            "clusters": self.clusters,
            "text_bytes": self.text_bytes[0],
            "text_bytes_dropped": self.text_bytes[1],
            "threshold": self.threshold,
            "measure": self.measure,
            "policy": self.policy,
            "thresholds": [[point.similarity, point.kept] for point in self.curve],
            "earlier_match": [
                [point.similarity, point.matched]
                for point in self.curve
                if point.matched is not None
            ],
            "cluster_sizes": [list(each) for each in self.sizes],
            "warnings": len(self.warnings),
            "settings": dict(self.settings),
        }


def size_classes(sizes: Any) -> tuple[tuple[int, int, int], ...]:
    """(least, most, clusters) of the classes of sizes that have any: 2, 3, 4 to 7, 8 to 15, ...

    Example:
        >>> size_classes(np.array([2, 2, 5, 9]))
        ((2, 2, 2), (4, 7, 1), (8, 15, 1))
    """
    edges = [2, 3, 4]
    while edges[-1] <= sizes.max(initial=0):
        edges.append(2 * edges[-1])
    counts = np.histogram(sizes, np.array(edges, np.float64) - 0.5)[0].tolist()
    return tuple(
        (low, high - 1, number)
        for low, high, number in zip(edges, edges[1:], counts, strict=False)
        if number
    )
