"""What an explanation holds; `shown` has the public classes, which print themselves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["DifferingBit", "ExplainedPair", "ExplainedText", "Feature", "Pull"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One distinct feature of a document.

    Attributes:
        text: The feature; bytes that are not UTF-8 as backslash escapes.
        count: How often it occurs.
        weight: How much it adds to, or takes from, each sum.
        hash: As wide as the fingerprint; where bit j is 1, it adds its weight to sum j.
    """

    text: str
    count: int
    weight: float
    hash: int

    def pull(self, bit: int) -> float:
        """What the feature contributes to the sum of a bit."""
        return self.weight if self.hash >> bit & 1 else -self.weight


@dataclass(frozen=True, slots=True)
class DifferingBit:
    """One bit in which two fingerprints differ.

    Attributes:
        bit: Its number; 0 is the lowest.
        sums: Of the first document and of the second.
        pulls: The features that pull it apart most, and by how much: what each adds to the
            difference of the sums.
        others: How many more do.
    """

    bit: int
    sums: tuple[float, float]
    pulls: tuple[tuple[str, float], ...]
    others: int


@dataclass(frozen=True, slots=True)
class Pull:
    """A feature that does not weigh the same in both documents.

    Attributes:
        text: The feature.
        weights: In the first document and in the second; 0 where it is absent.
        bits: In how many of the differing bits it pulls the two apart.
        total: What it adds to the differences of the sums of all differing bits; below 0 where it
            rather holds them together.
    """

    text: str
    weights: tuple[float, float]
    bits: int
    total: float


def hexadecimal(value: int, bits: int) -> str:
    """Hexadecimal digits, as many as the width takes."""
    return f"{value:0{-(-bits // 4)}x}"


@dataclass(frozen=True, slots=True)
class ExplainedText:
    """See `neardup.Explanation`."""

    recipe: Recipe
    features: tuple[Feature, ...]
    sums: tuple[float, ...] | None
    fingerprint: int | None
    show: int

    @property
    def bits(self) -> int:
        """Width of the fingerprint."""
        return self.recipe.bits

    @property
    def digits(self) -> str | None:
        """The fingerprint in hexadecimal."""
        return None if self.fingerprint is None else hexadecimal(self.fingerprint, self.bits)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`; hashes and fingerprint as hexadecimal digits."""
        return {
            "recipe": json.loads(self.recipe.to_json()),
            "bits": self.bits,
            "fingerprint": self.digits,
            "features": [
                asdict(x) | {"hash": hexadecimal(x.hash, self.bits)} for x in self.features
            ],
            "sums": None if self.sums is None else list(self.sums),
        }


@dataclass(frozen=True, slots=True)
class ExplainedPair:
    """See `neardup.PairExplanation`."""

    first: ExplainedText
    second: ExplainedText
    distance: int | None
    shared: int
    pulls: tuple[Pull, ...]
    differing: tuple[DifferingBit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "distance": self.distance,
            "shared": self.shared,
            "pulls": [asdict(pull) for pull in self.pulls],
            "differing": [asdict(bit) for bit in self.differing],
        }
