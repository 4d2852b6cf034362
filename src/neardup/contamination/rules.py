"""When a question counts as found in a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from neardup.errors import UsageError

__all__ = ["DEFAULT_SHARE", "LeakRule"]

DEFAULT_SHARE: Final = 0.5
_LEAST_RUN: Final = 2
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class LeakRule:
    """When a question counts as found: by either of two rules.

    A question of fewer words than a rule compares (three by share, `run` by run) is found where all
    its words stand in a row; one of a single word never.

    Args:
        share: Least share of the question's features (runs of three words) that the document has,
            above 0, up to 1; None asks no share.
        run: Least number of words in a row that both have, 2 or more; None asks no run.

    Raises:
        UsageError: If one is out of range, or both are None.

    Example:
        >>> LeakRule(0.5).least_shared(7), LeakRule(run=13)
        (4, LeakRule(share=None, run=13))
    """

    share: float | None = None
    run: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        if self.share is None and self.run is None:
            raise UsageError("neither share nor run is given: pass one of them, or both")
        if self.share is not None:
            is_number = isinstance(self.share, (int, float, np.number))
            if isinstance(self.share, bool) or not (is_number and 0 < self.share <= 1):
                raise UsageError(f"share is {self.share!r}: use a number above 0, up to 1")
        if self.run is not None:
            is_whole = isinstance(self.run, (int, np.integer)) and not isinstance(self.run, bool)
            if not is_whole or self.run < _LEAST_RUN:
                raise UsageError(f"run is {self.run!r}: use a whole number from 2 up")

    def least_shared(self, features: int) -> int:
        """How many of a question's features a document must have."""
        share = 1.0 if self.share is None else float(self.share)
        return max(1, int(np.ceil(share * features * (1 - _ROUNDING))))
