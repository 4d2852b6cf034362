"""What an index has done since it was opened, in numbers, for a service to show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Counted without a lock: threads that run at once may lose one now and then.

    Args:
        queries: Documents asked for, those offered too.
        hits: What was found.
        added: Documents stored.
        removed: Documents removed or expired.
        commits: Commits that had something to write.
        commit_seconds: Of all commits.
        longest_commit: Seconds.
        merges: Runs of the background that wrote files.
        merge_seconds: Of these.
    """

    queries: int = 0
    hits: int = 0
    added: int = 0
    removed: int = 0
    commits: int = 0
    commit_seconds: float = 0.0
    longest_commit: float = 0.0
    merges: int = 0
    merge_seconds: float = 0.0

    def asked(self, queries: int, hits: int) -> None:
        """Count queries."""
        self.queries += queries
        self.hits += hits

    def committed(self, seconds: float) -> None:
        """Count a commit."""
        self.commits += 1
        self.commit_seconds += seconds
        self.longest_commit = max(self.longest_commit, seconds)

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return asdict(self)
