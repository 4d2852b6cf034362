"""A review that looks for the question: pairs of a sample on which candidate questions disagree."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import Rejects
from neardup.errors import DataError
from neardup.pipeline.calibration.sample import Sample, take_sample
from neardup.pipeline.evidence.pair_rows import PairRow
from neardup.pipeline.evidence.pair_texts import MOST_CHARACTERS, pair_of_texts
from neardup.pipeline.judgement.answers import ANSWERS, Answer, Answers
from neardup.pipeline.judgement.candidate_pairs import RECIPES, candidate_pairs, recipe_name
from neardup.pipeline.judgement.learned_question import Lesson, QuestionSoFar, learn, next_pair
from neardup.pipeline.judgement.review_session import Turns, key_of
from neardup.pipeline.judgement.so_far import SoFar, of_question
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.run_outputs import output_set
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.pipeline.judgement.candidate_pairs import CandidatePairs
    from neardup.pipeline.report import PairShown
    from neardup.pipeline.run.rule import Limits
    from neardup.runtime.progress import Progress

__all__ = ["QuestionReview", "SampledPairs", "sample_pairs"]

DOCUMENTS: Final = 20_000
"""Documents of the sample, if they have few characters."""
CHARACTERS: Final = 12_000_000
_NAMES: Final = tuple(map(recipe_name, RECIPES))


@dataclass(frozen=True, slots=True)
class SampledPairs:
    """Candidate pairs with the documents that they are of.

    Args:
        pairs: The pairs.
        names: Ids or addresses of the documents.
        texts: Of the documents.
        documents: The number in all inputs.
    """

    pairs: CandidatePairs
    names: Sequence[str]
    texts: Sequence[str]
    documents: int


def sample_pairs(
    paths: Sequence[str],
    read: ReadOptions,
    limits: Limits,
    seed: int = 0,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
) -> SampledPairs:
    """Read files, and find the pairs that candidate questions match in a sample of the documents.

    Args:
        paths: Inputs, as for `open_sources`.
        read: Which fields to read.
        limits: Threads, memory and temporary files.
        seed: Of the sample.
        progress: Informed of each step.
        format_name: Format of all inputs; by default their extensions decide.

    Raises:
        DataError: If a file cannot be read as documents, or no two of them are similar.
        FileError: If a file cannot be read.
    """
    seen = progress or Quiet()
    watch = Stopwatch(seen)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, format_name)
        rejects = Rejects(None, stack.enter_context(output_set(sources, limits)))
        begin_reading(sources, watch)
        sample = take_sample(sources, read, DOCUMENTS, seed, rejects, seen)
    names, texts = _texts_of(sample)
    watch.begin("compare", len(RECIPES))
    pairs = candidate_pairs(texts, seed, limits.workers, seen.advance)
    if not len(pairs):
        raise DataError(
            f"no two of {len(texts):,} documents are alike by any candidate question: there is"
            " nothing to judge"
        )
    return SampledPairs(pairs, names, texts, sample.documents)


def _texts_of(sample: Sample) -> tuple[list[str], list[str]]:
    """Names and texts in a random order, until they have CHARACTERS; blank ones are left out."""
    names, texts, characters = [], [], 0
    for row in np.argsort(sample.place, kind="stable").tolist():
        text = sample.texts[row].as_py()[:MOST_CHARACTERS]
        if characters > CHARACTERS or not text.strip():
            continue
        names.append(sample.names[row].as_py())
        texts.append(text)
        characters += len(text)
    return names, texts


class QuestionReview:
    """A session in which answers choose a question; safe to use from several threads.

    Args:
        sampled: The pairs.
        answers: The file of answers; existing ones count, also about other documents.
        seed: Of the order.

    Raises:
        UsageError, DataError, FileError: As Answers.
    """

    def __init__(self, sampled: SampledPairs, answers: str, seed: int = 0) -> None:
        """Begin with the existing answers."""
        self._sampled, self._seed = sampled, seed
        self._file, self._turns = Answers(answers), Turns()
        pairs = zip(sampled.pairs.left.tolist(), sampled.pairs.right.tolist(), strict=True)
        self._rows = {
            key_of(PairRow(sampled.names[one], sampled.names[other])): row
            for row, (one, other) in enumerate(pairs)
        }
        # Answers may come from several threads; each must be learned before the next pair is
        # chosen.
        self._lock = threading.Lock()
        self._so_far = self._learned()

    def close(self) -> None:
        """Close the file of answers."""
        self._file.close()

    @property
    def best(self) -> QuestionSoFar:
        """The best question so far."""
        with self._lock:
            return self._so_far

    def following(self) -> int | None:
        """The number of the next pair, None after the last."""
        with self._lock:
            if self._file.by_pair is not self._taught_by:  # another review has added answers
                self._so_far = self._learned()
            answered = {self._rows[key] for key in self._file.by_pair if key in self._rows}
            row = next_pair(self._sampled.pairs, self._so_far, answered, self._seed)
            return None if row is None else self._turns.number_of(self._pair_row(row))

    def before(self, number: int | None) -> int | None:
        """The number of the pair that was answered before this one, or last; None if none was."""
        with self._lock:
            return self._turns.before(number)

    def pair(self, number: int) -> PairShown | None:
        """The view of a pair; None if there is no such number."""
        row = self._turns.row(number)
        if row is None:
            return None
        place, texts = self._rows[key_of(row)], self._sampled.texts
        sides = (int(side[place]) for side in (self._sampled.pairs.left, self._sampled.pairs.right))
        first, second = (texts[each] for each in sides)
        question = self.best.question
        names = (row.first, row.second)
        return pair_of_texts(names, (first, second), question.recipe, question.measure)

    def answer_of(self, number: int) -> str | None:
        """The answer to a pair, if there is one."""
        row = self._turns.row(number)
        if row is None:
            return None
        answer = self._file.by_pair.get(key_of(row))
        return None if answer is None else answer.answer

    def answer(self, number: int, label: str) -> bool:
        """Store an answer and learn from it; False if there is no such pair or answer."""
        row = self._turns.row(number)
        if row is None or label not in ANSWERS:
            return False
        scores = self._sampled.pairs.scores[self._rows[key_of(row)]]
        named = dict(zip(_NAMES, scores.tolist(), strict=True))
        with self._lock:
            self._file.add(Answer(row.first, row.second, label, None, named))
            self._turns.answered(number)
            self._so_far = self._learned()
        return True

    def status(self) -> dict[str, Any]:
        """The state of the review, for the page and for machines."""
        with self._lock:
            best, answers = self._so_far, self._file.by_pair
        labels = [answer.answer for key, answer in answers.items() if key in self._rows]
        taught = sum(answer != "unsure" for answer in labels)
        shares = {"f1": best.f1, "precision": best.precision, "recall": best.recall}
        return {
            "pairs": len(self._sampled.pairs),
            **{name: labels.count(name) for name in ANSWERS},
            "earlier": best.answers - taught,
            "title": f"{recipe_name(best.question.recipe)}, {best.question.similarity:g}",
            "options": str(best.question),
            **{name: [each.mean, each.low, each.high] for name, each in shares.items()},
            "left": best.more,
            "more": f"about {best.more} more" if best.more else "more would hardly change it",
        }

    def so_far(self) -> SoFar:
        """The state of the review, for the page."""
        return of_question(self.status())

    def _pair_row(self, row: int) -> PairRow:
        pairs, names = self._sampled.pairs, self._sampled.names
        return PairRow(names[int(pairs.left[row])], names[int(pairs.right[row])])

    def _learned(self) -> QuestionSoFar:
        """The question learned from the answers to these pairs and those with own scores."""
        scores, is_copy, answers = [np.zeros((0, len(_NAMES)))], [], {}
        self._taught_by = self._file.by_pair
        for key, answer in self._taught_by.items():
            row = self._rows.get(key)
            if answer.answer == "unsure":
                continue
            if row is not None:
                scores.append(self._sampled.pairs.scores[row : row + 1])
                answers[row] = answer.answer == "yes"
            elif answer.scores is not None and all(name in answer.scores for name in _NAMES):
                scores.append(np.array([[answer.scores[name] for name in _NAMES]]))
            else:
                continue
            is_copy.append(answer.answer == "yes")
        lesson = Lesson(np.concatenate(scores), np.array(is_copy, np.bool_))
        return learn(self._sampled.pairs, lesson, answers, self._seed)
