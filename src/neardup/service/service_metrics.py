"""Counters of the service, in the text format of Prometheus."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index import DurableIndex

__all__ = ["Metrics"]

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
RECENT: Final = 20
"""The number of duplicates that the page shows."""
ROWS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The counters of one service; docs/guide/serve-runbook.md explains each.

    Args:
        index: Whose sizes are shown.
    """

    def __init__(self, index: DurableIndex) -> None:
        """Set all counters to zero."""
        self._index = index
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        seen = Counter(
            "neardup_seen", "Documents asked with /v1/seen.", ["state"], registry=registry
        )
        states = ("new", "seen", "stored", "replaced", "empty", "refused")
        self._seen: dict[str, Any] = {state: seen.labels(state) for state in states}
        self._requests = Counter(
            "neardup_requests", "Requests.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "neardup_request_duration_seconds",
            "From a request's head to its answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self._commits = Histogram(
            "neardup_commit_duration_seconds",
            "Of a batch: features, search, and the commit.",
            buckets=SECONDS,
            registry=registry,
        )
        self._batches = Histogram(
            "neardup_batch_documents", "Documents a commit.", buckets=ROWS, registry=registry
        )
        self._expired = Counter(
            "neardup_expired", "Documents removed for their age.", registry=registry
        )
        Gauge("neardup_build_info", "Always 1.", ["version"], registry=registry).labels(
            __version__
        ).set(1)
        self._gauge("neardup_index_documents", "Documents stored.", lambda: len(index))
        for name, fact, text in (
            ("neardup_index_bytes", "bytes_on_disk", "Of the index on the disk."),
            ("neardup_disk_free_bytes", "free_disk_bytes", "Of the disk of the index."),
            ("neardup_index_segments", "segments", "Files that a query searches."),
        ):
            self._gauge(name, text, lambda fact=fact: self._fact(fact))  # type: ignore[misc]
        self._gauge(
            "neardup_merge_failed",
            "1 if the last merge or flush in the background failed.",
            lambda: float(index.stats()["last_background_error"] is not None),
        )
        self._recent = deque[tuple[float, Any, Any]](maxlen=RECENT)
        self._batches_done = deque[tuple[float, int]](maxlen=4096)
        self._children: dict[tuple[str, int], tuple[Any, Any]] = {}

    def queue(self, rows: Callable[[], int], nbytes: Callable[[], int]) -> None:
        """Set the gauges of documents and bytes that wait for a commit."""
        self._gauge("neardup_queue_documents", "Documents that wait for a commit.", rows)
        self._gauge("neardup_queue_bytes", "Bytes that wait for a commit.", nbytes)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        children = self._children.get((route, status))
        if children is None:
            children = (self._requests.labels(route, str(status)), self._seconds.labels(route))
            self._children[route, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def seen(self, state: str, count: int) -> None:
        """Count documents by their outcome."""
        self._seen[state].inc(count)

    def duplicate(self, identity: Any, match: Any) -> None:
        """Remember a duplicate and its match, for the page."""
        self._recent.append((time.time(), identity, match))

    def recent(self) -> list[tuple[float, Any, Any]]:
        """The latest duplicates with time and match, the newest last."""
        return list(self._recent)

    def rate(self) -> float:
        """Documents a second in the last minute."""
        now = time.monotonic()
        return sum(rows for when, rows in list(self._batches_done) if when > now - 60) / 60

    def committed(self, rows: int, seconds: float) -> None:
        """Count a committed batch."""
        self._batches_done.append((time.monotonic(), rows))
        self._commits.observe(seconds)
        self._batches.observe(rows)

    def expired(self, rows: int) -> None:
        """Count documents removed for their age."""
        self._expired.inc(rows)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(value)

    def _fact(self, name: str) -> float:
        value = self._index.stats()[name]
        return float(len(value) if isinstance(value, list) else value)
