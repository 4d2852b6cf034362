"""Two documents side by side: what they share, and the words that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.pipeline.report.drawings import shares
from neardup.pipeline.report.markup import count, inert, name_of

if TYPE_CHECKING:
    from neardup.pipeline.report.model import PairShown

__all__ = ["card", "excerpt"]

MOST_OF_AN_EXCERPT: Final = 60
_TAGS: Final = {"removed": "del", "added": "ins"}


def card(pair: PairShown, number: int, verdict: str) -> str:
    """A pair as an element that opens; its id is "p" and its number; the first is open."""
    names = " · ".join(map(name_of, pair.names))
    state = " open" if number == 1 else ""
    return (
        f'<details class="pair" id="p{number}"{state}><summary><b>{pair.similarity:.3f}</b> {names}'
        f" <small>{verdict}</small></summary>{_waterfall(pair)}{_texts(pair)}</details>"
    )


def excerpt(pair: PairShown) -> str:
    """The first words that only one of the two has, of each, cut."""
    found = []
    for kind, tag in _TAGS.items():
        text = next((text.strip() for run, text in pair.runs or () if run == kind), "")
        most = MOST_OF_AN_EXCERPT
        if text:
            cut = text if len(text) <= most else f"{text[:most]}…"
            found.append(f"<{tag}>{inert(cut)}</{tag}>")
    return " ".join(found)


def _waterfall(pair: PairShown) -> str:
    left, right = pair.only
    whole = left + pair.shared + right
    parts = (("first", left), ("shared", pair.shared), ("second", right))
    label = f"{left} features only in the first, {pair.shared} shared, {right} only in the second"
    return (
        f"<figure>{shares(parts, label)}<figcaption>"
        f'<span class="key first">only left {count(left)}</span>'
        f'<span class="key shared">shared {count(pair.shared)}</span>'
        f'<span class="key second">only right {count(right)}</span>'
        f"<span>{count(pair.shared)} of {count(whole)} features; similarity"
        f" {pair.similarity:.4f}; {count(pair.distance)} bits apart</span>"
        f"</figcaption></figure>"
    )


def _texts(pair: PairShown) -> str:
    note = f'<p class="note">{inert(pair.note)}</p>' if pair.note else ""
    if pair.runs is None:
        return note
    sides = "".join(
        f'<div dir="auto"><h4>{name_of(name)}</h4><p>{_side(pair, other)}</p></div>'
        for name, other in zip(pair.names, ("added", "removed"), strict=True)
    )
    longest = ""
    if pair.longest:
        words = count(len(pair.longest.split()))
        longest = (
            f'<p class="note" dir="auto">Longest shared run, {words} words:'
            f" <q>{inert(pair.longest[:300])}</q>{'…' if len(pair.longest) > 300 else ''}</p>"
        )
    return f'<div class="sides">{sides}</div>{longest}{note}'


def _side(pair: PairShown, other: str) -> str:
    """One text: the runs but for those of the other."""
    written = []
    for kind, text in pair.runs or ():
        if kind == other:
            continue
        tag = _TAGS.get(kind)
        written.append(f"<{tag}>{inert(text)}</{tag}>" if tag else inert(text))
    return "".join(written)
