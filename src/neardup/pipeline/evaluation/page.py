"""An evaluation as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.pipeline.report.drawings import amount, lines
from neardup.pipeline.report.frame import frame
from neardup.pipeline.report.markup import count, inert, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.pipeline.evaluation.model import Evaluation, Point, Scores, Share

__all__ = ["evaluation_page"]

_LINKS = (("recipes", "Recipes"), ("curves", "Curves"), ("tables", "Tables"))


def evaluation_page(found: Evaluation) -> str:
    """One HTML file, the same bytes for the same evaluation."""
    body = _head(found) + _curves(found) + _tables(found)
    title = f"neardup: evaluation on {count(found.documents)} documents"
    return frame(title, "Evaluation", _LINKS, body, found.to_dict())


def _head(found: Evaluation) -> str:
    rows = []
    for scores in found.scores:
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
    if found.unknown:
        lost = (
            f'<div class="warn"><p>{count(found.unknown)} labels are about documents that are not'
            " here.</p></div>"
        )
    heads = ("recipe", "best threshold", "F1", "precision", "recall")
    return (
        f'<section id="recipes"><p class="lead"><b>{count(found.documents)}</b> documents,'
        f" <b>{count(found.labelled)}</b> labelled; <b>{count(found.pairs)}</b> duplicate pairs."
        f"</p><p>Of these, {inert(found.world)}. Groups are {inert(found.policy)}; similarity is"
        f" {inert(found.measure)}. Intervals are 95%, by drawing clusters anew.</p>{lost}"
        f"{table(heads, rows, 'Recipes')}</section>"
    )


def _curves(found: Evaluation) -> str:
    parts = []
    for title, of in (("F1", "f1"), ("Precision", "precision"), ("Recall", "recall")):
        series = [
            (scores.title, [(point.at, getattr(point, of)[0]) for point in scores.by_similarity])
            for scores in found.scores
        ]
        picture = lines(series, f"{title} at each similarity", "least similarity")
        parts.append(f"<h3>{title}</h3>{picture}")
    return f'<section id="curves"><h2>At each threshold</h2>{"".join(parts)}</section>'


def _tables(found: Evaluation) -> str:
    parts = [
        f"<h3>{inert(scores.title)}</h3>{_histogram(scores)}"
        f"{_points(scores.similarity_steps, 'similarity')}<details><summary>By distance of the"
        f" fingerprints</summary>{_points(scores.by_distance, 'distance')}</details>"
        for scores in found.scores
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
                "-" if share is None else _share(share)
                for share in (point.precision, point.recall, point.f1, point.ari, point.b_cubed)
            ),
        ]
        for point in points
    ]
    heads = (name, "pairs", "precision", "recall", "F1", "ARI", "B-cubed")
    return table(heads, rows, f"By {name}")


def _share(share: Share) -> str:
    value, (low, high) = share
    return f"{value:.3f} <small>{low:.3f} to {high:.3f}</small>"
