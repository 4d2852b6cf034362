"""`neardup index`: make, fill, ask and look after a durable index."""

from __future__ import annotations

import re
import sys
import time
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from neardup.cli import options as shared
from neardup.cli.flags import Commands
from neardup.cli.progress_lines import tells_progress
from neardup.cli.recipe_options import IdfTable, KeywordFolder, load_words, takes_recipe
from neardup.cli.screen import echo
from neardup.errors import DataError, UsageError
from neardup.hamming.plans.names import SEARCH_PLANS, listed_plans
from neardup.runtime.progress import shown
from neardup.runtime.signals import note_what_is_there

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = [
    "add",
    "app",
    "backup",
    "check",
    "compact",
    "create",
    "expire",
    "query",
    "remove",
    "restore",
    "stats",
]

app = Commands(
    name="index",
    help="Have I seen this? A durable index of documents or fingerprints.",
    no_args_is_help=True,
)

_Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Folder of the index.", show_default=False)
]
_SearchPlan = Annotated[
    str,
    typer.Option(
        "--plan",
        help=f"Search: {listed_plans(SEARCH_PLANS)}.",
    ),
]
_MaxAge = Annotated[
    str,
    typer.Option(
        "--max-age", metavar="AGE", help="Remove what was added longer ago: 90s, 15m, 12h, 30d."
    ),
]
_Least = Annotated[
    float | None,
    typer.Option(
        "--similarity",
        "-s",
        metavar="S",
        help="Least similarity that a query may ask for, exactly measured.",
        show_default="0.8",
    ),
]
_SimilarityMeasure = Annotated[
    str | None,
    typer.Option("--measure", help="Of similarity: jaccard (unless said), cosine or containment."),
]
_Measure = Annotated[
    bool, typer.Option("--measure", help="Build and measure each plan as well; takes a while.")
]
_Verify = Annotated[
    bool, typer.Option("--verify", help="Verify every checksum of the index first, as check does.")
]
_DEFAULT_SIMILARITY: Final = 0.8
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@app.command()
@takes_recipe()
def create(
    folder: _Folder,
    similarity: _Least = None,
    similarity_measure: _SimilarityMeasure = None,
    distance: shared.ExactDistance = None,
    plan: _SearchPlan = "auto",
    store: Annotated[
        str | None,
        typer.Option(
            help="Kept beside fingerprints: none; features, for verification by similarity; text.",
            show_default="none",
        ),
    ] = None,
    no_recipe: Annotated[
        bool, typer.Option("--no-recipe", help="Take ready-made fingerprints of --bits only.")
    ] = False,
    *,
    made: Recipe,
) -> None:
    """Make an empty index; what it is made for and its recipe stay as they are.

    It is by similarity, from 0.8 on, unless an option belongs to fingerprints: --distance, --plan,
    --store, --preset, --bits, --weight or --no-recipe.

    Examples:
    neardup index create seen.index --similarity 0.8

    neardup index create prints.index --distance 3

    neardup index create hashes.index --bits 64 --no-recipe
    """  # fmt: skip
    from neardup.index import DurableIndex

    recipe = None if no_recipe else made
    if no_recipe and store not in {None, "none"}:
        raise UsageError(f"--store {store} needs a recipe: leave --no-recipe out")
    asked_for = (distance, store, made.preset, plan, made.bits, made.weight, no_recipe)
    if similarity is None and asked_for == (None, None, None, "auto", 64, "set", False):
        similarity = _DEFAULT_SIMILARITY
    if similarity is not None or similarity_measure is not None:
        if no_recipe:
            raise UsageError(f"--similarity {similarity} needs a recipe: leave --no-recipe out")
        if store not in {None, "features"}:
            raise UsageError(f"--store is {store!r}: an index by similarity keeps features")
        asked: dict[str, Any] = {"similarity": similarity, "measure": similarity_measure}
        DurableIndex.create(folder, distance, None, made, plan, **asked).close()
        what = f"similarity {similarity} ({similarity_measure or 'jaccard'})"
    else:
        reach = 3 if distance is None else distance
        shared.check_reach(reach, made.bits)
        DurableIndex.create(folder, reach, made.bits, recipe, plan, store or "none").close()
        what = f"distance {reach}"
    told = "no recipe" if recipe is None else f"recipe {recipe.digest}"
    echo(f"made {shown(folder)}: {what}, {told}", err=True)


