"""The page: one file, the same bytes for the same record, whole without a network or a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.errors import UsageError
from neardup.pipeline.report.frame import frame
from neardup.pipeline.report.look import SLIDER
from neardup.pipeline.report.markup import count
from neardup.pipeline.report.sections import (
    Pairs,
    border,
    clusters,
    overview,
    promises,
    sources,
    threshold,
)

if TYPE_CHECKING:
    from neardup.pipeline.report.model import Report

__all__ = ["MOST_BYTES", "page"]

MOST_BYTES: Final = 2_000_000
HARD_LIMIT: Final = 5_000_000
_LINKS: Final = (
    ("threshold", "Threshold"),
    ("border", "Border"),
    ("clusters", "Clusters"),
    ("pairs", "Pairs"),
    ("sources", "Sources"),
    ("promises", "Guarantees"),
)


def page(report: Report, most: int = MOST_BYTES) -> str:
    """Write a report as HTML.

    Args:
        report: What it shows.
        most: Bytes that it may have, up to 5,000,000; pairs beyond that are left out, which it
            says.

    Raises:
        UsageError: If `most` is out of range.
    """
    if not 0 < most <= HARD_LIMIT:
        raise UsageError(f"the report may have {most:,} bytes: use 1 to {HARD_LIMIT:,}")
    pairs = Pairs()
    parts = [
        overview(report),
        threshold(report),
        border(report, pairs),
        clusters(report, pairs),
    ]
    shown = len(pairs)
    while True:
        text = _page(report, parts, pairs.section(shown))
        if len(text.encode()) <= most or not shown:
            return text
        shown //= 2


def _page(report: Report, parts: list[str], pairs: str) -> str:
    body = "".join([*parts, pairs, sources(report.matrix), promises(report, report.left_out)])
    title = f"neardup: {count(report.kept)} of {count(report.read)} kept"
    return frame(title, "Near-duplicates", _LINKS, body, report.numbers(), SLIDER)
