"""Rules that decide whether a document contains a question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from neardup.errors import UsageError

__all__ = ["DEFAULT_SHARE", "PUBLISHED", "ROUNDING", "LeakRule", "Published", "leak_rule"]

DEFAULT_SHARE: Final = 0.5
_LEAST_RUN: Final = 2
_MOST_RUN: Final = (1 << 31) - 1
ROUNDING: Final = 1e-9
"""The share of itself by which a product with a share may be wrong."""


@dataclass(frozen=True, slots=True)
class Published:
    """The settings of a published rule in addition to its run.

    Args:
        name: How it is called.
        run: Words of a run that both must have.
        script_words: Words are cut as its script does: capitals of ASCII made small, punctuation of
            ASCII deleted, split at white space. Else as by `nd.Recipe()`.
        finds_short: A question of fewer words than a run is found where all of it stands.
        coverage: Share of the question's words that lie in such runs; None: one run is enough.
        above: More than that share, not as much.
        anywhere: Runs of all documents count together, not those of one document.
    """

    name: str
    run: int
    script_words: bool = False
    finds_short: bool = False
    coverage: float | None = None
    above: bool = False
    anywhere: bool = False

    def is_covered(self, covered: int, words: int) -> bool:
        """Whether enough words of a question lie in runs."""
        if self.coverage is None:
            return True
        least = self.coverage * words
        return covered > least if self.above else covered >= least * (1 - ROUNDING)


PUBLISHED: Final = {
    rule.name: rule
    for rule in (
        Published("gpt-3", 13, script_words=True, finds_short=True),
        Published("llama", 8, coverage=DEFAULT_SHARE, anywhere=True),
        Published("olmo", 8, coverage=DEFAULT_SHARE, above=True),
        Published("lm-eval", 13, script_words=True),
    )
}
"""By name. Brown et al. 2020, section 4; Dubey et al. 2024 (Llama 3), section 5.1.4; Lambert et al.
2024 (Tulu 3, whose rule OLMo 2 and 3 took over), section 3.2; EleutherAI's janitor.py."""


def leak_rule(
    share: float | None = None, run: int | None = None, name: str | None = None
) -> LeakRule:
    """The rule of a call; by default a share of 0.5.

    Args:
        share: Of LeakRule; of the rule "llama", which leaves its threshold open, the coverage.
        run: Of LeakRule.
        name: One of PUBLISHED.

    Raises:
        UsageError: For a value out of range, an unknown name, or what a published rule fixes.
    """
    if name is None:
        return LeakRule(DEFAULT_SHARE if share is None and run is None else share, run)
    if name not in PUBLISHED:
        raise UsageError(f"rule is {name!r}: use {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    if run is not None or (share is not None and not published.anywhere):
        option = "run" if run is not None else "share"
        raise UsageError(f"the rule {name} decides it: leave out {option}")
    if share is not None:
        published = replace(published, coverage=LeakRule(share).share)
    return LeakRule(run=published.run, published=published)


@dataclass(frozen=True, slots=True)
class LeakRule:
    """The condition for a finding: either of two rules.

    A question of fewer words than a rule compares (three by share, `run` by run) is found where all
    its words stand in a row; one of a single word never.

    Args:
        share: Least share of the question's features (runs of three words) that the document has,
            above 0, up to 1; None asks no share.
        run: Least number of words in a row that both have, 2 or more; None asks no run.
        published: The condition of a published rule in addition to its run.

    Raises:
        UsageError: If one is out of range, or both are None.

    Example:
        >>> LeakRule(0.5).least_shared(7), LeakRule(run=13)
        (4, LeakRule(share=None, run=13))
    """

    share: float | None = None
    run: int | None = None
    published: Published | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        if self.share is None and self.run is None:
            raise UsageError("neither share nor run is given: pass one of them, or both")
        if self.share is not None:
            is_number = isinstance(self.share, (int, float, np.number))
            if isinstance(self.share, bool) or not (is_number and 0 < self.share <= 1):
                raise UsageError(f"share is {self.share!r}: use a number above 0, up to 1")
        if self.run is not None:
            is_whole = isinstance(self.run, (int, np.integer)) and not isinstance(self.run, bool)
            if not is_whole or not _LEAST_RUN <= self.run <= _MOST_RUN:
                raise UsageError(f"run is {self.run!r}: use a whole number from 2 to {_MOST_RUN:,}")

    @property
    def finds_short(self) -> bool:
        """Whether a question shorter than a run is found when a document has all of it."""
        return self.published is None or self.published.finds_short

    def least_shared(self, features: int) -> int:
        """The least number of a question's features that a document must have."""
        share = 1.0 if self.share is None else float(self.share)
        return max(1, int(np.ceil(share * features * (1 - ROUNDING))))
