"""What a package index shows: the README without links into the repository, dead there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE: Final = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*")
LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
NOTE: Final = """

The documentation is in the source archive: `docs/README.md`, or as a site by `make docs`.
"""


def standing_alone(readme: str) -> str:
    """The text with pictures left out and links turned into their words; absolute ones stay."""
    return LINK.sub(r"\1", PICTURE.sub("", readme)).rstrip() + NOTE


class Readme(MetadataHookInterface):
    """Gives hatchling the text; `dynamic` of pyproject.toml names the field."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by the build."""
        text = standing_alone((Path(self.root) / "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
