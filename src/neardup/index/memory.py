"""An index in memory."""

from __future__ import annotations

from neardup.index.base import BaseIndex
from neardup.index.settings import Settings
from neardup.recipe import Recipe

__all__ = ["Index"]


class Index(BaseIndex):
    """Fingerprints in memory, searched exactly: every one within the distance, and no other.

    Args:
        distance: Largest Hamming distance of a query.
        bits: Width of the fingerprints; the recipe's if there is one.
        recipe: How texts become fingerprints, if texts are given.
        plan: "auto", or a plan by name: see neardup.plan.
        memory: Bytes that the search tables may take; half of what is free unless said.

    Raises:
        UsageError: For a distance, width or plan that cannot be.

    Example:
        >>> index = Index(distance=1)
        >>> index.add(["a", "b"], [0b1011, 0b0100])
        2
        >>> index.query(0b1111)
        [('a', 1)]
        >>> index.add_if_new("c", 0b1010)
        ('a', 1)
    """

    def __init__(
        self,
        distance: int = 3,
        bits: int | None = None,
        recipe: Recipe | None = None,
        plan: str = "auto",
        memory: int | None = None,
    ) -> None:
        """Start empty."""
        width = bits if bits is not None else recipe.bits if recipe else 64
        super().__init__(Settings(distance, width, recipe, plan, memory))
