"""The candidate question that agrees best with some answers, and the pair to show next.

Pairs chosen to teach are not a sample, so no figure is a share of them. The answers teach how
likely a pair with given similarities is a pair of copies (a probit regression with a Gaussian
prior, Laplace's
approximation of its posterior: Bishop, Pattern Recognition and Machine Learning, 4.3 to 4.5).
Precision, recall and F1 of each question are those over the random sample of candidate pairs, in
each of a number of draws from that posterior; the intervals are those of the draws. The next pair
is a random one, likelier where an answer is open and the questions that win some draw disagree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from neardup.fingerprinting.question import Question
    from neardup.pipeline.judgement.candidate_pairs import CandidatePairs

    Floats = npt.NDArray[np.float64]

__all__ = ["Lesson", "QuestionSoFar", "Share", "learn", "next_pair"]

DRAWS: Final = 200
REGRET: Final = 0.01
"""Expected loss of F1 at which more answers would hardly change the best question."""
LEAST_ANSWERS: Final = 10
MOST_ADVISED: Final = 60
"""The most further answers that are predicted."""
EQUAL: Final = 0.005
"""The difference in F1 below which questions count as equal."""
ANYWHERE: Final = 4
"""One pair in this number is chosen at random from all levels of similarity."""
_MIDDLE: Final = 0.6
_SPREAD: Final = 0.2
_PRIOR_MEAN: Final = (0.0, 2.5)
_PRIOR_DEVIATION: Final = (2.0, 2.5, 1.2)
"""Prior deviations of the constant, the mean similarity, and each recipe's difference from it."""
_STEPS: Final = 30
_STRAIGHT: Final = 1.5976
_CUBED: Final = 0.07056


@dataclass(frozen=True, slots=True)
class Lesson:
    """Answered pairs.

    Args:
        scores: float64 (a, r): their similarity by each recipe.
        is_copy: Bool (a,): the answers.
    """

    scores: Floats
    is_copy: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Share:
    """An estimate and its 95% interval.

    Attributes:
        mean: Over the draws.
        low: Of the interval.
        high: Of the interval.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """The estimate for people."""
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class QuestionSoFar:
    """The state of learning a question from answers.

    Attributes:
        question: The best one so far.
        precision: Of its pairs, over the candidate pairs; so are recall and F1.
        recall: Of the copies among the candidate pairs.
        f1: Harmonic mean of the two.
        answers: The number of answers that taught.
        more: About the number of further answers until the choice would hardly change; 0 if it
            would not.
        contested: float64 (p,): the expected value of an answer to each candidate pair.
    """

    question: Question
    precision: Share
    recall: Share
    f1: Share
    answers: int
    more: int
    contested: Floats


def learn(
    pairs: CandidatePairs, lesson: Lesson, answers: Mapping[int, bool], seed: int = 0
) -> QuestionSoFar:
    """The question that agrees best with the answers.

    Args:
        pairs: The candidate pairs, at least one.
        lesson: All answers, also about other documents.
        answers: The answers to candidate pairs, by their number.
        seed: Of the draws.
    """
    generator = np.random.default_rng(seed)
    weights = _weights(lesson, generator)
    likely = _chance(_inputs(pairs.scores) @ weights.T)
    for row, label in answers.items():
        likely[row] = label
    drawn = (generator.random(likely.shape) < likely) * pairs.weights[:, None]
    copies = np.maximum(drawn.sum(axis=0), 1e-9)
    hits = pairs.matches.astype(np.float32) @ drawn.astype(np.float32)
    f1 = 2 * hits / (pairs.implied[:, None] + copies)
    best = _best(pairs.questions, f1.mean(axis=1))
    winners = f1.argmax(axis=0)
    regret = float((f1.max(axis=0) - f1[best]).mean())
    disputed = pairs.matches[winners].mean(axis=0)
    expected = likely.mean(axis=1)
    open_ = expected * (1 - expected) * (disputed * (1 - disputed) + 0.02) * pairs.weights
    open_[list(answers)] = 0
    return QuestionSoFar(
        question=pairs.questions[best],
        precision=_share(hits[best] / max(1.0, pairs.implied[best])),
        recall=_share(hits[best] / copies),
        f1=_share(f1[best]),
        answers=lesson.is_copy.size,
        more=_more(lesson, regret),
        contested=open_,
    )


def next_pair(
    pairs: CandidatePairs, so_far: QuestionSoFar, answered: set[int], seed: int = 0
) -> int | None:
    """The number of the pair to show next, None after the last.

    Args:
        pairs: The candidate pairs.
        so_far: The state of learning.
        answered: Numbers of pairs that were answered, unsure ones too.
        seed: Of the choice; the same answers give the same pair.
    """
    free = np.ones(len(pairs), np.bool_)
    free[list(answered)] = False
    # Equal texts teach nothing: every question matches them.
    free &= pairs.scores.min(axis=1) < 1
    rows = np.flatnonzero(free)
    if not rows.size:
        return None
    generator = np.random.default_rng([seed, len(answered)])
    chances = so_far.contested[rows] + 1e-12
    if len(answered) % ANYWHERE == ANYWHERE - 1:
        levels = (pairs.scores[rows].mean(axis=1) * 10).astype(np.int64)
        chances = 1 / np.bincount(levels)[levels]
    return int(generator.choice(rows, p=chances / chances.sum()))


def _inputs(scores: Floats) -> Floats:
    """The regression's inputs for a pair: 1, the mean similarity, differences from it."""
    level = (scores - _MIDDLE) / _SPREAD
    mean = level.mean(axis=1, keepdims=True)
    return np.concatenate([np.ones_like(mean), mean, level - mean], axis=1)


