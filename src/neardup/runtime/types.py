"""Arrays by what they hold, for the steps: mypy tells a row number from a fingerprint.

Kernels take the same, and Numba infers their types by itself. Import these under TYPE_CHECKING.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Bitmap", "Code", "Codes", "Flags", "Hashes", "Masks", "Numbers", "Offsets", "Packed",
    "RowNumbers", "Rows", "Scores", "Times", "Words",
]  # fmt: skip

Codes: TypeAlias = npt.NDArray[np.uint64]
"""(n, width): fingerprints, the low word first."""
Code: TypeAlias = npt.NDArray[np.uint64]
"""(width,): one fingerprint."""
Words: TypeAlias = npt.NDArray[np.uint64]
"""(n * width,): fingerprints, one after the other."""
Masks: TypeAlias = npt.NDArray[np.uint64]
"""(m, width): sets of bits."""
Hashes: TypeAlias = npt.NDArray[np.uint64]
"""(n,): feature hashes."""
Offsets: TypeAlias = npt.NDArray[np.int64]
"""(n + 1,): where the items of each of n documents begin, and where the last one's end."""
Rows: TypeAlias = npt.NDArray[np.int64]
"""(n,): documents by number."""
RowNumbers: TypeAlias = npt.NDArray[np.uint32]
"""(n,): rows of a join in memory, of which there are at most 2**32."""
Numbers: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
"""(n,): rows of a collection larger than memory, uint32 where there are at most 2**32."""
Packed: TypeAlias = npt.NDArray[np.uint64]
"""(n,): pairs of rows, the smaller one << 32 | the other."""
Flags: TypeAlias = npt.NDArray[np.bool_]
"""(n,): of each document whether it is so."""
Bitmap: TypeAlias = npt.NDArray[np.uint8]
"""(ceil(n / 8),): of each document whether it is so, a bit, the lowest one first."""
Scores: TypeAlias = npt.NDArray[np.float64]
"""(n,): how similar each is."""
Times: TypeAlias = npt.NDArray[np.float64]
"""(n,): seconds since 1970."""
