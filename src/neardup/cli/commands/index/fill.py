"""`neardup index create`, `add` and `filter`: create an index and fill it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli import options as shared
from neardup.cli.commands.index.arguments import (
    ExtractOfIndex,
    Folder,
    Verify,
    given_options,
    note_what_stays,
    opened_to_write,
)
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import IdfTable, KeywordFolder, load_words, takes_question
from neardup.cli.screen import echo
from neardup.errors import UsageError
from neardup.hamming.plans.names import SEARCH_PLANS, listed_plans
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts

__all__ = ["add", "create", "filter_"]

_SearchPlan = Annotated[str, typer.Option("--plan", help=f"Search: {listed_plans(SEARCH_PLANS)}.")]
_Least = Annotated[
    float | None,
    typer.Option(
        "--similarity",
        "-s",
        metavar="S",
        help="Least similarity that a query may ask for, exactly measured.",
        show_default="0.7, and 0.8 with a recipe or --measure",
    ),
]
_SimilarityMeasure = Annotated[
    str | None,
    typer.Option(
        "--measure", help="Measure of similarity: jaccard (default), cosine, containment or dice."
    ),
]


@takes_question()
def create(
    context: typer.Context,
    folder: Folder,
    similarity: _Least = None,
    similarity_measure: _SimilarityMeasure = None,
    distance: shared.ExactDistance = None,
    plan: _SearchPlan = "auto",
    store: Annotated[
        str | None,
        typer.Option(
            help="Stored content of documents: none; features, for verification by"
            " similarity; text.",
            show_default="features by similarity, else none",
        ),
    ] = None,
    no_recipe: Annotated[
        bool, typer.Option("--no-recipe", help="Accept only fingerprints, of --bits.")
    ] = False,
    extract: ExtractOfIndex = None,
    *,
    parts: Parts,
) -> None:
    """Make an empty index; its recipe and threshold cannot be changed later.

    It is by similarity, by default from 0.7, or with --distance by fingerprints. Options that
    only concern fingerprints require --distance: --plan, --preset, --bits and --no-recipe.

    With --store text the index stores compressed texts, which are read by id; after remove and
    compact nothing of a removed text is left on the disk.

    Examples:
    neardup index create seen.index --similarity 0.8

    neardup index create records.index --question question.toml

    neardup index create pages.index --similarity 0.8 --extract main

    neardup index create texts.index --similarity 0.8 --store text

    neardup index create prints.index --distance 3

    neardup index create hashes.index --distance 3 --bits 64 --no-recipe
    """
    from neardup.fingerprinting.question import question_for
    from neardup.fingerprinting.recipe import recipe_of
    from neardup.index import DurableIndex

    own = recipe_of(parts.recipe)
    recipe = None if no_recipe else own
    if no_recipe and store not in {None, "none"}:
        raise UsageError(f"--store {store} requires a recipe: leave --no-recipe out")
    if no_recipe and extract is not None:
        raise UsageError("--extract requires a recipe: leave --no-recipe out")
    is_similar = similarity is not None or similarity_measure is not None
    if parts.question is not None and distance is not None:
        raise UsageError(
            "--question and --distance exclude each other: an index by question is by similarity"
        )
    if is_similar and distance is not None:
        option = "--similarity" if similarity is not None else "--measure"
        raise UsageError(
            f"{option} and --distance exclude each other: an index is by similarity or by distance"
        )
    if distance is None:
        # A run by similarity `--against` the index may have a recipe of any width.
        of_fingerprints = {
            "--plan": plan != "auto", "--store": store == "none",
            "--preset": own.preset is not None, "--no-recipe": no_recipe,
            "--bits": not is_similar and given_options(context, "bits"),
        }  # fmt: skip
        for option, is_given in of_fingerprints.items():
            if is_given:
                raise UsageError(
                    f"{option} is for fingerprints: pass --distance 3 for an index by distance, or"
                    f" leave {option} out for one by similarity"
                )
    if distance is None:
        resolved = question_for(parts.question, similarity, similarity_measure, parts.recipe)
        DurableIndex.create(
            folder, plan=plan, store=store, question=resolved, extract=extract
        ).close()
        what, recipe = f"similarity {resolved.similarity} ({resolved.measure})", resolved.recipe
    else:
        shared.check_reach(distance, own.bits)
        DurableIndex.create(
            folder, distance, own.bits, recipe, plan, store or "none", extract=extract
        ).close()
        what = f"distance {distance}"
    recipe_name = "no recipe" if recipe is None else f"recipe {recipe.digest}"
    echo(f"made {shown(folder)}: {what}, {recipe_name}", err=True)


@takes_documents()
def add(
    context: typer.Context,
    folder: Folder,
    inputs: shared.Inputs,
    if_new: Annotated[
        bool, typer.Option("--if-new", help="Leave out documents near another stored one.")
    ] = False,
    stored: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="With --if-new, for a stored id with other content: replace, keep or error.",
            show_default="replace",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="NEW",
            help="With --if-new, the new documents: a file, - or a folder/.",
        ),
    ] = None,
    *,
    reading: Reading,
    fingerprint_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Store this field's numbers, in place of texts: 123, -42 or hexadecimal.",
        ),
    ] = None,
    foreign: Annotated[
        bool, typer.Option("--foreign", help="Accept fingerprints of an unknown recipe.")
    ] = False,
    verify: Verify = False,
    wait: shared.Wait = None,
    memory: shared.RecordMemory = None,
    idf: IdfTable = None,
    dictionary: KeywordFolder = None,
    json: shared.Json = False,
) -> None:
    """Store the documents of files, or of fingerprint files; a stored id is replaced.

    After an error or a kill the stored documents stay: run the same command again. Without --id the
    ids are file:row, and a stored one with other content is refused.

    With --output all are stored at once, after the new documents are written.

    Examples:
    neardup index add seen.index news.jsonl --id id

    neardup index add seen.index news.jsonl --id id --if-new -o new.jsonl

    neardup index add prints.index news-fingerprints.parquet

    neardup index add hashes.index pages.csv --id url --fingerprint-field simhash
    """
    shared.check_json(json, output, reading.rejects)
    for option, value in (("--stored", stored), ("--output", output)):
        if value is not None and not if_new:
            raise UsageError(
                f"{option} {value} requires --if-new: without it every document is stored"
            )
    offered: Any = stored or "replace"

    from neardup.cli.screen import print_summary, progress
    from neardup.pipeline.index_files import IfNew, add_files

    load_words(idf, dictionary)
    if fingerprint_field is not None and given_options(context, "text"):
        raise UsageError("--fingerprint-field takes the place of --text: leave one of them out")
    column = {"text": (fingerprint_field,), "numbers": True} if fingerprint_field else {}
    read, input_format = reading.options(memory, **column), reading.input_format
    note_what_stays(folder, "; run the same again for the rest")
    opened = opened_to_write(folder, wait, verify=verify)
    with opened as index, progress() as reporter:
        summary = add_files(
            index, inputs, read,
            if_new=IfNew(offered, output) if if_new else None, rejects_path=reading.rejects,
            progress=reporter, format_name=input_format, foreign=foreign,
        )  # fmt: skip
    print_summary(summary, json)


@takes_documents(without=("format_name", "delimiter", "encoding", "records", "extract", "rejects"))
def filter_(
    folder: Folder,
    mark: Annotated[
        bool, typer.Option("--mark", help="Write all lines, each with its answer.")
    ] = False,
    every: Annotated[
        int | None,
        typer.Option(
            parser=shared.whole(1),
            metavar="N",
            help="Write and commit every N lines, not as they arrive.",
        ),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(
            metavar="json|text",
            help="Form of a line: a JSON object, or a text; by default the first line decides.",
        ),
    ] = None,
    stored: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="For a stored id with other content: replace, keep or error."
        ),
    ] = "replace",
    *,
    reading: Reading,
    verify: Verify = False,
    wait: shared.Wait = None,
    memory: shared.RecordMemory = None,
    idf: IdfTable = None,
    dictionary: KeywordFolder = None,
) -> None:
    """Pass on the lines of standard input whose documents are new, and store them.

    Lines are written as they arrive, so `tail -f` and named pipes can be filtered. Each is written
    before its document is committed: after a kill, pass the same lines again; some come twice,
    none is missing. Without --id lines are numbered, from where the index ends.

    With --mark an object gets a last field "neardup"; before a text it writes the state, the near
    id and their similarity, separated by tabs.

    Examples:
    neardup index filter seen.index < lines > new-lines

    tail -f crawl.jsonl | neardup index filter seen.index --id url --text body
    """
    if lines not in {None, "json", "text"}:
        raise UsageError(f"--lines is {lines!r}: use json or text")
    offered: Any = stored
    from neardup.cli.screen import print_summary
    from neardup.pipeline.index_stream import Passing, filter_lines

    load_words(idf, dictionary)
    read = reading.options(memory)
    note_what_stays(folder, "; give the same lines again")
    passing = Passing(None if lines is None else lines == "json", mark, every, offered)
    with opened_to_write(folder, wait, verify=verify) as index:
        summary = filter_lines(index, sys.stdin.fileno(), sys.stdout.buffer, read, passing)
    print_summary(summary, as_json=False)
