"""`neardup idf`: learns tables of document frequencies from files, and merges them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_recipe
from neardup.cli.screen import echo
from neardup.cli.signatures import Commands
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from neardup.fingerprinting.document_frequencies import DocumentFrequencies
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["app", "learn", "merge"]

app = Commands(name="idf", help="Tables of document frequencies.", no_args_is_help=True)

_Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Table to write.")]


@app.command()
@takes_recipe(without=("preset", "weight", "hash", "bits", "idf", "missing", "top"))
@takes_documents(without=("id_field", "on_error", "rejects"))
def learn(
    inputs: shared.Inputs,
    output: _Output,
    limit: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="The most features to keep; the rarest are dropped."),
    ] = 1 << 23,
    *,
    reading: Reading,
    workers: shared.Workers = None,
    memory: shared.RecordMemory = None,
    recipe: Recipe,
) -> None:
    """Count the documents that have each feature, in one pass and bounded memory.

    Example:
    neardup idf learn news.jsonl -o news.idf --ngram 1
    """
    from neardup.cli.screen import progress
    from neardup.documents import OutputSet, open_sources
    from neardup.fingerprinting.document_frequencies import FrequencyLearner

    learner = FrequencyLearner(recipe, limit, workers)
    options = reading.options(memory)
    sources = open_sources(inputs, None, reading.input_format)
    try:
        OutputSet(path for source in sources for path in source.paths).check(output)
        with progress() as reporter:
            reporter.begin("read", None)
            for source in sources:
                for batch in source.batches(options):
                    learner.add(batch.texts)
                    reporter.advance(batch.nbytes)
    finally:
        for source in sources:
            source.close()
    _write(learner.finish(), output)


@app.command()
def merge(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Tables.", show_default=False)
    ],
    output: _Output,
) -> None:
    """Add up tables learned from different documents with one recipe.

    Example:
    neardup idf merge monday.idf tuesday.idf -o week.idf
    """
    from neardup.fingerprinting.document_frequencies import DocumentFrequencies

    merged = DocumentFrequencies.load(tables[0])
    for path in tables[1:]:
        merged = merged.merge(DocumentFrequencies.load(path))
    _write(merged, output)


def _write(table: DocumentFrequencies, output: str) -> None:
    table.save(output)
    missed = f", counts up to {table.missed:,} too low" if table.missed else ""
    echo(
        f"wrote     {shown(output)}: {len(table):,} features of {table.documents:,} documents"
        f"{missed}; digest {table.digest}",
        err=True,
    )
