"""Output to people: progress on a terminal, nothing in a pipe."""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import typer

from neardup.cli.options import run_option
from neardup.cli.signatures import join_options, option
from neardup.cli.small_inputs import has_plain_kernels
from neardup.errors import RecipeError
from neardup.runtime.progress import Progress, Quiet, shown

if TYPE_CHECKING:
    import subprocess

    from neardup.fingerprinting.explanation import Comparison, WordDiff
    from neardup.pipeline.estimate import Estimate
    from neardup.pipeline.index_questions import Related

__all__ = [
    "Lines",
    "as_lines",
    "echo",
    "marked",
    "print_comparison",
    "print_estimate",
    "print_hits",
    "print_plans",
    "print_related",
    "print_summary",
    "print_warning",
    "progress",
    "tells_progress",
    "warm_up",
]

_NOTICE_SECONDS = 2.5
_LOOK_SECONDS = 0.5
_COMPILING = "neardup: compiling kernels for this processor; once, the next start is quick"
_is_announced = threading.Event()
_MARKS: Final = {"equal": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}


class Summarised(Protocol):
    """The result of a command: JSON values, and lines for people as a string."""

    def to_dict(self) -> dict[str, Any]: ...


def echo(text: str, *, err: bool = False) -> None:
    """Print lines for a person, or JSON, without characters that control the terminal."""
    typer.echo(shown(text, lines=True), err=err)


@contextmanager
def progress() -> Iterator[Progress]:
    """A context that shows steps with rate and time left on a terminal, and lines with --progress.

    That kernels are compiled on the way is told everywhere.
    """
    with _announce_compiling(), _steps() as reporter:
        yield reporter


