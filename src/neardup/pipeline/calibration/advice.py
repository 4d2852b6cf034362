"""What to do with what a sample told: a threshold, a distance, a command, and what is doubtful."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.fingerprinting.recipe import Recipe
from neardup.runtime.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from neardup.documents import ReadOptions
    from neardup.pipeline.calibration.measure import Joined
    from neardup.pipeline.calibration.model import Choice, Level

__all__ = ["FEW_GROUPS", "USUAL", "advised", "commands", "unadvised", "valley", "warnings"]

USUAL: Final = 0.8
LEAST: Final = 0.5
MOST: Final = 0.85
AROUND: Final = 0.05
SHORT: Final = 20
"""In sets of fewer features one changed word moves the similarity by a quarter and more."""
FEW_GROUPS: Final = 10
WANTED_GROUPS: Final = 30
PRECISE: Final = 0.5
SURELY: Final = 2.575829
"""Normal quantile of 99%: many thresholds are tried."""
_OPTIONS: Final = ("tokens", "ngram", "weight", "hash", "normalize", "language", "fold_chinese")


def valley(joined: Joined, lowest: float) -> float | None:
    """The threshold in the deepest valley of the similarities; None where there is none.

    A valley has fewer groups of similar documents around it than a band above it has, beyond
    chance: duplicates that were edited make that hill. A thin tail has no hill above it, and pairs
    of equal features make none, since every threshold finds them; short documents move in leaps.
    """
    shorter = np.minimum(joined.features[joined.left], joined.features[joined.right])
    tells = (shorter >= SHORT) & (joined.score < 1)
    found: list[tuple[int, float, float]] = []
    first = math.ceil((max(LEAST, lowest + AROUND) - 1e-9) * 20)
    for step in (each / 20 for each in range(first, round(MOST * 20) + 1)):
        group = joined.groups(joined.score >= step - AROUND - 1e-9)

        def groups(low: float, group: Any = group) -> int:
            """The groups with a pair from `low` on, as wide as what is around a threshold."""
            inside = (joined.score >= low - 1e-9) & (joined.score < low + 2 * AROUND - 1e-9)
            return int(np.unique(group[joined.left[inside & tells]]).size)

        around = groups(step - AROUND)
        hill = max(groups(each / 20) for each in range(round(step * 20) + 1, 19))
        if hill >= FEW_GROUPS and wilson(hill, hill + around, SURELY)[0] > 0.5:
            found.append((around, abs(step - USUAL), step))
    return min(found)[-1] if found else None


def unadvised(joined: Joined, threshold: float | None) -> str:
    """Why no threshold is advised: the sample shows no valley, or holds short documents."""
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
    """The choice of least width and then distance with the recall, most of whose pairs are wanted.

    None if there is none: fingerprints do not tell these pairs from others.
    """
    for choice in choices:
        good = choice.similarity == similarity and (choice.recall or 0) >= recall
        if good and (choice.precision or 0) >= PRECISE:
            return choice
    return None


def warnings(
    joined: Joined, levels: Sequence[Level], threshold: float, sampled: int, documents: int
) -> list[str]:
    """What makes the figures doubtful."""
    at = joined.score >= threshold - 1e-9
    groups, found = joined.independent(at), []
    number = next(level.sampled for level in levels if level.similarity == threshold)
    if groups < FEW_GROUPS:
        told = (
            f"the sample holds too few duplicates: {number:,} pairs at {threshold:g} or more, which"
            f" tell as much as {groups:.0f} independent ones"
        )
        if sampled < documents:
            wanted = sampled * math.sqrt(WANTED_GROUPS / max(1.0, groups))
            told += (
                f"; take a larger one: --sample {min(documents, math.ceil(wanted / 1e3) * 1000)}"
            )
        found.append(told)
    short = _short(joined)
    if 2 * short > joined.features.size:
        found.append(
            f"{short:,} of {joined.features.size:,} documents have fewer than {SHORT} features,"
            " where distances say little: look at the figures by length, and prefer --similarity"
        )
    return found


def _short(joined: Joined) -> int:
    return int((joined.features < SHORT).sum())


def commands(
    inputs: Sequence[str],
    read: ReadOptions,
    recipe: Recipe,
    threshold: float,
    choice: Choice | None,
) -> list[str]:
    """The command lines: by similarity, and by fingerprints where these serve."""
    base = ["neardup", "dedup", *inputs, "-o", "OUT", *_options(read, recipe)]
    found = [shlex.join([*base, "--similarity", f"{threshold:g}"])]
    if choice is not None:
        bits = [] if choice.bits == recipe.bits else ["--bits", str(choice.bits)]
        within = ["--distance", str(choice.distance), "--verify", f"{threshold:g}"]
        found.append(shlex.join([*base, *within, *bits]))
    return found


def _options(read: ReadOptions, recipe: Recipe) -> list[str]:
    """The options that the defaults do not have."""
    usual, found = Recipe(), []
    if read.text != ("text",):
        found += ["--text", ",".join(read.text)]
    if read.id is not None:
        found += ["--id", read.id]
    for name in _OPTIONS:
        value = getattr(recipe, name)
        if value != getattr(usual, name):
            found += [f"--{name.replace('_', '-')}", str(value)]
    return [*found, *(["--no-casefold"] if usual.casefold and not recipe.casefold else [])]