@app.command()
@tells_progress
def add(
    folder: _Folder,
    inputs: shared.Inputs,
    if_new: Annotated[
        bool, typer.Option("--if-new", help="Leave out what a stored document is near to.")
    ] = False,
    text: shared.TextField = "text",
    id_field: shared.IdField = None,
    format_name: shared.Format = None,
    delimiter: shared.Delimiter = None,
    encoding: shared.Encoding = None,
    extract: shared.Extract = None,
    on_error: shared.OnError = "stop",
    rejects: shared.RejectsFile = None,
    fingerprint_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Store this field's whole numbers, in place of texts: 123, -42."
        ),
    ] = None,
    foreign: Annotated[
        bool,
        typer.Option("--foreign", help="Take fingerprints of no known recipe as the index's."),
    ] = False,
    verify: _Verify = False,
    idf: IdfTable = None,
    dictionary: KeywordFolder = None,
    json: shared.Json = False,
) -> None:
    """Store the documents of files, or of fingerprint files; an id that is stored is replaced.

    After an error or a kill, what was stored so far stays: run the same again.

    Examples:
    neardup index add seen.index news.jsonl --id id

    neardup index add prints.index news-fingerprints.parquet

    neardup index add hashes.index pages.csv --id url --fingerprint-field simhash
    """
    shared.check_json(json, rejects)
    skip = shared.skip_errors(on_error, rejects)

    from neardup.cli.screen import print_summary, progress
    from neardup.documents import InputFormat, ReadOptions
    from neardup.index import DurableIndex
    from neardup.pipeline.index import Numbers, add_files

    load_words(idf, dictionary)
    is_number = fingerprint_field is not None
    fields = (fingerprint_field,) if fingerprint_field else shared.text_fields(text)
    read = ReadOptions(fields, id_field, skip, extract=extract)
    told = InputFormat(format_name, delimiter, encoding)
    _note_what_stays(folder, "; run the same again for the rest")
    opened = DurableIndex.open(folder, create=False, verify=verify)
    with opened as index, progress() as shown:
        summary = add_files(
            index, inputs, read,
            if_new=if_new, rejects_path=rejects, progress=shown, format_name=told,
            numbers=Numbers(is_number, foreign),
        )  # fmt: skip
    print_summary(summary, json)


@app.command()
@tells_progress
def query(
    folder: _Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[IN...]",
            help="Documents or fingerprint files.",
            show_default=False,
        ),
    ] = None,
    query_text: Annotated[
        str | None, typer.Option("--query-text", metavar="TEXT", help="One text; - is the input.")
    ] = None,
    fingerprint: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="One fingerprint: 123, or 0x7b.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="HITS",
            help="For IN...: .parquet, .csv, .tsv or .jsonl; JSON lines are printed unless given.",
        ),
    ] = None,
    distance: Annotated[
        int | None,
        typer.Option("--distance", "-k", min=0, metavar="BITS", help="The index's or less."),
    ] = None,
    similarity: Annotated[
        float | None,
        typer.Option(
            "--similarity", "-s", metavar="S", help="The index's or more, if it is by similarity."
        ),
    ] = None,
    nearest: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="The N closest, however far, to --query-text or --fingerprint."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The most hits for one query; it says what was cut."),
    ] = None,
    text: shared.TextField = "text",
    id_field: shared.IdField = None,
    format_name: shared.Format = None,
    delimiter: shared.Delimiter = None,
    encoding: shared.Encoding = None,
    extract: shared.Extract = None,
    on_error: shared.OnError = "stop",
    rejects: shared.RejectsFile = None,
    verify: _Verify = False,
    idf: IdfTable = None,
    dictionary: KeywordFolder = None,
    csv_safe: shared.CsvSafe = False,
    json: shared.Json = False,
) -> None:
    """Find what is stored near a text, a fingerprint, or each document of files.

    Examples:
    neardup index query seen.index --query-text "the quick brown fox jumps over the lazy dog"

    neardup index query seen.index new.jsonl -o hits.parquet
    """
    single = [x for x in (query_text, fingerprint) if x is not None]
    if len(single) + bool(inputs) != 1:
        raise UsageError("give one of IN..., --query-text and --fingerprint")
    if single and output is not None:
        raise UsageError("--output belongs to IN...: the answer to one query is printed")
    if nearest is not None and not single:
        raise UsageError("--nearest belongs to --query-text or --fingerprint")
    if nearest is not None and any(x is not None for x in (distance, similarity, limit)):
        raise UsageError(
            "--nearest is a number of hits: leave --distance, --similarity and --limit out"
        )
    target = output or "-"
    shared.check_json(json and not single, target, rejects)

    from neardup.cli.screen import print_hits, print_summary, progress
    from neardup.documents import InputFormat, ReadOptions
    from neardup.index import DurableIndex
    from neardup.pipeline.index import ask_files
    from neardup.pipeline.run.similar_index import Reach, ask_one

    load_words(idf, dictionary)
    reach = Reach(distance, limit, similarity, csv_safe)
    with DurableIndex.open(folder, readonly=True, verify=verify) as index:
        if single:
            answer = ask_one(index, _asked(query_text, fingerprint), reach, nearest)
            if answer.is_empty:
                echo("the text has no tokens, so it is near to nothing", err=True)
            print_hits(answer.hits, answer.total, answer.what, json)
            return
        skip = shared.skip_errors(on_error, rejects)
        read = ReadOptions(shared.text_fields(text), id_field, skip, extract=extract)
        with progress() as shown:
            summary = ask_files(
                index, inputs or [], target, read,
                reach=reach, rejects_path=rejects, progress=shown,
                format_name=InputFormat(format_name, delimiter, encoding),
            )  # fmt: skip
    print_summary(summary, json)


