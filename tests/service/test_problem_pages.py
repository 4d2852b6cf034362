"""Each problem has a section of the documentation."""

from __future__ import annotations

import importlib.util

from suite import ROOT


def test_the_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "problem_pages.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.text()
