"""Options that several commands share, declared once; importing this costs nothing but Typer."""

from __future__ import annotations

import copy
import functools
import inspect
import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_type_hints

import typer

from neardup.errors import FileError, RecipeError, UnfitHashWarning, UsageError
from neardup.hamming.plans.names import JOIN_PLANS, listed_plans
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline import ReportOptions

RECIPE_PANEL = "Recipe"
INPUT_PANEL = "Input"
MATCH_PANEL = "What matches"
KEEP_PANEL = "What is kept"
RESULTS_PANEL = "Results"
RUN_PANEL = "Running"


def _whole(least: int) -> Any:
    def parse(value: str) -> int:
        if not str(value).isdecimal() or int(value) < least:
            raise typer.BadParameter(f"{value!r}: use a whole number from {least} up")
        return int(value)

    return parse


def _number(value: str) -> float:
    text = str(value)
    try:
        number = float(text)
        if 0 < number <= 1:
            return number
    except ValueError:
        number = _meant(text)
    hint = f"; {number / 100:g}?" if 1 < number <= _HUNDRED else f"; {number:g}?" * (0 < number < 1)
    raise typer.BadParameter(f"{text!r}: use a number above 0, up to 1{hint}")


def _meant(text: str) -> float:
    """What a number written as a percentage or with a comma may mean; 0 for anything else."""
    try:
        return float(text.rstrip("% ").replace(",", "."))
    except ValueError:
        return 0.0


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="IN...",
        help="Files (.jsonl, .json, .csv, .tsv, .txt, .html, also .gz, .zst; .parquet, .arrow),"
        " folders,"
        " 'patterns*', URIs such as s3://; - is JSON lines from a pipe.",
        show_default=False,
    ),
]
Distance = Annotated[
    int,
    typer.Option(
        "--distance",
        "-k",
        parser=_whole(0),
        metavar="BITS",
        help="Fingerprint bits that may differ.",
        rich_help_panel=MATCH_PANEL,
    ),
]
ExactDistance = Annotated[
    int | None,
    typer.Option(
        "--distance",
        "-k",
        parser=_whole(0),
        metavar="BITS",
        help="Match by fingerprint instead: bits that may differ.",
        rich_help_panel=MATCH_PANEL,
    ),
]
Similarity = Annotated[
    float | None,
    typer.Option(
        "--similarity",
        "-s",
        parser=_number,
        metavar="S",
        help="Least similarity of a match. (default: 0.8)",
        rich_help_panel=MATCH_PANEL,
    ),
]
Verify = Annotated[
    float | None,
    typer.Option(
        "--verify",
        parser=_number,
        metavar="S",
        help="With --distance: least similarity as well.",
        rich_help_panel=MATCH_PANEL,
    ),
]
Measure = Annotated[
    str,
    typer.Option(
        "--measure", help="Similarity: jaccard, cosine or containment.", rich_help_panel=MATCH_PANEL
    ),
]
Recall = Annotated[
    float,
    typer.Option(
        "--recall",
        parser=_number,
        metavar="R",
        help="Least share of the similar pairs to find; 1 is all.",
        rich_help_panel=MATCH_PANEL,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Budget, such as 2G.", rich_help_panel=RUN_PANEL),
]
TextField = Annotated[
    str,
    typer.Option(
        "--text",
        metavar="FIELD[,FIELD]",
        help="Field with the text; doc.body is a field in a field.",
        rich_help_panel=INPUT_PANEL,
    ),
]
IdField = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="FIELD",
        help="Field with the id; else file:row.",
        rich_help_panel=INPUT_PANEL,
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within",
        metavar="FIELD",
        help="Compare only equal values of a field.",
        rich_help_panel=MATCH_PANEL,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Of all inputs: jsonl, json (an array), csv, tsv, parquet, arrow, or text (each"
        " file is a document).",
        rich_help_panel=INPUT_PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHAR",
        help="Between the fields of CSV, such as ';' or tab; the first lines tell unless given.",
        rich_help_panel=INPUT_PANEL,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Of texts, JSON lines and CSV, such as cp1252 or utf-16; UTF-8 unless given.",
        rich_help_panel=INPUT_PANEL,
    ),
]
Extract = Annotated[
    str | None,
    typer.Option(
        "--extract",
        metavar="main|all|none",
        help="Of HTML compare the main content, all visible text or the markup too; main of .html"
        " files unless given.",
        rich_help_panel=INPUT_PANEL,
    ),
]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error", help="Bad records: stop, or skip them.", rich_help_panel=INPUT_PANEL
    ),
]
RejectsFile = Annotated[
    str | None,
    typer.Option(
        "--rejects", metavar="FILE", help="Keep skipped records here.", rich_help_panel=INPUT_PANEL
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        parser=_whole(1),
        metavar="N",
        help="Threads; all processors unless given.",
        rich_help_panel=RUN_PANEL,
    ),
]
Tmp = Annotated[
    str | None,
    typer.Option("--tmp", metavar="DIR", help="Folder for spill files.", rich_help_panel=RUN_PANEL),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=RESULTS_PANEL)
]
Plan = Annotated[
    str,
    typer.Option(
        "--plan", help=f"Search: {listed_plans(JOIN_PLANS)}.", rich_help_panel=MATCH_PANEL
    ),
]
ReportFrom = Annotated[
    float | None,
    typer.Option(
        "--report-from",
        parser=_number,
        metavar="S",
        help="Least similarity that the report looks at. (default: the threshold less 0.1)",
        rich_help_panel=RESULTS_PANEL,
    ),
]
SourceField = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="FIELD",
        help="Field by which the report counts.",
        rich_help_panel=RESULTS_PANEL,
    ),
]
SummaryFile = Annotated[
    str | None,
    typer.Option(
        "--summary",
        metavar="FILE.json",
        help="Write the report's numbers here.",
        rich_help_panel=RESULTS_PANEL,
    ),
]

