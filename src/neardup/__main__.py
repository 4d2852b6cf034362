"""`neardup`, and `python -m neardup`."""

from __future__ import annotations

import signal

from neardup.runtime.signals import EXIT_CODE_OF, leave_at_once

__all__ = ["main"]


def main() -> None:
    """Run the command line; until it is loaded, an interrupt has nothing to put in order."""
    for each in EXIT_CODE_OF:
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, leave_at_once)
    from neardup.cli import main as run

    run()


if __name__ == "__main__":
    main()
