"""Keywords by the files of a cppjieba program are those that the program gives."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import neardup as nd
from cppjieba_files import CONTENTS
from neardup.compat.presets import fingerprint_features
from neardup.errors import DataError, FileError, RecipeError
from neardup.features.keyword_weights import FILES, cppjieba_keywords, load_folder

if TYPE_CHECKING:
    from pathlib import Path

MEAN = 6.208333333333333
# What cppjieba 5.0, as nodejieba 3.5.8 carries it, printed for them, compiled by GCC.
PRINTED = {
    "我来到北京清华大学，他来到了网易杭研大厦。": [("清华大学", 7.25), ("北京", 4.5)],  # noqa: RUF001
    "The the c++ B超 3.5% v2.0 2v 1.2.3 ### x9y 9x the The": [
        ("c++", 9.0), ("1.2.3", MEAN), ("3.5", MEAN), ("v2", MEAN), ("B超", MEAN),
    ],
    "杭州研大学 北京\t北京\n清华清华": [
        ("清华", 2 * MEAN), ("北京", 9.0), ("大学", MEAN), ("杭州", MEAN),
    ],
    "😀é杭研İ 한국어 c+ c++c": [("c++", 9.0)],
    "aa bb cc dd ee ff gg hh ii jj aa bb": [
        ("aa", 2 * MEAN), ("bb", 2 * MEAN), ("dd", MEAN), ("ee", MEAN), ("cc", MEAN),
    ],
    "": [],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in CONTENTS.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize("text", PRINTED)
def test_keywords_are_those_of_the_program_in_its_order(folder: Path, text: str) -> None:
    assert cppjieba_keywords(text, 5, load_folder(folder)) == PRINTED[text]


def test_the_preset_takes_a_folder_and_its_recipe_names_it(folder: Path) -> None:
    recipe = nd.preset("yanyiwu", dictionary=folder)
    assert recipe == nd.preset("yanyiwu", dictionary=str(folder))
    assert nd.Recipe.from_json(recipe.to_json()) == recipe
    for text, keywords in PRINTED.items():
        assert nd.fingerprint(text, recipe) == fingerprint_features(recipe, keywords)
    (folder / "stop_words.utf8").write_text("the\n", "utf-8")
    assert nd.preset("yanyiwu", dictionary=folder).digest != recipe.digest


def test_a_folder_that_was_not_read_is_told(folder: Path) -> None:
    recipe = nd.preset("yanyiwu", dictionary=folder)
    other = recipe.to_json().replace("cppjieba:", "cppjieba:0")
    with pytest.raises(RecipeError, match=r"read it first, by .* or --dictionary FOLDER"):
        nd.fingerprint("北京", nd.Recipe.from_json(other))
    with pytest.raises(RecipeError, match=r"dictionary is .*the preset go-jieba takes only"):
        nd.preset("go-jieba", dictionary=folder)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_cppjieba_would_not_read_is_refused(folder: Path, name: str) -> None:
    if name != "stop_words.utf8":
        (folder / name).write_text("not such a file\n", "utf-8")
        with pytest.raises(DataError, match="not as cppjieba reads"):
            load_folder(folder)
    (folder / name).unlink()
    with pytest.raises(FileError, match=f"cannot read .*{name}"):
        load_folder(folder)
    shutil.rmtree(folder)
    with pytest.raises(FileError, match="cannot read"):
        load_folder(folder)
