"""Evaluate recipes: pairs and groups compared with labels, at each threshold and distance."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import Rejects
from neardup.documents.extensions import check_page
from neardup.errors import UsageError
from neardup.fingerprinting.values import distance as hamming
from neardup.pipeline.evaluation.labels import Truth, read_truth
from neardup.pipeline.evaluation.resampled import Resampled, ari, b_cubed, f1, ratio
from neardup.pipeline.evaluation.scorecard import (
    STEP_BITS,
    STEP_HUNDREDTHS,
    Evaluation,
    Point,
    Scores,
    evaluation_page,
)
from neardup.pipeline.run.limited_pairs import FURTHEST, NEARLY, ScoredPairs, all_near, all_similar
from neardup.pipeline.run.matching import match
from neardup.pipeline.run.read_documents import Reader, open_inputs, read_sources
from neardup.pipeline.run.rule import Choice, Rule
from neardup.pipeline.run.run_outputs import output_set
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.documents import ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.evaluation.labels import Truth
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Limits
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Rows

__all__ = ["EvaluationOptions", "evaluate_files", "scores_of"]


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """Options of an evaluation.

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
        """Refuse values out of range."""
        check_page(self.report)
        if not self.recipes:
            raise UsageError("there is no recipe to evaluate: give one")
        Choice(policy=self.policy)
        for _, recipe in self.recipes:
            self.rule(recipe)

    def rule(self, recipe: Recipe) -> Rule:
        """The rule by which documents of a recipe match."""
        return Rule(self.lowest, measure=self.measure, recipe=recipe)


