"""The options of a recipe, which most commands share, and the recipe that they make."""

from __future__ import annotations

import copy
import functools
import warnings
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args

import typer

from neardup.cli.options import match_option, whole
from neardup.cli.signatures import option, takes
from neardup.errors import FileError, RecipeError, UnfitHashWarning, UsageError
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Collection

    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe

__all__ = [
    "IdfTable",
    "KeywordFolder",
    "Parts",
    "load_words",
    "make_recipe",
    "recipe_option",
    "takes_question",
    "takes_recipe",
]

T = TypeVar("T")

recipe_option: Final = functools.partial(typer.Option, rich_help_panel="Recipe")

RecipeFile = Annotated[
    str | None, recipe_option("--recipe", metavar="FILE", help="Recipe as JSON.")
]
Preset = Annotated[
    str | None,
    recipe_option(
        "--preset", metavar="NAME", help="Another library's fingerprints, such as pypi-simhash."
    ),
]
Tokens = Annotated[
    str | None,
    recipe_option(
        help="words, chars, jieba, jieba-search, jieba-keywords or regex:PATTERN, which is fast for"
        " runs of a class ([a-z]+), some 100 times slower for others. (default: words)"
    ),
]
Ngram = Annotated[
    int | None, recipe_option(parser=whole(1), metavar="N", help="Tokens a feature. (default: 3)")
]
Weight = Annotated[
    str | None, recipe_option(help="set, count, log, tfidf or textrank. (default: set)")
]
Idf = Annotated[
    str | None,
    recipe_option(
        metavar="FILE",
        help="For tfidf: a table of neardup idf, or one like jieba's; jieba is jieba's own.",
    ),
]
IdfTable = Annotated[
    str | None,
    typer.Option(
        "--idf", metavar="FILE", help="The table of neardup idf that the index was made with."
    ),
]
Missing = Annotated[
    str | None,
    recipe_option(
        help="For tfidf, a feature that is not in the table: default (its highest value; the median"
        " of given values) or error. (default: default)"
    ),
]
Top = Annotated[
    int | None,
    recipe_option(parser=whole(1), metavar="N", help="Keep the N heaviest features only."),
]
Stopwords = Annotated[
    str | None,
    recipe_option(
        metavar="LANGUAGE|FILE",
        help="Tokens to remove: of a language, such as english, or of a file, one a line.",
    ),
]
Language = Annotated[str | None, recipe_option(help="tr or az: fold I and İ as Turkish does.")]
FoldChinese = Annotated[
    str | None,
    recipe_option(
        "--fold-chinese", help="simplified or traditional: convert Chinese to one script."
    ),
]
Ignore = Annotated[
    str | None,
    recipe_option(
        metavar="NAMES",
        help="Signs to remove from texts first: some of accents, digits, joiners, tatweel,"
        " vowel-signs,"
        " zero-width, separated by commas.",
    ),
]
Dictionary = Annotated[
    str | None,
    recipe_option(
        metavar="FILE|FOLDER",
        help="For jieba: words that its dictionary lacks, one a line, as in jieba's own. For the"
        " preset yanyiwu: the folder of cppjieba's files.",
    ),
]
KeywordFolder = Annotated[
    str | None,
    recipe_option(
        "--dictionary",
        metavar="FOLDER",
        help="If the recipe has it (preset yanyiwu): the folder of cppjieba's files.",
    ),
]
Hash = Annotated[str | None, recipe_option("--hash", help="Feature hash. (default: xxh3)")]
Bits = Annotated[str | None, recipe_option(help="Width, or auto. (default: auto)")]
Normalize = Annotated[str | None, recipe_option(help="NFKC, NFC or none. (default: NFKC)")]
Casefold = Annotated[
    bool | None,
    recipe_option(
        "--casefold/--no-casefold", help="Fold case. (default: casefold)", show_default=False
    ),
]


QuestionFile = Annotated[
    str | None,
    match_option(
        "--question",
        metavar="FILE.toml",
        help="Recipe, measure and similarity, as neardup calibrate -o writes them.",
    ),
]


_RECIPE_OPTIONS: Final = {
    "recipe": RecipeFile,
    "preset": Preset,
    "tokens": Tokens,
    "ngram": Ngram,
    "weight": Weight,
    "hash": Hash,
    "bits": Bits,
    "normalize": Normalize,
    "casefold": Casefold,
    "idf": Idf,
    "missing": Missing,
    "top": Top,
    "stopwords": Stopwords,
    "language": Language,
    "fold_chinese": FoldChinese,
    "dictionary": Dictionary,
    "ignore": Ignore,
}


_SHOWN: Final = ("recipe", "preset", "tokens", "ngram")
_MORE: Final = "\n\nFurther options of the recipe: neardup fingerprint --help."


