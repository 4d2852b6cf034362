"""Plots of a result: bars whose numbers are those of the result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import neardup as nd
from neardup.errors import FileError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

WORDS = " ".join(f"word{i}" for i in range(40))
TEXTS = [WORDS, WORDS.upper(), f"{WORDS} more", f"{WORDS} still more", "another one", "a third"]


def bars_of(svg: str) -> dict[str, int]:
    """The names of the bars, and their numbers."""
    texts = [each.text or "" for each in ET.fromstring(svg).iter() if each.tag.endswith("text")]  # noqa: S314 - ours
    return dict(zip(texts[1::2], (int(each.replace(",", "")) for each in texts[2::2]), strict=True))


def test_bars_have_the_numbers_of_the_result() -> None:
    result = nd.dedup(TEXTS)
    bars = bars_of(result.plot().svg)
    assert sum(bars.values()) == len(result.duplicates) == 3
    assert bars["1"] == 1
    assert bars_of(result.plot("sizes").svg) == {"4 to 7": 1}


def test_bars_are_as_long_as_their_numbers() -> None:
    drawn = nd.dedup([*TEXTS, "another one", "a third"]).plot("sizes").svg
    widths = [float(each) for each in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert bars_of(drawn) == {"2": 2, "4 to 7": 1}
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)


def test_nothing_dropped_is_drawn_too(tmp_path: Path) -> None:
    plot = nd.dedup(["one text", "another"]).plot()
    plot.save(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text() == plot.svg == plot._repr_svg_()
    assert sum(bars_of(plot.svg).values()) == 0
    assert bars_of(nd.dedup([]).plot("sizes").svg) == {}


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="kind is 'pie': use similarities or sizes"):
        nd.dedup(["a"]).plot("pie")
    with pytest.raises(UsageError, match="this run compared fingerprints"):
        nd.dedup(["a b c"], distance=3).plot()
    with pytest.raises(FileError, match="cannot write"):
        nd.dedup(["a"]).plot().save(tmp_path / "no" / "plot.svg")
