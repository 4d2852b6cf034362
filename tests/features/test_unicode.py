"""The Unicode tables against unicodedata of the same version."""

from __future__ import annotations

import bisect
import importlib.resources
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings

import naive
from neardup.errors import RecipeError
from neardup.features.choices import NORMAL_FORMS, UNICODE_VERSION
from neardup.features.unicode import (
    CLASS_SHIFT,
    CODE_POINT_MASK,
    EXTEND,
    IGNORED,
    MULTI,
    OTHER,
    SLOW,
    SPACE,
    UNSPACED,
    WORD,
    UnicodeTables,
    tables,
)
from strategies import normalisation_texts, texts
from suite import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LEADING, VOWEL, FINAL, SYLLABLE = 0x1100, 0x1161, 0x11A7, 0xAC00
VOWELS, FINALS, SYLLABLES = 21, 28, 11172


def look_up(index: NDArray[Any], blocks: NDArray[Any], c: int) -> int:
    return int(blocks[int(index[c >> 8]) * 256 + (c & 255)])


def results(index: NDArray[Any], blocks: NDArray[Any], pool: NDArray[Any], c: int) -> list[int]:
    """What one entry says: class << 24 | code point of each result."""
    entry = look_up(index, blocks, c)
    to = entry & CODE_POINT_MASK
    if entry & MULTI:
        return [int(x) for x in pool[to + 1 : to + 1 + int(pool[to])]]
    return [(entry >> CLASS_SHIFT & 7) << CLASS_SHIFT | (to or c)]


def decompose(table: UnicodeTables, c: int) -> list[int]:
    if SYLLABLE <= c < SYLLABLE + SYLLABLES:
        rest, final = divmod(c - SYLLABLE, FINALS)
        leading, vowel = divmod(rest, VOWELS)
        return [LEADING + leading, VOWEL + vowel] + [FINAL + final] * (final > 0)
    offset = look_up(table.dindex, table.dblocks, c)
    if not offset:
        return [c]
    return [int(x) for x in table.dpool[offset + 1 : offset + 1 + int(table.dpool[offset])]]


def compose_pair(table: UnicodeTables, first: int, second: int) -> int | None:
    if 0 <= first - LEADING < 19 and 0 <= second - VOWEL < VOWELS:
        return SYLLABLE + ((first - LEADING) * VOWELS + second - VOWEL) * FINALS
    syllable = first - SYLLABLE
    if 0 <= syllable < SYLLABLES and syllable % FINALS == 0 and 0 < second - FINAL < FINALS:
        return first + second - FINAL
    key = np.uint64(first << 32 | second)
    at = bisect.bisect_left(table.comp_keys, key)
    is_there = at < len(table.comp_keys) and table.comp_keys[at] == key
    return int(table.comp_values[at]) if is_there else None


def normalise_segment(table: UnicodeTables, segment: list[int]) -> list[int]:
    """Decompose, order and compose by the tables alone."""

    def combining(c: int) -> int:
        return look_up(table.cindex, table.cblocks, c)

    ordered: list[int] = []
    for c in (part for whole in segment for part in decompose(table, whole)):
        at = len(ordered)
        while combining(c) and at and combining(ordered[at - 1]) > combining(c):
            at -= 1
        ordered.insert(at, c)
    out: list[int] = []
    starter, last_class = -1, 0
    for c in ordered:
        blocked = starter < 0 or (len(out) - 1 > starter and last_class >= combining(c))
        composed = None if blocked else compose_pair(table, out[starter], c)
        if composed is not None:
            out[starter] = composed
            continue
        out.append(c)
        last_class = combining(c)
        if last_class == 0:
            starter = len(out) - 1
    return out


def segments(table: UnicodeTables, text: str) -> Iterator[list[int]]:
    """The text cut before every character that is not slow."""
    segment: list[int] = []
    for c in map(ord, text):
        if segment and not look_up(table.index, table.blocks, c) & SLOW:
            yield segment
            segment = []
        segment.append(c)
    if segment:
        yield segment


def kernel_like(table: UnicodeTables, text: str) -> str:
    """Normalise and fold as the kernel does: short cut for lone characters, else in full."""
    out: list[int] = []
    for segment in segments(table, text):
        if len(segment) == 1 and not look_up(table.index, table.blocks, segment[0]) & SLOW:
            out += results(table.index, table.blocks, table.pool, segment[0])
        else:
            for c in normalise_segment(table, segment):
                out += results(table.fold_index, table.fold_blocks, table.fold_pool, c)
    return "".join(chr(x & CODE_POINT_MASK) for x in out)


def recipe(normalize: str, casefold: bool) -> naive.Recipe:
    return naive.Recipe(normalize=normalize, casefold=casefold)


