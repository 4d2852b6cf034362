"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from suite import EXAMPLES, FIRST, JIT, ONCE, SHARED, TESTS

collect_ignore = [] if JIT else ONCE

settings.register_profile(
    "neardup",
    deadline=None,
    print_blob=True,
    max_examples=EXAMPLES if JIT else min(20, EXAMPLES),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("neardup")


def pytest_configure(config: pytest.Config) -> None:
    """Let processes keep bytecode; let plain kernels wrap.

    They wrap modulo 2**64 on purpose, and NumPy scalars warn where compiled code does not.
    """
    # A shell that starts this in the background lets it ignore Ctrl-C, and so its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Many tests start processes, and each would compile 300 modules to bytecode anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not JIT:
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no collection of garbage needs to look at them.

    Compiling makes millions of objects, and looking at them so often takes a tenth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest; skip what needs ../shared where it is not there."""
    items.sort(key=lambda item: item.path.relative_to(TESTS).as_posix() not in FIRST)
    if SHARED.is_dir():
        return
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(pytest.mark.skip(reason="../shared is not here"))
