"""What a case is made of: measurements, each of them a process, and rows that compare them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

OURS, OURS_SPARK = "ours", "ours-spark"
EXTRAS = {OURS: "jieba", OURS_SPARK: "spark-java"}
"""Environments that hold neardup itself, and the extra that each has."""


@dataclass(frozen=True)
class Measurement:
    """One function of one case, run in its own process in one environment.

    Args:
        case: Module in bench/cases.
        function: Its function; it returns a dict with a number under "value", or other keys.
        environment: One of `EXTRAS`, or a name in `environments.PEERS`.
        options: The function's keyword arguments, as JSON so that equal measurements are equal.
    """

    case: str
    function: str
    environment: str
    options: str

    @classmethod
    def of(cls, case: str, function: str, environment: str, **options: Any) -> Measurement:
        """A measurement of keyword arguments."""
        return cls(case, function, environment, json.dumps(options, sort_keys=True))

    def has(self, wanted: dict[str, str]) -> bool:
        """Whether its options are these, as they are written; its function may be asked for too."""
        own = {"function": self.function} | json.loads(self.options)
        return all(str(own.get(name)) in value.split("|") for name, value in wanted.items())


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, what it is compared with, and the target.

    Args:
        name: What is measured, for people.
        ours: The measurement that is judged.
        against: Measurements to compare with; the best one counts. Results with an "exact" that is
            false do not count.
        target: The least `ratio` where there is something to compare with; otherwise the least or
            the greatest figure, as `better` says. None: nothing is promised.
        better: "higher" (a rate) or "lower" (seconds, GiB).
        key: Which value of the measurement's dict is the figure.
        unit: Unit of the figure.
    """

    name: str
    ours: Measurement
    against: tuple[Measurement, ...] = ()
    target: float | None = None
    better: str = "higher"
    key: str = "value"
    unit: str = "MB/s"