def takes_recipe(
    *, without: Collection[str] = (), all_shown: bool = False
) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: it takes the options of a recipe, which replace its `recipe`.

    Args:
        without: Options that the command does not take.
        all_shown: The help shows all of them; unless set, the first few, and where the others are.
    """
    options = _options(without, all_shown=all_shown)
    return _explained(takes("recipe", options, make_recipe), all_shown=all_shown)


def takes_question(*, without: Collection[str] = ()) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: as `takes_recipe`, with --question; they replace its `parts`.

    Args:
        without: Options that the command does not take.
    """
    options = [option("question", QuestionFile), *_options(without, all_shown=False)]
    return _explained(takes("parts", options, _make_parts), all_shown=False)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a question that a command line names.

    Args:
        question: The one of --question.
        recipe: The one that options make; None if none of them is given.
        first_option: The first of those options; empty if none is given.
    """

    question: Question | None
    recipe: Recipe | None
    first_option: str


def _make_parts(question: str | None, **fields: Any) -> Parts:
    """The parts of a question from --question, or the recipe from single options.

    Raises:
        UsageError: If both are given.
    """
    from neardup.fingerprinting.question import Question

    names = [name for name, value in fields.items() if value is not None]
    named = "" if not names else f"--{names[0].replace('_', '-')}"
    if question is None:
        return Parts(None, make_recipe(**fields) if names else None, named)
    if others := [name for name in names if name != "idf"]:  # --idf says where the table is
        raise UsageError(
            f"--question and --{others[0].replace('_', '-')} exclude each other: edit {question}"
        )
    if names:
        load_words(fields["idf"], None)
    return Parts(_in_cli_words(lambda: Question.load(question)), None, "")


def _options(without: Collection[str], *, all_shown: bool) -> list[inspect.Parameter]:
    return [
        option(name, kind if all_shown or name in _SHOWN else _hidden(kind))
        for name, kind in _RECIPE_OPTIONS.items()
        if name not in without
    ]


def _explained(
    decorate: Callable[[Callable[..., None]], Any], *, all_shown: bool
) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: its help says where hidden options are listed."""

    def explain(command: Callable[..., None]) -> Any:
        run = decorate(command)
        if not all_shown and run.__doc__:
            prose, example, rest = cleandoc(run.__doc__).partition("\n\nExample")
            run.__doc__ = f"{prose}{_MORE}{example}{rest}"
        return run

    return explain


def _hidden(kind: Any) -> Any:
    """An option that works but is left out of the help."""
    value, info = get_args(kind)
    info = copy.copy(info)
    info.hidden = True
    return Annotated[value, info]


def make_recipe(recipe: str | None, **fields: Any) -> Recipe:
    """The recipe of a file, a preset or single options; None means that an option is absent.

    Raises:
        UsageError: If both a file and single options are given, or a width is not a number.
        FileError: If the file cannot be read.
        RecipeError: If the recipe cannot be.
    """
    from neardup.fingerprinting.recipe import Recipe

    values = {name: value for name, value in fields.items() if value is not None}
    _read_bits(values)
    _read_words(values)
    if recipe is None and "preset" in values:
        from neardup.fingerprinting.preset_recipes import preset

        return preset(values.pop("preset"), **values)
    if recipe is None:
        return _in_cli_words(lambda: Recipe(**values))
    values.pop("idf", None)  # the file names the table, and this was where it is
    if values:
        raise UsageError(f"--recipe and --{next(iter(values))} exclude each other: edit the file")
    try:
        data = Path(recipe).read_bytes()
        return _in_cli_words(lambda: Recipe.from_json(data))
    except OSError as error:
        raise FileError(f"cannot read {recipe}: {error.strerror}") from None
    except RecipeError as error:
        raise RecipeError(f"{recipe}: {error}") from None


def _in_cli_words(make: Callable[[], T]) -> T:
    """The result of a call that makes a recipe; its warnings are printed as single lines."""
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always", UnfitHashWarning)
        value = make()
    for warning in messages:
        typer.echo(f"neardup: warning: {shown(str(warning.message))}", err=True)
    return value


def _read_bits(values: dict[str, Any]) -> None:
    bits = values.pop("bits", "auto")
    if bits != "auto":
        if not bits.isdecimal():
            raise UsageError(f"--bits is {bits!r}: use a whole number or auto")
        values["bits"] = int(bits)


def load_words(idf: str | None, dictionary: str | None) -> None:
    """Load the files that an index's recipe names by digest into this process.

    Args:
        idf: A table of document frequencies.
        dictionary: A folder of cppjieba's files.

    Raises:
        FileError, DataError: If they are something else.
    """
    if idf is not None:
        from neardup.features.frequency_table import load_table

        load_table(idf)
    if dictionary is not None:
        from neardup.features.keyword_weights import load_folder

        load_folder(dictionary)


def _read_words(values: dict[str, Any]) -> None:
    """Replace the paths of a table and of word files by the table's digest and the words."""
    if "ignore" in values:
        values["ignore"] = values["ignore"].split(",")
    if values.get("idf", "jieba").partition(":")[0] != "jieba":
        from neardup.features.frequency_table import load_table

        values["idf"] = load_table(values["idf"]).digest
    if Path(values.get("stopwords", "")).is_file():
        from neardup.features.stopwords import read_stop_words

        values["stopwords"] = read_stop_words(values["stopwords"])
    if "dictionary" in values and not Path(values["dictionary"]).is_dir():
        from neardup.features.jieba_words import read_dictionary

        values["dictionary"] = read_dictionary(values["dictionary"])
