"""The pages for people: ask what is near a text, compare two texts, see the state of the service.

They are forms that work without a script; with it the answer follows what is typed, by sending the
same form and taking the answer's section out of the page that comes back.
"""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import numpy as np

from neardup.errors import NeardupError
from neardup.fingerprinting.explanation import compare, explain
from neardup.pipeline.evidence.pair_texts import pair_of_texts
from neardup.pipeline.report import PairShown
from neardup.pipeline.report.frame import count, frame, inert, rows, size, table
from neardup.pipeline.report.page import card
from neardup.service.problem_details import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.explanation import Comparison, Explanation
    from neardup.index import DurableIndex
    from neardup.service.problem_details import Problem
    from neardup.service.service_metrics import Metrics

__all__ = ["ask_page", "compare_page", "fields_of", "problem_page"]

PAGES: Final = (("./", "Ask"), ("./compare", "Compare"), ("./#state", "State"))
MATCHES: Final = 20
FEATURES: Final = 50
MOST_CHARACTERS: Final = 200_000
"""The most characters of a text on a page: more would take long to draw, and `/v1` has no such
limit."""
FIRST, SECOND = "The cat sat on the mat and looked at the dog.", "The cat sat on the mat, looking."


def fields_of(body: bytes) -> dict[str, str]:
    """The fields of a form that a browser sent, with line ends as most files have them."""
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=9)
    except ValueError:
        return {}
    return {name: values[0].replace("\r\n", "\n") for name, values in fields.items()}


def ask_page(index: DurableIndex, metrics: Metrics, text: str | None) -> bytes:
    """The page about a text: the near documents, its fingerprint, and the state of the service."""
    result = ""
    if text is not None and index.recipe is not None:
        result = _shortened(text) or _answer(index, text)
    form = _form("./", "Ask", (("text", "A text, or a file dropped here", text or ""),))
    if index.recipe is None:
        form = "<p>This index was made without a recipe: it has fingerprints of other programs.</p>"
    body = (
        f'<section id="ask"><h2>Is it here already?</h2>{form}</section>'
        f'<div id="result" aria-live="polite">{result}</div>{_state(index, metrics)}'
    )
    return _page("Ask", body)


def compare_page(index: DurableIndex, first: str | None, second: str | None) -> bytes:
    """The page about two texts: their similarity, and how their fingerprints show it."""
    one, two = FIRST if first is None else first, SECOND if second is None else second
    fields = (("first", "One text", one), ("second", "Another", two))
    result = _shortened(one) or _shortened(two)
    if not result:
        try:
            result = compared(compare(one, two, index.recipe))
        except NeardupError as error:
            result = f'<p class="warn">{inert(str(error))}</p>'
    body = (
        '<section id="compare"><h2>Compare two texts</h2>'
        f"{_form('./compare', 'Compare', fields)}</section>"
        f'<div id="result" aria-live="polite">{result}</div>'
    )
    return _page("Compare", body)


def problem_page(problem: Problem) -> bytes:
    """The page of a refused request: why, and what to do."""
    kind = KINDS[problem.name]
    what = f"{problem.detail[:1].upper()}{problem.detail[1:].rstrip('.')}."
    remedy = re.sub("`([^`]+)`", r"<code>\1</code>", inert(kind.remedy))
    if problem.retry_after is not None:  # `Retry-After` is for programs
        seconds = count(problem.retry_after)
        remedy = f"Load this page again in {seconds} s."
    body = (
        f'<section id="problem"><h2>{inert(kind.title)}</h2><p>{inert(what)}</p>'
        f'<p class="next">{remedy}</p><p>The pages of this service are <a href="/">Ask</a> and'
        ' <a href="/compare">Compare</a>.</p></section>'
    )
    return _page(kind.title, body, pages=(("/", "Ask"), ("/compare", "Compare")))


def _page(heading: str, body: str, pages: Sequence[tuple[str, str]] = PAGES) -> bytes:
    title = f"neardup: {heading[:1].lower()}{heading[1:]}"
    return frame(
        title, "neardup", (), body, {}, SCRIPT, style=STYLE, pages=pages, forms=True
    ).encode("utf-8", "replace")


