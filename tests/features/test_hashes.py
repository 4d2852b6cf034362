"""Each hash equals its published vectors, and other implementations where there are any."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.errors import RecipeError, UnfitHashWarning
from neardup.features.hashes import (
    HASHES,
    custom_hash,
    expanded,
    find_hash,
    hash_features,
    joined,
    spread,
)
from neardup.fingerprinting.fingerprints import feature_hashes
from strategies import texts
from suite import JIT

FOX = b"The quick brown fox jumps over the lazy dog"

PUBLISHED = [
    ("xxh3", 0, b"", 0x2D06800538D394C2),
    ("xxh64", 0, b"", 0xEF46DB3751D8E999),
    ("xxh64", 0, b"abc", 0x44BC2CF5AD770999),
    ("fnv1", 0, b"", 0xCBF29CE484222325),
    ("fnv1", 0, b"a", 0xAF63BD4C8601B7BE),
    ("fnv1", 0, b"foobar", 0x340D8765A4DDA9C2),
    ("fnv1", 0, b"test string", 8811532157352841348),
    ("fnv1a", 0, b"a", 0xAF63DC4C8601EC8C),
    ("fnv1a", 0, b"foobar", 0x85944171F73967E8),
    ("fnv1a32", 0, b"a", 0xE40C292C),
    ("fnv1a32", 0, b"foobar", 0xBF9CF968),
    ("murmur3", 0, FOX, 0xE34BBC7BBC071B6C),
    ("murmur3", 0, b"", 0),
    ("murmur3-32", 0x9747B28C, FOX, 0x2FA826CD),
    ("murmur3-32", 1, b"", 0x514E28B7),
    ("jenkins", 0, b"", 0xDEADBEEFDEADBEEF),
    ("jenkins", 0xDEADBEEF, b"", 0xBD5B7DDEDEADBEEF),
    ("jenkins", 0xDEADBEEF_DEADBEEF, b"", 0x9C093CCDBD5B7DDE),
    ("jenkins", 0, b"Four score and seven years ago", 0x17770551CE7226E6),
    ("jenkins", 1, b"Four score and seven years ago", 0xE3607CAEBD371DE4),
    ("jenkins", 1 << 32, b"Four score and seven years ago", 0xCD6281616CBEA4B3),
    ("jenkins", 0, "你好".encode(), 17676873585679812141),
    ("one-at-a-time", 0, b"a", 0xCA2E9442),
    ("one-at-a-time", 0, FOX, 0x519E91F5),
    ("crc32", 0, b"123456789", 0xCBF43926),
    ("md5", 0, b"abc", 0x900150983CD24FB0D6963F7D28E17F72),
    ("sha1", 0, b"abc", 0xA9993E364706816ABA3E25717850C26C9CD0D89D),
    ("sha256", 0, b"", int(hashlib.sha256(b"").hexdigest(), 16)),
]

# erlang:phash2(Binary, 1 bsl 32) of Erlang/OTP 25.
PHASH2 = {
    b"": 147926629,
    b"a": 1589197455,
    b"ab": 261815530,
    b"hello world": 2583687111,
    b"hello world!": 965223795,
    b"hello world!!": 2552201628,
    FOX: 542986872,
}


@pytest.mark.parametrize(("name", "seed", "data", "expected"), PUBLISHED)
def test_a_hash_equals_its_published_vectors(
    name: str, seed: int, data: bytes, expected: int
) -> None:
    assert hash_features(HASHES[name], [data], seed) == [expected]


def test_blake2b_and_sha256_equal_their_published_vectors() -> None:
    blake = hash_features(HASHES["blake2b"], [b"abc"])[0]
    assert f"{blake:0128x}".startswith("ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b7")
    sha = hash_features(HASHES["sha256"], [b"abc"])[0]
    assert f"{sha:x}".startswith("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f2")


def test_siphash_equals_the_vectors_of_its_paper() -> None:
    from neardup.kernels.features.byte_hashes import siphash_slices

    data, offsets = joined([bytes(range(size)) for size in (15, 0, 1, 8)])
    keys = np.frombuffer(bytes(range(16)), np.uint64)
    assert siphash_slices(data, offsets, keys[0], keys[1]).tolist() == [
        0xA129CA6149BE45E5,
        0x726FDB47DD0E0E31,
        0x74F839C593DC67FD,
        0x93F5F5799A932462,
    ]


def test_phash2_equals_erlang() -> None:
    assert hash_features(HASHES["phash2"], list(PHASH2)) == list(PHASH2.values())


@pytest.mark.skipif(shutil.which("erl") is None, reason="needs Debian's erlang-base")
def test_phash2_equals_the_erlang_at_hand_on_thousands_of_binaries() -> None:
    draw = random.Random(4)
    binaries = [draw.randbytes(draw.randrange(100)) for _ in range(3000)]
    binaries += [draw.randbytes(n) for n in range(300)]
    terms = ",".join(f"<<{','.join(map(str, binary))}>>" for binary in binaries)
    program = (
        "{ok, T, _} = erl_scan:string(io:get_line('')), {ok, L} = erl_parse:parse_term(T),"
        ' [io:format("~p~n", [erlang:phash2(B, 4294967296)]) || B <- L], halt().'
    )
    process = subprocess.run(
        ["erl", "-noshell", "-eval", program],
        input=f"[{terms}].\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert hash_features(HASHES["phash2"], binaries) == [int(x) for x in process.stdout.split()]


@given(features=st.lists(st.binary(max_size=80), max_size=5), seed=st.integers(0, 2**64 - 1))
def test_the_kernels_equal_the_c_libraries(features: list[bytes], seed: int) -> None:
    assert hash_features(HASHES["xxh3"], features, seed) == [
        xxhash.xxh3_64_intdigest(feature, seed) for feature in features
    ]
    assert hash_features(HASHES["xxh64"], features, seed) == [
        xxhash.xxh64_intdigest(feature, seed) for feature in features
    ]
    assert hash_features(HASHES["crc32"], features) == [zlib.crc32(f) for f in features]


@pytest.mark.parametrize("sizes", [[1, 16], [17, 1], [3, 55, 3], [16] * 9 + [17]])
def test_tokens_of_every_length_are_folded_by_their_md5(sizes: list[int]) -> None:
    from neardup.kernels.fingerprinting.md5 import WINDOW, fold_tokens

    tokens = [bytes([97 + i]) * size for i, size in enumerate(sizes)]
    data = b"".join(token + b"\0" for token in tokens) + bytes(WINDOW)
    digests = [hashlib.md5(token, usedforsecurity=False).digest() for token in tokens]
    weighted = [(int.from_bytes(digest[8:], "big"), 1) for digest in digests]
    assert fold_tokens(data, np.zeros(0, np.int64), 0) == (naive.fold(weighted, 64, "zero"), True)


@given(features=st.lists(st.binary(max_size=55), min_size=1, max_size=40))
def test_the_md5_kernel_equals_hashlib(features: list[bytes]) -> None:
    from neardup.kernels.fingerprinting.md5 import md5_slices

    data, offsets = joined([*features, b"\0\0\0"])
    assert [low | high << 64 for low, high in md5_slices(data, offsets[:-1]).tolist()] == [
        int.from_bytes(hashlib.md5(feature, usedforsecurity=False).digest(), "big")
        for feature in features
    ]


def test_a_hash_is_widened_as_documented() -> None:
    assert expanded(0xABCDEF, 64, 12) == 0xDEF
    assert expanded(7, 64, 64) == 7
    wide = expanded(7, 64, 192)
    assert wide & 2**64 - 1 == 7
    assert expanded(0, 64, 192) == 0xE220A8397B1DCDAF << 64 | 0x6E789E6AA1B965F4 << 128
    assert expanded(7, 32, 32) == 7
    values = np.array([0, 7, 2**32 - 1], np.uint64)
    assert spread(values).tolist() == [expanded(value, 32, 64) for value in values.tolist()]
    assert expanded(0, 32, 64) == 0xE220A8397B1DCDAF  # splitmix64's first output for the state 0
    assert expanded(1 << 159, 160, 160) == 1 << 159


TEXTS = [
    "",
    "one",
    "the quick brown fox jumps over the lazy dog",
    "当山峰没有棱角的时候",
    "a a a a",
]


@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("bits", [20, 64, 128])
def test_a_recipe_of_each_hash_is_the_fold_of_its_hashes(name: str, bits: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitHashWarning)
        recipe = nd.Recipe(hash=name, bits=bits, ngram=1, weight="count")
    function = HASHES[name]
    for text in TEXTS:
        tokens = text.split() if text.isascii() else list(text)
        hashes = hash_features(function, [token.encode() for token in tokens])
        expected = nd.simhash([(expanded(h, function.bits, bits), 1) for h in hashes], bits)
        assert nd.fingerprint(text, recipe) == (expected if tokens else None)


def by_the_definition(
    text: str, recipe: nd.Recipe, frequencies: naive.Frequencies | None = None
) -> tuple[int | None, list[int]]:
    """The fingerprint and the sorted features: the oracle's weights, and each hash widened."""
    weighted = naive.weights(
        naive.features(naive.tokens(text, recipe), recipe), recipe, frequencies
    )
    function = HASHES[recipe.hash]
    hashes = hash_features(function, [feature.encode() for feature, _ in weighted], recipe.seed)
    wide = [expanded(value, function.bits, recipe.bits) for value in hashes]
    units = [weight for _, weight in weighted]
    value = naive.fold(list(zip(wide, units, strict=True)), recipe.bits, recipe.tie)
    kept = sorted({expanded(value, function.bits, 64) for value in hashes})
    return (value if hashes else None), kept


