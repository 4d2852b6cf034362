"""The page is one inert file: the same bytes for the same record, within its size, all numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import UsageError
from neardup.pipeline.report import (
    ClusterGroup,
    ClusterShown,
    CurvePoint,
    Matrix,
    PairShown,
    Report,
    page,
)
from neardup.pipeline.report.drawings import _ticks, amount, lines
from neardup.pipeline.report.frame import json_data, size

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x00\x1b[31m\u2066"
    " <!-- --> &lt; javascript:1 @import url(http://x) \U000e0041"
)
OUTSIDE = re.compile(
    r"""(?:src|href|action|poster|data)\s*=\s*["']?\s*(https?:|//|file:)|@import"""
    r"""|url\(\s*["']?(?!\#|data:)""",
    re.IGNORECASE,
)


def pair(names: tuple[str, str] = ("a", "b"), text: str = "one two ") -> PairShown:
    runs = (("equal", text), ("removed", "three"), ("added", "four"))
    return PairShown(names, 0.8, 3, 8, (1, 1), runs, text, "cut")


def report(**changes: Any) -> Report:
    cluster = ClusterShown("a", 2, 0.8, 0.7, 2, (4, 9), pair())
    plain = Report(
        read=10, kept=7, equal=1, near=1, rejected=1, empty=0, clusters=2, text_bytes=(100, 20),
        threshold=0.8, measure="jaccard", policy="greedy",
        curve=(CurvePoint(0.7, 6, 3), CurvePoint(0.8, 7, 2), CurvePoint(1.0, 8, 1)),
        joined=True, dropped_border=(pair(),), kept_border=(pair(("c", "d")),),
        sizes=((2, 2, 2),), groups=(ClusterGroup("Largest", (cluster,)),), warnings=("careful",),
        matrix=Matrix("inputs", ("x", "y"), (5, 5), ((1, 0), (1, 0))),
        facts=(("found", "all"),), settings=(("recipe", "{}"),), left_out=("nothing",),
        command="neardup dedup x",
    )  # fmt: skip
    return replace(plain, **changes)


DROPPED = tuple((0.8 + i / 1000, f"k{i}", f"d{i}") for i in range(9))


