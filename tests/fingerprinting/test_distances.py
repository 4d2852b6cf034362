"""Distances of ints, arrays and rows equal the oracle's clear-the-lowest-bit loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.errors import UsageError

TOP = 1 << 63
WORDS = st.sampled_from([0, 1, TOP, TOP - 1, TOP + 1, 2**64 - 1]) | st.integers(0, 2**64 - 1)


def rows(words: int, size: int = 4) -> st.SearchStrategy[Any]:
    row = st.lists(WORDS, min_size=words, max_size=words)
    return st.lists(row, min_size=size, max_size=size).map(lambda x: np.array(x, np.uint64))


def as_int(row: Any) -> int:
    return sum(int(word) << 64 * i for i, word in enumerate(row))


@given(st.integers(0, 2**300) | WORDS, st.integers(0, 2**300) | WORDS)
def test_ints_of_any_width(a: int, b: int) -> None:
    assert nd.distance(a, b) == naive.distance(a, b) == nd.distance(a, b, bits=301)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1))
def test_one_dimension_is_one_fingerprint_a_number(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs, np.uint64).T
    expected = [naive.distance(a, b) for a, b in pairs]
    assert nd.distance(left, right).tolist() == expected
    assert nd.distance(left[:, None], right[:, None]).tolist() == expected
    assert nd.distance(left[0], right[0]) == nd.distance(left[0], pairs[0][1]) == expected[0]
    assert nd.distance(left, pairs[0][1]).tolist() == [
        naive.distance(a, pairs[0][1]) for a, _ in pairs
    ]


@given(rows(3), rows(3))
def test_two_dimensions_are_one_fingerprint_a_row(left: Any, right: Any) -> None:
    expected = [naive.distance(as_int(a), as_int(b)) for a, b in zip(left, right, strict=True)]
    assert nd.distance(left, right).tolist() == expected
    assert nd.distance(left, right, bits=192).tolist() == expected
    for a, b, apart in zip(left, right, expected, strict=True):
        assert nd.distance(a, b, bits=192) == apart
        assert nd.distance(a, as_int(b), bits=192) == apart
        assert sum(nd.distance(a, b)) == apart


@given(rows(2, 3), rows(2, 5))
def test_arrays_broadcast(left: Any, right: Any) -> None:
    expected = [[naive.distance(as_int(a), as_int(b)) for b in right] for a in left]
    assert nd.distance(left[:, None], right).tolist() == expected
    assert nd.distance(left, right[0]).tolist() == [row[0] for row in expected]


def test_two_single_fingerprints_give_an_int() -> None:
    values = np.array([[TOP, 1], [0, 0]], np.uint64)
    assert type(nd.distance(values[0], values[1], bits=128)) is int
    assert type(nd.distance(np.uint64(TOP), np.uint64(0))) is int
    assert nd.distance(np.uint64(TOP), 1) == 2


def test_a_document_without_tokens_is_at_no_distance() -> None:
    values = nd.fingerprints(["one two", ""], nd.Recipe(bits=128))
    assert nd.distance(values, values[0]).tolist() == [0, None]
    assert np.ma.is_masked(nd.distance(values[0], values[1], bits=128))


@pytest.mark.parametrize(
    ("a", "b", "bits", "message"),
    [
        (-1, 1, None, r"a fingerprint is -1: a signed 64-bit value is value % 2\*\*64"),
        (np.array([-1]), 1, None, r"dtype int64: use uint64, as array.view\(numpy.uint64\)"),
        (np.array([1.0]), 1, None, "dtype float64: use uint64$"),
        (np.array([1], np.uint64), -1, None, "a fingerprint is -1"),
        (np.array([1], np.uint64), 2**64, None, "pass one of 64 bits"),
        (np.array([1], np.uint64), 1, 128, r"shape \(1,\): 128 bits are 2 words a row"),
        (
            np.array([1, 2], np.uint64),
            np.array([1, 2, 3], np.uint64),
            None,
            r"shapes \(2,\) and \(3,\): use as many of both",
        ),
        (np.uint64(1), np.uint64(1), 64, r"shape \(\): 64 bits are 1 words a row"),
    ],
)
def test_what_is_no_fingerprint_is_refused(a: Any, b: Any, bits: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nd.distance(a, b, bits)
