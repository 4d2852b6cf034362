"""Parts that all pages share: frame, style, and pieces of HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "SCRIPT",
    "SLIDER",
    "STYLE",
    "count",
    "digest",
    "frame",
    "inert",
    "json_data",
    "name_of",
    "rows",
    "size",
    "table",
]

MOST_OF_A_NAME: Final = 90

# Controls, and characters that change the direction or place of other text (Unicode UAX 9, TR 36).
_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_UNITS: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def inert(text: str) -> str:
    """A document's text as HTML: no tag, no attribute, no address; active characters are named.

    Example:
        >>> inert("<b>\u202e=")
        '&lt;b&gt;<i>U+202E</i>&#61;'
    """
    html = escape(text).replace("=", "&#61;").replace("@", "&#64;").replace("(", "&#40;")
    return _ACTIVE.sub(lambda match: f"<i>U+{ord(match[0]):04X}</i>", html)


def name_of(name: str) -> str:
    """The id or address of a document, cut, in a box of its own direction."""
    most = MOST_OF_A_NAME
    text = name if len(name) <= most else f"{name[: most - 20]}…{name[-18:]}"
    return f"<bdi>{inert(text)}</bdi>"


def count(number: int) -> str:
    """A number with separated thousands."""
    return f"{number:,}"


def size(nbytes: int) -> str:
    """Bytes for people.

    Example:
        >>> size(1_250_000)
        '1.2 MB'
    """
    for unit, name in _UNITS:
        if nbytes >= unit:
            return f"{nbytes / unit:,.1f} {name}"
    return f"{nbytes:,} bytes"


def json_data(value: Any) -> str:
    """JSON that is safe in a script element with any text."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    for sign in "<>&=@(":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def rows(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of names and values; both are texts."""
    items = "".join(f"<dt>{inert(name)}</dt><dd>{inert(value)}</dd>" for name, value in pairs)
    return f"<dl>{items}</dl>"


def table(heads: Iterable[str], body: Iterable[Iterable[str]], title: str) -> str:
    """A table that scrolls by itself; cells are HTML, and those that begin with a digit numbers."""
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    lines = "".join(
        "<tr>" + "".join(f"<td{_kind(cell)}>{cell}</td>" for cell in line) + "</tr>"
        for line in body
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{inert(title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _kind(cell: str) -> str:
    return ' class="n"' if cell[:1].isdigit() else ""


STYLE: Final = """
:root{--bg:#fff;--fg:#1c2330;--soft:#5a6475;--rule:#dce1e8;--box:#f5f7fa;--link:#1a5fb4;
--kept:#2f6fb3;--equal:#9aa5b4;--near:#d97d24;--rejected:#9c3d6b;--shared:#5b8f6b;
--del:#ffe0d3;--delfg:#8a2c0d;--ins:#d6efdc;--insfg:#175c2c;--area:#2f6fb322;--warn:#fff4dc}
@media(prefers-color-scheme:dark){:root{--bg:#14181f;--fg:#e4e8ee;--soft:#9da8b8;--rule:#323a47;
--box:#1c222c;--link:#8bbcf5;--kept:#5b9be0;--equal:#697587;--near:#e8964a;--rejected:#c96b99;
--shared:#6fae82;--del:#4a2418;--delfg:#ffc2a8;--ins:#173a23;--insfg:#b5ecc4;--area:#5b9be033;
--warn:#3a2f14}}
*{box-sizing:border-box}
html{scroll-padding-top:3.4rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header{position:sticky;top:0;z-index:1;background:var(--bg);border-bottom:1px solid var(--rule);
display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;align-items:baseline;
padding:.55rem max(1rem,calc(50vw - 30rem))}
h1{font-size:1rem;margin:0;white-space:nowrap}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.88rem;white-space:nowrap}
main{max-width:62rem;margin:0 auto;padding:0 1rem 4rem}
section{padding:1.4rem 0 .4rem}
section+section{border-top:1px solid var(--rule);margin-top:1.4rem}
h2{font-size:1.3rem;margin:0 0 .6rem}
h3{font-size:1.02rem;margin:1.3rem 0 .3rem}
h4{font-size:.82rem;margin:0 0 .3rem;color:var(--soft);overflow-wrap:anywhere}
p{margin:.4rem 0}
p,li,figcaption,summary,.sides,q{overflow-wrap:anywhere}
a{color:var(--link);text-underline-offset:2px}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
main:focus{outline:none}
.skip{position:absolute;left:-99rem}
.skip:focus{position:fixed;left:.5rem;top:.5rem;z-index:2;background:var(--bg);padding:.4rem .8rem}
small,.note{color:var(--soft);font-size:.86rem}
i{font-style:normal;font-size:.75em;padding:0 .25em;border:1px solid var(--rule);border-radius:3px;
color:var(--soft)}
.lead{font-size:1.25rem;line-height:1.35}
.bar{display:block;width:100%;height:1.7rem;border-radius:4px;margin:.6rem 0}
.chart{display:block;width:100%;max-width:40rem;height:auto}
.chart text{font-size:12px;fill:var(--soft)}
.s0,.s1,.s2,.s3,.s4{fill:none;stroke-width:2.2}.s0{stroke:var(--kept)}.s1{stroke:var(--near)}
.s2{stroke:var(--shared)}.s3{stroke:var(--rejected)}.s4{stroke:var(--soft)}
.key.s0{--c:var(--kept)}.key.s1{--c:var(--near)}.key.s2{--c:var(--shared)}
.key.s3{--c:var(--rejected)}.key.s4{--c:var(--soft)}
.amount{display:block;width:100%;min-width:6rem;height:.8rem}
.kept{fill:var(--kept)}.equal{fill:var(--equal)}.near{fill:var(--near)}
.rejected{fill:var(--rejected)}.first{fill:var(--near)}.shared{fill:var(--shared)}
.second{fill:var(--kept)}
.keys{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.6rem;margin:0;padding:0}
.key::before{content:"";display:inline-block;width:.75em;height:.75em;border-radius:2px;
margin-right:.4em;background:var(--c)}
.key.kept,.key.second{--c:var(--kept)}.key.equal{--c:var(--equal)}
.key.near,.key.first{--c:var(--near)}.key.rejected{--c:var(--rejected)}
.key.shared{--c:var(--shared)}
.warn{background:var(--warn);border-left:4px solid var(--near);padding:.1rem 1rem .5rem;
margin:1rem 0;border-radius:4px;overflow-wrap:anywhere}
.warn h3{margin:.6rem 0 .2rem}.warn ul{margin:0;padding-left:1.1rem}
pre{background:var(--box);padding:.7rem .9rem;border-radius:5px;white-space:pre-wrap;
overflow-wrap:anywhere;margin:.4rem 0;font-size:.86rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:.8rem 0;
font-size:.92rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.curve{display:block;width:100%;max-width:36rem;height:auto}
.curve text{font-size:12.5px;fill:var(--soft)}
.area{fill:var(--area)}.line{fill:none;stroke:var(--kept);stroke-width:2.2}
.axis{stroke:var(--rule)}.own{stroke:var(--soft);stroke-dasharray:3 3}
.at{stroke:var(--near);stroke-width:2}
.slide{display:flex;flex-wrap:wrap;gap:.3rem .8rem;align-items:center}
.slide input{flex:1 1 12rem;max-width:24rem;height:2rem;accent-color:var(--near)}
.slide output{flex:1 1 20rem;font-variant-numeric:tabular-nums}
.next{border-left:4px solid var(--kept);padding:.1rem 1rem;margin:1rem 0}
code{font-size:.92em;overflow-wrap:anywhere}.next code{white-space:nowrap}
.filter{display:flex;flex-wrap:wrap;gap:.3rem .7rem;align-items:center}
.filter input{font:inherit;color:var(--fg);background:var(--box);border:1px solid var(--rule);
border-radius:5px;padding:.3rem .6rem;flex:0 1 18rem;min-width:0}
[hidden]{display:none!important}
.wide{overflow-x:auto;margin:.4rem 0;background:
linear-gradient(to right,var(--bg) 40%,transparent) left/2.5rem 100% no-repeat local,
linear-gradient(to left,var(--bg) 40%,transparent) right/2.5rem 100% no-repeat local,
linear-gradient(to right,var(--rule),transparent) left/.8rem 100% no-repeat scroll,
linear-gradient(to left,var(--rule),transparent) right/.8rem 100% no-repeat scroll}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th{text-align:left;font-weight:600;color:var(--soft);white-space:nowrap}
th button{all:unset;cursor:pointer;text-decoration:underline dotted}
th button:focus-visible{outline:3px solid var(--link)}
th,td{padding:.28rem .7rem .28rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
td{overflow-wrap:anywhere;min-width:4.5rem}td:has(bdi){min-width:9rem}
.fields td:has(bdi){min-width:0}
.n{font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
bdi,dd,p,li{unicode-bidi:isolate}
.pair{border:1px solid var(--rule);border-radius:6px;margin:.5rem 0;padding:0 .8rem}
.pair[open]{padding-bottom:.7rem}.pair:target{border-color:var(--near)}
summary{cursor:pointer;padding:.45rem 0;overflow-wrap:anywhere}
figure{margin:.2rem 0 .6rem}
figure .bar{height:.9rem;margin:.2rem 0}
figcaption{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;font-size:.86rem;color:var(--soft)}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
.sides>div{background:var(--box);border-radius:5px;padding:.6rem .8rem;min-width:0}
.sides p{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font-size:.92rem}
del{background:var(--del);color:var(--delfg);text-decoration:line-through;
text-decoration-thickness:1px;border-radius:2px}
ins{background:var(--ins);color:var(--insfg);text-decoration:underline;
text-decoration-thickness:1px;border-radius:2px}
.answers{display:flex;flex-wrap:wrap;gap:.6rem;position:sticky;top:2.7rem;padding:.4rem 0;
background:var(--bg)}
.answers form{display:flex;flex-wrap:wrap;gap:.6rem}
.answers button{font:inherit;padding:.5rem 1rem;border:1px solid var(--rule);border-radius:6px;
background:var(--box);color:var(--fg);cursor:pointer}
.answers button:hover,.answers .said{border-color:var(--link)}
kbd{font:.8em ui-monospace,monospace;border:1px solid var(--rule);border-radius:3px;padding:0 .35em}
.q0{color:var(--soft)}.q1,.q2,.q3,.q4,.q5{display:block;padding:0 .4em;border-radius:3px}
.q1{background:color-mix(in srgb,var(--near) 12%,transparent)}
.q2{background:color-mix(in srgb,var(--near) 24%,transparent)}
.q3{background:color-mix(in srgb,var(--near) 36%,transparent)}
.q4{background:color-mix(in srgb,var(--near) 48%,transparent)}
.q5{background:color-mix(in srgb,var(--near) 60%,transparent)}
@media(max-width:40rem){.sides{grid-template-columns:1fr}dl{grid-template-columns:1fr}
dd{margin-bottom:.4rem}.lead{font-size:1.1rem}header{position:static}
html{scroll-padding-top:.5rem}.answers{top:0}#border thead{display:none}
#border tr{display:grid;grid-template-columns:4rem 1fr;border-bottom:1px solid var(--rule)}
#border td{border:0;min-width:0}#border td:last-child{grid-column:1/-1;padding-top:0}}
@media print{header{position:static}.slide input,nav{display:none}
tr,svg,pre{break-inside:avoid}h2,h3{break-after:avoid}body{font-size:11pt}}
"""

SCRIPT: Final = """
"use strict";(function(){
function open(){var t=location.hash.slice(1),e=t&&document.getElementById(t);
if(e&&e.tagName==="DETAILS"){e.open=true;e.scrollIntoView()}}
addEventListener("hashchange",open);open();
addEventListener("beforeprint",function(){document.querySelectorAll("details:not(.all)").forEach(
function(e){e.open=true})});
function value(row,i){var t=row.cells[i].textContent,n=parseFloat(t.replace(/,/g,""));
return isNaN(n)?t:n}
document.querySelectorAll("table").forEach(function(table){
Array.from(table.tHead.rows[0].cells).forEach(function(head,i){
if(!head.textContent)return;var button=document.createElement("button"),up=true;
button.textContent=head.textContent;head.textContent="";head.appendChild(button);
button.addEventListener("click",function(){var body=table.tBodies[0];
Array.from(body.rows).sort(function(a,b){var x=value(a,i),y=value(b,i);
return (x<y?-1:x>y?1:0)*(up?1:-1)}).forEach(function(row){body.appendChild(row)});
head.setAttribute("aria-sort",up?"ascending":"descending");up=!up})})});
addEventListener("keydown",function(event){
if(event.ctrlKey||event.metaKey||event.altKey||/INPUT|BUTTON/.test(event.target.tagName))return;
var step={j:1,k:-1}[event.key];if(!step)return;
var pairs=Array.from(document.querySelectorAll(".pair:not([hidden])"));
var now=pairs.indexOf(document.activeElement.closest(".pair"));
var next=pairs[now<0?0:now+step];
if(next){next.open=true;next.querySelector("summary").focus({preventScroll:true});
next.scrollIntoView()}})
})();
"""

SLIDER: Final = """
(function(){
var data=JSON.parse(document.getElementById("summary").textContent);
var points=data.thresholds,matched=new Map(data.earlier_match);
var slider=document.getElementById("slider"),reading=document.getElementById("reading");
var at=document.getElementById("at"),own=+slider.dataset.own,all=data.read-data.rejected;
function say(n){return n.toLocaleString("en-US")}
function move(){var i=+slider.value,p=points[i],m=matched.get(p[0]);
var low=points[0][0],high=points[points.length-1][0];
var l=+at.dataset.left,r=+at.dataset.right,x=l+(r-l)*(p[0]-low)/Math.max(1e-9,high-low);
at.setAttribute("x1",x);at.setAttribute("x2",x);
var kind=i===own?"exact: this run":i<own?(data.policy==="greedy"?"at least kept":"at most kept")
:"of this run's drops, those that stay";
reading.textContent=p[0].toFixed(2)+": "+say(p[1])+" kept, "+say(all-p[1])+" dropped ("+kind+")"+
(m===undefined?"":"; "+say(m)+" have an earlier match");
slider.setAttribute("aria-valuetext",reading.textContent)}
slider.hidden=false;slider.addEventListener("input",move);
var filter=document.getElementById("filter"),found=document.getElementById("found");
var list=document.querySelector("#dropped details");
var each=Array.from(document.querySelectorAll(".pair,#dropped tbody tr"));
document.querySelectorAll("[for=filter]").forEach(function(e){e.hidden=false});
filter.hidden=false;filter.addEventListener("input",function(){
var wanted=filter.value.toLowerCase(),pairs=0,rows=0;
each.forEach(function(e){var is=e.textContent.toLowerCase().includes(wanted);e.hidden=!is;
if(is){if(e.tagName==="TR")rows++;else pairs++}});
if(wanted&&list&&rows)list.open=true;
found.textContent=!wanted?"":"pairs: "+say(pairs)+(list?"; all dropped, by name: "+say(rows):"")});
})();
"""


def frame(  # noqa: PLR0913  # the parts of a page
    title: str,
    heading: str,
    links: Sequence[tuple[str, str]],
    body: str,
    numbers: Any,
    script: str = "",
    *,
    style: str = "",
    pages: Sequence[tuple[str, str]] = (),
    forms: bool = False,
) -> str:
    """A page.

    Args:
        title: Of the window; a text.
        heading: Its first words; a text.
        links: (id, title) of sections; those that the body has are shown.
        body: HTML.
        numbers: The numbers of the page, for machines and for the script.
        script: Of this kind of page, in addition to the common one.
        style: Of this kind of page, in addition to the common one.
        pages: (address, title) of other pages of the same server.
        forms: Whether its forms may be sent to its server.
    """
    navigation = "".join(f'<a href="{href}">{name_shown}</a>' for href, name_shown in pages)
    navigation += "".join(
        f'<a href="#{name}">{name_shown}</a>'
        for name, name_shown in links
        if f'id="{name}"' in body
    )
    code, look = SCRIPT + script, STYLE + style
    sends = "form-action 'self'; connect-src 'self'" if forms else "form-action 'none'"
    policy = (
        f"default-src 'none'; base-uri 'none'; {sends};"
        f" style-src '{digest(look)}'; script-src '{digest(code)}'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{inert(title)}</title>'
        f"<style>{look}</style></head>\n"
        '<body><a class="skip" href="#main">Skip to the content</a>'
        f'<header><h1>{inert(heading)}</h1><nav aria-label="Sections">{navigation}</nav></header>\n'
        f'<main id="main" tabindex="-1">{body}</main>\n'
        f'<script type="application/json" id="summary">{json_data(numbers)}</script>\n'
        f"<script>{code}</script></body></html>\n"
    )


def digest(text: str) -> str:
    """The name of an inline style or script in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
