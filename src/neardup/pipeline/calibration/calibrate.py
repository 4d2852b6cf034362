"""Calibrate a corpus without labels.

1. read all documents once and keep a random sample;
2. find every pair of the sample that is at least somewhat similar, exactly;
3. count the matches at each similarity, and what fingerprints of each width find of them;
4. measure the cost of each choice, and extrapolate;
5. choose examples to judge by eye, and write the commands.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import Batch, Rejects, rejects_doubt
from neardup.documents.extensions import check_page
from neardup.errors import UsageError
from neardup.fingerprinting.fingerprints import fingerprints
from neardup.fingerprinting.question import Question
from neardup.pipeline.calibration.advice import (
    FEW_GROUPS,
    USUAL,
    advised,
    commands,
    unadvised,
    valley,
    warnings,
)
from neardup.pipeline.calibration.costs import Taken, cost_of_distance, cost_of_similarity
from neardup.pipeline.calibration.measure import MOST_PAIRS, Joined, Widths, join_sample
from neardup.pipeline.calibration.model import Calibration, Choice, Cost
from neardup.pipeline.calibration.page import calibration_page
from neardup.pipeline.calibration.sample import Sample, take_sample
from neardup.pipeline.evidence.pair_texts import PairMaker
from neardup.pipeline.run.read_documents import Reader, begin_reading, open_inputs
from neardup.pipeline.run.rule import Rule
from neardup.pipeline.run.run_outputs import output_set
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.similarity.feature_sets import Match

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.report import PairShown
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Limits
    from neardup.runtime.progress import Progress

__all__ = ["CalibrationOptions", "calibrate_files"]

EXAMPLES: Final = 10
LEAST_DOCUMENTS: Final = 2
SEARCHED: Final = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Thresholds whose cost is measured."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Options of a calibration.

    Args:
        sample: The most documents in the sample.
        lowest: Least similarity that is searched.
        similarity: The threshold for the advice; by default the one in a valley of the
            similarities, if there is one.
        recall: The share of the pairs at the threshold that the advised distance should find.
        measure: "jaccard", "cosine", "containment" or "dice".
        seed: Of the sample and the examples.
        report: A page to write.

    Raises:
        UsageError: For values out of range.
    """

    sample: int = 20_000
    lowest: float = 0.3
    similarity: float | None = None
    recall: float = 0.95
    measure: str = "jaccard"
    seed: int = 0
    report: str | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        Match(self.lowest, self.measure)
        check_page(self.report)
        if self.sample < LEAST_DOCUMENTS:
            raise UsageError(f"sample is {self.sample}: use 2 documents or more")
        if self.similarity is not None and not self.lowest <= self.similarity <= 1:
            raise UsageError(
                f"similarity is {self.similarity:g}, and the search begins at {self.lowest:g}: use"
                " a number from there to 1, or a lower --lowest"
            )
        if not 0 < self.recall <= 1:
            raise UsageError(f"recall is {self.recall:g}: use a number above 0, up to 1")

    @property
    def steps(self) -> tuple[float, ...]:
        """Every similarity of the tables: hundredths, the lowest and the requested one."""
        first = int(np.ceil(self.lowest * 100 - 1e-9))
        grid = {step / 100 for step in range(first, 101)} | {self.lowest}
        return tuple(sorted(grid | ({self.similarity} if self.similarity else set())))


def calibrate_files(
    paths: Sequence[str],
    options: CalibrationOptions,
    recipe: Recipe,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
) -> Calibration:
    """Find the threshold, distance and width that suit some files.

    Args:
        paths: Inputs, as for `open_sources`.
        options: Of the calibration.
        recipe: How documents become features.
        read: Which fields to read.
        limits: Threads, memory and temporary files.
        progress: Shows the progress.
        format_name: Format of all inputs; by default their extensions decide.

    Raises:
        UsageError: For values out of range.
        DataError, FileError: If a file cannot be read or written.
    """
    reporter = progress or Quiet()
    watch = Stopwatch(reporter)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, format_name)
        written = output_set(sources, limits)
        stack.enter_context(written)
        if options.report is not None:
            written.check(options.report)
        rejects = Rejects(None, written)
        begin_reading(sources, watch)
        start = time.perf_counter()
        sample = take_sample(sources, read, options.sample, options.seed, rejects, reporter)
        reading = time.perf_counter() - start
        doubt = rejects_doubt(sample.documents, rejects.count)
        watch.begin("join")
        calibration = _calibrated(
            sample,
            options,
            recipe,
            limits,
            reading,
            lambda t, c: commands(paths, read, Question(recipe, t, options.measure), c),
        )
        doubts = calibration.warnings if doubt is None else (*calibration.warnings, doubt)
        calibration = replace(calibration, rejected=rejects.count, warnings=doubts)
        if options.report is not None:
            written.create(options.report).write(calibration_page(calibration).encode())
        written.commit()
    return calibration


