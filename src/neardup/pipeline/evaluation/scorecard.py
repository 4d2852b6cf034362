"""Results of an evaluation: values that JSON holds, and the page that draws them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from neardup.pipeline.report.drawings import amount, lines
from neardup.pipeline.report.frame import count, frame, inert, table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "STEP_BITS",
    "STEP_HUNDREDTHS",
    "Evaluation",
    "Point",
    "Scores",
    "Share",
    "evaluation_page",
]

Share = tuple[float, tuple[float, float]]
"""A measure and its 95% interval."""

STEP_HUNDREDTHS: Final = 5
STEP_BITS: Final = 3
"""Groups are made, and lines written, at every fifth hundredth and every third bit."""


@dataclass(frozen=True, slots=True)
class Point:
    """One threshold or distance.

    Attributes:
        at: The least similarity, or the most bits that differ.
        found: Pairs that match.
        precision: Share of true ones among them.
        recall: Share of the true pairs that match.
        f1: Their harmonic mean.
        ari: Adjusted Rand index of the groups that `dedup` makes; None: not computed here.
        b_cubed: B-cubed F1 of these groups.
    """

    at: float
    found: int
    precision: Share
    recall: Share
    f1: Share
    ari: Share | None = None
    b_cubed: Share | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """One recipe.

    Attributes:
        title: The difference from the other recipes.
        by_similarity: By rising threshold.
        by_distance: By rising distance.
        histogram: (least similarity, true pairs, other pairs) of each band.
    """

    title: str
    by_similarity: tuple[Point, ...]
    by_distance: tuple[Point, ...]
    histogram: tuple[tuple[float, int, int], ...]

    @property
    def similarity_steps(self) -> list[Point]:
        """The thresholds with a line of their own."""
        return [x for x in self.by_similarity if round(x.at * 100) % STEP_HUNDREDTHS == 0]

    @property
    def distance_steps(self) -> list[Point]:
        """The distances with a line of their own."""
        return [x for x in self.by_distance if x.at % STEP_BITS == 0]

    @property
    def best(self) -> Point | None:
        """The threshold of the highest F1; of several the lowest."""
        return max(self.by_similarity, key=lambda point: point.f1[0], default=None)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Recipes against labels.

    Attributes:
        documents: Compared documents.
        labelled: Documents with a label.
        pairs: Pairs labelled as duplicates.
        unknown: Labels about other documents.
        world: The meaning of pairs without a label.
        policy: How groups are made.
        measure: The measure of similarity.
        lowest: Least similarity that was searched.
        scores: Of each recipe.
    """

    documents: int
    labelled: int
    pairs: int
    unknown: int
    world: str
    policy: str
    measure: str
    lowest: float
    scores: tuple[Scores, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return asdict(self)

    def __str__(self) -> str:
        """Lines for people."""
        lines = [
            f"documents  {self.documents:,}, {self.labelled:,} labelled",
            f"labels     {self.pairs:,} duplicate pairs; {self.world}",
        ]
        if self.unknown:
            lines.append(f"warning: {self.unknown:,} labels are about documents that are not here")
        for scores in self.scores:
            lines += ["", scores.title, f"{'similarity':<11}{_HEAD}"]
            lines += [_line(x, x is scores.best) for x in scores.similarity_steps]
            if scores.by_distance:
                lines += [f"{'distance':<11}{_HEAD}"]
                lines += [_line(x, False) for x in scores.distance_steps]
            if scores.best is not None:
                best = scores.best
                lines.append(f"best F1 {best.f1[0]:.3f} at similarity {best.at:g}")
        return "\n".join(lines)


_HEAD = f"{'pairs':>9}  {'precision':<21}{'recall':<21}{'F1':<20}ARI    B-cubed"


def _line(point: Point, best: bool) -> str:
    shares = "  ".join(_share(x) for x in (point.precision, point.recall, point.f1))
    ari, b_cubed = (
        "-" if share is None else f"{share[0]:.3f}" for share in (point.ari, point.b_cubed)
    )
    marked = f"  {'best' if best else '':<4}"
    return f"{point.at:<11g}{point.found:>9,}  {shares} {ari:<5}  {b_cubed:<5}{marked}".rstrip()


def _share(share: Share) -> str:
    value, (low, high) = share
    return f"{value:.3f} ({low:.3f}-{high:.3f})"


_LINKS = (("recipes", "Recipes"), ("curves", "Curves"), ("tables", "Tables"))


def evaluation_page(evaluation: Evaluation) -> str:
    """One HTML file, the same bytes for the same evaluation."""
    body = _head(evaluation) + _curves(evaluation) + _tables(evaluation)
    title = f"neardup: evaluation on {count(evaluation.documents)} documents"
    return frame(title, "Evaluation", _LINKS, body, evaluation.to_dict())


def _head(evaluation: Evaluation) -> str:
    rows = []
    for scores in evaluation.scores:
        best = scores.best
        if best is not None:
            rows.append(
                [
                    inert(scores.title),
                    f"{best.at:g}",
                    *map(_share, (best.f1, best.precision, best.recall)),
                ]
            )
    lost = ""
    if evaluation.unknown:
        lost = (
            f'<div class="warn"><p>{count(evaluation.unknown)} labels are about documents'
            " that are not here.</p></div>"
        )
    heads = ("recipe", "best threshold", "F1", "precision", "recall")
    return (
        f'<section id="recipes"><p class="lead"><b>{count(evaluation.documents)}</b> documents,'
        f" <b>{count(evaluation.labelled)}</b> labelled;"
        f" <b>{count(evaluation.pairs)}</b> duplicate pairs."
        f"</p><p>Of these, {inert(evaluation.world)}. Groups are {inert(evaluation.policy)};"
        f" similarity is {inert(evaluation.measure)}. Intervals are 95%, by resampling clusters."
        f"</p>{lost}"
        f"{table(heads, rows, 'Recipes')}</section>"
    )


def _curves(evaluation: Evaluation) -> str:
    parts = []
    for title, of in (("F1", "f1"), ("Precision", "precision"), ("Recall", "recall")):
        series = [
            (scores.title, [(point.at, getattr(point, of)[0]) for point in scores.by_similarity])
            for scores in evaluation.scores
        ]
        picture = lines(series, f"{title} at each similarity", "least similarity")
        parts.append(f"<h3>{title}</h3>{picture}")
    return f'<section id="curves"><h2>At each threshold</h2>{"".join(parts)}</section>'


def _tables(evaluation: Evaluation) -> str:
    parts = [
        f"<h3>{inert(scores.title)}</h3>{_histogram(scores)}"
        f"{_points(scores.similarity_steps, 'similarity')}<details><summary>By distance of the"
        f" fingerprints</summary>{_points(scores.by_distance, 'distance')}</details>"
        for scores in evaluation.scores
    ]
    return f'<section id="tables"><h2>Tables</h2>{"".join(parts)}</section>'


def _histogram(scores: Scores) -> str:
    most = max((max(true, other) for _, true, other in scores.histogram), default=0)
    rows = [
        [f"{least:g}", amount(true, most), count(true), amount(other, most), count(other)]
        for least, true, other in scores.histogram
    ]
    heads = ("similarity from", "", "duplicates", "", "others")
    shown = table(heads, rows, "Pairs")
    return f"<details><summary>Similarities of the pairs</summary>{shown}</details>"


def _points(points: Sequence[Point], name: str) -> str:
    rows = [
        [
            f"{point.at:g}",
            count(point.found),
            *(
                "-" if share is None else _share_shown(share)
                for share in (point.precision, point.recall, point.f1, point.ari, point.b_cubed)
            ),
        ]
        for point in points
    ]
    heads = (name, "pairs", "precision", "recall", "F1", "ARI", "B-cubed")
    return table(heads, rows, f"By {name}")


def _share_shown(share: Share) -> str:
    value, (low, high) = share
    return f"{value:.3f} <small>{low:.3f} to {high:.3f}</small>"
