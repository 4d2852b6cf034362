"""Cutting passages of questions out of documents.

The step decides which documents are still dropped before it writes the first one: the texts of
those with findings wait in a temporary file, and their cut texts are searched again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from neardup.contamination.cutting import MAX_CUTS, Cut
from neardup.contamination.search import Search
from neardup.documents.record_edits import without
from neardup.errors import UsageError, suggests_names
from neardup.features.text import text_array
from neardup.runtime.storage.temporary import spill_error, temporary_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from neardup.contamination.passages import Finding
    from neardup.contamination.questions import Questions
    from neardup.documents import ReadOptions, Source
    from neardup.runtime.types import Flags

__all__ = ["PassageCuts", "check_cut", "cut_passages"]

_BYTES_AT_ONCE: Final = 1 << 24


@suggests_names
def cut_passages(
    documents: Any, found: pa.Table, around: int = 0, max_cuts: int = MAX_CUTS
) -> pa.LargeStringArray:
    """Cut the passages of questions out of documents.

    Args:
        documents: The texts of the call of `neardup.decontaminate`.
        found: Its result, or some rows of it: documents without a row stay as they are.
        around: Characters (code points) before and after each passage that are cut with it;
            passages that then overlap are one cut.
        max_cuts: A document with more cuts than this is dropped.

    Returns:
        LargeStringArray of the texts that are left, null for a document that is dropped: one with
        more cuts, or of which only white space is left. The rest may still contain a question whose
        words are spread over the document: `neardup.decontaminate` finds it.

    Raises:
        UsageError: For a number below zero, or something that is not a text.

    Example:
        >>> from neardup import decontaminate
        >>> train = ["A quiz: who wrote Hamlet? I forgot.", "Who wrote Hamlet?"]
        >>> found = decontaminate(train, ["Who wrote Hamlet"])
        >>> cut_passages(train, found, around=1).to_pylist()
        ['A quiz: I forgot.', None]
    """
    cut = Cut(around, max_cuts)
    passages: dict[int, list[Sequence[int]]] = {}
    columns = (found[name].to_pylist() for name in ("document", "start", "end", "passages"))
    for document, start, end, others in zip(*columns, strict=True):
        passages.setdefault(document, []).extend([(start, end), *others])
    texts = text_array(documents).to_pylist()
    for document, own in passages.items():
        stretches = cut.stretches(own)
        left = without(texts[document] or "", stretches)
        texts[document] = left if left.strip() and len(stretches) <= cut.most else None
    return pa.array(texts, pa.large_string())


def check_cut(sources: Sequence[Source], read: ReadOptions) -> None:
    """Refuse inputs out of whose records no passage can be cut."""
    if len(read.text) > 1:
        raise UsageError(
            f"--text is {','.join(read.text)}: --cut takes passages out of one field; name one"
        )
    if read.extract not in (None, "none"):
        raise UsageError("--cut changes the text as it stands in the file: leave out --extract")
    for source in sources:
        if source.has_pages and read.extract is None:
            raise UsageError(
                f"{source.name} is HTML, of which the main content is compared: --cut requires the"
                " text as it stands in the file; pass --extract none"
            )
        if not source.takes_edits:
            raise UsageError(
                f"{source.name} is {source.format}, whose records are copied whole: --cut requires"
                " others; write their texts to JSON lines first, or leave out --cut"
            )


class PassageCuts:
    """The cuts in the documents of a run; see `documents.record_edits.Cutter`.

    Args:
        cut: The options.
        tmp: Folder for the temporary file.

    Attributes:
        documents: After `decide`: the number of documents that lose passages.
    """

    def __init__(self, cut: Cut, tmp: str | None) -> None:
        """Begin without documents."""
        self.documents = 0
        self._cut, self._tmp = cut, tmp
        self._file = temporary_file(tmp, "texts")
        self._sizes: dict[int, int] = {}
        self._stretches: dict[int, list[tuple[int, int]]] = {}
        self._cut_documents: Iterator[int] = iter(())
        self._document = self._number = -1

    def keep_texts(self, texts: pa.LargeStringArray, first: int, documents: Iterable[int]) -> None:
        """Store the texts of documents with findings.

        Args:
            texts: Of a batch.
            first: The batch's first document.
            documents: Of the batch, those with findings, in order.
        """
        for document in documents:
            data = texts[document - first].as_buffer()
            try:
                self._file.write(data)
            except OSError as error:
                raise spill_error(self._tmp, "texts", error) from None
            self._sizes[document] = data.size

    def decide(
        self,
        leaks: Iterable[Finding],
        questions: Questions,
        still: Callable[[Sequence[Finding]], Iterable[Finding]],
    ) -> set[int]:
        """Decide which documents are cut, and which are dropped.

        Args:
            leaks: The findings to cut.
            questions: The questions.
            still: Selects the leaks among findings in the cut texts.

        Returns:
            The documents that are dropped: those with too many cuts, with only white space left, or
            that still contain a question.
        """
        passages: dict[int, list[tuple[int, int]]] = {}
        for each in leaks:
            passages.setdefault(each.document, []).extend(each.passages)
        stretches = {document: self._cut.stretches(own) for document, own in passages.items()}
        again, dropped = Search(questions), set(stretches)
        for documents, left in self._left(stretches):
            first, texts = again.documents, pa.array(left, pa.large_string())
            holding = {each.document - first for each in still(again.add(texts))}
            kept = {
                document
                for at, document in enumerate(documents)
                if at not in holding
                and left[at].strip()
                and len(stretches[document]) <= self._cut.most
            }
            dropped -= kept
            self._stretches.update((x, stretches[x]) for x in sorted(kept))
        self.documents = len(self._stretches)
        return dropped

    def _left(
        self, stretches: dict[int, list[tuple[int, int]]]
    ) -> Iterator[tuple[list[int], list[str]]]:
        """The documents after their cuts, in batches."""
        self._file.seek(0)
        documents: list[int] = []
        left: list[str] = []
        waiting = 0
        for document, size in self._sizes.items():
            data = self._file.read(size)
            if document in stretches:
                documents.append(document)
                left.append(without(data.decode(), stretches[document]))
                waiting += size
            if waiting >= _BYTES_AT_ONCE:
                yield documents, left
                documents, left, waiting = [], [], 0
        yield documents, left

    def begin_writing(self, keep: Flags) -> None:
        """Number the documents as they are written: those that are kept."""
        self._places = np.cumsum(keep) - 1
        self._cut_documents = iter(self._stretches)
        self._go_on()

    @property
    def document(self) -> int:
        """The next kept document that is cut, -1 after the last one."""
        return self._number

    def take(self, _: str) -> list[tuple[int, int]]:
        """The stretches to cut from the next document's text."""
        stretches = self._stretches[self._document]
        self._go_on()
        return stretches

    def _go_on(self) -> None:
        self._document = next(self._cut_documents, -1)
        self._number = -1 if self._document < 0 else int(self._places[self._document])

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the disk space."""
        self._file.close()
