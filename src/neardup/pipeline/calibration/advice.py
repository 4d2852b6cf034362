"""Advice from a sample: a threshold, a distance, a command, and what is doubtful."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.runtime.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from neardup.documents import ReadOptions
    from neardup.fingerprinting.question import Question
    from neardup.pipeline.calibration.measure import Joined
    from neardup.pipeline.calibration.model import Choice, Level

__all__ = [
    "FEW_GROUPS",
    "USUAL",
    "advised",
    "commands",
    "read_options",
    "unadvised",
    "valley",
    "warnings",
]

USUAL: Final = 0.8
LEAST: Final = 0.5
MOST: Final = 0.85
AROUND: Final = 0.05
SHORT: Final = 20
"""The number of features below which one changed word moves the similarity by a quarter or more."""
FEW_GROUPS: Final = 10
WANTED_GROUPS: Final = 30
PRECISE: Final = 0.5
SURELY: Final = 2.575829
"""Normal quantile of 99%: many thresholds are tried."""


def valley(joined: Joined, lowest: float) -> float | None:
    """The threshold in the deepest valley of the similarities; None without a valley.

    In a valley fewer documents have matches around the threshold than in a band of the same width
    above it, beyond chance: edited duplicates make that hill. A thin tail has no hill above it.
    Pairs of equal features make none, since every threshold finds them; the similarities of short
    documents move in leaps. Documents and groups must both be fewer: one large family makes a hill
    of documents, and where it falls apart, a hill of groups.
    """
    first = math.ceil((max(LEAST, lowest + AROUND) - 1e-9) * 20)
    bands = {at: _in_band(joined, at / 20) for at in range(first - 1, round(MOST * 20) + 2)}
    valleys = []
    for at in range(first, round(MOST * 20) + 1):
        around, hills = bands[at - 1], [bands[above] for above in bands if above > at]
        if any(_is_higher(hill, around) for hill in hills):
            valleys.append((around[0], abs(at - round(USUAL * 20)), at / 20))
    return min(valleys)[-1] if valleys else None


def _in_band(joined: Joined, low: float) -> tuple[int, int]:
    """The documents with a match from `low` to twice AROUND above it, and the groups they make."""
    shorter = np.minimum(joined.features[joined.left], joined.features[joined.right])
    at = joined.at_least(low) & ~joined.at_least(low + 2 * AROUND)
    at &= (joined.score < 1) & (shorter >= SHORT)
    left = joined.left[at]
    documents = np.unique(np.concatenate([left, joined.right[at]])).size
    return int(documents), int(np.unique(joined.groups(at)[left]).size)


def _is_higher(hill: tuple[int, int], around: tuple[int, int]) -> bool:
    """Whether a band has more documents and more groups than another, beyond chance."""
    return hill[1] >= FEW_GROUPS and all(
        wilson(more, more + few, SURELY)[0] > 0.5 for more, few in zip(hill, around, strict=True)
    )


def unadvised(joined: Joined, threshold: float | None) -> str:
    """The reason why no threshold is advised: no valley in the sample, or short documents."""
    short = _short(joined)
    if 2 * short > joined.features.size:
        return (
            f"{short:,} of {joined.features.size:,} documents have fewer than {SHORT} features, so"
            " short that a changed word or two hides a duplicate at any threshold"
        )
    if threshold is None:
        return (
            f"no threshold from {LEAST:g} to {MOST:g} lies in a valley, with fewer pairs around it"
            " than above it, so that the pairs do not tell what is a duplicate"
        )
    return ""


def advised(choices: Iterable[Choice], similarity: float, recall: float) -> Choice | None:
    """The choice of least width, then least distance, with enough recall and precision.

    None if fingerprints do not separate these pairs from others.
    """
    for choice in choices:
        good = choice.similarity == similarity and (choice.recall or 0) >= recall
        if good and (choice.precision or 0) >= PRECISE:
            return choice
    return None


def warnings(
    joined: Joined, levels: Sequence[Level], threshold: float, sampled: int, documents: int
) -> list[str]:
    """Reasons to doubt the figures."""
    at = joined.at_least(threshold)
    groups, messages = joined.independent(at), []
    number = next(level.sampled for level in levels if level.similarity == threshold)
    if groups < FEW_GROUPS:
        message = (
            f"the sample holds too few duplicates: {number:,} pairs at {threshold:g} or more, which"
            f" tell as much as {groups:.0f} independent ones"
        )
        if sampled < documents:
            needed = sampled * math.sqrt(WANTED_GROUPS / max(1.0, groups))
            message += (
                f"; take a larger one: --sample {min(documents, math.ceil(needed / 1e3) * 1000)}"
            )
        messages.append(message)
    short = _short(joined)
    if 2 * short > joined.features.size:
        messages.append(
            f"{short:,} of {joined.features.size:,} documents have fewer than {SHORT} features,"
            " where distances say little: look at the figures by length, and prefer --similarity"
        )
    return messages


def _short(joined: Joined) -> int:
    return int((joined.features < SHORT).sum())


def commands(
    inputs: Sequence[str],
    read: ReadOptions,
    question: Question,
    choice: Choice | None,
) -> list[str]:
    """The command lines: by similarity, and by fingerprints if these are suitable."""
    similarity, threshold, *others = question.options()
    base = ["neardup", "dedup", *inputs, "-o", "OUT", *read_options(read), *others]
    lines = [shlex.join([*base, similarity, threshold])]
    if choice is not None:
        bits = [] if choice.bits == question.recipe.bits else ["--bits", str(choice.bits)]
        within = ["--distance", str(choice.distance), "--verify", threshold]
        lines.append(shlex.join([*base, *within, *bits]))
    return lines


def read_options(read: ReadOptions) -> list[str]:
    """The options for reading the documents, where they differ from the defaults."""
    form = read.input_format
    values = {
        "--text": None if read.text == ("text",) else ",".join(read.text),
        "--id": read.id,
        "--format": form.name if form.records is None else None,  # a list of records implies it
        "--delimiter": "tab" if form.delimiter == "\t" else form.delimiter,
        "--encoding": form.encoding,
        "--records": form.records,
        "--extract": read.extract,
        "--on-error": "skip" if read.skip_errors else None,
    }
    if form.sheet is not None:
        values["--format"] = f"{form.name}:{form.sheet}"
    return [word for name, value in values.items() if value is not None for word in (name, value)]
