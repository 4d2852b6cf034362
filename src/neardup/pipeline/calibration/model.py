"""Results of a calibration, as values for the page and for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from neardup.pipeline.report import PairShown

__all__ = ["TO_JUDGE", "Calibration", "Choice", "Cost", "LengthBand", "Level", "Range"]

Range = tuple[float, float]
"""Both ends of a 95% confidence interval."""


@dataclass(frozen=True, slots=True)
class Level:
    """The matches at one similarity.

    Attributes:
        similarity: The least of a match.
        sampled: Pairs in the sample.
        pairs: Pairs expected among all documents.
        interval: Of `pairs`.
        documents: Documents of the sample that have a match in it.
    """

    similarity: float
    sampled: int
    pairs: float
    interval: Range
    documents: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The recall and precision of a distance for the pairs at or above a similarity.

    Attributes:
        bits: Width of the fingerprints.
        distance: Most bits that differ.
        similarity: Least similarity of the true pairs.
        recall: Share of those pairs within the distance; None without any.
        recall_interval: Its interval.
        precision: Share of true pairs among those within the distance; None without any.
        precision_interval: Its interval.
        found: Pairs of the sample within the distance.
    """

    bits: int
    distance: int
    similarity: float
    recall: float | None
    recall_interval: Range
    precision: float | None
    precision_interval: Range
    found: int


@dataclass(frozen=True, slots=True)
class LengthBand:
    """A band of documents by number of features; a pair is in the band of its shorter document.

    Attributes:
        least: Fewest features.
        most: Most features; None: no limit.
        documents: Of the sample.
        levels: Matches.
        choices: At the calibration's threshold, of its width.
    """

    least: int
    most: int | None
    documents: int
    levels: tuple[Level, ...]
    choices: tuple[Choice, ...]

    @property
    def title(self) -> str:
        """The range of lengths, as text."""
        return f"{self.least:,} to {self.most:,}" if self.most else f"{self.least:,} or more"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run over all documents, extrapolated.

    Attributes:
        option: The option of the command line.
        seconds: Time.
        memory: Bytes at the peak.
        disk: Bytes of temporary files.
    """

    option: str
    seconds: float
    memory: int
    disk: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a calibration.

    Attributes:
        documents: In all inputs.
        rejected: Records that could not be used.
        sampled: Documents in the sample.
        seed: Of the sample.
        measure: The measure of similarity.
        lowest: Least similarity that was searched, exactly.
        threshold: That of the advice; without advice the usual one.
        is_own: Whether the calibration chose it; otherwise the caller did.
        unknown: Why no threshold is advised; empty where one is.
        recall: The share that the advised distance should find.
        levels: Matches, by rising similarity.
        choices: Of every measured width, distance and similarity.
        advised: The choice of least width and distance with the requested recall, if there is one.
        lengths: By length of the shorter document.
        costs: Of some choices.
        examples: (title, pairs) of each band of similarity.
        warnings: Reasons to doubt it.
        commands: The commands to run: by similarity, and by distance if that is advised; none
            without an advised threshold.
    """

    documents: int
    rejected: int
    sampled: int
    seed: int
    measure: str
    lowest: float
    threshold: float
    is_own: bool
    unknown: str
    recall: float
    levels: tuple[Level, ...]
    choices: tuple[Choice, ...]
    advised: Choice | None
    lengths: tuple[LengthBand, ...]
    costs: tuple[Cost, ...]
    examples: tuple[tuple[str, tuple[PairShown, ...]], ...]
    warnings: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def steps(self) -> list[Level]:
        """The levels with a line of their own: each twentieth, and the threshold."""
        return [
            level
            for level in self.levels
            if round(level.similarity * 100) % 5 == 0 or level.similarity == self.threshold
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything except the words of the examples, for `--json`."""
        values = asdict(self)
        values["examples"] = [
            {"band": title, "pairs": [[*pair.names, pair.similarity] for pair in pairs]}
            for title, pairs in self.examples
        ]
        return values

    def __str__(self) -> str:
        """Lines for people."""
        whole = "all" if self.sampled == self.documents else f"{self.sampled:,} at random"
        lines = [f"documents   {self.documents:,}, looked at {whole}", "", _LEVELS]
        for level in self.steps:
            low, high = level.interval
            lines.append(
                f"{level.similarity:10.4g} {level.sampled:10,} {level.pairs:16,.0f}"
                f"   {low:,.0f} to {high:,.0f}"
            )
        lines += ["", f"fingerprints, for pairs at {self.threshold:g} or more", _CHOICES]
        lines += [_choice(each) for each in advised_choices(self.choices, self.threshold)]
        for band in self.lengths:
            share = next(x.sampled for x in band.levels if x.similarity == self.threshold)
            lines.append(
                f"{band.title} features: {band.documents:,} documents,"
                f" {share:,} pairs at {self.threshold:g} or more"
            )
        lines += ["", f"{'at full size':<40} {'seconds':>10} {'memory MiB':>12}"]
        lines += [
            f"{cost.option:<40} {cost.seconds:10,.1f} {cost.memory / 2**20:12,.0f}"
            for cost in self.costs
        ]
        lines += ["", *(f"warning: {shown(each)}" for each in self.warnings)]
        if self.unknown:
            lines.append(f"no advice: {self.unknown}; {TO_JUDGE}")
        return "\n".join([*lines, *(f"use: {shown(each)}" for each in self.commands)])


TO_JUDGE: Final = "look at the example pairs of --report, or judge some by `neardup review`"
_LEVELS = f"{'similarity':>10} {'in sample':>10} {'expected pairs':>16}   95% interval"
_CHOICES = f"{'bits':>6} {'distance':>9}   recall                  precision"


def advised_choices(choices: tuple[Choice, ...], similarity: float) -> list[Choice]:
    """The choices to show at a similarity: for each width every distance with a new recall."""
    shown: list[Choice] = []
    for choice in choices:
        if choice.similarity != similarity or choice.recall is None:
            continue
        last = shown[-1] if shown and shown[-1].bits == choice.bits else None
        if choice.distance == 3 or last is None or choice.recall - (last.recall or 0) >= 0.05:
            shown.append(choice)
    return shown


def _choice(choice: Choice) -> str:
    recall = _share(choice.recall, choice.recall_interval)
    precision = _share(choice.precision, choice.precision_interval)
    return f"{choice.bits:6} {choice.distance:9}   {recall:<22}  {precision}"


def _share(share: float | None, interval: Range) -> str:
    if share is None:
        return "none"
    return f"{share:.3f} ({interval[0]:.3f}-{interval[1]:.3f})"
