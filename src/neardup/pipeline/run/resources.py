"""What a run may use, and how it goes about its work; nothing here changes a result.

But for records that do not fit in memory: they are bad ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neardup.documents.batch import longest_record
from neardup.runtime.memory import memory_bytes

__all__ = ["Resources"]


@dataclass(frozen=True, slots=True)
class Resources:
    """What a run may use.

    Args:
        memory: Bytes that the run should stay below, beside what grows with the number of
            documents; what does not fit goes to disk.
        tmp: Folder for temporary files; the system's unless given.
        resume: Folder for the state of the run, so that it can be killed and go on; or None.
        workers: Threads; the processors at hand unless given.
        plan: How to search for fingerprints, as for `pairs`; "auto" is all that features have.
    """

    memory: int = field(default_factory=lambda: memory_bytes(None))
    tmp: str | None = None
    resume: str | None = None
    workers: int | None = None
    plan: str = "auto"

    @property
    def record_bytes(self) -> int:
        """How long one record of the input may be."""
        return longest_record(self.memory)
