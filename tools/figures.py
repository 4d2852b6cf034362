"""Draw the figures of the pages: the fold, the angle, the planes, blocks, tables, and bands.

    python tools/figures.py

Every number in them is computed by neardup. tests/house/test_docs.py fails while a figure differs
from what this draws.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Final

import neardup as nd
from drawing import AMBER, GREEN, INK, PALE, RED, VIOLET, line, svg, text

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "design" / "figures"
KEYWORDS: Final = (
    ("美国", "100101", 5),
    ("51区", "101011", 2),
    ("飞碟", "100111", 3),
    ("灰色", "101111", 1),
    ("外星人", "111011", 4),
)
STORED: Final = (
    0b1011_0010_1110_0001,
    0b0100_1101_0001_1110,
    0b1011_0010_1110_0111,
    0b1111_0000_1010_0101,
    0b0011_0010_1100_0001,
    0b1000_0111_0110_1010,
    0b1011_1111_0000_0001,
    0b0110_1001_1100_0011,
)
ASKED: Final = 0b1011_0010_1100_0101
CELL: Final = 34
BANDS: Final = (
    ("TxT360, 9 bands of 13", 9, 13, RED),
    ("NeMo Curator, 20 bands of 13", 20, 13, AMBER),
    ("FineWeb, 14 bands of 8", 14, 8, VIOLET),
)


def main() -> None:
    """Write the figures."""
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in figures().items():
        (FOLDER / name).write_text(drawn, "utf-8")


def figures() -> dict[str, str]:
    """Every figure as SVG, by the name of its file."""
    return {
        "fold.svg": _fold(),
        "angle.svg": _angle(),
        "planes.svg": _planes(),
        "blocks.svg": _blocks((0, 4, 8, 12, 16), "A row within 3 bits has a block that is equal"),
        "tables.svg": _blocks(
            (0, 3, 6, 9, 12, 14, 16), "A row within 3 bits has three of its six blocks equal", 3
        ),
        "bands.svg": _bands(),
    }


def _fold() -> str:
    """Five weighted keywords, their hash bits as votes, the sums, and the bits."""
    parts = [text(20, 24, "keyword", "start"), text(110, 24, "weight")]
    for row, (word, digits, weight) in enumerate(KEYWORDS):
        y = 34 + CELL * row
        parts += [text(20, y + 22, word, "start"), text(110, y + 22, str(weight))]
        for bit, digit in enumerate(digits):
            vote = weight if digit == "1" else -weight
            parts.append(_cell(150 + CELL * bit * 1.4, y, f"{vote:+d}", _colour(vote)))
    y = 34 + CELL * len(KEYWORDS) + 12
    hashes = [(int(digits, 2), weight) for _, digits, weight in KEYWORDS]
    value = nd.simhash(hashes, 6)
    parts += [text(20, y + 22, "sums", "start"), text(20, y + CELL + 22, "fingerprint", "start")]
    for bit in range(6):
        total = sum(w if d[bit] == "1" else -w for _, d, w in KEYWORDS)
        x = 150 + CELL * bit * 1.4
        parts.append(_cell(x, y, str(total), _colour(total), full=True))
        parts.append(_cell(x, y + CELL, str(value >> 5 - bit & 1), INK))
    return svg(470, y + 2 * CELL + 12, parts, "Each keyword votes on each bit with its weight")


def _angle() -> str:
    """Two vectors, their angle, and the shares of planes that part them."""
    one, other = (5.0, 1.0), (2.0, 4.0)
    lengths = [math.hypot(*x) for x in (one, other)]
    cosine = (one[0] * other[0] + one[1] * other[1]) / lengths[0] / lengths[1]
    angle = math.degrees(math.acos(cosine))
    parts = [line(40, 260, 420, 260, PALE), line(40, 260, 40, 20, PALE)]
    for (x, y), name in ((one, "A = (5, 1)"), (other, "B = (2, 4)")):
        parts += [line(40, 260, 40 + 55 * x, 260 - 55 * y, INK, 3)]
        parts += [text(48 + 55 * x, 256 - 55 * y, name, "start")]
    start = [40 + 90 * one[0] / lengths[0], 260 - 90 * one[1] / lengths[0]]
    end = [40 + 90 * other[0] / lengths[1], 260 - 90 * other[1] / lengths[1]]
    parts.append(
        f'<path d="M {start[0]:.1f} {start[1]:.1f} A 90 90 0 0 0 {end[0]:.1f} {end[1]:.1f}"'
        f' fill="none" stroke="{RED}" stroke-width="2"/>'
    )
    parts.append(text(128, 208, f"{angle:.1f}°", "start", RED))
    expected = 64 * angle / 180
    parts += [
        text(40, 290, f"cosine {cosine:.3f}: a random line parts them with probability", "start"),
        text(40, 310, f"{angle:.1f} / 180; of 64 bits {expected:.1f} differ on average", "start"),
    ]
    return svg(470, 324, parts, "The angle of two vectors is the share of bits that differ")


def _planes() -> str:
    """Three lines through the origin cut the plane into six parts, each a pattern of three bits."""
    normals = [(math.cos(a), math.sin(a)) for a in (0.4, 1.5, 2.6)]
    parts = []
    for number, (x, y) in enumerate(normals):
        parts += [line(200 - 170 * -y, 190 + 170 * -x, 200 + 170 * -y, 190 - 170 * -x, INK)]
        parts += [text(200 + 182 * y, 196 + 182 * x, f"line {number + 1}")]
    cuts = sorted((math.atan2(s * x, -s * y)) % math.tau for x, y in normals for s in (1, -1))
    for at, cut in enumerate(cuts):
        after = cuts[(at + 1) % len(cuts)] + (math.tau if at + 1 == len(cuts) else 0)
        middle = (cut + after) / 2
        x, y = math.cos(middle), math.sin(middle)
        bits = "".join("1" if x * a + y * b > 0 else "0" for a, b in normals)
        parts.append(text(200 + 110 * x, 196 - 110 * y, bits, colour=GREEN, size=20))
    return svg(400, 380, parts, "Each line gives one bit: on which side a document lies")


def _blocks(edges: tuple[int, ...], title: str, needed: int | None = None) -> str:
    """Eight rows in blocks; those equal to the question's are filled.

    With `needed`, in how many of the tables, one for each choice of so many blocks, a row is found.
    """
    parts, right = [], 80 + 19 * edges[-1] + 6 * (len(edges) - 2)
    for row, code in enumerate((ASKED, *STORED)):
        y = 16 + 32 * row + (14 if row else 0)
        parts.append(text(16, y + 19, f"row {row - 1}" if row else "asked", "start"))
        equal = 0
        for block, (begin, end) in enumerate(itertools.pairwise(edges)):
            down, mask = edges[-1] - end, (1 << end - begin) - 1
            agrees = bool(row) and (code ^ ASKED) >> down & mask == 0
            equal += agrees
            fill, ink = (GREEN, "#fff") if agrees else (PALE, INK)
            x, wide = 80 + 19 * begin + 6 * block, 19 * (end - begin)
            parts.append(f'<rect x="{x}" y="{y}" width="{wide}" height="26" rx="3" fill="{fill}"/>')
            digits = format(code >> down & mask, f"0{end - begin}b")
            parts.append(text(x + wide / 2, y + 19, digits, colour=ink))
        if row:
            apart = (code ^ ASKED).bit_count()
            parts.append(text(right + 40, y + 19, str(apart), colour=GREEN if apart <= 3 else INK))
            if needed is not None:
                parts.append(text(right + 120, y + 19, str(math.comb(equal, needed))))
    parts.append(text(right + 40, 35, "distance"))
    if needed is not None:
        parts.append(text(right + 120, 35, "in tables"))
    return svg(right + (180 if needed else 90), 330, parts, title)


def _bands() -> str:
    """The probability that MinHash bands find a pair, by its similarity, and the exact search."""

    def place(similarity: float, probability: float) -> tuple[float, float]:
        return 60 + 800 * (similarity - 0.4), 250 - 220 * probability

    parts = []
    for tenth in range(0, 11, 2):
        _, y = place(0, tenth / 10)
        parts += [line(60, y, 540, y, PALE), text(52, y + 5, f"{tenth / 10:.1f}", "end")]
    for tenth in range(4, 11):
        parts.append(text(place(tenth / 10, 0)[0], 272, f"{tenth / 10:.1f}"))
    curves = [(name, colour, _found(bands, rows)) for name, bands, rows, colour in BANDS]
    curves.append(("neardup at 0.8", GREEN, [(0.4, 0.0), (0.8, 0.0), (0.8, 1.0), (1.0, 1.0)]))
    for row, (name, colour, points) in enumerate(curves):
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        )
        parts.append(line(76, 44 + 22 * row, 100, 44 + 22 * row, colour, 4))
        parts.append(text(108, 49 + 22 * row, name, "start"))
    parts.append(text(300, 298, "similarity of a pair"))
    return svg(570, 310, parts, "The probability that a pair is found, by its similarity")


def _found(bands: int, rows: int) -> list[tuple[float, float]]:
    shares = [hundredth / 100 for hundredth in range(40, 101)]
    return [(share, 1 - (1 - share**rows) ** bands) for share in shares]


def _colour(value: float) -> str:
    return GREEN if value > 0 else RED


def _cell(x: float, y: float, label: str, colour: str, *, full: bool = False) -> str:
    fill = colour if full else PALE
    box = f'<rect x="{x:.1f}" y="{y}" width="42" height="{CELL - 6}" rx="3" fill="{fill}"/>'
    return box + text(x + 21, y + 20, label, colour="#fff" if full else colour)


if __name__ == "__main__":
    main()
