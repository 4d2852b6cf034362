"""The units of texts, lines or paragraphs, and 128 bits by which equal ones are known.

Two units are equal if their normalised texts are: NFKC, case folded, ignorable characters left out,
each run of white space one space. Their hashes are two XXH3 of 64 bits with different seeds: among
n different units two have the same 128 bits with a probability of n * n / 2 ** 129, which is
below 10 ** -14 for 10 ** 12 units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.features.text import text_blocks
from neardup.features.tokens import cutting
from neardup.runtime.threads import in_threads

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.features.choices import Choices
    from neardup.features.text import TextBlock

__all__ = ["UNITS", "cut_stretches", "unit_hashes", "unit_places"]

UNITS = ("paragraph", "line")


def unit_hashes(texts: pa.Array, unit: str, least: int, recipe: Choices, workers: int) -> Any:
    """Hash each unit of texts that has at least `least` words.

    Args:
        texts: Large strings.
        unit: One of UNITS.
        least: Words.
        recipe: How texts are normalised and cut in words.
        workers: Threads.

    Returns:
        uint64 (units, 5): low and high half of the hash, row of the text, number of the unit in
        its text (short ones count), and its bytes; in order of text and unit.
    """
    from neardup.kernels.features.passages import passage_hashes

    words, chars = (cutting(recipe, chars=chars, ngram=1) for chars in (False, True))
    blocks = list(text_blocks(texts))
    hashes: list[Any] = [None] * len(blocks)

    def run(_: int, task: tuple[int, TextBlock]) -> None:
        place, block = task
        rows = passage_hashes(
            block.data, block.offsets, words, chars, unit == "line", np.int64(least)
        )
        rows[:, 2] += np.uint64(block.first)
        hashes[place] = rows

    in_threads(workers, run, enumerate(blocks))
    return np.concatenate([np.empty((0, 5), np.uint64), *hashes])


def unit_places(text: bytes, unit: str) -> list[tuple[int, int]]:
    r"""The places where the units of a UTF-8 text begin and end; each ends before its line break.

    A line of white space is not a unit; it ends a paragraph, as a form feed and U+2029 do.

    Example:
        >>> unit_places(b"one\ntwo\n\nthree", "paragraph")
        [(0, 7), (9, 14)]
    """
    from neardup.kernels.features.passages import unit_places as compute

    data = np.frombuffer(text, np.uint8)
    return [(begin, end) for begin, end in compute(data, unit == "line").tolist()]


def cut_stretches(places: list[tuple[int, int]], cut: set[int]) -> list[tuple[int, int]]:
    """The stretches to cut for some units: each unit with everything up to the next one.

    After the last unit that stays there is what was behind the last of all: a text ends as it did.

    Example:
        >>> cut_stretches([(0, 3), (5, 8), (10, 13)], {1})
        [(5, 10)]
        >>> cut_stretches([(0, 3), (5, 8), (10, 13)], {1, 2})
        [(3, 13)]
    """
    stretches: list[tuple[int, int]] = []
    kept = -1
    for number, (begin, end) in enumerate(places):
        if number not in cut:
            kept = number
            continue
        is_last = number + 1 == len(places)
        start = stretches.pop()[0] if number and kept < number - 1 else begin
        if is_last and kept >= 0:
            start = places[kept][1]
        stretches.append((start, end if is_last else places[number + 1][0]))
    return stretches
