"""A review: pairs of a file with their texts, one after the other, and the answers."""

from __future__ import annotations

import hashlib
import heapq
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import DataError, UsageError
from neardup.pipeline.evidence.named_texts import fields_of, texts_of
from neardup.pipeline.evidence.pair_rows import PairRow, pair_rows
from neardup.pipeline.evidence.pair_texts import MOST_CHARACTERS, compared_fields, pair_of_texts
from neardup.pipeline.judgement.answers import ANSWERS, Answer, Answers
from neardup.pipeline.judgement.so_far import Estimate, of_pairs
from neardup.runtime.intervals import stratified

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.evidence.pair_rows import PairRow
    from neardup.pipeline.judgement.so_far import SoFar
    from neardup.pipeline.report import PairShown

__all__ = ["Review", "ReviewOptions", "Strata", "Stratum", "Turns", "key_of"]

LATEST: Final = 200
"""The number of answers to which a person can go back."""


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """Options of a review.

    Args:
        answers: The file of answers.
        border: The similarity of the first pairs; by default the least of all pairs.
        precision: The precision that a threshold should reach.
        measure: "jaccard", "cosine", "containment" or "dice", of similarities that the file lacks.
        seed: Of the order.
    """

    answers: str
    border: float | None = None
    precision: float = 0.95
    measure: str = "jaccard"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if not 0 < self.precision <= 1:
            raise UsageError(f"precision is {self.precision:g}: use a number above 0, up to 1")
        if self.border is not None and not 0 <= self.border <= 1:
            raise UsageError(f"similarity is {self.border:g}: use a number from 0 to 1")


class Turns:
    """The pairs that were shown, by number, and the order in which they were answered."""

    def __init__(self) -> None:
        """Begin before the first pair."""
        self._shown: list[PairRow] = []
        self._number: dict[PairRow, int] = {}
        self._done: list[int] = []

    def number_of(self, pair: PairRow) -> int:
        """The number of a pair; a new one at the first call."""
        if pair not in self._number:
            self._number[pair] = len(self._shown)
            self._shown.append(pair)
        return self._number[pair]

    def row(self, number: int) -> PairRow | None:
        """The pair of a number; None if there is no such number."""
        return self._shown[number] if 0 <= number < len(self._shown) else None

    def answered(self, number: int) -> None:
        """Note that a pair was answered, perhaps again."""
        if number in self._done:
            self._done.remove(number)
        self._done = [*self._done[-LATEST:], number]

    def before(self, number: int | None) -> int | None:
        """The number of the pair that was answered before this one, or last; None if none was."""
        place = self._done.index(number) if number in self._done else len(self._done)
        return self._done[place - 1] if place else None