@st.composite
def recipes(draw: st.DrawFn) -> nd.Recipe:
    function = draw(st.sampled_from([x for x in HASHES.values() if x.kernel is not None]))
    seeds = (0, 7, (1 << function.seed_bits) - 1) if function.seed_bits else (0,)
    tokens = draw(st.sampled_from(["words", "chars"]))
    stops = (None, ("the", "a", "\u754c")) if tokens == "words" else (None,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitHashWarning)
        return nd.Recipe(
            hash=function.name,
            seed=draw(st.sampled_from(seeds)),
            tokens=tokens,
            ngram=draw(st.sampled_from([1, 3, 30])),
            weight=draw(st.sampled_from(["set", "count", "log"])),
            bits=draw(st.sampled_from([1, 20, 32, 33, 64, 128, 200])),
            tie=draw(st.sampled_from(["zero", "one"])),
            top=draw(st.sampled_from([None, None, 1, 4])),
            stopwords=draw(st.sampled_from(stops)),
        )


@given(texts(), recipes())
@example("a b a b c " * 40, nd.Recipe(hash="crc32", bits=20, ngram=1, top=2))
def test_every_hash_folds_as_defined_with_every_option(text: str, recipe: nd.Recipe) -> None:
    value, kept = by_the_definition(text, recipe)
    assert nd.fingerprint(text, recipe) == value
    assert feature_hashes(text, recipe).tolist() == kept


