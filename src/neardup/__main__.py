"""`neardup`, and `python -m neardup`: the process of its own that a command has."""

from __future__ import annotations

import atexit
import gc
import sys

from neardup.runtime.signals import Interrupts

TYPE_CHECKING = False  # as `typing` has it, which takes long to load: see `runtime.signals`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, NoReturn

__all__ = ["main"]

NEW_OBJECTS: Final = 200_000
"""That the collector of cycles waits for. Every 700, as Python has it, it looks at all that a start
loads again and again, a tenth of its time, and finds nothing. A start makes 110,000 to 190,000."""


class _LeftOut:
    """Finds no pandas and no SciPy, which Arrow and Numba load where they are, for 0.4 s a start.

    No command needs them but dedup on Spark, where Arrow makes frames of pandas. Whoever else asks
    for them, as a file system behind a URI may, gets them.
    """

    NAMES: Final = frozenset({"pandas", "scipy"})
    ASKERS: Final = frozenset({"neardup", "numba", "pyarrow"})
    """What is compiled, as most of Arrow, asks in the name of its caller."""

    @classmethod
    def find_spec(
        cls, name: str, _path: Sequence[str] | None = None, _target: object = None
    ) -> None:
        """Refuse the two; leave all others to the next finder."""
        if name in cls.NAMES and _asker() in cls.ASKERS:
            raise ModuleNotFoundError(f"{name} is left out, to start sooner", name=name)


def _asker() -> str:
    """The package whose code imports something now."""
    frame = sys._getframe(2)  # noqa: SLF001 - of whoever called `find_spec`
    while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_on_spark(arguments: Sequence[str]) -> bool:
    """Whether --engine is spark, in the two ways in which an option takes its value.

    It must be known before there is a command line to take it apart. Where it is a file that is
    named so, a start takes longer, and nothing else.
    """
    values = zip(arguments, [*arguments[1:], ""], strict=True)
    return "--engine=spark" in arguments or ("--engine", "spark") in values


def main() -> NoReturn:
    """Run the command line, in a process that ends with it."""
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    interrupts = Interrupts()
    interrupts.begin()
    # The first to register is the last to be called: who was there before, as coverage, goes on.
    if not atexit._ncallbacks():  # noqa: SLF001
        atexit.register(interrupts.leave)
    if not _is_on_spark(sys.argv):
        sys.meta_path.insert(0, _LeftOut)
    from neardup.cli import run

    sys.exit(run(interrupts, has_own_process=True))


if __name__ == "__main__":
    main()
