"""What to do with what a sample told: a threshold, a distance, a command, and what is doubtful."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from neardup.documents import ReadOptions
    from neardup.pipeline.calibration.measure import Joined
    from neardup.pipeline.calibration.model import Choice, Level

__all__ = ["FEW_GROUPS", "advised", "commands", "emptiest", "warnings"]

USUAL: Final = 0.8
LEAST: Final = 0.5
AROUND: Final = 0.05
FEW_GROUPS: Final = 10
WANTED_GROUPS: Final = 30
FEW_PAIRS: Final = 30
PRECISE: Final = 0.5
_OPTIONS: Final = ("tokens", "ngram", "weight", "hash", "normalize", "language", "fold_chinese")


def emptiest(joined: Joined, lowest: float) -> float:
    """The threshold around which the fewest pairs lie: where the choice matters least.

    The usual one wins ties, and where there are hardly any pairs.
    """
    steps = [step / 100 for step in range(50, 96, 5) if step / 100 - AROUND >= lowest - 1e-9]
    score = joined.score
    if int((score >= LEAST).sum()) < FEW_PAIRS or not steps:
        return USUAL

    def around(step: float) -> int:
        return int(((score >= step - AROUND) & (score < step + AROUND)).sum())

    return min(steps, key=lambda step: (around(step), abs(step - USUAL)))


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
    short = int((joined.features < 20).sum())
    if 2 * short > joined.features.size:
        found.append(
            f"{short:,} of {joined.features.size:,} documents have fewer than 20 features, where"
            " distances say little: look at the figures by length, and prefer --similarity"
        )
    return found


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
