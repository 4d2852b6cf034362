"""A question is a frozen value, a file that says all of it, and one rule for what a call names."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.fingerprinting.question import DEFAULT_QUESTION, question_for

if TYPE_CHECKING:
    from pathlib import Path

recipes = st.builds(
    nd.Recipe,
    tokens=st.sampled_from(["words", "regex:[a-z\\\\]+\"'", "regex:[😀é\x7f]"]),
    ngram=st.integers(1, 9),
    casefold=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    stopwords=st.none()
    | st.lists(st.text("ab\"'\\\n\x01\x7f😀é", min_size=1).map("w{}".format), min_size=1).map(
        tuple
    ),
)
questions = st.builds(
    nd.Question,
    recipes,
    st.floats(0, 1, exclude_min=True),
    st.sampled_from(["jaccard", "cosine", "containment", "dice"]),
)


@given(question=questions)
def test_a_question_comes_back_from_its_file(
    question: nd.Question, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("question") / "question.toml"
    question.save(path)
    assert nd.Question.load(path) == question


def test_a_file_has_the_keys_of_a_recipe_file_and_absent_ones_are_the_defaults(
    tmp_path: Path,
) -> None:
    path = tmp_path / "question.toml"
    path.write_text('similarity = 1\n[recipe]\ntokens = "chars"\n')
    assert nd.Question.load(str(path)) == nd.Question(nd.Recipe(tokens="chars"), 1.0)
    path.write_text("")
    assert nd.Question.load(path) == nd.Question() == nd.Question(nd.Recipe(), 0.8, "jaccard")
    nd.Question().save(path)
    assert set(tomllib.loads(path.read_text())) == {"similarity", "measure", "recipe"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("similarty = 0.7", "unknown key 'similarty': known are similarity, measure, recipe"),
        ("[recipe]\nngrams = 2", r"\[recipe\]: unknown recipe fields \['ngrams'\]"),
        ("[recipe]\nngram = 0", r"\[recipe\]: ngram is 0"),
        ("[recipe]\nngram = 2000-01-01", r"\[recipe\]: ngram is '2000-01-01'"),
        ("recipe = 3", r"\[recipe\]: 3 is not a table"),
        ("similarity = 70", "similarity is 70: use a number above 0, up to 1"),
        ('similarity = "0.7"', "similarity is '0.7'"),
        ("similarity = nan", "similarity is nan"),
        ('measure = "hamming"', "measure is 'hamming': use one of jaccard"),
        ("measure = 3", "measure is 3: use one of jaccard"),
        ('[recipe]\npreset = "pypi-simhash"', "has no features to compare"),
        ("similarity", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "question.toml"
    path.write_text(text)
    with pytest.raises(nd.UsageError, match=rf"question\.toml.*{message}"):
        nd.Question.load(path)


def test_a_file_that_cannot_be_read_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(nd.FileError, match=r"cannot read .*none\.toml"):
        nd.Question.load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(nd.UsageError, match="is not UTF-8"):
        nd.Question.load(tmp_path / "bytes.toml")


def test_a_call_that_names_a_part_has_the_usual_other_parts() -> None:
    chars = nd.Recipe(tokens="chars")
    assert question_for() is DEFAULT_QUESTION
    assert question_for(similarity=0.6) == nd.Question(nd.Recipe(), 0.6)
    assert question_for(measure="jaccard") == nd.Question(nd.Recipe(), 0.8, "jaccard")
    assert question_for(recipe=nd.Recipe()) == nd.Question(nd.Recipe(), 0.8)
    assert question_for(recipe=chars, measure="dice") == nd.Question(chars, 0.8, "dice")
    own = nd.Question(chars, 0.5)
    assert question_for(own) == own


@pytest.mark.parametrize(
    "part", [{"similarity": 0.8}, {"measure": "jaccard"}, {"recipe": nd.Recipe()}]
)
def test_a_question_excludes_its_parts(part: dict[str, Any]) -> None:
    with pytest.raises(nd.UsageError, match=f"question and {next(iter(part))} exclude each other"):
        question_for(nd.Question(), **part)
    with pytest.raises(nd.UsageError, match=r"pass a neardup\.Question"):
        question_for("question.toml", **part)  # type: ignore[arg-type]
