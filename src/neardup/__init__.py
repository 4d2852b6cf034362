"""Find and remove near-duplicate documents.

The flow, one way, one room a step:

    documents   read
    features    normalise, tokenise, weigh, hash
    fingerprinting  fold into fingerprints, by a recipe
    hamming     match fingerprints by distance
    similarity  match documents by what they share, exactly
    index       "have I seen this?", in memory and durable
    documents   write
    pipeline    compose the steps, and show what a run did

Only `pipeline` composes the steps; `spark` runs them beyond one machine, and `cli` is a thin shell
over both. `kernels` has the loops over arrays, `runtime` what every run uses, `compat` other
libraries' interfaces.
docs/design/house.md draws the house. Names are loaded when they are first used, so that importing
the package costs nothing.
"""

from __future__ import annotations

from neardup.runtime.lazy import lazily
from neardup.runtime.version import __version__

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Final

    from neardup.documents.markup import main_text
    from neardup.errors import (
        DataError,
        DoubtfulResultWarning,
        FileError,
        NeardupError,
        RecipeError,
        TooManyPairsError,
        UnfitHashWarning,
        UsageError,
    )
    from neardup.features.hashes import custom_hash
    from neardup.features.tokens import custom_tokens
    from neardup.features.weights import custom_weight
    from neardup.fingerprinting.document_frequencies import DocumentFrequencies
    from neardup.fingerprinting.explanation import (
        Comparison,
        Explanation,
        PairExplanation,
        compare,
        explain,
    )
    from neardup.fingerprinting.fingerprints import fingerprint, fingerprints
    from neardup.fingerprinting.majority import simhash
    from neardup.fingerprinting.preset_recipes import preset, presets
    from neardup.fingerprinting.projection import project
    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe
    from neardup.fingerprinting.values import distance
    from neardup.hamming.all_pairs import pairs
    from neardup.hamming.clusters import components, greedy
    from neardup.hamming.search.plan_comparison import plan
    from neardup.index.durable import DurableIndex
    from neardup.index.index_plans import plan_similar
    from neardup.index.memory_index import Index
    from neardup.pipeline import (
        DedupResult,
        cut_passages,
        decontaminate,
        dedup,
        similar_pairs,
    )

__all__ = [
    "Comparison",
    "DataError",
    "DedupResult",
    "DocumentFrequencies",
    "DoubtfulResultWarning",
    "DurableIndex",
    "Explanation",
    "FileError",
    "Index",
    "NeardupError",
    "PairExplanation",
    "Question",
    "Recipe",
    "RecipeError",
    "TooManyPairsError",
    "UnfitHashWarning",
    "UsageError",
    "__version__",
    "compare",
    "components",
    "custom_hash",
    "custom_tokens",
    "custom_weight",
    "cut_passages",
    "decontaminate",
    "dedup",
    "distance",
    "explain",
    "fingerprint",
    "fingerprints",
    "greedy",
    "main_text",
    "pairs",
    "plan",
    "plan_similar",
    "preset",
    "presets",
    "project",
    "simhash",
    "similar_pairs",
]

_HOMES: Final = {
    "errors": (
        "DataError",
        "DoubtfulResultWarning",
        "FileError",
        "NeardupError",
        "RecipeError",
        "TooManyPairsError",
        "UnfitHashWarning",
        "UsageError",
    ),
    "documents.markup": ("main_text",),
    "features.hashes": ("custom_hash",),
    "features.tokens": ("custom_tokens",),
    "features.weights": ("custom_weight",),
    "fingerprinting.document_frequencies": ("DocumentFrequencies",),
    "fingerprinting.explanation": (
        "Comparison",
        "Explanation",
        "PairExplanation",
        "compare",
        "explain",
    ),
    "fingerprinting.fingerprints": (
        "fingerprint",
        "fingerprints",
    ),
    "fingerprinting.majority": ("simhash",),
    "fingerprinting.preset_recipes": (
        "preset",
        "presets",
    ),
    "fingerprinting.question": ("Question",),
    "fingerprinting.recipe": ("Recipe",),
    "fingerprinting.values": ("distance",),
    "fingerprinting.projection": ("project",),
    "hamming.all_pairs": ("pairs",),
    "hamming.clusters": (
        "components",
        "greedy",
    ),
    "hamming.search.plan_comparison": ("plan",),
    "index.durable": ("DurableIndex",),
    "index.memory_index": ("Index",),
    "index.index_plans": ("plan_similar",),
    "pipeline": (
        "DedupResult",
        "cut_passages",
        "decontaminate",
        "dedup",
        "similar_pairs",
    ),
}
__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
