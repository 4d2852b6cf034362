"""The room that is counted for a long text is enough for it, and not much more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import neardup as nd
from neardup.features.text import one_block
from neardup.features.tokens import cutting
from neardup.kernels.features.capacity import counted_capacity
from neardup.kernels.features.tokenise import made_tokens, scratch_tokens, tokenise
from neardup.kernels.jit import kernel
from strategies import normalisation_texts, texts

FORMS = st.sampled_from(["NFKC", "NFC", "none"])


@kernel
def cut_in_room(data: Any, cut: Any, out: Any) -> int:
    """Cut in room that is counted; says how much that is, and what is used of it."""
    capacity = counted_capacity(data, np.int64(0), data.size, cut)
    tokens = made_tokens(capacity)
    count = tokenise(data, np.int64(0), data.size, cut, tokens)
    plenty = scratch_tokens(data.size)
    same = tokenise(data, np.int64(0), data.size, cut, plenty) == count
    for i in range(count + 1):
        same = same and tokens.starts[i] == plenty.starts[i]
    for i in range(tokens.starts[count]):
        same = same and tokens.buffer[i] == plenty.buffer[i]
    out[0], out[1], out[2], out[3] = capacity.tokens, count, capacity.nbytes, tokens.starts[count]
    out[4] = capacity.points
    return same


def used(text: str, form: str = "NFKC", *, chars: bool = False, fold: bool = True) -> Any:
    """Tokens counted and there, bytes counted and there, code points counted."""
    recipe = nd.Recipe(normalize=form, casefold=fold)
    out = np.zeros(5, np.int64)
    assert cut_in_room(one_block(text).data, cutting(recipe, chars, 3), out)
    return out.tolist()


@given(texts() | normalisation_texts(), FORMS, st.booleans(), st.booleans())
@example("\ufdfa" * 9, "NFKC", True, True)
@example("\u1fb7\u0345" * 40, "NFC", False, True)
@example("a" * 70 + "\u0301" * 70, "NFKC", False, False)
@example("e\u0301" * 40 + "\u1100\u1161\u11a8" * 40, "NFC", True, True)
def test_what_is_counted_is_enough(text: str, form: str, chars: bool, fold: bool) -> None:
    tokens, features, nbytes, written, _ = used(text, form, chars=chars, fold=fold)
    assert features <= tokens
    assert written <= nbytes


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("a long text of plain words " * 20, 1.1),
        ("größere Wörter, überall " * 20, 1.1),
        ("漢字後來乾坤" * 20, 1.1),
        ("длинный текст из слов " * 20, 1.1),
        ("cafe\u0301 re\u0301sume\u0301 " * 20, 12),
    ],
)
def test_what_is_counted_is_little_more_than_what_is_used(text: str, most: float) -> None:
    tokens, features, nbytes, written, points = used(text)
    assert tokens <= most * features
    assert nbytes <= (most + 4) * written
    assert points < 20