def numbers(html: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="summary">(.*?)</script>', html)
    assert match is not None
    return dict(json.loads(match[1]))


class Tags(HTMLParser):
    """Collects elements and attributes, and checks that they nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag not in {"meta", "input", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_same_record_gives_the_same_small_page() -> None:
    html = page(report())
    assert html == page(report())
    assert len(html.encode()) < 60_000
    assert not OUTSIDE.search(html)


def test_elements_nest_and_links_lead_somewhere() -> None:
    tags = Tags(page(report()))
    assert tags.open == []
    assert len(set(tags.ids)) == len(tags.ids)
    assert {link.removeprefix("#") for link in tags.links} <= set(tags.ids)


def test_the_numbers_are_those_of_the_record() -> None:
    record = numbers(page(report()))
    assert {name: record[name] for name in ("read", "kept", "dropped", "rejected", "clusters")} == {
        "read": 10, "kept": 7, "dropped": 2, "rejected": 1, "clusters": 2
    }  # fmt: skip
    assert record["thresholds"] == [[0.7, 6], [0.8, 7], [1.0, 8]]
    assert "Dropped text: 20 bytes of 100 bytes (20.0%)." in page(report())
    matrix = Matrix("inputs", ("x", "y"), (5, 5), ((1, 1), (1, 0)))
    assert "40.0% of 5" in page(report(matrix=matrix))


def test_a_head_says_what_became_of_both() -> None:
    row = replace(pair(("113", "114")), verdicts=("kept", "dropped"))
    html = page(report(dropped_border=(row,)))
    head = "<small>kept</small> <bdi>113</bdi>, <small>dropped</small> <bdi>114</bdi>"
    assert f"<b>0.800</b> {head}</summary>" in html
    assert f"<td>{head}</td>" in html


def test_the_axis_of_the_kept_begins_at_zero_and_has_ticks() -> None:
    html = page(report(read=2200, rejected=0))
    axis = re.findall(r'text-anchor="end">([\d,]+)</text>', html)
    assert axis == ["0", "500", "1,000", "1,500", "2,000"]
    assert re.findall(r'text-anchor="middle">([\d.]+)</text>', html) == [
        "0.70", "0.80", "0.90", "1.00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "axis"),
    [
        (45_000, ["0", "10 k", "20 k", "30 k", "40 k"]),
        (8_900_000, ["0", "2 M", "4 M", "6 M", "8 M"]),
    ],
)
def test_large_numbers_beside_an_axis_are_short(read: int, axis: list[str]) -> None:
    html = page(report(read=read, rejected=0))
    assert re.findall(r'text-anchor="end">([\d,]+(?: [kM])?)</text>', html) == axis


def test_the_border_shows_words_around_the_first_difference() -> None:
    runs = (("equal", "a b c " * 20), ("removed", "old"), ("added", "new"), ("equal", " x y z"))
    html = page(report(dropped_border=(replace(pair(), runs=runs),)))
    assert "c a b c a b c <del>old</del> <ins>new</ins> x y z</span></td>" in html.replace(
        "  ", " "
    )


def test_the_border_shows_whole_words_of_long_texts_and_where_they_were_cut() -> None:
    words = " ".join(f"word{i}" for i in range(100))
    runs = (("equal", f"{words} "), ("removed", words), ("added", "new"), ("equal", f" {words}"))
    html = page(report(dropped_border=(replace(pair(), runs=runs),)))
    word = r"word\d+"
    assert re.search(
        rf'<span dir="auto">… ({word} )+word99 <del>word0( {word})+ …</del> <ins>new</ins>'
        rf" word0( {word})+ …</span></td>",
        html,
    )


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    widths = [re.findall(r'width="([\d.]+)"', amount(number, 40))[0] for number in (40, 20, 10)]
    assert widths == ["100.00", "50.00", "25.00"]


def test_the_heading_names_the_input_and_its_day() -> None:
    html = page(report(inputs=("in/news.jsonl", "b"), changed="3 March 2026"))
    assert "<h2><bdi>news.jsonl</bdi> and 1 more</h2>" in html
    assert "Changed last on 3 March 2026" in html
    assert "<h2>" + "<bdi>" not in page(report())
    assert "a higher <code>--similarity</code>" in html
    assert "What to do next" not in page(report(equal=0, near=0))


def test_all_dropped_are_listed_as_far_as_the_page_may_grow() -> None:
    html = page(report(equal=0, near=9, removed=DROPPED))
    assert "<td><bdi>k8</bdi></td><td><bdi>d8</bdi></td>" in html
    small = page(report(equal=0, near=9, removed=DROPPED), len(html.encode()) - 1)
    assert "<bdi>d3</bdi>" in small
    assert "<bdi>d4</bdi>" not in small
    assert "5 more are at least as similar" in small
    assert 'id="p1"' in small


@given(st.text() | st.just(HOSTILE))
def test_no_text_changes_the_elements_of_the_page(text: str) -> None:
    def with_text(value: str) -> str:
        row = pair((value, f"{value}2"), f"{value} x")
        row = replace(row, fields=((value, value, f"{value}3"), (value, None, None)))
        named = ClusterShown(value, 2, 0.8, 0.7, 2, (4, 9), row)
        return page(
            report(
                dropped_border=(row,),
                groups=(ClusterGroup("Largest", (named,)),),
                warnings=(value,),
                matrix=Matrix(value, (value, value), (5, 5), ((1, 0), (1, 0))),
                settings=(("recipe", value),),
                left_out=(value,),
                command=value or "x",
                inputs=(value or "x",),
                changed=value or "x",
                removed=((0.9, value, value),),
            )
        )

    html, plain = Tags(with_text(text)), Tags(with_text("plain"))
    kept = [name for name in html.names if name != "i"]  # which names active characters
    assert kept == plain.names
    assert set(html.attributes) == set(plain.attributes)
    assert not OUTSIDE.search(with_text(text))


def test_active_characters_are_named() -> None:
    html = page(report(warnings=(HOSTILE,)))
    assert "U+202E" in html
    assert not re.search("[\x00\x1b\u202e\u2066]", html)


def test_a_page_too_large_leaves_pairs_out_and_says_so() -> None:
    many = tuple(pair((f"a{i}", f"b{i}"), "word " * 2000) for i in range(60))
    html = page(report(dropped_border=many), 200_000)
    assert len(html.encode()) <= 200_000
    assert "left out for size" in html
    assert len(page(report(dropped_border=many)).encode()) > 200_000


@pytest.mark.parametrize("most", [0, 5_000_001])
def test_a_size_out_of_range_is_refused(most: int) -> None:
    with pytest.raises(UsageError, match=f"{most:,}"):
        page(report(), most)


def test_a_run_without_anything_has_a_page() -> None:
    empty = report(
        read=0, kept=0, equal=0, near=0, rejected=0, clusters=0, text_bytes=(0, 0), matrix=None,
        curve=(CurvePoint(0.8, 0, 0),), dropped_border=(), kept_border=(), sizes=(), groups=(),
        warnings=(), left_out=(), command=None,
    )  # fmt: skip
    assert numbers(page(empty))["thresholds"] == [[0.8, 0]]


def test_sizes_have_the_largest_unit_that_fits() -> None:
    sizes = [size(nbytes) for nbytes in (0, 999, 1_000, 1_250_000, 10**9, 2_500_000_000)]
    assert sizes == ["0 bytes", "999 bytes", "1.0 kB", "1.2 MB", "1.0 GB", "2.5 GB"]


def test_data_in_a_script_ends_nothing_and_stays_what_it_was() -> None:
    text = json_data({"text": HOSTILE})
    assert not set(text) & set("<>&=@(")
    assert json.loads(text) == {"text": HOSTILE}


def test_cells_of_sources_are_shaded_by_their_share_of_the_highest() -> None:
    matrix = Matrix("inputs", ("x", "y"), (200, 300), ((0, 1), (50, 100)))
    cells = re.findall(r'<span class="q(\d)">(\d+)</span>', page(report(matrix=matrix)))
    assert cells == [("0", "0"), ("1", "1"), ("3", "50"), ("5", "100")]


def test_a_long_value_of_a_field_is_cut_and_others_are_whole() -> None:
    fields = (("note", "short", "x" * 301), ("more", "y" * 300, None))
    shown = page(report(dropped_border=(replace(pair(), fields=fields),)))
    for value in ("short", f"{'x' * 300}…", "y" * 300):
        assert f"<bdi>{value}</bdi>" in shown
    assert "<small>none</small>" in shown


def test_a_cluster_begins_with_its_first_words() -> None:
    cluster = ClusterShown("a", 2, 0.8, 0.7, 2, (4, 9), pair(text="how it began "))
    bare = replace(cluster, pair=None)
    shown = page(report(groups=(ClusterGroup("Largest", (cluster, bare)),)))
    assert shown.count('<br><small dir="auto">how it began three</small>') == 1


def test_the_threshold_has_a_tick_where_there_is_room() -> None:
    assert [at for at, _ in _ticks(0.5, 1, 0.8)] == [0.5, 0.8, 1]
    for own in (0.5, 0.55, 0.95, 1):
        assert [at for at, _ in _ticks(0.5, 1, own)] == [0.5, 1]


def test_lines_go_from_axis_to_axis() -> None:
    drawn = lines([("one", [(0.5, 0.0), (0.75, 1.0), (1.0, 0.5)])], "found", "similarity", own=0.75)
    axes = re.findall(r'class="axis" x1="(\d+)" x2="(\d+)" y1="([\d.]+)"', drawn)
    (left, right, top), (_, _, middle), (_, _, bottom) = [map(float, each) for each in axes]
    centre = (left + right) / 2
    path = re.search(r'd="M([^"]+)"', drawn)
    assert path is not None
    points = [tuple(map(float, point.split())) for point in path[1].split("L")]
    assert points == [(left, bottom), (centre, top), (right, middle)]
    assert f'class="own" x1="{centre:.1f}"' in drawn
