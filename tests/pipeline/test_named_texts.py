"""Texts are found by the names that result files give them."""

from __future__ import annotations

import gzip
import io
import os
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.documents import ReadOptions
from neardup.errors import DataError, FileError, UsageError
from neardup.pipeline.evidence.named_texts import fields_of, read_document, texts_of
from neardup.pipeline.evidence.removed import removed_documents

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = b'{"text":"one","id":"a"}\n\n{"text":7,"id":"b"}\n{"text":"four","id":"d"}\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "news.jsonl").write_bytes(RECORDS)
    (tmp_path / "news.jsonl.gz").write_bytes(gzip.compress(RECORDS))
    (tmp_path / "plain.txt").write_text("żółw", "utf-8")
    (tmp_path / "plain.txt.gz").write_bytes(gzip.compress("żółw".encode()))
    (tmp_path / "12:30").write_text("a file whose name is like an address", "utf-8")
    pq.write_table(pa.table({"text": ["x", "y"]}), tmp_path / "news.parquet")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_document_is_a_file_or_a_record() -> None:
    for name, text in {
        "plain.txt": "żółw",
        "plain.txt.gz": "żółw",
        "news.jsonl:1": "one",
        "news.jsonl.gz:4": "four",
        "news.parquet:2": "y",
        "12:30": "a file whose name is like an address",
    }.items():
        assert read_document(name) == text
    assert read_document("news.jsonl:4", ReadOptions(("id",))) == "d"


def test_a_pipe_is_a_document_too(here: Path) -> None:
    path = here / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("from a pipe",))
    writer.start()
    assert read_document(str(path)) == "from a pipe"
    writer.join()


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("news.jsonl", UsageError, "news.jsonl holds records: name one, such as news.jsonl:1"),
        ("news.jsonl:9", DataError, "news.jsonl: no document at 9"),
        (f"news.jsonl:{2**63}", FileError, f"cannot read news.jsonl:{2**63}: No such file"),
        ("news.jsonl:2", DataError, "news.jsonl: no document at 2"),
        ("news.jsonl:3", DataError, "news.jsonl:3: text is a number, not a string"),
        ("no.jsonl:1", FileError, "cannot read no.jsonl: No such file"),
        ("no.txt", FileError, "cannot read no.txt: No such file"),
        ("broken.txt", DataError, "broken.txt:1: "),
    ],
)
def test_a_name_without_a_text_is_refused(
    here: Path, name: str, kind: type[Exception], says: str
) -> None:
    (here / "broken.txt").write_bytes(b"ab\x81\xff\x00")
    with pytest.raises(kind) as error:
        read_document(name)
    assert str(error.value).startswith(says)


@pytest.mark.usefixtures("here")
def test_texts_are_found_by_address_by_base_name_and_by_id() -> None:
    names = ["news.jsonl:1", "news.jsonl:4", "news.jsonl:2", "other"]
    expected = {"news.jsonl:1": "one", "news.jsonl:4": "four"}
    assert texts_of(names, ["news.jsonl"], ReadOptions()) == expected
    moved = ["/elsewhere/news.jsonl:1"]
    assert texts_of(moved, ["news.jsonl"], ReadOptions()) == {moved[0]: "one"}
    assert texts_of(["d", "b"], ["news.jsonl.gz"], ReadOptions(id="id")) == {"d": "four"}
    assert texts_of(["plain.txt"], ["plain.txt"], ReadOptions()) == {"plain.txt": "żółw"}


def test_two_files_of_one_base_name_are_not_mixed_up(here: Path) -> None:
    for folder in ("a", "b"):
        (here / folder).mkdir()
        (here / folder / "n.jsonl").write_text(f'{{"text":"of {folder}"}}\n')
    names = ["a/n.jsonl:1", "b/n.jsonl:1"]
    paths = ["a/n.jsonl", "b/n.jsonl"]
    assert texts_of(names, paths, ReadOptions()) == dict(zip(names, ["of a", "of b"], strict=True))
    (here / "n.jsonl").write_text('{"text":"neither"}\n')
    assert texts_of(names, ["n.jsonl"], ReadOptions()) == {}


def test_an_input_that_no_name_is_of_does_not_answer_for_its_namesake(here: Path) -> None:
    paths = ["in/2023/n.jsonl", "in/2024/n.jsonl"]
    for path in paths:
        (here / path).parent.mkdir(parents=True)
        (here / path).write_text(f'{{"text":"of {path}"}}\n')
    asked, texts = "in/2024/n.jsonl:1", {"in/2024/n.jsonl:1": "of in/2024/n.jsonl"}
    assert texts_of([asked], paths, ReadOptions()) == texts
    values = fields_of([asked], ["text"], paths, ReadOptions())
    assert values == {asked: ("of in/2024/n.jsonl",)}
    absolute = [str(here / path) for path in paths]
    assert texts_of([asked], absolute, ReadOptions()) == texts  # called from another folder
    assert texts_of(["n.jsonl:1"], paths, ReadOptions()) == {}  # either may be it
    both = ["in/2024/n.jsonl:1", "old/2024/n.jsonl:1"]
    assert texts_of(both, paths[1:], ReadOptions()) == texts


def test_the_least_similar_come_first_and_what_is_not_there_is_none(here: Path) -> None:
    rows = """\
dropped,kept,distance,similarity,cluster
news.jsonl:4,news.jsonl:1,5,0.9,news.jsonl:1
news.jsonl:1,stored-id,9,0.8,stored-id
news.jsonl:4,news.jsonl:1,7,0.95,news.jsonl:1
"""
    (here / "dropped.csv").write_text(rows)
    documents = removed_documents("dropped.csv", most=2)
    assert documents.total == 3
    assert [(x.similarity, x.distance, x.texts) for x in documents.documents] == [
        (0.8, 9, (None, "one")), (0.9, 5, ("one", "four")),
    ]  # fmt: skip
    assert documents.documents[0].diff is None
    assert documents.documents[1].to_dict()["runs"] == [["removed", "one"], ["added", "four"]]


def test_without_similarities_those_furthest_apart_come_first(here: Path) -> None:
    (here / "d.tsv").write_text("dropped\tkept\tdistance\tsimilarity\na\td\t1\t\nd\ta\t3\t\n")
    documents = removed_documents("d.tsv", ["news.jsonl"], ReadOptions(id="id"))
    assert [(x.distance, x.similarity) for x in documents.documents] == [(3, None), (1, None)]


def test_another_file_is_no_duplicates_file(here: Path) -> None:
    with pytest.raises(DataError, match=r"news.jsonl is not a file that dedup --duplicates wrote"):
        removed_documents("news.jsonl")
    row = {"dropped": "a", "kept": "b", "distance": float("inf"), "similarity": 1.0}
    pq.write_table(pa.Table.from_pylist([row]), here / "d.parquet")
    with pytest.raises(DataError, match="the distance is inf: use a whole number"):
        removed_documents("d.parquet")
    (here / "d.jsonl").write_text('{"dropped":"a","kept":"b","distance":1,"similarity":null}\n')
    with pytest.raises(UsageError, match=r"names no files that are here: pass the inputs"):
        removed_documents("d.jsonl")


def test_an_input_that_is_no_text_is_refused_with_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("für alle".encode("latin-1"))))
    with pytest.raises(DataError, match="the standard input: not UTF-8 at byte 2; convert"):
        read_document("-")
