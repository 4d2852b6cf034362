"""`neardup fingerprint`: write the fingerprint of every document to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_recipe

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["fingerprint"]


@takes_recipe(all_shown=True)
@takes_documents()
def fingerprint(
    inputs: shared.Inputs,
    output: Annotated[
        str,
        shared.results_option(
            "--output",
            "-o",
            metavar="FPS.parquet",
            help="Fingerprint file; .csv or .jsonl for loading into a database.",
        ),
    ],
    form: Annotated[
        str | None,
        shared.results_option(
            "--form", metavar="FORM", help="In CSV and JSON lines: hex (default) or signed numbers."
        ),
    ] = None,
    *,
    reading: Reading,
    workers: shared.Workers = None,
    memory: shared.RecordMemory = None,
    json: shared.Json = False,
    recipe: Recipe,
) -> None:
    """Fingerprint documents; the recipe is stored with them.

    Examples:
    neardup fingerprint news.jsonl -o news.parquet --id id

    neardup fingerprint news.csv -o news.parquet --bits 128 --tokens chars --ngram 5

    neardup fingerprint news.jsonl -o news.parquet --stopwords english --weight log --top 50

    neardup fingerprint news.jsonl -o news.parquet --preset pypi-simhash

    neardup fingerprint news.jsonl -o news.csv --form signed
    """
    shared.check_json(json, reading.rejects)

    from neardup.cli.screen import print_summary, progress, warm_up
    from neardup.fingerprinting.fingerprints import fingerprint as compute
    from neardup.pipeline import Limits, fingerprint_files

    read = reading.options(memory)
    using = Limits(workers=workers)
    warm_up(lambda: compute("one", recipe))
    with progress() as reporter:
        summary = fingerprint_files(
            inputs, output, recipe, read, using, reading.rejects, reporter, form
        )
    print_summary(summary, json)
