"""The exact similarity join: prefix filter on rare features, then the overlap itself.

Two sets of Jaccard similarity s or more share a feature among the first |x| - ceil(s |x|) + 1 of
each, whatever order all sets agree on (Chaudhuri, Ganti and Kaushik, A primitive operator for
similarity joins in data cleaning, ICDE 2006; Bayardo, Ma and Srikant, Scaling up all pairs
similarity search, WWW 2007). Here the order is by how many documents have the feature, rare ones
first, counted in hashed cells. A cell counts too much where two features meet in it, never too
little, and the count is the same for every document: so the order is one order, and a feature that
is alone in its cell is in one document only and can be left out of the search.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.jit import fill, inner, kernel, move
from neardup.kernels.postings import (
    AROUND,
    CLASS,
    CONTAINMENT,
    COSINE,
    COUNT,
    DOCUMENT,
    JACCARD,
    LAST,
    NEXT,
    OTHER,
    RINGS,
    SIZE,
    any_near,
    block_after,
    block_end,
    copy_document,
    first_class,
    insert,
    is_near,
    join_rings,
    link,
    most_before,
    needed_overlap,
    put_in_ring,
    room_in,
    sketch_of,
)

GREEDY, COMPONENTS, PAIRS = 0, 1, 2
MOST: Final = 255
"""A cell counts up to this many documents."""

TOP_BITS: Final = 6
LOOKED_UP: Final = 8
_ROUNDING: Final = 1e-9


@kernel
def count_features(features: Any, shift: Any, half: Any, cells: Any) -> None:
    """Count features in cells of their own half of the hash range; O(features).

    Args:
        features: uint64, hashes, each at most once a document.
        shift: uint64; the cell of hash h is h >> shift.
        half: uint64, 0 or 1: only hashes with this top bit are counted, so that two threads
            never write to the same cell.
        cells: uint8, added to, up to MOST.
    """
    for i in range(features.size):
        h = features[i]
        if h >> np.uint64(63) == half:
            cell = np.int64(h >> shift)
            if cells[cell] < MOST:
                cells[cell] += np.uint8(1)


@inner
def _least_overlap(size: int, measure: int, similarity: float) -> int:
    """Features of a set of `size` that any set of at least this similarity shares."""
    if measure == CONTAINMENT:
        return 1
    share = similarity if measure == JACCARD else similarity * similarity
    return max(1, np.int64(math.ceil(share * size - _ROUNDING * size)))


@inner
def _score(shared: int, size: int, other: int, measure: int) -> float:
    if measure == JACCARD:
        return shared / (size + other - shared)
    if measure == COSINE:
        return shared / math.sqrt(size * other)
    return shared / min(size, other)


@inner
def _select_smallest(values: Any, low: int, high: int, wanted: int) -> None:
    """Move the smallest of values[low:high + 1] to the front, up to place wanted - 1 (quickselect).

    `wanted` counts from place 0.
    """
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted - 1 <= j:
            high = j
        elif wanted - 1 >= i:
            low = i
        else:
            return


@inner
def _top(value: Any) -> int:
    return np.int64(value >> np.uint64(64 - TOP_BITS))


@inner
def _bring_forward(values: Any, count: int, top: int) -> int:
    """Move those of values[:count] with top bits up to `top` to the front; where they end.

    Without a branch: which values they are cannot be predicted.
    """
    end = 0
    for i in range(count):
        value, other = values[i], values[end]
        chosen = _top(value) <= top
        values[i] = other if chosen else value
        values[end] = value if chosen else other
        end += np.int64(chosen)
    return end


@inner
def _smallest_first(values: Any, count: int, wanted: int, smaller: Any) -> None:
    """Move the `wanted` smallest of values[:count] to its front.

    Their top bits are counted, so that hashes need next to no comparison; smaller[t] becomes the
    number of values of smaller top bits than t, up to the largest of those wanted.
    """
    tops = 1 << TOP_BITS
    fill(smaller, 0, tops + 1, 0)
    for i in range(count):
        smaller[_top(values[i]) + 1] += 1
    top = 0
    while smaller[top + 1] < wanted:
        top += 1
        smaller[top + 1] += smaller[top]
    end = _bring_forward(values, count, top)
    begin = _bring_forward(values, end, top - 1)
    _select_smallest(values, begin, end - 1, wanted)


@inner
def _select_keys(
    features: Any, begin: int, end: int, cells: Any, shift: Any, measure: int, similarity: float,
    histogram: Any, ranks: Any, ties: Any, keys: Any, before: Any, used: int,
) -> int:  # fmt: skip
    size = end - begin
    prefix = size - _least_overlap(size, measure, similarity) + 1
    alone = 0
    for i in range(begin, end):
        ranks[i - begin] = np.int64(cells[np.int64(features[i] >> shift)])
        if ranks[i - begin] == 1:
            alone += 1
            if alone == prefix:
                return used
    fill(histogram, 0, histogram.size, 0)
    for i in range(size):
        histogram[ranks[i]] += 1
    cut, earlier = 1, alone
    while earlier + histogram[cut + 1] < prefix:
        cut += 1
        earlier += histogram[cut]
    cut += 1
    tied = 0
    for rank in range(2, cut):
        histogram[rank] += histogram[rank - 1]
    for i in range(size):
        rank = ranks[i]
        if 1 < rank < cut:
            keys[used] = features[begin + i]
            before[used] = histogram[rank - 1]
            used += 1
        elif rank == cut:
            ties[tied] = features[begin + i]
            tied += 1
    wanted = prefix - earlier
    _smallest_first(ties, tied, wanted, histogram)
    for i in range(wanted):
        keys[used] = ties[i]
        before[used] = earlier + histogram[_top(ties[i])]
        used += 1
    return used


@kernel
def select_keys(
    features: Any, offsets: Any, documents: Any, cells: Any, shift: Any, measure: int,
    similarity: float, key_offsets: Any,
) -> Any:  # fmt: skip
    """Choose the features by which each document is found: its prefix, less what it has alone.

    O(features).

    Args:
        features: uint64, the feature hashes of all documents, one after the other.
        offsets: int64 (n + 1,): document i has features[offsets[i]:offsets[i + 1]].
        documents: int64 (m,): which documents.
        cells: uint8, from `count_features` of all documents.
        shift: uint64, as there.
        measure: JACCARD, COSINE or CONTAINMENT.
        similarity: The threshold, above 0, up to 1.
        key_offsets: int64 (m + 1,), written: document j has the keys from key_offsets[j] to
            key_offsets[j + 1].

    Returns:
        keys: uint64, and before: int32, how many features of the document have a lower count.
    """
    total, longest = 0, 0
    for document in documents:
        size = offsets[document + 1] - offsets[document]
        if size:
            total += size - _least_overlap(size, measure, similarity) + 1
            longest = max(longest, size)
    keys, before = np.empty(total, np.uint64), np.empty(total, np.int32)
    ties, ranks = np.empty(longest, np.uint64), np.empty(longest, np.int64)
    histogram = np.empty(MOST + 1, np.int64)
    used = np.int64(0)
    key_offsets[0] = 0
    for j in range(documents.size):
        begin, end = offsets[documents[j]], offsets[documents[j] + 1]
        if end > begin:
            used = _select_keys(
                features, begin, end, cells, shift, measure, similarity, histogram, ranks, ties,
                keys, before, used,
            )  # fmt: skip
        key_offsets[j + 1] = used
    kept_keys, kept_before = np.empty(used, np.uint64), np.empty(used, np.int32)
    move(keys, used, kept_keys)
    move(before, used, kept_before)
    return kept_keys, kept_before


@inner
def _fill(features: Any, begin: int, end: int, members: Any) -> None:
    """Make `members` the set of features[begin:end]: slots, whether 0 is in it, an open table.

    A free slot holds 0, therefore that feature has a place of its own.
    """
    size = 2
    while size < 2 * (end - begin):
        size *= 2
    members[0] = np.uint64(size)
    fill(members, 1, size + 2, np.uint64(0))
    mask = np.uint64(size - 1)
    for i in range(begin, end):
        feature = features[i]
        if not feature:
            members[1] = np.uint64(1)
            continue
        slot = np.int64(feature & mask)
        while members[2 + slot]:
            slot = np.int64(np.uint64(slot + 1) & mask)
        members[2 + slot] = feature


@inner
def _overlap(features: Any, begin: int, end: int, members: Any, needed: int) -> int:
    """Count the features that are members; stops, with too few, once `needed` is out of reach."""
    mask = members[0] - np.uint64(1)
    shared, spare = 0, end - begin - needed
    for i in range(begin, end):
        feature = features[i]
        slot = np.int64(feature & mask)
        while members[2 + slot] != feature and members[2 + slot]:
            slot = np.int64(np.uint64(slot + 1) & mask)
        if members[2 + slot] if feature else members[1]:
            shared += 1
        else:
            spare -= 1
            if spare < 0:
                return shared
    return shared


@inner
def _root(parent: Any, row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@inner
def _distance(words: Any, x: int, y: int) -> int:
    count = 0
    for word in range(words.shape[1]):
        count += popcount(words[x, word] ^ words[y, word])
    return count


@kernel
def scores(features: Any, offsets: Any, left: Any, right: Any, measure: int) -> Any:
    """Measure how similar documents left[i] and right[i] are; float64 (m,), 1 if both are empty."""
    longest = 0
    for x in left:
        longest = max(longest, offsets[x + 1] - offsets[x])
    members = np.empty(4 * longest + 4, np.uint64)
    reached = np.ones(left.size, np.float64)
    for i in range(left.size):
        x, y = left[i], right[i]
        size, other = offsets[x + 1] - offsets[x], offsets[y + 1] - offsets[y]
        if size and other:
            _fill(features, offsets[x], offsets[x + 1], members)
            shared = _overlap(features, offsets[y], offsets[y + 1], members, np.int64(0))
            reached[i] = _score(shared, size, other, measure)
        elif size or other:
            reached[i] = 0.0
    return reached


@inner
def _candidates(
    x: int, size: int, sketch: Any, keys: Any, before: Any, first: int, last: int, measure: int,
    similarity: float, groups: Any, table: Any, rows: Any, seen: Any, found: Any,
) -> int:  # fmt: skip
    """List the indexed documents that share a key and may be similar enough, each once."""
    count = 0
    for k in range(first, last):
        head = first_class(table, keys[k])
        while head:
            most = most_before(rows, head, size, before[k], measure, similarity)
            other = link(rows, head, SIZE)
            block = np.int64(head if most >= 0 else 0)
            while block:
                for at in range(block + 1, block_end(rows, head, block)):
                    if is_near(rows, at, sketch, most, size, other):
                        y = link(rows, at, DOCUMENT)
                        if seen[y] != x and (not groups.size or groups[x] == groups[y]):
                            seen[y] = x
                            found[count] = y
                            count += 1
                block = block_after(rows, head, block)
            head = link(rows, head, CLASS)
    return count


@inner
def _is_match(
    x: int, y: int, members: Any, features: Any, offsets: Any, measure: int, similarity: float,
    words: Any, distance: int,
) -> float:  # fmt: skip
    """The similarity of two documents, or -1 if they do not match; `members` holds those of x."""
    size, other = offsets[x + 1] - offsets[x], offsets[y + 1] - offsets[y]
    needed = needed_overlap(size, other, measure, similarity)
    shared = _overlap(features, offsets[y], offsets[y + 1], members, needed)
    score = _score(shared, size, other, measure)
    return score if score >= similarity and _distance(words, x, y) <= distance else -1.0


@inner
def _is_new_match(
    x: int, y: int, members: Any, features: Any, offsets: Any, groups: Any, measure: int,
    similarity: float, used: Any, seen: Any, words: Any, distance: int,
) -> bool:  # fmt: skip
    """Whether two documents that were not compared before match."""
    if seen[y] == x or (groups.size and groups[x] != groups[y]):
        return False
    seen[y] = x
    used[3] += 1
    if not members[0]:
        _fill(features, offsets[x], offsets[x + 1], members)
    return _is_match(x, y, members, features, offsets, measure, similarity, words, distance) >= 0.0


@inner
def _unite_rings(
    x: int, size: int, sketch: Any, head: int, most: int, members: Any, features: Any,
    offsets: Any, groups: Any, measure: int, similarity: float, rows: Any, used: Any, seen: Any,
    words: Any, distance: int, parent: Any,
) -> int:  # fmt: skip
    """Unite a document with the rings of a class that have a match; returns its own ring, or 0.

    Rings that turn out to be of the document's component become one.
    """
    own, other = _root(parent, x), link(rows, head, SIZE)
    ring, previous, main = link(rows, head, RINGS), np.int64(0), np.int64(0)
    while ring:
        after, root = link(rows, ring, OTHER), _root(parent, link(rows, ring, DOCUMENT))
        at = ring
        while root != own:
            y = link(rows, at, DOCUMENT)
            if is_near(rows, at, sketch, most, size, other) and _is_new_match(
                x, y, members, features, offsets, groups, measure, similarity, used, seen, words,
                distance,
            ):  # fmt: skip
                parent[max(own, root)] = min(own, root)
                own = min(own, root)
                root = own
            at = link(rows, at, AROUND)
            if at == ring:
                break
        if root == own and main:
            join_rings(rows, main, ring)
            rows[previous, OTHER] = after
        else:
            main = ring if root == own else main
            previous = ring
        ring = after
    return main


@inner
def _unite_blocks(
    x: int, size: int, sketch: Any, head: int, most: int, ring: int, members: Any, features: Any,
    offsets: Any, groups: Any, measure: int, similarity: float, rows: Any, used: Any, seen: Any,
    words: Any, distance: int, parent: Any,
) -> None:  # fmt: skip
    """Unite a document with those in the blocks of a class that match; they go to its ring.

    So do others found to be of its component. A document that is in no component yet only meets
    sketches; else one in LOOKED_UP distant documents is looked up, so that the blocks of a large
    component empty in time, and a look at random memory for each is avoided.
    """
    own, other = _root(parent, x), link(rows, head, SIZE)
    block, to_block, to = np.int64(head), np.int64(head), np.int64(0)
    while block:
        after = block_after(rows, head, block)
        for at in range(block + 1, block_end(rows, head, block)):
            near = is_near(rows, at, sketch, most, size, other)
            if near or (own != x and (at + x) % LOOKED_UP == 0):
                y = link(rows, at, DOCUMENT)
                root = _root(parent, y)
                if near and root != own and _is_new_match(
                    x, y, members, features, offsets, groups, measure, similarity, used, seen,
                    words, distance,
                ):  # fmt: skip
                    parent[max(own, root)] = min(own, root)
                    own = min(own, root)
                    root = own
                if root == own:
                    ring = put_in_ring(rows, at, head, ring, used)
                    continue
            if to == room_in(rows, head, to_block):
                to_block, to = link(rows, to_block, NEXT), np.int64(0)
            to += 1
            if to_block + to != at:
                copy_document(rows, at, to_block + to)
        block = after
    rows[head, LAST], rows[head, COUNT] = to_block, to


@inner
def _unite(
    x: int, size: int, sketch: Any, keys: Any, before: Any, first: int, last: int, members: Any,
    features: Any, offsets: Any, groups: Any, measure: int, similarity: float, table: Any,
    rows: Any, used: Any, seen: Any, words: Any, distance: int, parent: Any,
) -> None:  # fmt: skip
    """Unite a document with every component that has a match; one match for each is enough."""
    for k in range(first, last):
        head = first_class(table, keys[k])
        while head:
            most = most_before(rows, head, size, before[k], measure, similarity)
            if most >= 0:
                ring = _unite_rings(
                    x, size, sketch, head, most, members, features, offsets, groups, measure,
                    similarity, rows, used, seen, words, distance, parent,
                )  # fmt: skip
                if _root(parent, x) == x and not any_near(rows, head, sketch, most, size):
                    head = link(rows, head, CLASS)
                    continue
                _unite_blocks(
                    x, size, sketch, head, most, ring, members, features, offsets, groups,
                    measure, similarity, rows, used, seen, words, distance, parent,
                )  # fmt: skip
            head = link(rows, head, CLASS)


@kernel
def match_chunk(
    mode: int, documents: Any, features: Any, offsets: Any, groups: Any, measure: int,
    similarity: float, keys: Any, before: Any, key_offsets: Any, table: Any, rows: Any,
    used: Any, rank: Any, known: int, seen: Any, found: Any, words: Any,
    distance: int, match: Any, score: Any, stop: Any,
) -> Any:  # fmt: skip
    """Match documents, in the order given, with those indexed before, and index them.

    GREEDY: match[x] becomes the similar indexed document of the lowest rank, and x is not indexed;
    else match[x] stays x, and x is indexed. COMPONENTS: match is a union-find forest, every
    document is indexed. PAIRS: every similar pair is returned, every document is indexed.

    Args:
        mode: GREEDY, COMPONENTS or PAIRS.
        documents: int64 (m,).
        features: uint64, may be read-only.
        offsets: int64 (n + 1,).
        groups: int32 (n,): only documents with the same number match; empty: all do.
        measure: JACCARD (shared / distinct of both), COSINE (shared / root of the product of sizes)
            or CONTAINMENT (shared / smaller size).
        similarity: The threshold.
        keys: uint64, from `select_keys` of these documents.
        before: int32, likewise.
        key_offsets: int64 (m + 1,), likewise.
        table: uint64 (slots, 2): key and first node, 0 in free slots. A power of two, at least
            twice as many slots as keys it will hold.
        rows: uint32 (capacity, COLUMNS), see the module `postings`; with room for ROWS_A_KEY of
            each key, and one.
        used: int64 (USED,), see there.
        rank: int64 (n,): priority of each document, 0 first.
        known: GREEDY: documents of lower ranks are indexed whatever they are similar to.
        seen: int64 (n,), scratch, initially -1.
        found: int64 (n,), scratch.
        words: uint64 (n, w), fingerprints.
        distance: Most bits in which the fingerprints of a match may differ.
        match: int64 (n,), initially 0 to n - 1.
        score: float64 (n,): GREEDY: the similarity of x and match[x].
        stop: uint8 (1,): the kernel returns early once another thread has set it.

    Returns:
        int64 (2 p,) for PAIRS: the two documents of each pair, the smaller first; else empty.
    """
    longest = 0
    for x in documents:
        longest = max(longest, offsets[x + 1] - offsets[x])
    members = np.empty(4 * longest + 4, np.uint64)
    pairs, pair_count = np.empty(1024 if mode == PAIRS else 0, np.int64), 0
    for j in range(documents.size):
        if stop[0]:
            break
        x, first, last = documents[j], key_offsets[j], key_offsets[j + 1]
        if first == last:
            continue
        size = offsets[x + 1] - offsets[x]
        sketch = sketch_of(features, offsets[x], offsets[x + 1])
        members[0] = np.uint64(0)  # filled for the first candidate
        best = x
        if mode == COMPONENTS:
            _unite(
                x, size, sketch, keys, before, first, last, members, features, offsets, groups,
                measure, similarity, table, rows, used, seen, words, distance, match,
            )  # fmt: skip
            count = 0
        elif mode == GREEDY and rank[x] < known:
            count = 0
        else:
            count = _candidates(
                x, size, sketch, keys, before, first, last, measure, similarity, groups, table,
                rows, seen, found,
            )  # fmt: skip
        if count:
            _fill(features, offsets[x], offsets[x + 1], members)
        for c in range(count):
            y = found[c]
            if mode == GREEDY and best != x and rank[y] > rank[best]:
                continue
            used[3] += 1
            reached = _is_match(
                x, y, members, features, offsets, measure, similarity, words, distance
            )
            if reached < 0.0:
                continue
            if mode == GREEDY:
                best, score[x] = y, reached
                continue
            if pair_count == pairs.size:
                larger = np.empty(2 * pair_count, np.int64)
                move(pairs, pair_count, larger)
                pairs = larger
            pairs[pair_count], pairs[pair_count + 1] = min(x, y), max(x, y)
            pair_count += 2
        if mode == GREEDY:
            match[x] = best
        if best == x:
            insert(x, size, sketch, keys, before, first, last, table, rows, used)
    return pairs[:pair_count]
