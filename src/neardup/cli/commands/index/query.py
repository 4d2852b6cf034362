"""`neardup index query`: finds stored documents near a text, a fingerprint or files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.commands.index.arguments import Folder, HitsFile, Verify, check_one_query
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import IdfTable, KeywordFolder, load_words
from neardup.cli.screen import echo
from neardup.errors import DataError, UsageError

__all__ = ["query"]


@takes_documents()
def query(
    context: typer.Context,
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[IN...]", help="Documents or fingerprint files.", show_default=False
        ),
    ] = None,
    query_text: Annotated[
        str | None,
        typer.Option("--query-text", metavar="TEXT", help="One text; - reads standard input."),
    ] = None,
    fingerprint: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="One fingerprint: 123, or 0x7b.")
    ] = None,
    output: HitsFile = None,
    distance: Annotated[
        int | None,
        typer.Option(
            "--distance", "-k", min=0, metavar="BITS", help="At most the index's distance."
        ),
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
            min=1,
            metavar="N",
            help="The N closest, at any distance or similarity.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="The most hits for one query; the summary says how many were cut.",
        ),
    ] = None,
    *,
    reading: Reading,
    verify: Verify = False,
    memory: shared.RecordMemory = None,
    idf: IdfTable = None,
    dictionary: KeywordFolder = None,
    csv_safe: shared.CsvSafe = False,
    json: shared.Json = False,
) -> None:
    """Find the stored documents near a text, a fingerprint, or each document of files.

    Examples:
    neardup index query seen.index --query-text "the quick brown fox jumps over the lazy dog"

    neardup index query seen.index new.jsonl -o hits.parquet

    neardup index query seen.index question.txt --nearest 5
    """
    single = [x for x in (query_text, fingerprint) if x is not None]
    if len(single) + bool(inputs) != 1:
        raise UsageError("give one of IN..., --query-text and --fingerprint")
    if single:
        check_one_query(context)
    if nearest is not None and any(x is not None for x in (distance, similarity, limit)):
        raise UsageError(
            "--nearest is a number of hits: leave --distance, --similarity and --limit out"
        )
    target = output or "-"
    shared.check_json(json and not single, target, reading.rejects)

    from neardup.cli.screen import print_hits, print_summary, progress
    from neardup.index import DurableIndex
    from neardup.pipeline.index_files import ask_files
    from neardup.pipeline.index_questions import Reach, ask_one

    load_words(idf, dictionary)
    reach = Reach(distance, limit, similarity, csv_safe, nearest)
    with DurableIndex.open(folder, readonly=True, verify=verify) as index:
        if single:
            answer = ask_one(index, _query_of(query_text, fingerprint), reach)
            if answer.is_empty:
                echo("the text has no tokens, so nothing is near it", err=True)
            print_hits(answer.hits, answer.total, answer.what, json)
            return
        read = reading.options(memory)
        with progress() as reporter:
            summary = ask_files(
                index, inputs or [], target, read,
                reach=reach, rejects_path=reading.rejects, progress=reporter,
                format_name=reading.input_format,
            )  # fmt: skip
    print_summary(summary, json)


def _query_of(text: str | None, fingerprint: str | None) -> str | int:
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
            f"--fingerprint is {fingerprint!r}: use a whole number such as 123, or hexadecimal"
            " digits after 0x, such as 0x7b"
        ) from None
