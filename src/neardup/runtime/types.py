"""Arrays by what they hold, for the steps: mypy tells a row number from a fingerprint.

Kernels take the same, and Numba infers their types by itself. Import these under TYPE_CHECKING.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Codes", "Hashes", "Offsets", "RowNumbers", "Rows"]

Codes: TypeAlias = npt.NDArray[np.uint64]
"""(n, width): fingerprints, the low word first."""
Hashes: TypeAlias = npt.NDArray[np.uint64]
"""(n,): feature hashes."""
Offsets: TypeAlias = npt.NDArray[np.int64]
"""(n + 1,): where the items of each of n documents begin, and where the last one's end."""
Rows: TypeAlias = npt.NDArray[np.int64]
"""(n,): documents by number."""
RowNumbers: TypeAlias = npt.NDArray[np.uint32]
"""(n,): rows of a join in memory, of which there are at most 2**32."""
