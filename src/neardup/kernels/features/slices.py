"""The features of one document as slices of a buffer, for hashes that no kernel computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.kernels.features.tokenise import (
    BUFFER_RATIO,
    SEGMENT_RATIO,
    SLACK,
    TOKEN_RATIO,
    tokenise,
)
from neardup.kernels.jit import kernel


@kernel
def feature_slices(
    data: Any, begin: int, end: int, tables: Any, case_bit: Any, chars: bool, ngram: int
) -> Any:
    """Tokenise data[begin:end]; feature i is buffer[first[i]:last[i]]. O(bytes).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        begin: First byte of the text.
        end: Byte behind its last.
        tables: neardup.features.unicode.Tables of the recipe's normal form and folding.
        case_bit: uint8, 0x20 to fold case, else 0.
        chars: Tokens are code points, not words.
        ngram: Tokens a feature.

    Returns:
        buffer (uint8), first and last (int64, one a feature, repeats included).
    """
    size = end - begin
    points = np.empty(SEGMENT_RATIO * size + SLACK, np.uint32)
    classes = np.empty(points.size, np.uint8)
    buffer = np.empty(BUFFER_RATIO * size + SLACK, np.uint8)
    starts = np.empty(TOKEN_RATIO * size + SLACK, np.int64)
    tokens = tokenise(
        data, begin, end, tables, chars, case_bit, points, classes, buffer, starts
    )  # fmt: skip
    if tokens == 0:
        return buffer[:0], starts[:0], starts[:0]
    width = min(ngram, tokens)
    gap = 0 if chars else 1
    count = tokens - width + 1
    return buffer, starts[:count], starts[width : width + count] - gap
