"""The question: which documents match, as one frozen value and as a file of TOML."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import FileError, RecipeError, UsageError
from neardup.fingerprinting.recipe import Recipe, recipe_of
from neardup.runtime.storage.durable_files import write_whole
from neardup.similarity.feature_sets import Match

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_QUESTION", "DEFAULT_SIMILARITY", "Question", "parts_of", "question_for"]

DEFAULT_SIMILARITY: Final = 0.8
"""Of a call that names a recipe or a measure and no threshold."""

_KEYS: Final = ("similarity", "measure", "recipe")


@dataclass(frozen=True, slots=True)
class Question:
    """The rule by which two documents match: features, measure and threshold.

    Args:
        recipe: How a document becomes features; by default Recipe().
        similarity: Least similarity of a match, above 0, up to 1.
        measure: "jaccard", "cosine", "containment" or "dice".

    Raises:
        UsageError: For a similarity or a measure that cannot be.
        RecipeError: If it is not a recipe, or a preset, which has no features to compare.

    Example:
        >>> Question(Recipe(ngram=1), 0.7).similarity
        0.7
    """

    recipe: Recipe = field(default_factory=Recipe)
    similarity: float = DEFAULT_SIMILARITY
    measure: str = "jaccard"

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        recipe_of(self.recipe)
        Match(self.similarity, self.measure)
        object.__setattr__(self, "similarity", float(self.similarity))
        if self.recipe.preset is not None:
            raise RecipeError(
                f"the preset {self.recipe.preset} has no features to compare: a question requires a"
                " recipe of tokens, or use distance"
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Question:
        """Read a question from a file of TOML; keys that are absent take their defaults.

        The file has `similarity`, `measure` and a table `[recipe]` with the keys of a recipe file.

        Raises:
            FileError: If the file cannot be read.
            UsageError: If the file is not TOML, or has an unknown key or value.

        Example:
            >>> import tempfile
            >>> path = Path(tempfile.mkdtemp()) / "question.toml"
            >>> _ = path.write_text("similarity = 0.65")
            >>> Question.load(path).similarity
            0.65
        """
        name = os.fspath(path)
        try:
            text = Path(path).read_text("utf-8")
        except OSError as error:
            raise FileError(f"cannot read {name}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{name} is not UTF-8: a question file is TOML") from None
        try:
            values = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise UsageError(f"{name} is not valid TOML: {error}") from None
        try:
            return _question(values)
        except RecipeError as error:
            raise RecipeError(f"{name}: [recipe]: {error}") from None
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the question to a file of TOML that `load` reads.

        Raises:
            FileError: If the file cannot be written; what was there before is still there then.

        Example:
            >>> import tempfile
            >>> path = f"{tempfile.mkdtemp()}/question.toml"
            >>> Question(similarity=0.7).save(path)
            >>> Question.load(path) == Question(similarity=0.7)
            True
        """
        write_whole(os.fspath(path), self.to_toml().encode())

    def to_toml(self) -> str:
        """The question as TOML, every field of the recipe written out.

        Example:
            >>> print(Question(similarity=0.7).to_toml()[:38])
            similarity = 0.7
            measure = "jaccard"
        """
        fields: dict[str, Any] = json.loads(self.recipe.to_json())
        lines = [f"similarity = {self.similarity!r}", f"measure = {_toml(self.measure)}", ""]
        lines += ["[recipe]", *(f"{name} = {_toml(value)}" for name, value in fields.items())]
        return "\n".join([*lines, ""])

    def __str__(self) -> str:
        """The question as options of the command line."""
        return " ".join(self.options())

    def options(self) -> list[str]:
        """The options of the command line that ask the question; the common fields of a recipe.

        Example:
            >>> Question(Recipe(ngram=1), 0.7).options()
            ['--similarity', '0.7', '--ngram', '1']
        """
        usual, options = Recipe(), ["--similarity", f"{self.similarity:g}"]
        if self.measure != "jaccard":
            options += ["--measure", self.measure]
        for name in _OPTIONS:
            value = getattr(self.recipe, name)
            if value != getattr(usual, name):
                options += [f"--{name.replace('_', '-')}", str(value)]
        if self.recipe.top is not None:
            options += ["--top", str(self.recipe.top)]
        if isinstance(self.recipe.stopwords, str):
            options += ["--stopwords", self.recipe.stopwords.partition(":")[0]]
        if self.recipe.ignore is not None:
            options += ["--ignore", ",".join(self.recipe.ignore)]
        return options if self.recipe.casefold else [*options, "--no-casefold"]


_OPTIONS: Final = ("tokens", "ngram", "weight", "hash", "normalize", "language", "fold_chinese")

DEFAULT_QUESTION: Final = Question(similarity=0.7)
"""What a call asks that names no part of a question."""


def question_for(
    question: Question | None = None,
    similarity: float | None = None,
    measure: str | None = None,
    recipe: Recipe | None = None,
) -> Question:
    """The question of a call, by what the call names; the one place of this rule.

    A call that names a question asks that. One that names a part of it has `Recipe()`, "jaccard"
    and 0.8 for the other parts; one that names none asks the default question. A call by
    distance compares fingerprints and has no question.

    Raises:
        UsageError: If a question is named together with a part of one.
    """
    if question is not None:
        similarity, measure, recipe = parts_of(question, similarity, measure, recipe)
    elif similarity is None and measure is None and recipe is None:
        return DEFAULT_QUESTION
    threshold = DEFAULT_SIMILARITY if similarity is None else similarity
    return Question(recipe_of(recipe), threshold, "jaccard" if measure is None else measure)


def parts_of(
    question: Question,
    similarity: float | None = None,
    measure: str | None = None,
    recipe: Recipe | None = None,
) -> tuple[float, str, Recipe]:
    """Similarity, measure and recipe of a question that a call names.

    Raises:
        UsageError: If it is not a question, or the call names one of these too.
    """
    if not isinstance(question, Question):
        raise UsageError(
            f"question is {question!r:.60}: pass a neardup.Question, such as"
            ' Question.load("question.toml")'
        )
    parts = {"similarity": similarity, "measure": measure, "recipe": recipe}
    for name, value in parts.items():
        if value is not None:
            raise UsageError(f"question and {name} exclude each other: the question decides it")
    return question.similarity, question.measure, question.recipe


def _question(values: Mapping[str, Any]) -> Question:
    for key in values:
        if key not in _KEYS:
            raise UsageError(f"unknown key {key!r}: known are {', '.join(_KEYS)}")
    recipe = values.get("recipe", {})
    if not isinstance(recipe, dict):
        raise RecipeError(f"{recipe!r:.60} is not a table: write its keys below a line [recipe]")
    own_recipe = Recipe.from_json(json.dumps(recipe, default=str))
    similarity = values.get("similarity", DEFAULT_SIMILARITY)
    return Question(own_recipe, similarity, values.get("measure", "jaccard"))


def _toml(value: Any) -> str:
    """A value of a recipe as TOML, whose strings, numbers and lists are written as JSON's."""
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    # JSON leaves DEL as it is, which TOML does not take; its surrogate pairs TOML does not know.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
