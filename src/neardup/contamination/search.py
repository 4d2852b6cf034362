"""The search of documents for all questions, block by block, in threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.contamination.passages import findings_of
from neardup.contamination.questions import words_cut
from neardup.features.text import text_blocks
from neardup.runtime.threads import in_threads, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from neardup.contamination.passages import Finding
    from neardup.contamination.questions import Questions
    from neardup.features.text import TextBlock
    from neardup.runtime.types import Rows

__all__ = ["Search"]

BLOCK_BYTES: Final = 1 << 18


class Search:
    """A search for questions in batches of documents.

    Args:
        questions: What is looked for.
        workers: Number of threads; by default all available processors.
        counts_documents: Whether to count how many documents have each feature.

    Attributes:
        documents: How many were searched.
    """

    def __init__(
        self, questions: Questions, workers: int | None = None, *, counts_documents: bool = False
    ) -> None:
        """Allocate the working memory of each thread."""
        self.documents = 0
        self._questions = questions
        self._workers = worker_count(workers)
        features = questions.shares.key_starts.size - 1
        size = features + 3 * len(questions)
        self._scratch = [np.zeros(size, np.int64) for _ in range(self._workers)]
        counted = features if counts_documents else 0
        self._having = [np.zeros(counted, np.int64) for _ in range(self._workers)]

    @property
    def having(self) -> Rows:
        """The number of documents with each feature, int64; empty unless it is counted."""
        return np.asarray(np.sum(self._having, axis=0), np.int64)

    def skip(self, documents: int, having: Rows | None = None) -> None:
        """Skip documents of an earlier search, whose `having` counts them."""
        self.documents += documents
        if having is not None:
            self._having[0] += having

    def add(self, texts: pa.LargeStringArray) -> list[Finding]:
        """Search further documents; returns findings in order of document, then of question."""
        blocks = list(text_blocks(texts, BLOCK_BYTES))
        findings: list[list[Finding]] = [[] for _ in blocks]

        def run(thread: int, task: tuple[int, TextBlock]) -> None:
            place, block = task
            findings[place] = list(self._in_block(thread, block))

        in_threads(self._workers, run, enumerate(blocks))
        self.documents += len(texts)
        return [each for of_block in findings for each in of_block]

    def _in_block(self, thread: int, block: TextBlock) -> Iterator[Finding]:
        from neardup.kernels.contamination import search_block

        questions = self._questions
        cut = words_cut(questions.rule)
        hits = search_block(
            block.data, block.offsets, cut, questions.shares, questions.phrases,
            self._scratch[thread], self._having[thread], self.documents + block.first,
        ).reshape(-1, 3)  # fmt: skip
        order = np.lexsort((hits[:, 1], hits[:, 0]))
        return findings_of(block, self.documents + block.first, hits[order], questions)
