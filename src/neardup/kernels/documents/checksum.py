"""The checksum of a zstd frame's content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.features.byte_hashes import xxh64
from neardup.kernels.jit import kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes

_M32: Final = np.uint64(0xFFFFFFFF)


@kernel
def content_checksum(data: Bytes) -> Any:
    """The low 32 bits of XXH64 with seed 0 (RFC 8878, 3.1.1); uint64, O(bytes).

    Args:
        data: uint8 (n,), contiguous; may be read-only.
    """
    return xxh64(data, 0, len(data), np.uint64(0)) & _M32
