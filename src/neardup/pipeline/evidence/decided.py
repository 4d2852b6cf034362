"""A run after its decision, as a report looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.reading import Documents
    from neardup.pipeline.run.rule import Choice, Limits, Rule

__all__ = ["Decided"]


@dataclass(frozen=True, slots=True)
class Decided:
    """A run after its decision.

    Args:
        documents: With their features; those of an index, if it has any, follow.
        decision: What was decided about the run's own.
        rule: When documents matched.
        choice: Which were kept.
        limits: What a report may use.
        rejected: Records that could not be used.
        field: What the groups of the documents are; None: there are none.
    """

    documents: Documents
    decision: Decision
    rule: Rule
    choice: Choice
    limits: Limits
    rejected: int
    field: str | None = None
