"""The pages of a review: a pair with its buttons, and the end page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.pipeline.report.frame import frame
from neardup.pipeline.report.page import card

if TYPE_CHECKING:
    from neardup.pipeline.judgement.so_far import SoFar
    from neardup.pipeline.report import PairShown

__all__ = ["end_page", "pair_page"]

_KEYS: Final = """
addEventListener("keydown",function(event){
if(event.ctrlKey||event.metaKey||event.altKey||event.repeat)return;
var name={y:"yes",n:"no",u:"unsure",b:"back",Backspace:"back"}[event.key];
var button=name&&document.getElementById(name);if(button){event.preventDefault();button.click()}});
"""
_ONE_ROW: Final = ".answers form{display:contents}"
"""The style by which the buttons of both forms wrap as one row, so that a phone shows two lines of
them, not three."""
_BUTTONS: Final = (("yes", "y", "Duplicates"), ("no", "n", "Different"), ("unsure", "u", "Unsure"))


def pair_page(
    pair: PairShown,
    number: int,
    before: int | None,
    answer: str | None,
    so_far: SoFar,
    *,
    was_answered: bool = False,
) -> bytes:
    """The page of one pair.

    Args:
        pair: It.
        number: Its own.
        before: The number of the pair that Back leads to, if there is one.
        answer: The earlier answer to the pair.
        so_far: What the answers tell.
        was_answered: Whether another reviewer answered the pair before this answer arrived.
    """
    buttons = "".join(
        f'<button id="{name}" name="answer" value="{name}"'
        f"{' class=said' if answer == name else ''}>{title} <kbd>{key}</kbd></button>"
        for name, key, title in _BUTTONS
    )
    back = ""
    if before is not None:
        back = (
            f'<form method="get" action="./"><input type="hidden" name="pair" value="{before}">'
            '<button id="back">Back <kbd>b</kbd></button></form>'
        )
    note = ""
    if answer is not None and was_answered:
        note = (
            f'<p class="warn" role="alert">Your answer was not kept: another reviewer answered'
            f" {answer} first. Answering again replaces it.</p>"
        )
    elif answer is not None:
        note = f'<p class="note">You said: {answer}. Answering again replaces it.</p>'
    body = (
        '<section id="judge"><h2>Are these duplicates?</h2><div class="answers">'
        f'<form method="post" action="answer"><input type="hidden" name="pair" value="{number}">'
        f'<input type="hidden" name="before" value="{answer or ""}">{buttons}</form>{back}</div>'
        f"{so_far.progress}{note}{card(pair, 1)}</section>"
    )
    return _page(body, so_far)


def end_page(before: int | None, so_far: SoFar) -> bytes:
    """The page after all pairs were answered."""
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
    return _page(body, so_far)


def _page(body: str, so_far: SoFar) -> bytes:
    links = (("judge", "Pair"), ("told", "So far"))
    return frame(
        "neardup: review",
        "Review",
        links,
        body + so_far.section,
        so_far.numbers,
        _KEYS,
        style=_ONE_ROW,
        forms=True,
    ).encode("utf-8", "replace")
