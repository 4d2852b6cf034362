"""Kernels against plain Python: the hash, the fold, distinct features, and machine instructions."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

import naive
from neardup.features.text import one_block, text_array, text_blocks
from neardup.kernels import bit_counters as counters
from neardup.kernels import bits, sorting, utf8
from neardup.kernels.features import lookup
from neardup.kernels.features.xxh3 import hasher_of, seeded_secret, xxh3_64, xxh3_runs
from neardup.kernels.fingerprinting import fold
from neardup.kernels.index.sets import count_heavy
from neardup.kernels.jit import kernel
from neardup.runtime.arrays import frozen
from suite import JIT

MASK64 = (1 << 64) - 1
SEEDS = [0, 1, 0xFFFF_FFFF, 1 << 32, 1 << 63, MASK64]
EDGES = [0, 1, 1 << 31, 1 << 32, (1 << 32) - 1, 1 << 62, 1 << 63, MASK64]
LENGTHS = [*range(401), *range(1020, 1032), *range(2044, 2056), 3071, 3072, 3073, 9999]

words = st.one_of(st.sampled_from(EDGES), st.integers(0, MASK64))


@kernel
def hash_slices(data: Any, at: int, sizes: Any, seed: Any, out: Any) -> None:
    """Hash data[at : at + size] for each size."""
    secret = seeded_secret(seed)
    lanes = np.empty(8, np.uint64)
    for i in range(sizes.size):
        out[i] = xxh3_64(data, at, sizes[i], seed, secret, lanes)


@kernel
def decoded(data: Any, at: int, end: int) -> Any:
    return utf8.decode(data, at, end)


@kernel
def encoded(cp: int, buffer: Any) -> Any:
    return utf8.encode(cp, buffer, 1)


@kernel
def popcounts(values: Any, out: Any) -> None:
    for i in range(values.size):
        out[i] = bits.popcount(values[i])


@kernel
def zeros_below(values: Any, out: Any) -> None:
    for i in range(values.size):
        out[i] = bits.trailing_zeros(values[i])


@kernel
def products_folded(a: Any, b: Any, out: Any) -> None:
    for i in range(a.size):
        out[i] = bits.multiply_fold(a[i], b[i])


@kernel
def loads(data: Any, wide: Any, narrow: Any) -> None:
    for i in range(wide.size):
        wide[i] = bits.load64(data, i)
        narrow[i] = bits.load32(data, i)


@kernel
def byte_masks(data: Any, out: Any) -> None:
    out[0] = bits.word_mask64(data, 1)
    out[1] = bits.high_mask64(data, 1)


@kernel
def words_packed(target: Any, data: Any, case_bit: Any, words: Any, kept: Any) -> Any:
    return bits.pack_words64(target, 2, data, 1, case_bit, words, kept)


@kernel
def copied(data: Any, target: Any, value: Any) -> None:
    bits.copy64(data, 1, target, 2)
    bits.store32(target, 3, value)


@kernel
def runs_hashed(data: Any, starts: Any, width: int, gap: int, seed: Any, hashes: Any) -> None:
    xxh3_runs(data, starts, 1, hashes.size, width, gap, hasher_of(seed), hashes)


@kernel
def lanes_summed(words: Any, end: int, step: Any, planes: Any) -> Any:
    if step:
        counters.count_widened8(words, 1, end, step, planes)
    else:
        counters.count_words8(words, 1, end, planes)
    return counters.sum_lanes8(planes)


@kernel
def folded_equal(hashes: Any, tie_one: bool, out: Any) -> None:
    fold.fold_equal(hashes, hashes.size, tie_one, np.empty(fold.PLANES, np.uint64), out)


@kernel
def folded_weighted(hashes: Any, weights: Any, tie_one: bool, out: Any) -> None:
    fold.fold_weighted(hashes, weights, hashes.size, tie_one, np.empty(64, np.int64), out)


@kernel
def made_distinct(hashes: Any, table_size: int, weights: Any) -> Any:
    table = np.empty(table_size, np.uint64)
    return fold.distinct(hashes, hashes.size, table, weights)


@kernel
def in_order(hashes: Any) -> None:
    scratch = np.empty((2, 2 * hashes.size), np.uint64)
    sorting.sort_hashes(hashes, 0, hashes.size, scratch[0], scratch[1])


def uint64(values: list[int]) -> Any:
    return np.array(values, np.uint64)


def splitmix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK64
    return value ^ value >> 31


def joined(fingerprint: Any) -> int:
    return sum(int(word) << 64 * i for i, word in enumerate(fingerprint))


@pytest.mark.parametrize("seed", SEEDS if JIT else SEEDS[3:4])
@pytest.mark.parametrize("at", [0, 3])
def test_the_hash_is_xxh3_for_every_length(seed: int, at: int) -> None:
    lengths = LENGTHS if JIT else LENGTHS[::7]
    data = random.Random(seed).randbytes(at + max(LENGTHS))
    out = np.empty(len(lengths), np.uint64)
    hash_slices(np.frombuffer(data, np.uint8), at, np.array(lengths), np.uint64(seed), out)
    expected = [xxhash.xxh3_64_intdigest(data[at : at + size], seed) for size in lengths]
    assert out.tolist() == expected


@given(data=st.binary(max_size=300), seed=words)
def test_the_hash_is_xxh3_for_any_bytes(data: bytes, seed: int) -> None:
    out = np.empty(1, np.uint64)
    array = np.frombuffer(data, np.uint8)
    hash_slices(array, 0, np.array([len(data)]), np.uint64(seed), out)
    assert int(out[0]) == xxhash.xxh3_64_intdigest(data, seed)


@given(
    sizes=st.lists(
        st.sampled_from([0, 1, 3, 4, 8, 9, 16, 17, 32, 33, 128, 129]) | st.integers(0, 300)
    ),
    width=st.integers(1, 4),
    gap=st.integers(0, 1),
    seed=words,
)
@example(sizes=[*range(40)] * 15, width=1, gap=1, seed=1)
def test_runs_of_tokens_are_hashed_whatever_their_size(
    sizes: list[int], width: int, gap: int, seed: int
) -> None:
    starts = np.cumsum([5, *(size + gap for size in sizes)])
    data = random.Random(seed).randbytes(int(starts[-1]) + 8)
    hashes = np.zeros(max(0, len(sizes) + 1 - width), np.uint64)
    runs_hashed(np.frombuffer(data, np.uint8), starts, width, gap, np.uint64(seed), hashes)
    for i in range(1, hashes.size):
        run = data[starts[i] : starts[i + width] - gap]
        assert int(hashes[i]) == xxhash.xxh3_64_intdigest(run, seed)


@given(values=st.lists(words, min_size=1, max_size=20))
@example(values=EDGES)
def test_bits_are_counted_and_found(values: list[int]) -> None:
    counts, zeros = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    popcounts(uint64(values), counts)
    zeros_below(uint64(values), zeros)
    assert counts.tolist() == [value.bit_count() for value in values]
    assert zeros.tolist() == [(f"{value:064b}"[::-1] + "1").index("1") for value in values]


@given(pairs=st.lists(st.tuples(words, words), min_size=1, max_size=20))
@example(pairs=[(a, b) for a in EDGES for b in EDGES])
def test_a_folded_product_is_exact(pairs: list[tuple[int, int]]) -> None:
    out = np.empty(len(pairs), np.uint64)
    products_folded(uint64([a for a, _ in pairs]), uint64([b for _, b in pairs]), out)
    assert out.tolist() == [(a * b & MASK64) ^ (a * b >> 64) for a, b in pairs]


@given(data=st.binary(min_size=16, max_size=40))
def test_loads_are_little_endian_at_any_index(data: bytes) -> None:
    wide, narrow = np.empty(len(data) - 7, np.uint64), np.empty(len(data) - 7, np.uint64)
    loads(np.frombuffer(data, np.uint8), wide, narrow)
    assert wide.tolist() == [
        int.from_bytes(data[i : i + 8], "little") for i in range(len(data) - 7)
    ]
    assert narrow.tolist() == [
        int.from_bytes(data[i : i + 4], "little") for i in range(len(data) - 7)
    ]


@given(character=st.characters(exclude_categories=["Cs"]), missing=st.integers(0, 3))
@example(character="\N{GRINNING FACE}", missing=1)
@example(character="\N{GRINNING FACE}", missing=2)
def test_a_character_is_read_whole_or_not_at_all(character: str, missing: int) -> None:
    encoded = character.encode()
    end = max(1, len(encoded) - missing)
    whole = (ord(character), len(encoded))
    data = np.frombuffer(encoded + bytes(4), np.uint8)
    assert decoded(data, 0, end) == (whole if end == len(encoded) else (0xFFFD, 1))


@pytest.mark.parametrize("first", [0, 0x80, 0x800, 0x10000, 0x10FF80])
def test_characters_are_written_as_python_writes_them_and_read_again(first: int) -> None:
    for cp in range(max(0, first - 1), first + 0x80):
        buffer, expected = np.full(7, 7, np.uint8), chr(cp).encode()
        end = encoded(cp, buffer)
        assert bytes(buffer) == (b"\7" + expected).ljust(7, b"\7")
        assert (end, *decoded(buffer, 1, end)) == (1 + len(expected), cp, len(expected))


@given(
    sets=st.lists(st.sets(st.integers(1, 40), max_size=9), max_size=40),
    least=st.integers(1, 5),
    parts_log2=st.integers(0, 3),
)
def test_features_of_many_sets_are_counted_part_by_part(
    sets: list[set[int]], least: int, parts_log2: int
) -> None:
    hashes = np.random.default_rng(5).integers(1, 2**64, 41, np.uint64)
    features = np.concatenate([uint64([]), *(hashes[sorted(each)] for each in sets)])
    offsets = np.cumsum([0, *map(len, sets)])
    counters = np.empty(1 << 10 - parts_log2, np.uint8)
    keys, counts = count_heavy(frozen(features), frozen(offsets), 1, counters, 10, least)
    expected = Counter(features.tolist())
    counted = dict(zip(keys[keys > 0].tolist(), counts[keys > 0].tolist(), strict=True))
    assert counted == {x: count for x, count in expected.items() if count >= least}


@given(data=st.binary(min_size=66, max_size=66))
@example(data=bytes(range(66)))
@example(data=bytes(range(64, 130)))
@example(data=bytes(range(190, 256)))
def test_masks_mark_the_bytes_of_their_class(data: bytes) -> None:
    out = np.empty(2, np.uint64)
    byte_masks(np.frombuffer(data, np.uint8), out)
    word = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
    assert int(out[0]) == sum(1 << i for i, byte in enumerate(data[1:65]) if byte in word)
    assert int(out[1]) == sum(1 << i for i, byte in enumerate(data[1:65]) if byte > 127)


@given(data=st.binary(min_size=65, max_size=65), marked=words, kept=words)
@example(data=bytes(range(65)), marked=MASK64, kept=MASK64)
@example(data=bytes(range(63, 128)), marked=MASK64, kept=MASK64)
@example(data=bytes(range(190, 255)), marked=MASK64, kept=1 << 63)
def test_words_are_packed_in_small_letters_with_blanks_between(
    data: bytes, marked: int, kept: int
) -> None:
    for case_bit, letters in ((0x20, data[1:].lower()), (0, data[1:])):
        target = np.full(70, 7, np.uint8)
        array = np.frombuffer(data, np.uint8)
        marks = words_packed(target, array, np.uint8(case_bit), np.uint64(marked), np.uint64(kept))
        blanked = [byte if marked >> i & 1 else 0x20 for i, byte in enumerate(letters)]
        expected = bytes(byte for i, byte in enumerate(blanked) if kept >> i & 1)
        assert bytes(target[: 2 + len(expected)]) == b"\7\7" + expected
        assert bytes(target[66:]) == b"\7" * 4
        blanks = sum(1 << i for i, byte in enumerate(expected) if byte == 0x20)
        assert int(marks) & (1 << len(expected)) - 1 == blanks


def test_64_bytes_are_copied_and_4_stored() -> None:
    target = np.full(70, 7, np.uint8)
    copied(np.arange(65, dtype=np.uint8), target, np.uint64(0xFF_04_03_02_01))
    assert bytes(target) == bytes([7, 7, 1, 1, 2, 3, 4, *range(6, 65), 7, 7, 7, 7])


@given(values=st.lists(words, min_size=65, max_size=65), end=st.integers(1, 65), step=words)
@example(values=[MASK64] * 65, end=65, step=0)
def test_lanes_count_each_bit(values: list[int], end: int, step: int) -> None:
    planes = np.zeros(9 * counters.LANES, np.uint64)
    array = uint64(values)
    sums = [lanes_summed(array, end, np.uint64(step), planes) for _ in range(2)][1]
    chosen = [splitmix(value + step & MASK64) if step else value for value in values[1:end]]
    for bit in range(64):
        counted = sum((int(word) >> bit & 1) << i for i, word in enumerate(sums))
        assert counted == 2 * sum(value >> bit & 1 for value in chosen)


@given(hashes=st.lists(words, min_size=1, max_size=40), count=st.integers(1, 3), tie=st.booleans())
@example(hashes=[MASK64, 0], count=2, tie=True)
@example(hashes=[1 << 63] * 9 + [0] * 8, count=1, tie=False)
def test_an_equal_fold_is_the_majority(hashes: list[int], count: int, tie: bool) -> None:
    out = np.empty(count, np.uint64)
    folded_equal(uint64(hashes), tie, out)
    weighted = [(naive.widened(value, 64 * count), 1) for value in hashes]
    assert joined(out) == naive.fold(weighted, 64 * count, "one" if tie else "zero")


@pytest.mark.parametrize("count", [63, 64, 65, 1983, 1984, 1985, 3968, 65_535, 65_536, 65_537])
def test_counts_carry_over_every_plane(count: int) -> None:
    if not JIT:
        count = min(count, 2000)
    hashes = np.full(count, MASK64, np.uint64)
    hashes[: count // 2] = 0
    out = np.empty(1, np.uint64)
    folded_equal(hashes, False, out)
    assert int(out[0]) == (MASK64 if count % 2 else 0)
    folded_equal(hashes, True, out)
    assert int(out[0]) == MASK64


@given(
    weighted=st.lists(st.tuples(words, st.integers(-(1 << 40), 1 << 40)), min_size=1, max_size=30),
    count=st.integers(1, 3),
    tie=st.booleans(),
)
def test_a_weighted_fold_is_the_sign_of_each_sum(
    weighted: list[tuple[int, int]], count: int, tie: bool
) -> None:
    out = np.empty(count, np.uint64)
    hashes, weights = zip(*weighted, strict=True)
    folded_weighted(uint64(list(hashes)), np.array(weights, np.int64), tie, out)
    wide = [(naive.widened(value, 64 * count), weight) for value, weight in weighted]
    assert joined(out) == naive.fold(wide, 64 * count, "one" if tie else "zero")


@given(
    hashes=st.lists(st.one_of(words, st.integers(0, 5), st.sampled_from([64, 128])), max_size=60),
    weighing=st.booleans(),
)
def test_distinct_hashes_keep_their_order_and_sum_their_weights(
    hashes: list[int], weighing: bool
) -> None:
    array = uint64(hashes)
    weights = np.arange(1, len(hashes) + 1 if weighing else 1)
    expected: Counter[int] = Counter()
    for value, weight in zip(hashes, range(1, len(hashes) + 1), strict=True):
        expected[value] += weight
    actual = made_distinct(array, 256, weights)
    assert array[:actual].tolist() == list(expected)
    if weighing:
        assert weights[:actual].tolist() == list(expected.values())


def test_a_full_table_of_colliding_hashes_is_searched_to_the_end() -> None:
    colliding = [i << 32 for i in range(1, 33)] * 2
    array, weights = uint64(colliding), np.ones(64, np.int64)
    assert made_distinct(array, 128, weights) == 32
    assert weights[:32].tolist() == [2] * 32


def test_a_sieve_of_many_keys_has_16_bits_or_more_for_each() -> None:
    keys = np.random.default_rng(3).integers(0, 1 << 64, 70_001, np.uint64)
    sieve = lookup.hash_sieve(keys)
    assert sieve.size == 1 << 15
    places = keys >> np.uint64(64 - 21)
    assert (sieve[places >> np.uint64(6)] >> (places & np.uint64(63)) & np.uint64(1)).all()


@given(st.lists(st.one_of(words, st.integers(0, 5)), min_size=1, max_size=300, unique=True))
@example([i << 50 for i in range(200, 0, -1)])
def test_hashes_are_sorted_however_they_are_spread(hashes: list[int]) -> None:
    array = uint64(hashes)
    in_order(array)
    assert array.tolist() == sorted(hashes)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_any_origin_reach_kernels_as_one_type(kind: pa.DataType) -> None:
    """A type more is a kernel compiled once more, for seconds."""
    column = pa.array(["one", "two"], kind)
    read = pa.ipc.open_stream(written(pa.table({"text": column}))).read_all()["text"]
    for texts in (column, read, ["one", "two"]):
        (block,) = text_blocks(text_array(texts).combine_chunks())
        for array in (block.data, block.offsets, one_block("one").data, one_block("one").offsets):
            assert not array.flags.writeable


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
