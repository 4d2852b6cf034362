"""Write docs/reference/report.png: the top of the demo's report, as Chromium shows it.

    python tools/report_picture.py

It needs chromium on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import neardup as nd

ROOT: Final = Path(__file__).resolve().parent.parent
CORPUS: Final = ROOT / "src" / "neardup" / "cli" / "commands" / "demo.jsonl.gz"
PICTURE: Final = ROOT / "docs" / "reference" / "report.png"
WIDTH, HEIGHT = 820, 890


def main() -> None:
    """Make the report, and take its picture."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium here: install it first")
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        page = Path(folder, "report.html")
        nd.dedup([CORPUS], Path(folder, "kept.jsonl"), id="id", report=page)
        subprocess.run(  # noqa: S603  # nothing in it comes from outside
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={PICTURE}", page.as_uri()),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
