"""The passage of a document that contains a question, and the question's share in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.contamination.questions import FEATURE_WORDS, words_cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.contamination.questions import Questions
    from neardup.features.text import TextBlock
    from neardup.runtime.types import Flags, Hashes

__all__ = ["Finding", "findings_of", "shared_parts"]

_CONTEXT: Final = 240
"""The bytes kept around a passage."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A question found in a document.

    Attributes:
        document: Its row.
        question: Its number.
        why: The kernel's BY_SHARE, BY_RUN or both.
        share: Share of the question's features that the document has.
        run: Words of the longest run that both have.
        passages: Begin and end of each passage, code points of the text as it was read, the best
            one first.
        text: The best passage.
        before: Of the document, what stands before that passage, up to some characters.
        after: What stands behind it.
        shared: uint64: the features that both have.
        run_features: uint64: the features of the longest run, repeats included.
        covered: bool, one a word of the question: it lies in a run that both have; None unless the
            rule counts them.
    """

    document: int
    question: int
    why: int
    share: float
    run: int
    passages: tuple[tuple[int, int], ...]
    text: str
    shared: Hashes
    run_features: Hashes
    covered: Flags | None = None
    before: str = ""
    after: str = ""


def findings_of(block: TextBlock, first: int, hits: Any, questions: Questions) -> Iterator[Finding]:
    """The findings of a block: one for each pair of document and question.

    Args:
        block: Documents.
        first: The row of the first one.
        hits: int64 (pairs, 3): document of the block, question and why; by document.
        questions: All questions.
    """
    from neardup.kernels.contamination_passages import mark_passages

    data, documents, numbers = block.data, hits[:, 0], hits[:, 1]
    places = np.zeros((len(hits) + 1, 2), np.int64)
    np.cumsum(questions.feature_counts[numbers], out=places[1:, 0])
    np.cumsum(questions.sizes[numbers], out=places[1:, 1])
    published = questions.rule.published
    marks_words = published is not None and published.coverage is not None
    marks, passages = mark_passages(
        data, block.offsets, hits, places, words_cut(questions.rule), questions.arrays, marks_words
    )
    ranges = passages.tolist()
    behind = 0
    rows = zip(
        hits.tolist(), places[:-1].tolist(), places[1:].tolist(), marks.figures.tolist(),
        block.offsets[documents].tolist(), block.offsets[documents + 1].tolist(), strict=True,
    )  # fmt: skip
    for (document, question, why), (at, word), last, figures, text_begin, text_end in rows:
        shared, run, count = figures
        own, behind = ranges[behind : behind + count], behind + count
        begin, end = own[0][:2]
        run_features = max(0, run - min(FEATURE_WORDS, last[1] - word) + 1)
        yield Finding(
            first + document, question, why, shared / max(1, last[0] - at), run,
            tuple((each[2], each[3]) for each in own),
            data[begin:end].tobytes().decode(),
            marks.shared[at : at + shared], marks.run_features[word : word + run_features],
            marks.covered[word : last[1]] if marks_words else None,
            data[max(text_begin, begin - _CONTEXT) : begin].tobytes().decode(errors="ignore"),
            data[end : min(text_end, end + _CONTEXT)].tobytes().decode(errors="ignore"),
        )  # fmt: skip


def shared_parts(text: str, finding: Finding, questions: Questions) -> list[tuple[bool, str]]:
    """The parts of a text, each with whether its words lie in features of a finding."""
    from neardup.kernels.contamination_passages import covered_words
    from neardup.kernels.features.places import placed_words

    data = np.frombuffer(text.encode(), np.uint8)
    width = min(FEATURE_WORDS, questions.words_of(finding.question).size)
    begins, ends, _, hashes = placed_words(data, words_cut(questions.rule), width)
    covered, _ = covered_words(hashes, finding.shared, width)
    edges = np.flatnonzero(np.diff(covered, prepend=False, append=False))
    parts, at = [], 0
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        begin, end = int(begins[first]), int(ends[last - 1])
        parts += [(False, data[at:begin]), (True, data[begin:end])]
        at = end
    parts.append((False, data[at:]))
    return [(is_shared, part.tobytes().decode()) for is_shared, part in parts if part.size]
