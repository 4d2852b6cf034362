"""SimHash of vectors equals its definition, in any form, and its bits agree as angles do."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.errors import UsageError
from suite import JIT, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("hashed", "gaussian", "per-bit")
MASK = naive.MASK64
GOLDEN = 0x9E3779B97F4A7C15
WIDTHS = (1, 6, 63, 64, 65, 130, 256)


def nth(state: int, n: int) -> int:
    """splitmix64's n-th output for a state."""
    return naive.splitmix64_mix((state + n * GOLDEN) & MASK)


def coefficient(method: str, dimension: int, bit: int, seed: int) -> int:
    """What a dimension's value is multiplied by: 1 or -1, or a normal number times 4096."""
    h = nth(nth(seed, 1), dimension + 1)
    if method == "gaussian":
        share = nth(h, bit // 4 + 1) >> 16 * (bit % 4) & 0xFFFF
        above = share >= 1 << 15
        middle = (share if above else 65535 - share) + 0.5
        size = 2 * math.floor(NormalDist().inv_cdf(middle / 65536) * 2048) + 1
        return size if above else -size
    if method == "per-bit":
        return 1 if nth(nth(seed, bit + 1), dimension + 1) >> 63 else -1
    word = nth(h, bit // 64) if bit >= 64 else h
    return 1 if word >> bit % 64 & 1 else -1


def units(row: list[float], method: str) -> list[int]:
    """The values as whole numbers, the largest of which takes as many bits as the sums allow."""
    log = (max(1, sum(x != 0 for x in row)) - 1).bit_length()
    bits = min(47 - log, 30) if method == "gaussian" else 61 - log
    exponent = math.frexp(max(map(abs, row)))[1]
    return [round(Fraction(x) * Fraction(2) ** (bits - exponent)) for x in row]


def projected(row: list[float], bits: int, method: str, seed: int) -> int | None:
    """The definition of docs/reference/vectors.md."""
    if not any(row):
        return None
    whole = units(row, method)
    sums = [
        sum(x * coefficient(method, d, j, seed) for d, x in enumerate(whole)) for j in range(bits)
    ]
    return sum(1 << j for j, total in enumerate(sums) if total > 0)


def as_ints(values: Any) -> list[int | None]:
    masked = np.ma.getmaskarray(values)[:, 0]
    rows = np.ma.getdata(values).tolist()
    return [
        None if gone else sum(word << 64 * i for i, word in enumerate(row))
        for row, gone in zip(rows, masked, strict=True)
    ]


NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, 1.7e308, 2.0**53 + 2])
    | st.integers(-9, 9).map(float)
)


@st.composite
def matrices(draw: st.DrawFn) -> list[list[float]]:
    columns = draw(st.integers(1, 12))
    row = st.lists(NUMBERS, min_size=columns, max_size=columns)
    return draw(st.lists(row | st.just([0.0] * columns), min_size=1, max_size=4))


@settings(max_examples=examples(60, 10))
@given(
    matrices(),
    st.sampled_from(WIDTHS),
    st.sampled_from(METHODS),
    st.sampled_from([0, 1, 2**64 - 1]),
)
def test_a_projection_equals_its_definition(
    rows: list[list[float]], bits: int, method: str, seed: int
) -> None:
    codes = nd.project(np.array(rows), bits, method, seed=seed)
    assert codes.shape == (len(rows), -(-bits // 64))
    assert as_ints(codes) == [projected(row, bits, method, seed) for row in rows]


@settings(max_examples=examples(40, 8))
@given(matrices(), st.sampled_from(METHODS), st.sampled_from([6, 64, 130]))
def test_every_form_gives_the_same_bits(rows: list[list[float]], method: str, bits: int) -> None:
    array = np.array(rows)
    expected = nd.project(array, bits, method).tolist()
    for form in forms(rows, array):
        assert nd.project(form, bits, method, workers=1).tolist() == expected


def forms(rows: list[list[float]], array: Any) -> Iterator[Any]:
    size = array.shape[1]
    yield rows
    yield iter([array[:1], rows[1:2], *array[2:]] if len(rows) > 1 else [array])
    for sparse in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        yield sparse(array)
    yield iter([scipy.sparse.csr_array(array)])
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), size)):
        column = pa.array([rows[0], *rows, rows[0]], kind)
        yield column.slice(1, len(rows))
        yield pa.chunked_array([column.slice(1, 1), column.slice(2, len(rows) - 1)])
    yield np.asfortranarray(array)


