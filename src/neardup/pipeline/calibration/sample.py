"""A random sample of documents, each as likely as any other, from one pass over the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Batch, ReadOptions, Rejects, Source
    from neardup.runtime.progress import Progress

__all__ = ["Sample", "take_sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Documents in the order of the inputs.

    Args:
        texts: Large strings (n,).
        names: Ids or addresses, large strings (n,).
        place: float64 (n,): the n with the least are a random sample of these.
        documents: The number of all documents.
        nbytes: Bytes of all inputs.
    """

    texts: Any
    names: Any
    place: Any
    documents: int
    nbytes: int

    def __len__(self) -> int:
        """The number of sampled documents."""
        return len(self.texts)

    @property
    def is_whole(self) -> bool:
        """Whether every document was taken."""
        return len(self) == self.documents

    def part(self, count: int) -> Sample:
        """A random sample of a number of these documents."""
        chosen = pa.array(np.sort(np.argsort(self.place, kind="stable")[:count]))
        place = self.place[chosen.to_numpy()]
        texts, names = self.texts.take(chosen), self.names.take(chosen)
        return Sample(texts, names, place, self.documents, self.nbytes)


def take_sample(
    sources: Sequence[Source],
    read: ReadOptions,
    size: int,
    seed: int,
    rejects: Rejects,
    progress: Progress,
) -> Sample:
    """Read every input, and keep some documents.

    Args:
        sources: The inputs.
        read: Which fields.
        size: How many to keep.
        seed: The same seed gives the same sample.
        rejects: Takes records that cannot be used.
        progress: Shows the progress.

    Raises:
        DataError, FileError: As when a run reads them.
    """
    generator = np.random.default_rng(seed)
    taken, documents, nbytes, last = _Taken(size), 0, 0, 1.0
    for source in sources:
        for batch in source.batches(read, rejects):
            places = generator.random(len(batch.texts))
            last = taken.add(batch, places, source.name, last)
            documents += len(batch.texts)
            nbytes += batch.nbytes
            progress.advance(batch.nbytes)
    taken.prune()
    return Sample(taken.texts, taken.names, taken.places, documents, nbytes)


class _Taken:
    """The documents of the least places, in order; sometimes more than are needed."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.texts = self.names = pa.array([], pa.large_string())
        self.places = np.zeros(0)
        self._waiting: list[tuple[Any, Any, Any]] = []
        self._count = 0

    def add(self, batch: Batch, places: Any, file: str, last: float) -> float:
        """Take the documents below `last`; returns the place above which none is needed."""
        rows = np.flatnonzero(places < last)
        chosen = pa.array(rows)
        if batch.ids is None:
            names = pa.array([f"{file}:{row}" for row in batch.rows[rows]], pa.large_string())
        else:
            names = batch.ids.take(chosen)
        self._waiting.append((batch.texts.take(chosen), names, places[rows]))
        self._count += rows.size
        if self._count < 2 * self._size:
            return last
        self.prune()
        return float(self.places.max(initial=0.0))

    def prune(self) -> None:
        """Drop documents beyond the sample's size."""
        texts, names, places = zip(*self._waiting, strict=True) if self._waiting else ((), (), ())
        every = np.concatenate([self.places, *places])
        rows = np.sort(np.argsort(every, kind="stable")[: self._size])
        chosen = pa.array(rows)
        self.texts = pa.concat_arrays([self.texts, *texts]).take(chosen)
        self.names = pa.concat_arrays([self.names, *names]).take(chosen)
        self.places, self._waiting, self._count = every[rows], [], rows.size
