"""The features of one document as slices of a buffer, for hashes that no kernel computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.kernels.features.tokenise import scratch_tokens, tokenise
from neardup.kernels.jit import kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes
    from neardup.kernels.features.token_arguments import Cutting


@kernel
def feature_slices(data: Bytes, begin: int, end: int, cutting: Cutting) -> Any:
    """Tokenise data[begin:end]; feature i is buffer[first[i]:last[i]]. O(bytes).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        begin: First byte of the text.
        end: Byte behind its last.
        cutting: Cutting.

    Returns:
        buffer (uint8), first and last (int64, one a feature, repeats included).
    """
    scratch = scratch_tokens(end - begin)
    buffer, starts = scratch.buffer, scratch.starts
    tokens = tokenise(data, begin, end, cutting, scratch)
    if tokens == 0:
        return buffer[:0], starts[:0], starts[:0]
    width = min(cutting.ngram, tokens)
    gap = 0 if cutting.chars else 1
    count = tokens - width + 1
    return buffer, starts[:count], starts[width : width + count] - gap
