"""A million short documents of real text: passages of this machine's files, and near twins of some.

A passage is some paragraphs of a file that together have 50 words or more, cut after 100; each is
taken once. Of one in `EVERY` a twin is added, some words replaced, with at least 0.8 of the runs of
three words. Passages lie in random order, so the first of them are of every kind that all are of.
What else is alike is so in the files: licences, versions of a library, generated code.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import corpora, planted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LEAST_WORDS, MOST_WORDS = 50, 100
MOST_BYTES = 1_000_000
"""Of a file."""
EVERY = 20
THRESHOLD = 0.8
SHARED = ("reuters21578_en", "scancode_licenses_en")
_BETWEEN = re.compile(r"\n\s*\n")
_WORD = re.compile(r"\w+")


def cut(text: str) -> Iterator[str]:
    """The passages of a text; what is left at its end is none."""
    first = words = 0
    ends = [found.start() for found in _BETWEEN.finditer(text)]
    for begin, end in zip([0, *ends], [*ends, len(text)], strict=True):
        for word in _WORD.finditer(text, begin, end):
            words += 1
            if words == MOST_WORDS:
                yield text[first : word.end()].strip()
                first, words = word.end(), 0
        if words >= LEAST_WORDS:
            yield text[first:end].strip()
            first, words = end, 0


def distinct(texts: Iterable[str]) -> Iterator[str]:
    """Each passage of some texts once."""
    seen = set[bytes]()
    for text in texts:
        for passage in cut(text):
            key = hashlib.sha1(passage.encode(), usedforsecurity=False).digest()
            if key not in seen:
                seen.add(key)
                yield passage


def real_texts() -> Iterator[str]:
    """English texts of ../shared where it is there, and those of this machine."""
    archives = [corpora.SHARED / "data" / name / "docs.jsonl.gz" for name in SHARED]
    present = corpora.read_archives([path for path in archives if path.exists()])
    return (text for _, text in chain(present, corpora.read_machine(MOST_BYTES)))


def corpus(count: int) -> dict[str, Any]:
    """Facts of so many passages and twins, or of all there are; their pairs are beside them."""
    what = "passages of 50 to 100 words of text files of this machine, near twins of one in 20"
    return with_pairs(corpora.cached(f"passages-{count}", what, records(count), float("inf")))


def part(whole: dict[str, Any], count: int) -> dict[str, Any]:
    """Facts of the first documents of a corpus; their pairs are beside them."""
    found = islice(_lines(whole["path"]), count)
    name = f"passages-{count}"
    return with_pairs(corpora.cached(name, f"the first of {whole['path']}", found, float("inf")))


def with_pairs(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts of a corpus, whose pairs are there by now."""
    target = pairs_of(facts["path"])
    if not target.exists():
        ids, texts = zip(*_lines(facts["path"]), strict=True)
        target.write_text(json.dumps(near_pairs(ids, texts)), encoding="utf8")
    return facts


def pairs_of(path: str) -> Path:
    """The file with the ids of all pairs of a corpus at `THRESHOLD`."""
    return Path(path).with_suffix(".pairs.json")


def near_pairs(ids: Sequence[str], texts: Sequence[str]) -> list[tuple[str, str]]:
    """The ids of all pairs: an exact search."""
    import neardup as nd

    found = nd.similar_pairs(texts, THRESHOLD)
    rows = zip(found["left"].to_pylist(), found["right"].to_pylist(), strict=True)
    return [(ids[left], ids[right]) for left, right in rows]


def records(count: int) -> Iterator[tuple[str, str]]:
    """Ids and texts: the id of a twin is that of its original, and a mark."""
    originals = list(islice(distinct(real_texts()), count))
    random.Random(1).shuffle(originals)
    yield from islice(with_twins(originals), count)


def with_twins(texts: list[str]) -> Iterator[tuple[str, str]]:
    """Texts, each changed one after its original."""
    for row, text in enumerate(texts):
        yield str(row), text
        twin = planted.changed(text, row) if row % EVERY == 0 else None
        if twin is not None:
            yield f"{row}{planted.NEAR}", twin


def _lines(path: str) -> Iterator[tuple[str, str]]:
    with Path(path).open(encoding="utf8") as lines:
        for record in map(json.loads, lines):
            yield record["id"], record["text"]
