"""Find the questions that stand in documents, by the features they share and by phrases.

Prefix filter: Chaudhuri, Ganti and Kaushik, A primitive operator for similarity joins in data
cleaning, ICDE 2006.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.lookup import find
from neardup.kernels.features.tokenise import SLACK, made_tokens, tokenise
from neardup.kernels.features.xxh3 import hasher_of, xxh3_64, xxh3_runs
from neardup.kernels.jit import inlined, inner, kernel, move

if TYPE_CHECKING:
    from neardup.kernels.features.token_arguments import Cutting

BY_SHARE: Final = 1
BY_RUN: Final = 2
"""The reasons for which a pair is found, as bits."""
_HITS: Final = 192
_SIEVE_BITS: Final = 16
_ONE: Final = np.uint64(1)
_LOW_6: Final = np.uint64(63)


class Lookup(NamedTuple):
    """A hash table that numbers hashes 0, 1, ..."""

    slots: Any  # uint64, hash_table: the number + 1
    sieve: Any  # uint64, two bits for each hash, of 16: most hashes of documents are not looked up


class Shares(NamedTuple):
    """Questions that match by the features that they share with a document."""

    lookup: Lookup  # of features
    width: int  # words of a feature
    key_starts: Any  # int64 (features + 1,): where the questions of a feature begin in `keyed`
    keyed: Any  # int64: the questions that have the feature in their prefix
    starts: Any  # int64 (questions + 1,): where the features of a question begin in `features`
    features: Any  # int64
    least: Any  # int64 (questions,): how many of them a document must have


class Phrases(NamedTuple):
    """Phrases, one of which makes a match; each begins with its anchor, which is looked up."""

    lookup: Lookup  # of anchors
    width: int  # words of an anchor
    starts: Any  # int64 (anchors + 1,): where the phrases of an anchor begin
    lengths: Any  # int64: words of a phrase, `width` or more
    hashes: Any  # uint64, of its words
    questions: Any  # int64


@kernel
def sieve_of(keys: Any) -> Any:
    """Mark each key twice in a bit map of 16 bits a key or more; uint64, a power of two long."""
    size = 64
    while size < _SIEVE_BITS * keys.size:
        size *= 2
    sieve = np.zeros(size // 64, np.uint64)
    mask = np.uint64(size - 1)
    for i in range(keys.size):
        for bit in ((keys[i] >> np.uint64(32)) & mask, keys[i] & mask):
            sieve[bit >> np.uint64(6)] |= _ONE << (bit & _LOW_6)
    return sieve


@inlined
def passes(sieve: Any, bits: Any) -> Any:
    """The bit of a sieve that some bits of a hash name: uint64, 0 or 1."""
    bit = bits & np.uint64(64 * sieve.size - 1)
    return (sieve[bit >> np.uint64(6)] >> (bit & _LOW_6)) & _ONE


@inlined
def _number_of(lookup: Lookup, key: Any) -> int:
    """The number of a hash; -1 where it has none."""
    sieve, slots = lookup.sieve, lookup.slots
    if not (passes(sieve, key >> np.uint64(32)) and passes(sieve, key)):
        return np.int64(-1)
    return find(slots, np.uint64(slots.size // 2 - 1), key, np.int64(0)) - 1


@inner
def _mark_shared(
    hashes: Any, count: int, lookup: Lookup, round_: int, seen: Any, passing: Any, shared: Any,
    documents: Any,
) -> int:  # fmt: skip
    """List the distinct features of a document that questions have; returns how many there are.

    seen[feature] is the round in which it was seen last, so that nothing is cleared in between.
    """
    marks, left, sieve = np.int64(0), np.uint64(0), lookup.sieve
    for i in range(count):  # without a branch: which hashes pass cannot be foreseen
        passing[left] = i
        left += passes(sieve, hashes[i] >> np.uint64(32))
    for at in range(left):
        feature = _number_of(lookup, hashes[passing[at]])
        if feature >= 0 and seen[feature] != round_:
            seen[feature] = round_
            shared[marks] = feature
            marks += 1
            if documents.size:
                documents[feature] += 1
    return marks


@inner
def _shared_with(question: int, shares: Shares, round_: int, seen: Any) -> int:
    """Count the features of a question that the document of this round has."""
    features, count = shares.features, np.int64(0)
    for at in range(shares.starts[question], shares.starts[question + 1]):
        count += seen[features[at]] == round_
    return count


@inner
def _note(
    hits: Any, used: int, document: int, question: int, why: int, round_: int, of: Any
) -> int:
    """Append a pair and its reason, or add the reason to a pair of this round.

    of[question] is the place of its last pair in `hits`, of[questions + question] its round.
    """
    questions = of.size // 2
    if of[questions + question] == round_:
        hits[of[question] + 2] |= why
        return used
    hits[used], hits[used + 1], hits[used + 2] = document, question, why
    of[question], of[questions + question] = used, round_
    return used + 3


@inlined
def _hash_of(tokens: Any, at: int, width: int, hasher: Any) -> Any:
    """The hash of a run of words of a text that was cut."""
    starts = tokens.starts
    size = starts[at + width] - 1 - starts[at]
    return xxh3_64(tokens.buffer, starts[at], size, hasher.seed, hasher.secret, hasher.scratch)


@inner
def _run_begins(
    tokens: Any, at: int, count: int, width: int, shares: Shares, hasher: Any
) -> tuple[int, int]:
    """The range in which runs of `width` words that hold the feature `at` may begin.

    A run that questions have consists of features of questions, so the first other feature ends it.
    """
    spare = width - shares.width
    begin = end = at
    while begin > 0 and at - begin < spare:
        if _number_of(shares.lookup, _hash_of(tokens, begin - 1, shares.width, hasher)) < 0:
            break
        begin -= 1
    while end + shares.width < count and end - at < spare:
        if _number_of(shares.lookup, _hash_of(tokens, end + 1, shares.width, hasher)) < 0:
            break
        end += 1
    return begin, end - spare


@inner
def _note_phrases(  # noqa: PLR0913
    table: Phrases, value: Any, at: int, count: int, tokens: Any, hasher: Any, hits: Any,
    used: int, document: int, round_: int, of: Any,
) -> int:  # fmt: skip
    """Note the phrases that begin with the word `at`, whose anchor there has this hash."""
    anchor = _number_of(table.lookup, value)
    if anchor < 0:
        return used
    for place in range(table.starts[anchor], table.starts[anchor + 1]):
        length = table.lengths[place]
        if length > table.width and (
            at + length > count or _hash_of(tokens, at, length, hasher) != table.hashes[place]
        ):
            continue
        used = _note(hits, used, document, table.questions[place], BY_RUN, round_, of)
    return used


@kernel
def search_block(
    data: Any, offsets: Any, cutting: Cutting, shares: Shares, phrases: Any, scratch: Any,
    documents: Any, round_: int,
) -> Any:  # fmt: skip
    """Find every question in the documents data[offsets[i]:offsets[i + 1]].

    A document and a question that share `least` features or more share one of the question's
    prefix, which is all of its features but `least` - 1: so the keys of prefixes are enough.
    A run of w words that both have holds w - 2 features in a row, of which one is at a multiple of
    w - 2: so only these are looked up to find it.

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,), may be read-only.
        cutting: Cutting, in words.
        shares: Shares.
        phrases: A tuple of three Phrases.
        scratch: int64 (features + 3 * questions,), of this thread; 0 before the first call.
        documents: int64 (features,), increased by the documents that have each; or empty.
        round_: Above the round of each document that was searched with this scratch before.

    Returns:
        int64 (3 * pairs,): document, question, and BY_SHARE, BY_RUN or both, of each.
    """
    questions = shares.least.size
    seen = scratch[: shares.key_starts.size - 1]
    of = scratch[seen.size : seen.size + 2 * questions]
    lookups = scratch[seen.size + 2 * questions :]
    capacity = capacity_for(data, offsets, cutting)
    tokens, hasher = made_tokens(capacity), hasher_of(np.uint64(0))
    hashes = np.empty(capacity.tokens + SLACK, np.uint64)
    passing = np.empty(capacity.tokens + SLACK, np.int64)
    shared = np.empty(min(seen.size, capacity.tokens + SLACK), np.int64)
    has_shares = seen.size > 0 and (shares.keyed.size > 0 or documents.size > 0)
    step = phrases[2].width - shares.width + 1
    hits, used = np.empty(_HITS, np.int64), np.int64(0)
    for i in range(offsets.size - 1):
        round_ += 1
        count = tokenise(data, offsets[i], offsets[i + 1], cutting, tokens)
        buffer, starts = tokens.buffer, tokens.starts
        if used + 3 * questions > hits.size:  # room for every question
            larger = np.empty(2 * used + 3 * questions, np.int64)
            move(hits, used, larger)
            hits = larger
        runs = max(count - shares.width + 1, 0)
        if runs and (has_shares or phrases[1].questions.size):
            xxh3_runs(buffer, starts, 0, runs, shares.width, 1, hasher, hashes)
        if runs and has_shares:
            shared_count = _mark_shared(
                hashes, runs, shares.lookup, round_, seen, passing, shared, documents
            )
            for at in range(shared_count):
                for key in range(shares.key_starts[shared[at]], shares.key_starts[shared[at] + 1]):
                    question = shares.keyed[key]
                    if lookups[question] == round_:
                        continue
                    lookups[question] = round_
                    if _shared_with(question, shares, round_, seen) >= shares.least[question]:
                        used = _note(hits, used, i, question, BY_SHARE, round_, of)
        if phrases[1].questions.size:  # before `hashes` is written again
            for at in range(runs):
                used = _note_phrases(
                    phrases[1], hashes[at], at, count, tokens, hasher, hits, used, i, round_, of
                )
        for which in range(0, 3, 2):
            table = phrases[which]
            runs = max(count - table.width + 1, 0)
            if table.questions.size == 0 or runs == 0:
                continue
            if which == 2 and step > 1:
                for place in range(0, count - shares.width + 1, step):
                    feature = _hash_of(tokens, place, shares.width, hasher)
                    if _number_of(shares.lookup, feature) < 0:
                        continue
                    begin, last = _run_begins(tokens, place, count, table.width, shares, hasher)
                    for at in range(begin, last + 1):
                        value = _hash_of(tokens, at, table.width, hasher)
                        used = _note_phrases(
                            table, value, at, count, tokens, hasher, hits, used, i, round_, of
                        )
                continue
            xxh3_runs(buffer, starts, 0, runs, table.width, 1, hasher, hashes)
            for at in range(runs):
                used = _note_phrases(
                    table, hashes[at], at, count, tokens, hasher, hits, used, i, round_, of
                )
    return hits[:used]
