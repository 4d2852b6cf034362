"""Where in a document a question stands, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.contamination.questions import FEATURE_WORDS, words_cut
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.contamination.questions import Questions
    from neardup.runtime.types import Flags, Hashes

__all__ = ["Finding", "Passages", "shared_parts"]

_CONTINUES, _CONTINUATION = 0xC0, 0x80
_NO_FLAGS: Final = np.zeros(0, np.bool_)
_CONTEXT: Final = 240
"""Bytes that are kept of what stands around a passage."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A question in a document.

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


class Passages:
    """One document, and the questions that were found in it.

    Args:
        row: Of the document.
        text: uint8, its UTF-8.
        questions: All questions.
    """

    def __init__(self, row: int, text: Any, questions: Questions) -> None:
        """Cut it in words."""
        from neardup.kernels.features.places import placed_words

        self._row, self._text, self._questions = row, text, questions
        self._begins, self._ends, self._words, features = placed_words(
            text, words_cut(questions.rule), FEATURE_WORDS
        )
        self._hashes: dict[int, Hashes] = {1: self._words, FEATURE_WORDS: features}
        self._runs: Hashes | None = None
        published = questions.rule.published
        if published is not None and published.coverage is not None:
            self._runs = frozen(np.unique(self._hashes_of(published.run)))

    def _hashes_of(self, width: int) -> Hashes:
        """Of every run of so many words."""
        from neardup.kernels.features.places import run_hashes

        if width not in self._hashes:
            whole = frozen(np.array([0, self._text.size], np.int64))
            cut = words_cut(self._questions.rule)
            self._hashes[width] = run_hashes(self._text, whole, cut, width)[0]
        return self._hashes[width]

    def finding(self, question: int, why: int) -> Finding:
        """What is said of one question."""
        from neardup.kernels.contamination import (
            covered_words,
            longest_common_run,
            maximal_segments,
        )

        features = self._questions.features_of(question)
        words = self._questions.words_of(question)
        width = min(FEATURE_WORDS, words.size)
        hashes = self._hashes_of(width)
        in_passage, is_shared = covered_words(hashes, features, width)
        shared = features[is_shared]
        covered = None if self._runs is None else self._questions.covered(question, self._runs)
        run, at = longest_common_run(words, self._words, in_passage if shared.size else _NO_FLAGS)
        # Densest first; each from its first word to the one behind its last.
        begins, ends, scores = maximal_segments(in_passage)
        order = np.argsort(-scores, kind="stable")
        segments = list(zip(begins[order].tolist(), ends[order].tolist(), strict=True))
        best = self._best(segments, why, at, at + run)
        others = [each for each in segments if each != best and self._meets(question, *each)]
        begin, end = self._begins[best[0]], self._ends[best[1] - 1]
        return Finding(
            self._row, question, why, shared.size / max(1, features.size), run,
            tuple(map(self._points, [best, *others])),
            self._text[begin:end].tobytes().decode(),
            shared, hashes[at : max(at, at + run - width + 1)].copy(), covered,
            self._text[max(0, begin - _CONTEXT) : begin].tobytes().decode(errors="ignore"),
            self._text[end : end + _CONTEXT].tobytes().decode(errors="ignore"),
        )  # fmt: skip

    def _best(
        self, segments: list[tuple[int, int]], why: int, begin: int, end: int
    ) -> tuple[int, int]:
        """The densest passage; of what only the run rule finds the one around its longest run."""
        from neardup.kernels.contamination import BY_SHARE

        if why & BY_SHARE:
            return segments[0]
        around = (each for each in segments if each[0] <= begin and end <= each[1])
        return next(around, (begin, end))

    def _meets(self, question: int, begin: int, end: int) -> bool:
        """Whether a passage alone would be found."""
        from neardup.kernels.contamination import longest_common_run

        rule, words = self._questions.rule, self._questions.words_of(question)
        features = self._questions.features_of(question)
        width = min(FEATURE_WORDS, words.size)
        if rule.share is not None and width == FEATURE_WORDS:
            inside = np.intersect1d(features, self._hashes_of(width)[begin : end - width + 1])
            if inside.size >= rule.least_shared(features.size):
                return True
        least = words.size if rule.run is None else min(rule.run, words.size)
        run, _ = longest_common_run(words, frozen(self._words[begin:end]), _NO_FLAGS)
        return bool(run >= least)

    def _points(self, passage: tuple[int, int]) -> tuple[int, int]:
        """First and last word as code points of the text."""
        begin, end = self._begins[passage[0]], self._ends[passage[1] - 1]
        before = _count_points(self._text[:begin])
        return before, before + _count_points(self._text[begin:end])


def shared_parts(text: str, finding: Finding, questions: Questions) -> list[tuple[bool, str]]:
    """A text in parts: whether the words of each lie in features of a finding, and the part."""
    from neardup.kernels.contamination import covered_words
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


def _count_points(text: Any) -> int:
    """Code points of UTF-8: the bytes that continue none."""
    return int(np.count_nonzero((text & _CONTINUES) != _CONTINUATION))
