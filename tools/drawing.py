"""A line, a text and a whole picture as SVG, in the colours that all figures of the pages have."""

from __future__ import annotations

from typing import Final

INK: Final = "#37474f"
PALE: Final = "#eceff1"
GREEN: Final = "#1b7f5b"
RED: Final = "#b3413a"
AMBER: Final = "#b97a00"
VIOLET: Final = "#6a4fa3"


def text(
    x: float, y: float, text: str, anchor: str = "middle", colour: str = INK, size: int = 14
) -> str:
    """A text at a point; `anchor` is which end of it stands there."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
        f' font-size="{size}">{text}</text>'
    )


def line(x: float, y: float, to_x: float, to_y: float, colour: str, width: int = 2) -> str:
    """A straight line."""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"'
        f' stroke-width="{width}"/>'
    )


def svg(width: int, height: float, parts: list[str], title: str) -> str:
    """A picture of these parts on white, so that it reads the same in the dark."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}"'
        f' width="{width}" height="{height:.0f}" font-family="system-ui, sans-serif">\n'
        f'<title>{title}</title>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )
