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

from typing import Any, Final

import numpy as np

from neardup.kernels.jit import inner, kernel, move
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
    put_in_ring,
    room_in,
    sketch_of,
)

GREEDY, COMPONENTS, PAIRS = 0, 1, 2
LOOKED_UP: Final = 8


@inner
def _root(parent: Any, row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


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
def _is_new_match(
    x: int, y: int, members: Any, features: Any, offsets: Any, groups: Any, measure: int,
    similarity: float, used: Any, seen: Any, codes: Any, distance: int,
) -> bool:  # fmt: skip
    """Whether two documents that were not compared before match."""
    if seen[y] == x or (groups.size and groups[x] != groups[y]):
        return False
    seen[y] = x
    used[3] += 1
    if not members[0]:
        fill_members(features, offsets[x], offsets[x + 1], members)
    return is_match(x, y, members, features, offsets, measure, similarity, codes, distance) >= 0.0


@inner
def _unite_rings(
    x: int, size: int, sketch: Any, head: int, most: int, members: Any, features: Any,
    offsets: Any, groups: Any, measure: int, similarity: float, rows: Any, used: Any, seen: Any,
    codes: Any, distance: int, parent: Any,
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
                x, y, members, features, offsets, groups, measure, similarity, used, seen, codes,
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
    codes: Any, distance: int, parent: Any,
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
                    codes, distance,
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
    rows: Any, used: Any, seen: Any, codes: Any, distance: int, parent: Any,
) -> None:  # fmt: skip
    """Unite a document with every component that has a match; one match for each is enough."""
    for k in range(first, last):
        head = first_class(table, keys[k])
        while head:
            most = most_before(rows, head, size, before[k], measure, similarity)
            if most >= 0:
                ring = _unite_rings(
                    x, size, sketch, head, most, members, features, offsets, groups, measure,
                    similarity, rows, used, seen, codes, distance, parent,
                )  # fmt: skip
                if _root(parent, x) == x and not any_near(rows, head, sketch, most, size):
                    head = link(rows, head, CLASS)
                    continue
                _unite_blocks(
                    x, size, sketch, head, most, ring, members, features, offsets, groups,
                    measure, similarity, rows, used, seen, codes, distance, parent,
                )  # fmt: skip
            head = link(rows, head, CLASS)


@kernel
def match_chunk(
    mode: int, documents: Any, features: Any, offsets: Any, groups: Any, measure: int,
    similarity: float, keys: Any, before: Any, key_offsets: Any, table: Any, rows: Any,
    used: Any, rank: Any, first_new: int, seen: Any, found: Any, codes: Any,
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
        first_new: GREEDY: documents of lower ranks are indexed whatever they are similar to.
        seen: int64 (n,), scratch, initially -1.
        found: int64 (n,), scratch.
        codes: uint64 (n, w), fingerprints.
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
                measure, similarity, table, rows, used, seen, codes, distance, match,
            )  # fmt: skip
            count = 0
        elif mode == GREEDY and rank[x] < first_new:
            count = 0
        else:
            count = _candidates(
                x, size, sketch, keys, before, first, last, measure, similarity, groups, table,
                rows, seen, found,
            )  # fmt: skip
        if count:
            fill_members(features, offsets[x], offsets[x + 1], members)
        for c in range(count):
            y = found[c]
            if mode == GREEDY and best != x and rank[y] > rank[best]:
                continue
            used[3] += 1
            reached = is_match(
                x, y, members, features, offsets, measure, similarity, codes, distance
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
