"""Two documents side by side: exact similarities of their features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from neardup.errors import DataError, FileError
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.comparison import compare_files, compare_texts
from strategies import texts
from suite import JIT

if TYPE_CHECKING:
    from pathlib import Path

short = st.lists(st.sampled_from(["to", "be", "or", "not"]), max_size=8).map(" ".join)


@settings(max_examples=50 if JIT else 10)
@given(a=short | texts(), b=short | texts(), ngram=st.integers(1, 3), bits=st.sampled_from([6, 64]))
def test_a_comparison_is_that_of_the_feature_sets(a: str, b: str, ngram: int, bits: int) -> None:
    recipe: Any = Recipe(ngram=ngram, bits=bits)
    found = compare_texts(a, b, recipe)
    left, right = (set(naive.features(naive.tokens(text, recipe), recipe)) for text in (a, b))
    assert found.features == (len(left), len(right))
    assert found.shared == len(left & right)
    if not left or not right:
        assert (
            found.distance is found.estimated_cosine is found.jaccard is found.containment is None
        )
        return
    one, other = (naive.fingerprint(text, recipe) or 0 for text in (a, b))
    assert found.fingerprints == (f"{one:0{-(-bits // 4)}x}", f"{other:0{-(-bits // 4)}x}")
    assert found.distance == naive.distance(one, other)
    assert found.estimated_cosine == pytest.approx(math.cos(math.pi * found.distance / bits))
    assert found.jaccard == pytest.approx(len(left & right) / len(left | right))
    assert found.containment == pytest.approx(len(left & right) / min(len(left), len(right)))


def test_a_document_without_tokens_has_no_fingerprint() -> None:
    found = compare_texts("", "one", Recipe())
    assert found.fingerprints[0] is None
    assert found.fingerprints[1] is not None
    assert found.to_dict()["distance"] is None


def test_files_are_read_as_utf8(tmp_path: Path) -> None:
    left, right = tmp_path / "left.txt", tmp_path / "right.txt"
    left.write_text("żółw i zając", "utf-8")
    right.write_text("ŻÓŁW I ZAJĄC", "utf-8")
    assert compare_files(str(left), str(right)).distance == 0


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    good, bad, missing = tmp_path / "good", tmp_path / "bad", tmp_path / "missing"
    good.write_bytes(b"a")
    bad.write_bytes(b"ab\xff")
    with pytest.raises(DataError, match=r"bad: not UTF-8 at byte 2"):
        compare_files(str(good), str(bad))
    with pytest.raises(FileError, match=r"cannot read .*missing: No such file"):
        compare_files(str(good), str(missing))
    with pytest.raises(FileError, match=r"cannot read .*: Is a directory"):
        compare_files(str(good), str(tmp_path))
