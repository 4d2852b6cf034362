"""What the page on adding to neardup shows can be added, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from suite import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = (ROOT / "docs" / "contributing" / "extending.md").read_text("utf-8")


def blocks(head: str) -> list[Any]:
    """What stands in the blocks of the page below a pattern, with what the pattern captures."""
    return re.findall(rf"^{head}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patches")
def test_the_patches_of_the_page_apply_and_its_sessions_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path, body in blocks(r"New file: (\S+)\n\n```new"):
        (tmp_path / path).write_text(body, "utf-8")
    patches = "".join(blocks("```diff"))
    apply = ["git", "apply", "-"]
    subprocess.run(apply, cwd=tmp_path, input=patches, text=True, check=True)
    sessions = "\n".join(blocks("```py"))
    (tmp_path / "sessions.txt").write_text(sessions, "utf-8")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "doctest", "sessions.txt"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert not process.returncode, process.stdout + process.stderr