class Review:
    """A review: its pairs and their answers; safe to use from several threads.

    Args:
        pairs: A file of pairs, such as `dedup --duplicates` wrote.
        paths: The inputs with the documents.
        options: Of the review.
        recipe: Of the run, for the features that are shown.
        read: As the run read the inputs.
        format_name: Of the inputs, if their extensions do not decide.
        fields: Of the records, shown next to the texts.

    Raises:
        UsageError: If the inputs have none of the documents.
        DataError, FileError: If a file cannot be read.
    """

    def __init__(
        self,
        pairs: str,
        paths: Sequence[str],
        options: ReviewOptions,
        recipe: Recipe,
        read: ReadOptions,
        format_name: InputFormat | str | None = None,
        fields: Sequence[str] = (),
    ) -> None:
        """Read the pairs, and the texts of those that may be asked."""
        self.options, self._recipe = options, recipe
        self.strata = Strata(pair_rows(pairs), options.border, options.seed)
        names = {x for s in self.strata.all for pair in s.pairs for x in (pair.first, pair.second)}
        if not names:
            raise DataError(f"{pairs} has no pairs: there is nothing to judge")
        texts = texts_of(names, paths, read, format_name=format_name)
        if not texts:
            example = min(names)
            raise UsageError(
                f"{pairs} names documents such as {example!r:.80}, and the inputs hold none of"
                " them: give the inputs of that run, with its --id"
            )
        self._texts = {name: text[: MOST_CHARACTERS + 1] for name, text in texts.items()}
        self._fields, self._values = fields, dict[str, tuple[str | None, ...]]()
        if fields:
            self._values = fields_of(names, fields, paths, read, format_name)
        self._file, self._turns = Answers(options.answers), Turns()
        # Answers may come from several threads: one at a time chooses the next pair and appends to
        # the file of answers.
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file of answers."""
        self._file.close()

    @property
    def answers(self) -> dict[tuple[str, str], Answer]:
        """The answers so far."""
        return self._file.by_pair

    def following(self) -> int | None:
        """The number of the next pair, None after the last."""
        with self._lock:
            pair = self.strata.following(self.answers)
            return None if pair is None else self._turns.number_of(pair)

    def before(self, number: int | None) -> int | None:
        """The number of the pair that was answered before this one, or last; None if none was."""
        with self._lock:
            return self._turns.before(number)

    def pair(self, number: int) -> PairShown | None:
        """The view of a pair; None if there is no such number."""
        row = self._turns.row(number)
        if row is None:
            return None
        texts = self._texts.get(row.first), self._texts.get(row.second)
        measure, names = self.options.measure, (row.first, row.second)
        fields = compared_fields(self._fields, *(self._values.get(name) for name in names))
        return pair_of_texts(names, texts, self._recipe, measure, row.similarity, fields)

    def answer_of(self, number: int) -> str | None:
        """The answer to a pair, if there is one."""
        row = self._turns.row(number)
        answer = None if row is None else self.answers.get(key_of(row))
        return None if answer is None else answer.answer

    def answer(self, number: int, label: str) -> bool:
        """Store an answer; False if there is no such pair or answer."""
        row, shown = self._turns.row(number), self.pair(number)
        if row is None or shown is None or label not in ANSWERS:
            return False
        with self._lock:
            self._file.add(Answer(row.first, row.second, label, shown.similarity))
            self._turns.answered(number)
        return True

    def status(self) -> dict[str, Any]:
        """The state of the review, for the page and for machines."""
        with self._lock:
            labels = [x.answer for x in self.answers.values()]
            whole, *_ = [*self.strata.estimates(self.answers), None]
            likely, surely = self.strata.reaching(self.options.precision, self.answers)
            answered, to_answer = self.strata.progress(self.answers)
        return {
            "pairs": self.strata.size,
            "answered": answered,
            "to_answer": to_answer,
            **{name: labels.count(name) for name in ANSWERS},
            "precision": None if whole is None else whole.share,
            "interval": None if whole is None else [whole.low, whole.high],
            "wanted": self.options.precision,
            "threshold": None if likely is None else likely.least,
            "threshold_surely": None if surely is None else surely.least,
        }

    def so_far(self) -> SoFar:
        """The state of the review, for the page."""
        return of_pairs(self.status(), self.strata.estimates(self.answers))


BANDS: Final = 20
MOST_OF_A_BAND: Final = 400
UNKNOWN: Final = 0.3
"""The assumed difference from the border of pairs of unknown similarity."""
NEARNESS: Final = 12.0
"""The growth of a band's frequency towards the border, for each unit of similarity."""


@dataclass(slots=True)
class Stratum:
    """A band of similarity.

    Attributes:
        least: Its beginning; None if the similarity of its pairs is unknown.
        size: The number of its pairs.
        pairs: Some of them, in the order in which they are asked.
    """

    least: float | None
    size: int = 0
    pairs: list[PairRow] = field(default_factory=list)


