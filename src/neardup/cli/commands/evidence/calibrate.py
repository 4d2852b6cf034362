"""`neardup calibrate`: shows which question, threshold, distance and width suit a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_question
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts

__all__ = ["calibrate"]


@takes_question(without=("preset",))
@takes_documents(without=("rejects",))
def calibrate(
    inputs: shared.Inputs,
    edits: Annotated[
        str | None,
        typer.Option(
            "--edits",
            metavar="5%|N",
            help="How much a copy may differ: a share of its words, or N words. (default: 5%)",
        ),
    ] = None,
    output: Annotated[
        str | None,
        shared.results_option(
            "--output", "-o", metavar="FILE.toml", help="Write the advised question here."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            parser=shared.whole(2),
            metavar="N",
            help="Size of the random sample of documents. (default: 20000)",
        ),
    ] = None,
    lowest: Annotated[
        float | None,
        typer.Option(
            "--lowest",
            parser=shared.number_to_one,
            metavar="S",
            help="Least similarity that is searched. (default: 0.3)",
        ),
    ] = None,
    similarity: Annotated[
        float | None,
        typer.Option(
            "--similarity",
            "-s",
            metavar="S",
            help="The threshold to advise on. (default: one in a valley, if there is one)",
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            parser=shared.number_to_one,
            metavar="R",
            help="Share that the advised distance should find. (default: 0.95)",
        ),
    ] = None,
    measure: shared.Measure = None,
    *,
    reading: Reading,
    seed: Annotated[int, shared.seed_option(help="Of the sample.")] = 0,
    report: Annotated[
        str | None,
        shared.results_option(
            metavar="FILE.html", help="Write a page with curves and example pairs."
        ),
    ] = None,
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    json: shared.Json = False,
    parts: Parts,
) -> None:
    """Find, without labels, the question that finds copies, or show what each threshold finds.

    It plants edits of known kinds in a sample of the documents. The table says what each question
    finds of them, and what else it matches. With --similarity, --lowest, --sample, --recall,
    --measure, --report or a recipe it tells for that recipe what each threshold and distance would
    find, and what they would cost.

    Examples:
    neardup calibrate news.jsonl -o question.toml

    neardup calibrate news.jsonl --edits 1

    neardup calibrate news.jsonl --similarity 0.8 --report calibration.html
    """
    shared.check_folder(tmp)
    of_thresholds = {
        "--sample": sample, "--lowest": lowest, "--similarity": similarity, "--recall": recall,
        "--measure": measure, "--report": report, parts.first_option or "--recipe": parts.recipe,
    }  # fmt: skip
    of_questions = {"--edits": edits, "--output": output, "--question": parts.question}
    others = [name for name, value in of_thresholds.items() if value is not None]
    names = [name for name, value in of_questions.items() if value is not None]
    if others and names:
        raise UsageError(
            f"{names[0]} and {others[0]} exclude each other: with {others[0]} one recipe is looked"
            " at, and no question is chosen"
        )
    if output is not None and not output.endswith(".toml"):
        raise UsageError(f"--output is {output}: a question file is TOML, so name it question.toml")

    from json import dumps

    from neardup.cli.screen import echo, progress, warm_up
    from neardup.fingerprinting.question import DEFAULT_QUESTION
    from neardup.fingerprinting.recipe import recipe_of
    from neardup.pipeline import Choice, Limits, Rule, dedup_texts
    from neardup.pipeline.calibration.calibrate import CalibrationOptions, calibrate_files
    from neardup.pipeline.calibration.edits import Aim
    from neardup.pipeline.calibration.questions import ComparisonOptions, compare_questions
    from neardup.runtime.free_memory import memory_bytes
    from neardup.runtime.progress import shown as printable

    recipe = recipe_of(parts.recipe)
    limits = Limits(memory_bytes(memory), tmp, workers)
    read, input_format = reading.options(memory), reading.input_format
    if others:
        settings = {"sample": sample, "lowest": lowest, "recall": recall, "measure": measure}
        chosen = {name: value for name, value in settings.items() if value is not None}
        options = CalibrationOptions(similarity=similarity, seed=seed, report=report, **chosen)  # type: ignore[arg-type]
        rule = Rule(recipe=recipe)
        warm_up(lambda: dedup_texts(["one", "one"], rule, Choice(), limits), by_features=True)
        with progress() as reporter:
            calibration = calibrate_files(
                inputs, options, recipe, read, limits, reporter, input_format
            )
        echo(dumps(calibration.to_dict()) if json else str(calibration))
        return
    aim = Aim() if edits is None else Aim.parse(edits)
    request = ComparisonOptions(aim, parts.question or DEFAULT_QUESTION, seed)
    warm_up(lambda: dedup_texts(["one", "one"], Rule(), Choice(), limits), by_features=True)
    with progress() as reporter:
        comparison = compare_questions(inputs, request, read, limits, reporter, input_format)
    echo(dumps(comparison.to_dict()) if json else str(comparison))
    if output is None:
        return
    if comparison.advised is None:
        raise DataError(f"no question is advised: {comparison.why}; {output} is not written")
    comparison.advised.question.save(output)
    echo(f"wrote {printable(output)}; use it with --question", err=True)
