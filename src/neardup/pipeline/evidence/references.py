"""Documents of an index beside those of a run, for its report: numbered on from the run's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neardup.errors import UsageError
from neardup.pipeline.run.decision import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.documents.addresses import Addresses, ReferenceAddresses
    from neardup.pipeline.evidence.decided import Decided
    from neardup.pipeline.run.against import ReferenceIndex

__all__ = ["addresses_of", "beside_references", "texts_beside"]


def beside_references(run: Decided) -> Decided:
    """The run with every document of its index after its own: these are kept, and match nothing.

    Raises:
        UsageError: If the index's documents did not take part in the search.
    """
    decision = run.decision
    known = decision.references
    if known is None:
        return run
    if known.every is None or known.places is None:
        raise UsageError(
            "the report needs an index of fingerprints with --store features or text, and a run"
            " that has not been decided before: leave out --report"
        )
    n = decision.kept_by.size
    theirs = np.arange(n, n + len(known.every))
    kept_by = decision.kept_by.copy()
    beyond = kept_by >= n
    kept_by[beyond] = n + known.places[kept_by[beyond] - n]
    kept_by = np.concatenate([kept_by, theirs])
    similarity = decision.similarity
    if similarity is not None:
        similarity = np.concatenate([similarity, np.ones(theirs.size)])
    return replace(run, decision=Decision(kept_by, kept_by, similarity, known))


def addresses_of(run: Decided, own: int) -> Addresses | ReferenceAddresses:
    """The addresses of the run's `own` documents and of its index's."""
    known, addresses = run.decision.references, run.documents.addresses
    return addresses if known is None or not own else addresses.beside(known.every)


def texts_beside(
    texts_of: Callable[[set[int]], dict[int, str]], known: ReferenceIndex | None, decision: Decision
) -> Callable[[set[int]], dict[int, str]]:
    """Texts by number, of the index too if it keeps them."""
    references, own = decision.references, decision.kept_by.size
    every = None if references is None else references.every

    def found(rows: set[int]) -> dict[int, str]:
        texts = texts_of({row for row in rows if row < own})
        beyond = sorted(row for row in rows if row >= own)
        if known is not None and every is not None and beyond:
            ids = [every[row - own].as_py() for row in beyond]
            given = zip(beyond, known.texts(ids), strict=True)
            texts |= {row: text for row, text in given if text is not None}
        return texts

    return found
