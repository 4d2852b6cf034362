"""Reading JSON lines and CSV: ids and texts to Arrow on one thread, against plain parsers.

Rates are million bytes of the file a second. Arrow's own readers check and convert every column and
keep no record of where each row lies, which ours needs to write the kept ones byte for byte.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import corpora
from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from collections.abc import Callable

CASE = "reading"
LEAST_REPEATS = 3


def rows(quick: bool) -> list[Row]:
    """Each format against each parser."""
    path = corpora.speed_corpus(3 if quick else 300)["path"]
    table = []
    for ending, peers in (
        (".jsonl", ("orjson", "arrow_json")),
        (".csv", ("csv_module", "arrow_csv")),
    ):
        ours_at = Measurement.of(CASE, "ours", OURS, path=path, ending=ending)
        for peer in peers:
            other = Measurement.of(CASE, peer, OURS, path=path)
            table.append(Row(f"reading {ending}, one thread, against {peer}", ours_at, (other,)))
    return table


def rate(path: str, work: Callable[[], int]) -> dict[str, Any]:
    """The best rate of the repeats in this process; the first one is not counted."""
    documents = work()
    times = []
    for _ in range(LEAST_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return {"value": Path(path).stat().st_size / 1e6 / min(times), "documents": documents}


def ours(path: str, ending: str) -> dict[str, Any]:
    from neardup.documents import ReadOptions, open_sources

    path = path if ending == ".jsonl" else as_csv(path)

    def work() -> int:
        (source,) = open_sources([path])
        return sum(len(batch.texts) for batch in source.batches(ReadOptions(id="id")))

    return rate(path, work)


def orjson(path: str) -> dict[str, Any]:
    """A line at a time, as one would write it."""
    import orjson as parser
    import pyarrow as pa

    def work() -> int:
        with Path(path).open("rb") as lines:
            records = [parser.loads(line) for line in lines]
        texts = pa.array([record["text"] for record in records], pa.large_string())
        return len(texts) + 0 * len(pa.array([record["id"] for record in records]))

    return rate(path, work)


def arrow_json(path: str) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import json

    expected = pa.schema([("id", pa.string()), ("text", pa.string())])
    read = json.ReadOptions(use_threads=False, block_size=8 << 20)
    parse = json.ParseOptions(explicit_schema=expected, unexpected_field_behavior="ignore")
    return rate(path, lambda: json.read_json(path, read, parse).num_rows)


def csv_module(path: str) -> dict[str, Any]:
    import pyarrow as pa

    path = as_csv(path)
    csv.field_size_limit((1 << 31) - 1)

    def work() -> int:
        with Path(path).open(encoding="utf8", newline="") as lines:
            records = list(csv.reader(lines, strict=True))[1:]
        ids = pa.array([record[0] for record in records])
        return len(pa.array([record[1] for record in records], pa.large_string())) + 0 * len(ids)

    return rate(path, work)


def arrow_csv(path: str) -> dict[str, Any]:
    from pyarrow import csv as parser

    path = as_csv(path)
    read = parser.ReadOptions(use_threads=False, block_size=8 << 20)
    parse = parser.ParseOptions(newlines_in_values=True)
    types = parser.ConvertOptions(column_types={"id": "string", "text": "string"})
    return rate(path, lambda: parser.read_csv(path, read, parse, types).num_rows)


def as_csv(path: str) -> str:
    """The same documents as CSV beside the JSON lines; made once."""
    import orjson as parser

    target = Path(path).with_suffix(".csv")
    if not target.exists():
        aside = target.with_suffix(".part")
        with Path(path).open("rb") as lines, aside.open("w", encoding="utf8", newline="") as out:
            table = csv.writer(out)
            table.writerow(["id", "text"])
            for line in lines:
                record = parser.loads(line)
                table.writerow([record["id"], record["text"].replace("\0", "")])
        aside.rename(target)
    return str(target)
