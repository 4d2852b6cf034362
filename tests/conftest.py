"""Settings of the whole suite."""

from __future__ import annotations

import functools
import gc
import os
import signal
import warnings
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings

from suite import EXAMPLES, FIRST, INTEGRATIONS, JIT, ONCE, SHARED, SLOW, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUICK: Final = 0.07
"""Seconds of a processor that a test of the quick suite may take."""
WRAPS: Final = "overflow encountered"
"""How NumPy begins its warning where plain kernels wrap."""
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
        # Also for threads that run on between two tests, and while pytest sets its filters anew.
        warnings.filterwarnings("ignore", WRAPS, RuntimeWarning)
        config.getini("filterwarnings")[:] = [f"error:(?!{WRAPS})"]


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no collection of garbage needs to look at them.

    Compiling makes millions of objects, and looking at them so often takes a tenth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `make test-quick` and `make slow-tests` pass."""
    parser.addoption("--quick", action="store_true", help="leave out what is in slow.txt")
    parser.addoption("--write-slow", action="store_true", help="write slow.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest; mark integrations; leave out what cannot or need not run."""
    if config.getoption("--quick"):
        slow = slow_names()
        left_out = [item for item in items if name_of(item) in slow]
        items[:] = [item for item in items if name_of(item) not in slow]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: path_of(item) not in FIRST)
    for item in items:
        if path_of(item).startswith(INTEGRATIONS):
            item.add_marker("integration")
        if item.get_closest_marker("shared") and not SHARED.is_dir():
            item.add_marker(pytest.mark.skip(reason="../shared is not here"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files all of whose tests are slow: importing all files is a third of the time."""
    is_quick = config.getoption("--quick") and short(collection_path) in slow_names()
    return True if is_quick else None


@functools.cache
def slow_names() -> frozenset[str]:
    """Slow tests, and files without others."""
    return frozenset(SLOW.read_text(encoding="utf8").splitlines())


@functools.cache
def short(path: Path) -> str:
    """A path from the folder of tests."""
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else path.as_posix()


def path_of(item: pytest.Item) -> str:
    """The file of a test, from the folder of tests."""
    return short(item.path)


def file_in(name: str) -> str:
    """The file in a name."""
    return name.partition("::")[0]


def name_of(item: pytest.Item) -> str:
    """The file and the function of a test, without its parameters."""
    return f"{path_of(item)}::{item.nodeid.partition('::')[2].partition('[')[0]}"


seconds: dict[str, float] = {}
"""Of a processor, the dearest case of each test, where they are measured."""


shared: dict[tuple[str, str], float] = {}
"""Of a processor, for the fixtures that the tests of a file share: file and name."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[object]:
    """Measure what the tests of a file share: one of them alone would need it too."""
    before = sum(os.times()[:4])
    result = yield
    if fixturedef.scope == "module":
        shared[short(request.path), fixturedef.argname] = sum(os.times()[:4]) - before
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Measure the processor time of a test with its fixtures and child processes."""
    before = sum(os.times()[:4])
    result = yield
    name, used = name_of(item), sum(os.times()[:4]) - before
    fixtures = getattr(item, "fixturenames", ())
    costs = (shared.get((path_of(item), fixture), 0) for fixture in fixtures)
    seconds[name] = max([used, seconds.get(name, 0), *costs])
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write which tests are slow, if asked to; of a file without others, its name alone."""
    if session.config.getoption("--write-slow"):
        quick = {file_in(name) for name, used in seconds.items() if used < QUICK}
        slow = {name for name, used in seconds.items() if used >= QUICK}
        lines = {name if file_in(name) in quick else file_in(name) for name in slow}
        SLOW.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf8")
