"""Fingerprints stored elsewhere come back bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.compat import stored
from neardup.compat.simhash import Simhash, SimhashIndex
from neardup.errors import DataError, UsageError

values64 = st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**63, 2**64 - 1]), max_size=9)
values128 = st.lists(st.integers(0, 2**128 - 1), max_size=9)


def wide(values: list[int]) -> Any:
    rows = [[value & 2**64 - 1, value >> 64] for value in values]
    return np.array(rows, np.uint64).reshape(-1, 2)


@given(values=values64)
def test_64_bits_survive_each_form(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    assert stored.from_signed(stored.to_signed(array)).tolist() == values
    assert stored.from_decimal(stored.to_decimal(array)).tolist() == values
    assert stored.from_decimal(str(v) for v in stored.to_signed(array)).tolist() == values
    assert stored.from_hex(stored.to_hex(array)).tolist() == values
    assert stored.from_hex(hex(value) for value in values).tolist() == values
    for order in ("big", "little"):
        data = b"".join(value.to_bytes(8, order) for value in values)  # type: ignore[arg-type]
        assert stored.to_bytes(array, order=order) == data
        assert stored.from_bytes(data, order=order).tolist() == values


@given(values=values128)
def test_128_bits_survive_each_form(values: list[int]) -> None:
    array = wide(values)
    assert np.array_equal(stored.from_decimal(stored.to_decimal(array), 128), array)
    assert np.array_equal(stored.from_hex(stored.to_hex(array), 128), array)
    for order in ("big", "little"):
        data = b"".join(value.to_bytes(16, order) for value in values)  # type: ignore[arg-type]
        assert stored.to_bytes(array, 128, order) == data
        assert np.array_equal(stored.from_bytes(data, 128, order), array)


def test_narrow_fingerprints_take_their_own_bytes() -> None:
    assert stored.from_bytes(b"\x01\x02\x03\x04", 32).tolist() == [0x01020304]
    assert stored.from_bytes(b"\x01\x02\x03\x04", 16, "little").tolist() == [0x0201, 0x0403]
    assert stored.to_bytes(np.array([0x01020304], np.uint64), 32) == b"\x01\x02\x03\x04"


def test_bit_63_keeps_its_meaning() -> None:
    assert stored.from_signed([-(2**63)]).tolist() == [2**63]
    assert stored.from_decimal(["-9223372036854775808"]).tolist() == [2**63]
    assert stored.to_hex(np.array([2**63], np.uint64)) == ["8000000000000000"]


def test_entries_of_a_simhash_index_are_read_once_each() -> None:
    objs = [("a", Simhash("one two three")), ("b,c", Simhash("four five six"))]
    index = SimhashIndex(objs)
    entries = [entry for bucket in index.bucket.values() for entry in sorted(bucket)]
    values, ids = stored.from_index_entries(entries)
    assert dict(zip(ids, values.tolist(), strict=True)) == {n: s.value for n, s in objs}


def test_what_cannot_be_read_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match="row 1: 'x' is no number of base 10"):
        stored.from_decimal(["1", "x"])
    with pytest.raises(DataError, match="row 0: '18446744073709551616' does not fit 64 bits"):
        stored.from_decimal([str(2**64)])
    with pytest.raises(DataError, match="row 0: None is no number"):
        stored.from_hex([None])  # type: ignore[list-item]
    with pytest.raises(DataError, match="7 bytes are no whole number"):
        stored.from_bytes(b"1234567")
    with pytest.raises(UsageError, match="order is 'middle': use big or little"):
        stored.from_bytes(b"", order="middle")
    with pytest.raises(UsageError, match="multiple of 8"):
        stored.from_bytes(b"", bits=12)
    with pytest.raises(UsageError, match="signed"):
        stored.from_signed([2**63])
    with pytest.raises(DataError, match="should be the value in hexadecimal,id"):
        stored.from_index_entries(["ff"])