def evaluate_files(
    paths: Sequence[str],
    options: EvaluationOptions,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare the matches of recipes in files with labels of people.

    Args:
        paths: Inputs, as for `open_sources`; read once for each recipe.
        options: Of the evaluation.
        read: Which fields; the id is that of the labels.
        limits: Threads, memory and temporary files.
        progress: Shows the progress.

    Raises:
        UsageError: If labels and documents do not fit.
        DataError, FileError: If a file cannot be read or written.
    """
    reporter = progress or Quiet()
    watch = Stopwatch(reporter)
    truth: Truth | None = None
    scores: list[Scores] = []
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, read.input_format)
        written = stack.enter_context(output_set(sources, limits))
        if options.report is not None:
            written.check(options.report)
        names, choice = [source.name for source in sources], Choice(policy=options.policy)
        for title, recipe in options.recipes:
            rule = options.rule(recipe)
            with Reader(names, rule, limits, keep_features=True) as reader:
                rejects = Rejects(None, written)
                documents = read_sources(sources, reader, read, rejects, watch, reporter)
                watch.begin("evaluate")
                if truth is None:
                    rows = np.arange(len(documents))
                    truth = read_truth(options.labels, documents.addresses.of(rows).to_pylist())
                scores.append(
                    scores_of(title, documents, rule, choice, limits, truth, options.seed)
                )
        assert truth is not None  # noqa: S101  # there is a recipe
        evaluation = _evaluation_of(options, truth, scores)
        if options.report is not None:
            written.create(options.report).write(evaluation_page(evaluation).encode())
        written.commit()
    return evaluation


def _evaluation_of(options: EvaluationOptions, truth: Truth, scores: list[Scores]) -> Evaluation:
    world = "all other pairs of labelled documents are different"
    if truth.judged is not None:
        world = f"only the {len(truth.judged):,} labelled pairs count"
        # Groups of documents that were not compared with each other say nothing.
        scores = [_without_groups(each) for each in scores]
    return Evaluation(
        truth.cluster.size,
        int(truth.listed.sum()),
        truth.pairs,
        truth.unknown,
        world,
        options.policy,
        options.measure,
        options.lowest,
        tuple(scores),
    )


def _without_groups(scores: Scores) -> Scores:
    points = [
        tuple(replace(point, ari=None, b_cubed=None) for point in each)
        for each in (scores.by_similarity, scores.by_distance)
    ]
    return Scores(scores.title, points[0], points[1], scores.histogram)


MOST_PAIRS: Final = 20_000_000
MOST_NEAR: Final = 2_000_000
"""The most pairs within a distance; if there are more, a smaller distance is used."""
MOST_GROUPED: Final = 500_000
"""The most matching pairs from which groups are made; larger groups are hardly useful."""
BANDS: Final = 20


class _Judge:
    """Compares pairs and groups with the labels; all intervals share their draws."""

    def __init__(self, truth: Truth, seed: int) -> None:
        self._truth, self._n = truth, truth.cluster.size
        self._resampled = Resampled(truth.cluster, seed)
        self._listed = truth.listed.astype(np.float64)
        self._true = truth.of_clusters()

    def point(self, at: float, pairs: ScoredPairs, level: float, kept_by: Rows | None) -> Point:
        """Measure the pairs at a level and above, and groups if there are any."""
        matching = pairs.where(pairs.at_least(level))
        left, right = matching.left, matching.right
        true = self._truth.are_true(left, right)
        hits = np.bincount(self._truth.cluster[left[true]], minlength=self._n).astype(np.float64)
        degrees = (np.bincount(left, minlength=self._n) + np.bincount(right, minlength=self._n)) / 2
        interval = self._resampled.interval
        rand = cubed = None
        if kept_by is not None:
            rand, cubed = self._groups(kept_by)
        return Point(
            at,
            left.size,
            interval([hits, degrees], ratio),
            interval([hits, self._true], ratio),
            interval([hits, degrees, self._true], f1),
            rand,
            cubed,
        )

    def _groups(self, label: Rows) -> tuple[Any, Any]:
        """Adjusted Rand index and B-cubed of groups, over the labelled documents."""
        rows = np.flatnonzero(self._truth.listed)
        true, labels = self._truth.cluster[rows], label[rows]
        sizes = [np.unique(x, return_inverse=True, return_counts=True)[1:] for x in (true, labels)]
        both = true * self._n + labels
        of_true, of_made, of_both = (
            counts[places]
            for places, counts in (
                *sizes,
                np.unique(both, return_inverse=True, return_counts=True)[1:],
            )
        )
        parts = [
            (of_both - 1) / 2,
            (of_made - 1) / 2,
            (of_true - 1) / 2,
            of_both / of_made,
            of_both / of_true,
        ]
        added = [self._spread(rows, part) for part in parts]
        interval = self._resampled.interval
        rand = interval([*added[:3], self._listed], ari)
        return rand, interval([*added[3:], self._listed], b_cubed)

    def _spread(self, rows: Rows, part: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        whole = np.zeros(self._n)
        whole[rows] = part
        return whole


def scores_of(
    title: str,
    documents: Documents,
    rule: Rule,
    choice: Choice,
    limits: Limits,
    truth: Truth,
    seed: int = 0,
) -> Scores:
    """Compare every threshold and distance with the labels.

    Args:
        title: Of the recipe.
        documents: The documents.
        rule: Recipe, measure, and the least similarity.
        choice: The policy.
        limits: The resources of the run.
        truth: The labels.
        seed: Of the intervals.

    Raises:
        UsageError: If there are too many pairs.
    """
    judge, lowest = _Judge(truth, seed), rule.match.similarity
    pairs = _similar(documents, rule, truth, limits.workers)
    first = int(np.ceil(lowest * 100 - NEARLY))
    by_similarity = []
    for step in range(first, 101):
        kept_by = None
        many = np.count_nonzero(pairs.at_least(step / 100)) > MOST_GROUPED
        if step % STEP_HUNDREDTHS == 0 and not many:
            kept_by = match(documents, replace(rule, similarity=step / 100), choice, limits).label
        by_similarity.append(judge.point(step / 100, pairs, step / 100, kept_by))
    by_distance = []
    near, furthest = _near(documents, rule, truth, limits.workers)
    for distance in range(furthest + 1):
        kept_by = None
        many = np.count_nonzero(near.at_least(-distance)) > MOST_GROUPED
        if distance % STEP_BITS == 0 and not many:
            exact = replace(rule, similarity=None, distance=distance)
            kept_by = match(documents, exact, choice, limits).label
        by_distance.append(judge.point(distance, near, -distance, kept_by))
    band = np.minimum((pairs.score * BANDS + NEARLY).astype(np.int64), BANDS)
    true = truth.are_true(pairs.left, pairs.right)
    histogram = tuple(
        (
            each / BANDS,
            int((true & (band == each)).sum()),
            int((~true & (band == each)).sum()),
        )
        for each in range(int(lowest * BANDS + NEARLY), BANDS + 1)
    )
    return Scores(title, tuple(by_similarity), tuple(by_distance), histogram)


def _labelled(pairs: ScoredPairs, truth: Truth) -> ScoredPairs:
    """The pairs that count: both documents are labelled."""
    return pairs.where(truth.listed[pairs.left] & truth.listed[pairs.right])


def _similar(documents: Documents, rule: Rule, truth: Truth, workers: int | None) -> ScoredPairs:
    sets, lowest = documents.sets, rule.match.similarity
    if truth.judged is not None:
        judged = ScoredPairs.similar(sets, truth.judged, rule.measure)
        # Two documents without features are not a pair, though their sets are equal.
        sizes = np.diff(sets.offsets)
        empty = (sizes[judged.left] == 0) | (sizes[judged.right] == 0)
        return _labelled(replace(judged, score=np.where(empty, 0.0, judged.score)), truth)
    similar = all_similar(sets, rule.match, workers, MOST_PAIRS)
    if similar is None:
        raise UsageError(
            f"more than {MOST_PAIRS:,} pairs are similar at {lowest:g}: begin higher, with --lowest"
        )
    return _labelled(similar, truth)


def _near(
    documents: Documents, rule: Rule, truth: Truth, workers: int | None
) -> tuple[ScoredPairs, int]:
    """Pairs within a distance, and that distance."""
    bits, codes = rule.recipe.bits, documents.codes
    if truth.judged is not None:
        left, right = np.ascontiguousarray(truth.judged.T)
        empty = documents.empty
        apart = hamming(codes[left], codes[right]).astype(np.float64)
        apart = np.where(empty[left] | empty[right], float(bits), apart)
        return _labelled(ScoredPairs(left, right, -apart), truth), int(FURTHEST * bits)
    near = all_near(documents.values, bits, workers, MOST_NEAR)
    if near is None:
        raise UsageError(
            f"more than {MOST_NEAR:,} pairs have equal fingerprints: label some of the pairs,"
            " which are looked at alone"
        )
    return _labelled(near[0], truth), near[1]
