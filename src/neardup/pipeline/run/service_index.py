"""The index of a service as the reference set of a run: `dedup --against http://...`.

Documents are prepared here and sent in batches: features or fingerprints, never texts. Each batch
is compared with the documents that the service has committed; others may write during the run.
Added
documents are on the service's disk before the run ends, and adding them again changes nothing.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.recipe import Recipe
from neardup.index.hits import ABSENT, OTHER, SAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.client import Document, First
    from neardup.runtime.types import Codes

__all__ = ["ServiceIndex", "is_service"]

RETRIES: Final = 8
"""Attempts of a request: a run waits some twenty seconds for a service that restarts."""
_STATES: Final = {"absent": ABSENT, "other": OTHER, "same": SAME}


def is_service(address: str) -> bool:
    """Whether the name of an index is the address of a service."""
    return address.startswith(("http://", "https://"))


class ServiceIndex:
    """The index of a service, with those calls of `DurableIndex` that a run needs.

    The key comes from the environment: NEARDUP_KEY, or NEARDUP_READ_KEY for a run that only reads.

    Args:
        url: Of the service.
        update: Whether documents are added.

    Raises:
        UsageError: If httpx is not installed, or the index cannot be added to from here.
        ServiceError: If the service cannot be reached, or refuses.
        RecipeError: If its recipe is one of another version.
    """

    def __init__(self, url: str, *, update: bool = False) -> None:
        """Ask the service for the settings of its index."""
        from neardup.client import Client

        key = os.environ.get("NEARDUP_KEY") or os.environ.get("NEARDUP_READ_KEY")
        with Client(url, key, retries=2) as client:
            facts = client.index()
        self.path, self.by, self.id_kind = url, facts["by"], facts["ids"]
        self.store: str = facts["store"]
        recipe = facts["recipe"]
        self.recipe = None if recipe is None else Recipe.from_json(json.dumps(recipe))
        self.similarity, self.measure = facts.get("similarity", 0.0), facts.get("measure", "")
        self.extract: str | None = facts.get("extract")
        self.distance, self.bits = facts.get("distance", 0), facts.get("bits", 64)
        if update and facts["readonly"]:
            raise UsageError(f"{url} only reads: give --update the service that writes")
        if update and self.by == "distance" and self.store != "none":
            raise UsageError(
                f"the index of {url} keeps {self.store}, and --update through a service adds"
                " fingerprints alone: run this where the folder is"
            )
        # From now on an index with another recipe in its place is refused.
        self._client = Client(url, key, recipe=facts["digest"], retries=RETRIES)
        self._fingerprints: dict[Any, int | None] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close connections."""
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def compared(
        self, ids: pa.Array, contents: Any, least: float, most: int
    ) -> tuple[npt.NDArray[np.int8], pa.Table]:
        """The states of the ids of documents, and the near documents that were stored first.

        Args:
            ids: Of the index's kind.
            contents: Sets, or fingerprints, masked where a document is empty.
            least: The similarity, or the distance.
            most: Matches of each.

        Returns:
            For each document whether its own id is stored, and with the same content; and a table
            of the first matches.
        """
        rows, documents = _documents(contents)
        queries = zip(ids.take(pa.array(rows)).to_pylist(), documents, strict=True)
        reach: dict[str, Any] = {self.by: least}
        answers = self._client.first_many(queries, most, **reach)
        versions = np.full(len(ids), ABSENT, np.int8)
        matched: list[tuple[int, Any, float]] = []
        for row, answer in zip(rows.tolist(), answers, strict=True):
            versions[row] = _STATES[answer.stored]
            matched += [(row, match.id, match.close) for match in self._noted(answer)]
        columns = list(zip(*matched, strict=True)) or [(), (), ()]
        kind = pa.int64() if self.id_kind == "int" else pa.string()
        close = pa.float64() if self.by == "similarity" else pa.int16()
        kinds = {"row": pa.int64(), "id": kind, self.by: close}
        arrays = [
            pa.array(values, kind) for values, kind in zip(columns, kinds.values(), strict=True)
        ]
        return versions, pa.table(arrays, names=list(kinds))

    def versions(self, ids: pa.Array, contents: Any) -> npt.NDArray[np.int8]:
        """The states of the ids of documents."""
        return self.compared(ids, contents, self.similarity or self.distance, 0)[0]

    def fingerprints_by_id(self, ids: pa.Array) -> Codes:
        """Fingerprints of matched documents; (n, 0) if features do not determine them."""
        values = [self._fingerprints[identity] for identity in ids.to_pylist()]
        width = -(-self.bits // 64)
        codes = [value.to_bytes(8 * width, "little") for value in values if value is not None]
        if len(codes) < len(values):
            return np.empty((len(values), 0), np.uint64)
        return np.frombuffer(b"".join(codes), "<u8").reshape(-1, width)

    def add(self, ids: pa.Array, contents: Any, kept: Any = None) -> None:
        """Store documents uncompared; they are on the service's disk when this returns."""
        assert kept is None  # noqa: S101  # refused when the index was opened
        rows, documents = _documents(contents)
        names = ids.take(pa.array(rows)).to_pylist()
        for _ in self._client.add_many(zip(names, documents, strict=True)):
            pass

    def commit(self) -> None:
        """Do nothing: the service commits before it answers."""

    def _noted(self, answer: First) -> Iterator[Any]:
        for match in answer.matches:
            self._fingerprints[match.id] = match.fingerprint
            yield match


def _documents(contents: Any) -> tuple[npt.NDArray[np.int64], Iterator[Document]]:
    """The non-empty rows of Sets or fingerprints, and their contents."""
    if isinstance(contents, np.ndarray):
        rows = np.flatnonzero(~np.ma.getmaskarray(contents)[:, 0])
        plain = np.ma.getdata(contents)
        return rows, (int.from_bytes(plain[row].tobytes(), "little") for row in rows)
    each = contents if isinstance(contents, list) else [*map(contents.of, range(contents.size))]
    rows = np.array([row for row, features in enumerate(each) if len(features)], np.int64)
    return rows, (each[row].tolist() for row in rows)
