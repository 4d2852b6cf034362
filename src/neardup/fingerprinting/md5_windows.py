"""The MD5 SimHash of a text of character windows: PyPI simhash and what repeats it."""

from __future__ import annotations

import functools
from typing import Any, Final

WIDTH: Final = 4
"""Characters a window, as PyPI simhash has them."""
_WORD: Final = 64


def windows_value(kept: str, plain: bool, f: int, width: int, *, tie_one: bool) -> int:
    """Fold the MD5 of each window of a text.

    Args:
        kept: The text; the letters that count, unless `plain`.
        plain: It is ASCII, not yet lowered and with all that does not count.
        f: Bits, up to 128.
        width: Characters a window, up to 4.
        tie_one: The bit of a tie.
    """
    data = kept.encode()
    value = int(_fold_windows()(data, plain, 0, width, tie_one))
    if f == _WORD:
        return value
    if f > _WORD:
        value |= int(_fold_windows()(data, plain, 1, width, tie_one)) << _WORD
    return value & (1 << f) - 1


@functools.cache
def _fold_windows() -> Any:
    from neardup.kernels.fingerprinting import md5

    return md5.direct(md5.fold_windows, b"", True, 0, WIDTH, False)
