"""Array types by what they hold, so that a signature tells rows from fingerprints.

Numba infers types by itself and never looks at these. Import them under TYPE_CHECKING;
modules above the kernels take them from `runtime/types.py`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Bitmap", "Bytes", "Code", "Codes", "Flags", "Float64s", "Hashes",
    "Int16s", "Int32s", "Int64s", "Masks", "Numbers", "Offsets", "Packed", "RowNumbers", "Rows",
    "Scores", "Times", "Uint16s", "Uint32s", "Uint64s", "Words",
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
"""(n,): a yes or no for each document."""
Bitmap: TypeAlias = npt.NDArray[np.uint8]
"""(ceil(n / 8),): a yes or no for each document as one bit, the lowest bit first."""
Scores: TypeAlias = npt.NDArray[np.float64]
"""(n,): similarities."""
Times: TypeAlias = npt.NDArray[np.float64]
"""(n,): seconds since 1970."""
Bytes: TypeAlias = npt.NDArray[np.uint8]
"""(n,): text, or flags of a byte each."""

Uint64s: TypeAlias = npt.NDArray[np.uint64]
"""Values of none of the kinds above, as in the types that follow; a docstring says of what."""
Uint32s: TypeAlias = npt.NDArray[np.uint32]
Uint16s: TypeAlias = npt.NDArray[np.uint16]
Int64s: TypeAlias = npt.NDArray[np.int64]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int16s: TypeAlias = npt.NDArray[np.int16]
Float64s: TypeAlias = npt.NDArray[np.float64]
