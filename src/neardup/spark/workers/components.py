"""On the workers: the connected components of the matches, as stars around their first documents.

The flow: each partition reduces its edges to a forest; then large stars and small stars in turn
(Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, Connected components in MapReduce and
beyond, SoCC 2014), each an exchange by document, until neither changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.spark.workers.partition_rows import arrays_of, batches_of, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.runtime.types import Rows

__all__ = ["ROUTED", "STARS", "forest", "large_stars", "roots_of", "routed", "small_stars"]

ROUTED: Final = "p int, node long, to long"
STARS: Final = "node long, to long, changed int"
"""An edge from a document to one of a lower number; `changed` says whether its step changed any."""


def forest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reduce the edges `left`, `right` of a partition to STARS of the components that they form."""
    table = whole(batches)
    if table is None:
        return
    left, right = arrays_of(table, "left", "right")
    nodes, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    roots = roots_of(places[: len(left)], places[len(left) :], len(nodes))
    leaves = roots != np.arange(len(nodes))
    yield from _stars(nodes[leaves], nodes[roots[leaves]], 1)


def roots_of(one: Rows, other: Rows, count: int) -> Rows:
    """The first place in the component of each place, by edges between places; int64 (count,)."""
    from neardup.kernels.forest import flatten, unite_all

    parent, roots = np.arange(count, dtype=np.uint32), np.empty(count, np.int64)
    unite_all(parent, one, other)
    flatten(parent, roots)
    return roots


def routed(
    batches: Iterable[pa.RecordBatch], parts: int, *, both: bool
) -> Iterator[pa.RecordBatch]:
    """Send STARS by their node and, with `both`, a second time by the other end."""
    for batch in batches:
        node, to = arrays_of(batch, "node", "to")
        if both:
            node, to = np.concatenate([node, to]), np.concatenate([to, node])
        yield pa.record_batch({"p": part_of(node, parts), "node": node, "to": to})


def large_stars(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join each document's higher neighbours to the lowest of itself and its neighbours."""
    yield from _joined_to_lowest(batches, large=True)


def small_stars(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join each document and its lower neighbours to the lowest of them."""
    yield from _joined_to_lowest(batches, large=False)


def _joined_to_lowest(
    batches: Iterable[pa.RecordBatch], *, large: bool
) -> Iterator[pa.RecordBatch]:
    table = whole(batches)
    if table is None:
        return
    node, to = np.unique(np.stack(arrays_of(table, "node", "to")), axis=1)
    starts = np.flatnonzero(np.diff(node, prepend=node[0] - 1))
    sizes = np.diff(starts, append=len(node))
    lowest = np.minimum(to[starts], node[starts])
    least = np.repeat(lowest, sizes)
    # Either step keeps every component together and no edge leaves one: an edge is only moved to
    # another document that both of its ends are joined to.
    if large:
        moved = to > node
        changed = int((moved & (least != node)).any())
        ends, centres = to[moved], least[moved]
    else:
        changed = int((sizes > 1).any())
        moved = to != least
        ends = np.concatenate([to[moved], node[starts]])
        centres = np.concatenate([least[moved], lowest])
    yield from _stars(ends, centres, changed)


def _stars(node: Rows, to: Rows, changed: int) -> Iterator[pa.RecordBatch]:
    columns = {"node": node, "to": to, "changed": np.full(len(node), changed, np.int32)}
    yield from batches_of(pa.table(columns))
