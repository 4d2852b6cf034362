"""The command line: a thin shell over the pipeline and the steps.

Nothing here computes; a command turns options into values, calls one function and prints its result.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from neardup.cli.compare import compare
from neardup.cli.dedup import dedup
from neardup.cli.demo import demo
from neardup.cli.fingerprint import fingerprint
from neardup.cli.pairs import pairs
from neardup.errors import NeardupError
from neardup.version import __version__

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    name="neardup",
    help="Find and remove near-duplicate documents.",
    epilog="Try: neardup demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (dedup, fingerprint, pairs, compare, demo):
    app.command()(command)


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
    """Run a command; every error that neardup raises becomes one line and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except NeardupError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted: nothing was written", INTERRUPTED)
    except MemoryError:
        _fail("out of memory: give it a smaller input or more memory", 1)
    except Exception as error:
        _fail_unless_unknown(error)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _fail_unless_unknown(error: Exception) -> None:
    show = getattr(error, "format_message", None)
    if show is None:
        raise error
    _fail(f"{show()} (see neardup --help)", getattr(error, "exit_code", 2))


def _fail(message: str, code: int) -> None:
    line = " ".join(message.split("\n"))
    typer.echo(f"neardup: {line}", err=True)
    sys.exit(code)
