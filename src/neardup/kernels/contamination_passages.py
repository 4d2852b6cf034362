"""Mark the passages of documents in which matching questions stand, and how much of them.

Maximal scoring segments: Ruzzo and Tompa, A linear time algorithm for finding all maximal scoring
subsequences, ISMB 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.contamination import BY_SHARE, passes, sieve_of
from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.places import find_places
from neardup.kernels.features.tokenise import made_tokens, tokenise
from neardup.kernels.features.xxh3 import hasher_of, xxh3_runs
from neardup.kernels.jit import inner, kernel, making, move
from neardup.kernels.sorting import first_from

if TYPE_CHECKING:
    from neardup.kernels.features.token_arguments import Cutting

_PAIR: Final = 2
_PASSAGES: Final = 64


class QuestionArrays(NamedTuple):
    """Questions, and when one counts as found."""

    words: Any  # uint64: hashes of the words of question 0, then of question 1, and so on
    starts: Any  # int64 (questions + 1,): where those of each begin
    features: Any  # uint64: its distinct features, ascending
    feature_starts: Any  # int64 (questions + 1,)
    least: Any  # int64 (questions,): how many features a passage must have
    by_share: bool  # whether that many are enough
    run: int  # words of a run that is enough; 0: only the whole question is
    width: int  # words of a feature; of a question of two words these are its feature


class Marks(NamedTuple):
    """The figures and marks of pairs; values of a pair lie where its row of `places` says."""

    figures: Any  # int64 (pairs, 3): features that both have, longest run, passages
    shared: Any  # uint64, by places[:, 0]: the features that both have
    run_features: Any  # uint64, by places[:, 1]: the features of the longest run
    covered: Any  # bool, by places[:, 1]: of each word, whether it lies in a run that both have


@kernel
def longest_common_run(one: Any, other: Any, covered: Any, least: int, marked: Any) -> Any:
    """The longest run of equal hashes; O(one * covered words) steps, O(one) memory.

    Args:
        one: uint64, of the words of one text.
        other: uint64, of those of another.
        covered: bool, one a word of `other`: it lies in a run of some length that both have; or
            empty. A longer run holds no word that lies in none.
        least: The words of the shortest run that marks them.
        marked: bool, one a word of `one`, set where it lies in such a run; or empty.

    Returns:
        Its length, and where it begins in `other`, first of all longest; 0 and 0 without one.
    """
    lengths = np.zeros(one.size + 1, np.int64)  # of the run that ends with each word of `one`
    best, begin = np.int64(0), np.int64(0)
    is_clear = True
    for j in range(other.size):
        if covered.size and not covered[j]:
            if not is_clear:
                lengths[:] = 0
                is_clear = True
            continue
        is_clear = False
        for i in range(one.size, 0, -1):  # downwards: lengths[i - 1] is still that of other[j - 1]
            if one[i - 1] != other[j]:
                lengths[i] = 0
                continue
            lengths[i] = lengths[i - 1] + 1
            if lengths[i] > best:
                best, begin = lengths[i], j + 1 - lengths[i]
            if marked.size and lengths[i] >= least:
                for word in range(i - least, i):
                    marked[word] = True
    return best, begin


@kernel
def covered_words(hashes: Any, features: Any, width: int) -> Any:
    """Mark the words of a document that lie in a run that is a feature of a question.

    Args:
        hashes: uint64, of every run of `width` words of the document.
        features: uint64, ascending.
        width: Words of a run.

    Returns:
        bool, one a word; and bool, one a feature: the document has it.
    """
    covered = np.zeros(hashes.size + width - 1 if hashes.size else 0, np.bool_)
    shared = np.zeros(features.size, np.bool_)
    sieve = sieve_of(features)
    for at in range(hashes.size):
        if not passes(sieve, hashes[at]):  # most do not: no search for these
            continue
        place = first_from(features, 0, features.size, hashes[at])
        if place < features.size and features[place] == hashes[at]:
            shared[place] = True
            for word in range(at, at + width):
                covered[word] = True
    return covered, shared


@making
def _covered_pairs(words: Any, pair: Any) -> Any:
    """As `covered_words`, for a question of two words."""
    covered, shared = np.zeros(words.size, np.bool_), np.zeros(1, np.bool_)
    for at in range(words.size - 1):
        if words[at] == pair[0] and words[at + 1] == pair[1]:
            covered[at] = covered[at + 1] = shared[0] = True
    return covered, shared


@kernel
def maximal_segments(covered: Any) -> Any:
    """All maximal scoring segments, where a covered word scores 1 and another one -1; O(words).

    Every proper part of a segment scores less, and no larger segment has this property; no two
    meet.

    Args:
        covered: bool, one a word.

    Returns:
        int64, one a segment, in order: its first word, the word behind its last, and its score.
    """
    begins, ends = np.empty(covered.size, np.int64), np.empty(covered.size, np.int64)
    low, high = np.empty(covered.size, np.int64), np.empty(covered.size, np.int64)
    lower = np.empty(covered.size, np.int64)
    count, total = np.int64(0), np.int64(0)
    for word in range(covered.size):
        total += 1 if covered[word] else -1
        if not covered[word]:
            continue
        # low[k] and high[k]: the sums before segment k and at its end. lower[k]: the nearest
        # segment on the left with a lower one before, so that each is passed over once in all.
        begins[count], low[count] = word, total - 1
        ends[count], high[count] = word + 1, total
        left = count - 1
        while left >= 0 and low[left] >= low[count]:
            left = lower[left]
        lower[count] = left
        while left >= 0 and high[left] < high[count]:  # what lies between joins it
            ends[left], high[left] = ends[count], high[count]
            count, left = left, lower[left]
        count += 1
    return begins[:count], ends[:count], high[:count] - low[:count]


@making
def _meets(
    words: Any,
    features: Any,
    covered: Any,
    own: Any,
    own_features: Any,
    least: int,
    questions: QuestionArrays,
) -> bool:
    """Whether a passage of these words and features would match a question by itself."""
    if questions.by_share and own.size >= questions.width and features.size >= least:
        _, shared = covered_words(features, own_features, questions.width)
        if np.sum(shared) >= least:
            return True
    run = min(questions.run, own.size) if questions.run else own.size
    if words.size < run:
        return False
    if run < questions.width:  # may lie in no feature
        covered = covered[:0]
    return longest_common_run(own, words, covered, run, covered[:0])[0] >= run


@making
def _passages_of(
    hit: Any,
    run: Any,
    covered: Any,
    words: Any,
    features: Any,
    own: Any,
    own_features: Any,
    questions: QuestionArrays,
) -> Any:
    """The passages of a question as ranges of words, int64 (passages, 2): the best one first.

    The best one is the densest or, where only the run rule finds the question, the one around the
    longest run. Others follow by their scores, if they would match by themselves.
    """
    begins, ends, scores = maximal_segments(covered)
    best = np.int64(-1)
    for k in range(begins.size):
        if hit[2] & BY_SHARE:
            is_best = best < 0 or scores[k] > scores[best]
        else:
            is_best = begins[k] <= run[0] and run[1] <= ends[k]
        if is_best:
            best = k
    order, count = np.empty(begins.size + 1, np.int64), np.int64(1)
    order[0] = best
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if k == best or not _meets(
            words[begin:end], features[begin : max(begin, end - questions.width + 1)],
            covered[begin:end], own, own_features, questions.least[hit[1]], questions,
        ):  # fmt: skip
            continue
        at = count
        while at > 1 and scores[order[at - 1]] < scores[k]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k
        count += 1
    passages = np.empty((count, 2), np.int64)
    for at in range(count):
        passages[at, 0] = run[0] if order[at] < 0 else begins[order[at]]
        passages[at, 1] = run[1] if order[at] < 0 else ends[order[at]]
    return passages


@inner
def _count_points(data: Any, begin: int, end: int) -> int:
    """Count the code points of UTF-8 text: the bytes that continue no character."""
    count = np.int64(0)
    for at in range(begin, end):
        count += data[at] & 0xC0 != 0x80
    return count


@making
def _mark(
    pair: int,
    hit: Any,
    place: Any,
    words: Any,
    features: Any,
    questions: QuestionArrays,
    marks: Marks,
) -> Any:
    """Mark one question in a document; returns its passages as ranges of words."""
    question = hit[1]
    own = questions.words[questions.starts[question] : questions.starts[question + 1]]
    own_features = questions.features[
        questions.feature_starts[question] : questions.feature_starts[question + 1]
    ]
    if own.size == _PAIR:
        covered, has = _covered_pairs(words, own)
    else:
        covered, has = covered_words(features, own_features, questions.width)
    shared = np.int64(0)
    for number in range(has.size):
        if has[number]:
            marks.shared[place[0] + shared] = own_features[number]
            shared += 1
    marked = marks.covered[place[1] : place[1] + own.size]
    run, begin = longest_common_run(
        own, words, covered if shared else covered[:0], questions.run, marked
    )
    if own.size == _PAIR:
        marks.run_features[place[1]] = own_features[0]
    else:
        move(features[begin:], run - questions.width + 1, marks.run_features[place[1] :])
    marks.figures[pair, 0], marks.figures[pair, 1] = shared, run
    return _passages_of(
        hit, (begin, begin + run), covered, words, features, own, own_features, questions
    )


@kernel
def mark_passages(
    data: Any, offsets: Any, hits: Any, places: Any, cutting: Cutting, questions: QuestionArrays,
    marks_words: bool,
) -> Any:  # fmt: skip
    """Mark the questions that were found in a block of documents; O(words of both) a pair.

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,), may be read-only: document i is data[offsets[i]:offsets[i + 1]].
        hits: int64 (pairs, 3): document, question and why, by document.
        places: int64 (pairs + 1, 2): sums of the features, and of the words, of the questions.
        cutting: Cutting, in words.
        questions: QuestionArrays.
        marks_words: Whether `covered` is asked for; it is empty otherwise.

    Returns:
        Marks; and int64 (passages, 4): begin and end of each passage, in bytes of `data` and in
        code points of the document, the best one of a pair first.
    """
    capacity, pairs = capacity_for(data, offsets, cutting), hits.shape[0]
    tokens, hasher = made_tokens(capacity), hasher_of(np.uint64(0))
    begins, ends = np.empty(tokens.starts.size, np.int64), np.empty(tokens.starts.size, np.int64)
    words, features = np.empty(begins.size, np.uint64), np.empty(begins.size, np.uint64)
    marks = Marks(
        np.empty((pairs, 3), np.int64), np.empty(places[pairs, 0], np.uint64),
        np.empty(places[pairs, 1], np.uint64),
        np.zeros(places[pairs, 1] if marks_words else 0, np.bool_),
    )  # fmt: skip
    passages, used = np.empty(4 * _PASSAGES, np.int64), np.int64(0)
    row, count, runs = np.int64(-1), np.int64(0), np.int64(0)
    for pair in range(pairs):
        begin, end = offsets[hits[pair, 0]], offsets[hits[pair, 0] + 1]
        if hits[pair, 0] != row:
            row = hits[pair, 0]
            find_places(data, begin, end, cutting, tokens, begins, ends)
            count = tokenise(data, begin, end, cutting, tokens)
            runs = max(count - questions.width + 1, 0)
            xxh3_runs(tokens.buffer, tokens.starts, 0, count, 1, 1, hasher, words)
            xxh3_runs(tokens.buffer, tokens.starts, 0, runs, questions.width, 1, hasher, features)
        own = _mark(
            pair, hits[pair], places[pair], words[:count], features[:runs], questions, marks
        )
        marks.figures[pair, 2] = own.shape[0]
        if used + own.size * 2 > passages.size:
            larger = np.empty(2 * (used + 2 * own.size), np.int64)
            move(passages, used, larger)
            passages = larger
        for at in range(own.shape[0]):
            first, behind = begins[own[at, 0]], ends[own[at, 1] - 1]
            before = _count_points(data, begin, first)
            passages[used], passages[used + 1] = first, behind
            passages[used + 2] = before
            passages[used + 3] = before + _count_points(data, first, behind)
            used += 4
    return marks, passages[:used].reshape(-1, 4)
