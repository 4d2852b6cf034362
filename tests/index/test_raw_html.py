"""Raw HTML that is given from Python is told, once, wherever texts become features."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.cli import app
from neardup.documents.markup import FIRST_TEXTS, FirstTexts, markup_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES: Final = [f"\n <!DOCTYPE html>\n<p>page {i} of a site on tea</p>" for i in range(30)]
TEXTS: Final = [f"page {i} of a site on tea, a < b" for i in range(30)]
TOLD: Final = "% of the first texts begin like HTML, and their markup is compared too"


def one_by_one(call: Callable[[Any, int, str], Any]) -> Callable[[Any, list[str]], None]:
    def run(index: Any, texts: list[str]) -> None:
        for number, text in enumerate(texts):
            call(index, number, text)

    return run


ON_INDEX: Final[dict[str, Callable[[Any, list[str]], Any]]] = {
    "add": lambda index, texts: index.add(list(range(len(texts))), texts),
    "add Arrow": lambda index, texts: index.add(list(range(len(texts))), pa.array(texts)),
    "add_new": lambda index, texts: index.add_new(list(range(len(texts))), texts),
    "query_batch": lambda index, texts: index.query_batch(texts),
    "first_within": lambda index, texts: index.first_within(texts),
    "nearest_batch": lambda index, texts: index.nearest_batch(texts),
    "add one": one_by_one(lambda index, number, text: index.add(number, text)),
    "add_if_new": one_by_one(lambda index, number, text: index.add_if_new(number, text)),
    "offer": one_by_one(lambda index, number, text: index.offer(number, text)),
    "query": one_by_one(lambda index, _, text: index.query(text)),
    "nearest": one_by_one(lambda index, _, text: index.nearest(text)),
}
ON_TEXTS: Final[dict[str, Callable[[list[str]], Any]]] = {
    "fingerprints": nd.fingerprints,
    "similar_pairs": nd.similar_pairs,
    "similar_pairs of a table": lambda texts: nd.similar_pairs(pa.table({"text": texts})),
    "compare": lambda texts: nd.compare(*texts[:2]),
}
KINDS: Final[list[dict[str, Any]]] = [{"similarity": 0.8}, {"distance": 3}]


def metadata_of(run: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        run()
    return [each for each in records if each.category is nd.DoubtfulResultWarning]


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("call", ON_INDEX.values(), ids=ON_INDEX)
def test_an_index_of_raw_html_warns_once(
    call: Callable[[Any, list[str]], Any], kind: dict[str, Any], is_durable: bool, tmp_path: Path
) -> None:
    def made(name: str) -> Any:
        if is_durable:
            return nd.DurableIndex.create(tmp_path / name, recipe=nd.Recipe(), **kind)
        return nd.Index(recipe=nd.Recipe(), **kind)

    with made("pages") as index:
        messages = [metadata_of(lambda: call(index, PAGES)) for _ in range(2)]
        assert [len(each) for each in messages] == [1, 0]
        assert TOLD in str(messages[0][0].message)
        assert messages[0][0].filename == __file__
    with made("texts") as index:
        assert metadata_of(lambda: call(index, TEXTS)) == []


@pytest.mark.parametrize("call", ON_TEXTS.values(), ids=ON_TEXTS)
def test_calls_on_raw_html_warn(call: Callable[[list[str]], Any]) -> None:
    (message,) = metadata_of(lambda: call(PAGES))
    assert f"100{TOLD}" in str(message.message)
    assert message.filename == __file__
    assert metadata_of(lambda: call(TEXTS)) == []


def test_the_command_line_tells_in_its_summary_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pages").mkdir()
    for number, page in enumerate(PAGES):
        (tmp_path / "pages" / f"{number}.html").write_text(page, "utf-8")
    app(["index", "create", f"{tmp_path}/seen"], standalone_mode=False)
    names = [f"{tmp_path}/seen", f"{tmp_path}/pages"]
    assert metadata_of(lambda: app(["index", "add", *names, "--extract", "none"],
                               standalone_mode=False)) == []  # fmt: skip
    assert "30" in capsys.readouterr().err


@given(st.lists(st.integers(0, 12), max_size=8), st.data())
def test_the_first_texts_are_counted_however_they_come(sizes: list[int], data: Any) -> None:
    texts = data.draw(st.lists(st.sampled_from(["", "tea", "é", "<p>tea", "\t<DIV x>", "<3"]),
                               min_size=sum(sizes), max_size=sum(sizes)))  # fmt: skip
    first, at, seen, warned = FirstTexts(), 0, 0, 0
    for size in sizes:
        part = texts[at : at + size]
        at += size
        was_coming = seen < FIRST_TEXTS
        seen += size
        expected = [x for x in texts[:seen] if x[1:2] == "p" or "DIV" in x]
        is_due = was_coming and seen >= FIRST_TEXTS and 2 * len(expected) > seen
        if size == 1:
            warned = len(metadata_of(lambda part=part: first.see(part[0])))  # type: ignore[misc]
        else:
            chunk = pa.array(["x", *part], pa.large_string()).slice(1)
            warned = len(metadata_of(lambda chunk=chunk: first.see_array(chunk)))  # type: ignore[misc]
        assert warned == is_due
        assert first.are_coming == (seen < FIRST_TEXTS)


def test_nulls_and_halves_are_no_html() -> None:
    chunk = pa.array([None, "<p>a", "b"], pa.large_string())
    assert markup_in(chunk.drop_null(), 9) is None
    assert markup_in(chunk, 2) is None
    assert markup_in(pa.array([], pa.large_string()), 9) is None
    assert markup_in(chunk.slice(1, 1), 9) is not None
