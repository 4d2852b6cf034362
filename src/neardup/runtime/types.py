"""Array types by their content, under the names that kernels use.

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
