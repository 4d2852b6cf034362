"""`neardup evaluate`: compares recipes, thresholds and distances with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import make_recipe, takes_question
from neardup.errors import UsageError

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["evaluate"]


@takes_question(without=("preset",))
@takes_documents(without=("id_field", "on_error", "rejects"))
def evaluate(
    docs: Annotated[
        list[str],
        typer.Option("--docs", metavar="IN", help="Files of documents; may be repeated."),
    ],
    labels: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A table of id and cluster, or of pairs (id1, id2) with or without a label.",
        ),
    ],
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="TOKENS:N|FILE",
            help="A further recipe to compare, such as chars:5 or a JSON file; may be repeated.",
        ),
    ] = None,
    lowest: shared.Lowest = 0.5,
    measure: shared.Measure = None,
    policy: Annotated[str, typer.Option(help="Of groups: greedy or components.")] = "greedy",
    *,
    reading: Reading,
    id_field: Annotated[
        str, typer.Option("--id", metavar="FIELD", help="Field with the id that labels name.")
    ] = "id",
    seed: Annotated[int, shared.seed_option(help="Of the intervals.")] = 0,
    report: Annotated[
        str | None, shared.results_option(metavar="FILE.html", help="Write a page with curves.")
    ] = None,
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    json: shared.Json = False,
    parts: Parts,
) -> None:
    """Measure precision, recall, F1, ARI and B-cubed at every threshold and distance.

    Examples:
    neardup evaluate --docs news.jsonl --labels pairs.csv

    neardup evaluate --docs news.jsonl --labels clusters.csv --also words:1 --also chars:5
    """
    shared.check_folder(tmp)

    from json import dumps

    from neardup.cli.screen import echo, progress
    from neardup.fingerprinting.question import question_for
    from neardup.pipeline import Limits
    from neardup.pipeline.evaluation.evaluate import EvaluationOptions, evaluate_files
    from neardup.runtime.free_memory import memory_bytes

    question = question_for(parts.question, measure=measure, recipe=parts.recipe)
    recipes = [_titled(question.recipe), *(_titled(_recipe(each)) for each in also or ())]
    options = EvaluationOptions(labels, recipes, lowest, question.measure, policy, seed, report)
    limits = Limits(memory_bytes(memory), tmp, workers)
    read = reading.options(memory, id=id_field)
    with progress() as reporter:
        evaluation = evaluate_files(docs, options, read, limits, reporter)
    echo(dumps(evaluation.to_dict()) if json else str(evaluation))


def _recipe(text: str) -> Recipe:
    """The recipe in a JSON file, or of tokens and a number such as chars:5."""
    tokens, _, ngram = text.rpartition(":")
    if tokens and ngram.isdecimal():
        return make_recipe(None, tokens=tokens, ngram=int(ngram))
    if text.endswith(".json"):
        return make_recipe(text)
    raise UsageError(f"--also is {text!r}: use tokens and n, such as chars:5, or a recipe's .json")


def _titled(recipe: Recipe) -> tuple[str, Recipe]:
    weight = "" if recipe.weight == "set" else f", {recipe.weight}"
    return f"{recipe.tokens}, {recipe.ngram}{weight}, {recipe.bits} bits", recipe
