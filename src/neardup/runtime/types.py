"""Arrays by what they hold, for the steps: the names that kernels have for them.

Import these under TYPE_CHECKING.
"""

from __future__ import annotations

from neardup.kernels.array_types import (
    Bitmap,
    Code,
    Codes,
    Flags,
    Hashes,
    Masks,
    Numbers,
    Offsets,
    Packed,
    RowNumbers,
    Rows,
    Scores,
    Times,
    Words,
)  # fmt: skip

__all__ = [
    "Bitmap", "Code", "Codes", "Flags", "Hashes", "Masks", "Numbers", "Offsets", "Packed",
    "RowNumbers", "Rows", "Scores", "Times", "Words",
]  # fmt: skip
