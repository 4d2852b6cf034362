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

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.jit import inner, kernel, move
from neardup.kernels.similarity.join_arguments import Probe
from neardup.kernels.similarity.measure_bounds import (
    CONTAINMENT,
    most_before,
    needed_overlap,
    sizes_near,
)
from neardup.kernels.similarity.members import fill_members, is_match
from neardup.kernels.similarity.postings import (
    AROUND,
    CLASS,
    COUNT,
    DOCUMENT,
    LAST,
    NEXT,
    OTHER,
    RINGS,
    VERIFIED,
    any_near,
    block_after,
    block_end,
    copy_document,
    first_class,
    fold_sketch,
    insert,
    is_near,
    join_rings,
    link,
    may_have_near,
    octave_of,
    put_in_ring,
    room_in,
)
from neardup.kernels.similarity.sketch_filter import candidates, may_match, meet, only_alike

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Int64s, Rows
    from neardup.kernels.similarity.join_arguments import Condition, Keys, Postings, Sets, Walk

LOOKED_UP: Final = 8
MET_AT_ONCE: Final = 64
"""The number of documents that are read ahead of their verification."""
FIRST_PAIRS: Final = 1024
MOST_BITS: Final = 1 << 62
"""The least number of bits that stands for no limit of distance."""


@inner
def _root(parent: Int64s, row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@inner
def _probe(
    x: int, j: int, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> Probe:
    """Make document x, the j-th document of the keys, the current one."""
    begin, end = sets.offsets[x], sets.offsets[x + 1]
    fold_sketch(walk.sketches, x, condition, postings.folds, walk.place)
    smallest, largest = sizes_near(end - begin, condition)
    # Of all sizes the largest may differ most; rounding up makes a difference of two at most.
    size = end - begin
    apart = size + largest - 2 * needed_overlap(size, largest, condition) + 2
    first, last = keys.offsets[j], keys.offsets[j + 1]
    return Probe(
        x, size, smallest, largest, apart, octave_of(size), most_before(size, condition),
        condition.measure == CONTAINMENT, first, last, walk.place,
    )  # fmt: skip


@inner
def _is_new_match(
    x: int, y: int, sets: Sets, condition: Condition, used: Int64s, walk: Walk
) -> bool:
    """Whether two documents match and have not been compared before."""
    seen, members = walk.seen, walk.members
    if seen[y] == x + 1:
        return False
    seen[y] = x + 1
    if not may_match(x, y, sets, condition, walk):
        return False
    used[VERIFIED] += 1
    if not members[0]:
        fill_members(sets.features, sets.offsets[x], sets.offsets[x + 1], members)
    return is_match(x, y, members, sets, condition) >= 0.0


@inner
def _unite_rings(
    head: int, before: int, probe: Probe, sets: Sets, condition: Condition, postings: Postings,
    walk: Walk,
) -> int:  # fmt: skip
    """Unite a document with the rings of a class that have a match; returns its own ring, or 0.

    Rings that turn out to be of the document's component become one.
    """
    x, rows, parent = probe.x, postings.rows, walk.match
    own = _root(parent, x)
    # `main` is the one ring of the document's component among those passed, `previous` the last
    # ring passed that is still in the list.
    ring, previous, main = link(rows, head, RINGS), np.int64(0), np.int64(0)
    while ring:
        after, root = link(rows, ring, OTHER), _root(parent, link(rows, ring, DOCUMENT))
        at = ring
        while root != own:
            y = link(rows, at, DOCUMENT)
            if is_near(postings, at, probe, before, condition) and _is_new_match(
                x, y, sets, condition, postings.used, walk
            ):
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
    head: int, before: int, ring: int, probe: Probe, sets: Sets, condition: Condition,
    postings: Postings, walk: Walk,
) -> None:  # fmt: skip
    """Unite a document with those in the blocks of a class that match; they go to its ring.

    So do others found to be of its component. A document that is in no component yet only meets
    sketches; else one in LOOKED_UP distant documents is looked up, so that the blocks of a large
    component empty in time, and a look at random memory for each is avoided.
    """
    x, rows, parent = probe.x, postings.rows, walk.match
    own = _root(parent, x)
    # What stays is moved up: to_block + to is the last place taken, never behind `at`.
    block, to_block, to = np.int64(head), np.int64(head), np.int64(0)
    while block:
        after = block_after(rows, head, block)
        for at in range(block + 1, block_end(rows, head, block)):
            near = is_near(postings, at, probe, before, condition)
            if near or (own != x and (at + x) % LOOKED_UP == 0):
                y = link(rows, at, DOCUMENT)
                root = _root(parent, y)
                if near and root != own and _is_new_match(
                    x, y, sets, condition, postings.used, walk
                ):  # fmt: skip
                    parent[max(own, root)] = min(own, root)
                    own = min(own, root)
                    root = own
                if root == own:
                    ring = put_in_ring(postings, at, head, ring)
                    continue
            if to == room_in(rows, head, to_block):
                to_block, to = link(rows, to_block, NEXT), np.int64(0)
            to += 1
            if to_block + to != at:
                copy_document(postings, at, to_block + to)
        block = after
    rows[head, LAST], rows[head, COUNT] = to_block, to


@inner
def _unite(
    probe: Probe, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> None:
    """Unite a document with every component that has a match; one match for each is enough."""
    rows, x = postings.rows, probe.x
    walk.members[0] = np.uint64(0)  # filled for the first candidate
    for k in range(probe.first, probe.last):
        head, before = first_class(postings.table, keys.keys[k]), np.int64(keys.before[k])
        while head:
            if may_have_near(rows, head, probe, before, condition):
                ring = _unite_rings(head, before, probe, sets, condition, postings, walk)
                if _root(walk.match, x) != x or any_near(postings, head, probe, before, condition):
                    _unite_blocks(head, before, ring, probe, sets, condition, postings, walk)
            head = link(rows, head, CLASS)


@inner
def _before(best: int, first: int, last: int, rank: Any, matches: Any) -> int:
    """Move those of matches[first:last] that rank before `best` to the front; returns their end."""
    end = first
    for c in range(first, last):
        if rank[matches[c]] < rank[best]:
            matches[end] = matches[c]
            end += 1
    return end


@inner
def _best_match(
    probe: Probe, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> int:
    """The similar indexed document of the lowest rank, or the document itself; writes its score."""
    x, rank, matches, best, count = probe.x, walk.rank, walk.found, probe.x, 0
    met = meet(probe, condition, keys, postings, walk)
    # Under each key documents come by rank. So the best match is mostly among the first few, and
    # of all later documents only the rank is read.
    for first in range(0, met, MET_AT_ONCE):
        last = min(first + MET_AT_ONCE, met)
        if best != x:
            last = _before(best, first, last, rank, matches)
        begin = count
        count = only_alike((first, last), begin, probe, sets, condition, postings, walk)
        if count and not begin:
            fill_members(sets.features, sets.offsets[x], sets.offsets[x + 1], walk.members)
        for c in range(begin, count):
            y = matches[c]
            if best != x and rank[y] > rank[best]:
                continue
            reached = is_match(x, y, walk.members, sets, condition)
            if reached >= 0.0:
                best, walk.score[x] = y, reached
    # The match and those that rank before it had to be verified: a number that no order changes.
    if best == x:
        postings.used[VERIFIED] += count
    else:
        for c in range(count):
            postings.used[VERIFIED] += np.int64(rank[matches[c]] <= rank[best])
    return best


@inner
def _nearest(
    probe: Probe, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> int:
    """The most similar indexed document, of several the first; the document itself if none is.

    Writes the similarity to walk.score.
    """
    x, rank, best, most = probe.x, walk.rank, probe.x, -1.0
    count = candidates(probe, sets, condition, keys, postings, walk)
    if count:
        fill_members(sets.features, sets.offsets[x], sets.offsets[x + 1], walk.members)
    postings.used[VERIFIED] += count
    for c in range(count):
        y = walk.found[c]
        reached = is_match(x, y, walk.members, sets, condition)
        if reached >= 0.0 and (reached > most or (reached == most and rank[y] < rank[best])):
            best, most = y, reached
    if best != x:
        walk.score[x] = most
    return best


@inner
def _all_matches(
    probe: Probe, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk
) -> int:
    """List the similar indexed documents in walk.found; returns how many there are."""
    x, matches, kept = probe.x, walk.found, 0
    count = candidates(probe, sets, condition, keys, postings, walk)
    if count:
        fill_members(sets.features, sets.offsets[x], sets.offsets[x + 1], walk.members)
    postings.used[VERIFIED] += count
    for c in range(count):
        if is_match(x, matches[c], walk.members, sets, condition) >= 0.0:
            matches[kept] = matches[c]
            kept += 1
    return kept


@kernel
def match_greedy(
    documents: Rows, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk,
    stop: Bytes,
) -> None:  # fmt: skip
    """Drop documents, in the order given, that are similar to one indexed before; index the others.

    walk.match[x] becomes the similar indexed document of the lowest rank, walk.score[x] the
    similarity of the two; walk.match[x] of a document that is indexed is x. One that is dropped
    already is left as it is. Unless walk.keeps, nothing is indexed: then threads may do this at
    once, each with documents, `used` and scratch of its own.

    Args:
        documents: int64 (m,).
        sets: Sets.
        condition: Condition.
        keys: Keys of these documents.
        postings: Postings, written.
        walk: Walk, written.
        stop: uint8 (1,): the kernel returns early once another thread has set it.
    """
    # Taken out of the tuples once: an access in the loop would count references each time.
    rank, match, key_offsets = walk.rank, walk.match, keys.offsets
    first_new, keeps = walk.first_new, walk.keeps
    for j in range(documents.size):
        if stop[0]:
            break
        x = documents[j]
        if key_offsets[j] == key_offsets[j + 1] or match[x] != x:
            continue
        probe, best = _probe(x, j, sets, condition, keys, postings, walk), x
        if rank[x] >= first_new:
            best = _best_match(probe, sets, condition, keys, postings, walk)
            match[x] = best
        if keeps and best == x:
            insert(probe, keys, postings)


@kernel
def match_nearest(
    documents: Any, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk,
    stop: Bytes,
) -> None:  # fmt: skip
    """Find for each document the most similar of those indexed before; index it too.

    walk.match[x] becomes that document, walk.score[x] the similarity of the two; walk.match[x] of a
    document that has none is x. One that has the same features as an indexed one is not indexed:
    the other stands for it, unless the distance decides as well.

    Arguments as for `match_greedy`.
    """
    match, score, offsets, key_offsets = walk.match, walk.score, sets.offsets, keys.offsets
    any_distance = condition.distance >= MOST_BITS
    for j in range(documents.size):
        if stop[0]:
            break
        if key_offsets[j] == key_offsets[j + 1]:
            continue
        x = documents[j]
        probe = _probe(x, j, sets, condition, keys, postings, walk)
        y = _nearest(probe, sets, condition, keys, postings, walk)
        match[x] = y
        size = offsets[y + 1] - offsets[y]
        if x == y or score[x] < 1.0 or size != probe.size or not any_distance:
            insert(probe, keys, postings)


@kernel
def match_components(
    documents: Rows, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk,
    stop: Bytes,
) -> None:  # fmt: skip
    """Unite documents with the similar ones among those indexed before; index them all.

    walk.match is a union-find forest. Arguments as for `match_greedy`.
    """
    key_offsets = keys.offsets
    for j in range(documents.size):
        if stop[0]:
            break
        if key_offsets[j] != key_offsets[j + 1]:
            probe = _probe(documents[j], j, sets, condition, keys, postings, walk)
            _unite(probe, sets, condition, keys, postings, walk)
            insert(probe, keys, postings)


@kernel
def match_pairs(
    documents: Rows, sets: Sets, condition: Condition, keys: Keys, postings: Postings, walk: Walk,
    stop: Bytes,
) -> Any:  # fmt: skip
    """List every pair of a document and one indexed before that are similar; index them all.

    Arguments as for `match_greedy`.

    Returns:
        int64 (2 p,): the two documents of each pair, the smaller first.
    """
    key_offsets, matches = keys.offsets, walk.found
    pairs, used = np.empty(FIRST_PAIRS, np.int64), 0
    for j in range(documents.size):
        if stop[0]:
            break
        if key_offsets[j] == key_offsets[j + 1]:
            continue
        x = documents[j]
        probe = _probe(x, j, sets, condition, keys, postings, walk)
        count = _all_matches(probe, sets, condition, keys, postings, walk)
        if used + 2 * count > pairs.size:
            larger = np.empty(2 * (used + 2 * count), np.int64)
            move(pairs, used, larger)
            pairs = larger
        for c in range(count):
            pairs[used], pairs[used + 1] = min(x, matches[c]), max(x, matches[c])
            used += 2
        insert(probe, keys, postings)
    return pairs[:used]
