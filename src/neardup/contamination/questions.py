"""The questions of benchmarks, laid out so that one search of a document covers all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.features.text import text_array
from neardup.features.tokens import cutting, script_cutting
from neardup.fingerprinting.recipe import Recipe
from neardup.runtime.arrays import frozen

if TYPE_CHECKING:
    from neardup.contamination.rules import LeakRule
    from neardup.kernels.contamination import Lookup, Phrases, Shares
    from neardup.kernels.contamination_passages import QuestionArrays
    from neardup.kernels.features.token_arguments import Cutting
    from neardup.runtime.types import Hashes, Offsets, Rows

__all__ = ["FEATURE_WORDS", "Questions", "lay_out", "words_cut"]

_RECIPE: Final = Recipe()
FEATURE_WORDS: Final = _RECIPE.ngram
"""The number of words in a feature, whatever the run's default question."""
_PAIR: Final = 2


def words_cut(rule: LeakRule | None = None) -> Cutting:
    """The tokenisation of `nd.Recipe()`, or of a published rule."""
    if rule is not None and rule.published is not None and rule.published.script_words:
        return script_cutting(FEATURE_WORDS)
    return cutting(_RECIPE, chars=False, ngram=FEATURE_WORDS)


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions laid out for a search.

    Attributes:
        rule: When one counts as found.
        words: uint64: the hashes of the words of question 0, then of question 1, and so on.
        starts: int64 (n + 1,): where the words of each begin.
        features: uint64: its distinct features, ascending.
        feature_starts: int64 (n + 1,): where the features of each begin.
        counted_features: uint64, ascending: those that the search numbers 0, 1, ...
        shares: As the search takes those of three words or more.
        phrases: As the search takes what is found whole: anchors of 2, of 3 and of `run` words.
    """

    rule: LeakRule
    words: Hashes
    starts: Offsets
    features: Hashes
    feature_starts: Offsets
    counted_features: Hashes
    shares: Shares
    phrases: tuple[Phrases, Phrases, Phrases]

    def __len__(self) -> int:
        """The number of questions."""
        return self.starts.size - 1

    @property
    def sizes(self) -> Rows:
        """The number of words in each question; int64 (n,)."""
        return np.diff(self.starts)

    @property
    def feature_counts(self) -> Rows:
        """The number of distinct features of each question; int64 (n,)."""
        return np.diff(self.feature_starts)

    @property
    def arrays(self) -> QuestionArrays:
        """The arrays that the kernel for marking passages takes."""
        from neardup.kernels.contamination_passages import QuestionArrays

        return QuestionArrays(
            self.words, self.starts, self.features, self.feature_starts, self.shares.least,
            self.rule.share is not None, self.rule.run or 0, FEATURE_WORDS,
        )  # fmt: skip

    def words_of(self, question: int) -> Hashes:
        """The word hashes of a question."""
        return self.words[self.starts[question] : self.starts[question + 1]]

    def features_of(self, question: int) -> Hashes:
        """The distinct features of a question, ascending; two words make one feature."""
        return self.features[self.feature_starts[question] : self.feature_starts[question + 1]]

    def is_short(self, question: int) -> bool:
        """Whether a question has fewer words than every rule requires."""
        widths = [FEATURE_WORDS] if self.rule.share is not None else []
        widths += [self.rule.run] if self.rule.run is not None else []
        return bool(self.starts[question + 1] - self.starts[question] < min(widths))


def lay_out(texts: Any, rule: LeakRule) -> Questions:
    """The layout of questions for a search.

    Args:
        texts: As for `neardup.fingerprints`.
        rule: When one counts as found.

    Raises:
        UsageError: If something in it is not a text.
    """
    block = text_array(texts).combine_chunks()
    from neardup.kernels.features.places import run_hashes

    data, offsets = _buffers(block)
    runs = {
        width: run_hashes(data, offsets, words_cut(rule), width)
        for width in {1, _PAIR, FEATURE_WORDS, rule.run or 1}
    }
    words, starts = runs[1]
    sizes = np.diff(starts)
    distinct, numbers, feature_starts = _distinct_runs(runs, sizes)
    return Questions(
        rule, words, starts, distinct[numbers], feature_starts, distinct,
        _shares(distinct, numbers, feature_starts, sizes, rule),
        _phrases(runs, data, offsets, sizes, rule),
    )  # fmt: skip


def _buffers(texts: Any) -> tuple[Any, Any]:
    from neardup.features.text import text_blocks

    blocks = list(text_blocks(texts, 1 << 62))
    if not blocks:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    return blocks[0].data, blocks[0].offsets


def _distinct_runs(
    runs: dict[int, tuple[Hashes, Offsets]], sizes: Rows
) -> tuple[Hashes, Rows, Offsets]:
    """All features ascending, the features of each question by number, and where they begin.

    A question of two words has these as its feature.
    """
    owners, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    for width, own in ((FEATURE_WORDS, sizes > _PAIR), (_PAIR, sizes == _PAIR)):
        run_hashes, starts = runs[width]
        owner = np.repeat(np.arange(sizes.size), np.diff(starts))
        owners.append(owner[own[owner]])
        hashes.append(run_hashes[own[owner]])
    values, numbers = np.unique(np.concatenate(hashes), return_inverse=True)
    keys = np.unique(np.concatenate(owners) * values.size + numbers)  # a sort of single numbers
    owner, numbers = np.divmod(keys, max(1, values.size))
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=sizes.size), out=offsets[1:])
    return values, numbers, offsets


def _lookup(hashes: Hashes) -> Lookup:
    from neardup.kernels.contamination import Lookup, sieve_of
    from neardup.kernels.features.lookup import hash_table

    numbers = np.arange(1, hashes.size + 1, dtype=np.int64)
    return Lookup(frozen(hash_table(hashes, numbers)), frozen(sieve_of(hashes)))


def _shares(values: Hashes, numbers: Rows, starts: Offsets, sizes: Rows, rule: LeakRule) -> Shares:
    """The layout by share: questions under their prefix, the features fewest questions have."""
    from neardup.kernels.contamination import Shares

    counts = np.diff(starts)
    owners = np.repeat(np.arange(sizes.size), counts)
    popularity = np.bincount(numbers, minlength=values.size)[numbers]
    least = np.array([rule.least_shared(count) for count in counts.tolist()], np.int64)
    has_prefix = (sizes >= FEATURE_WORDS) & (rule.share is not None)
    prefix = np.where(has_prefix, counts - least + 1, 0)
    order = np.argsort(owners * (sizes.size + 1) + popularity, kind="stable")
    rank = np.arange(order.size) - starts[owners]  # the owners of `order` are ascending too
    keyed = order[rank < prefix[owners]]
    keyed = keyed[np.argsort(numbers[keyed], kind="stable")]
    key_counts = np.bincount(numbers[keyed], minlength=values.size)
    key_starts = np.concatenate([[0], np.cumsum(key_counts)]).astype(np.int64)
    return Shares(
        _lookup(values), FEATURE_WORDS, frozen(key_starts), frozen(owners[keyed]),
        frozen(starts), frozen(numbers), frozen(least),
    )  # fmt: skip


def _phrases(
    runs: dict[int, tuple[Hashes, Offsets]],
    data: Any,
    offsets: Offsets,
    sizes: Rows,
    rule: LeakRule,
) -> tuple[Phrases, Phrases, Phrases]:
    """The layout of phrases found whole: runs of `run` words, and questions too short for rules."""
    least = [FEATURE_WORDS] if rule.share is not None else []
    least += [rule.run] if rule.run is not None else []
    pairs = np.flatnonzero((sizes == _PAIR) & rule.finds_short)
    is_longer = (sizes > _PAIR) & (sizes < max(least)) & (rule.run is not None)
    longer = np.flatnonzero(is_longer & rule.finds_short)
    whole_runs = (
        (np.zeros(0, np.int64), np.zeros(0, np.uint64))
        if rule.run is None
        else _all_runs(runs[rule.run], sizes)
    )
    return (
        _anchored(_PAIR, pairs, sizes, runs[_PAIR], data, offsets, rule),
        _anchored(FEATURE_WORDS, longer, sizes, runs[FEATURE_WORDS], data, offsets, rule),
        _table(rule.run or 1, whole_runs[1], whole_runs[1], whole_runs[0], None),
    )


def _all_runs(runs: tuple[Hashes, Offsets], sizes: Rows) -> tuple[Rows, Hashes]:
    """The distinct runs in all questions, with their questions."""
    hashes, starts = runs
    owners = np.repeat(np.arange(sizes.size), np.diff(starts))
    values, numbers = np.unique(hashes, return_inverse=True)
    numbers, owners = np.divmod(np.unique(numbers * sizes.size + owners), max(1, sizes.size))
    return owners, values[numbers]


def _anchored(
    width: int, questions: Rows, sizes: Rows, anchors: tuple[Hashes, Offsets], data: Any,
    offsets: Offsets, rule: LeakRule,
) -> Phrases:  # fmt: skip
    """Whole questions under their first `width` words."""
    from neardup.kernels.features.places import run_hashes

    first = anchors[0][anchors[1][:-1][questions]] if questions.size else np.zeros(0, np.uint64)
    whole = np.zeros(questions.size, np.uint64)
    for at, question in enumerate(questions.tolist()):
        part = offsets[question : question + 2]
        whole[at] = run_hashes(data, frozen(part), words_cut(rule), int(sizes[question]))[0][0]
    return _table(width, first, whole, questions, sizes[questions])


def _table(
    width: int, anchors: Hashes, hashes: Hashes, questions: Rows, lengths: Rows | None
) -> Phrases:
    from neardup.kernels.contamination import Phrases

    values, numbers = np.unique(anchors, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    starts = np.zeros(values.size + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=values.size), out=starts[1:])
    sizes = np.full(questions.size, width, np.int64) if lengths is None else lengths
    return Phrases(
        _lookup(values), width, frozen(starts), frozen(sizes[order].astype(np.int64)),
        frozen(hashes[order]), frozen(questions[order].astype(np.int64)),
    )  # fmt: skip
