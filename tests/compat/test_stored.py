"""Fingerprints stored elsewhere come back bit for bit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
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


def test_entries_of_a_wide_index_are_read_with_its_width() -> None:
    objs = [("a", Simhash("one two three", f=128))]
    index = SimhashIndex(objs, f=128)
    entries = [entry for bucket in index.bucket.values() for entry in bucket]
    values, _ = stored.from_index_entries(entries, 128)
    assert stored.to_decimal(values) == [str(objs[0][1].value)]


def test_lines_of_a_file_and_arrow_columns_are_read() -> None:
    assert stored.from_decimal(["5\n", " -1\r\n", b"7"]).tolist() == [5, 2**64 - 1, 7]  # type: ignore[list-item]
    assert stored.from_hex(pa.array(["ff", "0XFE"])).tolist() == [255, 254]
    assert stored.from_signed(pa.array([-1, 5])).tolist() == [2**64 - 1, 5]
    assert stored.from_signed(np.array([-1, 5], object)).tolist() == [2**64 - 1, 5]
    assert stored.from_signed([]).tolist() == stored.from_bytes(b"").tolist() == []


@pytest.mark.parametrize("value", ["x", "", "-", "1.0", "1e5", "1_000", "１２", None, 12, True])  # noqa: RUF001
def test_what_is_no_number_is_named_with_its_row(value: Any) -> None:
    message = f"row 1: {re.escape(repr(value))} is not a number of base 10"
    with pytest.raises(DataError, match=message):
        stored.from_decimal(["1", value])


@pytest.mark.parametrize("value", ["0xfg", "0x", "f_f", "g", 255, None])
def test_what_is_no_hexadecimal_number_is_named_with_its_row(value: Any) -> None:
    message = f"row 1: {re.escape(repr(value))} is not a number of base 16"
    with pytest.raises(DataError, match=message):
        stored.from_hex(["1", value])


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: stored.from_decimal([str(2**64)]), "row 0: '18446744073709551616' does not fit"),
        (lambda: stored.from_decimal([str(-(2**63) - 1)]), "row 0: .* does not fit 64 bits"),
        (lambda: stored.from_decimal(["9" * 5000]), "row 0: '999.* does not fit 64 bits"),
        (lambda: stored.from_decimal(["256"], 8), "row 0: '256' does not fit 8 bits"),
        (lambda: stored.from_hex(["1" * 17]), "row 0: '1{17}' does not fit 64 bits"),
        (lambda: stored.from_bytes(b"1234567"), "7 bytes are not a multiple of the width"),
        (lambda: stored.from_signed([1, 1.5]), "row 0: 1.0 is not a signed 64-bit integer"),
        (lambda: stored.from_signed([1, None]), "row 1: None is not a signed 64-bit integer"),
        (lambda: stored.from_signed([-(2**63) - 1]), "row 0: -9223372036854775809 is not a signed"),
        (lambda: stored.from_signed([True]), "row 0: True is not a signed"),
        (lambda: stored.from_signed([2**63]), "dtype uint64, which has no sign"),
        (lambda: stored.from_index_entries(["ff"]), "'ff': should be the value in hexadecimal,id"),
        (lambda: stored.from_index_entries([5]), "index entry 5: should be"),  # type: ignore[list-item]
        (lambda: stored.from_index_entries(["zz,a"]), "'zz' is not a number of base 16"),
    ],
)
def test_stored_data_that_cannot_be_read_is_named(read: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stored.from_decimal("123"), "'123' is one value: pass a list"),
        (lambda: stored.from_index_entries("ff,a"), "'ff,a' is one value: pass a list"),
        (lambda: stored.from_hex(None), "None is one value"),  # type: ignore[arg-type]
        (lambda: stored.from_hex(["1"], 0), "bits is 0: use a whole number from 1"),
        (lambda: stored.from_decimal(["1"], "64"), "bits is '64': use a whole"),  # type: ignore[arg-type]
        (lambda: stored.from_bytes(b"", order="middle"), "order is 'middle': use big or little"),
        (lambda: stored.from_bytes(b"", 12), "bits is 12: use a multiple of 8"),
        (lambda: stored.from_bytes(b"", 64.0), "bits is 64.0: use a whole"),  # type: ignore[arg-type]
        (lambda: stored.from_bytes("abc"), "data is str: pass bytes"),
        (lambda: stored.from_bytes([1, 2]), "data is list: pass bytes"),
        (lambda: stored.to_hex(5), "0 dimensions"),
        (lambda: stored.to_decimal(["a"]), "dtype <U1: use uint64"),
        (lambda: stored.to_signed([-1]), "dtype int64: use uint64; from_signed"),
        (lambda: stored.to_decimal([1.5]), "dtype float64"),
        (lambda: stored.to_bytes([300], 8), "row 0: 0x12c does not fit 8 bits"),
        (lambda: stored.to_bytes(wide([1, 2**64]), 64), "row 1: 0x1.* does not fit 64 bits"),
        (lambda: stored.to_bytes([1], 128), "bits is 128: the fingerprints have 64"),
        (lambda: stored.to_hex(nd.fingerprints(["a", ""])), "row 1 has no fingerprint"),
    ],
)
def test_what_cannot_be_converted_is_refused(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()
