"""`neardup serve`: serves an index over HTTP."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from neardup.cli import options as shared
from neardup.cli.commands.index.arguments import ExtractOfIndex, Folder
from neardup.errors import UsageError

__all__ = ["serve"]


def serve(
    folder: Folder,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address; any except loopback requires --keys.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(parser=shared.whole(0), metavar="N", help="Port; 0 for a free one.")
    ] = 8080,
    resp: Annotated[
        int | None,
        typer.Option(
            parser=shared.whole(0),
            metavar="N",
            help="Port for clients of Redis: BF.ADD, BF.EXISTS.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of lines: read KEY, or write KEY."),
    ] = None,
    readonly: Annotated[
        bool, typer.Option("--readonly", help="Only answer queries, while another process writes.")
    ] = False,
    similarity: Annotated[
        float | None,
        typer.Option("--similarity", "-s", metavar="S", help="Make the index, if there is none."),
    ] = None,
    distance: Annotated[
        int | None, typer.Option("--distance", "-d", metavar="D", help="As --similarity.")
    ] = None,
    question: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Instead of --similarity: a file of calibrate."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Stored content of documents in a new index: text, or none."
        ),
    ] = None,
    extract: ExtractOfIndex = None,
    max_age: Annotated[
        str | None,
        typer.Option(metavar="T", help="Remove older documents: 30d, 12h, 90m or 45s."),
    ] = None,
    age: Annotated[
        str, typer.Option(metavar="added|seen", help="Time from which --max-age counts.")
    ] = "added",
    backups: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the copies of POST /v1/backup."),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Origin of web pages that may call: https://example.org."),
    ] = None,
    wait: shared.Wait = None,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log every request, not only failures.")
    ] = False,
) -> None:
    """Answer "have I seen this?" over HTTP: one index a process, safe against crashes.

    Requires the extra serve. The log goes to the standard error, a line of JSON each.
    SIGTERM and Ctrl-C end it in an orderly way.

    Pages for the browser: / asks what is near a text, and shows the state; /compare shows two texts
    and their fingerprints. Use neardup review to judge pairs.

    Examples:
    neardup serve seen.index --similarity 0.8

    neardup serve pages.index --similarity 0.8 --extract main

    neardup serve seen.index --host 0.0.0.0 --keys keys.txt --max-age 30d --age seen
    """
    from neardup.cli.screen import echo

    index_settings = _settings_of(folder, similarity, distance, question, store, readonly=readonly)
    index_settings["extract"] = extract
    if age not in {"added", "seen"}:
        raise UsageError(f"--age is {age!r}: use added or seen")
    if max_age is None and age == "seen":
        raise UsageError("--age seen requires --max-age: say how old documents may become")
    if wait is not None and readonly:
        raise UsageError("--wait and --readonly exclude each other: a reader never waits")
    with contextlib.suppress(KeyboardInterrupt):  # a signal before it listens: also good order
        from neardup.service import Settings
        from neardup.service import serve as run

        settings = Settings(
            host=host, port=port, resp=resp, keys=keys, origin=origin, readonly=readonly,
            backups=backups,
            max_age=None if max_age is None else _age(max_age), age_from=age,
            log_requests=log_requests,
        )  # fmt: skip
        run(folder, settings, echo, wait=shared.wait_seconds(wait), **index_settings)


def _settings_of(
    folder: str, similarity: float | None, distance: int | None, question: Path | None,
    store: str | None, *, readonly: bool,
) -> dict[str, object]:  # fmt: skip
    """The settings of a new index, if the folder has none."""
    from neardup.fingerprinting.question import Question, question_for

    rules = [each for each in (similarity, distance, question) if each is not None]
    if len(rules) > 1:
        raise UsageError("--similarity, --distance and --question exclude each other: give one")
    there = Path(folder).is_dir() and any(Path(folder).iterdir())
    if there or not rules:
        if not rules and not there:
            raise UsageError(
                f"there is no index in {folder}: add --similarity 0.8, or make it with"
                f" neardup index create {folder} --similarity 0.8"
            )
        return {
            "create": False, "similarity": similarity, "distance": distance, "store": store
        }  # fmt: skip
    if readonly:
        raise UsageError(f"there is no index in {folder}, and --readonly makes none")
    if distance is None:
        chosen = None if question is None else Question.load(str(question))
        return {"question": question_for(chosen, similarity, None, None), "store": store}
    from neardup.fingerprinting.recipe import Recipe

    return {"distance": distance, "recipe": Recipe(), "store": store}


def _age(text: str) -> float:
    seconds = shared.seconds_of("--max-age", text, "30d")
    if not seconds:
        raise UsageError(f"--max-age is {text!r}: use a longer time, such as 30d")
    return seconds
