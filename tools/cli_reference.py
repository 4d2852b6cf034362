"""Write docs/reference/cli.md from the commands' own help.

    python tools/cli_reference.py

tests/house/test_docs.py fails while the page differs from what this writes.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo

from neardup.cli import app

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
INTRODUCTION: Final = """\
# Command line

This page is generated from the commands' help by `tools/cli_reference.py`; do not edit it.

Every command has `--help`. Results go to files or, with `-o -`, to the standard output; summaries
and errors go to the standard error. `--json` prints the summary as one JSON object on the standard
output. [Reading and writing](../guide/reading.md) has the formats and the exit codes.
"""


class Parameter(NamedTuple):
    """One parameter of a command: its name, type, Typer declaration and default."""

    name: str
    kind: Any
    info: Any
    default: Any


def main() -> None:
    """Write the page."""
    PAGE.write_text(reference(), "utf-8")


def reference() -> str:
    """The page: each command with its help, its examples and a table of its options."""
    pages = [
        _command_page(command.callback, "neardup", command.name)
        for command in app.registered_commands
    ]
    for group in app.registered_groups:
        subapp = group.typer_instance
        parent = f"neardup {subapp.info.name}"
        pages += [
            _command_page(command.callback, parent, command.name)
            for command in subapp.registered_commands
        ]
    return "\n".join([INTRODUCTION, *pages])


def _command_page(command: Any, parent: str, name: str | None = None) -> str:
    name = name or command.__name__
    hints = get_type_hints(command, include_extras=True)
    parameters = [
        Parameter(name, get_args(hints[name])[0], get_args(hints[name])[1], given.default)
        for name, given in inspect.signature(command).parameters.items()
        if hints[name] is not typer.Context
    ]
    arguments = [p for p in parameters if isinstance(p.info, ArgumentInfo)]
    options = [p for p in parameters if not isinstance(p.info, ArgumentInfo) and not p.info.hidden]
    usage = " ".join([parent, name, *(p.info.metavar for p in arguments), "[OPTIONS]"])
    parts = [f"## {parent} {name}\n", f"```\n{usage}\n```\n", *_help_parts(command)]
    parts += [f"`{p.info.metavar}`: {p.info.help}\n" for p in arguments]
    for panel in dict.fromkeys(p.info.rich_help_panel for p in options):
        parts.append(f"{panel or 'Options'}:\n")
        parts.append("| option | value | default | |\n|---|---|---|---|")
        parts += [_row(option) for option in options if option.info.rich_help_panel == panel]
        parts.append("")
    return "\n".join(parts)


def _help_parts(command: Any) -> list[str]:
    """Paragraphs as they are; examples as code."""
    prose, result, examples = inspect.getdoc(command).partition("\n\nExample")
    parts = [prose + "\n"]
    if result:
        lines = [line for line in examples.split("\n")[1:] if line.strip()]
        parts += ["```", *lines, "```\n"]
    return parts


def _row(option: Parameter) -> str:
    first = option.info.default  # the first name given to typer.Option inside Annotated
    declared = [*([first] if isinstance(first, str) else []), *(option.info.param_decls or [])]
    declared = declared or [f"--{option.name.replace('_', '-')}"]
    names = ", ".join(f"`{name}`" for name in declared)
    is_flag = bool in {option.kind, *get_args(option.kind)}
    is_number = int in {option.kind, *get_args(option.kind)}
    value = "" if is_flag else f"`{option.info.metavar or ('NUMBER' if is_number else 'TEXT')}`"
    default = "" if is_flag or option.default is None else f"`{option.default}`"
    if option.default is inspect.Parameter.empty:
        default = "required"
    cells = (
        names,
        value.replace("|", "\\|"),
        default,
        (option.info.help or "").replace("|", "\\|"),
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
