"""What a durable index keeps beside fingerprints: nothing, feature hashes or texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.ids import id_array

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = ["STORES", "Contents"]

STORES: Final = ("none", "features", "text")
CODEC: Final = "zstd"


class Contents:
    """Encodes and decodes contents.

    Args:
        kind: One of STORES.
        recipe: Of the index.
    """

    def __init__(self, kind: str, recipe: Recipe | None) -> None:
        """Keep these."""
        self._kind, self._recipe = kind, recipe

    @property
    def is_kept(self) -> bool:
        """Whether the index keeps any."""
        return self._kind != "none"

    def check_merging(self, theirs: str) -> None:
        """Refuse an index to be merged that does not keep what this one does.

        Args:
            theirs: One of STORES.

        Raises:
            UsageError: If contents would be missing.
        """
        made_of_texts = self._kind == "features" and theirs == "text"
        if self.is_kept and theirs != self._kind and not made_of_texts:
            raise UsageError(
                f"the index keeps {self._kept}, and the other one {theirs}: contents would be"
                " missing; merge into an index that keeps no more than the other"
            )

    def encoded(self, ids: Any, documents: Any, contents: Any) -> list[bytes | None] | None:
        """What is kept of documents that are being added; None where nothing is.

        Args:
            ids: As for `add`, many.
            documents: As many texts, which are kept unless contents are given.
            contents: As many texts or arrays of feature hashes.

        Raises:
            UsageError: If contents are missing or not wanted, or of a wrong number or type.
        """
        if not self.is_kept:
            if contents is not None:
                raise UsageError("the index keeps no contents: make it with store='text', say")
            return None
        values = _listed(documents if contents is None else contents)
        names = id_array(ids).to_pylist()
        if len(values) != len(names):
            raise UsageError(f"{len(names):,} ids for {len(values):,} contents: give as many")
        if contents is None:
            self._check_texts(names, values)
        return [self._encoded(name, value) for name, value in zip(names, values, strict=True)]

    def _check_texts(self, names: list[Any], values: list[Any]) -> None:
        """Refuse fingerprints alone: nothing says what they were made of."""
        for name, value in zip(names, values, strict=True):
            if value is not None and not isinstance(value, str):
                raise UsageError(
                    f"the index keeps {self._kept}, and {name!r} comes with a fingerprint"
                    f" ({type(value).__name__}) alone: give texts, or pass contents="
                )

    @property
    def _kept(self) -> str:
        return "texts" if self._kind == "text" else "features"

    def _encoded(self, identity: Any, value: Any) -> bytes | None:
        if value is None:
            return None  # a document without tokens, which is left out
        if self._kind == "text":
            if not isinstance(value, str):
                raise UsageError(
                    f"the index keeps texts, and {identity!r} comes with {type(value).__name__}:"
                    " give texts, or pass contents="
                )
            plain = value.encode("utf8", "surrogatepass")
            packed = pa.compress(plain, codec=CODEC, asbytes=True)
            return len(plain).to_bytes(8, "little") + bytes(packed)
        if isinstance(value, str) and self._recipe is not None:
            from neardup.fingerprinting.fingerprints import feature_hashes

            value = feature_hashes(value, self._recipe)
        if not isinstance(value, np.ndarray) or value.dtype != np.uint64 or value.ndim != 1:
            raise UsageError(
                f"the index keeps features, and {identity!r} comes with {type(value).__name__}:"
                " give texts, or pass contents= with arrays of uint64 feature hashes"
            )
        return np.ascontiguousarray(value).tobytes()

    def decoded(self, value: bytes | None) -> Any:
        """A text or uint64 hashes; None for None."""
        if value is None:
            return None
        if self._kind == "features":
            return np.frombuffer(value, np.uint64)
        size = int.from_bytes(value[:8], "little")
        plain = pa.decompress(value[8:], decompressed_size=size, codec=CODEC, asbytes=True)
        return bytes(plain).decode("utf8", "surrogatepass")


def _listed(values: Any) -> list[Any]:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return list(values.to_pylist())
    return list(values)
