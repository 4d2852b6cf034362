"""The numbers of a report are those of the run and of the definition, whenever it is written."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import UsageError
from neardup.pipeline.evidence.gather import Clusters
from neardup.pipeline.evidence.pair_texts import MOST_CHARACTERS, pair_of_texts, texts_in
from neardup.pipeline.run.decision import Decision
from neardup.similarity.feature_sets import FeatureSets
from suite import examples, needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS = [f"w{i}" for i in range(12)]
UNIGRAMS = nd.Recipe(ngram=1)


def write(path: Path, texts: list[str], **fields: list[str]) -> Path:
    rows = [
        {"id": f"d{i}", "text": text} | {name: values[i] for name, values in fields.items()}
        for i, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def numbers(page: Path) -> dict[str, Any]:
    match = re.search(r'id="summary">(.*?)</script>', page.read_text())
    assert match is not None
    return dict(json.loads(match[1]))


def jaccard(a: str, b: str) -> float:
    left, right = set(a.split()), set(b.split())
    return len(left & right) / len(left | right) if left and right else 0.0


TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=14)


@settings(max_examples=examples(25))
@given(texts=TEXTS, threshold=st.sampled_from([0.3, 0.55, 0.8, 1.0]))
def test_the_curve_is_the_definitions(
    texts: list[str], threshold: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    result = nd.dedup(texts, similarity=threshold, recipe=UNIGRAMS)
    page = tmp_path_factory.mktemp("report") / "r.html"
    result.report(page)
    record = numbers(page)
    best = [
        max((jaccard(text, earlier) for earlier in texts[:i]), default=0.0)
        for i, text in enumerate(texts)
    ]
    kept = int(result.kept.sum())
    assert (record["read"], record["kept"]) == (len(texts), kept)
    assert dict(map(tuple, record["thresholds"]))[threshold] == kept
    counts = [count for _, count in record["thresholds"]]
    assert counts == sorted(counts)
    for at, count in record["earlier_match"]:
        assert count == sum(score >= at for score in best)
    for at, count in record["thresholds"]:
        if at < threshold:
            again = nd.dedup(texts, similarity=at, recipe=UNIGRAMS)
            assert count <= int(again.kept.sum())


NEWS = [
    "the harbour opened again on monday after three days of storm and heavy rain",
    "the harbour opened again on monday after three days of storm and heavy snow",
    "the council agreed on a budget for the coming year",
    "the harbour opened again on monday after three days of storm and heavy rain",
    "",
]


def test_a_report_written_later_is_the_same(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", NEWS)
    pages = [tmp_path / f"{i}.html" for i in range(2)]
    result = nd.dedup([source], tmp_path / "out.jsonl", id="id", report=pages[0])
    result.report(pages[1], summary=tmp_path / "summary.json")
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert json.loads((tmp_path / "summary.json").read_text()) == numbers(pages[0])
    assert numbers(pages[0])["dropped"] == len(result.duplicates) == 2
    assert numbers(pages[0])["equal"] == numbers(pages[0])["empty"] == 1


def test_sources_are_counted_and_do_not_keep_documents_apart(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", NEWS, site=["a", "b", "a", "b", "b"])
    result = nd.dedup([source], tmp_path / "out.jsonl", id="id")
    result.report(tmp_path / "r.html", source="site")
    assert "Sources are values of site." in (tmp_path / "r.html").read_text()
    assert numbers(tmp_path / "r.html")["dropped"] == 2


@pytest.mark.parametrize("how", [{"distance": 3}, {"policy": "components"}, {"keep": "last"}])
def test_every_kind_of_run_has_a_report(tmp_path: Path, how: dict[str, Any]) -> None:
    result = nd.dedup(NEWS, **how)
    result.report(tmp_path / "r.html")
    assert numbers(tmp_path / "r.html")["kept"] == int(result.kept.sum())
    assert "clusters the" not in (tmp_path / "r.html").read_text()  # all are shown


def test_why_names_both_and_the_words(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", NEWS)
    for result in (
        nd.dedup([source], tmp_path / "out.jsonl", id="id"),
        nd.dedup(NEWS),
    ):
        dropped = result.pairs()["dropped"][0].as_py()
        assert "[- rain-]{+ snow+}" in str(result.why(dropped))
        with pytest.raises(UsageError, match="was not dropped"):
            result.why("nobody")
        kept = result.pairs()["kept"][0].as_py()
        with pytest.raises(
            UsageError, match=rf"was kept, and . dropped for it: ask why\({dropped!r}"
        ):
            result.why(kept)


def test_a_pair_has_the_features_of_both_and_of_each_alone() -> None:
    pair = pair_of_texts(("x", "y"), ("a b c d", "a b e"), UNIGRAMS)
    assert (pair.shared, pair.only, pair.similarity) == (2, (2, 1), 2 / 5)


@pytest.mark.parametrize("texts", [(None, "a b"), ("a b", None), (None, None)])
def test_a_pair_with_an_unknown_text_has_no_features(texts: tuple[str | None, str | None]) -> None:
    pair = pair_of_texts(("x", "y"), texts, UNIGRAMS, similarity=0.9)
    assert (pair.shared, pair.only, pair.similarity) == (0, (0, 0), 0.9)


def test_texts_are_taken_from_all_batches_up_to_the_last_that_has_one() -> None:
    def batches() -> Iterator[Any]:
        for texts in (["a", "b"], ["c", "d"], ["e", "f"]):
            yield SimpleNamespace(texts=pa.array(texts))
        pytest.fail("no text is in this batch")

    assert texts_in(batches(), {1, 2, 5}) == {1: "b", 2: "c", 5: "f"}


@pytest.mark.parametrize("count", [MOST_CHARACTERS, MOST_CHARACTERS + 1])
def test_a_text_that_is_compared_in_part_has_a_note(count: int) -> None:
    (text,) = texts_in(iter([SimpleNamespace(texts=pa.array(["x" * 2 * count]))]), {0}).values()
    assert len(text) == MOST_CHARACTERS + 1
    note = pair_of_texts(("x", "y"), (text[:count], "x"), UNIGRAMS).note
    assert ("Only the first" in note) == (count > MOST_CHARACTERS)


def test_the_longest_common_passage_is_equal_in_both() -> None:
    texts = "a b c one two three four five", "a b c six"
    assert pair_of_texts(("x", "y"), texts, UNIGRAMS).longest == "a b c"
    assert pair_of_texts(("x", "y"), texts[::-1], UNIGRAMS).longest == "a b c"


def test_the_largest_the_loosest_and_random_clusters_are_shown() -> None:
    sizes = [2, 4, 3, 2, 5]
    label = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    similarity = np.repeat([0.9, 0.8, 0.95, 0.7, 0.99], sizes)
    levels: Any = SimpleNamespace(similarity=similarity)
    clusters = Clusters(Decision(label, label, similarity), levels)
    chosen = {name: at.tolist() for name, at in clusters.chosen(2, 7).items()}
    assert (chosen["Largest"], chosen["Loosest"]) == ([4, 1], [3, 1])
    assert clusters.chosen(9, 7)["Random, seed 7"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [2, 3, 32, 33, 70])
def test_a_cluster_is_measured_by_pairs_of_32_documents(count: int) -> None:
    names, offsets = np.zeros(count, np.int64), 2 * np.arange(count + 1)
    features = np.sort(np.stack([np.full(count, 7), np.arange(count) // 2 + 9]), 0).T
    sets = FeatureSets(features.astype(np.uint64).ravel(), offsets, np.zeros((count, 1), np.uint64))
    levels: Any = SimpleNamespace(similarity=np.full(count, 0.9))
    clusters = Clusters(Decision(names, names, levels.similarity), levels)
    measured = clusters.measure(0, sets, "jaccard")
    step = -(-count // 32)
    assert (measured.size, measured.compared) == (count, -(-count // step))
    assert measured.diameter == (0.9 if count == 2 else 1 / 3)


def test_clusters_have_a_row_for_each_document() -> None:
    result = nd.dedup(NEWS)
    assert result.clusters().to_pydict() == {
        "id": [0, 1, 2, 3, 4],
        "cluster": [0, 0, 2, 0, 4],
        "kept": [True, False, True, False, True],
    }
    assert "dropped=2" in repr(result)
    assert "<table" in result._repr_html_()  # what a notebook calls


def test_rethreshold_is_exact_or_refused() -> None:
    result = nd.dedup(NEWS, similarity=0.8)
    assert result.rethreshold(0.8).tolist() == result.kept.tolist()
    with pytest.raises(UsageError, match=r"less than 0\.95 similar"):
        result.rethreshold(0.95)
    with pytest.raises(UsageError, match=r"from 0\.8 up"):
        result.rethreshold(0.7)


def test_a_decision_of_another_threshold_is_refused(tmp_path: Path) -> None:
    from neardup.documents import ReadOptions
    from neardup.pipeline import Inputs, Limits, ReportOptions, report_files
    from neardup.pipeline.run.rule import Choice, Rule

    source, dropped = write(tmp_path / "in.jsonl", NEWS), tmp_path / "dropped.jsonl"
    nd.dedup([source], tmp_path / "out.jsonl", id="id", duplicates=dropped)
    options, read = ReportOptions(str(tmp_path / "r.html")), ReadOptions(id="id")

    def again(similarity: float, read: ReadOptions) -> None:
        files = (str(dropped), None)
        rule = Rule(similarity)
        report_files(files, Inputs([str(source)]), options, rule, Choice(), read, Limits())

    again(0.8, read)
    with pytest.raises(UsageError, match=r"below 0\.99"):
        again(0.99, read)
    with pytest.raises(UsageError, match="which the inputs do not contain"):
        again(0.8, ReadOptions())


@pytest.mark.parametrize("lowest", [0.0, 0.9])
def test_thresholds_that_begin_out_of_range_are_refused(tmp_path: Path, lowest: float) -> None:
    with pytest.raises(UsageError, match=f"report_from is {lowest:g}"):
        nd.dedup(NEWS).report(tmp_path / "r.html", lowest=lowest)


@needs_jit
def test_lines_of_megabytes_are_cut(tmp_path: Path) -> None:
    long = "word " * 200_000 + "end " * 100
    texts = [long, long + "<script>", "x" * 5_000_000, "x" * 5_000_000]
    result = nd.dedup(texts, recipe=UNIGRAMS, similarity=0.6)
    result.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 200_000


@settings(max_examples=examples(12))
@given(old=TEXTS, new=TEXTS, store=st.sampled_from(["features", "text"]))
def test_beside_an_index_its_documents_come_before_and_are_not_counted(
    old: list[str], new: list[str], store: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("against")
    stored_texts = [text for text in old if text.split()]
    with nd.DurableIndex.open(folder / "i", distance=3, recipe=UNIGRAMS, store=store) as index:
        if stored_texts:
            index.add([f"k{i}" for i in range(len(stored_texts))], stored_texts)
        index.commit()
    docs, page = write(folder / "new.jsonl", new), folder / "r.html"
    result = nd.dedup(
        docs, folder / "out.jsonl", similarity=0.55, recipe=UNIGRAMS, id="id",
        against=folder / "i", report=page,
    )  # fmt: skip
    record = numbers(page)
    kept = int(result.kept.sum())
    assert (record["read"], record["kept"]) == (len(new), kept)
    assert dict(map(tuple, record["thresholds"]))[0.55] == kept
    best = [
        max((jaccard(text, earlier) for earlier in [*stored_texts, *new[:i]]), default=0.0)
        for i, text in enumerate(new)
    ]
    for at, count in record["earlier_match"]:
        assert count == sum(score >= at for score in best)


def test_the_report_beside_an_index_shows_its_texts_where_it_keeps_them(tmp_path: Path) -> None:
    with nd.DurableIndex.open(
        tmp_path / "i", distance=3, recipe=nd.Recipe(), store="text"
    ) as index:
        index.add(["known", "apart", "council"], [NEWS[0], "apart from all others", NEWS[2]])
        index.commit()
    docs = write(tmp_path / "new.jsonl", [*NEWS[1:3], "nothing that the index has"])
    page = tmp_path / "r.html"
    options: dict[str, Any] = {"id": "id", "against": tmp_path / "i", "report": page}
    nd.dedup(docs, tmp_path / "out.jsonl", similarity=0.6, **options)
    html = page.read_text()
    assert "<bdi>the index</bdi>" in html
    assert "<bdi>known</bdi>" in html
    assert "<bdi>council</bdi>" in html
    assert "<bdi>apart</bdi>" not in html
    assert "<del> rain</del>" in html
    with pytest.raises(UsageError, match="with an index requires the similarity"):
        nd.dedup(docs, tmp_path / "out.jsonl", distance=3, **options)
