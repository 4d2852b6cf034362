"""The drop-in classes behave as PyPI simhash 2.1.2 does; tests/compat compares with it."""

from __future__ import annotations

import hashlib
import logging
import re
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.compat.simhash import Simhash, SimhashIndex

NUMBERS = [str(i) for i in range(500)]
TEXTS = [
    "How are you? I Am fine. blar blar blar blar blar Thanks.",
    "How are you i am fine. blar blar blar blar blar than",
    "This is simhash test.",
]


def digest(data: bytes) -> bytes:
    return hashlib.md5(data).digest()  # noqa: S324


def slow(features: dict[str, Any], f: int = 64) -> int:
    """The definition: bit j is 1 where the weights with it exceed half of all."""
    half = sum(features.values()) / 2
    hashes = {t: int.from_bytes(digest(t.encode()), "big") for t in features}
    sums = [sum(w for t, w in features.items() if hashes[t] >> j & 1) for j in range(f)]
    return sum(1 << j for j, total in enumerate(sums) if total > half)


def test_the_package_own_tests_hold() -> None:
    assert Simhash(["aaa", "bbb"]).value == 57087923692560392
    assert Simhash([]).value == 0
    assert Simhash(TEXTS[0]).value == 8440240427182201978
    assert Simhash(TEXTS[1]).value == 8440240356449459322
    assert Simhash(NUMBERS).value == 7984652473404407437
    weighted = [(token, 50 * i) for i, token in enumerate(NUMBERS)]
    assert Simhash(weighted).value == Simhash(dict(weighted)).value == 3372825719632739723
    one = Simhash("How are you? I AM fine. Thanks. And you?")
    two = Simhash("How old are you ? :-) i am fine. Thanks. And you?")
    assert one.distance(two) > 0
    assert two.distance(Simhash(two)) == 0
    assert Simhash("1").distance(Simhash("2")) != 0
    assert Simhash("\u4f60\u597d\u3000\u4e16\u754c").value == Simhash("你好，世界").value  # noqa: RUF001


@given(text=st.text(max_size=60), f=st.sampled_from([8, 32, 64, 72, 128]))
def test_a_text_is_its_windows_of_4_letters(text: str, f: int) -> None:
    kept = "".join(re.findall(r"[\w\u4e00-\u9fcc]+", text.lower()))
    windows = [kept[i : i + 4] for i in range(max(len(kept) - 3, 1))]
    assert Simhash(text, f).value == slow({w: windows.count(w) for w in windows}, f)
    assert Simhash(text, f, hashfunc=digest).value == Simhash(text, f).value


def test_a_window_may_have_any_number_of_bytes() -> None:
    letters = "aé你𠀀"  # of 1 to 4 bytes
    for size in range(5):
        for window in map("".join, combinations_with_replacement(letters, size)):
            assert Simhash(window).value == slow({window: 1}), window


tokens = st.text(max_size=70)


@given(features=st.dictionaries(tokens, st.integers(0, 300)), f=st.sampled_from([8, 64, 128]))
def test_features_take_every_form(features: dict[str, int], f: int) -> None:
    expected = slow(features, f)
    assert Simhash(features, f).value == expected
    assert Simhash(list(features.items()), f).value == expected
    assert Simhash(iter(features.items()), f).value == expected
    assert Simhash(((t, float(w)) for t, w in features.items()), f).value == expected
    names = list(features)
    assert Simhash(names, f).value == Simhash(iter(names), f).value
    assert Simhash(names, f).value == slow(dict.fromkeys(names, 1), f)


def test_a_token_behind_a_pair_inherits_its_weight() -> None:
    assert Simhash([("a", 3), "b"]).value == Simhash([("a", 3), ("b", 3)]).value
    assert Simhash(["b", ("a", 3)]).value == Simhash([("b", 1), ("a", 3)]).value


def test_a_negative_weight_only_lowers_the_threshold() -> None:
    every_bit = Simhash([("a", 1), ("b", -1)]).value
    hashed = Simhash(["a"]).value
    assert every_bit == hashed


def test_hash_functions_may_give_integers_or_bytes() -> None:
    assert Simhash(["x"], hashfunc=lambda _: 2**64 + 5).value == 5
    assert Simhash(["x"], f=16, hashfunc=lambda _: b"\x01\x02\x03").value == 0x0203
    assert Simhash(["x"], hashfunc=lambda _: 5).hashfunc_returns_int
    with pytest.raises(ValueError, match="gave 1 bytes: f = 64 needs more"):
        Simhash(["x"], hashfunc=lambda _: b"\x01")


def test_values_are_compared_and_taken_over() -> None:
    assert Simhash(5) == Simhash(5)
    assert Simhash(Simhash(5)) != Simhash(6)
    assert Simhash(5).distance(Simhash(4)) == 1
    assert Simhash("a", log=logging.getLogger("mine")).log.name == "mine"
    assert Simhash("a", f=32).f_bytes == 4
    assert Simhash("Ab-c", reg=r"[a-c]").value == Simhash("abc").value
    with pytest.raises(TypeError):
        hash(Simhash(5))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="f must be a multiple of 8"):
        Simhash("a", f=12)
    with pytest.raises(TypeError, match="Bad parameter with type"):
        Simhash(None)
    with pytest.raises(AssertionError):
        Simhash("a", f=32).distance(Simhash("a"))
    with pytest.raises(AssertionError):
        SimhashIndex([], f=32).get_near_dups(Simhash("a"))


def test_the_index_finds_adds_and_deletes_as_the_package_does() -> None:
    index = SimhashIndex([(str(i), Simhash(text)) for i, text in enumerate(TEXTS)], k=10)
    query = Simhash("How are you i am fine.ablar ablar xyz blar blar blar blar blar thank")
    assert index.offsets == [5 * i for i in range(11)]
    assert {"0", "1"} >= set(index.get_near_dups(query))
    index.add("3", query)
    assert "3" in index.get_near_dups(query)
    index.delete("3", query)
    index.delete("3", query)
    assert "3" not in index.get_near_dups(query)
    value = Simhash(0xABCD_0000_0000_0001)
    small = SimhashIndex([("x,y", value)], k=3)
    assert list(small.get_keys(value)) == ["1:0", "0:1", "0:2", "abcd:3"]
    assert small.bucket["abcd:3"] == {"abcd000000000001,x,y"}
    assert small.bucket_size() == 4
    assert small.get_near_dups(Simhash(0xABCD_0000_0000_0007)) == ["x,y"]
