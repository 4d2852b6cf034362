"""Explanations that print themselves: as a table in a terminal, as HTML in a notebook."""

from __future__ import annotations

from neardup.fingerprinting.explanation.html import document_html, pair_html
from neardup.fingerprinting.explanation.model import ExplainedPair, ExplainedText
from neardup.fingerprinting.explanation.plain import document_lines, pair_lines

__all__ = ["Explanation", "PairExplanation"]


class Explanation(ExplainedText):
    """How one document's fingerprint came about; prints as a table.

    Attributes:
        recipe: How it was made.
        features: Distinct features, the heaviest first, else in order of occurrence.
        sums: Sum j at index j: bit j of the fingerprint is 1 where it is above 0. None for a
            preset whose hash of a feature depends on its neighbours.
        fingerprint: Its value; None without tokens.
        show: Features that the tables show.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """One line; all features and sums would fill the screen."""
        value = None if self.fingerprint is None else hex(self.fingerprint)
        return f"Explanation(fingerprint={value}, features={len(self.features)})"

    def __str__(self) -> str:
        """A table for a terminal."""
        return "\n".join(document_lines(self))

    def _repr_html_(self) -> str:
        return document_html(self)


class PairExplanation(ExplainedPair):
    """Why two documents' fingerprints differ; prints as a table.

    Attributes:
        first: The first document's explanation.
        second: The second's.
        distance: Bits in which they differ; None if one has no fingerprint.
        shared: Features of equal weight in both, which add the same to both and cancel.
        pulls: The others, those that pull the differing bits apart most first.
        differing: The differing bits, highest first.
    """

    __slots__ = ()

    first: Explanation
    second: Explanation

    def __repr__(self) -> str:
        """One line, as that of an explanation."""
        return (
            f"PairExplanation(distance={self.distance}, shared={self.shared},"
            f" differing={len(self.differing)})"
        )

    def __str__(self) -> str:
        """A table for a terminal."""
        return "\n".join(pair_lines(self))

    def _repr_html_(self) -> str:
        return pair_html(self)
