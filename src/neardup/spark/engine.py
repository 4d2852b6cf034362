"""The plan of a run on an engine: which step runs where, and what is exchanged between them.

1. documents: fingerprints and feature sets; equal ones collapse to one of them;
2. by similarity: counts, keys, pairs that share a key, each measured where its features are sent;
   by distance: each fingerprint once for each block;
3. components of the matches, checked: both ends of every edge have one label;
4. keep inside the components; then each dropped document is measured against the one kept.

Whatever is used twice is written to a work folder as Parquet, so that nothing is computed again,
and nothing is held by the driver but counts: 2**24 cells at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import NeardupError
from neardup.spark import classes, components, keeping, near, similar
from neardup.spark.documents import DOCUMENTS
from neardup.spark.session import mapped

if TYPE_CHECKING:
    from neardup.similarity.feature_sets import Match

__all__ = ["Decision", "Engine", "Settings"]

EDGES_ON_ONE: Final = 1 << 22
"""So many edges are united in one task, 32 bytes each; beyond, stars are exchanged in rounds."""

MOST_ROUNDS: Final = 100
LEAST_CELL_BITS: Final = 10
MOST_CELL_BITS: Final = 24


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides, as the workers take it.

    Args:
        match: When two documents match; by features if `by_features`, else by its distance.
        by_features: Whether feature sets are compared.
        bits: Width of a fingerprint.
        keep: As for `Matching`.
        policy: "greedy" or "components".
    """

    match: Match
    by_features: bool
    bits: int
    keep: str
    policy: str

    @property
    def measure(self) -> str:
        """The similarity's name, or "" where none is measured."""
        return self.match.measure if self.by_features else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The documents (DOCUMENTS), and for those that match any: who is kept for them.

    `decided` has number, kept_by, label, distance and similarity; the last two for dropped ones.
    """

    documents: Any
    decided: Any


class Engine:
    """A session, a work folder that it and its workers see, and a number of partitions."""

    def __init__(
        self, session: Any, work: str, parts: int, edges_on_one: int = EDGES_ON_ONE
    ) -> None:
        """Begin; nothing runs yet."""
        self.session, self.parts = session, parts
        self._work, self._edges_on_one = work, edges_on_one

    def keep(self, frame: Any, name: str, schema: str) -> Any:
        """Write a frame to the work folder, and read it from there from now on."""
        path = f"{self._work}/{name}"
        frame.write.mode("overwrite").parquet(path)
        return self.session.read.schema(schema).parquet(path)

    def exchange(self, frame: Any) -> Any:
        """Bring the rows of a partition number together."""
        return frame.repartition(self.parts, "p")

    def decide(self, documents: Any, settings: Settings) -> Decision:
        """Decide about DOCUMENTS that were kept."""
        equal = self.keep(self._classes(documents, settings), "classes", classes.CLASSES)
        edges = self.keep(self._edges(documents, equal, settings), "edges", similar.EDGES)
        same = equal.where("number != stands").selectExpr(
            "stands AS left", "number AS right", "stands_score AS left_score",
            "score AS right_score", "true AS equal",
        )  # fmt: skip
        columns = ("left", "right", "left_score", "right_score")
        links = edges.selectExpr(*columns, "false AS equal").unionByName(same)
        labelled = self._labelled(links)
        members = mapped(labelled, partial(keeping.members, parts=self.parts), keeping.MEMBERS)
        made = mapped(
            self.exchange(members),
            partial(keeping.decide, keep=settings.keep, policy=settings.policy),
            keeping.DECISIONS,
        )
        decisions = self.keep(made, "decisions", keeping.DECISIONS)
        dropped = decisions.where("number != kept_by").selectExpr(
            "number AS left", "kept_by AS right"
        )
        measured = self._measured(dropped, documents, None, settings.measure).selectExpr(
            "left AS number", "distance", "similarity"
        )
        schema = f"{keeping.DECISIONS}, distance int, similarity double"
        decided = self.keep(decisions.join(measured, "number", "left"), "decided", schema)
        return Decision(documents, decided)

    def edges(self, documents: Any, settings: Settings) -> Any:
        """Every pair of DOCUMENTS that matches, equal ones too: EDGES, left before right."""
        standing = documents.where("octet_length(codes) > 0")
        return self.keep(self._matches(standing, settings), "edges", similar.EDGES)

    def _classes(self, documents: Any, settings: Settings) -> Any:
        made = mapped(
            documents.where("octet_length(codes) > 0"),
            partial(classes.digests, parts=self.parts),
            classes.DIGESTS,
        )
        return mapped(
            self.exchange(made), partial(classes.collapse, keep=settings.keep), classes.CLASSES
        )

    def _edges(self, documents: Any, equal: Any, settings: Settings) -> Any:
        standing = equal.where("number = stands").select("number")
        return self._matches(documents.join(standing, "number", "left_semi"), settings)

    def _matches(self, documents: Any, settings: Settings) -> Any:
        columns = [name.split()[0] for name in DOCUMENTS.split(", ")]
        documents = self.keep(documents.select(*columns), "standing", DOCUMENTS)
        if not settings.by_features:
            return self._near(documents, settings)
        cells = self._cells(documents)
        keys = mapped(
            documents,
            partial(similar.postings, cells=cells, match=settings.match, parts=self.parts),
            similar.POSTINGS,
        )
        found = mapped(
            self.exchange(keys), partial(similar.candidates, match=settings.match), similar.PAIRS
        )
        pairs = self.keep(found.distinct(), "pairs", similar.PAIRS)
        return self._measured(pairs, documents, settings.match, settings.measure)

    def _near(self, documents: Any, settings: Settings) -> Any:
        near_by: dict[str, Any] = {"distance": settings.match.distance or 0, "bits": settings.bits}
        sent = mapped(documents, partial(near.block_rows, parts=self.parts, **near_by), near.BLOCKS)
        return mapped(self.exchange(sent), partial(near.near_pairs, **near_by), similar.EDGES)

    def _cells(self, documents: Any) -> bytes:
        """In how many documents each feature is, in hashed cells: a byte for each."""
        (row,) = documents.selectExpr("sum(octet_length(features)) AS bytes").collect()
        bits = (int(row["bytes"] or 0) // 4).bit_length()
        bits = max(LEAST_CELL_BITS, min(MOST_CELL_BITS, bits))
        counted = mapped(documents, partial(similar.cells_of, bits=bits), similar.CELLS)
        merged = mapped(
            counted.repartition(1), partial(similar.merged_cells, bits=bits), similar.CELLS
        )
        rows = merged.collect()
        return bytes(rows[0]["cells"]) if rows else bytes(1 << bits)

    def _measured(self, pairs: Any, documents: Any, match: Match | None, measure: str) -> Any:
        wanted = mapped(pairs, partial(similar.requests, parts=self.parts), similar.REQUESTS)
        sent = wanted.distinct().join(documents, "number")
        columns = ("score", "within", "codes", "features")
        sent = sent.selectExpr("p", "number", "CAST(NULL AS long) AS right", *columns)
        asked = mapped(pairs, partial(similar.asked, parts=self.parts), similar.ASKED)
        kinds = ("double", "string", "binary", "binary")
        nulls = [f"CAST(NULL AS {k}) AS {c}" for c, k in zip(columns, kinds, strict=True)]
        both = sent.unionByName(asked.selectExpr("p", "number", "right", *nulls))
        return mapped(
            self.exchange(both),
            partial(similar.measure, match=match, measure_name=measure),
            similar.EDGES,
        )

    def _labelled(self, links: Any) -> Any:
        """Give each link the first document of its component as `label`; checked.

        Raises:
            NeardupError: If the ends of a link have different labels: the engine lost something.
        """
        links = self.keep(
            links, "links", "left long, right long, left_score double, right_score double,"
            " equal boolean",
        )  # fmt: skip
        stars = self._stars(links.select("left", "right")).select("node", "to")
        left = stars.selectExpr("node AS left", "to AS left_to")
        right = stars.selectExpr("node AS right", "to AS right_to")
        named = links.join(left, "left", "left").join(right, "right", "left")
        named = named.selectExpr(
            "*", "coalesce(left_to, left) AS label", "coalesce(right_to, right) AS other_label"
        )
        wrong = named.where("label != other_label").count()
        if wrong:
            raise NeardupError(
                f"{wrong:,} of the matches join documents that the engine put in different groups:"
                " it lost a part of its work; run it again"
            )
        return named.select("label", "left", "right", "left_score", "right_score", "equal")

    def _stars(self, links: Any) -> Any:
        if links.count() <= self._edges_on_one:
            made = mapped(links.repartition(1), components.forest, components.STARS)
            return self.keep(made, "stars", components.STARS)
        edges = self.keep(
            mapped(links, components.forest, components.STARS), "stars-0", components.STARS
        )
        for number in range(1, MOST_ROUNDS):
            large = self._joined(edges, components.large_stars, f"large-{number}", both=True)
            edges = self._joined(large, components.small_stars, f"stars-{number}", both=False)
            changed = large.select("changed").unionByName(edges.select("changed"))
            if not changed.where("changed > 0").count():
                return edges
        raise NeardupError(f"the components did not settle in {MOST_ROUNDS} rounds: run it again")

    def _joined(self, edges: Any, step: Any, name: str, *, both: bool) -> Any:
        sent = mapped(
            edges,
            partial(components.routed, parts=self.parts, both=both),
            "p int, node long, to long",
        )
        return self.keep(mapped(self.exchange(sent), step, components.STARS), name,
                         components.STARS)  # fmt: skip
