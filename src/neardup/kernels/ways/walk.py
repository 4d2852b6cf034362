"""What every walk from kept documents outwards has: documents under names, and a queue of levels.

Documents that are not reached yet are under their keys, each named together with its transitive
group, so that groups never meet. Who is reached leaves the names. So no list of pairs is made.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from neardup.kernels.jit import inner
from neardup.kernels.sorting import first_from, shell_sort

FRONT, LEVEL, BACK = range(3)
"""Places of the state of a queue: the next document, where its level ends, and the end."""
_SPREAD: Final = np.uint64(0xD6E8FEB86659FD93)


class Unreached(NamedTuple):
    """Documents under names."""

    names: Any  # uint64 (r,), ascending
    begins: Any  # int64 (r,): those of a name are documents[begins[r]:ends[r]]
    ends: Any  # int64 (r,), written
    documents: Any  # int64 (k,), written


class Queue(NamedTuple):
    """The documents that are reached, level by level."""

    documents: Any  # int64, as long as there may be
    state: Any  # int64 (3,), initially 0: FRONT, LEVEL, BACK


def under_names(names: Any, documents: Any) -> tuple[Unreached, Any]:
    """Put documents (int64 (k,)) under names (uint64 (k,)); and the order in which they are."""
    order = np.argsort(names)
    names = names[order]
    begins = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    ends = np.append(begins[1:], names.size)
    return Unreached(names[begins], begins, ends, documents[order]), order


@inner
def name_of(key: Any, group: int) -> Any:
    """Name a key (uint64) of the documents of a group; others may have the same name."""
    return (key ^ (np.uint64(group + 1) * _SPREAD)) * _SPREAD


@inner
def run_of(unreached: Unreached, name: Any) -> int:
    """The place of a name, or -1."""
    run = first_from(unreached.names, 0, unreached.names.size, name)
    if run < unreached.names.size and unreached.names[run] == name:
        return run
    return np.int64(-1)


@inner
def put_back(queue: Queue, document: int) -> None:
    """Put a document at the end."""
    queue.documents[queue.state[BACK]] = document
    queue.state[BACK] += 1


@inner
def take_next(queue: Queue) -> int:
    """Take the next document, those of a level in ascending order; -1 if there is none."""
    state = queue.state
    if state[FRONT] == state[BACK]:
        return np.int64(-1)
    if state[FRONT] == state[LEVEL]:
        shell_sort(queue.documents, state[LEVEL], state[BACK])
        state[LEVEL] = state[BACK]
    state[FRONT] += 1
    return queue.documents[state[FRONT] - 1]
