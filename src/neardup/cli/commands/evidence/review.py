"""`neardup review`: lets a person judge pairs in the browser."""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_question
from neardup.cli.screen import echo
from neardup.errors import DataError, UsageError
from neardup.runtime.progress import shown

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts
    from neardup.pipeline.judgement.question_review import QuestionReview
    from neardup.pipeline.judgement.review_session import Review

__all__ = ["review"]


@takes_question(without=("preset",))
@takes_documents(without=("on_error", "rejects"))
def review(
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS",
            help="The table of dedup --duplicates, or one with two columns of ids; with -o,"
            " the first input.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="IN...", help="The documents, as for dedup.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        shared.results_option(
            "--output",
            "-o",
            metavar="FILE.toml",
            help="Find the question: write the one that agrees best with the answers to this file.",
        ),
    ] = None,
    answers: Annotated[
        str, typer.Option(metavar="FILE.jsonl", help="File of answers; existing ones count.")
    ] = "answers.jsonl",
    similarity: Annotated[
        float | None,
        typer.Option(
            "--similarity",
            "-s",
            metavar="S",
            help="Ask about pairs near this one first. (default: the least in PAIRS)",
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            parser=shared.number_to_one,
            metavar="P",
            help="Precision that a threshold should reach. (default: 0.95)",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            parser=shared.whole(0),
            metavar="N",
            help="The next one if it is taken; 0 for a free one.",
        ),
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the browser.")
    ] = True,
    measure: shared.Measure = None,
    fields: shared.ShownFields = None,
    *,
    reading: Reading,
    seed: Annotated[int, shared.seed_option(help="Of the order.")] = 0,
    memory: shared.RecordMemory = None,
    parts: Parts,
) -> None:
    """Judge pairs in the browser, on this machine: y, n, u, and b to go back.

    Each answer is on disk before the next pair is shown. The page shows the precision that the
    answers make likely, and the threshold that reaches a given one. With -o, name no pairs:
    it shows pairs of the documents on which questions disagree, and writes the question that
    agrees best with some thirty answers. Ctrl-C ends it.

    Examples:
    neardup review dropped.csv news.jsonl --id id --answers answers.jsonl

    neardup review dropped.csv --fields Email,Date

    neardup review news.jsonl --id id -o question.toml

    neardup dedup news.jsonl --id id --decisions answers.jsonl -o unique.jsonl
    """
    # What it needs is known to be there before documents are read.
    import neardup.service.review_server  # noqa: F401

    if output is not None:
        options = {
            "--similarity": similarity, "--precision": precision, "--measure": measure,
            "--fields": fields,
            "--question": parts.question, parts.first_option or "--recipe": parts.recipe,
        }  # fmt: skip
        option_names = [name for name, value in options.items() if value is not None]
        if option_names:
            raise UsageError(f"-o and {option_names[0]} exclude each other: -o finds a question")
        if not output.endswith(".toml"):
            raise UsageError(
                f"--output is {output}: a question file is TOML, so name it question.toml"
            )
        session = _question_review([pairs, *(inputs or [])], reading, memory, answers, seed)
        _serve(session, port, open_browser=open_browser)
        _end_with_question(session, [pairs, *(inputs or [])], reading, output)
        return
    from neardup.pipeline.run.kept_options import kept_inputs, kept_options, kept_rule

    facts = kept_options(pairs)
    reading, inputs = reading.completed(facts), inputs or kept_inputs(pairs, facts)
    if not inputs:
        raise UsageError(
            f"after the pairs ({pairs}) name the documents; or give -o question.toml to find the"
            f" question of the documents in {pairs}"
        )

    from neardup.fingerprinting.question import question_for
    from neardup.pipeline.judgement.review_session import Review, ReviewOptions

    recipe, rule = parts.recipe, kept_rule(facts)
    if rule is not None and parts.question is None and recipe is None:
        recipe, measure = rule.recipe, measure or rule.measure
    question = question_for(parts.question, similarity, measure, recipe)
    near = similarity if parts.question is None else question.similarity
    least = 0.95 if precision is None else precision
    review_options = ReviewOptions(answers, near, least, question.measure, seed)
    read, input_format = reading.options(memory), reading.input_format
    names = shared.field_names(fields)
    judged = Review(pairs, inputs, review_options, question.recipe, read, input_format, names)
    _serve(judged, port, open_browser=open_browser)
    status, place = judged.status(), shown(answers)
    echo(
        f"{status['yes']} duplicates, {status['no']} different, {status['unsure']} unsure are"
        f" in {place}; take them with dedup --decisions {place}",
        err=True,
    )


def _serve(judged: Review | QuestionReview, port: int, *, open_browser: bool) -> None:
    """Serve a review until Ctrl-C."""
    from neardup.service.review_server import ReviewServer

    try:
        with ReviewServer(judged, port, lambda line: echo(line, err=True)) as server:
            echo(f"open {server.url} (Ctrl-C ends the review)")
            if open_browser:
                import webbrowser

                webbrowser.open(server.url)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
    finally:
        judged.close()


def _question_review(
    inputs: list[str], reading: Reading, memory: str | None, answers: str, seed: int
) -> QuestionReview:
    from neardup.cli.screen import progress, warm_up
    from neardup.pipeline import Choice, Limits, Rule, dedup_texts
    from neardup.pipeline.judgement.question_review import QuestionReview, sample_pairs
    from neardup.runtime.free_memory import memory_bytes

    limits = Limits(memory_bytes(memory))
    warm_up(lambda: dedup_texts(["one", "one"], Rule(), Choice(), limits), by_features=True)
    read, input_format = reading.options(memory), reading.input_format
    with progress() as steps:
        sampled = sample_pairs(inputs, read, limits, seed, steps, input_format)
    return QuestionReview(sampled, answers, seed)


def _end_with_question(
    judged: QuestionReview, inputs: list[str], reading: Reading, output: str
) -> None:
    """Write the best question, and print how good it is and how to use it."""
    from neardup.pipeline.calibration.advice import read_options

    status = judged.status()
    if not status["yes"] + status["no"] + status["earlier"]:
        raise DataError(f"no pair was judged: {output} is not written")
    best = judged.best
    best.question.save(output)
    again = ["neardup", "dedup", *inputs, "-o", "OUT", *read_options(reading.options(None))]
    shares = f"F1 {best.f1}, precision {best.precision}, recall {best.recall}"
    echo(
        f"best question: {status['title']}: {shares}, by {best.answers} answers; {status['more']}\n"
        f"wrote {shown(output)}\n"
        f"use: {shown(shlex.join([*again, '--question', output]))}",
        err=True,
    )
