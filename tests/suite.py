"""What the tests of all rooms share: where they are, and whether kernels are compiled."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

__all__ = [
    "ATTACKS",
    "EXAMPLES",
    "FIRST",
    "IMPORTS",
    "INTEGRATIONS",
    "JIT",
    "LONG",
    "ONCE",
    "ROOT",
    "SHARED",
    "SLOW",
    "TESTS",
    "compiled_kernels",
    "examples",
    "needs_jit",
    "without_kernels",
]

JIT: Final = os.environ.setdefault("NUMBA_DISABLE_JIT", "0") in {"", "0"}
"""Whether kernels are compiled: in this process, and in commands that it starts, which would run
plain ones on inputs as small as those of tests."""
TESTS: Final = Path(__file__).resolve().parent
ROOT: Final = TESTS.parent
SHARED: Final = ROOT.parent / "shared"
ATTACKS: Final = int(os.environ.get("NEARDUP_ATTACK_ROUNDS", "12"))
"""Damages of each kind; few are always the same, and many, of `make attack-rounds`, new ones."""
IMPORTS: Final = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
"""The variable with which a child process imports what this one does, from the same checkout."""
LONG: Final = ATTACKS > 60
EXAMPLES: Final = int(os.environ.get("NEARDUP_EXAMPLES", "40"))
"""Of a property where its test says no other number; `make property-rounds` takes many."""
ONCE: Final = [
    *("attack", "cli", "house", "integrations", "service", "spark"),
    *(f"documents/test_{name}.py" for name in ("excel", "inputs", "other_inputs", "outputs")),
    *(f"features/test_{name}.py" for name in ("tokens", "unicode")),
    *(
        f"index/test_{name}.py"
        for name in (
            *("background", "backup", "clock", "durable_crash", "forks_and_folders", "offers"),
            *("payloads", "plans", "torn_reads", "types"),
        )
    ),
    *(
        f"pipeline/test_{name}.py"
        for name in (
            *("against", "browser", "calibrate", "estimate", "evaluate", "named_texts"),
            *("notebook", "page", "plots", "progress", "report", "resume", "review"),
        )
    ),
]
"""What runs with the JIT on only: it is about processes, files, pages and other programs, and what
its kernels compute other tests compare with the oracle."""
INTEGRATIONS: Final = (
    *("attack/", "integrations/", "service/", "spark/"),
    *(
        "cli/test_compile.py",
        "cli/test_index_filter.py",
        "index/test_durable_crash.py",
        "index/test_warming.py",
    ),
    *("kernels/test_cache.py", "pipeline/test_against.py", "pipeline/test_memory_limit.py"),
    "pipeline/test_resume.py",
)
"""What `make test-integrations` runs: servers, other programs, processes that are killed."""
SLOW: Final = TESTS / "slow.txt"
"""Tests that `make test-quick` leaves out, as `make slow-tests` measured them."""
FIRST: Final = ("spark/test_spark_java.py", "cli/test_compile.py")
"""What waits for other programs so long that at the end one process would work on it alone."""
needs_jit: Final = pytest.mark.skipif(
    not JIT, reason="plain kernels would be slow here, or show nothing that other tests do not"
)
"""For what starts processes, reads megabytes, or is about files, signals and other programs."""


def examples(compiled: int, plain: int = 1) -> int:
    """How many examples a property takes with the JIT on and off; many more in the long form.

    Of what runs with the JIT on only, the second number is left out.
    """
    return max(1, EXAMPLES // 60) * (compiled if JIT else plain)


def compiled_kernels() -> set[tuple[str, str, str]]:
    """Module, name and signature of each kernel that this process has compiled or loaded."""
    from numba.core.dispatcher import Dispatcher

    result = set()
    for name, module in list(sys.modules.items()):
        for each in vars(module).values() if name.startswith("neardup.kernels") else ():
            if isinstance(each, Dispatcher):
                result |= {
                    (each.py_func.__module__, each.__name__, str(s)) for s in each.signatures
                }
    return result


def without_kernels(folder: Path) -> dict[str, str]:
    """The environment of a command that finds no kernels, and writes those it compiles to a folder.

    They are for another processor: those of this one lie beside the source too.
    """
    return {**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_CPU_NAME": "generic"}
