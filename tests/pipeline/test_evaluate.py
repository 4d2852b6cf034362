"""An evaluation agrees with the definitions, whatever the labels are."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from commands import Here
from neardup.documents import ReadOptions
from neardup.errors import DataError, UsageError
from neardup.pipeline.evaluation.evaluate import EvaluationOptions, evaluate_files
from neardup.pipeline.run.rule import Limits
from suite import examples
from test_page import HOSTILE, OUTSIDE, Tags

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.pipeline.evaluation.scorecard import Evaluation

UNIGRAMS = nd.Recipe(ngram=1)
WORDS = [f"w{i}" for i in range(7)]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=2, max_size=9)


def write(path: Path, texts: list[str]) -> Path:
    rows = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    path.write_text("".join(row + "\n" for row in rows))
    return path


def evaluated(path: Path, labels: Path, **settings: Any) -> Evaluation:
    options = EvaluationOptions(str(labels), [("own", UNIGRAMS)], lowest=0.3, **settings)
    return evaluate_files([str(path)], options, ReadOptions(id="id"), Limits())


def jaccard(a: str, b: str) -> float:
    left, right = set(a.split()), set(b.split())
    return len(left & right) / len(left | right) if left and right else 0.0


def share(hits: int, of: int) -> float:
    return hits / of if of else 1.0


def pairs_within(values: Any, distance: int) -> list[tuple[int, int]]:
    table = nd.pairs(values, distance)
    return list(zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True))


def rand(true: list[int], labels: list[int]) -> float:
    """The adjusted Rand index by counting pairs."""
    pairs = list(combinations(range(len(true)), 2))
    same = [true[a] == true[b] for a, b in pairs]
    result = [labels[a] == labels[b] for a, b in pairs]
    expected = sum(same) * sum(result) / max(1, len(pairs))
    most = (sum(same) + sum(result)) / 2
    both = sum(a and b for a, b in zip(same, result, strict=True))
    return (both - expected) / (most - expected) if most > expected else 1.0


def b_cubed(true: list[int], labels: list[int]) -> float:
    """B-cubed F1 by looking at each document."""
    both, t, m = Counter(zip(true, labels, strict=True)), Counter(true), Counter(labels)
    each = list(zip(true, labels, strict=True))
    precision = sum(both[a, b] / m[b] for a, b in each) / len(each)
    recall = sum(both[a, b] / t[a] for a, b in each) / len(each)
    return 2 * precision * recall / (precision + recall)


@settings(max_examples=examples(25))
@given(texts=TEXTS, data=st.data(), policy=st.sampled_from(["greedy", "components"]))
def test_clusters_are_judged_by_the_definitions(
    texts: list[str], data: st.DataObject, policy: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, n = tmp_path_factory.mktemp("evaluate"), len(texts)
    true = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    labels = folder / "labels.csv"
    labels.write_text("id,cluster\n" + "".join(f"d{i},c{c}\n" for i, c in enumerate(true)))
    evaluation = evaluated(write(folder / "docs.jsonl", texts), labels, policy=policy)
    pairs = list(combinations(range(n), 2))
    same = {pair for pair in pairs if true[pair[0]] == true[pair[1]]}
    assert evaluation.pairs == len(same)
    (scores,) = evaluation.scores
    for point in scores.by_similarity:
        near = {p for p in pairs if jaccard(texts[p[0]], texts[p[1]]) >= point.at - 1e-9}
        hits = len(near & same)
        assert point.found == len(near)
        assert point.precision[0] == pytest.approx(share(hits, len(near)))
        assert point.recall[0] == pytest.approx(share(hits, len(same)))
        assert point.f1[0] == pytest.approx(share(2 * hits, len(near) + len(same)))
        for value, (low, high) in (point.precision, point.recall, point.f1):
            assert low <= value <= high
        if point.ari is None or point.b_cubed is None:
            continue
        labels_of_run = nd.dedup(
            texts, similarity=point.at, recipe=UNIGRAMS, policy=policy
        ).cluster.tolist()
        assert point.ari[0] == pytest.approx(rand(true, labels_of_run))
        assert point.b_cubed[0] == pytest.approx(b_cubed(true, labels_of_run))
    values = nd.fingerprints(texts, UNIGRAMS)
    for point in scores.by_distance:
        near = set(pairs_within(values, int(point.at)))
        assert point.found == len(near)
        hits = len(near & same)
        assert point.recall[0] == pytest.approx(share(hits, len(same)))
    assert sum(true + other for _, true, other in scores.histogram) == scores.by_similarity[0].found


DOCS = ["a b c d", "a b c e", "a b c d", "x y z", "x y w", "q r s t"]


def test_labelled_pairs_alone_count_where_some_are_different(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs.jsonl", DOCS)
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "id1,id2,label\nd0,d2,0\nd0,d2,1\nd1,d0,1\nd3,d4,0\nd0,d5,0\nd5,d4,1\nd4,d5,unsure\nd0,dx,1\n"
    )
    evaluation = evaluated(docs, labels)
    assert (evaluation.pairs, evaluation.unknown) == (2, 1)
    assert "only the 4 labelled pairs count" in evaluation.world
    assert [level for level, *_ in evaluation.scores[0].histogram][-1] == 1
    at = {point.at: point for point in evaluation.scores[0].by_similarity}
    assert (at[0.5].found, at[0.5].precision[0], at[0.5].recall[0]) == (3, pytest.approx(2 / 3), 1)
    assert (at[0.6].found, at[0.6].precision[0], at[0.6].recall[0]) == (2, 1, 1)
    assert (at[0.7].found, at[0.7].precision[0], at[0.7].recall[0]) == (1, 1, 0.5)
    assert at[0.7].ari is None
    lines = [line.split() for line in str(evaluation).splitlines()]
    heads = [at for at, line in enumerate(lines) if line[:1] in [["similarity"], ["distance"]]]
    by_similarity, by_distance = lines[heads[0] + 1 : heads[1]], lines[heads[1] + 1 : -1]
    assert all(line[-1] != "best" for line in by_distance)  # a threshold is
    assert [line[0] for line in by_similarity] == [f"{x / 100:g}" for x in range(30, 101, 5)]
    assert [line[0] for line in by_distance] == [str(x) for x in range(0, 17, 3)]
    assert {tuple(line[8:10]) for line in by_similarity + by_distance} == {("-", "-")}


def test_pairs_without_a_label_are_duplicates_and_all_others_different(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs.jsonl", DOCS)
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id1": "d2", "id2": "d0"}\n{"id1": "d0", "id2": "d1"}\n')
    at = {point.at: point for point in evaluated(docs, labels).scores[0].by_similarity}
    assert (at[0.6].found, at[0.6].precision[0], at[0.6].recall[0]) == (3, pytest.approx(2 / 3), 1)
    assert at[1.0].ari is not None


def test_documents_without_a_cluster_are_left_out(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs.jsonl", DOCS)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,cluster\nd0,1\nd1,1\nd3,2\nd4,2\n")
    evaluation = evaluated(docs, labels)
    assert (evaluation.documents, evaluation.labelled, evaluation.pairs) == (6, 4, 2)
    assert evaluation.scores[0].by_similarity[0].found == 2
    best = evaluation.scores[0].best
    assert best is not None
    assert best.f1[0] == 1


def test_the_command_compares_recipes_and_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    write(tmp_path / "docs.jsonl", [*DOCS, HOSTILE])
    (tmp_path / "labels.csv").write_text("id,cluster\nd0,1\nd1,1\nd2,1\nd3,2\nd4,2\nd5,3\n")
    run = ["evaluate", "--docs", "docs.jsonl", "--labels", "labels.csv", "--ngram", "1"]
    out, _ = here(*run, "--also", "chars:3", "--report", "page.html", "--json")
    titles = [scores["title"] for scores in json.loads(out)["scores"]]
    assert titles == ["words, 1, 64 bits", "chars, 3, 64 bits"]
    page = (tmp_path / "page.html").read_text()
    assert Tags(page).open == []
    assert not OUTSIDE.search(page)
    out, _ = here(*run)
    assert "best F1 " in out
    head, row = (next(x for x in out.splitlines() if x.startswith(y)) for y in ("similarity", "0."))
    shares = [match.start() for match in re.finditer(r"\d\.\d{3} \(", row)]
    assert [head.index(name) for name in ("precision", "recall", "F1")] == shares
    _, err = here(*run, "--also", "chars", code=2)
    assert "use tokens and n, such as chars:5" in err


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ("id,cluster\nx,1\n", UsageError, "labels none of the documents"),
        ("id,cluster\n", DataError, "has no labels"),
        (
            "id,cluster\nd0,x\nd1,x\nd0,x\nd0,y\nd2,y\n",
            DataError,
            "labels.csv:5: 'd0' is in cluster 'y' here and in 'x' above; keep one of the rows",
        ),
        ("id1,id2,label\nd0,d1,perhaps\n", DataError, "the label is 'perhaps'"),
        ("one,two\nd0,d1\n", DataError, "names no pairs"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    labels: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / "labels.csv").write_text(labels)
    with pytest.raises(error, match=message):
        evaluated(write(tmp_path / "docs.jsonl", DOCS), tmp_path / "labels.csv")
    write(tmp_path / "twice.jsonl", DOCS)
    text = (tmp_path / "twice.jsonl").read_text().replace('"d1"', '"d0"')
    (tmp_path / "twice.jsonl").write_text(text)
    with pytest.raises(UsageError, match=r"the same id, 'd0': .* with --id"):
        evaluated(tmp_path / "twice.jsonl", tmp_path / "labels.csv")
    with pytest.raises(UsageError, match="there are no documents to evaluate"):
        evaluated(write(tmp_path / "empty.jsonl", []), tmp_path / "labels.csv")
