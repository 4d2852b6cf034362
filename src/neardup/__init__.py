"""Find and remove near-duplicate documents.

The flow, one way, one file a step:

    read (documents/) -> normalise, tokenise (text) -> weigh, hash, fold (fold)
    -> find neighbours (planner, neighbours) -> group and keep (clusters) -> write (documents/)

`pipeline` is the only place that composes the steps; the command line is a thin shell over it.
Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.clusters import components, greedy
    from neardup.compat.presets import preset, presets
    from neardup.errors import (
        DataError,
        FileError,
        NeardupError,
        RecipeError,
        TooManyPairsError,
        UnfitHashWarning,
        UsageError,
    )
    from neardup.explanation import Explanation, PairExplanation, explain
    from neardup.fold import distance, fingerprint, fingerprints, simhash
    from neardup.hashing import custom_hash
    from neardup.idf import DocumentFrequencies
    from neardup.index.durable import DurableIndex
    from neardup.index.memory import Index
    from neardup.index.plans import plan
    from neardup.neighbours import pairs
    from neardup.pipeline import DedupResult, dedup, similar_pairs
    from neardup.recipe import Recipe
    from neardup.tokens import custom_tokens
    from neardup.vectors import project
    from neardup.weights import custom_weight

__all__ = [
    "DataError",
    "DedupResult",
    "DocumentFrequencies",
    "DurableIndex",
    "Explanation",
    "FileError",
    "Index",
    "NeardupError",
    "PairExplanation",
    "Recipe",
    "RecipeError",
    "TooManyPairsError",
    "UnfitHashWarning",
    "UsageError",
    "__version__",
    "components",
    "custom_hash",
    "custom_tokens",
    "custom_weight",
    "dedup",
    "distance",
    "explain",
    "fingerprint",
    "fingerprints",
    "greedy",
    "pairs",
    "plan",
    "preset",
    "presets",
    "project",
    "simhash",
    "similar_pairs",
]

_HOMES: Final = {
    "clusters": ("components", "greedy"),
    "compat.presets": ("preset", "presets"),
    "errors": (
        "DataError",
        "FileError",
        "NeardupError",
        "RecipeError",
        "TooManyPairsError",
        "UnfitHashWarning",
        "UsageError",
    ),
    "explanation": ("Explanation", "PairExplanation", "explain"),
    "hashing": ("custom_hash",),
    "idf": ("DocumentFrequencies",),
    "index.durable": ("DurableIndex",),
    "index.memory": ("Index",),
    "index.plans": ("plan",),
    "neighbours": ("pairs",),
    "pipeline": ("DedupResult", "dedup", "similar_pairs"),
    "recipe": ("Recipe",),
    "tokens": ("custom_tokens",),
    "weights": ("custom_weight",),
    "vectors": ("project",),
    "fold": ("distance", "fingerprint", "fingerprints", "simhash"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"neardup.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
