"""A review: pairs of a file with their texts, one after the other, and what was answered."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import DataError, UsageError
from neardup.pipeline.evidence.named_texts import texts_of
from neardup.pipeline.evidence.pair_rows import PairRow, pair_rows
from neardup.pipeline.evidence.pairs import MOST_CHARACTERS, pair_of_texts
from neardup.pipeline.judgement.answers import ANSWERS, Answer, Answers
from neardup.pipeline.judgement.strata import Strata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.report import PairShown

__all__ = ["Review", "Wanted"]

LATEST: Final = 200
"""Answers one can go back to."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to review.

    Args:
        answers: The file that keeps them.
        border: The similarity to ask about first; the least of the pairs unless given.
        precision: What a threshold is to reach.
        measure: "jaccard", "cosine", "containment" or "dice", of similarities that the file lacks.
        seed: Of the order.
    """

    answers: str
    border: float | None = None
    precision: float = 0.95
    measure: str = "jaccard"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not 0 < self.precision <= 1:
            raise UsageError(f"precision is {self.precision:g}: use a number above 0, up to 1")
        if self.border is not None and not 0 <= self.border <= 1:
            raise UsageError(f"similarity is {self.border:g}: use a number from 0 to 1")


class Review:
    """What is asked and answered; safe to use from several threads.

    Args:
        pairs: A file of pairs, such as `dedup --duplicates` wrote.
        paths: The inputs that hold the documents.
        wanted: How to review.
        recipe: Of the run, for the features that are shown.
        read: As the run read the inputs.
        format_name: Of the inputs, if their extensions do not tell.

    Raises:
        UsageError: If the inputs hold none of the documents.
        DataError, FileError: If a file cannot be read.
    """

    def __init__(
        self,
        pairs: str,
        paths: Sequence[str],
        wanted: Wanted,
        recipe: Recipe,
        read: ReadOptions,
        format_name: InputFormat | str | None = None,
    ) -> None:
        """Read the pairs, and the texts of those that may be asked."""
        self.wanted, self._recipe = wanted, recipe
        self.strata = Strata(pair_rows(pairs), wanted.border, wanted.seed)
        names = {x for s in self.strata.all for pair in s.pairs for x in (pair.first, pair.second)}
        if not names:
            raise DataError(f"{pairs} has no pairs: there is nothing to judge")
        found = texts_of(names, paths, read, format_name=format_name)
        if not found:
            example = min(names)
            raise UsageError(
                f"{pairs} names documents such as {example!r:.80}, and the inputs hold none of"
                " them: give the inputs of that run, with its --id"
            )
        self._texts = {name: text[: MOST_CHARACTERS + 1] for name, text in found.items()}
        self._file = Answers(wanted.answers)
        self._shown: list[PairRow] = []
        self._number: dict[PairRow, int] = {}
        self._done: list[int] = []
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file of answers."""
        self._file.close()

    @property
    def answers(self) -> dict[tuple[str, str], Answer]:
        """The answers so far."""
        return self._file.found

    def following(self) -> int | None:
        """The number of the next pair, None after the last."""
        with self._lock:
            pair = self.strata.following(self.answers)
            return None if pair is None else self._take(pair)

    def before(self, number: int | None) -> int | None:
        """The number of the pair that was answered before this one, or last; None if none was."""
        with self._lock:
            done = self._done
            place = done.index(number) if number in done else len(done)
            return done[place - 1] if place else None

    def pair(self, number: int) -> PairShown | None:
        """What is shown of a pair; None if there is no such number."""
        if not 0 <= number < len(self._shown):
            return None
        row = self._shown[number]
        texts = self._texts.get(row.first), self._texts.get(row.second)
        measure, names = self.wanted.measure, (row.first, row.second)
        return pair_of_texts(names, texts, self._recipe, measure, row.similarity)

    def said(self, number: int) -> str | None:
        """What was answered of a pair."""
        row = self._shown[number]
        answer = self.answers.get(Answer(row.first, row.second, "").key)
        return None if answer is None else answer.answer

    def answer(self, number: int, said: str) -> bool:
        """Keep an answer; False if there is no such pair or answer."""
        shown = self.pair(number)
        if shown is None or said not in ANSWERS:
            return False
        with self._lock:
            row = self._shown[number]
            self._file.add(Answer(row.first, row.second, said, shown.similarity))
            if number in self._done:
                self._done.remove(number)
            self._done = [*self._done[-LATEST:], number]
        return True

    def status(self) -> dict[str, Any]:
        """What the answers tell, for the page and for machines."""
        with self._lock:
            said = [x.answer for x in self.answers.values()]
            whole, *_ = [*self.strata.estimates(self.answers), None]
            likely, surely = self.strata.reaching(self.wanted.precision, self.answers)
        return {
            "pairs": self.strata.size,
            **{name: said.count(name) for name in ANSWERS},
            "precision": None if whole is None else whole.share,
            "interval": None if whole is None else [whole.low, whole.high],
            "wanted": self.wanted.precision,
            "threshold": None if likely is None else likely.least,
            "threshold_surely": None if surely is None else surely.least,
        }

    def _take(self, pair: PairRow) -> int:
        if pair not in self._number:
            self._number[pair] = len(self._shown)
            self._shown.append(pair)
        return self._number[pair]
