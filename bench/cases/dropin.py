"""The drop-in Simhash against PyPI simhash, on the texts of the package's own README and tests."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "dropin"
LEAST_REPEATS = 7
LEAST_SECONDS = 0.3
TARGET = 20.0

TEXTS = {
    "sentence": "How are you? I Am fine. blar blar blar blar blar Thanks.",
    "short": "This is simhash test.",
    "Chinese": "你好　世界！　　呼噜。",  # noqa: RUF001
    "long": " ".join(f"word{i} lorem ipsum {i * 7919 % 1000}" for i in range(2000)),
}
NUMBERS = [str(i) for i in range(500)]
FEATURES: dict[str, Any] = {
    "500 features": NUMBERS,
    "500 weighted features": [(token, 50 * i) for i, token in enumerate(NUMBERS)],
}


def rows(quick: bool) -> list[Row]:
    """One row an input; --quick takes two."""
    names = [*TEXTS, *FEATURES]
    return [row(name) for name in (names[:2] if quick else names)]


def row(name: str) -> Row:
    """Ours against theirs on one input."""
    ours = Measurement.of(CASE, "ours", OURS, name=name)
    theirs = Measurement.of(CASE, "theirs", "simhash", name=name)
    return Row(f"drop-in Simhash, {name}", ours, (theirs,), TARGET, unit="thousand/s")


def ours(name: str) -> dict[str, Any]:
    from neardup.compat.simhash import Simhash

    return rate(Simhash, name)


def theirs(name: str) -> dict[str, Any]:
    from simhash import Simhash

    return rate(Simhash, name)


def rate(simhash: Callable[[Any], Any], name: str) -> dict[str, Any]:
    """Thousand values a second, the median of the repeats."""
    value = TEXTS.get(name) or FEATURES[name]
    fingerprint = simhash(value).value
    start = time.perf_counter()
    _ = simhash(value).value
    calls = max(1, int(0.02 / (time.perf_counter() - start)))
    times: list[float] = []
    while len(times) < LEAST_REPEATS or sum(times) < LEAST_SECONDS:
        start = time.perf_counter()
        for _ in range(calls):
            _ = simhash(value).value
        times.append(time.perf_counter() - start)
    return {
        "value": calls / statistics.median(times) / 1000,
        "repeats": len(times),
        "fingerprint": str(fingerprint),
    }
