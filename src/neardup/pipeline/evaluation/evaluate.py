"""Evaluate recipes, thresholds and distances against labels."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neardup.documents import Rejects
from neardup.documents.extensions import check_page
from neardup.errors import UsageError
from neardup.pipeline.evaluation.labels import Truth, read_truth
from neardup.pipeline.evaluation.model import Evaluation, Scores
from neardup.pipeline.evaluation.page import evaluation_page
from neardup.pipeline.evaluation.scores import Documents, scores_of
from neardup.pipeline.run.collection import Collection
from neardup.pipeline.run.matching import Matching
from neardup.pipeline.run.steps import open_inputs, output_set, read_all
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.resources import Resources
    from neardup.runtime.progress import Progress

__all__ = ["Asked", "evaluate_files"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to evaluate.

    Args:
        labels: A table of `id` and `cluster`, or of pairs, with or without a label.
        recipes: (title, recipe) of each that is compared.
        lowest: Least similarity that is searched.
        measure: "jaccard", "cosine", "containment" or "dice".
        policy: How groups are made.
        seed: Of the intervals.
        report: A page to write.

    Raises:
        UsageError: For values out of range.
    """

    labels: str
    recipes: Sequence[tuple[str, Recipe]]
    lowest: float = 0.5
    measure: str = "jaccard"
    policy: str = "greedy"
    seed: int = 0
    report: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_page(self.report)
        if not self.recipes:
            raise UsageError("there is no recipe to evaluate: give one")
        for _, recipe in self.recipes:
            self.matching(recipe)

    def matching(self, recipe: Recipe) -> Matching:
        """How documents of a recipe match."""
        return Matching(self.lowest, measure=self.measure, recipe=recipe, policy=self.policy)


def evaluate_files(
    paths: Sequence[str],
    asked: Asked,
    read: ReadOptions,
    resources: Resources,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
) -> Evaluation:
    """Compare what recipes find in files with what people labelled.

    Args:
        paths: Inputs, as for `open_sources`; read once for each recipe.
        asked: What to evaluate.
        read: Which fields; the id is that of the labels.
        resources: What this may use.
        progress: Told where it is.
        format_name: Format of all inputs; their extensions tell unless given.

    Raises:
        UsageError: If labels and documents do not fit.
        DataError, FileError: If a file cannot be read or written.
    """
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    truth: Truth | None = None
    found: list[Scores] = []
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, resources, format_name)
        written = stack.enter_context(output_set(sources, resources))
        if asked.report is not None:
            written.check(asked.report)
        names = [source.name for source in sources]
        for title, recipe in asked.recipes:
            matching = asked.matching(recipe)
            with Collection(names, matching, resources, keep_features=True) as collection:
                read_all(sources, collection, read, Rejects(None, written), watch, shown)
                values = collection.finish()
                watch.begin("evaluate")
                rows = np.arange(len(values))
                if truth is None:
                    truth = read_truth(asked.labels, collection.addresses.of(rows).to_pylist())
                documents = Documents(collection.sets(values), values, rows, resources)
                found.append(scores_of(title, documents, matching, truth, asked.seed))
        assert truth is not None  # noqa: S101  # there is a recipe
        told = _told(asked, truth, found)
        if asked.report is not None:
            written.create(asked.report).write(evaluation_page(told).encode())
        written.commit()
    return told


def _told(asked: Asked, truth: Truth, found: list[Scores]) -> Evaluation:
    world = "all other pairs of labelled documents are different"
    if truth.judged is not None:
        world = f"only the {len(truth.judged):,} labelled pairs count"
        # Groups of documents that were not compared with one another say nothing.
        found = [_without_groups(each) for each in found]
    return Evaluation(
        truth.cluster.size,
        int(truth.listed.sum()),
        truth.pairs,
        truth.unknown,
        world,
        asked.policy,
        asked.measure,
        asked.lowest,
        tuple(found),
    )


def _without_groups(scores: Scores) -> Scores:
    points = [
        tuple(replace(point, ari=None, b_cubed=None) for point in each)
        for each in (scores.by_similarity, scores.by_distance)
    ]
    return Scores(scores.title, points[0], points[1], scores.histogram)