@app.command()
def remove(
    folder: _Folder,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of documents.", show_default=False)
    ],
) -> None:
    """Remove documents by their ids; if one is not stored, none is removed.

    Example:
    neardup index remove seen.index news.jsonl:17
    """
    from neardup.index import DurableIndex

    _note_what_stays(folder)
    with DurableIndex.open(folder, create=False) as index:
        try:
            count = index.remove([identity_of(each, index.id_kind) for each in ids])
        except KeyError as error:
            raise DataError(
                f"{folder}: no document has the id {error.args[0]!r}; none was removed"
            ) from None
    echo(f"removed {count:,}", err=True)


@app.command()
def expire(folder: _Folder, max_age: _MaxAge) -> None:
    """Remove the documents that were added longer ago than an age.

    Example:
    neardup index expire seen.index --max-age 30d
    """
    before = time.time() - _seconds(max_age)
    from neardup.index import DurableIndex

    _note_what_stays(folder)
    with DurableIndex.open(folder, create=False) as index:
        count = index.expire(before)
        left = len(index)
    echo(f"removed {count:,}, {left:,} left", err=True)


@app.command()
def stats(folder: _Folder, measure: _Measure = False, json: shared.Json = False) -> None:
    """Say what an index holds, how it is searched, and what each way to search it costs.

    Example:
    neardup index stats seen.index
    """
    from neardup.index import DurableIndex
    from neardup.pipeline.index_stats import index_stats

    with DurableIndex.open(folder, readonly=True) as index:
        found = index_stats(index, measure=measure)
    echo(dumps(found.to_dict()) if json else str(found))


@app.command()
def check(folder: _Folder) -> None:
    """Verify every checksum; exit code 1 and what to do if something is damaged.

    Example:
    neardup index check seen.index
    """
    from neardup.index import DurableIndex

    with DurableIndex.open(folder, readonly=True) as index:
        problems = index.check()
        count = len(index)
    for problem in problems:
        echo(f"{shown(folder)}: {shown(problem)}", err=True)
    if problems:
        raise typer.Exit(1)
    echo(f"{shown(folder)}: {count:,} documents, all checksums right", err=True)


@app.command()
def backup(
    folder: _Folder,
    target: Annotated[
        str, typer.Argument(metavar="COPY", help="A new folder.", show_default=False)
    ],
) -> None:
    """Copy the last commit of an index to a new folder, also while a service writes to it.

    Files that never change are linked on the same disk, so that it takes little time and room.

    Example:
    neardup index backup seen.index seen.backup
    """
    from neardup.index import DurableIndex

    with DurableIndex.open(folder, readonly=True) as index:
        index.backup(target)
    with DurableIndex.open(target, readonly=True) as index:
        echo(f"{shown(target)}: {len(index):,} documents", err=True)


@app.command()
def restore(
    source: Annotated[
        str, typer.Argument(metavar="COPY", help="What backup made.", show_default=False)
    ],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)],
) -> None:
    """Make an index of a backup, which stays as it is, once every checksum is verified.

    Example:
    neardup index restore seen.backup restored.index
    """
    from neardup.index import DurableIndex

    with DurableIndex.open(source, readonly=True, verify=True) as index:
        index.backup(folder)
        count = len(index)
    echo(f"{shown(folder)}: {count:,} documents, all checksums right", err=True)


@app.command()
def compact(folder: _Folder) -> None:
    """Bring an index into one piece and give back the room of removed documents.

    Example:
    neardup index compact seen.index
    """
    from neardup.index import DurableIndex

    _note_what_stays(folder)
    with DurableIndex.open(folder, create=False) as index:
        index.compact()
        count = len(index)
    echo(f"{shown(folder)}: {count:,} documents", err=True)


def _note_what_stays(folder: str, how_to_go_on: str = "") -> None:
    note_what_is_there(f"what {folder} had committed stays{how_to_go_on}")


def identity_of(given: str, kind: str | None) -> str | int:
    """An id as an index has it: a number where its ids are numbers."""
    if kind != "int":
        return given
    try:
        return int(given)
    except ValueError:
        raise UsageError(f"id {given!r}: the ids of this index are whole numbers") from None


def _asked(text: str | None, fingerprint: str | None) -> str | int:
    if text == "-":
        try:
            return sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise DataError(f"the standard input is not UTF-8 (byte {error.start + 1})") from None
    if text is not None:
        return text
    try:
        return int(fingerprint or "", 0)
    except ValueError:
        raise UsageError(
            f"--fingerprint is {fingerprint!r}: use a whole number such as 123 or 0x7b"
        ) from None


def _seconds(age: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", age.strip())
    if not found:
        raise UsageError(f"--max-age is {age!r}: use a number and s, m, h, d or w, such as 30d")
    return float(found[1]) * _SECONDS[found[2]]