@contextmanager
def _steps() -> Iterator[Progress]:
    if as_lines.get():
        shown = Lines()
        yield shown
        shown.end()
        return
    if not sys.stderr.isatty():
        yield Quiet()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        SpinnerColumn,
        Task,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Size(DownloadColumn):
        def render(self, task: Task) -> Text:
            return Text() if task.total is None else super().render(task)

    columns = (SpinnerColumn(), "{task.description:<6}", BarColumn(), Size())
    with Bar(
        *columns,
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        "elapsed",
        TimeRemainingColumn(),
        "left",
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield _Shown(bar)


class _Shown:
    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None

    def begin(self, step: str, total: int | None = None) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(step, total=total)

    def advance(self, units: int) -> None:
        self._bar.advance(self._task, units)


def warm_up(work: Callable[[], object], *, by_features: bool = False) -> None:
    """Load the kernels that `work` uses; standard error says if they must be compiled first.

    Those of a search by features are then compiled at the same time.
    """
    if has_plain_kernels():
        return
    processes: list[subprocess.Popen[bytes] | None] = []

    def compile_beside() -> None:
        from neardup.pipeline.warm import search_compiler

        processes.append(search_compiler())

    try:
        # A recipe that its text does not suit, such as one of a table without its words, is not the
        # user's error; what is wrong with the documents' own recipe, their run tells.
        with _announce_compiling(compile_beside if by_features else None), suppress(RecipeError):
            work()
    finally:
        for process in filter(None, processes):
            process.kill()
            process.wait()


@contextmanager
def _announce_compiling(then: Callable[[], None] | None = None) -> Iterator[None]:
    """A context that announces once a process that kernels compile; then calls `then`."""
    stop, before = threading.Event(), _compiled()

    def look() -> None:
        wait = _NOTICE_SECONDS
        while not stop.wait(wait):
            wait = _LOOK_SECONDS
            if _compiled() > before:
                if not _is_announced.is_set():
                    _is_announced.set()
                    echo(_COMPILING, err=True)
                if then is not None:
                    then()
                return

    # It only looks and prints, at most a line; it is joined before anything else is printed.
    notice = threading.Thread(target=look, daemon=True)
    notice.start()
    try:
        yield
    finally:
        stop.set()
        notice.join()


def _compiled() -> int:
    """The number of kernels compiled by this process, including the current one.

    Where it only reads them from the cache, however slowly, there is nothing to tell.
    """
    if has_plain_kernels():
        return 0
    return sum(
        sum(kernel.stats.cache_misses.values())
        for name, module in list(sys.modules.items())
        if name.startswith("neardup.kernels.")
        for kernel in list(vars(module).values())
        if hasattr(kernel, "stats")
    )


def print_summary(summary: Summarised, as_json: bool) -> None:
    """Print the summary: JSON on the standard output, or lines for people on the standard error."""
    if as_json:
        echo(json.dumps(summary.to_dict()))
    else:
        echo(str(summary), err=True)


def print_warning(line: str | None, as_json: bool) -> None:
    """Print a warning about the result before a run; the JSON summary has it too."""
    if line is not None and not as_json:
        typer.echo(f"neardup: warning: {line}", err=True)


def print_estimate(estimate: Estimate, as_json: bool) -> None:
    """Print the estimated cost of a run."""
    echo(json.dumps(estimate.to_dict()) if as_json else str(estimate))


def print_hits(hits: list[tuple[Any, Any]], total: int | None, what: str, as_json: bool) -> None:
    """Print the hits of one query: a line with distance or similarity (`what`) and id for each."""
    if as_json:
        rows = [{"id": identity, what: value} for identity, value in hits]
        echo(json.dumps({"hits": rows, "total": len(hits) if total is None else total}))
        return
    for identity, value in hits:
        score = f"{value:>3}" if what == "distance" else f"{value:.4f}"
        echo(f"{score}  {shown(str(identity))}")
    if total is not None and total > len(hits):
        echo(f"{total - len(hits):,} more were cut by --limit", err=True)
    if not hits:
        echo("no stored document is near it", err=True)


def print_related(related: list[Related], as_json: bool) -> None:
    """Print the documents nearest to a stored one: closeness, id and first words."""
    if as_json:
        hits: list[dict[str, Any]] = [{"id": hit.identity, hit.what: hit.value} for hit in related]
        for hit, fields in zip(related, hits, strict=True):
            if hit.words is not None:
                fields["text"] = hit.words
        echo(json.dumps({"hits": hits}))
        return
    for hit in related:
        near = f"{hit.value:>3}" if hit.what == "distance" else f"{hit.value:.4f}"
        words = "" if hit.words is None else f"  {shown(hit.words)}"
        echo(f"{near}  {shown(str(hit.identity))}{words}")
    if not related:
        echo("no stored document shares a feature with it", err=True)


def print_plans(plans: Any, as_json: bool) -> None:
    """Print a comparison of search plans."""
    echo(json.dumps(plans.to_pylist()) if as_json else str(plans))


def print_comparison(comparison: Comparison, words: WordDiff | None, as_json: bool) -> None:
    """Print a comparison of two documents, and their words where these were asked for."""
    if as_json:
        runs = {} if words is None else {"runs": [[run.kind, run.text] for run in words.runs]}
        echo(json.dumps(comparison.to_dict() | runs))
        return
    echo(str(comparison))
    if words is not None:
        parts = "".join(marked(run.kind, run.text) for run in words.brief())
        echo(f"\n[-only in A-]  {{+only in B+}}\n{parts}")


def marked(kind: str, text: str) -> str:
    """A run of words, in brackets if only one text has it; white space stays outside."""
    begin, end = _MARKS.get(kind, ("", ""))
    inner = text.strip()
    if not begin or not inner:
        return text
    at = text.index(inner)
    return f"{text[:at]}{begin}{inner}{end}{text[at + len(inner) :]}"


_LINE_SECONDS: Final = 30.0
as_lines: Final[ContextVar[bool]] = ContextVar("as_lines", default=False)
_ProgressLines = Annotated[
    bool,
    run_option(
        "--progress",
        help="Print a line for each step and each half minute, also in a pipe or a log.",
        show_default=False,
    ),
]


def tells_progress(command: Callable[..., None]) -> Any:
    """Decorate a command: it takes --progress."""

    @functools.wraps(command)
    def run(*, progress: bool = False, **arguments: Any) -> None:
        token = as_lines.set(progress)
        try:
            command(**arguments)
        finally:
            as_lines.reset(token)

    return join_options(command, run, [option("progress", _ProgressLines, default=False)])


class Lines:
    """Progress as lines on standard error: one at each step, and each half minute within a step."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = self._is_announced = time.monotonic()
        self._step, self._done = "", 0
        self._total: int | None = None

    def begin(self, step: str, total: int | None = None) -> None:
        """Print the end of the last step, and begin another."""
        self.end()
        self._step, self._total, self._done = step, total, 0
        self._tell()

    def advance(self, units: int) -> None:
        """Count units, and print a line now and then."""
        self._done += units
        if time.monotonic() - self._is_announced >= _LINE_SECONDS:
            self._tell()

    def end(self) -> None:
        """Print the end of the last step."""
        if self._step and (self._done or time.monotonic() - self._is_announced >= 1):
            self._tell()

    def _tell(self) -> None:
        self._is_announced = time.monotonic()
        share = f" of {self._total:,}" if self._total else ""
        count = f" {self._done:,}{share} bytes" if self._done or self._total else ""
        seconds = self._is_announced - self._began
        typer.echo(f"neardup: {seconds:,.0f} s: {self._step}{count}", err=True)
