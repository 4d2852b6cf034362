"""Pages that a tool makes of the service are as it makes them now."""

from __future__ import annotations

import importlib.util

import pytest

from suite import ROOT


@pytest.mark.parametrize("name", ["problem_pages", "lesson_page"])
def test_the_page_is_fresh(name: str) -> None:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.text()
