"""The pages of the documentation, and their fenced blocks."""

from __future__ import annotations

import re
from typing import Final

from suite import ROOT

DOCS: Final = ROOT / "docs"
BENCH: Final = ROOT / "bench"
PAGES: Final = sorted(
    [
        *(ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"),
        BENCH / "README.md",
        *(BENCH / "results" / "README.md", *DOCS.rglob("*.md")),
    ]
)
FENCE: Final = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block: its language, and its body."""
