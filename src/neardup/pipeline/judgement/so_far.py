"""The state of a review, as a section of its page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from neardup.pipeline.report.frame import count, table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Estimate", "SoFar", "of_pairs", "of_question"]


@dataclass(frozen=True, slots=True)
class SoFar:
    """The state of a review.

    Attributes:
        section: Of the page.
        numbers: The same for machines.
        progress: How far the review is, above the pair.
    """

    section: str
    numbers: dict[str, Any]
    progress: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """The precision of all pairs at or above a similarity.

    Attributes:
        least: The similarity; None for all pairs.
        pairs: Their number.
        judged: The number answered yes or no.
        share: Estimated precision; None if no pair was judged.
        low: Of its 95% interval.
        high: Of its 95% interval.
    """

    least: float | None
    pairs: int
    judged: int
    share: float | None
    low: float
    high: float


def of_pairs(status: dict[str, Any], estimates: Sequence[Estimate]) -> SoFar:
    """The precision of the pairs of a file, and the thresholds that reach one.

    Args:
        status: As `Review.status`.
        estimates: As `Strata.estimates`.
    """
    judged = status["yes"] + status["no"]
    lead = "Nothing is judged yet."
    if status["precision"] is not None:
        low, high = status["interval"]
        lead = (
            f"Estimated precision of all {count(status['pairs'])} pairs:"
            f" <b>{status['precision']:.1%}</b> ({low:.1%} to {high:.1%})."
        )
    precision = f"{status['wanted']:.0%}"
    likely, surely = status["threshold"], status["threshold_surely"]
    reach = [
        f"No threshold reaches {precision} yet."
        if likely is None
        else f"A threshold of <b>{likely:g}</b> reaches {precision} by the estimate.",
        f"With 95% confidence: {'none yet' if surely is None else f'<b>{surely:g}</b>'}.",
    ]
    lines = [
        [
            "all" if x.least is None else f"{x.least:g}",
            count(x.pairs),
            count(x.judged),
            "-" if x.share is None else f"{x.share:.1%}",
            f"{x.low:.1%} to {x.high:.1%}",
        ]
        for x in estimates
    ]
    heads = ("similarity from", "pairs", "judged from there", "precision", "95% interval")
    section = (
        f'<section id="told"><h2>So far</h2><p>{count(judged)} judged: {count(status["yes"])}'
        f" duplicates, {count(status['no'])} different; {count(status['unsure'])} unsure, which do"
        f" not count.</p><p>{lead}</p><p>{' '.join(reach)}</p>"
        f"{table(heads, lines, 'Precision from each similarity on')}</section>"
    )
    numbers = status | {"estimates": [[x.least, x.share, x.low, x.high] for x in estimates]}
    done, all_of = status["answered"], status["to_answer"]
    return SoFar(section, numbers, _progress(done, all_of, f"{count(all_of)} pairs"))


def of_question(status: dict[str, Any]) -> SoFar:
    """The best question so far, and its certainty.

    Args:
        status: As `QuestionReview.status`.
    """
    judged = status["yes"] + status["no"]
    lines = [
        [title, f"{status[name][0]:.2f}", f"{status[name][1]:.2f} to {status[name][2]:.2f}"]
        for name, title in (("f1", "F1"), ("precision", "precision"), ("recall", "recall"))
    ]
    section = (
        f'<section id="told"><h2>So far: pair {judged + status["unsure"] + 1}, {status["more"]}'
        f"</h2><p>Best question so far: <b>{escape(status['title'])}</b>"
        f" ({escape(status['options'])}).</p><p>{count(judged)} judged: {count(status['yes'])}"
        f" duplicates, {count(status['no'])} different; {count(status['unsure'])} unsure, which do"
        f" not count; {count(status['earlier'])} answers about other documents.</p>"
        f"{table(('', 'estimate', '95% interval'), lines, 'Of the best question so far')}</section>"
    )
    done = judged + status["unsure"]
    left = status["left"]
    return SoFar(section, status, _progress(done, done + left, f"about {count(done + left)}"))


def _progress(done: int, all_of: int, of: str) -> str:
    """A bar, and the same in words."""
    return (
        f'<p class="note" id="progress"><progress max="{max(all_of, 1)}" value="{done}"'
        f' aria-labelledby="progress"></progress> {count(done)} of {of} answered</p>'
    )
