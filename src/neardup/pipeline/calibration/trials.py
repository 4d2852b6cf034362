"""Trials of questions: the planted edits that they find, and the other pairs that they match.

Each recipe is tried once: planted copies are compared with their originals, and the documents of a
sample with each other by an exact join. The scores give the results for all thresholds.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.features.scripts import is_unspaced
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.fingerprinting.question import Question
from neardup.hamming.match_graph import labels_of_pairs
from neardup.pipeline.calibration.edits import (
    LOOKALIKE,
    MOST_CHARACTERS,
    SMALL_KINDS,
    WORD_KINDS,
    Planter,
)
from neardup.pipeline.run.limited_pairs import NEARLY, ScoredPairs, all_similar
from neardup.runtime.intervals import counted, paired
from neardup.similarity.feature_sets import FeatureSets, Match, similarities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.calibration.edits import Aim
    from neardup.runtime.types import Hashes, Rows

__all__ = ["Measured", "Planted", "agreement", "plant", "sets_of", "try_questions"]

FOUND_WORDS: Final = WORD_KINDS[:3]
"""Edits that count towards an aim; a moved word is two of them."""
UNLIKE: Final = 0.5
"""The share of words in the same order below which a pair is not a copy by any aim."""
LOOKED_AT: Final = 25
"""Pairs of each twentieth of similarity whose words are compared in order."""
MOST_PAIRS: Final = 300_000
"""The most pairs of the sample; a threshold with more is not tried."""
MOST_WORDS: Final = 600
"""The most words of a text that are compared in order."""
FEW: Final = 20
"""Pairs that count as good before any is seen, so that a few pairs weigh little."""


@dataclass(frozen=True, slots=True)
class Planted:
    """Documents with copies of them.

    Args:
        texts: Large strings (n + c,): the documents, then the copies.
        original: int64 (c,): the document of each copy.
        kinds: Object (c,): the edit of each copy; "2 x " before it means twice the aim.
    """

    texts: pa.Array
    original: Rows
    kinds: Any


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one question.

    Attributes:
        question: The question.
        found: Kind of edit to the share of its copies that are found; "2 x " is twice the aim.
        lookalikes: The share of matching documents of which two fifths are another's.
        pairs: Pairs of the sample that match.
        implied: Pairs that the groups of these imply; as many as `pairs` if a copy's copy is always
            a copy.
        unlike: Pairs of the sample that match and agree in few words, estimated.
        expected: `unlike` among all documents, and the 95% interval.
    """

    question: Question
    found: dict[str, float]
    lookalikes: float
    pairs: int
    implied: int
    unlike: float
    expected: tuple[float, float, float]

    @property
    def aim(self) -> float:
        """The recall of copies of the aim's size, of the kind with the lowest recall."""
        return min(self.found.get(kind, 1.0) for kind in FOUND_WORDS)

    @property
    def recall(self) -> float:
        """The mean share over all kinds and sizes of edits."""
        return float(np.mean(list(self.found.values())))

    @property
    def signs(self) -> tuple[float, float, float]:
        """Three signs of copies, each 1 at best: groups hold, words agree, no lookalike.

        Copies of one document are copies of each other. Where groups imply many more pairs than
        match, they are chains of documents that share a form.
        """
        hold = (self.pairs + FEW) / (self.implied + FEW)
        return hold, 1 - self.unlike / (self.pairs + FEW), 1 - self.lookalikes

    @property
    def precision(self) -> float:
        """The signs as one number."""
        hold, agree, own = self.signs
        return hold * agree * own


def plant(texts: Sequence[str], aims: Sequence[Aim], seed: int) -> Planted:
    """Plant every kind of edit; those of words at the first aim, and as "2 x " at the second."""
    planter = Planter(texts, seed)
    copies, original, kinds = [], [], []
    for row in range(len(texts)):
        plantings = [(kind, kind, aims[0]) for kind in (*WORD_KINDS, *SMALL_KINDS)]
        plantings += [(kind, f"2 x {kind}", aims[1]) for kind in WORD_KINDS]
        edits = [(name, planter.copy(row, kind, aim)) for kind, name, aim in plantings]
        for name, copy in [*edits, (LOOKALIKE, planter.lookalike(row))]:
            if copy is not None:
                copies.append(copy)
                original.append(row)
                kinds.append(name)
    every = pa.array([*(text[:MOST_CHARACTERS] for text in texts), *copies], pa.large_string())
    return Planted(every, np.array(original, np.int64), np.array(kinds, object))


def try_questions(
    planted: Planted,
    sample: pa.Array,
    recipe: Recipe,
    measure: str,
    steps: Iterable[float],
    scale: float,
    workers: int | None = None,
) -> list[Measured]:
    """Try one recipe and measure at some thresholds; thresholds with too many pairs are left out.

    Args:
        planted: Documents and their copies.
        sample: Large strings: documents that are compared with each other.
        recipe: Of the features.
        measure: Of the features.
        steps: Thresholds.
        scale: Pairs among all documents for each one of the sample.
        workers: Threads.
    """
    steps = sorted(steps)
    sets = sets_of(planted.texts, recipe, workers)
    copies = len(planted.texts) - planted.original.size + np.arange(planted.original.size)
    scores = similarities(sets, planted.original, copies, measure)
    shares = {kind: np.sort(scores[planted.kinds == kind]) for kind in dict.fromkeys(planted.kinds)}
    own = _Pairs(sample, sets_of(sample, recipe, workers), measure, steps, workers)
    tried = []
    for step in [step for step in steps if step >= own.lowest]:
        recalls = {kind: _share_from(each, step) for kind, each in shares.items()}
        lookalikes = recalls.pop(LOOKALIKE, 0.0)
        pairs, implied, unlike = own.at(step)
        question = Question(recipe, step, measure)
        expected = _projected(unlike, scale)
        tried.append(Measured(question, recalls, lookalikes, pairs, implied, unlike, expected))
    return tried


