"""Pairs in bands of similarity: which one is asked next, and what the answers tell of all.

In each band pairs are asked in random order, so that those answered are a random sample of it.
Bands near the border are asked more often. The estimate over all bands weighs each by its size, so
it does not depend on which bands were asked.
"""

from __future__ import annotations

import hashlib
import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from neardup.runtime.intervals import stratified

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.pipeline.evidence.pair_rows import PairRow
    from neardup.pipeline.judgement.answers import Answer

__all__ = ["Estimate", "Strata", "Stratum"]

BANDS: Final = 20
MOST_OF_A_BAND: Final = 400
UNKNOWN: Final = 0.3
"""How far from the border pairs of unknown similarity are taken to be."""
NEARNESS: Final = 12.0
"""How much more often a band is asked that is nearer to the border, for each unit of similarity."""


@dataclass(slots=True)
class Stratum:
    """A band of similarity.

    Attributes:
        least: Where it begins; None: the similarity of its pairs is not known.
        size: How many pairs it has.
        pairs: Some of them, in the order in which they are asked.
    """

    least: float | None
    size: int = 0
    pairs: list[PairRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The precision of all pairs at or above a similarity.

    Attributes:
        least: The similarity; None: of all.
        pairs: How many there are.
        judged: How many of them were answered yes or no.
        share: Estimated precision; None: nothing was judged.
        low: Of its 95% interval.
        high: Of its 95% interval.
    """

    least: float | None
    pairs: int
    judged: int
    share: float | None
    low: float
    high: float


class Strata:
    """All pairs of a file.

    Args:
        rows: They.
        border: The similarity to ask about first; the least that occurs unless given.
        seed: Of the order.
    """

    def __init__(self, rows: Iterable[PairRow], border: float | None, seed: int = 0) -> None:
        """Count them, and keep some of each band."""
        found: dict[int, Stratum] = {}
        heaps: dict[int, list[tuple[int, str, str, PairRow]]] = {}
        least = 1.0
        for row in rows:
            number, begin = -1, None
            if row.similarity is not None:
                number = int(row.similarity * BANDS + 1e-9)
                begin = number / BANDS
                least = min(least, row.similarity)
            stratum = found.setdefault(number, Stratum(begin))
            stratum.size += 1
            heap = heaps.setdefault(number, [])
            entry = (-_place(row, seed), row.first, row.second, row)
            if len(heap) < MOST_OF_A_BAND:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
        for number, heap in heaps.items():
            found[number].pairs = [entry[3] for entry in sorted(heap, key=lambda each: -each[0])]
        self.border = least if border is None else border
        self.all = [found[number] for number in sorted(found)]

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return sum(stratum.size for stratum in self.all)

    def following(self, answers: dict[tuple[str, str], Answer]) -> PairRow | None:
        """The pair to ask next, None after the last."""
        best: tuple[float, PairRow] | None = None
        for stratum in self.all:
            open_ones = [pair for pair in stratum.pairs if _key(pair) not in answers]
            if not open_ones:
                continue
            asked = len(stratum.pairs) - len(open_ones)
            away = UNKNOWN
            if stratum.least is not None:
                middle = min(1.0, stratum.least + 0.5 / BANDS)
                away = max(0.0, abs(middle - self.border) - 0.5 / BANDS)
            wanted = 1 / (1 + NEARNESS * away) / (asked + 1)
            if best is None or wanted > best[0]:
                best = wanted, open_ones[0]
        return None if best is None else best[1]

    def estimates(self, answers: dict[tuple[str, str], Answer]) -> list[Estimate]:
        """The precision from each band on upwards, the whole first."""
        judged = [_judged(stratum, answers) for stratum in self.all]
        found = []
        for number, stratum in enumerate(self.all):
            part = judged[number:]
            told = stratified(part)
            share, low, high = told or (None, 0.0, 1.0)
            counted = sum(sampled for _, sampled, _ in part)
            pairs = sum(size for size, _, _ in part)
            found.append(Estimate(stratum.least, pairs, counted, share, low, high))
        return found

    def reaching(
        self, wanted: float, answers: dict[tuple[str, str], Answer]
    ) -> tuple[Estimate | None, Estimate | None]:
        """The lowest threshold with a precision: by the estimate, and by its lower end."""
        known = [x for x in self.estimates(answers) if x.share is not None and x.least is not None]
        likely = next((x for x in known if (x.share or 0) >= wanted), None)
        surely = next((x for x in known if x.low >= wanted), None)
        return likely, surely


def _place(row: PairRow, seed: int) -> int:
    told = f"{seed}\0{row.first}\0{row.second}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "little")


def _key(pair: PairRow) -> tuple[str, str]:
    return (min(pair.first, pair.second), max(pair.first, pair.second))


def _judged(stratum: Stratum, answers: dict[tuple[str, str], Answer]) -> tuple[int, int, int]:
    """How many pairs the band has, how many were judged, and how many of these are duplicates."""
    said = [answers[_key(pair)].answer for pair in stratum.pairs if _key(pair) in answers]
    yes, no = said.count("yes"), said.count("no")
    return stratum.size, yes + no, yes
