"""Add what a run keeps to the index that it was compared with: `dedup --against INDEX --update`.

They are added after the outputs got their names, in the order of the run, and committed whenever
much is waiting. So a killed run sees from the index how many it had added, and goes on there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.hits import SAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.against import ReferenceIndex
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.folder.state import RunFolder
    from neardup.pipeline.run.reading import Documents

__all__ = ["NewDocuments", "made_id_error"]

ROWS_A_CALL: Final = 1 << 17
WAITING_BYTES: Final = 1 << 28
"""So much may wait for a commit."""


class NewDocuments:
    """The kept documents of a run that have tokens, and that the index has not got as they are.

    Args:
        known: The index, open for writing.
        documents: Of the run.
        decision: The decision.
        folder: The state of the run, if it keeps one.
        first: What the index had had added when a run began that decided the same, if one did.

    Raises:
        UsageError: If a document without an id of its own is in the index already, or the index
            has got other documents since the run was killed.
    """

    def __init__(
        self,
        known: ReferenceIndex,
        documents: Documents,
        decision: Decision,
        folder: RunFolder | None,
        first: int | None = None,
    ) -> None:
        """Look what is to be added; nothing is yet."""
        self._index, self._documents, self._folder = known.index, documents, folder
        self._is_similar = known.is_similar
        self._codes = documents.codes
        chosen = decision.kept & ~documents.empty[: documents.own]
        if known.keeps_own and decision.own is not None:
            chosen &= decision.own != SAME
        self._rows = np.flatnonzero(chosen)
        self._count = documents.own
        if first is not None:
            self._pass(first)
        elif folder is not None and folder.was_updating:
            self._pass(folder.facts["index"]["added"])
        elif not known.has_ids:
            self._check_addresses()

    def add(self, sources: Sequence[Source], read: ReadOptions) -> None:
        """Add and commit them.

        Args:
            sources: The inputs, whose texts are read again if the index keeps texts.
            read: As before.
        """
        if self._folder is not None:
            self._folder.note_updating()
        try:
            self._add(sources, read)
        except KeyboardInterrupt as error:
            error.add_note(
                f"the outputs are written, {self._index.path} has not got all of their documents:"
                " run the same again"
            )
            raise

    def _add(self, sources: Sequence[Source], read: ReadOptions) -> None:
        waiting = begin = 0
        keeps_text = self._index.store == "text"
        parts: Iterator[Any] = _texts(sources, read) if keeps_text else _ranges(self._count)
        for part in parts:
            first, last = np.searchsorted(self._rows, (begin, begin + len(part)))
            rows = self._rows[first:last]
            if len(rows):
                contents = None
                if keeps_text:
                    contents = part.take(pa.array(rows - begin))
                elif self._index.store == "features":
                    contents = self._documents.features_of(rows)
                ids = self._documents.addresses.of(rows)
                if self._is_similar:
                    self._index.add(ids, contents)
                else:
                    self._index.add(ids, self._codes[rows], contents)
                waiting += self._codes[rows].nbytes + _nbytes(contents)
            if waiting >= WAITING_BYTES:
                self._index.commit()
                waiting = 0
            begin += len(part)
        self._index.commit()

    def _pass(self, first: int) -> None:
        """Leave out what a killed run has added, which began when the index had had so many."""
        count = self._index.added - first
        theirs = count > len(self._rows)
        if count and not theirs:
            last = self._documents.addresses.of(self._rows[count - 1 : count])[0].as_py()
            theirs = self._index.number(last) != self._index.added - 1
        if theirs:
            raise UsageError(
                f"{self._index.path} got other documents after this run's outputs were written,"
                " which stay as they are: add their documents with neardup index add, or compare"
                " again with other outputs"
            )
        self._rows = self._rows[count:]

    def _check_addresses(self) -> None:
        """Refuse to replace documents of the index by others of the same row and file name."""
        for identity in self._documents.addresses.of(self._rows).to_pylist():
            if identity in self._index:
                raise made_id_error(identity, self._index.path)


def made_id_error(identity: Any, path: Path) -> UsageError:
    """What says that an id that neardup made, which is no identity, has other content already."""
    return UsageError(
        f"{identity!r} is in {path} already, with other content: give the documents ids with --id,"
        " or the file another name"
    )


def _nbytes(contents: Any) -> int:
    if contents is None:
        return 0
    return contents.nbytes if isinstance(contents, pa.Array) else sum(x.nbytes for x in contents)


def _ranges(count: int) -> Iterator[range]:
    for edge in pairwise([*range(0, count, ROWS_A_CALL), count]):
        yield range(*edge)


def _texts(sources: Sequence[Source], read: ReadOptions) -> Iterator[Any]:
    """The texts of all accepted documents once more, Arrow arrays."""
    for source in sources:
        for batch in source.batches(read):
            yield batch.texts
