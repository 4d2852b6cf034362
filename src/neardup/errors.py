"""The tree of errors: each message carries the bad value, the limit and the next action.

NeardupError            exit code 1
├── DataError           1   a record that cannot be used (also ValueError)
├── UsageError          2   a wrong argument or option (also ValueError)
│   └── RecipeError     2   a recipe that cannot be, or two that do not match
├── FileError           3   a read or a write that failed (also OSError)
└── TooManyPairsError   1   more result rows than memory or `limit` allow (also MemoryError)

UnfitHashWarning        a warning (UserWarning): a feature hash that distorts distances
DoubtfulResultWarning   a warning (UserWarning): done as asked, which is hardly what was meant

A message that repeats a value of megabytes is cut in the middle, see `brief`.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

__all__ = [
    "DataError",
    "DoubtfulResultWarning",
    "FileError",
    "NeardupError",
    "RecipeError",
    "TooManyPairsError",
    "UnfitHashWarning",
    "UsageError",
    "brief",
    "suggests_names",
    "warn_of_doubt",
]

P = ParamSpec("P")
T = TypeVar("T")


MOST_CHARACTERS: Final = 1000
"""Of a message: it begins with what is wrong and ends with what to do."""


def brief(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text of at most about a number of characters: of a longer one the beginning and the end.

    Example:
        >>> brief("a" * 50 + "b" * 50, 20)
        'aaaaaaaaaa... (80 characters) ...bbbbbbbbbb'
    """
    if len(text) <= most + len("... (1,000,000 characters) ..."):
        return text
    half = most // 2
    return f"{text[:half]}... ({len(text) - 2 * half:,} characters) ...{text[-half:]}"


OTHER_NAMES: Final = {"threshold": ("similarity", "distance"), "k": ("distance",)}
"""What other libraries call an argument, and the names that it has here."""


def suggests_names(call: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public call: for an argument that it lacks, UsageError names the one meant.

    Example:
        >>> @suggests_names
        ... def search(texts, similarity=0.8): ...
        >>> search([], threshold=0.9)
        Traceback (most recent call last):
        neardup.errors.UsageError: search has no argument threshold: did you mean similarity=?
    """
    code = call.__code__
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = frozenset(arguments)
    public = call.__qualname__.removesuffix(".__init__")

    @functools.wraps(call)
    def checked(*values: P.args, **named: P.kwargs) -> T:
        if not names.issuperset(named):
            name = next(name for name in named if name not in names)
            meant = _names_meant(name, [each for each in arguments if each not in {"cls", "self"}])
            raise UsageError(f"{public} has no argument {name}: {meant}")
        return call(*values, **named)

    return checked


def _names_meant(name: str, arguments: list[str]) -> str:
    import difflib

    meant = [each for each in OTHER_NAMES.get(name, ()) if each in arguments]
    meant = meant or difflib.get_close_matches(name, arguments, 1)
    if not meant:
        return f"it takes {', '.join(arguments)}"
    return f"did you mean {' or '.join(f'{each}=' for each in meant)}?"


class NeardupError(Exception):
    """Any error that neardup raises on purpose; `exit_code` is what the command line returns.

    Example:
        >>> import neardup as nd
        >>> try:
        ...     nd.dedup(["a text"], similarity=2)
        ... except NeardupError as error:
        ...     print(error.exit_code, type(error).__name__)
        2 UsageError
    """

    exit_code = 1

    def __init__(self, *parts: Any) -> None:
        """Cut a message that would fill the screen with a value that somebody else wrote."""
        super().__init__(*(brief(part) if isinstance(part, str) else part for part in parts))


class DataError(NeardupError, ValueError):
    """A record that cannot be used, such as a broken JSON line; the message says where it is.

    Example:
        >>> from neardup.compat.stored import from_hex
        >>> from_hex(["no number"])
        Traceback (most recent call last):
        neardup.errors.DataError: ...
    """


class UsageError(NeardupError, ValueError):
    """A wrong argument or option.

    Example:
        >>> import neardup as nd
        >>> nd.dedup(["a text"], similarity=2)
        Traceback (most recent call last):
        neardup.errors.UsageError: similarity is 2...
    """

    exit_code = 2


class RecipeError(UsageError):
    """A recipe that cannot be computed, or two recipes that should be the same and are not.

    Example:
        >>> import neardup as nd
        >>> nd.Recipe(ngram=0)
        Traceback (most recent call last):
        neardup.errors.RecipeError: ngram is 0...
    """


class UnfitHashWarning(UserWarning):
    """A feature hash was chosen whose biased bits distort distances.

    Example:
        >>> import warnings
        >>> import neardup as nd
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = nd.Recipe(hash="fnv1")
        >>> [each.category.__name__ for each in caught]
        ['UnfitHashWarning']
    """


class DoubtfulResultWarning(UserWarning):
    """A result that is probably not what the caller meant; the message says why.

    Example:
        >>> import warnings
        >>> import neardup as nd
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = nd.dedup(["<!doctype html><p>One page", "<!doctype html><p>Another page"])
        >>> caught[-1].category.__name__
        'DoubtfulResultWarning'
    """


def warn_of_doubt(line: str) -> None:
    """A DoubtfulResultWarning at the line of the caller's own code that led here."""
    import inspect  # which takes as long to load as all of the above

    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("neardup."):
        frame, level = frame.f_back, level + 1
    warnings.warn(line, DoubtfulResultWarning, stacklevel=level)


class FileError(NeardupError, OSError):
    """A file that could not be read or written.

    Example:
        >>> import neardup as nd
        >>> nd.DurableIndex.open("no/such.index", create=False)
        Traceback (most recent call last):
        neardup.errors.FileError: there is no index in no/such.index...
    """

    exit_code = 3


class TooManyPairsError(NeardupError, MemoryError):
    """More pairs than memory or the caller's limit allow; `count` is their number.

    With `at_least` the counting was given up: there are that many or more.

    Example:
        >>> import neardup as nd
        >>> try:
        ...     nd.pairs([7] * 100, distance=0, limit=10)
        ... except TooManyPairsError as error:
        ...     print(error.limit)
        10
    """

    def __init__(self, count: int, limit: int, at_least: bool = False) -> None:
        """Make the message: the number of pairs and what to do."""
        self.count = count
        self.limit = limit
        self.at_least = at_least
        pairs = f"{'at least ' if at_least else ''}{count:,} pairs"
        super().__init__(
            f"{pairs}, more than the {limit:,} that fit: pass a smaller distance, a higher"
            " limit, or use `neardup dedup --clusters`, which never stores pairs"
        )
