"""An explanation as HTML, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.explanation.plain import (
    COLUMNS,
    NEIGHBOURS,
    NOTHING_MATCHES,
    further_lines,
    heading,
    number,
    readable,
    sum_label,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.explanation.model import ExplainedPair, ExplainedText

__all__ = ["document_html", "pair_html"]

_STYLE: Final = """<style>
.neardup{font:13px/1.35 system-ui,sans-serif;overflow-x:auto}
.neardup table{border-collapse:collapse;margin:.4em 0;font:inherit}
.neardup th,.neardup td{padding:1px 5px;text-align:right;white-space:nowrap;border:0}
.neardup th:first-child,.neardup td:first-child,.neardup td.names{text-align:left}
.neardup td.bit{padding:0 1px;text-align:center;font:11px monospace;min-width:9px}
.neardup td.one{background:#1b7f5b;color:#fff}
.neardup td.zero{background:#eceff1;color:#607d8b}
.neardup td.sum{padding:2px 0;font:10px monospace;writing-mode:vertical-rl;text-align:right}
.neardup td.up{color:#1b7f5b}
.neardup td.down{color:#b3413a}
.neardup td.tie{color:#607d8b}
.neardup th.bits{text-align:left;padding-left:1px}
.neardup tr.total td{border-top:2px solid #90a4ae}
.neardup td.gap{padding-left:5px}
</style>"""
_SHOWN_PLACES: Final = 3


def document_html(found: ExplainedText) -> str:
    """The table of one document."""
    return f'{_STYLE}<div class="neardup">{_document(found)}</div>'


def pair_html(found: ExplainedPair) -> str:
    """The tables of two documents, and what pulls them apart."""
    parts = [f"<b>A</b> {_document(found.first)}<b>B</b> {_document(found.second)}"]
    if found.distance is None:
        parts.append(f"<p>{NOTHING_MATCHES}</p>")
    else:
        parts.append(
            f"<p>distance <b>{found.distance}</b> of {found.first.bits} bits;"
            f" {found.shared:,} features weigh the same in both and cancel</p>"
        )
        parts += [_pulls(found), _differing(found)]
    return f'{_STYLE}<div class="neardup">{"".join(parts)}</div>'


def _document(found: ExplainedText) -> str:
    shown = found.features[: found.show]
    rows = []
    for feature in shown:
        bits = _bits(feature.hash, found.bits) if found.sums is not None else ""
        name = (
            f'<td title="{escape(feature.text, quote=True)}">{escape(readable(feature.text))}</td>'
        )
        rows.append(
            f"<tr>{name}<td>{feature.count:,}</td><td>{number(feature.weight)}</td>{bits}</tr>"
        )
    if len(found.features) > len(shown):
        rows.append(f"<tr><td>… {len(found.features) - len(shown):,} more</td></tr>")
    if found.sums is not None and found.fingerprint is not None and found.features:
        rows += [_sum_row(found.sums), _last_row(found)]
    count = min(found.bits, COLUMNS)
    bits = f'<th class="bits" colspan="{count}">hash bits {count - 1} to 0</th>'
    columns = f"<th>feature</th><th>count</th><th>weight</th>{bits if found.sums else ''}"
    table = f"<table><tr>{columns}</tr>{''.join(rows)}</table>" if rows else ""
    return f"{escape(heading(found))}{table}{_below(found)}"


def _below(found: ExplainedText) -> str:
    """What follows the table: why it has no bits, the bits beyond it, the fingerprint."""
    lines = [NEIGHBOURS] if found.sums is None else []
    if found.sums is not None and found.features:
        lines += further_lines(found.sums)
    digits = found.digits or "none: there are no tokens"
    return "".join(f"<p>{escape(line)}</p>" for line in lines) + (
        f"<p>fingerprint <code>{digits}</code></p>"
    )


def _bits(value: int, bits: int) -> str:
    cells = []
    for bit in reversed(range(min(bits, COLUMNS))):
        one = value >> bit & 1
        classes = f"bit {'one' if one else 'zero'}{' gap' if bit % 8 == 7 else ''}"
        cells.append(f'<td class="{classes}" title="bit {bit}">{one}</td>')
    return "".join(cells)


def _sum_row(sums: Sequence[float]) -> str:
    cells = []
    for total in reversed(sums[:COLUMNS]):
        shown = number(round(total, _SHOWN_PLACES))
        cells.append(f'<td class="sum {_way(total)}">{shown}</td>')
    return f'<tr class="total"><td>sums</td><td></td><td></td>{"".join(cells)}</tr>'


def _way(total: float) -> str:
    return "up" if total > 0 else "down" if total < 0 else "tie"


def _last_row(found: ExplainedText) -> str:
    bits = _bits(found.fingerprint or 0, found.bits)
    label = escape(sum_label(found))
    return f"<tr><td>{label}</td><td></td><td></td>{bits}</tr>"


def _pulls(found: ExplainedPair) -> str:
    rows = []
    for pull in found.pulls[: found.first.show]:
        first, second = (number(weight) if weight else "-" for weight in pull.weights)
        rows.append(
            f"<tr><td>{escape(readable(pull.text))}</td><td>{first}</td><td>{second}</td>"
            f"<td>{pull.bits} of {found.distance} bits</td><td>{number(pull.total)}</td></tr>"
        )
    head = "<th>feature</th><th>weight in A</th><th>in B</th><th>pulls apart</th><th>by</th>"
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""


def _differing(found: ExplainedPair) -> str:
    rows = []
    for each in found.differing:
        names = ", ".join(f"{escape(readable(text))} {number(pull)}" for text, pull in each.pulls)
        more = f", {each.others:,} more" if each.others else ""
        sums = "".join(f'<td class="{_way(total)}">{number(total)}</td>' for total in each.sums)
        rows.append(f'<tr><td>{each.bit}</td>{sums}<td class="names">{names}{more}</td></tr>')
    head = "<th>bit</th><th>sum in A</th><th>in B</th><th>pulled apart by</th>"
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""
