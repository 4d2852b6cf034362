"""One text at a time: `fingerprint(text)`, and an index's `query(text)` and `add_if_new(id, text)`.

Microseconds of processor time a call, the least of the repeats; gaoya has no call that makes a
fingerprint alone, so there an insertion counts.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "one_text"
STORED = 1000
REPEATS = 15
SECONDS = 0.05
TARGETS = {6: 3, 40: None, 300: 20, 3000: None}
"""Microseconds of `fingerprint` by words of the text."""


def rows(quick: bool) -> list[Row]:
    """One row a length and call, the fingerprint beside two peers."""
    table = []
    for words in list(TARGETS)[: 1 if quick else None]:
        ours = Measurement.of(CASE, "ours", OURS, words=words)
        name, unit = f"{words:,} words", "us"
        table.append(Row(f"fingerprint of {name}", ours, (), TARGETS[words], "lower", unit=unit))
        for peer in ("simhash", "gaoya"):
            theirs = Measurement.of(CASE, f"peer_{peer}", peer, words=words)
            row = Row(f"fingerprint of {name}, {peer}", ours, (theirs,), 1, "lower", unit=unit)
            table.append(row)
        table += [
            Row(f"{call} of {name}", ours, (), None, "lower", call, unit)
            for call in ("query", "add_if_new")
        ]
    return table


def text_of(words: int) -> str:
    """A text of so many words, of a vocabulary of a thousand."""
    return " ".join(f"word{i * 7919 % 1000}" for i in range(words))


def least(call: Callable[[], object]) -> float:
    """Microseconds of processor time a call."""
    call()
    start = time.process_time()
    for _ in range(10):
        call()
    calls = max(1, int(SECONDS * 10 / max(time.process_time() - start, 1e-6)))
    spent = []
    for _ in range(REPEATS):
        start = time.process_time()
        for _ in range(calls):
            call()
        spent.append(time.process_time() - start)
    return min(spent) / calls * 1e6


def ours(words: int) -> dict[str, Any]:
    import neardup as nd

    text, index, ids = text_of(words), nd.Index(recipe=nd.Recipe()), itertools.count(STORED)
    index.add(range(STORED), [text_of(9) + f" {i}" * 30 for i in range(STORED)])
    return {
        "value": least(lambda: nd.fingerprint(text)),
        "query": least(lambda: index.query(text)),
        "add_if_new": least(lambda: index.add_if_new(next(ids), text)),
    }


def peer_simhash(words: int) -> dict[str, Any]:
    from simhash import Simhash

    text = text_of(words)
    return {"value": least(lambda: Simhash(text).value)}


def peer_gaoya(words: int) -> dict[str, Any]:
    from gaoya.simhash import SimHashStringIndex

    text, ids = text_of(words), itertools.count()
    index = SimHashStringIndex(analyzer="word", ngram_range=(3, 3), lowercase=True)
    return {"value": least(lambda: index.insert_document(next(ids), text))}
