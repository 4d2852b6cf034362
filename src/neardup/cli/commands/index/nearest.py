"""`neardup index nearest`: finds the most similar documents of an index, however dissimilar."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.commands.index.arguments import Folder, HitsFile, check_one_query, identity_of
from neardup.cli.document_options import READING_OPTIONS, Reading, takes_documents
from neardup.cli.recipe_options import IdfTable, KeywordFolder, load_words
from neardup.cli.screen import echo
from neardup.errors import UsageError

__all__ = ["nearest"]


@takes_documents(without=set(READING_OPTIONS) - {"text", "format_name"})
def nearest(
    context: typer.Context,
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[IN...]", help="Documents to search for.", show_default=False),
    ] = None,
    stored: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="A stored document, in place of IN....")
    ] = None,
    count: Annotated[
        int, typer.Option("-n", min=1, metavar="N", help="Number for each document.")
    ] = 10,
    by: Annotated[
        str,
        typer.Option(
            help="similarity, or cosine of the recipe's weights: related documents; for an index by"
            " similarity."
        ),
    ] = "similarity",
    output: HitsFile = None,
    *,
    reading: Reading,
    id_field: Annotated[
        str | None, typer.Option("--id-field", metavar="FIELD", help="Field with the id of IN...")
    ] = None,
    memory: shared.RecordMemory = None,
    idf: IdfTable = None,
    dictionary: KeywordFolder = None,
    csv_safe: shared.CsvSafe = False,
    json: shared.Json = False,
) -> None:
    """Find the stored documents most similar to a stored one, or to each document of files.

    Examples:
    neardup index nearest seen.index --id news.jsonl:17 -n 5

    neardup index nearest seen.index question.txt --by cosine
    """  # fmt: skip
    if (stored is not None) + bool(inputs) != 1:
        raise UsageError("give one of IN... and --id")
    if stored is not None:
        check_one_query(context)
    target = output or "-"
    shared.check_json(json and stored is None, target, None)

    from neardup.cli.screen import print_related, print_summary, progress
    from neardup.index import DurableIndex
    from neardup.pipeline.index_files import ask_files
    from neardup.pipeline.index_questions import Reach, related_to

    load_words(idf, dictionary)
    with DurableIndex.open(folder, readonly=True) as index:
        if stored is not None:
            related = related_to(index, identity_of(stored, index.id_kind), count, by)
            print_related(related, json)
            return
        read = reading.options(memory, id=id_field)
        with progress() as reporter:
            summary = ask_files(
                index, inputs or [], target, read,
                reach=Reach(csv_safe=csv_safe, nearest=count, by=by), progress=reporter,
                format_name=reading.input_format,
            )  # fmt: skip
    if not summary.hits:
        echo("no stored document shares a feature with it", err=True)
    print_summary(summary, json)
