"""What the tests of all rooms share: where they are, and whether kernels are compiled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

__all__ = ["ATTACKS", "JIT", "LONG", "ROOT", "SHARED", "TESTS", "needs_jit"]

JIT: Final = os.environ.get("NUMBA_DISABLE_JIT", "0") in {"", "0"}
TESTS: Final = Path(__file__).resolve().parent
ROOT: Final = TESTS.parent
SHARED: Final = ROOT.parent / "shared"
ATTACKS: Final = int(os.environ.get("NEARDUP_ATTACK_ROUNDS", "12"))
"""Damages of each kind; few are always the same, and many, of `make attack-rounds`, new ones."""
LONG: Final = ATTACKS > 60
needs_jit: Final = pytest.mark.skipif(
    not JIT, reason="plain kernels would be slow here, or show nothing that other tests do not"
)
"""For what starts processes, reads megabytes, or is about files, signals and other programs."""
