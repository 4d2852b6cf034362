"""`neardup`, and `python -m neardup`."""

from __future__ import annotations

import atexit
import signal
import sys
from typing import TYPE_CHECKING, Final

from neardup.runtime.signals import EXIT_CODE_OF, last_of_all, leave_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


class _LeftOut:
    """Finds no pandas and no SciPy, which Arrow and Numba load where they are, for 0.4 s a start.

    No command needs them but those of Spark, whose own packages do.
    """

    NAMES: Final = frozenset({"pandas", "scipy"})

    @classmethod
    def find_spec(
        cls, name: str, _path: Sequence[str] | None = None, _target: object = None
    ) -> None:
        """Refuse the two; leave all others to the next finder."""
        if name in cls.NAMES:
            raise ModuleNotFoundError(f"{name} is left out, to start sooner", name=name)


def main() -> None:
    """Run the command line; until it is loaded, an interrupt has nothing to put in order."""
    atexit.register(last_of_all)
    for each in EXIT_CODE_OF:
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, leave_at_once)
    if not any("spark" in argument for argument in sys.argv):
        sys.meta_path.insert(0, _LeftOut)
    from neardup.cli import main as run

    run()


if __name__ == "__main__":
    main()