def _share_from(ascending: npt.NDArray[np.float64], step: float) -> float:
    return float(1 - np.searchsorted(ascending, step - NEARLY) / ascending.size)


def _projected(unlike: float, scale: float) -> tuple[float, float, float]:
    """An estimate of the pairs among all documents, with its 95% interval."""
    if scale == 1:
        return unlike, unlike, unlike
    low, high = counted(0) if unlike < 1 else paired(unlike, 2 * unlike)
    return unlike * scale, low * scale, high * scale


class _Pairs:
    """The pairs of a sample at and above the lowest threshold that does not have too many."""

    def __init__(
        self,
        sample: pa.Array,
        sets: FeatureSets,
        measure: str,
        steps: Sequence[float],
        workers: int | None,
    ) -> None:
        none = np.zeros(0, np.int64)
        self._pairs, self.lowest = ScoredPairs(none, none, np.zeros(0)), 2.0
        for step in steps:
            if (some := all_similar(sets, Match(step, measure), workers, MOST_PAIRS)) is not None:
                self._pairs, self.lowest = some, step
                break
        self._n = len(sample)
        self._unlike = self._unlike_above(sample, steps, measure)

    def at(self, step: float) -> tuple[int, int, float]:
        """Counts at a threshold: pairs, pairs that groups imply, pairs that agree in few words."""
        matching = self._pairs.where(self._pairs.at_least(step))
        labels = labels_of_pairs(self._n, matching.left, matching.right)
        sizes = np.unique(labels, return_counts=True)[1]
        return matching.left.size, int((sizes * (sizes - 1) // 2).sum()), self._unlike[step]

    def _unlike_above(
        self, sample: pa.Array, steps: Sequence[float], measure: str
    ) -> dict[float, float]:
        """Pairs that agree in few words, by threshold, estimated from some of each band."""
        generator, above, whole = random.Random(0), 2.0, 0.0
        counts, pairs = {}, self._pairs
        for step in reversed(steps):
            band = np.flatnonzero(pairs.at_least(step) & ~pairs.at_least(above))
            chosen = generator.sample(band.tolist(), min(LOOKED_AT, band.size))
            alike = [
                agreement(
                    sample[int(pairs.left[pair])].as_py(),
                    sample[int(pairs.right[pair])].as_py(),
                    of_smaller=measure == "containment",
                )
                for pair in chosen
            ]
            if alike:
                whole += band.size * sum(each < UNLIKE for each in alike) / len(alike)
            counts[step], above = whole, step
        return counts


def sets_of(texts: pa.Array, recipe: Recipe, workers: int | None) -> FeatureSets:
    """The feature sets of texts, a large-string array."""
    hashes = _Hashes()
    with Fingerprinter(recipe, workers, hashes) as fingerprinter:
        fingerprinter.add(texts)
        codes = np.ma.getdata(fingerprinter.finish())
        return FeatureSets(hashes.joined(), fingerprinter.feature_offsets(), codes)


class _Hashes:
    """Stores feature hashes in memory, in the order of the documents."""

    def __init__(self) -> None:
        self._parts: list[Hashes] = [np.zeros(0, np.uint64)]

    def take(self, features: Hashes) -> None:
        """Take those of the next documents."""
        self._parts.append(features.copy())

    def joined(self) -> Hashes:
        """The hashes of all documents, concatenated."""
        return np.concatenate(self._parts)


def agreement(one: str, other: str, *, of_smaller: bool = False) -> float:
    """The share of their words, or characters where unspaced, that two texts have in one order.

    Twice the longest common subsequence by the words of both texts, or that subsequence by the
    words of the smaller; found by bits (Hyyro, Bit-parallel LCS-length computation, 2004).

    Example:
        >>> agreement("a b c d", "a c x d"), agreement("a b c d", "x a", of_smaller=True)
        (0.75, 0.5)
    """
    a, b = _units(one), _units(other)
    if not a or not b:
        return 0.0
    places: dict[str, int] = {}
    for at, unit in enumerate(a):
        places[unit] = places.get(unit, 0) | 1 << at
    whole = free = (1 << len(a)) - 1
    for unit in b:
        met = free & places.get(unit, 0)
        free = ((free + met) | (free - met)) & whole
    common = len(a) - free.bit_count()
    return common / min(len(a), len(b)) if of_smaller else 2 * common / (len(a) + len(b))


def _units(text: str) -> list[str]:
    text = text[:MOST_CHARACTERS].casefold()
    return re.findall(r"\w" if is_unspaced(text) else r"\w+", text)[:MOST_WORDS]
