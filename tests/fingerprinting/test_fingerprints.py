"""Fingerprints equal the oracle's, bit for bit, on any text in any form."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive
import neardup as nd
from neardup.errors import RecipeError, UsageError
from neardup.fingerprinting.fingerprints import PREPARED_RECIPES, feature_hashes
from neardup.fingerprinting.sets_of_texts import feature_sets
from strategies import texts
from suite import JIT, needs_jit

ONE_LINE_MEGABYTES = 10 if JIT else 0.05


def recipes() -> st.SearchStrategy[nd.Recipe]:
    return st.builds(
        nd.Recipe,
        normalize=st.sampled_from(["NFKC", "NFC", "none"]),
        casefold=st.booleans(),
        tokens=st.sampled_from(["words", "chars"]),
        ngram=st.sampled_from([1, 2, 3, 4, 7, 30]),
        weight=st.sampled_from(["set", "count", "log"]),
        bits=st.sampled_from([1, 6, 63, 64, 65, 100, 128, 192, 256, 512, 1024]),
        seed=st.sampled_from([0, 1, 42, 2**63, 2**64 - 1]),
        tie=st.sampled_from(["zero", "one"]),
    )


def as_ints(values: object) -> list[int | None]:
    masked = np.ma.getmaskarray(values)[:, 0]
    rows = np.ma.getdata(values).tolist()
    return [
        None if gone else sum(word << 64 * i for i, word in enumerate(row))
        for row, gone in zip(rows, masked, strict=True)
    ]


@given(st.lists(texts(), max_size=5), recipes())
@example(["é" * 40 + "ẛ̣ \u0301a", "\u1100\u1161\u11a8 x", "a\u0300\u0301" * 40], nd.Recipe())
@example(["Şu ığÜ" + "é" * 70 + " ¿ñ ÑÑ», İzmir'de “çok” güzel\u0301 ü" * 9], nd.Recipe())
@example(
    ["你好\uff0c世界。再见" * 9 + " 2008年e\u0301你\u0301好、\u200d" * 7 + "。" * 90],
    nd.Recipe(ngram=2),
)
@example(["x" * 63 + " " + "Y" * 130, "_", "word" * 100], nd.Recipe(ngram=1))
def test_fingerprints_equal_the_oracle(documents: list[str], recipe: nd.Recipe) -> None:
    expected = [naive.fingerprint(text, recipe) for text in documents]
    assert as_ints(nd.fingerprints(documents, recipe)) == expected


@given(texts(), recipes())
@example("é" * 40 + "ẛ̣ \u0301a \u1100\u1161\u11a8 x" + "a\u0300\u0301" * 40, nd.Recipe(bits=100))
@example("x" * 63 + " " + "Y" * 130 + " x y z" * 40, nd.Recipe(weight="count", tie="one"))
@example("a lone surrogate \ud800 in a text", nd.Recipe(seed=2**64 - 1))
@example("你好\uff0c世界。再见" * 9 + " 2008年e\u0301你", nd.Recipe(ngram=1, normalize="none"))
def test_one_text_equals_the_oracle(text: str, recipe: nd.Recipe) -> None:
    assert nd.fingerprint(text, recipe) == naive.fingerprint(text, recipe)


@pytest.mark.parametrize("tokens", ["words", "chars"])
@pytest.mark.parametrize(
    "text", ["가\u0301나", "\u1112\u1161", "\u1100\u1161\u11a8", "\u0301\u0323\u0301x", "e\u0301"]
)
def test_what_combines_is_composed_in_the_canonical_order(text: str, tokens: str) -> None:
    recipe = nd.Recipe(tokens=tokens, ngram=2)
    assert nd.fingerprint(text, recipe) == naive.fingerprint(text, recipe)


@given(texts(), recipes())
@example("a lone surrogate \ud800 in a text", nd.Recipe())
@example("a b a b a b c", nd.Recipe(ngram=1, weight="count"))
def test_the_features_of_one_text_are_those_of_many_texts(text: str, recipe: nd.Recipe) -> None:
    several, _ = feature_sets([text], recipe, 1)
    assert feature_hashes(text, recipe).tolist() == sorted(several.tolist())


@needs_jit
@pytest.mark.parametrize("letter", ["a", "é", "\u0142", "\ufdfa", "\U0001f600"])
@pytest.mark.parametrize("size", [(1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 16, (1 << 16) + 1])
def test_texts_about_as_long_as_a_workplace_have_room(letter: str, size: int) -> None:
    rows = "".join(f"{letter * 3} {i} " for i in range(size // 5))
    text = rows[: size - 1] + letter
    for recipe in (nd.Recipe(ngram=2), nd.Recipe(tokens="chars", ngram=4, bits=100)):
        assert as_ints(nd.fingerprints([text], recipe)) == [nd.fingerprint(text, recipe)]
        features, _ = feature_sets([text], recipe, 1)
        assert np.array_equal(feature_hashes(text, recipe), np.sort(features))


@needs_jit
def test_threads_that_fingerprint_one_text_each_share_nothing() -> None:
    recipe = nd.Recipe(bits=128)
    several = [" ".join(f"w{i * j % 97}" for j in range(i % 60 + 1)) for i in range(200)]
    expected = [nd.fingerprint(text, recipe) for text in several]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            codes = pool.map(nd.fingerprint, several, [recipe] * len(several))
            assert list(codes) == expected


def test_more_recipes_than_are_kept_prepared_give_their_own_fingerprints() -> None:
    for seed in (*range(PREPARED_RECIPES + 3), 0, 1):
        recipe = nd.Recipe(seed=seed)
        assert nd.fingerprint("one two three four", recipe) == naive.fingerprint(
            "one two three four", recipe
        )


@given(st.lists(texts().filter(lambda t: t == t.encode("utf-8", "replace").decode()), min_size=1))
def test_every_arrow_form_gives_the_same_fingerprints(documents: list[str]) -> None:
    documents = [documents[0], *documents, "padding on the left and right"]
    expected = nd.fingerprints(documents).tolist()
    forms = [
        pa.array(documents, pa.string()),
        pa.array(documents, pa.large_string()),
        pa.array(documents, pa.string_view()),
        pa.array(documents, pa.large_string()).dictionary_encode(),
        pa.chunked_array([documents[:1], [], documents[1:]], pa.string()),
        pa.array(["skipped", *documents, "skipped"]).slice(1, len(documents)),
    ]
    for form in forms:
        assert nd.fingerprints(form).tolist() == expected


def test_null_and_empty_texts_are_masked() -> None:
    values = nd.fingerprints(["one two three", None, "", " .,! ", "four"], nd.Recipe(bits=128))
    assert values.mask.tolist() == [[False] * 2, [True] * 2, [True] * 2, [True] * 2, [False] * 2]
    assert nd.fingerprints(pa.array([None, None])).mask.all()


def test_no_texts_give_no_rows() -> None:
    assert nd.fingerprints([]).shape == (0, 1)
    assert nd.fingerprints(pa.chunked_array([], pa.string()), nd.Recipe(bits=256)).shape == (0, 4)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_same_fingerprints(workers: int) -> None:
    count = 3000 if JIT else 30
    documents = [
        f"document {i} of many, in été {i % 7} and 你好 {i * i}" * 20 for i in range(count)
    ]
    expected = nd.fingerprints(documents, workers=1)
    assert np.array_equal(nd.fingerprints(documents, workers=workers), expected)


@pytest.mark.parametrize("nbytes", [1, 50, 1 << 30])
def test_blocks_of_any_size_give_the_same_fingerprints(
    monkeypatch: pytest.MonkeyPatch, nbytes: int
) -> None:
    documents = ["", "one two three", "你好 " * 9, "four", "x " * 50]
    expected = [nd.fingerprint(document) or 0 for document in documents]
    monkeypatch.setattr("neardup.fingerprinting.fingerprints._LEAST_BLOCK_BYTES", nbytes)
    monkeypatch.setattr("neardup.fingerprinting.fingerprints.BLOCK_BYTES", nbytes)
    values = np.ma.getdata(nd.fingerprints(documents, workers=3))
    assert values[:, 0].tolist() == expected


@needs_jit
@pytest.mark.parametrize("piece", ["word ", "你好", "a\u0301", "x", "\u0301", "é, "])
def test_one_line_of_many_megabytes(piece: str) -> None:
    text = piece * int(ONE_LINE_MEGABYTES * 1e6 / len(piece.encode()))
    recipe = nd.Recipe(ngram=2)
    short = piece * 400
    assert nd.fingerprint(text, recipe) is not None or naive.fingerprint(short, recipe) is None
    if piece in {"word ", "你好", "é, "}:
        assert nd.fingerprint(text, recipe) == naive.fingerprint(short, recipe)


def test_long_runs_of_marks_are_ordered() -> None:
    text = "a" + "\u0301\u0323\u0345\u05b0\u3099" * 200 + " b c d"
    assert nd.fingerprint(text) == naive.fingerprint(text, nd.Recipe())


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(UsageError, match="row 1 is int"):
        nd.fingerprints(["a", 1])
    with pytest.raises(UsageError, match="one string"):
        nd.fingerprints("a text")
    with pytest.raises(UsageError, match="int64"):
        nd.fingerprints(pa.array([1, 2]))
    with pytest.raises(UsageError, match="not str"):
        nd.fingerprint(b"bytes")  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(0, 2**130), st.integers(0, 5) | st.floats(0, 9))),
    st.integers(1, 130),
)
def test_simhash_is_the_sign_of_the_weighted_sums(
    features: list[tuple[int, float]], bits: int
) -> None:
    rounded = [(h, round(w * 65536)) for h, w in features]
    expected = naive.fold([(h % 2**bits, w) for h, w in rounded], bits, "zero")
    assert nd.simhash(features, bits=bits) == expected


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (5, r"features is 5: pass \(hash, weight\) pairs"),
        (None, "features is None: pass"),
        ([7], r"features\[0\] is 7: pass a pair"),
        ([(1, 1), (1, 2, 3)], r"features\[1\] is \(1, 2, 3\): pass a pair"),
        ({1: 2.0}, r"features\[0\] is 1: pass a pair"),
        (
            [("a", 1)],
            r"the hash of features\[0\] is 'a': to hash words, name how, as in hash='xxh3'",
        ),
        ([(1, 1), (-1, 1)], r"the hash of features\[1\] is -1: .*hash % 2\*\*64"),
        ([(1.5, 1)], r"the hash of features\[0\] is 1\.5"),
        ([("a", -1)], r"the hash of features\[0\] is 'a'"),
        ([(1, float("nan"))], r"the weight of features\[0\] is nan: use finite numbers from 0 up"),
        ([(1, 1), (2, -1)], r"the weight of features\[1\] is -1: .*neardup\.project folds them"),
        ([(1, -0.5)], r"the weight of features\[0\] is -0\.5: use finite numbers from 0 up"),
        ([(1, -(10**400))], r"the weight of features\[0\] is -10"),
        ([(1, float("inf"))], "is inf: use finite numbers"),
        ([(1, "x")], "is 'x': use finite numbers"),
        ([(1, None)], "is None: use finite numbers"),
    ],
)
def test_features_that_cannot_be_folded_are_named(features: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nd.simhash(features)


@pytest.mark.parametrize("bits", [0, -1, 65_537, 64.0, "64", None, True])
def test_a_width_that_cannot_be_is_refused(bits: Any) -> None:
    with pytest.raises(UsageError, match=r"bits is .*: use a whole number from 1 to 32,767"):
        nd.simhash([(1, 1)], bits=bits)


def test_large_and_foreign_weights_fold_exactly() -> None:
    assert nd.simhash([(1, 10**400), (2, 10**400 - 1), (2, 2)], bits=2) == 2
    assert nd.simhash([(1, 1e308), (2, 1e308), (1, 2.0**-16)], bits=2) == 1
    assert nd.simhash([(np.uint64(2**63), np.int64(2**50)), (1, np.float32(0.5))]) == 2**63


@pytest.mark.parametrize(
    "call", [nd.fingerprint, lambda text, recipe: nd.explain(text, None, recipe)]
)
def test_the_name_of_a_preset_is_no_recipe(call: Any) -> None:
    with pytest.raises(RecipeError, match=r"recipe is 'gaoya': pass .*neardup\.preset\(name\)"):
        call("text", "gaoya")


@given(st.integers(0, 2**200), st.integers(0, 2**200))
def test_distance_counts_differing_bits(a: int, b: int) -> None:
    assert nd.distance(a, b) == naive.distance(a, b)
    words = [np.array([x >> 64 * i & 2**64 - 1 for i in range(4)], np.uint64) for x in (a, b)]
    assert nd.distance(*words).sum() == naive.distance(a, b)


def test_distance_of_arrays_is_one_number_a_row() -> None:
    a = np.array([[1, 1], [0, 2**63]], np.uint64)
    assert nd.distance(a, np.zeros((2, 2), np.uint64)).tolist() == [2, 1]
    assert nd.distance(np.array([7, 1], np.uint64), 1).tolist() == [2, 0]
    with pytest.raises(UsageError, match="uint64"):
        nd.distance(np.array([1.0]), np.array([1.0]))
