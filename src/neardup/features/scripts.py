"""Scripts that are written without spaces between words."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_unspaced"]

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)


def is_unspaced(text: str) -> bool:
    """Whether most characters of a text are of scripts that are written without spaces.

    Example:
        >>> is_unspaced("これは本です"), is_unspaced("This is a book")
        (True, False)
    """
    return 2 * len(_UNSPACED.findall(text)) > sum(map(len, text.split()))
