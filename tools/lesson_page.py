"""Write docs/design/two-fingerprints.html: the page /compare of a service, for fixed texts.

    python tools/lesson_page.py

tests/service/test_pages.py fails while the page differs from what this writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import neardup as nd
from neardup.pipeline.report.frame import frame, inert
from neardup.service.pages import STYLE, compared

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "design" / "two-fingerprints.html"
TEXT: Final = (
    "The council approved the plan for a new bridge over the river on Monday evening, after a"
    " debate of three hours in which neighbours spoke about noise, traffic and the old trees on"
    " both banks. Work is to begin in spring and to take two years."
)
HALF: Final = (
    f"{TEXT[:120]} in which nobody said a word against it. The mayor thanked all who had come"
    " and closed the meeting with a song."
)
NOTHING: Final = (
    "Sift the flour into a bowl, add two eggs and a little milk, and stir until the batter is"
    " smooth; then let it rest for an hour before you heat the pan."
)
OTHERS: Final = (
    ("One word is changed", TEXT.replace("spring", "autumn")),
    ("The second half is new", HALF),
    ("They have nothing in common", NOTHING),
)
LEAD: Final = """
<section><h2>Two texts, two fingerprints</h2><p>A fingerprint has 64 bits. Each run of words of a
text votes on each bit, and the majority decides. So a small change of the text turns few votes, and
few bits: the more alike two texts are, the fewer bits differ. The service shows the same for
texts of your own, at <code>/compare</code>.</p></section>
"""


def text() -> str:
    """The page."""
    return frame(
        "neardup: two texts, two fingerprints", "neardup", (), LEAD + "".join(map(_lesson, OTHERS)),
        {}, style=STYLE,
    )  # fmt: skip


def _lesson(case: tuple[str, str]) -> str:
    title, other = case
    sides = "".join(f"<div><p>{inert(each)}</p></div>" for each in (TEXT, other))
    shown = compared(nd.compare(TEXT, other))
    return f'<section><h2>{title}</h2><div class="sides">{sides}</div></section>{shown}'


if __name__ == "__main__":
    PAGE.write_text(text())