@given(st.lists(texts(), max_size=4), texts(), recipes())
def test_document_frequencies_weigh_the_features_of_every_hash(
    documents: list[str], text: str, made: nd.Recipe
) -> None:
    table = nd.DocumentFrequencies.learn([*documents, "one document has words"], made)
    fields = {name: getattr(made, name) for name in nd.Recipe.__slots__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitHashWarning)
        recipe = nd.Recipe(**(fields | {"weight": "tfidf", "idf": table.digest}))
    everything = [*documents, "one document has words"]
    learned = [naive.features(naive.tokens(x, recipe), recipe) for x in everything]
    value, kept = by_the_definition(text, recipe, naive.document_frequencies(learned))
    assert nd.fingerprint(text, recipe) == value
    assert feature_hashes(text, recipe).tolist() == kept


@pytest.mark.parametrize("fields", [{"weight": "set"}, {"weight": "log"}, {"top": 1}])
@pytest.mark.parametrize("bits", [32, 64])
def test_features_of_equal_hash_are_one(fields: dict[str, Any], bits: int) -> None:
    recipe = nd.Recipe(hash="crc32", ngram=1, bits=bits, **fields)
    assert zlib.crc32(b"plumless") == zlib.crc32(b"buckeroo")
    one = nd.fingerprint("plumless plumless other", recipe)
    assert nd.fingerprint("plumless buckeroo other", recipe) == one
    assert feature_hashes("plumless buckeroo", recipe).size == 1


