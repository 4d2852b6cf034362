"""Messages of engines: on standard error while they start, and in reports of failures.

What a start says is held back, and looked at only if it fails. Of a report that has hundreds of
lines one is for the user: the error that a worker raised.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from neardup import errors
from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["line_of", "stderr_held", "worker_errors"]

_MOST_LINES: Final = 1000
_SETTLE_SECONDS: Final = 0.1
"""The seconds in which the last lines of a start arrive."""
_STANDARD_ERROR: Final = 2
_RAISED: Final = re.compile(
    r"neardup\.errors\.(NeardupError|DataError|UsageError|RecipeError|FileError): ([^\n]+)"
)
"""The error of a worker in an engine's report."""


@contextmanager
def stderr_held() -> Iterator[list[str]]:
    """A context that holds back the standard error of processes started inside it.

    What they say later goes where it always does.

    Returns:
        The lines until now, as they come.
    """
    lines: list[str] = []
    try:
        plain = os.dup(_STANDARD_ERROR)
    except OSError:  # it is closed: nobody would see anything
        yield lines
        return
    reading, writing = os.pipe()
    is_holding = threading.Event()
    is_holding.set()

    def pump() -> None:
        with open(reading, "rb") as lines_file:  # noqa: PTH123  # a descriptor
            for line in lines_file:
                if is_holding.is_set() and len(lines) < _MOST_LINES:
                    lines.append(line.decode("utf-8", "replace"))
                elif not is_holding.is_set():
                    os.write(_STANDARD_ERROR, line)

    threading.Thread(target=pump, daemon=True).start()
    os.dup2(writing, _STANDARD_ERROR)
    os.close(writing)
    try:
        yield lines
    finally:
        os.dup2(plain, _STANDARD_ERROR)
        os.close(plain)
        time.sleep(_SETTLE_SECONDS)
        is_holding.clear()


def line_of(message: object) -> str:
    """An engine's message in one line: the error of a worker, if there is one, without its callers.

    Example:
        >>> line_of(RuntimeError(f"An error occurred while calling o1.go.{os.linesep}: no room"))
        'no room'
    """
    lines = [line.strip().removeprefix(": ") for line in str(message).strip().splitlines()]
    lines = [x for x in lines if x and not x.startswith("An error occurred while calling")]
    raised = [x for x in lines if re.search(r"(^| )(\w+\.)*\w*(Error|Exception)\b.*: .", x)]
    return ([*raised[-1:], *lines] or [type(message).__name__])[0]


@contextmanager
def worker_errors() -> Iterator[None]:
    """A context that turns the failure of a worker into the error it raised, in one line."""
    try:
        yield
    except NeardupError:
        raise
    except Exception as error:
        _raise_interrupt(error)
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        gone = re.search(r'StatusCode\.UNAVAILABLE\s+details = "([^"\n]*)', str(error))
        if gone is not None:
            raise NeardupError(
                f"the engine was lost: {gone[1]}; nothing was written: start it, and run this again"
            ) from error
        match = _RAISED.search(str(error))
        if match is None:
            raise NeardupError(f"the engine failed: {line_of(error)}") from error
        raise getattr(errors, match[1])(match[2]) from None


def _raise_interrupt(error: BaseException | None) -> None:
    """Raise the interrupt that preceded an error: PySpark calls an engine that has ended."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__context__
