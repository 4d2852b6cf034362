"""What the tests of all rooms share: where they are, and whether kernels are compiled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["JIT", "ROOT", "SHARED", "TESTS"]

JIT: Final = os.environ.get("NUMBA_DISABLE_JIT", "0") in {"", "0"}
TESTS: Final = Path(__file__).resolve().parent
ROOT: Final = TESTS.parent
SHARED: Final = ROOT.parent / "shared"