class Strata:
    """All pairs of a file.

    Args:
        rows: The rows.
        border: The similarity to ask about first; by default the least that occurs.
        seed: Of the order.
    """

    def __init__(self, rows: Iterable[PairRow], border: float | None, seed: int = 0) -> None:
        """Count the pairs, and sample each band."""
        strata: dict[int, Stratum] = {}
        heaps: dict[int, list[tuple[int, str, str, PairRow]]] = {}
        least = 1.0
        for row in rows:
            number, begin = -1, None
            if row.similarity is not None:
                number = int(row.similarity * BANDS + 1e-9)
                begin = number / BANDS
                least = min(least, row.similarity)
            stratum = strata.setdefault(number, Stratum(begin))
            stratum.size += 1
            heap = heaps.setdefault(number, [])
            entry = (-_place(row, seed), row.first, row.second, row)
            if len(heap) < MOST_OF_A_BAND:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
        for number, heap in heaps.items():
            strata[number].pairs = [entry[3] for entry in sorted(heap, key=lambda each: -each[0])]
        self.border = least if border is None else border
        self.all = [strata[number] for number in sorted(strata)]

    @property
    def size(self) -> int:
        """The number of pairs."""
        return sum(stratum.size for stratum in self.all)

    def following(self, answers: dict[tuple[str, str], Answer]) -> PairRow | None:
        """The pair to ask next, None after the last."""
        best: tuple[float, PairRow] | None = None
        for stratum in self.all:
            open_ones = [pair for pair in stratum.pairs if key_of(pair) not in answers]
            if not open_ones:
                continue
            answered = len(stratum.pairs) - len(open_ones)
            away = UNKNOWN
            if stratum.least is not None:
                middle = min(1.0, stratum.least + 0.5 / BANDS)
                away = max(0.0, abs(middle - self.border) - 0.5 / BANDS)
            worth = 1 / (1 + NEARNESS * away) / (answered + 1)
            if best is None or worth > best[0]:
                best = worth, open_ones[0]
        return None if best is None else best[1]

    def progress(self, answers: dict[tuple[str, str], Answer]) -> tuple[int, int]:
        """The number of answered pairs, and of pairs to answer."""
        keys = [key_of(pair) for stratum in self.all for pair in stratum.pairs]
        return sum(key in answers for key in keys), len(keys)

    def estimates(self, answers: dict[tuple[str, str], Answer]) -> list[Estimate]:
        """The precision from each band upwards, that of all pairs first."""
        judged = [_judged(stratum, answers) for stratum in self.all]
        estimates = []
        for number, stratum in enumerate(self.all):
            part = judged[number:]
            estimate = stratified(part)
            share, low, high = estimate or (None, 0.0, 1.0)
            counted = sum(sampled for _, sampled, _ in part)
            pairs = sum(size for size, _, _ in part)
            estimates.append(Estimate(stratum.least, pairs, counted, share, low, high))
        return estimates

    def reaching(
        self, precision: float, answers: dict[tuple[str, str], Answer]
    ) -> tuple[Estimate | None, Estimate | None]:
        """The lowest threshold with a precision: by the estimate, and by its lower bound."""
        certain = [
            x for x in self.estimates(answers) if x.share is not None and x.least is not None
        ]
        likely = next((x for x in certain if (x.share or 0) >= precision), None)
        surely = next((x for x in certain if x.low >= precision), None)
        return likely, surely


def _place(row: PairRow, seed: int) -> int:
    key = f"{seed}\0{row.first}\0{row.second}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")


def key_of(pair: PairRow) -> tuple[str, str]:
    """The two documents, whichever comes first."""
    return (min(pair.first, pair.second), max(pair.first, pair.second))


def _judged(stratum: Stratum, answers: dict[tuple[str, str], Answer]) -> tuple[int, int, int]:
    """The numbers of pairs in the band, of judged ones, and of duplicates among these."""
    labels = [answers[key_of(pair)].answer for pair in stratum.pairs if key_of(pair) in answers]
    yes, no = labels.count("yes"), labels.count("no")
    return stratum.size, yes + no, yes