def test_wide_hashes_are_taken_whole() -> None:
    assert nd.fingerprint("abc", nd.Recipe(hash="sha1", bits=160)) == int.from_bytes(
        hashlib.sha1(b"abc", usedforsecurity=False).digest(), "big"
    )


def test_unknown_hashes_are_refused_with_near_names() -> None:
    with pytest.raises(RecipeError, match=r"hash is 'murmur': did you mean murmur3"):
        nd.Recipe(hash="murmur")
    with pytest.raises(RecipeError, match=r"hash is 'SHA-1': did you mean sha1"):
        nd.Recipe(hash="SHA-1")
    with pytest.raises(RecipeError, match=r"hash is 'qqqq': use one of xxh3, "):
        nd.Recipe(hash="qqqq")
    with pytest.raises(RecipeError, match=r"hash is None: use one of xxh3, "):
        nd.Recipe(hash=None)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="seed is 1: the hash md5 takes no seed"):
        nd.Recipe(hash="md5", seed=1)
    with pytest.raises(RecipeError, match="takes a seed of 32 bits"):
        nd.Recipe(hash="murmur3", seed=2**32)


def test_an_unfit_hash_warns_outside_a_preset() -> None:
    with pytest.warns(UnfitHashWarning, match="the hash fnv1 is unfit for SimHash: "):
        nd.Recipe(hash="fnv1")
    with pytest.warns(UnfitHashWarning, match="fnv1a32"):
        nd.Recipe(hash="fnv1a32", bits=32)
    nd.Recipe(hash="fnv1a32", bits=64)
    nd.preset("go-mfonda")


def test_a_hash_that_cannot_be_is_refused() -> None:
    with pytest.raises(RecipeError, match="the hash mine has bits 0: use a whole number"):
        custom_hash("mine", "1", len, bits=0)
    with pytest.raises(RecipeError, match="the hash mine is 5: pass a function"):
        custom_hash("mine", "1", 5)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="'a b': name a hash and its version by letters"):
        custom_hash("a b", "1", len)
    negative = custom_hash("negative", "1", lambda _: -1)
    with pytest.raises(RecipeError, match=r"negative@1 gave -1: use whole numbers below 2\*\*64"):
        nd.fingerprint("a", nd.Recipe(hash=negative))


def test_a_callers_hash_is_part_of_the_digest() -> None:
    one = nd.Recipe(hash=custom_hash("mine", "1", len))
    two = nd.Recipe(hash=custom_hash("mine", "2", len))
    assert one.digest != two.digest
    assert nd.Recipe.from_json(one.to_json()) == one
    assert nd.fingerprint("abc", one) == 3
    with pytest.raises(
        RecipeError, match=r"'other@1': register it first with neardup\.custom_hash"
    ):
        find_hash("other@1")
    with pytest.raises(RecipeError, match="name a hash"):
        custom_hash("a b", "1", len)
    bad = nd.Recipe(hash=custom_hash("bad", "1", lambda _: -1))
    with pytest.raises(RecipeError, match=r"hash bad@1 gave -1: use whole numbers below 2\*\*64"):
        nd.fingerprint("abc", bad)


def test_similar_texts_are_near_by_every_fit_hash() -> None:
    words = [f"word{i}" for i in range(60 if JIT else 20)]
    for name, function in HASHES.items():
        if function.unfit is None:
            recipe = nd.Recipe(hash=name, ngram=1)
            one, two = (nd.fingerprint(" ".join(w), recipe) for w in (words, words[1:]))
            assert one is not None
            assert two is not None
            assert nd.distance(one, two) < 16
