"""What a run did: the counts that add up, the time each step took, and where the outputs are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Summary"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of one run in numbers; kept + dropped + rejected = read, always.

    Args:
        read: Records seen, good and bad.
        kept: Documents kept.
        dropped: Documents dropped as duplicates of a kept one.
        rejected: Records that could not be used.
        empty: Kept documents without any token, which match nothing.
        clusters: Groups of two documents or more.
        nbytes: Bytes of input.
        seconds: Time of each step and, as `total`, of all.
        outputs: Files written.
        settings: What was asked for: recipe, its digest, distance, policy, keep.
    """

    read: int
    kept: int
    dropped: int
    rejected: int
    empty: int
    clusters: int
    nbytes: int
    seconds: dict[str, float]
    outputs: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return asdict(self) | {"megabytes_per_second": round(self.rate, 1)}

    @property
    def rate(self) -> float:
        """Megabytes (10**6 bytes) of input a second."""
        return self.nbytes / 1e6 / max(self.seconds.get("total", 0.0), 1e-9)

    def __str__(self) -> str:
        """A few lines for people."""
        share = 100 * self.dropped / max(1, self.read)
        lines = [
            f"read      {self.read:>12,} documents, {self.nbytes / 1e6:,.1f} MB",
            f"kept      {self.kept:>12,}" + (f" ({self.empty:,} empty)" if self.empty else ""),
            f"dropped   {self.dropped:>12,} ({share:.1f}%) in {self.clusters:,} clusters",
            f"rejected  {self.rejected:>12,}",
            f"time      {self.seconds['total']:>12.2f} s, {self.rate:,.0f} MB/s ("
            + ", ".join(f"{k} {v:.2f}" for k, v in self.seconds.items() if k != "total")
            + ")",
        ]
        return "\n".join(lines + [f"wrote     {path}" for path in self.outputs])
