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
from neardup.pipeline.evaluation.scores import scores_of
from neardup.pipeline.run.outputs import output_set
from neardup.pipeline.run.reading import Reader, open_inputs, read_sources
from neardup.pipeline.run.rule import Choice, Rule
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.rule import Limits
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
        Choice(policy=self.policy)
        for _, recipe in self.recipes:
            self.rule(recipe)

    def rule(self, recipe: Recipe) -> Rule:
        """How documents of a recipe match."""
        return Rule(self.lowest, measure=self.measure, recipe=recipe)


def evaluate_files(
    paths: Sequence[str],
    asked: Asked,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare what recipes find in files with what people labelled.

    Args:
        paths: Inputs, as for `open_sources`; read once for each recipe.
        asked: What to evaluate.
        read: Which fields; the id is that of the labels.
        limits: What this may use.
        progress: Told where it is.

    Raises:
        UsageError: If labels and documents do not fit.
        DataError, FileError: If a file cannot be read or written.
    """
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    truth: Truth | None = None
    found: list[Scores] = []
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, read.input_format)
        written = stack.enter_context(output_set(sources, limits))
        if asked.report is not None:
            written.check(asked.report)
        names, choice = [source.name for source in sources], Choice(policy=asked.policy)
        for title, recipe in asked.recipes:
            rule = asked.rule(recipe)
            with Reader(names, rule, limits, keep_features=True) as reader:
                rejects = Rejects(None, written)
                documents = read_sources(sources, reader, read, rejects, watch, shown)
                watch.begin("evaluate")
                if truth is None:
                    rows = np.arange(len(documents))
                    truth = read_truth(asked.labels, documents.addresses.of(rows).to_pylist())
                found.append(scores_of(title, documents, rule, choice, limits, truth, asked.seed))
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