def _form(action: str, title: str, fields: Sequence[tuple[str, str, str]]) -> str:
    areas = "".join(
        f'<label>{label}<textarea name="{name}" rows="6" dir="auto">\n{inert(text)}</textarea>'
        "</label>"
        for name, label, text in fields
    )
    return (
        f'<form id="live" method="post" action="{action}"><div class="areas">{areas}</div>'
        f"<button>{title}</button></form>"
    )


def _shortened(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return ""
    most = count(MOST_CHARACTERS)
    return f'<p class="warn">Pages take texts of up to {most} characters; POST /v1/query more.</p>'


def _answer(index: DurableIndex, text: str) -> str:
    try:
        hits = index.query(text, limit=MATCHES, committed=True)
        explained = explain(text, recipe=index.recipe, show=FEATURES)
    except NeardupError as error:
        return f'<p class="warn">{inert(str(error))}</p>'
    if not explained.features:
        near = "<p>It has no tokens, so nothing is near it.</p>"
    elif not hits:
        near = f"<p>Nothing is: it would be new. Asked for: {_question(index)}.</p>"
    else:
        cards = "".join(_card(index, text, hit, number) for number, hit in enumerate(hits, 1))
        more = f" The closest {len(hits)} are shown." if hits.total > len(hits) else ""
        near = f"<p><b>{count(hits.total)}</b> near it ({_question(index)}).{more}</p>{cards}"
    return f'<section id="near"><h2>Near it</h2>{near}</section>{_explanation_section(explained)}'


def _question(index: DurableIndex) -> str:
    if index.by == "similarity":
        return f"{index.measure} similarity of {index.similarity:g} or more"
    return f"up to {index.distance} of {index.bits} bits"


def _card(index: DurableIndex, text: str, hit: tuple[Any, float], number: int) -> str:
    """The text next to a stored document: words if texts are stored, otherwise features or bits."""
    identity, closeness = hit
    names, recipe = ("this text", str(identity)), index.recipe
    assert recipe is not None  # noqa: S101  # a text was asked about
    try:
        content = index.content(identity)
        if isinstance(content, str):
            similarity = closeness if index.by == "similarity" else None
            pair = pair_of_texts(names, (text, content), recipe, similarity=similarity)
            return card(pair, number)
        if index.by == "similarity":
            query, stored = index.sets_of([text]).of(0), index.features(identity)
            shared = int(np.intersect1d(query, stored).size)
            only = query.size - shared, stored.size - shared
            pair = PairShown(names, closeness, None, shared, only, None, "", _NOT_KEPT)
            return card(pair, number)
        codes = index.fingerprints_of([text]), index.fingerprints_by_id([identity])
    except KeyError:  # removed after the query
        return ""
    mine, its = (code[0].tobytes()[::-1].hex() for code in codes)
    cells = _cells(mine, its, index.bits)
    apart = f"<b>{closeness}</b> of {index.bits} bits"
    return (
        f'<details class="pair"{" open" * (number == 1)}><summary>{apart} {_name(identity)}'
        f'</summary>{cells}<p class="note">{_NOT_KEPT}</p></details>'
    )


_NOT_KEPT: Final = "The index keeps no texts (--store text does), so no words can be shown."


def _explanation_section(explained: Explanation) -> str:
    """Features, weights and bits of a text."""
    heads = ("feature", "occurs", "weight")
    lines = [
        (f"<bdi>{inert(each.text)}</bdi>", count(each.count), f"{each.weight:g}")
        for each in explained.features[:FEATURES]
    ]
    left_out = len(explained.features) - len(lines)
    more = f'<p class="note">{count(left_out)} more are not shown.</p>' if left_out else ""
    features = f"<details><summary>{count(len(explained.features))} features and their weights"
    features += f"</summary>{table(heads, lines, 'Features')}{more}</details>"
    title = "How its fingerprint is made"
    return f'<section id="made"><h2>{title}</h2>{_bits(explained)}{features}</section>'


def _bits(explained: Explanation) -> str:
    """The bits of a fingerprint: each sum as a bar to the left or right of zero."""
    if not explained.features:
        return ""
    digits = f"<p>Fingerprint <code>{explained.digits}</code></p>"
    if explained.sums is None:
        return digits
    highest = max(map(abs, explained.sums)) or 1
    bars = "".join(
        f'<rect class="{"kept" if value > 0 else "near"}" x="{10 * at + 8 * (at // 8)}" width="8"'
        f' y="{50 - max(value, 0) / highest * 46:.1f}"'
        f' height="{max(abs(value) / highest * 46, 0.8):.1f}"><title>bit {bit}: {value:+g}</title>'
        "</rect>"
        for at, (bit, value) in enumerate(reversed(list(enumerate(explained.sums))))
    )
    width = 10 * explained.bits + 8 * ((explained.bits - 1) // 8)
    return (
        f"{digits}<p>Each feature adds its weight to a sum where its hash has a 1, and takes it"
        " where it has a 0. A bit is 1 where the sum is above zero; bits stand in bytes, the"
        " highest first:</p>"
        f'<svg class="bits" viewBox="0 0 {width} 100" role="img" aria-label="Sums of'
        f' {explained.bits} bits, the highest bit first" preserveAspectRatio="none">{bars}'
        f'<path class="axis" d="M0 50H{width}"/></svg>'
    )


def compared(comparison: Comparison) -> str:
    """The differences of two texts, in bits and in features."""
    facts = [
        ("distance", _or_none(comparison.distance, f"{{}} of {comparison.bits} bits")),
        ("estimated cosine", _or_none(comparison.estimated_cosine, "{:.3f}")),
        ("exact cosine", _or_none(comparison.cosine, "{:.3f}")),
        ("exact Jaccard", _or_none(comparison.jaccard, "{:.3f}")),
        (
            "shared features",
            f"{comparison.shared} of {comparison.features[0]} and {comparison.features[1]}",
        ),
    ]
    first, second = comparison.fingerprints
    if comparison.distance is None or first is None or second is None or comparison.cosine is None:
        drawn = "<p>A text without tokens has no fingerprint.</p>"
    else:
        drawn = f"{_cells(first, second, comparison.bits)}{_expected(comparison)}"
    return f'<section id="compared"><h2>How alike they are</h2>{rows(facts)}{drawn}</section>'


def _or_none(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _cells(first: str, second: str, bits: int) -> str:
    """Two rows of bits, the highest bit first; differing bits are outlined."""
    pairs = list(zip(*(f"{int(digits, 16):0{bits}b}" for digits in (first, second)), strict=True))
    groups = "".join(
        f'<svg viewBox="0 0 {_CELL * len(byte)} 40" aria-hidden="true">{_drawn(byte)}</svg>'
        for byte in (pairs[at : at + 8] for at in range(0, bits, 8))
    )
    label = f"Two fingerprints of {bits} bits; {sum(x != y for x, y in pairs)} differ"
    return (
        f'<div class="cells" role="img" aria-label="{label}">{groups}</div><p class="note"><code>'
        f"{first}</code> and <code>{second}</code>; a filled cell is a 1, an outlined pair"
        " differs. The highest bit is first, eight stand together.</p>"
    )


_CELL: Final = 10


def _drawn(pairs: Sequence[tuple[str, str]]) -> str:
    """Cells in two rows; differing cells are outlined."""
    return "".join(
        f'<rect class="cell{" on" if bit == "1" else ""}{" differs" if x != y else ""}"'
        f' x="{_CELL * at + 1}" y="{top}" width="{_CELL - 2}" height="16"/>'
        for at, (x, y) in enumerate(pairs)
        for top, bit in ((2, x), (22, y))
    )


def _expected(comparison: Comparison) -> str:
    """The distance that a cosine makes likely, and the distance of this pair."""
    bits = comparison.bits

    def point(share: float, deviations: float = 0) -> str:
        away = deviations * math.sqrt(share * (1 - share) / bits)
        return f"{40 + 340 * math.cos(math.pi * share):.1f} {_height(max(0.0, share + away)):.1f}"

    steps = [step / 100 for step in range(51)]
    line = "L".join(point(each) for each in steps)
    band = "L".join([*(point(x, 2) for x in steps), *(point(x, -2) for x in reversed(steps))])
    x = 40 + 340 * max(0.0, comparison.cosine or 0.0)
    y = _height((comparison.distance or 0) / bits)
    ticks = "".join(
        f'<text x="{40 + 340 * at:.0f}" y="196" text-anchor="middle">{at:g}</text>'
        for at in (0, 0.25, 0.5, 0.75, 1)
    ) + "".join(
        f'<text x="34" y="{_height(part) + 4:.0f}" text-anchor="end">{round(part * bits)}</text>'
        for part in (0, 0.25, 0.5)
    )
    return (
        '<figure><svg class="curve" viewBox="0 0 420 230" role="img" aria-label="Distance against'
        ' cosine: what is expected, and this pair">'
        f'<path class="area" d="M{band}Z"/><path class="line" d="M{line}"/>'
        f'<circle class="first" cx="{x:.1f}" cy="{y:.1f}" r="6"/>{ticks}'
        '<text x="210" y="218" text-anchor="middle">cosine of the weights</text>'
        '<text x="4" y="12">bits that differ</text></svg><figcaption>The line is the expected'
        " distance, bits &times; angle / π; 19 of 20 pairs lie in the band. The dot is this pair."
        "</figcaption></figure>"
    )


def _height(share: float) -> float:
    """The y coordinate of a share of differing bits, from 0 to 0.6."""
    return 178 - 158 * min(share, 0.6) / 0.6


def _state(index: DurableIndex, metrics: Metrics) -> str:
    stats = index.stats()
    error = stats["last_background_error"]
    facts = [
        ("documents", count(len(index))),
        ("on disk", f"{size(stats['bytes_on_disk'])}, {size(stats['free_disk_bytes'])} free"),
        ("segments", f"{len(stats['segments'])}{', merging now' if stats['merging'] else ''}"),
        ("taken in the last minute", f"{metrics.rate():.1f} documents a second"),
        ("last error", "none" if error is None else str(error)),
    ]
    recent = list(metrics.recent())
    heads = ("when", "document", "near")
    lines = [
        (time.strftime("%H:%M:%S", time.gmtime(when)), _name(one), _name(two))
        for when, one, two in reversed(recent)
    ]
    shown = table(heads, lines, "Recent duplicates") if lines else "<p>None yet.</p>"
    return (
        f'<section id="state"><h2>State</h2>{rows(facts)}<h3>Recent duplicates (UTC)</h3>{shown}'
        '<p class="note"><a href="/v1/index">index</a> · <a href="/metrics">metrics</a> ·'
        ' <a href="/openapi.json">interface</a></p></section>'
    )


def _name(identity: Any) -> str:
    return f"<bdi>{inert(str(identity)[:90])}</bdi>"


STYLE: Final = """
.areas{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:.8rem}
label{display:block;font-size:.88rem;color:var(--soft)}
textarea{display:block;width:100%;font:inherit;color:var(--fg);background:var(--box);
border:1px solid var(--rule);border-radius:6px;padding:.5rem .7rem;resize:vertical}
form button{font:inherit;margin:.6rem 0;padding:.45rem 1.2rem;border:1px solid var(--rule);
border-radius:6px;background:var(--box);color:var(--fg);cursor:pointer}
form button:hover{border-color:var(--link)}
code{overflow-wrap:anywhere}
.bits{display:block;width:100%;height:7rem}
.cells{display:grid;grid-template-columns:repeat(auto-fit,minmax(5rem,1fr));gap:.5rem .7rem}
.cells svg{display:block;width:100%;height:auto}
.cell{fill:var(--box);stroke:var(--rule)}.cell.on{fill:var(--kept)}
.cell.differs{stroke:var(--near);stroke-width:2.5}
"""

SCRIPT: Final = """
(function(){
var form=document.getElementById("live");if(!form)return;
var timer,number=0;
function show(){var mine=++number;
fetch(form.action,{method:"POST",body:new URLSearchParams(new FormData(form))}).then(function(a){
return a.text()}).then(function(text){if(mine!==number)return;
var next=new DOMParser().parseFromString(text,"text/html").getElementById("result");
if(next)document.getElementById("result").replaceChildren.apply(
document.getElementById("result"),Array.from(next.childNodes))}).catch(function(){})}
form.addEventListener("input",function(){clearTimeout(timer);timer=setTimeout(show,250)});
form.querySelectorAll("textarea").forEach(function(area){
area.addEventListener("dragover",function(event){event.preventDefault()});
area.addEventListener("drop",function(event){var file=event.dataTransfer.files[0];if(!file)return;
event.preventDefault();file.text().then(function(text){area.value=text;show()})})})})();
"""
