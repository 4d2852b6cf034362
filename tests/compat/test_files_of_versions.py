"""What a release wrote, later ones open and answer in the same way."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

import neardup as nd
from commands import NEARDUP
from compat.files_of_versions import FILES, RECIPE, answers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=sorted(FILES.iterdir()), ids=lambda folder: folder.name)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the files of one release."""
    return shutil.copytree(request.param, tmp_path / "files")


def test_files_of_a_release_answer_as_they_did(files: Path) -> None:
    assert answers(files) == json.loads((files / "expected.json").read_text("utf8"))


def test_stored_fingerprints_are_those_of_today(files: Path) -> None:
    documents = (files / "documents.jsonl").read_text("utf8").splitlines()
    texts = [json.loads(document)["text"] for document in documents]
    for name, recipe in (("fingerprints", nd.Recipe()), ("wide", RECIPE)):
        stored = pq.read_table(files / f"{name}.parquet")["fingerprint"].to_pylist()
        today = nd.fingerprints(texts, recipe)
        empty = np.ma.getmaskarray(today).reshape(len(texts), -1)[:, 0]
        assert [value is None for value in stored] == empty.tolist()
        values = np.array([value for value in stored if value is not None], np.uint64)
        assert np.array_equal(values.reshape(-1, recipe.words), np.ma.getdata(today)[~empty])


@pytest.mark.parametrize("name", ["distance", "similarity", "texts"])
def test_an_index_of_a_release_is_checked_changed_and_compacted(files: Path, name: str) -> None:
    folder = files / f"{name}.index"
    with nd.DurableIndex.open(folder, verify=True) as index:
        before = index.query("one two three")
        assert index.add(["later"], ["one two three"]) == 1
        index.commit()
        index.remove(["later"])
        index.compact()
        assert index.query("one two three") == before
        index.check()
    expected = json.loads((files / "expected.json").read_text("utf8"))
    assert answers(files) == expected


def test_tables_of_a_release_are_shown(files: Path) -> None:
    command = [*NEARDUP, "show", "dropped.csv", "documents.jsonl", "--id", "id"]
    process = subprocess.run(command, cwd=files, capture_output=True, text=True, check=True)
    assert "zh-near" in process.stdout
