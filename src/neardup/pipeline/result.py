"""The result of a run in memory, and its further questions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import UsageError
from neardup.pipeline.run.run_outputs import ReportOptions, cluster_batches, clusters_schema
from neardup.runtime.printed_tables import html_table

if TYPE_CHECKING:
    from neardup.documents import ReadOptions
    from neardup.documents.record_addresses import Addresses, RowAddresses
    from neardup.pipeline.evidence.removed import RemovedDocument
    from neardup.pipeline.report.drawings import Plot
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.read_documents import Inputs
    from neardup.pipeline.run.rule import Choice, Limits, Rule
    from neardup.pipeline.run.summary import Summary

__all__ = ["DedupResult", "Origin"]

_SHOWN_ROWS: Final = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """The parts of a run that later calls of its result need.

    Args:
        decision: The decision.
        addresses: Of the documents.
        rule: When documents matched.
        choice: Which were kept.
        read: The fields of the documents.
        limits: The resources of the run.
        inputs: The inputs.
    """

    decision: Decision
    addresses: Addresses | RowAddresses
    rule: Rule
    choice: Choice
    read: ReadOptions
    limits: Limits
    inputs: Inputs

    def texts(self, names: set[str]) -> dict[str, str]:
        """The texts of documents by their ids or addresses; in memory by all of the batches."""
        paths, tmp = self.inputs.paths, self.limits.tmp
        if paths:
            from neardup.pipeline.evidence.named_texts import texts_of

            return texts_of(names, paths, self.read, tmp, self.read.input_format)
        rows = np.arange(self.decision.kept_by.size)
        every = self.addresses.of(rows).cast(pa.large_string())
        places = pc.index_in(pa.array(sorted(names), pa.large_string()), value_set=every)
        texts = pa.chunked_array([each.texts for each in self.inputs.batches])
        places_of = zip(sorted(names), places.to_pylist(), strict=True)
        return {name: texts[row].as_py() for name, row in places_of if row is not None}


@dataclass(frozen=True, slots=True, repr=False)
class DedupResult:
    """The decision of a run for every document.

    Args:
        kept: bool, shape (n,): the document is kept.
        cluster: int64, shape (n,): the row that names the document's group: its kept document
            (greedy) or its first one (components). A document without matches names itself.
        duplicates: Arrow table with one row for each dropped document: dropped, kept, distance,
            similarity (null in exact mode without verification), cluster. Documents of files are
            named by their address, those in memory by their id or row.
        summary: Counts and times.
        origin: The run.

    Example:
        >>> from neardup import dedup
        >>> result = dedup(["to be or not to be", "To be, or not to be!", "that is the question"])
        >>> result
        DedupResult(read=3, kept=2, dropped=1)
        >>> print(result.why(1))
        1 dropped, 0 kept, similarity 1.000, distance 0
        [-to-]{+To+} be{+,+} or not to be{+!+}
    """

    kept: Any
    cluster: Any
    duplicates: pa.Table
    summary: Summary
    origin: Origin = field(compare=False)

    def clusters(self) -> pa.Table:
        """One row for each document: id, cluster, kept.

        Example:
            >>> from neardup import dedup
            >>> dedup(["one two", "One, two!"]).clusters().to_pylist()
            [{'id': 0, 'cluster': 0, 'kept': True}, {'id': 1, 'cluster': 0, 'kept': False}]
        """
        batches = cluster_batches(self.origin.decision, self.origin.addresses)
        return pa.Table.from_batches(list(batches), clusters_schema(self.origin.addresses))

    def pairs(self) -> pa.Table:
        """One row for each dropped document, the least similar first; as `duplicates`.

        Example:
            >>> from neardup import dedup
            >>> dedup(["one two", "One, two!"]).pairs()["dropped"].to_pylist()
            [1]
        """
        order = [("similarity", "ascending"), ("distance", "descending")]
        return self.duplicates.sort_by(order)

    def why(self, dropped: object) -> RemovedDocument:
        """The reason for dropping a document: the kept one, the numbers, the differing words.

        Args:
            dropped: Its id, address or row, as `duplicates` has it.

        Raises:
            UsageError: If no document of that name was dropped.
            FileError, DataError: If its text cannot be read again.
        """
        from neardup.pipeline.evidence.removed import RemovedDocument

        named = self.duplicates["dropped"].cast(pa.large_string())
        rows = self.duplicates.filter(pc.equal(named, str(dropped)))
        if not rows.num_rows:
            kept_for = self.duplicates.filter(
                pc.equal(self.duplicates["kept"].cast(pa.large_string()), str(dropped))
            )
            if kept_for.num_rows:
                other = kept_for["dropped"][0].as_py()
                raise UsageError(
                    f"{dropped!r} was kept, and {kept_for.num_rows:,} dropped for it: ask"
                    f" why({other!r})"
                )
            raise UsageError(
                f"{dropped!r} was not dropped: the column `dropped` of `duplicates` has the dropped"
                " documents"
            )
        row = rows.slice(0, 1).to_pylist()[0]
        gone, kept = str(row["dropped"]), str(row["kept"])
        texts = self.origin.texts({gone, kept})
        both = texts.get(kept), texts.get(gone)
        return RemovedDocument(gone, kept, row["distance"], row["similarity"], both)

    def rethreshold(self, similarity: float) -> Any:
        """The result at a higher threshold, without reading again, if it is exact.

        Args:
            similarity: The threshold, at least the run's own.

        Returns:
            bool (n,): `kept` at that threshold.

        Raises:
            UsageError: For a lower threshold, a run by distance, or if a dropped document is less
                similar to the one kept for it, since the run did not search for another match.

        Example:
            >>> from neardup import dedup
            >>> dedup(["a b c d", "A b c d"]).rethreshold(0.9).tolist()
            [True, False]
        """
        rule, decision = self.origin.rule, self.origin.decision
        if not rule.by_features or decision.similarity is None:
            raise UsageError("rethreshold requires similarity: this run compared fingerprints")
        own = rule.match.similarity
        if not own <= similarity <= 1:
            raise UsageError(f"similarity is {similarity:g}: use a number from {own:g} up to 1")
        if similarity == own:
            return self.kept.copy()
        back = int((decision.similarity[~decision.kept] < similarity).sum())
        if back or self.origin.choice.policy != "greedy":
            raise UsageError(
                f"{back:,} dropped documents are less than {similarity:g} similar to the kept one,"
                " and may match another: call dedup with that similarity, or see the report's"
                " thresholds"
                if back
                else "components at another threshold need all pairs: call dedup again"
            )
        return self.kept.copy()

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        lowest: float | None = None,
        source: str | None = None,
        summary: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write a page about the run; the documents are read and fingerprinted again.

        Args:
            path: The page to write, .html.
            lowest: Least similarity of the page; by default 0.1 below the threshold.
            source: Field by which it counts documents.
            summary: Write its numbers to this JSON file.

        Raises:
            UsageError, FileError, DataError: As when the run read the documents, or if these have
            changed.

        Example:
            >>> import tempfile
            >>> from neardup import dedup
            >>> from pathlib import Path
            >>> path = Path(tempfile.mkdtemp()) / "report.html"
            >>> dedup(["one two", "One, two!"]).report(path)
            >>> path.read_text()[:15]
            '<!doctype html>'
        """
        from neardup.pipeline.report_again import report_of

        summary_path = None if summary is None else os.fspath(summary)
        origin = self.origin
        report_of(
            origin.inputs,
            lambda documents: self._decision(len(documents)),
            ReportOptions(os.fspath(path), lowest, source, summary_path),
            origin.rule,
            origin.choice,
            origin.read,
            origin.limits,
        )

    def plot(self, kind: str = "similarities") -> Plot:
        """A picture for a notebook or a file: SVG, without a plotting library.

        Args:
            kind: "similarities" (of dropped documents to those kept for them) or "sizes" (of
                clusters).

        Raises:
            UsageError: For another kind, or similarities of a run by distance.

        Example:
            >>> from neardup import dedup
            >>> dedup(["a b c d", "A b c d", "something else"]).plot("sizes")
            Plot('clusters by their number of documents')
        """
        from neardup.pipeline.report.drawings import plot_of

        decision = self.origin.decision
        similarities = None if decision.similarity is None else decision.similarity[~decision.kept]
        return plot_of(kind, self.cluster, similarities)

    def _decision(self, count: int) -> Decision:
        decision = self.origin.decision
        if count != (before := decision.kept_by.size):
            raise UsageError(
                f"the inputs have {count:,} documents, the run had {before:,}: they changed"
            )
        return decision

    def to_pandas(self) -> Any:
        """`clusters` as a pandas data frame; pandas must be installed.

        Example:
            >>> from neardup import dedup
            >>> dedup(["one two", "One, two!"]).to_pandas()["kept"].tolist()
            [True, False]
        """
        return self.clusters().to_pandas()

    def to_polars(self) -> Any:
        """`clusters` as a Polars data frame; Polars must be installed.

        Example:
            >>> from neardup import dedup
            >>> dedup(["one two", "One, two!"]).to_polars()["kept"].to_list()
            [True, False]
        """
        import polars as pl

        return pl.from_arrow(self.clusters())

    def __repr__(self) -> str:
        """The counts, without the arrays."""
        summary = self.summary
        return f"DedupResult(read={summary.read}, kept={summary.kept}, dropped={summary.dropped})"

    def __str__(self) -> str:
        """The summary's lines."""
        return str(self.summary)

    def _repr_html_(self) -> str:
        return f"{self.summary._repr_html_()}{_least_similar(self.pairs())}"


def _least_similar(pairs: pa.Table) -> str:
    """The doubtful drops as an HTML table."""
    rows = pairs.slice(0, _SHOWN_ROWS)
    if not len(rows):
        return ""
    names = ("dropped", "kept", "distance", "similarity")
    shown = ([_cell(row[name]) for name in names] for row in rows.to_pylist())
    return f"<p>the least similar that were dropped</p>{html_table(shown, names)}"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)
