"""The ranges of a document that are cut out because they contain questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["MAX_CUTS", "Cut"]

MAX_CUTS: Final = 10
"""The limit of GPT-3 (Brown et al. 2020, appendix C) and NeMo Curator."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The rule for cutting passages out of documents.

    Args:
        around: Characters (code points) before and behind each passage that go with it.
        most: A document with more cuts than this is dropped.

    Raises:
        UsageError: If one is below zero.

    Example:
        >>> Cut(around=1).stretches([(9, 12), (3, 5), (5, 8)])
        [(2, 13)]
    """

    around: int
    most: int = MAX_CUTS

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for name, value in (("cut", self.around), ("max_cuts", self.most)):
            if value < 0:
                raise UsageError(f"{name} is {value}: use a whole number from 0 up")

    def stretches(self, passages: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
        """The begin and end of each range to cut, ascending; touching ranges are joined."""
        stretches: list[tuple[int, int]] = []
        for begin, end in sorted(
            (max(0, x[0] - self.around), x[1] + self.around) for x in passages
        ):
            if stretches and begin <= stretches[-1][1]:
                stretches[-1] = stretches[-1][0], max(end, stretches[-1][1])
            else:
                stretches.append((begin, end))
        return stretches
