"""What callers pass to an index by similarity, brought into feature sets, or refused."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.feature_sets import feature_sets
from neardup.fingerprinting.fingerprints import feature_hashes
from neardup.index.incoming import recipe_of_texts
from neardup.index.similar.sets import Sets
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.index.similar.settings import SimilarSettings
    from neardup.runtime.types import Hashes, Offsets

__all__ = ["many_sets", "one_set", "sorted_sets"]


def one_set(value: Any, settings: SimilarSettings) -> Any:
    """Bring a text or feature hashes into ascending uint64; empty for a document without any.

    Raises:
        UsageError: For something else, or a text where there is no recipe.
    """
    from neardup.kernels.index.sets import sort_set

    if isinstance(value, str):
        return frozen(feature_hashes(value, recipe_of_texts(settings, value)))
    features = np.empty(0, np.uint64) if value is None else _hashes(value)
    return frozen(features[: sort_set(features)])


def many_sets(values: Any, settings: SimilarSettings, workers: int | None = None) -> Sets:
    """Bring texts or feature hashes of many documents into sets; empty ones are among them.

    Args:
        values: Texts as for `neardup.fingerprints`, or as many collections of uint64 hashes: Arrow
            lists, or a sequence of arrays or lists, None for no features.
        settings: Of the index.
        workers: Threads; one per core unless said.

    Raises:
        UsageError: For something else, or texts where there is no recipe.
    """
    if isinstance(values, Sets):
        return values
    lists = _as_lists(values)
    if lists is None:
        see = settings.first_texts.see_array
        return sorted_sets(*feature_sets(values, recipe_of_texts(settings), workers, see=see))
    return sorted_sets(*lists)


def sorted_sets(features: Hashes, offsets: Offsets) -> Sets:
    """Sort every set and leave out what is repeated; `features` may be changed."""
    from neardup.kernels.index.sets import sort_sets

    if not features.flags.writeable or not features.flags.c_contiguous:
        features = features.copy()
    count = int(sort_sets(features, offsets))
    return Sets(frozen(features[:count]), frozen(offsets))


def _as_lists(values: Any) -> tuple[Any, Any] | None:
    """Features and offsets of lists of hashes; None for texts."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            return _from_arrow(values)
        return None
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = list(values)
    if not isinstance(values, (list, tuple)):
        return None
    if any(isinstance(each, str) for each in values):
        if not all(each is None or isinstance(each, str) for each in values):
            raise UsageError("texts and feature hashes are mixed: use one kind at a time")
        return None
    parts = [np.empty(0, np.uint64) if each is None else _hashes(each) for each in values]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(each) for each in parts], out=offsets[1:])
    return np.concatenate([np.empty(0, np.uint64), *parts]), offsets


def _from_arrow(values: Any) -> tuple[Any, Any]:
    kind = values.type.value_type
    if not pa.types.is_integer(kind) or kind.bit_width != 64:
        raise UsageError(f"features are lists of {kind}: use lists of uint64")
    flat = values.flatten()
    if flat.null_count:
        raise UsageError(f"{flat.null_count:,} features are null: leave them out")
    sizes = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return flat.to_numpy(zero_copy_only=False).view(np.uint64).copy(), offsets


def _hashes(value: Any) -> Any:
    if isinstance(value, pa.ListScalar):
        value = value.values
    if isinstance(value, pa.Array):
        value = value.to_numpy(zero_copy_only=False)
    if isinstance(value, (list, tuple, set, frozenset)):
        try:
            value = np.array(sorted(map(operator.index, value)), np.uint64)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(
                f"features are {value!r:.60}: use whole numbers from 0 to 2**64 - 1"
            ) from None
    if not isinstance(value, np.ndarray):
        raise UsageError(
            f"a document is {type(value).__name__}: {value!r:.60}: use a text, or an array of"
            " uint64 feature hashes"
        )
    if value.ndim != 1 or value.dtype not in (np.dtype(np.uint64), np.dtype(np.int64)):
        raise UsageError(
            f"features are {value.dtype} of shape {value.shape}: use uint64 (n,) for a document"
        )
    return value.astype(np.uint64)
