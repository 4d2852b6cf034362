"""Pairs that some candidate question matches in a sample, and the questions that match each.

1. each recipe joins the sample at its lowest threshold without too many pairs;
2. the union of these pairs is scored by every recipe;
3. the groups of each candidate question are made, since copies of copies are copies;
4. a random sample of the pairs, denser where they are few, represents all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.fingerprinting.question import Question
from neardup.fingerprinting.recipe import Recipe
from neardup.hamming.match_graph import labels_of_pairs
from neardup.pipeline.calibration.questions import CANDIDATES
from neardup.pipeline.calibration.trials import sets_of
from neardup.pipeline.run.limited_pairs import NEARLY, all_similar
from neardup.similarity.feature_sets import Match, similarities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from neardup.runtime.types import Flags, Rows

__all__ = ["RECIPES", "CandidatePairs", "candidate_pairs", "recipe_name"]

RECIPES: Final = tuple(Recipe(tokens=tokens, ngram=ngram) for tokens, ngram in CANDIDATES)
STEPS: Final = tuple(step / 20 for step in range(8, 20))
"""Thresholds."""
LOWEST_OF_CHARACTERS: Final = 0.5
"""The lowest threshold of characters; below it they match texts of one language."""
MOST_PAIRS: Final = 100_000
"""The most pairs of a recipe; a threshold with more is not a candidate."""
BANDS: Final = 20
MOST_OF_A_BAND: Final = 1_000
"""The most sampled pairs of each twentieth of the mean similarity."""


@dataclass(frozen=True, slots=True)
class CandidatePairs:
    """A random sample of the pairs that candidate questions match.

    Attributes:
        left: int64 (p,): the one document of each pair.
        right: int64 (p,): the other one.
        scores: float64 (p, r): the similarity by each of RECIPES.
        weights: float64 (p,): the number of pairs that each one represents.
        questions: The candidates.
        matches: Bool (q, p): whether a question's groups put both documents of a pair together.
        implied: float64 (q,): pairs that a question's groups imply.
    """

    left: Rows
    right: Rows
    scores: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    questions: tuple[Question, ...]
    matches: Flags
    implied: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """The number of pairs in the sample."""
        return self.left.size


def recipe_name(recipe: Recipe) -> str:
    """A candidate recipe in two words, such as "words 3"."""
    return f"{recipe.tokens} {recipe.ngram}"


def candidate_pairs(
    texts: Sequence[str],
    seed: int = 0,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> CandidatePairs:
    """Find the pairs of some texts that candidate questions match.

    Args:
        texts: The documents of a sample.
        seed: Of the random sample of the pairs.
        workers: Threads.
        advance: Takes 1 for each recipe.
    """
    every, n = pa.array(texts, pa.large_string()), len(texts)
    sets, lowest, keys = [], [], [np.zeros(0, np.int64)]
    for recipe in RECIPES:
        own = sets_of(every, recipe, workers)
        pairs, least = _loosest_pairs(own, recipe, workers)
        sets.append(own)
        lowest.append(least)
        keys.append(pairs.min(axis=1) * n + pairs.max(axis=1))
        advance(1)
    left, right = np.divmod(np.unique(np.concatenate(keys)), max(1, n))
    scores = np.stack([similarities(own, left, right) for own in sets], axis=1)
    chosen, weights = _thinned(scores.mean(axis=1), seed)
    questions, matches, implied = [], [], []
    for at, (recipe, least) in enumerate(zip(RECIPES, lowest, strict=True)):
        for step in (step for step in STEPS if step >= least):
            inside = scores[:, at] >= step - NEARLY
            labels = labels_of_pairs(n, left[inside], right[inside])
            sizes = np.unique(labels, return_counts=True)[1]
            questions.append(Question(recipe, step))
            matches.append(labels[left[chosen]] == labels[right[chosen]])
            implied.append(float((sizes * (sizes - 1) // 2).sum()))
    return CandidatePairs(
        left[chosen],
        right[chosen],
        scores[chosen],
        weights,
        tuple(questions),
        np.array(matches, np.bool_).reshape(len(questions), chosen.size),
        np.array(implied),
    )


def _loosest_pairs(sets: Any, recipe: Recipe, workers: int | None) -> tuple[Rows, float]:
    """The lowest threshold without too many pairs, and its pairs."""
    for step in STEPS:
        if recipe.tokens == "chars" and step < LOWEST_OF_CHARACTERS:
            continue
        pairs = all_similar(sets, Match(step, "jaccard"), workers, MOST_PAIRS)
        if pairs is not None:
            return np.stack([pairs.left, pairs.right], axis=1), step
    return np.zeros((0, 2), np.int64), 2.0


def _thinned(level: npt.NDArray[np.float64], seed: int) -> tuple[Rows, npt.NDArray[np.float64]]:
    """A sample of pairs of each band of the mean similarity, in order, with their weights."""
    generator = np.random.default_rng(seed)
    bands = np.minimum((level * BANDS).astype(np.int64), BANDS - 1)
    rows, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for band in np.unique(bands):
        inside = np.flatnonzero(bands == band)
        some = inside
        if inside.size > MOST_OF_A_BAND:
            some = generator.choice(inside, MOST_OF_A_BAND, replace=False)
        rows.append(some)
        weights.append(np.full(some.size, inside.size / some.size))
    chosen, weight = np.concatenate(rows), np.concatenate(weights)
    order = np.argsort(chosen)
    return chosen[order], weight[order]
