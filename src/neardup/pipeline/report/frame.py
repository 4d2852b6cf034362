"""What every page is made of: one file, whole without a network or a script."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from neardup.pipeline.report.look import SCRIPT, STYLE
from neardup.pipeline.report.markup import inert, json_data

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["digest", "frame"]


def frame(
    title: str,
    heading: str,
    links: Sequence[tuple[str, str]],
    body: str,
    numbers: Any,
    script: str = "",
    *,
    forms: bool = False,
) -> str:
    """A page.

    Args:
        title: Of the window; a text.
        heading: Its first words; a text.
        links: (id, title) of sections; those that the body has are shown.
        body: HTML.
        numbers: What the page shows, for machines and for the script.
        script: Of this kind of page, beside what all have.
        forms: Whether its forms may send something to where it came from.
    """
    found = "".join(
        f'<a href="#{name}">{name_shown}</a>'
        for name, name_shown in links
        if f'id="{name}"' in body
    )
    code = SCRIPT + script
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action '{'self' if forms else 'none'}';"
        f" style-src '{digest(STYLE)}'; script-src '{digest(code)}'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{inert(title)}</title>'
        f"<style>{STYLE}</style></head>\n"
        f'<body><header><h1>{inert(heading)}</h1><nav aria-label="Sections">{found}</nav></header>'
        f"\n<main>{body}</main>\n"
        f'<script type="application/json" id="summary">{json_data(numbers)}</script>\n'
        f"<script>{code}</script></body></html>\n"
    )


def digest(text: str) -> str:
    """What a Content-Security-Policy calls an inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
