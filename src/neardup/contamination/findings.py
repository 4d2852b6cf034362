"""Findings as a table, and the decision which of them are common text instead of leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.contamination.questions import FEATURE_WORDS
from neardup.contamination.rules import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from neardup.contamination.passages import Finding
    from neardup.contamination.questions import Questions
    from neardup.runtime.types import Flags, Rows

__all__ = ["FINDINGS", "Coverage", "covered_enough", "findings_table", "leaks", "uncommon_shares"]

FINDINGS: Final = pa.schema(
    [
        ("document", pa.int64()),
        ("question", pa.int64()),
        ("share", pa.float64()),
        ("run", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("rule", pa.string()),
        ("text", pa.large_string()),
        ("passages", pa.list_(pa.list_(pa.int64(), 2))),
    ]
)
"""`document` and `question` by number; `start` and `end` of the best passage in code points, its
`text`, and the other `passages`."""


class Coverage:
    """The check of published rules that enough of a question lies in common runs.

    Args:
        questions: What was looked for.
    """

    def __init__(self, questions: Questions) -> None:
        """Start without findings."""
        self._rule = questions.rule.published
        self._words: dict[int, Any] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings of any documents, for rules that count all documents' runs together."""
        if self._rule is None or self._rule.coverage is None or not self._rule.anywhere:
            return
        for each in findings:
            self._words[each.question] = self._words.get(each.question, False) | each.covered

    def enough(self, findings: Sequence[Finding]) -> list[bool]:
        """Whether the question of each finding is covered enough, after all were added."""
        rule = self._rule
        if rule is None or rule.coverage is None:
            return [True] * len(findings)
        words: list[Any] = [self._words.get(x.question, x.covered) for x in findings]
        return [rule.is_covered(int(np.count_nonzero(own)), own.size) for own in words]


def covered_enough(findings: Sequence[Finding], questions: Questions) -> list[Finding]:
    """The findings of all documents that pass `Coverage`."""
    coverage = Coverage(questions)
    coverage.add(findings)
    return [
        each for each, enough in zip(findings, coverage.enough(findings), strict=True) if enough
    ]


def findings_table(findings: Sequence[Finding], questions: Questions) -> pa.Table:
    """The table of findings, one row each; see FINDINGS."""
    columns: dict[str, list[Any]] = {
        "document": [each.document for each in findings],
        "question": [each.question for each in findings],
        "share": [each.share for each in findings],
        "run": [each.run for each in findings],
        "start": [each.passages[0][0] for each in findings],
        "end": [each.passages[0][1] for each in findings],
        "rule": [_rule(each, questions) for each in findings],
        "text": [each.text for each in findings],
        "passages": [each.passages[1:] for each in findings],
    }
    return pa.table(columns, FINDINGS)


def _rule(finding: Finding, questions: Questions) -> str:
    from neardup.kernels.contamination import BY_RUN, BY_SHARE

    if questions.rule.published is not None:
        return questions.rule.published.name
    if questions.rule.run is None:
        return "share"
    has_both = questions.rule.share is not None
    if has_both and questions.words_of(finding.question).size < FEATURE_WORDS:
        return "both"  # by either rule, such a question is found where its words stand in a row
    return {BY_SHARE: "share", BY_RUN: "run"}.get(finding.why, "both")


def uncommon_shares(
    findings: Sequence[Finding], questions: Questions, having: Rows, most: float
) -> list[float | None]:
    """The share of each question's uncommon features that a finding has; None without any.

    Args:
        findings: The findings.
        questions: What was looked for.
        having: int64: how many of the documents have each feature of the search.
        most: A feature is common if more documents than this have it.
    """
    common = _common_features(questions, having, most)
    shares: list[float | None] = []
    for each in findings:
        own = _without(questions.features_of(each.question), common)
        shares.append(_without(each.shared, common).size / own.size if own.size else None)
    return shares


def leaks(findings: Sequence[Finding], questions: Questions, having: Rows, most: float) -> Flags:
    """Flags of the findings that still count without common features.

    By share: enough of the question's other features are there. By a run: not all of it is common.
    A question or a run of two words has no feature that was counted, and stands.
    """
    from neardup.kernels.contamination import BY_RUN, BY_SHARE

    common = _common_features(questions, having, most)
    stand = np.zeros(len(findings), np.bool_)
    for row, each in enumerate(findings):
        own = _without(questions.features_of(each.question), common)
        if each.why & BY_SHARE and own.size:
            shared = _without(each.shared, common).size
            stand[row] = shared >= questions.rule.least_shared(own.size)
        if each.why & BY_RUN:
            runs = each.run_features
            stand[row] |= not runs.size or _without(runs, common).size > 0
    return stand


def _common_features(questions: Questions, having: Rows, most: float) -> Any:
    return questions.counted_features[having > most * (1 + ROUNDING)]


def _without(features: Any, common: Any) -> Any:
    """Features that are not in an ascending array, which np.isin would sort each time."""
    if not common.size:
        return features
    places = np.minimum(np.searchsorted(common, features), common.size - 1)
    return features[common[places] != features]
