"""The report of a run: a plain record in, one self-contained HTML page out.

`model` is the record, `page` writes its sections in order, `drawings` draws. `frame` has the common
parts of this page and other pages: styles, scripts, and making texts inert.
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