def _weights(lesson: Lesson, generator: np.random.Generator) -> Floats:
    """Draws from the posterior of the regression, float64 (DRAWS, inputs)."""
    inputs = _inputs(lesson.scores)
    count = inputs.shape[1]
    prior = np.append(_PRIOR_MEAN, np.zeros(count - 2))
    deviations = np.append(_PRIOR_DEVIATION[:2], np.full(count - 2, _PRIOR_DEVIATION[2]))
    precision = np.diag(deviations**-2)
    at = prior.copy()
    for _ in range(_STEPS):
        level = inputs @ at
        chance, rise = _chance(level), _STRAIGHT + 3 * _CUBED * level**2
        slope = inputs.T @ ((lesson.is_copy - chance) * rise) - precision @ (at - prior)
        bend = (inputs * (chance * (1 - chance) * rise**2)[:, None]).T @ inputs + precision
        step = np.linalg.solve(bend, slope)
        at = at + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-6:
            break
    spread = np.linalg.cholesky(np.linalg.inv(bend))
    drawn: Floats = at + generator.standard_normal((DRAWS, count)) @ spread.T
    return drawn


def _chance(level: Floats) -> Floats:
    """The normal distribution function, by Page's approximation (Applied Statistics 1977)."""
    near = np.clip(level, -5, 5)
    chance: Floats = 1 / (1 + np.exp(-_STRAIGHT * near - _CUBED * near**3))
    return chance


def _best(questions: Sequence[Question], f1: Floats) -> int:
    """The question of the largest F1; of EQUAL ones words first, since characters cost more."""
    equal = np.flatnonzero(f1 >= f1.max() - EQUAL).tolist()
    return max(equal, key=lambda at: (questions[at].recipe.tokens == "words", f1[at]))


def _share(draws: Floats) -> Share:
    low, high = np.quantile(draws, [0.025, 0.975])
    return Share(float(draws.mean()), float(low), float(high))


def _more(lesson: Lesson, regret: float) -> int:
    """About the number of further answers: the loss shrinks as their number grows."""
    count = lesson.is_copy.size
    short = max(0, LEAST_ANSWERS - count)
    if not count or lesson.is_copy.all() or not lesson.is_copy.any():
        return max(short, LEAST_ANSWERS)
    further = math.ceil(count * (regret / REGRET - 1)) if regret > REGRET else 0
    return max(short, min(further, MOST_ADVISED))