@pytest.mark.parametrize("form", ["NFKC", "NFC"])
@given(text=normalisation_texts())
@settings(max_examples=examples(500))
def test_segments_normalised_alone_make_up_the_normalised_text(form: str, text: str) -> None:
    table = tables(form, casefold=False)
    normalised = (c for part in segments(table, text) for c in normalise_segment(table, part))
    assert "".join(map(chr, normalised)) == naive.unicodedata.normalize(form, text)


def predecessors() -> dict[str, list[str]]:
    """For each character, those that it composes with when it comes second."""
    actual: dict[str, list[str]] = {chr(0x1161 + i): ["\u1100"] for i in range(21)}
    actual |= {chr(0x11A7 + i): ["가", "\u1100\u1161"] for i in range(1, 28)}
    for c in map(chr, range(0x110000)):
        parts = naive.unicodedata.decomposition(c).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            actual.setdefault(chr(int(parts[1], 16)), []).append(chr(int(parts[0], 16)))
    return actual


@pytest.mark.parametrize("form", ["NFKC", "NFC"])
def test_every_character_that_combines_or_reorders_backwards_stays_with_its_predecessor(
    form: str,
) -> None:
    table, before = tables(form, casefold=False), predecessors()
    for c in map(chr, range(0x110000)):
        first = naive.unicodedata.normalize(form.replace("C", "D"), c)[0]
        reordered = ["a\u0345"] if naive.unicodedata.combining(first) else []
        for text in (x + c + "\u0301" for x in before.get(first, []) + reordered):
            parts = (normalise_segment(table, part) for part in segments(table, text))
            normalised = "".join(chr(x) for part in parts for x in part)
            assert normalised == naive.unicodedata.normalize(form, text), ascii(text)


@pytest.mark.parametrize("casefold", [True, False])
@pytest.mark.parametrize("form", NORMAL_FORMS)
@given(text=normalisation_texts() | texts())
@settings(max_examples=examples(150))
def test_tables_normalise_and_fold_as_the_oracle(form: str, casefold: bool, text: str) -> None:
    valid = naive.without_surrogates(text)
    expected = naive.normalise(text, recipe(form, casefold))
    assert kernel_like(tables(form, casefold), valid) == expected


@pytest.mark.parametrize("casefold", [True, False])
@pytest.mark.parametrize("form", NORMAL_FORMS)
def test_every_code_point_alone_gives_the_oracles_result_and_classes(
    form: str, casefold: bool
) -> None:
    table = tables(form, casefold)
    classes = {"O": OTHER, "W": WORD, "E": EXTEND, "U": UNSPACED, "I": IGNORED, "S": SPACE}
    uniform = table.index[0x400:0xE00]
    assert not np.any(table.blocks.reshape(-1, 256)[uniform])
    for c in (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000), 0x10FFFF):
        entry = look_up(table.index, table.blocks, c)
        text = chr(c) if entry & SLOW else naive.normalise(chr(c), recipe(form, casefold))
        expected = [classes[naive.character_class(x)] << CLASS_SHIFT | ord(x) for x in text]
        assert results(table.index, table.blocks, table.pool, c) == expected, hex(c)


def test_no_character_is_slow_without_a_normal_form() -> None:
    assert not np.any(tables("none", casefold=True).blocks & SLOW)


def test_ascii_is_never_slow() -> None:
    table = tables("NFKC", casefold=True)
    assert not any(look_up(table.index, table.blocks, c) & SLOW for c in range(128))


@pytest.mark.parametrize("casefold", [True, False])
@pytest.mark.parametrize("form", NORMAL_FORMS)
def test_arrays_are_contiguous_and_of_the_declared_types(form: str, casefold: bool) -> None:
    table = tables(form, casefold)
    assert all(array.flags.c_contiguous for array in table)
    assert [array.dtype.itemsize for array in table] == [2, 4, 4, 2, 4, 4, 2, 4, 4, 2, 1, 8, 4]
    assert np.all(table.comp_keys[:-1] < table.comp_keys[1:])
    for index, blocks in ((table.index, table.blocks), (table.dindex, table.dblocks)):
        assert index.shape == (0x1100,)
        assert len(blocks) == (int(index.max()) + 1) * 256


def test_the_file_is_small() -> None:
    path = importlib.resources.files("neardup") / "features" / "unicode.npz"
    assert len(path.read_bytes()) < 300_000


def test_oracle_and_recipe_pin_one_unicode_version() -> None:
    assert naive.UNICODE_VERSION == UNICODE_VERSION


def test_an_unknown_normal_form_is_refused_by_name() -> None:
    with pytest.raises(RecipeError, match="'NFD'"):
        tables("NFD", casefold=True)
