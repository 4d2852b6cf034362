"""The feature hashes of texts, without fingerprints: what is compared by similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.features.frequency_table import table_of
from neardup.features.hashes import find_hash
from neardup.features.text import TextBlock, text_array, text_blocks
from neardup.fingerprinting.fingerprints import fingerprint_block
from neardup.runtime.threads import in_threads, worker_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.fingerprinting.recipe import Recipe
    from neardup.runtime.types import Codes, Hashes, Offsets

__all__ = ["feature_sets", "fingerprints_of_sets", "set_weights"]

BLOCK_BYTES: Final = 1 << 18
FEATURES_A_STEP: Final = 1 << 18
_NONE: Final = np.empty(0, np.uint64)


def feature_sets(
    texts: Any,
    recipe: Recipe,
    workers: int | None = None,
    *,
    see: Callable[..., object] | None = None,
) -> tuple[Hashes, Offsets]:
    """The distinct feature hashes of many texts.

    Args:
        texts: As for `neardup.fingerprints`.
        recipe: How.
        workers: Number of threads; by default all available processors.
        see: Called with the texts, some large-string arrays of Arrow.

    Returns:
        uint64: those of text 0, then of text 1, and so on, each in no order; and int64 (n + 1,):
        where each text's begin.

    Raises:
        UsageError: If something in it is not a text, or the recipe has no features.
    """
    counts: list[Offsets] = [np.zeros(0, np.int64)]
    parts: list[Hashes] = []
    work = []
    chunks = text_array(texts).chunks
    if see is not None:
        see(*chunks)
    for chunk in chunks:
        values = np.zeros((len(chunk), recipe.words), np.uint64)
        counts.append(np.zeros(len(chunk), np.int64))
        for block in text_blocks(chunk, BLOCK_BYTES):
            work.append((len(parts), block, values, counts[-1]))
            parts.append(_NONE)

    def run(_: int, task: tuple[int, TextBlock, Any, Any]) -> None:
        at, block, values, of_chunk = task
        parts[at] = fingerprint_block(block, recipe, values, of_chunk, keep_features=True)

    in_threads(worker_count(workers), run, work)
    sizes = np.concatenate(counts)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return np.concatenate([_NONE, *parts]), offsets


def set_weights(recipe: Recipe | None) -> tuple[Any, int] | None:
    """The weight of each distinct feature, as far as the features alone determine it.

    Returns:
        None where all weigh the same; else a hash_table of units of 2**-16 by feature hash, and
        the units of a feature that is not in it.

    Raises:
        UsageError: If the weights depend on counts, or the features are not those of the table.
        RecipeError: If the recipe's document frequencies are not loaded.
    """
    if recipe is None or recipe.weight == "set":
        return None
    if recipe.weight != "tfidf":
        raise UsageError(
            f"the recipe weighs by {recipe.weight!r}, and an index keeps features without counts:"
            " use a recipe that weighs by 'tfidf' or 'set'"
        )
    if (recipe.hash, recipe.seed) != ("xxh3", 0):
        raise UsageError(
            f"the recipe's hash is {recipe.hash!r} with seed {recipe.seed}, and document"
            " frequencies know features by xxh3 and seed 0: use these in the recipe"
        )
    table, _, missing = table_of(recipe).kernel_table()
    return table, missing


def fingerprints_of_sets(features: Hashes, offsets: Offsets, recipe: Recipe) -> Codes:
    """The fingerprints of documents of which only the features are known.

    Args:
        features: uint64: as `feature_sets` gives them, in any order.
        offsets: int64 (n + 1,); no set is empty.
        recipe: How.

    Returns:
        uint64 (n, words); (n, 0) where features alone do not tell: they must weigh the same, and
        their hashes and the fingerprints have 64 bits, or the fingerprints fewer.

    Example:
        >>> from neardup import Recipe, fingerprint
        >>> text = "one two three four five"
        >>> code = fingerprints_of_sets(*feature_sets([text], Recipe()), Recipe())[0, 0]
        >>> int(code) == fingerprint(text)
        True
    """
    count = len(offsets) - 1
    is_known = recipe.preset is None and recipe.weight == "set" and recipe.top is None
    if not is_known or recipe.words > 1 or find_hash(recipe.hash).bits < 64:
        return np.empty((count, 0), np.uint64)
    codes = np.empty((count, 1), np.uint64)
    begin = 0
    while begin < count:
        row = int(np.searchsorted(offsets, offsets[begin] + FEATURES_A_STEP, side="right")) - 1
        end = max(begin + 1, min(row, count))
        part = np.ascontiguousarray(features[offsets[begin] : offsets[end]], "<u8")
        bits = np.unpackbits(part.view(np.uint8), bitorder="little").reshape(-1, 64)
        ones = np.add.reduceat(bits, offsets[begin:end] - offsets[begin], axis=0, dtype=np.int64)
        sizes = np.diff(offsets[begin : end + 1])[:, None]
        won = 2 * ones >= sizes if recipe.tie == "one" else 2 * ones > sizes
        codes[begin:end] = np.packbits(won, axis=1, bitorder="little").view("<u8")
        begin = end
    return codes & np.uint64((1 << recipe.bits) - 1)
