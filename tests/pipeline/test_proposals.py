"""Bands are proposed where they would be much quicker than the exact search, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.pipeline.run.costs import bands_instead
from neardup.pipeline.run.rule import Rule

LONG, SHORT = np.full(1000, 500), np.full(1000, 40)


def test_a_slow_exact_search_of_long_documents_is_told_of_bands() -> None:
    line = bands_instead(Rule(similarity=0.7), LONG, 20_000, 300.0, 2)
    assert line is not None
    assert line.startswith("the exact search takes about 300 s; --recall 0.99")


@pytest.mark.parametrize(
    ("rule", "sizes", "seconds"),
    [
        (Rule(similarity=0.7), LONG, 9.0),
        (Rule(similarity=0.7), SHORT, 300.0),
        (Rule(similarity=0.7, recall=0.95), LONG, 300.0),
        (Rule(similarity=0.7, measure="containment"), LONG, 300.0),
        (Rule(similarity=0.01), LONG, 300.0),
        (Rule(distance=3), LONG, 300.0),
        (Rule(similarity=0.7), LONG[:0], 300.0),
    ],
)
def test_nothing_is_said_where_bands_do_not_help(
    rule: Rule, sizes: np.ndarray, seconds: float
) -> None:
    assert bands_instead(rule, sizes, 20_000, seconds, 2) is None
