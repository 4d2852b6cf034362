"""The report of a run: a plain record in, one HTML page out, which needs nothing beside itself.

`model` is the record, `page` writes its sections in order, `drawings` draws. `frame` is what this
page and those of other evidence have in common: their style and scripts, and every text made inert.
"""

from __future__ import annotations

from neardup.pipeline.report.model import (
    ClusterGroup,
    ClusterShown,
    CurvePoint,
    Matrix,
    PairShown,
    Report,
)
from neardup.pipeline.report.page import MOST_BYTES, page

__all__ = [
    "MOST_BYTES",
    "ClusterGroup",
    "ClusterShown",
    "CurvePoint",
    "Matrix",
    "PairShown",
    "Report",
    "page",
]
