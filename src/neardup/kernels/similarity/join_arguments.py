"""Groups of arguments of the kernels of the similarity join."""

from __future__ import annotations

from typing import Any, NamedTuple


class Sets(NamedTuple):
    """The feature sets of n documents, one after the other."""

    features: Any  # uint64 (f,), read-only; each at most once a document
    offsets: Any  # int64 (n + 1,), read-only: document i has features[offsets[i]:offsets[i + 1]]
    groups: Any  # int32 (n,), read-only: only documents with the same number match; empty: all do
    codes: Any  # uint64 (n, w), read-only: their fingerprints


class Condition(NamedTuple):
    """When two documents match."""

    measure: int  # JACCARD (shared / distinct of both), COSINE (shared / root of the product of
    # sizes) or CONTAINMENT (shared / smaller size)
    similarity: float  # the threshold, above 0, up to 1
    distance: int  # most bits in which the fingerprints may differ as well


class Rarity(NamedTuple):
    """The number of documents that have each feature, or a larger number."""

    cells: Any  # uint8, ranks: any order in which 1 stands for one document, from `rank_cells`
    shift: Any  # uint64: the cell of feature h is h >> shift
    common: int  # features of a higher rank than this are common; MOST: none is


class Keys(NamedTuple):
    """The rare features by which m documents find each other."""

    keys: Any  # uint64 (k,)
    before: Any  # int32 (k,): features of the document that are rarer than the key
    offsets: Any  # int64 (m + 1,): the j-th document has keys[offsets[j]:offsets[j + 1]]


class Postings(NamedTuple):
    """The index of the documents so far; the module `postings` draws its rows."""

    table: Any  # uint64 (slots, 2): key and first class, 0 in free slots. A power of two, at least
    # twice as many slots as keys it will hold, and of each range more slots than keys
    rows: Any  # uint32 (capacity, COLUMNS), with room for ROWS_A_KEY of each key, and one
    folds: Any  # uint64 (capacity + PADDING, 1 or WIDE_WORDS)
    used: Any  # int64 (USED,): how many ROWS, KEYS, SLOTS of each range; VERIFIED


class Walk(NamedTuple):
    """State and result of one walk over n documents."""

    rank: Any  # int64 (n,): priority of each document, 0 first
    first_new: int  # greedy: documents of lower ranks are kept whatever they are similar to
    seen: Any  # uint32 (n,), scratch, initially 0: the last document each was compared with, plus 1
    found: Any  # int64 (n,), scratch
    queue: Any  # int64 (QUEUE, QUEUE_COLUMNS), scratch
    sketches: Any  # uint64 (n, words), scratch: of the documents that the walk has reached
    members: Any  # uint64, scratch, `members_room` of the longest document
    place: int  # scratch: the entry of the index, 0 or behind all others, for the document in hand
    keeps: bool  # greedy: documents that match nothing are indexed
    match: Any  # int64 (n,), initially 0 to n - 1
    score: Any  # float64 (n,), initially 1


class Probe(NamedTuple):
    """The current document, which is compared with those of the index."""

    x: int
    size: int  # its features
    smallest: int  # no document of fewer features is similar to it
    largest: int  # nor one of more
    most_apart: int  # nor one that differs in more features
    octave: int  # of its size
    most_before: int  # its keys with so many features before them, or fewer, are early
    is_late_apart: bool  # the others have classes of their own, however short
    first: int  # its keys are those from `first` on
    last: int  # to last - 1
    place: int  # the entry that has its folded sketch
