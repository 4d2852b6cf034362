"""Plots of a result as one SVG picture: for notebooks and files, without a plotting library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import FileError, UsageError
from neardup.pipeline.report.markup import count, inert
from neardup.pipeline.report.model import size_classes

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["Plot", "plot_of"]

WIDTH: Final = 560
NAMES: Final = 110
"""Where bars begin; their names stand before it."""
ROW: Final = 24
TOP: Final = 34
NUMBERS: Final = 70
"""Room behind the longest bar for its number."""
BAND: Final = 0.02
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1c2330}rect{fill:#2f6fb3}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e8ee}rect{fill:#5b9be0}}"
)


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """A picture that a notebook shows, and that can be saved.

    Args:
        svg: The picture.
        title: What it shows.
    """

    svg: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file.

        Raises:
            FileError: If it cannot be written.
        """
        try:
            Path(path).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror}") from error

    def __repr__(self) -> str:
        """What it shows."""
        return f"Plot({self.title!r})"

    def _repr_svg_(self) -> str:
        return self.svg


def plot_of(kind: str, cluster: Any, similarity: Any) -> Plot:
    """One of the plots that `DedupResult.plot` names.

    Args:
        kind: Which.
        cluster: int64 (n,): the row that stands for each document's cluster.
        similarity: float64 (m,): of each dropped document; None of a run by distance.

    Raises:
        UsageError: For another kind, or similarities where there are none.
    """
    if kind == "sizes":
        return _bars(_sizes(cluster), "clusters by their number of documents")
    if kind != "similarities":
        raise UsageError(f"kind is {kind!r}: use similarities or sizes")
    if similarity is None:
        raise UsageError("similarities belong to similarity: this run compared fingerprints")
    return _bars(_bands(similarity), "dropped documents by their similarity to the kept one")


def _sizes(cluster: Any) -> list[tuple[str, int]]:
    """How many clusters of more than one document there are of each class of sizes."""
    return [
        (count(low) if low == high else f"{count(low)} to {count(high)}", number)
        for low, high, number in size_classes(np.unique(cluster, return_counts=True)[1])
    ]


def _bands(similarity: Any) -> list[tuple[str, int]]:
    """How many similarities there are in each band of 0.02; those of 1 stand alone."""
    bands = np.floor(similarity / BAND + 1e-9).astype(np.int64)
    ends = range(int(bands.min(initial=round(1 / BAND))), round(1 / BAND) + 1)
    return [
        (f"{band * BAND:.2f} to {(band + 1) * BAND:.2f}" if band * BAND < 1 else "1", number)
        for band, number in ((each, int(np.count_nonzero(bands == each))) for each in ends)
    ]


def _bars(bars: Sequence[tuple[str, int]], title: str) -> Plot:
    """Lying bars under a title, each with its name and number."""
    most = max((number for _, number in bars), default=1) or 1
    drawn = [f'<text x="0" y="18">{inert(title)}</text>']
    for row, (name, number) in enumerate(bars):
        y, width = TOP + ROW * row, (WIDTH - NAMES - NUMBERS) * number / most
        drawn.append(
            f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{inert(name)}</text>'
            f'<rect x="{NAMES}" y="{y + 2}" width="{width:.1f}" height="{ROW - 8}"/>'
            f'<text x="{NAMES + width + 6:.1f}" y="{y + 14}">{count(number)}</text>'
        )
    height = TOP + ROW * len(bars) + 4
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' role="img" aria-label="{inert(title)}"><style>{STYLE}</style>{"".join(drawn)}</svg>\n'
    )
    return Plot(svg, title)
