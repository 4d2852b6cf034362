"""`neardup review`: judge pairs in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.document_options import Reading, takes_documents
from neardup.cli.recipe_options import takes_question

if TYPE_CHECKING:
    from neardup.cli.recipe_options import Parts

__all__ = ["review"]


@takes_question(without=("preset",))
@takes_documents(without=("on_error", "rejects"))
def review(
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS",
            help="What dedup --duplicates wrote, or a table with two columns of ids.",
            show_default=False,
        ),
    ],
    inputs: shared.Inputs,
    answers: Annotated[
        str, typer.Option(metavar="FILE.jsonl", help="Keeps the answers; what is there counts.")
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
        float,
        typer.Option(
            parser=shared.number_to_one, metavar="P", help="Which a threshold is to reach."
        ),
    ] = 0.95,
    port: Annotated[
        int, typer.Option(parser=shared.whole(0), metavar="N", help="0: one that is free.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the browser.")
    ] = True,
    measure: shared.Measure = None,
    *,
    reading: Reading,
    seed: Annotated[int, shared.seed_option(help="Of the order.")] = 0,
    memory: shared.RecordMemory = None,
    made: Parts,
) -> None:
    """Judge pairs in the browser, on this machine: y, n, u, and b to go back.

    Each answer is on disk before the next pair is shown. The page tells the precision that the
    answers make likely, and the threshold that reaches the one you want. Ctrl-C ends it.

    Examples:
    neardup review dropped.csv news.jsonl --id id --answers answers.jsonl

    neardup dedup news.jsonl --id id --decisions answers.jsonl -o unique.jsonl
    """
    from neardup.cli.screen import echo
    from neardup.fingerprinting.question import question_for
    from neardup.pipeline.judgement.review_session import Review, Wanted
    from neardup.pipeline.judgement.server import ReviewServer
    from neardup.runtime.progress import shown

    question = question_for(made.question, similarity, measure, made.recipe)
    near = similarity if made.question is None else question.similarity
    wanted = Wanted(answers, near, precision, question.measure, seed)
    read, input_format = reading.options(memory), reading.input_format
    judged = Review(pairs, inputs, wanted, question.recipe, read, input_format)
    with ReviewServer(judged, port, lambda line: echo(line, err=True)) as server:
        echo(f"open {server.url} (Ctrl-C ends the review)")
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            found = judged.status()
            place = shown(answers)
            echo(
                f"{found['yes']} duplicates, {found['no']} different, {found['unsure']} unsure are"
                f" in {place}; take them with dedup --decisions {place}",
                err=True,
            )
        finally:
            judged.close()