def _calibrated(
    sample: Sample,
    options: CalibrationOptions,
    recipe: Recipe,
    limits: Limits,
    reading: float,
    progress: Any,
) -> Calibration:
    """Measure a sample; a random part of it if it has too many pairs."""
    rule = Rule(options.lowest, measure=options.measure, recipe=recipe)
    fingerprints(["one", "two"], recipe)  # loads the kernels, which no run does per document
    while True:
        with Reader([""], rule, limits) as reader:
            start = time.perf_counter()
            rows = np.arange(len(sample))
            reader.add(0, Batch(sample.texts, sample.names, rows, sample.texts.nbytes))
            documents = reader.finish()
            seconds = time.perf_counter() - start
            joined = join_sample(documents.sets, sample, rule.match, limits.workers)
            if joined is not None:
                taken = Taken(sample.documents, sample.nbytes, reading, seconds, limits)
                parts = _Parts(sample, documents, joined)
                return _found(parts, options, rule, taken, progress)
        sample = sample.part(len(sample) // 2)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A sample and its pairs."""

    sample: Sample
    documents: Documents
    joined: Joined


def _found(
    parts: _Parts, options: CalibrationOptions, rule: Rule, taken: Taken, progress: Any
) -> Calibration:
    sample, joined, recipe = parts.sample, parts.joined, rule.recipe
    threshold, unknown = options.similarity, ""
    if threshold is None:
        threshold = valley(joined, options.lowest)
        unknown = unadvised(joined, threshold)
    if threshold is None or unknown:
        threshold = max(USUAL, options.lowest)
    levels = joined.levels(options.steps)
    widths = Widths(joined, sample, recipe, taken.limits.workers)
    similarities = sorted({x for x in (*SEARCHED, threshold) if x >= options.lowest})
    choices = tuple(
        choice
        for bits in widths.codes
        for similarity in similarities
        for choice in widths.choices(similarity, bits)
    )
    above = joined.at_least(threshold)
    enough = joined.independent(above) >= FEW_GROUPS
    best = advised(choices, threshold, options.recall) if enough and not unknown else None
    bits = recipe.bits if best is None else best.bits
    bits = bits if bits in widths.codes else next(iter(widths.codes))
    doubts = warnings(joined, levels, threshold, len(sample), sample.documents)
    if len(sample) < min(options.sample, sample.documents):
        doubts.append(
            f"only {len(sample):,} documents of the sample were compared: a larger part has over"
            f" {MOST_PAIRS:,} pairs at {options.lowest:g} or more"
        )
    return Calibration(
        documents=sample.documents,
        rejected=0,
        sampled=len(sample),
        seed=options.seed,
        measure=options.measure,
        lowest=options.lowest,
        threshold=threshold,
        is_own=options.similarity is None,
        unknown=unknown,
        recall=options.recall,
        levels=levels,
        choices=choices,
        advised=best,
        lengths=tuple(widths.bands(options.steps, threshold, bits)),
        costs=tuple(_costs(parts, rule, taken, best, widths, threshold)),
        examples=_examples(parts, options),
        warnings=tuple(doubts),
        commands=() if unknown else tuple(progress(threshold, best)),
    )


def _costs(
    parts: _Parts,
    rule: Rule,
    taken: Taken,
    best: Choice | None,
    widths: Widths,
    threshold: float,
) -> list[Cost]:
    order = np.argsort(parts.sample.place, kind="stable")
    thresholds = sorted({*SEARCHED, threshold}, reverse=True)
    least = rule.match.similarity
    costs = [
        cost_of_similarity(
            parts.documents.sets, order, replace(rule, similarity=each), taken, first=not at
        )
        for at, each in enumerate(each for each in thresholds if each >= least)
    ]
    usual = rule.recipe.bits
    widths_and_distances = (
        [(usual, 3)] if best is None else [(usual, 3), (best.bits, best.distance)]
    )
    for bits, distance in dict.fromkeys(widths_and_distances):
        if bits in widths.codes and distance < bits:
            exact = Rule(distance=distance, recipe=replace(rule.recipe, bits=bits))
            costs.append(cost_of_distance(widths.codes[bits], exact, usual, taken))
    return costs


def _examples(
    parts: _Parts, options: CalibrationOptions
) -> tuple[tuple[str, tuple[PairShown, ...]], ...]:
    """Random pairs of each tenth of similarity, and of similarity 1, from different groups."""
    joined, generator = parts.joined, np.random.default_rng(options.seed)
    edges = [options.lowest, *(x / 10 for x in range(1, 11) if x / 10 > options.lowest), 2.0]
    bands, rows = [], set()
    for low, high in pairwise(edges):
        inside = np.flatnonzero((joined.score >= low) & (joined.score < high))
        mixed = generator.permutation(inside)
        groups = joined.groups(joined.score >= low)[joined.left[mixed]]
        first = mixed[np.sort(np.unique(groups, return_index=True)[1])]
        rest = mixed[~np.isin(mixed, first)]
        chosen = np.concatenate([first, rest])[:EXAMPLES]
        title = "1: equal features" if low == 1 else f"{low:g} to {high:g}"
        bands.append((title, chosen))
        rows |= {int(row) for side in (joined.left, joined.right) for row in side[chosen]}
    texts = {row: parts.sample.texts[row].as_py()[:20_001] for row in sorted(rows)}
    maker = PairMaker(parts.documents, texts)
    return tuple(
        (
            title,
            tuple(
                maker.pair(int(joined.left[at]), int(joined.right[at]), float(joined.score[at]))
                for at in chosen
            ),
        )
        for title, chosen in bands
    )
