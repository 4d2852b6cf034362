"""Much text with planted duplicates: `python bench/harness/planted.py FOLDER OUT --gb N`.

The texts of a corpus, then copies of it in which the letters are permuted, another permutation a
copy: the words are new, their statistics stay. Of one text in `EVERY` a changed one follows at the
end of its copy, some words replaced, with at least `SIMILARITY` of the runs of three words.
OUT is JSON lines, or Parquet by its ending; FOLDER holds *.jsonl or *.jsonl.gz with a field `text`,
or is one such file.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import re
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVERY = 20
SIMILARITY = 0.8
RUN = 3
NEAR = ":near"
"""The id of a changed text is that of its original and this."""
GROUP_BYTES = 1 << 26

_WORD = re.compile(r"[A-Za-z0-9_]+")


def alphabet(copy: int) -> dict[int, int]:
    """The permutation of the letters of a copy, upper case as lower case; none for copy 0."""
    letters = list(string.ascii_lowercase)
    if copy:
        random.Random(copy).shuffle(letters)
    low = "".join(letters)
    return str.maketrans(string.ascii_letters, low + low.upper())


def runs(text: str) -> set[tuple[str, ...]]:
    """The runs of three words of an ASCII text: its features by the default recipe."""
    words = [word.lower() for word in _WORD.findall(text)]
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}


def changed(text: str, seed: int) -> str | None:
    """The text with some words replaced, as similar as is asked for; None if it is too short."""
    if not text.isascii():
        return None
    places, before = list(_WORD.finditer(text)), runs(text)
    chance = random.Random(seed)
    # A word is in three runs: n replaced ones leave (size - 3n) of (size + 3n), 0.8 at size / 27.
    number = chance.randint(0, len(before) // 27)
    while number:
        pieces, at = [], 0
        for place in sorted(chance.sample(places, number), key=lambda found: found.start()):
            pieces += [text[at : place.start()], f"qz{chance.randrange(10**6)}"]
            at = place.end()
        result = "".join([*pieces, text[at:]])
        after = runs(result)
        if len(before & after) >= SIMILARITY * len(before | after):
            return result
        number //= 2
    return None


def planted(texts: list[str]) -> Iterator[tuple[str, str]]:
    """Ids and texts, one copy after another, without an end."""
    near = {
        row: text
        for row in range(0, len(texts), EVERY)
        if (text := changed(texts[row], row)) is not None
    }
    for copy in itertools.count():
        table = alphabet(copy)
        for row, text in enumerate(texts):
            yield f"{copy}:{row}", text.translate(table)
        for row, text in near.items():
            yield f"{copy}:{row}{NEAR}", text.translate(table)


def first_bytes(records: Iterable[tuple[str, str]], size: float) -> Iterator[tuple[str, str]]:
    """As many records as have that many bytes of text."""
    for name, text in records:
        yield name, text
        size -= len(text.encode())
        if size <= 0:
            return


def write(records: Iterable[tuple[str, str]], path: Path) -> None:
    """Write JSON lines, or Parquet by the ending."""
    if path.suffix == ".parquet":
        _write_parquet(records, path)
        return
    with path.open("w", encoding="utf8") as lines:
        for name, text in records:
            lines.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")


def _write_parquet(records: Iterable[tuple[str, str]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"id": pa.string(), "text": pa.large_string()})
    with pq.ParquetWriter(path, schema) as file:
        left = iter(records)
        while group := list(first_bytes(left, GROUP_BYTES)):
            names, texts = zip(*group, strict=True)
            file.write_table(pa.table([names, texts], schema=schema))


def texts_in(folder: Path) -> list[str]:
    """The texts of all JSON lines below a folder, or of one file.

    Raises:
        FileNotFoundError: If there are none.
    """
    below = [folder] if folder.is_file() else folder.rglob("*")
    result = sorted(p for p in below if p.name.endswith((".jsonl", ".jsonl.gz")))
    texts: list[str] = []
    for path in result:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    if not texts:
        raise FileNotFoundError(f"{folder} holds no *.jsonl or *.jsonl.gz with texts")
    return texts


def main() -> None:
    """Write what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--gb", type=float, default=1.0, help="bytes of text / 10^9")
    given = parser.parse_args()
    write(first_bytes(planted(texts_in(given.folder)), given.gb * 1e9), given.out)


if __name__ == "__main__":
    main()
