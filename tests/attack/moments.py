"""The end of a process, or an interrupt, at the n-th moment that can be told apart."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import pytest

from neardup.index.durable import DurableIndex

EVENTS: Final = (
    "open",
    "os.rename",
    "os.remove",
    "os.link",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
)
KILLED: Final = 9
COMMIT: Final = DurableIndex.commit


class Moments:
    """Interrupts or kills at the n-th call to the system that Python tells of, and counts them.

    Calls of the index's commit are moments as well, before and after.
    """

    def __init__(self, at: int, kills: bool) -> None:
        self.at, self.kills, self.count, self.active = at, kills, 0, False

    def pass_one(self) -> None:
        if self.active:
            self.count += 1
            if self.count == self.at:
                self.active = False
                if self.kills:
                    os._exit(KILLED)
                raise KeyboardInterrupt

    def __call__(self, event: str, _: Any) -> None:
        if self.active and event in EVENTS:
            self.pass_one()

    def __enter__(self) -> None:
        def commit(index: DurableIndex) -> None:
            self.pass_one()
            COMMIT(index)
            self.pass_one()

        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(DurableIndex, "commit", commit)
        HOOKS.append(self)
        self.active = True

    def __exit__(self, *_: object) -> None:
        self.active = False
        HOOKS.remove(self)
        self._patch.undo()


HOOKS: list[Moments] = []


def tell(event: str, arguments: Any) -> None:
    """The one audit hook, which cannot be removed."""
    for hook in HOOKS:
        hook(event, arguments)


sys.addaudithook(tell)
