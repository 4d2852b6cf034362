"""Indexes and pairs of HTML: `extract` compares what the same texts, taken out first, compare."""

from __future__ import annotations

import pickle
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import neardup as nd
from neardup.documents.markup import visible_text
from neardup.errors import UsageError
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("resiliparse")

pytestmark = needs_jit

KINDS: list[dict[str, Any]] = [{"similarity": 0.6}, {"distance": 12}]


def pages() -> list[str]:
    """Articles under one long menu; the second half repeats the first with a word changed."""
    draw = random.Random(2)
    menu = "".join(f"<li><a href='/{at}'>Item {at} of the menu</a></li>" for at in range(40))
    bodies = [" ".join(f"w{draw.randrange(400)}" for _ in range(50)) for _ in range(12)]
    bodies += [body.replace(" ", " changed ", 1) for body in bodies]
    result = [
        f"<html><body><nav><ul>{menu}</ul></nav><main><article><p>{body}</p></article></main>"
        "<footer>All rights reserved by the owner of this site</footer></body></html>"
        for body in bodies
    ]
    return [*result, "a plain text, 1 < 2 as ever", ""]


def taken_out(extract: str) -> list[str]:
    """What is compared of each page, by hand."""
    function = nd.main_text if extract == "main" else visible_text
    return [function(page) if "<body>" in page else page for page in pages()]


def answers(index: Any, texts: list[str]) -> list[Any]:
    """What an index says to texts, asked in every way."""
    ids = list(range(100, 100 + len(texts)))
    return [
        [index.query(text) for text in texts],
        index.query_batch(pa.array(texts)).to_pydict(),
        index.query_batch(texts).to_pydict(),
        index.nearest_batch(texts, 2).to_pydict(),
        [index.add_if_new(at, text) for at, text in zip(ids[:5], texts, strict=False)],
        index.add_new(ids[5:], texts[5:]).to_pydict(),
    ]


@pytest.mark.parametrize("extract", ["main", "all"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_index_compares_what_is_taken_out(
    kind: dict[str, Any], extract: str, tmp_path: Path
) -> None:
    html, plain = pages(), taken_out(extract)
    assert nd.main_text(plain[-2]) == plain[-2]
    recipe, first = nd.Recipe(), list(range(12))
    reference = nd.Index(recipe=recipe, **kind)
    reference.add(first, plain[:12])
    memory = nd.Index(recipe=recipe, extract=extract, **kind)
    memory.add(first, html[:12])
    memory.save(tmp_path / "saved")
    with nd.DurableIndex.open(tmp_path / "seen", recipe=recipe, extract=extract, **kind) as index:
        index.add(first, html[:12])
    want = answers(reference, plain)
    assert want[0][12], "a changed copy is found"
    assert answers(pickle.loads(pickle.dumps(memory)), html) == want  # noqa: S301
    assert answers(nd.Index.load(tmp_path / "saved"), html) == want
    assert answers(memory, html) == want
    with nd.DurableIndex.open(tmp_path / "seen") as reopened:
        assert answers(reopened, html) == want
    with pytest.raises(nd.UsageError, match=f"extract is 'none', .* made with '{extract}'"):
        nd.DurableIndex.open(tmp_path / "seen", extract="none")


def test_a_folder_keeps_what_is_compared(tmp_path: Path) -> None:
    page, recipe = pages()[0], nd.Recipe()
    for store in ("text", "features"):
        with nd.DurableIndex.open(
            tmp_path / store, distance=3, recipe=recipe, store=store, extract="main"
        ) as index:
            index.add("a", page)
            want = nd.main_text(page)
            if store == "features":
                want = sorted(nd.Index(similarity=0.5, recipe=recipe).sets_of([want]).features)
            assert (index.content("a") if store == "text" else sorted(index.content("a"))) == want


@pytest.mark.parametrize("extract", [None, "none", "all"])
def test_a_folder_is_opened_again_with_its_own_extract_alone(
    tmp_path: Path, extract: str | None
) -> None:
    options: dict[str, Any] = {"distance": 3, "recipe": nd.Recipe()}
    nd.DurableIndex.open(tmp_path / "i", extract=extract, **options).close()
    for own in (None, extract or "none"):
        nd.DurableIndex.open(tmp_path / "i", extract=own).close()
    with pytest.raises(UsageError, match="extract is 'main'"):
        nd.DurableIndex.open(tmp_path / "i", extract="main")


@pytest.mark.parametrize("extract", ["main", "all"])
def test_pairs_are_those_of_what_is_taken_out(extract: str) -> None:
    html, plain = pages(), taken_out(extract)
    assert nd.similar_pairs(html, extract=extract) == nd.similar_pairs(plain)
    assert nd.similar_pairs(html[:9], html[9:], extract=extract) == nd.similar_pairs(
        plain[:9], plain[9:]
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda extract: nd.Index(similarity=0.8, recipe=nd.Recipe(), extract=extract),
        lambda extract: nd.Index(extract=extract),
        lambda extract: nd.similar_pairs(["a"], extract=extract),
    ],
)
def test_another_word_is_refused(call: Any) -> None:
    with pytest.raises(nd.UsageError, match="extract is 'body': use main, trafilatura, all"):
        call("body")
