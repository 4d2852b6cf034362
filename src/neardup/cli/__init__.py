"""The command line: a thin shell over the pipeline and the steps.

Nothing here computes: a command turns options into values, calls one function and prints what it
returns.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Final, NoReturn

import typer

from neardup.cli.commands.compare import compare
from neardup.cli.commands.compile import compile_kernels
from neardup.cli.commands.decontaminate import decontaminate
from neardup.cli.commands.dedup import dedup
from neardup.cli.commands.demo import demo
from neardup.cli.commands.evidence.calibrate import calibrate
from neardup.cli.commands.evidence.evaluate import evaluate
from neardup.cli.commands.evidence.report import report
from neardup.cli.commands.evidence.review import review
from neardup.cli.commands.explain import explain
from neardup.cli.commands.fingerprint import fingerprint
from neardup.cli.commands.idf import app as idf
from neardup.cli.commands.index import app as index
from neardup.cli.commands.lines import lines
from neardup.cli.commands.pairs import pairs
from neardup.cli.commands.serve import serve
from neardup.cli.commands.show import show
from neardup.cli.screen import tells_progress
from neardup.cli.signatures import Command, Commands
from neardup.cli.small_inputs import OWN_PROCESS, PlainIfSmall
from neardup.errors import NeardupError, brief
from neardup.runtime.progress import shown
from neardup.runtime.signals import INTERRUPTED, Interrupts
from neardup.runtime.version import __version__

__all__ = ["app", "main", "run"]

_FILE_ERROR: Final = 3
_NO_READER: Final = 141
_ALSO_CALLED: Final = {
    "--threshold": "--similarity",
    "--jaccard": "--measure jaccard",
    "--k": "--distance",
    "--threads": "--workers",
    "--field": "--text",
    "--column": "--text",
    "--out": "--output",
    "--shingle": "--ngram",
}
# Click's UsageError; where Typer keeps Click depends on its version.
_USAGE_ERRORS: Final[Any] = typer.BadParameter.__bases__

app = Commands(
    name="neardup",
    help="Find and remove near-duplicate documents.",
    epilog="Try: neardup demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_MAY_BE_PLAIN: Final = (dedup, decontaminate, lines, fingerprint, compare, explain)


def _register(command: Any, registered: Any) -> None:
    app.command(cls=PlainIfSmall if command in _MAY_BE_PLAIN else Command)(registered)


for command in (dedup, decontaminate, lines, fingerprint, pairs, report, calibrate, evaluate):
    _register(command, tells_progress(command))
for command in (review, serve, show, compare, explain, demo):
    _register(command, command)
app.command(name="compile")(compile_kernels)
app.add_typer(idf)
app.add_typer(index)


def _show_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run a command; every error that neardup raises becomes one line and an exit code."""
    with Interrupts() as interrupts:
        code = run(interrupts)
    sys.exit(code)


def run(interrupts: Interrupts, *, has_own_process: bool = False) -> int:
    """Run a command as `main` does, without handling signals; returns the exit code.

    Args:
        interrupts: What handles signals.
        has_own_process: Whether nothing else runs in this process, then or later.
    """
    try:
        code, line = interrupts.during(lambda: _command(has_own_process)), ""
    except (KeyboardInterrupt, typer.Abort):
        code, line = INTERRUPTED, ""
    except Exception as error:
        code_and_message = _exit_of(error)
        if interrupts.number is not None:  # whatever a library made of it
            code_and_message = INTERRUPTED, ""
        if code_and_message is None:
            raise
        code, line = code_and_message
    if code == INTERRUPTED:  # of Typer as well, which catches the exception
        code, line = interrupts.code, _what_is_left(interrupts)
    if line:
        typer.echo(f"neardup: {shown(brief(line))}", err=True)
    return interrupts.decide(code)


def _command(has_own_process: bool) -> int:
    own = OWN_PROCESS if has_own_process else None
    code = app(standalone_mode=False, prog_name="neardup", obj=own)
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _exit_of(error: Exception) -> tuple[int, str] | None:
    """The exit code and message of an error; None for an unexpected one."""
    if isinstance(error, BrokenPipeError) or (
        isinstance(error, NeardupError) and isinstance(error.__context__, BrokenPipeError)
    ):  # end as other filters do where nobody reads their output any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NO_READER, ""
    if isinstance(error, NeardupError):
        return error.exit_code, str(error)
    if isinstance(error, MemoryError):
        return 1, "out of memory: give it a smaller input or more memory"
    if isinstance(error, OSError):
        return _FILE_ERROR, f"a read or a write failed: {error}"
    return _wrong_usage(error) if isinstance(error, _USAGE_ERRORS) else None


def _wrong_usage(error: Any) -> tuple[int, str]:
    message, code = " ".join(error.format_message().split("\n")), error.exit_code
    if not message:  # no arguments at all: the help was shown
        return code, ""
    context = getattr(error, "ctx", None)
    page = context.command_path if context else "neardup"
    option = _ALSO_CALLED.get(getattr(error, "option_name", ""))
    hint = ""
    if option:  # which is better than the options that look alike
        message, hint = message.partition(" (Possible")[0], f"; did you mean {option}?"
    return code, f"{message.rstrip('.')}{hint} (see {page} --help)"


def _what_is_left(interrupts: Interrupts) -> str:
    """The files that an interrupted run left behind, and how to continue, as text."""
    notes: list[str] = getattr(interrupts.error, "__notes__", [])[-1:]
    there = "; ".join(notes or interrupts.what_is_there) or "no file was written"
    resumes = any(each.partition("=")[0] == "--resume" for each in sys.argv)
    again = "; run the same command again to go on where it stopped" * resumes
    return f"interrupted: {there}{again}"