RecipeFile = Annotated[
    str | None,
    typer.Option("--recipe", metavar="FILE", help="Recipe as JSON.", rich_help_panel=RECIPE_PANEL),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Another library's fingerprints, such as pypi-simhash.",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        help="words, chars, jieba, jieba-search, jieba-keywords or regex:PATTERN. (default: words)",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Ngram = Annotated[
    int | None,
    typer.Option(
        parser=_whole(1),
        metavar="N",
        help="Tokens a feature. (default: 3)",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        help="set, count, log, tfidf or textrank. (default: set)", rich_help_panel=RECIPE_PANEL
    ),
]
Idf = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="For tfidf: a table of neardup idf, or one like jieba's; jieba is jieba's own.",
        rich_help_panel=RECIPE_PANEL,
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
    typer.Option(
        help="For tfidf, a feature that is not in the table: default (its highest value; the median"
        " of given values) or error. (default: default)",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        parser=_whole(1),
        metavar="N",
        help="Keep the N heaviest features only.",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Stopwords = Annotated[
    str | None,
    typer.Option(
        metavar="LANGUAGE|FILE",
        help="Tokens to remove: of a language, such as english, or of a file, one a line.",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Language = Annotated[
    str | None,
    typer.Option(help="tr or az: fold I and İ as Turkish does.", rich_help_panel=RECIPE_PANEL),
]
FoldChinese = Annotated[
    str | None,
    typer.Option(
        "--fold-chinese",
        help="simplified or traditional: one way of writing Chinese.",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="For jieba: words that its dictionary lacks, one a line, as in jieba's own.",
        rich_help_panel=RECIPE_PANEL,
    ),
]
Hash = Annotated[
    str | None,
    typer.Option("--hash", help="Feature hash. (default: xxh3)", rich_help_panel=RECIPE_PANEL),
]
Bits = Annotated[
    str | None, typer.Option(help="Width, or auto. (default: auto)", rich_help_panel=RECIPE_PANEL)
]
Normalize = Annotated[
    str | None,
    typer.Option(help="NFKC, NFC or none. (default: NFKC)", rich_help_panel=RECIPE_PANEL),
]
Casefold = Annotated[
    bool | None,
    typer.Option(
        "--casefold/--no-casefold",
        help="Fold case. (default: casefold)",
        rich_help_panel=RECIPE_PANEL,
        show_default=False,
    ),
]


_HUNDRED: Final = 100
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
}


_SHOWN: Final = ("recipe", "preset", "tokens", "ngram")
_MORE: Final = "\n\n    Further options of the recipe are those of neardup fingerprint."


def takes_recipe(
    *, without: Collection[str] = (), all_shown: bool = False
) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: the recipe's options join its own, it gets `made`, the recipe of them.

    Args:
        without: Options that the command does not take.
        all_shown: The help shows all of them; unless set, the first few, and where the others are.
    """
    options: dict[str, Any] = {
        name: kind if all_shown or name in _SHOWN else _hidden(kind)
        for name, kind in _RECIPE_OPTIONS.items()
        if name not in without
    }

    def decorate(command: Callable[..., None]) -> Any:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            fields = {name: given.pop(name) for name in options}
            command(**given, made=make_recipe(fields.pop("recipe"), **fields))

        hints = get_type_hints(command, localns={"Recipe": Any}, include_extras=True)
        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [
            parameter.replace(kind=keyword, annotation=hints[name])
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "made"
        ]
        added = [
            inspect.Parameter(name, keyword, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        signature = inspect.Signature([*own, *added])
        if not all_shown and run.__doc__:
            prose, example, rest = run.__doc__.partition("\n\n    Example")
            run.__doc__ = f"{prose}{_MORE}{example}{rest}"
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {x.name: x.annotation for x in signature.parameters.values()}
        return run

    return decorate


def _hidden(kind: Any) -> Any:
    """An option that works and is not in the help."""
    value, info = get_args(kind)
    info = copy.copy(info)
    info.hidden = True
    return Annotated[value, info]


def make_recipe(path: str | None, **fields: Any) -> Recipe:
    """Make the recipe of a file, of a preset or of the single options; None is not given.

    Raises:
        UsageError: If both a file and single options are given, or a width is no number.
        FileError: If the file cannot be read.
        RecipeError: If the recipe cannot be.
    """
    from neardup.fingerprinting.recipe import Recipe

    given = {name: value for name, value in fields.items() if value is not None}
    _read_bits(given)
    _read_words(given)
    if path is None and "preset" in given:
        from neardup.fingerprinting.presets import preset

        return preset(given.pop("preset"), **given)
    if path is None:
        return _told(lambda: Recipe(**given))
    given.pop("idf", None)  # the file names the table, and this was where it is
    if given:
        raise UsageError(f"--recipe and --{next(iter(given))} exclude each other: edit the file")
    try:
        data = Path(path).read_bytes()
        return _told(lambda: Recipe.from_json(data))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None


def _told(make: Callable[[], Recipe]) -> Recipe:
    """Make a recipe; its warnings become a line each."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UnfitHashWarning)
        made = make()
    for warning in told:
        typer.echo(f"neardup: warning: {shown(str(warning.message))}", err=True)
    return made


def _read_bits(given: dict[str, Any]) -> None:
    bits = given.pop("bits", "auto")
    if bits != "auto":
        if not bits.isdecimal():
            raise UsageError(f"--bits is {bits!r}: use a whole number or auto")
        given["bits"] = int(bits)


def load_idf(path: str | None) -> None:
    """Load the table of document frequencies that an index's recipe names, for this process.

    Raises:
        FileError, DataError: If it is none.
    """
    if path is not None:
        from neardup.features.frequencies import load_table

        load_table(path)


def _read_words(given: dict[str, Any]) -> None:
    """Put the digest of a table and the words of a file in the place of their paths."""
    if given.get("idf", "jieba").partition(":")[0] != "jieba":
        from neardup.features.frequencies import load_table

        given["idf"] = load_table(given["idf"]).digest
    if Path(given.get("stopwords", "")).is_file():
        from neardup.features.stopwords import read_stop_words

        given["stopwords"] = read_stop_words(given["stopwords"])
    if "dictionary" in given:
        from neardup.features.jieba_words import read_dictionary

        given["dictionary"] = read_dictionary(given["dictionary"])


def report_options(
    path: str | None, lowest: float | None, source: str | None, summary: str | None
) -> ReportOptions | None:
    """What to write about a run; None without a path.

    Raises:
        UsageError: If something is said about a report that is not asked for.
    """
    others = {"--report-from": lowest, "--source": source, "--summary": summary}
    if path is None:
        for name, value in others.items():
            if value is not None:
                raise UsageError(f"{name} belongs to --report FILE.html")
        return None
    from neardup.pipeline import ReportOptions

    command = shlex.join(["neardup", *sys.argv[1:]])
    return ReportOptions(path, lowest, source, summary, command)


def skip_errors(on_error: str, rejects: str | None) -> bool:
    """Check --on-error and --rejects together; True to skip bad records.

    Raises:
        UsageError: For an unknown choice, or a rejects file without skipping.
    """
    if on_error not in {"stop", "skip"}:
        raise UsageError(f"--on-error is {on_error!r}: use stop or skip")
    if rejects is not None and on_error == "stop":
        raise UsageError("--rejects needs --on-error skip")
    return on_error == "skip"


def text_fields(names: str) -> tuple[str, ...]:
    """Split --text at its commas.

    Raises:
        UsageError: If a name is empty.
    """
    fields = tuple(names.split(","))
    if "" in fields:
        raise UsageError(f"--text is {names!r}: name a field, or several with commas between")
    return fields


def check_json(json: bool, *outputs: str | None) -> None:
    """Keep the standard output for the summary.

    Raises:
        UsageError: If --json is given and an output goes there too.
    """
    if json and "-" in outputs:
        raise UsageError("--json prints on the standard output: write the result to a file")


def check_folder(tmp: str | None) -> None:
    """Check --tmp before anything is read.

    Raises:
        FileError: If it is no folder.
    """
    if tmp is not None and not Path(tmp).is_dir():
        raise FileError(f"--tmp is {tmp!r}: there is no such folder; create it first")
