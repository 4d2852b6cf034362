"""Lines and paragraphs against the oracle: where they stand, and which are equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from neardup.features.passages import UNITS, cut_stretches, unit_hashes, unit_places
from neardup.fingerprinting.recipe import Recipe
from suite import EXAMPLES

BREAKS = ["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\f", "\n\f", "\v", "\x85", "\u2028", "\u2029"]
WORDS = [
    "one",
    "ONE",
    "two",
    "\uff34wo",
    " ",
    "\t",
    "\u3000",
    "\u200b",
    "é",
    "e\u0301",
    "$5",
    "你好",
]
TEXTS = st.lists(st.sampled_from(BREAKS + WORDS), max_size=24).map("".join)


def units_of(text: str, unit: str) -> list[tuple[int, int]]:
    data = text.encode()
    return [(len(data[:a].decode()), len(data[:b].decode())) for a, b in unit_places(data, unit)]


@given(TEXTS)
@example("".join(f"one{mark}two" for mark in BREAKS))
@pytest.mark.parametrize("unit", UNITS)
def test_units_stand_where_the_oracle_says(unit: str, text: str) -> None:
    assert units_of(text, unit) == naive.text_units(text, unit)


@pytest.mark.parametrize("unit", UNITS)
def test_only_white_space_makes_a_line_blank(unit: str) -> None:
    for cp in sorted({cp + step for cp in naive.WHITE_SPACE for step in (-1, 0, 1)}):
        text = f"one\n{chr(cp)}\ntwo"
        assert units_of(text, unit) == naive.text_units(text, unit), hex(cp)


@given(st.integers(1, 3), st.lists(TEXTS, max_size=6))
@pytest.mark.parametrize("unit", UNITS)
def test_units_have_one_hash_where_their_normalised_texts_are_equal(
    unit: str, least: int, texts: list[str]
) -> None:
    rows = unit_hashes(pa.array(texts, pa.large_string()), unit, least, Recipe(), 2)
    expected = []
    for row, text in enumerate(texts):
        for number, (begin, end) in enumerate(naive.text_units(text, unit)):
            part = text[begin:end]
            if len(naive.tokens(part, naive.Recipe())) >= least:
                key = "".join(naive.tokens(part, naive.Recipe(tokens="chars")))
                expected.append((key, row, number, len(part.encode())))
    assert rows[:, 2:].tolist() == [list(each[1:]) for each in expected]
    keys = {each[0] for each in expected}
    pairs = {(each[0], *row[:2]) for each, row in zip(expected, rows.tolist(), strict=True)}
    assert len({pair[1:] for pair in pairs}) == len(pairs) == len(keys)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=6), st.data())
def test_what_is_cut_leaves_what_the_oracle_leaves(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    edges = np.cumsum([[gap, size] for gap, size in sizes]).reshape(-1, 2).tolist()
    places = [(a, b) for a, b in edges]
    cut = data.draw(st.sets(st.sampled_from(range(len(places))))) if places else set()
    gone = {at for a, b in cut_stretches(places, cut) for at in range(a, b)}
    assert all(set(range(*places[n])) <= gone for n in cut)
    assert not any(set(range(*places[n])) & gone for n in range(len(places)) if n not in cut)
