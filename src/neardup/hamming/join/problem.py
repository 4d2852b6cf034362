"""The rows of a join and their conditions, and the settings that stay the same during it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.runtime.types import Codes, RowNumbers

__all__ = ["HEAVY_ROWS", "NO_IDS", "NO_WEIGHTS", "Engine", "Problem"]


HEAVY_ROWS: Final = 8192
PAIRS_AT_ONCE: Final = 1 << 40
NO_IDS: Final = np.empty(0, np.uint32)
NO_WEIGHTS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Engine:
    """The constant settings of a join."""

    distance: int
    bits: int
    workers: int
    heavy: int = HEAVY_ROWS
    pairs_at_once: int = PAIRS_AT_ONCE  # that a thread holds; more take several passes of a chunk


@dataclass(frozen=True, slots=True)
class Problem:
    """Fingerprints to join, and the conditions inherited from outer joins."""

    codes: Codes  # C-contiguous, read-only
    rows: RowNumbers = field(default_factory=lambda: NO_IDS)  # their names; empty: 0 to n - 1
    weights: Any = field(default_factory=lambda: NO_WEIGHTS)  # int64 (n,); empty: all 1
    rules: Any = None  # uint64 (r, W): masks
    agree: Any = None  # bool (r,): whether a pair agrees on each
    distinct: bool = False

    def named(self, positions: Any) -> Any:
        """The names of the rows at these positions: uint32."""
        return self.rows[positions] if len(self.rows) else positions.astype(np.uint32)

    def part(self, chosen: Any, rules: Any, agree: Any) -> Problem:
        """A problem of the rows at positions `chosen` under further conditions."""
        return Problem(
            frozen(self.codes[chosen]),
            self.named(chosen),
            self.weights[chosen] if len(self.weights) else self.weights,
            rules if self.rules is None else np.concatenate([self.rules, rules]),
            agree if self.agree is None else np.concatenate([self.agree, agree]),
            self.distinct,
        )
