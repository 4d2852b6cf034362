"""Character classes, and the layout of an entry of the tables of neardup.features.unicode."""

from __future__ import annotations

from typing import Final

OTHER: Final = 0
WORD: Final = 1
EXTEND: Final = 2
UNSPACED: Final = 3
IGNORED: Final = 4
SPACE: Final = 5

CODE_POINT_MASK: Final = (1 << 21) - 1
CLASS_SHIFT: Final = 24
CLASS_MASK: Final = 7
SLOW: Final = 1 << 27
MULTI: Final = 1 << 28
