"""A review as pages: one pair with four buttons, which keys press; works without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from neardup.pipeline.report.frame import frame
from neardup.pipeline.report.markup import count, table
from neardup.pipeline.report.pair_cards import card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.pipeline.judgement.strata import Estimate
    from neardup.pipeline.report import PairShown

__all__ = ["end_page", "pair_page"]

_KEYS: Final = """
addEventListener("keydown",function(event){
if(event.ctrlKey||event.metaKey||event.altKey||event.repeat)return;
var name={y:"yes",n:"no",u:"unsure",b:"back",Backspace:"back"}[event.key];
var button=name&&document.getElementById(name);if(button){event.preventDefault();button.click()}});
"""
_BUTTONS: Final = (("yes", "y", "Duplicates"), ("no", "n", "Different"), ("unsure", "u", "Unsure"))


def pair_page(
    pair: PairShown,
    number: int,
    before: int | None,
    said: str | None,
    status: dict[str, Any],
    estimates: Sequence[Estimate],
) -> str:
    """One pair and its buttons.

    Args:
        pair: It.
        number: Its own.
        before: The number of the pair that Back leads to, if there is one.
        said: What was answered before.
        status: As `Review.status`.
        estimates: As `Strata.estimates`.
    """
    buttons = "".join(
        f'<button id="{name}" name="answer" value="{name}"{" class=said" if said == name else ""}>'
        f"{title} <kbd>{key}</kbd></button>"
        for name, key, title in _BUTTONS
    )
    back = ""
    if before is not None:
        back = (
            f'<form method="get" action="./"><input type="hidden" name="pair" value="{before}">'
            '<button id="back">Back <kbd>b</kbd></button></form>'
        )
    told = (
        ""
        if said is None
        else f'<p class="note">You said: {said}. Answering again replaces it.</p>'
    )
    body = (
        '<section id="judge"><h2>Are these duplicates?</h2><div class="answers">'
        f'<form method="post" action="answer"><input type="hidden" name="pair" value="{number}">'
        f"{buttons}</form>{back}</div>{told}{card(pair, 1, '')}</section>"
    )
    return _page(body, status, estimates)


def end_page(before: int | None, status: dict[str, Any], estimates: Sequence[Estimate]) -> str:
    """What is shown when every pair was answered."""
    back = ""
    if before is not None:
        back = (
            '<div class="answers"><form method="get" action="./"><input type="hidden" name="pair"'
            f' value="{before}"><button id="back">Back <kbd>b</kbd></button></form></div>'
        )
    body = (
        '<section id="judge"><h2>All pairs are judged</h2><p>Nothing is left to ask. End the'
        f" command with Ctrl-C; your answers are in its file.</p>{back}</section>"
    )
    return _page(body, status, estimates)


def _page(body: str, status: dict[str, Any], estimates: Sequence[Estimate]) -> str:
    links = (("judge", "Pair"), ("told", "So far"))
    numbers = status | {"estimates": [[x.least, x.share, x.low, x.high] for x in estimates]}
    return frame(
        "neardup: review",
        "Review",
        links,
        body + _told(status, estimates),
        numbers,
        _KEYS,
        forms=True,
    )


def _told(status: dict[str, Any], estimates: Sequence[Estimate]) -> str:
    judged = status["yes"] + status["no"]
    lead = "Nothing is judged yet."
    if status["precision"] is not None:
        low, high = status["interval"]
        lead = (
            f"Estimated precision of all {count(status['pairs'])} pairs:"
            f" <b>{status['precision']:.1%}</b> ({low:.1%} to {high:.1%})."
        )
    wanted = f"{status['wanted']:.0%}"
    likely, surely = status["threshold"], status["threshold_surely"]
    reach = [
        f"No threshold reaches {wanted} yet."
        if likely is None
        else f"A threshold of <b>{likely:g}</b> reaches {wanted} by the estimate.",
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
    return (
        f'<section id="told"><h2>So far</h2><p>{count(judged)} judged: {count(status["yes"])}'
        f" duplicates, {count(status['no'])} different; {count(status['unsure'])} unsure, which do"
        f" not count.</p><p>{lead}</p><p>{' '.join(reach)}</p>"
        f"{table(heads, lines, 'Precision from each similarity on')}</section>"
    )
