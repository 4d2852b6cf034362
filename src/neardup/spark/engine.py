"""The parts of a run on an engine: a session, a work folder, limits of a task, and settings.

Every task runs a function of `workers` over the rows of a partition, by `Engine.step`. Three things
hold for each exchange, and for the engine's own recovery of a task that it lost:

- A function sends a row by a hash of what the row is about (column `p`), never by where it ran, so
  a task that runs twice sends its rows to the same places.
- What is used twice is written to the work folder first. A write overwrites its whole folder, and
  Spark and Sail show a folder's files when all tasks are done: of a task that died halfway nothing
  is read.
- A function takes the rows of a partition in any order, since an exchange has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from neardup.errors import UsageError
from neardup.features.frequency_table import table_of
from neardup.similarity.feature_sets import Match
from neardup.spark.engine_session import mapped
from neardup.spark.workers.file_inputs import Shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.rule import Choice, Rule
    from neardup.spark.engine_session import Frame, Session, Worker

__all__ = ["LEAST_PARTS", "Engine", "Limits", "Place", "Route", "Settings"]

LEAST_PARTS: Final = 8
BYTES_A_PART: Final = 1 << 24
ROWS_A_PART: Final = 1 << 16
"""What fills a partition where no number of them is asked for: bytes of features, and documents."""


@dataclass(frozen=True, slots=True)
class Place:
    """The engine of a run over files, and its work folder.

    Args:
        master: As for `open_session`.
        tmp: Folder on a disk that all workers see, for intermediate tables; by default next to the
            outputs.
    """

    master: str = "sail"
    tmp: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether all workers are on this machine."""
        return self.master.startswith(("sail", "local"))


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one task gets; more is cut in pieces, or decided in rounds.

    Args:
        edges: Matches of a component, 100 bytes each.
        others: Documents that a document of a transitive group meets under a key at first.
        features: Features of a transitive group that one task decides, 25 bytes each; a document
            counts as four more.
        of_key: Documents of a key.
        of_block: Fingerprints of a block.
        blocks: Blocks of fingerprints that are sent at once, 40 bytes each: an engine in this
            process holds them all.
        candidates: Pairs of heavy keys, for each document, beyond which there are waves.
        of_part: Likewise for each partition, 50 bytes each where they are made distinct.
        ids: Ids of a DataFrame that are brought into order in one task, about.
        sent: Rows of one side of a join that are sent to all tasks, some 50 bytes each, so that the
            other side stays where it is.
    """

    edges: int = 1 << 22
    others: int = 1 << 5
    features: int = 1 << 24
    of_key: int = 1 << 14
    of_block: int = 1 << 20
    blocks: int = 1 << 22
    candidates: int = 1 << 8
    of_part: int = 1 << 22
    ids: int = 1 << 20
    sent: int = 1 << 22


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a decision, in the form that workers take.

    Args:
        match: When two documents match; by features if `by_features`, else by its distance.
        by_features: Whether feature sets are compared.
        bits: Width of a fingerprint.
        keep: As for `Choice`.
        policy: "greedy" or "components".
        has_within: Whether documents must have a field in common.
    """

    match: Match
    by_features: bool
    bits: int
    keep: str
    policy: str
    has_within: bool = False

    @classmethod
    def of(cls, rule: Rule, choice: Choice, within: str | None = None) -> Settings:
        """The settings for workers, from a rule, a choice, and whether documents share a field.

        Raises:
            UsageError: For what only one machine does.
        """
        if choice.decisions is not None:
            raise UsageError("--decisions requires --engine local: leave it out")
        if "custom" in rule.recipe.to_json():
            raise UsageError("the recipe has a function of this process: use --engine local")
        match = rule.match if rule.by_features else Match(distance=rule.distance or 0)
        return cls(
            match, rule.by_features, rule.recipe.bits, choice.keep, choice.policy,
            has_within=within is not None,
        )  # fmt: skip

    @property
    def has_scores(self) -> bool:
        """Whether documents have scores, or only numbers."""
        return self.keep not in {"first", "last"}

    @property
    def measure(self) -> str:
        """The similarity's name, or "" where none is measured."""
        return self.match.measure if self.by_features else ""


class Route(NamedTuple):
    """The route of rows to the tasks that need them.

    Args:
        sender: Gives rows a column `p`, the partition of each: called with `parts`, their number.
        schema: Of the rows that are sent.
    """

    sender: Callable[..., Iterable[pa.RecordBatch]]
    schema: str


class Engine:
    """A session, a work folder that it and its workers see, and a number of partitions."""

    def __init__(
        self, session: Session, work: str, parts: int, limits: Limits | None = None
    ) -> None:
        """Begin; nothing runs yet."""
        self.session, self.parts, self.limits = session, parts, limits or Limits()
        self.is_free = False
        self._work, self._kept = work, 0

    def fit(self, documents: Frame) -> None:
        """Take no more partitions than DOCUMENTS that were kept fill, if it is free to."""
        if not self.is_free:
            return
        (row,) = documents.selectExpr(
            "count(*) AS rows", "coalesce(sum(octet_length(features)), 0) AS bytes"
        ).collect()
        filled = max(row["rows"] // ROWS_A_PART, row["bytes"] // BYTES_A_PART)
        self.parts = min(self.parts, max(LEAST_PARTS, filled))

    def step(
        self,
        frame: Frame,
        worker: Worker,
        schema: str,
        *,
        to: Route | str | None = None,
        keep: str = "",
    ) -> Frame:
        """Run a function over the rows of each partition.

        Args:
            frame: The rows.
            worker: Takes batches, and gives those of `schema`.
            schema: Of the result.
            to: The tasks that the rows are brought to before: those that a route sends them to, or
                one for each hash of a column, or "one" for all. None: the function runs where they
                are.
            keep: Name for the result in the work folder; lazy without one.
        """
        if isinstance(to, Route):
            frame = mapped(frame, partial(to.sender, parts=self.parts), to.schema)
            to = "p"
        if to is not None:
            frame = frame.repartition(1) if to == "one" else frame.repartition(self.parts, to)
        result = mapped(frame, worker, schema)
        return self.keep(result, keep, schema) if keep else result

    def keep(self, frame: Frame, name: str, schema: str) -> Frame:
        """Write a frame to the work folder, and read it from there from now on."""
        self._kept += 1
        path = f"{self._work}/{self._kept:04}-{name}"
        writer = frame.write.mode("overwrite").option("compression", "snappy")
        # Values rarely repeat, and dictionaries take Spark a tenth of a run.
        writer.option("parquet.enable.dictionary", "false").parquet(path)
        kept: Frame = self.session.read.schema(schema).parquet(path)
        return kept

    def small(self, frame: Frame, rows: int) -> Frame:
        """A frame of at most some rows, to be sent to all tasks of a join where these are few."""
        return frame.hint("broadcast") if rows <= self.limits.sent else frame

    def ship(self, recipe: Recipe) -> Shipped:
        """Let the workers have a recipe, and the document frequencies that it names."""
        if recipe.idf is None or recipe.idf.startswith("jieba:"):
            return Shipped(recipe.to_json())
        path = f"{self._work}/{recipe.idf}.idf"
        if "://" not in path:
            Path(self._work).mkdir(parents=True, exist_ok=True)
        table_of(recipe).save(path)
        return Shipped(recipe.to_json(), path)
