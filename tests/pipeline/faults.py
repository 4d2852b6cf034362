"""A file system that fails or dies at the n-th call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from neardup.pipeline.run import run_folder
from neardup.runtime.storage import append_file

if TYPE_CHECKING:
    import pytest

CALLS = ("write", "fsync", "ftruncate", "replace", "unlink")
REMOVALS = 7
"""Calls that remove the state of a run which has succeeded."""


class KilledError(BaseException):
    """What a fault raises; no handler of ours catches it."""


class Faults:
    """Stands for `os`: the n-th call that changes a disk is done by half, and all later ones fail.

    So whatever clean-up the process still runs leaves no trace, as after kill -9.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*args: Any) -> Any:
            self.calls += 1
            self.left -= 1
            if self.left == 0 and name == "write":
                descriptor, data = args
                real(descriptor, bytes(data)[: len(data) // 2])
            if self.left <= 0:
                raise KilledError
            return real(*args)

        return call

    def replace_os(self, patch: pytest.MonkeyPatch) -> None:
        """Stand in wherever the state of a run is written."""
        for module in (run_folder, append_file):
            patch.setattr(module, "os", self)