def test_repeated_and_explicit_zero_entries_change_nothing() -> None:
    data, rows, columns = [1.0, 2.0, 0.0, -5.0, 0.5], [0, 0, 0, 0, 0], [4, 4, 2, 0, 7]
    sparse = scipy.sparse.coo_array((data, (rows, columns)), shape=(1, 9))
    before = sparse.data.copy()
    unsorted = scipy.sparse.csr_array(([0.5, 3.0, -5.0], [7, 4, 0], [0, 3]), shape=(1, 9))
    dense = [-5.0, 0, 0, 0, 3.0, 0, 0, 0.5, 0]
    for method in METHODS:
        expected = nd.project(dense, 128, method).tolist()
        assert nd.project(sparse, 128, method).tolist() == expected
        assert nd.project(unsorted, 128, method).tolist() == expected
    assert sparse.data.tolist() == before.tolist()
    assert unsorted.indices.tolist() == [7, 4, 0]


@pytest.mark.parametrize("method", METHODS)
def test_blocks_and_workers_change_nothing(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 300 if JIT else 7
    array = np.random.default_rng(3).standard_normal((rows, 600 if JIT else 5))
    array[array < 0.3] = 0
    expected = nd.project(array, 64, method, workers=1).tolist()
    assert nd.project(scipy.sparse.csr_array(array), 64, method, workers=3).tolist() == expected
    monkeypatch.setattr("neardup.fingerprinting.projection._BLOCK_NUMBERS", 1500 if JIT else 11)
    for form in (
        array,
        scipy.sparse.csr_array(array),
        (array[i : i + 2] for i in range(0, rows, 2)),
    ):
        assert nd.project(form, 64, method, workers=2).tolist() == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("angle", [0.2, 0.8, math.pi / 2, 2.5])
def test_bits_agree_as_often_as_the_angle_says(method: str, angle: float) -> None:
    bits, dimensions = (20_000, 200) if JIT else (256, 20)
    random = np.random.default_rng(int(angle * 100))
    plane = np.linalg.qr(random.standard_normal((dimensions, 2)))[0]
    pair = np.array([plane[:, 0], math.cos(angle) * plane[:, 0] + math.sin(angle) * plane[:, 1]])
    apart = nd.distance(*nd.project(pair, bits, method), bits=bits)
    expected = angle / math.pi
    assert abs(apart / bits - expected) < 4.5 * math.sqrt(expected * (1 - expected) / bits) + 0.004


@given(st.lists(st.tuples(st.integers(0, 2**140), st.integers(-99, 99)), min_size=1, max_size=9))
def test_given_hashes_fold_as_the_oracle_does(features: list[tuple[int, int]]) -> None:
    hashes, values = zip(*features, strict=True)
    for bits in (3, 64, 130):
        codes = as_ints(nd.project([values], bits, hashes=hashes))
        assert codes == [naive.fold(features, bits, "zero") if any(values) else None]


def test_scaling_by_a_power_of_two_changes_nothing() -> None:
    array = np.random.default_rng(1).standard_normal((4, 9))
    for method in METHODS:
        expected = nd.project(array, method=method).tolist()
        for scale in (2.0**-900, 2.0**900, 0.25):
            assert nd.project(array * scale, method=method).tolist() == expected


def test_low_bits_do_not_depend_on_the_width_and_all_depend_on_the_seed() -> None:
    array = np.random.default_rng(2).standard_normal((5, 9))
    for method in METHODS:
        wide = nd.project(array, 192, method)
        assert (wide[:, :1] == nd.project(array, 64, method)).all()
        assert (nd.project(array, 64, method, seed=1) != wide[:, :1]).all()


def test_integers_booleans_and_narrow_floats_are_numbers() -> None:
    expected = nd.project([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]).tolist()
    rows = [[1, 0, 1], [0, 1, 1]]
    for kind in (np.int8, np.uint64, np.bool_, np.float16, np.float32, object):
        assert nd.project(np.array(rows, kind)).tolist() == expected
    assert nd.project(pa.array(rows, pa.list_(pa.uint8()))).tolist() == expected


def test_vectors_without_a_direction_are_masked() -> None:
    codes = nd.project(np.array([[0.0, 0.0], [0.0, 2.0], [-0.0, 0.0]]), bits=100)
    assert codes.mask.tolist() == [[True] * 2, [False] * 2, [True] * 2]
    column = pa.array([None, [1, 2], [0, 0]], pa.list_(pa.int32(), 2))
    assert nd.project(column).mask.tolist() == [[True], [False], [True]]
    assert nd.project(scipy.sparse.csr_array((2, 10**9))).mask.all()


def test_no_vectors_give_no_rows() -> None:
    for nothing in ([], iter([]), np.zeros((0, 5)), pa.array([], pa.list_(pa.float32()))):
        assert nd.project(nothing, bits=130).shape == (0, 3)


def test_a_stream_is_read_as_it_is_projected() -> None:
    taken = []

    def stream() -> Iterator[Any]:
        for i in range(40):
            taken.append(i)
            yield np.full((2, 3), i + 1.0)
            if i == 30:
                yield [[1.0]]

    with pytest.raises(UsageError, match="row 62 has 1 numbers: the first one has 3"):
        nd.project(stream(), workers=1)
    assert len(taken) == 31


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1, 2], [3]], "row 1 has 1 numbers: the rows before it have 2"),
        ([[1, 2], [3, NAN]], "row 1, column 1 is nan: vectors need finite numbers"),
        (iter([np.ones((3, 2)), [[1, 2], [-INF, 1]]]), "row 4, column 0 is -inf"),
        (scipy.sparse.csr_array([[0, 1], [0, INF]]), "row 1, column 1 is inf"),
        ([[1, "a"]], "row 0, column 1 is 'a': pass numbers"),
        ([1, [2]], r"row 0, column 1 is \[2\]: pass numbers"),
        ([[1, 2], None], "row 1 is NoneType: pass rows of numbers"),
        (np.array([[1j]]), "row 0, column 0 is .*1j.*: pass numbers"),
        (scipy.sparse.csr_array([[1j]]), "dtype complex128: pass real numbers"),
        (pa.array([[1], [1, 2]]), "row 1 has 2 numbers: the rows before it have 1"),
        (pa.array([None, [1.0, None]]), "row 1, column 1 is null"),
        (pa.array([["a"]]), r"Arrow type list<.*string>: pass lists of numbers"),
        (np.zeros((2, 2, 2)), "vectors have 3 dimensions"),
        (iter([1, 2]), "row 0 is the number 1: pass rows of them"),
        ("abc", "vectors are str: pass an array"),
        (3, "vectors are int: pass an array"),
    ],
)
def test_bad_vectors_are_named_by_row_and_column(vectors: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nd.project(vectors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 0}, "bits is 0: use a whole number from 1 to 32,767"),
        ({"bits": True}, "bits is True"),
        ({"method": "hash"}, "method is 'hash': use one of hashed, per-bit, gaussian"),
        ({"method": ["hashed"]}, r"method is \['hashed'\]: use one of"),
        ({"seed": True}, "seed is True"),
        ({"seed": -1}, "seed is -1"),
        ({"hashes": [1]}, "row 0 has 2 numbers: there are hashes for 1"),
        ({"hashes": [1, -2]}, r"hashes\[1\] is -2"),
        ({"hashes": 5}, "hashes is 5: pass a list of ints, one for each dimension"),
        ({"hashes": [1, 2], "method": "gaussian"}, 'hashes go with method "hashed"'),
        ({"workers": 0}, "workers is 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nd.project([[1, 2]], **options)


def test_memory_does_not_grow_with_dimensions() -> None:
    row = scipy.sparse.csr_array(([1.0, 2.0], ([0, 0], [5, 2**40])), shape=(1, 2**41))
    for method in METHODS:
        expected = sum(
            1 << j
            for j in range(64)
            if coefficient(method, 5, j, 0) + 2 * coefficient(method, 2**40, j, 0) > 0
        )
        assert as_ints(nd.project(row, method=method)) == [expected]
