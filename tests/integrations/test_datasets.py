"""Datasets of Hugging Face: splits together, rows by `select`, iterable ones against an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import neardup as nd
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

hf = pytest.importorskip("datasets")

from neardup.integrations.datasets import decontaminate, dedup  # noqa: E402

pytestmark = needs_jit

WORDS = [f"w{number}" for number in range(40)]
TEXTS = [" ".join([*WORDS[at % 11 :], str(at % 3), "end"]) for at in range(90)]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(hf.config, "HF_DATASETS_CACHE", tmp_path)


@pytest.fixture
def dataset() -> Any:
    """Ninety documents with a column that no call names."""
    rows = {
        "id": list(range(90)),
        "text": TEXTS,
        "embedding": [[0.5, float(at)] for at in range(90)],
    }
    return hf.Dataset.from_dict(rows)


def test_rows_that_are_kept_are_those_of_dedup(dataset: Any) -> None:
    kept, result = dedup(dataset)
    assert kept["id"][:] == np.flatnonzero(nd.dedup(TEXTS).kept).tolist()
    assert kept.column_names == dataset.column_names
    assert result.summary.read == 90


def test_rows_in_another_order_are_taken_as_they_come(dataset: Any) -> None:
    chosen = dataset.shuffle(seed=3).select(range(0, 90, 2))
    kept, _ = dedup(chosen)
    ids = chosen["id"][:]
    want = nd.dedup([TEXTS[at] for at in ids]).kept
    assert kept["id"][:] == [at for at, is_kept in zip(ids, want, strict=True) if is_kept]


@pytest.mark.parametrize("order", [None, ("test", "train", "extra"), ("extra", "train", "test")])
def test_splits_are_compared_with_each_other(dataset: Any, order: Any) -> None:
    places = {"extra": range(60, 90), "train": range(60), "test": range(30, 70)}
    splits = hf.DatasetDict({name: dataset.select(rows) for name, rows in places.items()})
    kept, result = dedup(splits, order=order)
    assert list(kept) == ["extra", "train", "test"]
    first = order or ("test", "train", "extra")
    rows = [at for name in first for at in places[name]]
    want = [at for at, is_kept in zip(rows, nd.dedup([TEXTS[x] for x in rows]).kept, strict=True)
            if is_kept]  # fmt: skip
    assert [at for name in first for at in kept[name]["id"][:]] == want
    assert result.summary.read == len(rows)


@pytest.mark.parametrize("identity", [None, "id"])
def test_an_iterable_dataset_is_compared_with_an_index(
    dataset: Any, identity: str | None, tmp_path: Path
) -> None:
    with nd.DurableIndex.open(tmp_path / "seen", similarity=0.8, recipe=nd.Recipe()) as index:
        options = {} if identity is None else {"id": identity}
        stream, result = dedup(dataset.to_iterable_dataset(), index=index, **options)
        assert result is None
        first = [row["id"] for row in stream]
        assert first == [row["id"] for row in stream], "what is read again is not its own duplicate"
        index.commit()
    assert first == np.flatnonzero(nd.dedup(TEXTS, similarity=0.8).kept).tolist()


def test_texts_without_words_pass_and_streams_share_an_index() -> None:
    index = nd.Index(similarity=0.7, recipe=nd.Recipe())
    texts = ["a b c d e f g h", "", None, "...", "A b c d e f g h"]
    stream, _ = dedup(hf.Dataset.from_dict({"text": texts}).to_iterable_dataset(), index=index)
    assert [row["text"] for row in stream] == texts[:4]
    later = hf.Dataset.from_dict({"text": ["a b c d e f g h i", "q w e"], "title": [None, "r"]})
    for columns, kept in (("text", ["q w e"]), (["title", "text"], ["a b c d e f g h i", "q w e"])):
        stream, _ = dedup(later.to_iterable_dataset(), columns, index=index)
        assert [row["text"] for row in stream] == kept
    assert len(index) == 3


@pytest.mark.parametrize("form", ["texts", "dataset", "splits"])
def test_documents_that_hold_a_question_are_left_out(dataset: Any, form: str) -> None:
    quiz = ["w3 w4 w5 w6 w7 w8 w9 w10", "nobody asks any of this", "w0 w1 w2 w3"]
    questions = hf.Dataset.from_dict({"question": quiz})
    against = {
        "texts": quiz, "dataset": questions,
        "splits": hf.DatasetDict(dev=questions.select([0]), test=questions.select([1, 2])),
    }[form]  # fmt: skip
    shuffled = dataset.shuffle(seed=1)
    clean, table = decontaminate(
        shuffled, against=against, column="text", against_column="question", run=4, share=0.9
    )
    want = nd.decontaminate(shuffled["text"][:], quiz, run=4, share=0.9)
    assert table.drop_columns("split") == want
    splits = ["dev", "test", "test"] if form == "splits" else [None] * 3
    assert table["split"].to_pylist() == [splits[at] for at in want["question"].to_pylist()]
    leaks = set(want["document"].to_pylist())
    assert 0 < len(leaks) < 90
    assert clean["id"][:] == [at for row, at in enumerate(shuffled["id"][:]) if row not in leaks]
    assert clean.column_names == dataset.column_names


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda ds: ds, {"column": "body"}, "no column 'body'"),
        (lambda ds: ds, {"order": ["train"]}, "order is for the splits"),
        (lambda ds: hf.DatasetDict(train=ds), {"order": ["test"]}, "name each split once: train"),
        (lambda ds: ds.to_iterable_dataset(), {}, "pass the index"),
        (lambda _: TEXTS, {}, "a list is not a dataset"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    dataset: Any, make: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(nd.UsageError, match=message):
        dedup(make(dataset), **options)
