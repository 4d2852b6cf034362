"""The choice of the advised question among those that were tried, and its reasons.

The default question stays if it finds nine in ten copies of the aim's size. Otherwise questions are
considered that find 95 in 100 of them, or nine in ten if none does. Of those that are as tight as
the
default one, the one that finds most of all planted edits is advised; if none is, the tightest. A
question is as tight as another where its groups hold together as well, its pairs agree in their
words as often, and it matches as few lookalikes. If none finds enough, or more than every third
match is doubtful, nothing is advised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.fingerprinting.question import Question
    from neardup.pipeline.calibration.trials import Measured

__all__ = ["advise"]

SERVES: Final = 0.9
SURELY: Final = 0.95
"""Shares of the copies of the aim's size."""
NEARLY: Final = 0.03
"""Shares of all edits that differ by less count as equal; the tighter question wins."""
AS_TIGHT: Final = 0.01
DOUBTFUL: Final = 2 / 3


def advise(tried: Sequence[Measured], usual: Question) -> tuple[Measured | None, str]:
    """The advised question and the reason; or None and the reason.

    Args:
        tried: The results of each question; the usual one is among them, unless it has too many
            pairs.
        usual: The default question.
    """
    own = next((each for each in tried if each.question == usual), None)
    serving = [each for each in tried if each.aim >= SERVES]
    if own is not None and own.aim >= SERVES:
        return _unless_doubtful(own, f"the default question finds {own.aim:.2f} of such copies")
    if not serving:
        best = max((each.aim for each in tried), default=0.0)
        return None, f"no question finds {SERVES:.0%} of such copies: {best:.0%} at most"
    surely = [each for each in serving if each.aim >= SURELY] or serving
    missed = "has too many pairs" if own is None else f"finds {own.aim:.2f} of such copies"
    tight = [each for each in surely if own is not None and _as_tight(each, own)]
    if tight:
        most = max(each.recall for each in tight)
        best_of = max((each for each in tight if each.recall >= most - NEARLY), key=_tightness)
        why = f"finds {best_of.aim:.2f} and is as tight as the default, which {missed}"
        return _unless_doubtful(best_of, why)
    tightest = max(surely, key=_tightness)
    why = f"is the tightest that finds {tightest.aim:.2f} of them; the default {missed}"
    return _unless_doubtful(tightest, why)


def _as_tight(one: Measured, other: Measured) -> bool:
    pairs = zip(one.signs, other.signs, strict=True)
    return all(mine >= its - AS_TIGHT for mine, its in pairs)


def _tightness(each: Measured) -> tuple[float, bool, float]:
    """The sort key: precision in hundredths, words before characters, recall."""
    return round(each.precision, 2), each.question.recipe.tokens == "words", each.recall


def _unless_doubtful(best: Measured, why: str) -> tuple[Measured | None, str]:
    if best.precision >= DOUBTFUL:
        return best, why
    return None, (
        f"every question that finds the planted copies also matches documents that share a form:"
        f" of its pairs about {1 - best.precision:.0%} are doubtful"
    )
