"""What a flipped bit in a segment does until `check`, and what it costs to look first.

    python bench/experiments/flipped_bits.py [flips] [documents]

For both kinds of index, bits of a segment's arrays are flipped, one at a time, each anywhere in
them; then the index is opened and asked near every document, in a batch, and near some one by one.
All answers are right, or one is refused, or wrong. Of the wrong ones it says how many a check of
hits would see: one that verifies each block of 64 KiB that holds an id, number, fingerprint or
feature of a document in an answer. Then the processor time of opening, of opening with verify=True,
of a query, and of the checksums of the blocks of its hits.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import neardup as nd
from harness import near_texts
from neardup.index.segment_files import SegmentFile

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK: Final = 1 << 16
SINGLE: Final = 300
ROUNDS: Final = 5
OF_ROWS: Final = ("words", "numbers", "ids", "ends", "features", "offsets", "set_of")
"""The arrays that hold a document, not what finds it."""

Answer = list[tuple[int, Any, Any]]


def answers(index: Any, queries: list[Any]) -> Answer:
    """(row, id, closeness) of the batch and of the first few, one by one."""
    batch = index.query_batch(queries)
    table = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for row, query in enumerate(queries[:: max(1, len(queries) // SINGLE)]):
        table += [(row + len(queries), *hit) for hit in index.query(query)]
    return table


def touched(file: SegmentFile, rows: list[int]) -> set[tuple[str, int]]:
    """The blocks, by array and number, that hold documents."""
    arrays = file.header["arrays"]
    blocks: set[tuple[str, int]] = set()

    def add(name: str, first: int, last: int) -> None:
        begin = arrays[name]["offset"]
        size = np.dtype(arrays[name]["dtype"]).itemsize * int(np.prod(arrays[name]["shape"][1:]))
        span = range((begin + first * size) // BLOCK, (begin + last * size - 1) // BLOCK + 1)
        blocks.update((name, block) for block in span)

    for row in rows:
        for name in ("words", "numbers", "set_of"):
            if name in arrays:
                add(name, row, row + 1)
        if "ends" in arrays:
            add("ends", row, row + 2)
            add("ids", *file.array("ends")[row : row + 2].tolist())
        else:
            add("ids", 8 * row, 8 * row + 8)
        if "features" in arrays:
            chosen = int(file.array("set_of")[row])
            add("offsets", chosen, chosen + 2)
            add("features", *file.array("offsets")[chosen : chosen + 2].tolist())
    return blocks


def flip(path: Path, offset: int, bit: int) -> None:
    """Turn a bit."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def damages(folder: Path, queries: list[Any], names: list[Any], flips: int) -> None:
    """Flip bits, ask, and print what came of it, by array."""
    path = next(folder.glob("*.nds"))
    file = SegmentFile(path)
    row_of = {name: row for row, name in enumerate(names)}
    entries = file.header["arrays"]
    sizes = {name: file.array(name).nbytes for name in entries}
    draw, counts = np.random.default_rng(3), Counter[tuple[str, str]]()
    with nd.DurableIndex.open(folder, readonly=True) as index:
        right = answers(index, queries)
    share = np.array(list(sizes.values())) / sum(sizes.values())
    for _ in range(flips):
        name = str(draw.choice(list(sizes), p=share))
        offset = entries[name]["offset"] + int(draw.integers(sizes[name]))
        bit = int(draw.integers(8))
        flip(path, offset, bit)
        try:
            with nd.DurableIndex.open(folder, readonly=True) as index:
                got = answers(index, queries)
            result = "right" if got == right else "wrong"
        except nd.DataError:
            result = "refused"
        flip(path, offset, bit)
        if result == "wrong":
            rows = [row_of[each] for _, each, _ in got if each in row_of]
            is_seen = (name, offset // BLOCK) in touched(file, rows)
            result = "wrong, a hit's" if is_seen and name in OF_ROWS else "wrong, not a hit's"
        counts[name, result] += 1
    results = ("right", "refused", "wrong, a hit's", "wrong, not a hit's")
    print(f"  {'array':<16} {'share':>6} " + " ".join(f"{each:>18}" for each in results))
    for name, each in zip(sizes, share, strict=True):
        row = " ".join(f"{counts[name, result]:>18}" for result in results)
        print(f"  {name:<16} {each:>6.1%} {row}")
    total = [sum(counts[name, result] for name in sizes) for result in results]
    print(f"  {'all':<16} {'':>6} " + " ".join(f"{each:>18}" for each in total))


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds, the least of some rounds."""
    spent = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return min(spent)


def prices(folder: Path, queries: list[Any]) -> None:
    """Print what opening, opening with verify=True, and a query cost."""
    nbytes = sum(path.stat().st_size for path in folder.glob("*.nds"))
    plain = seconds(lambda: nd.DurableIndex.open(folder, readonly=True).close())
    checked = seconds(lambda: nd.DurableIndex.open(folder, readonly=True, verify=True).close())
    with nd.DurableIndex.open(folder, readonly=True) as index:
        few = queries[:SINGLE]
        query = seconds(lambda: [index.query(each) for each in few]) / len(few)
    file = SegmentFile(next(folder.glob("*.nds")))
    data = bytes(BLOCK)
    block = seconds(lambda: [zlib.crc32(data) for _ in range(1000)]) / 1000
    rows = range(0, file.header["rows"], 97)
    blocks = sum(len(touched(file, [row])) for row in rows) / len(rows)
    own = bytes(
        sum(file.array(name).nbytes for name in OF_ROWS if name in file.header["arrays"])
        // file.header["rows"]
    )
    document = seconds(lambda: [zlib.crc32(own) for _ in range(1000)]) / 1000
    gigabytes = nbytes / 1e9
    print(
        f"  {gigabytes:.3f} GB: opened in {1e3 * plain:.1f} ms of processor time, with verify=True"
        f" in {1e3 * checked:.1f} ms, {(checked - plain) / gigabytes:.2f} s a GB;"
        f" a query {1e6 * query:.1f} us; a hit lies in {blocks:.1f} blocks,"
        f" {1e6 * block * blocks:.0f} us to verify, and its own {len(own):,} bytes take"
        f" {1e6 * document:.2f} us"
    )


def main() -> None:
    """Make an index of each kind, damage it, and time it."""
    flips = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    texts = near_texts.make(count, 1)
    draw = np.random.default_rng(2)
    words = [text.split() for text in texts]
    near = [" ".join(each[: int(draw.integers(290, len(each)))]) for each in words]
    prints = draw.integers(0, 2**64, 5 * count, dtype=np.uint64)
    close = [int(each) ^ 1 << int(draw.integers(64)) for each in prints]
    kinds: dict[str, tuple[dict[str, Any], Any, list[Any]]] = {
        "similarity 0.8": ({"similarity": 0.8, "recipe": nd.Recipe()}, texts, near),
        "distance 3": ({"distance": 3}, prints, close),
    }
    for what, (options, documents, queries) in kinds.items():
        with tempfile.TemporaryDirectory(dir=".") as parent:
            folder = Path(parent) / "index"
            names = [f"https://example.org/{row}" for row in range(len(documents))]
            with nd.DurableIndex.open(folder, **options) as index:
                index.add(names, documents)
                index.compact()
            print(f"{what}, {len(documents):,} documents, {flips} flips")
            prices(folder, queries)
            if flips:
                damages(folder, queries, names, flips)


if __name__ == "__main__":
    main()
