"""The command line: a thin shell over the pipeline and the steps.

Nothing here computes: a command turns options into values, calls one function and prints what it
returns.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Annotated, Any, Final, NoReturn

import typer

from neardup.cli.commands.compare import compare
from neardup.cli.commands.compile import compile_kernels
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
from neardup.cli.commands.nearest import nearest
from neardup.cli.commands.pairs import pairs
from neardup.cli.commands.plan import plan
from neardup.cli.commands.show import show
from neardup.cli.flags import Commands
from neardup.cli.progress_lines import tells_progress
from neardup.errors import NeardupError
from neardup.runtime.progress import shown
from neardup.runtime.signals import Interrupts, end_with
from neardup.runtime.version import __version__

__all__ = ["app", "main"]

INTERRUPTED: Final = 130
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
for command in (dedup, fingerprint, pairs, report, calibrate, evaluate):
    app.command()(tells_progress(command))
for command in (review, show, compare, explain, demo):
    app.command()(command)
app.command(name="compile")(compile_kernels)
app.add_typer(idf)
index.command()(tells_progress(nearest))
index.command()(plan)
app.add_typer(index)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; every error that neardup raises becomes one line and an exit code.

    A signal that comes when that is decided changes it no more.
    """
    try:
        _run()
    except SystemExit as end:
        atexit.register(end_with, end.code if isinstance(end.code, int) else 0)
        raise


def _run() -> NoReturn:
    with Interrupts() as interrupts:
        try:
            code = app(standalone_mode=False, prog_name="neardup")
            sys.stdout.flush()
        except NeardupError as error:
            if isinstance(error.__context__, BrokenPipeError):
                _end_quietly()
            is_ended = error.exit_code == INTERRUPTED
            _fail(str(error), interrupts.exit_code if is_ended else error.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except MemoryError:
            _fail("out of memory: give it a smaller input or more memory", 1)
        except BrokenPipeError:
            _end_quietly()
        except OSError as error:
            _fail(f"a read or a write failed: {error}", _FILE_ERROR)
        except _USAGE_ERRORS as error:
            _fail_usage(error)
        if code == INTERRUPTED:  # of Typer as well, which catches the exception
            again = "; run the same command again to go on where it stopped"
            resumes = any(each.partition("=")[0] == "--resume" for each in sys.argv)
            left = f"interrupted: {_what_is_there(interrupts.error)}{again * resumes}"
            _fail(left, interrupts.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


def _what_is_there(error: KeyboardInterrupt) -> str:
    """What an interrupted run says that it left behind, in notes of the exception."""
    notes: list[str] = getattr(error, "__notes__", [])
    return notes[-1] if notes else "no file was written"


def _fail_usage(error: Any) -> NoReturn:
    message, code = error.format_message(), error.exit_code
    if not message:  # no arguments at all: the help was shown
        sys.exit(code)
    context = getattr(error, "ctx", None)
    page = context.command_path if context else "neardup"
    wanted = _ALSO_CALLED.get(getattr(error, "option_name", ""))
    hint = f"; did you mean {wanted}?" if wanted else ""
    _fail(f"{message.rstrip('.')}{hint} (see {page} --help)", code)


def _end_quietly() -> NoReturn:
    """End as other filters do where nobody reads their output any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_NO_READER)


def _fail(message: str, code: int) -> NoReturn:
    line = " ".join(message.split("\n"))
    typer.echo(f"neardup: {shown(line)}", err=True)
    sys.exit(code)
