"""`neardup lines`: cuts paragraphs or lines that many documents share."""

from __future__ import annotations

from typing import Annotated

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents

__all__ = ["lines"]


@takes_documents(without=("extract",))
def lines(
    inputs: shared.Inputs,
    output: Annotated[
        str,
        shared.results_option(
            "--output", "-o", metavar="OUT", help="All records: a file, - or a folder/."
        ),
    ],
    cut: Annotated[
        str | None,
        shared.results_option(
            "--cut", metavar="FILE", help="Write the cut paragraphs or lines to this table."
        ),
    ] = None,
    unit: Annotated[
        str,
        shared.match_option(
            "--unit",
            metavar="paragraph|line",
            help="The unit that is compared, and cut as a whole.",
        ),
    ] = "paragraph",
    seen_in: Annotated[
        int,
        shared.match_option(
            "--seen-in",
            parser=shared.whole(2),
            metavar="N",
            help="Cut units that at least this number of documents have.",
        ),
    ] = 5,
    min_words: Annotated[
        int,
        shared.match_option(
            "--min-words",
            parser=shared.whole(1),
            metavar="N",
            help="Never cut a unit of fewer words.",
        ),
    ] = 5,
    keep: Annotated[
        str,
        shared.match_option(
            "--keep", metavar="first|none", help="Leave the first of equal units, or none."
        ),
    ] = "first",
    *,
    reading: Reading,
    csv_safe: shared.CsvSafe = False,
    workers: shared.Workers = None,
    memory: shared.RecordMemory = None,
    tmp: shared.Tmp = None,
    json: shared.Json = False,
) -> None:
    """Cut paragraphs or lines that many documents have: notices, menus, licences, page heads.

    Equal means equal after normalising: case, white space and forms of characters do not count.

    Examples:
    neardup lines news.jsonl -o clean.jsonl --cut cut.csv

    neardup lines 'docs/*.txt' -o clean/ --unit line --seen-in 100 --keep none
    """
    shared.check_json(json, output, cut, reading.rejects)
    shared.check_folder(tmp)

    from neardup.cli.screen import print_summary, progress, warm_up
    from neardup.features.passages import unit_hashes
    from neardup.features.text import text_array
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline import Limits, LineOutputs, Repeated, lines_files
    from neardup.runtime.free_memory import memory_bytes

    outputs = LineOutputs(output, cut, reading.rejects, csv_safe)
    repeated = Repeated(unit, seen_in, min_words, keep)
    using = Limits(memory_bytes(memory), tmp, workers=workers)
    read = reading.options(memory)
    warm_up(lambda: unit_hashes(text_array(["one"]).chunk(0), unit, 1, Recipe(), 1))
    with progress() as reporter:
        summary = lines_files(inputs, outputs, repeated, read, using, reporter)
    print_summary(summary, json)
