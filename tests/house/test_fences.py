"""Every fenced block of the pages is run, parsed, or listed here with the reason why it is not."""

from __future__ import annotations

import ast
import doctest
import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Any, Final

import pytest
import typer

import neardup as nd
from neardup.cli import app
from pages import FENCE, PAGES
from suite import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN_ELSEWHERE: Final = {
    "python": "test_docs.py runs them",
    "console": "test_docs.py runs them",
    "{eval-rst}": "test_site.py builds them",
    "diff": "test_extending.py applies them",
    "new": "test_extending.py writes them",
    "sql": "test_databases.py runs them",
}
PARSED: Final = ("", "sh", "dockerfile", "py", "toml")
NOT_RUN: Final = {
    "pip install ": "installs; `make packages` tries each extra",
    "make ": "targets of the Makefile: see test_targets_of_make_exist",
    "python bench/": "benchmarks of minutes to hours",
    "python -m text_dedup": "another package, not an extra of ours",
    "src/neardup/": "a drawing, compared with the folders by test_docs.py",
    "10 cli": "a drawing, which test_house.py checks as a table",
    "question ": "a table that a run of minutes printed",
    "[-only": "what `neardup show` printed",
    "from neardup.integrations.datatrove": "test_datatrove.py runs the same steps",
    "ITEM_PIPELINES": "settings of Scrapy: tests/integrations/crawl.py crawls with them",
    "docker ": "needs a daemon; test_deploy.py runs what the image does",
    "example.org {": "configuration of Caddy, which is not installed here",
    "curl ": "test_serve_examples.py runs them",
    ">>> from neardup.client": "test_serve_examples.py runs it",
    "redis-cli": "test_resp.py sends the same commands",
    "spark.driver": "a setting of Spark",
}
"""The beginning of a block without a command of neardup, and why it is not run."""
GENERATED: Final = ROOT / "docs" / "reference" / "cli.md"
"""Its examples are those of the help, which tests/cli run."""


def fenced(*languages: str) -> list[Any]:
    """The blocks of these languages, with their pages."""
    return [
        pytest.param(page, body, id=f"{page.name}-{number}")
        for page in PAGES
        if page != GENERATED
        for number, (kind, body) in enumerate(FENCE.findall(page.read_text("utf-8")))
        if kind in languages
    ]


def commands_in(body: str) -> Iterator[list[str]]:
    """The words of each command of neardup in a block, up to what a shell takes from it."""
    for line in body.replace("\\\n", " ").splitlines():
        place = re.search(r"(?:^|[|;] *|&& *|=\S+ )neardup (?=[a-z-])", line.removeprefix("$ "))
        if place is None:
            continue
        lexer = shlex.shlex(
            line.removeprefix("$ ")[place.end() :], posix=True, punctuation_chars=True
        )
        words = list(lexer)
        ends = [at for at, word in enumerate(words) if set(word) <= set("|;&<>()")]
        yield words[: ends[0]] if ends else words


def check(words: list[str]) -> None:
    """Parse a command as the command line does, without running it."""
    command: Any = typer.main.get_command(app)
    path = ["neardup"]
    while hasattr(command, "commands") and words:
        path.append(words[0])
        assert words[0] in command.commands, f"{' '.join(path)}: no such command"
        command, words = command.commands[words[0]], words[1:]
    command.make_context(" ".join(path), list(words))


def test_every_block_is_of_a_language_that_is_run_or_parsed() -> None:
    kinds = {kind for page in PAGES for kind, _ in FENCE.findall(page.read_text("utf-8"))}
    assert kinds <= {*RUN_ELSEWHERE, *PARSED}


@pytest.mark.parametrize(("page", "body"), fenced("", "sh", "dockerfile"))
def test_commands_of_blocks_that_are_not_run_are_accepted(page: Path, body: str) -> None:
    commands = list(commands_in(body))
    for words in commands:
        check(words)
    begin = body.lstrip().removeprefix("$ ")
    assert commands or begin.startswith(tuple(NOT_RUN)), f"{page}: say why it is not run:\n{body}"


def test_a_command_with_a_wrong_option_is_noticed() -> None:
    for body in ("neardup dedup a.jsonl -o b --no-such-option", "neardup dedupe a.jsonl -o b"):
        (words,) = commands_in(body)
        with pytest.raises(Exception, match=r"no-such-option|no such command"):
            check(words)


@pytest.mark.parametrize(("page", "body"), fenced("py"))
def test_python_that_is_not_run_is_python(page: Path, body: str) -> None:
    examples = doctest.DocTestParser().get_examples(body)
    ast.parse("".join(x.source for x in examples) if examples else body, str(page))


@pytest.mark.parametrize(("page", "body"), fenced("toml"))
def test_a_question_in_toml_is_one(page: Path, body: str, tmp_path: Path) -> None:
    assert tomllib.loads(body), page
    (tmp_path / "question.toml").write_text(body)
    assert nd.Question.load(tmp_path / "question.toml")


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for _, body in FENCE.findall(page.read_text("utf-8")):
            assert set(re.findall(r"^make ([\w-]+)", body, re.MULTILINE)) <= targets, page


def test_reasons_for_not_running_are_needed() -> None:
    bodies = [param.values[1].lstrip().removeprefix("$ ") for param in fenced("", "sh")]
    assert [x for x in NOT_RUN if not any(body.startswith(x) for body in bodies)] == []
