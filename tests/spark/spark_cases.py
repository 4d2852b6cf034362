"""What the tests of Spark share: documents, what one machine decides, and the command itself."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.cli import app
from neardup.spark.engine_session import check_master

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "DOCUMENTS",
    "WARNINGS",
    "call",
    "decided",
    "decided_here",
    "engine_or_skip",
    "outputs",
    "write_inputs",
]

WARNINGS: Final = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
"""What PySpark and Sail have of their own."""

WORDS: Final = np.array(["a", "harbour", "opened", "on", "monday", "after", "three", "days"])


def texts(count: int, seed: int = 7) -> list[str]:
    """Documents that repeat, with a few words changed, some equal, some empty."""
    random = np.random.default_rng(seed)
    result: list[list[str]] = []
    for _ in range(count):
        if result and random.random() < 0.6:
            text = list(result[random.integers(len(result))])
            for _ in range(random.integers(3)):
                text[random.integers(len(text))] = str(random.choice(WORDS)) if text else ""
        else:
            text = [f"{random.choice(WORDS)}{random.integers(9)}" for _ in range(18)]
        result.append(text)
    return [*(" ".join(text) for text in result), "", "..."]


DOCUMENTS: Final = pa.table(
    {
        "id": [f"{i:03}" for i in range(82)],
        "text": texts(80),
        "language": [["en", "de", None][i % 3] for i in range(82)],
        "stars": [None if i % 5 == 0 else float(i % 7) for i in range(82)],
    }
)


def engine_or_skip(master: str) -> None:
    """Skip, and say why, where an engine is missing."""
    try:
        check_master(master)
    except nd.UsageError as error:
        pytest.skip(str(error))


def decided(table: Any) -> list[tuple[Any, ...]]:
    """The rows of a DataFrame's decision, in the order of the ids."""
    rows = table.toArrow().sort_by("id").to_pylist()
    names = ("id", "kept", "kept_id", "distance", "similarity", "cluster")
    return [(*(row[name] for name in names), row.get("via")) for row in rows]


def decided_here(options: dict[str, Any], documents: pa.Table = DOCUMENTS) -> list[tuple[Any, ...]]:
    """What one machine decides, in the same form."""
    result = nd.dedup(documents, id="id", **options)
    assert len(result.duplicates), "nothing is dropped at all"
    ids = documents["id"].to_pylist()
    dropped = {row["dropped"]: row for row in result.duplicates.to_pylist()}
    cluster = [ids[at] for at in result.cluster.tolist()]
    return [
        (own, False, row["kept"], row["distance"], row["similarity"], group, row.get("via"))
        if (row := dropped.get(own))
        else (own, True, own, None, None, group, None)
        for own, group in zip(ids, cluster, strict=True)
    ]


def write_inputs(folder: Path) -> None:
    """Write the documents to three files in a folder."""
    for part in range(3):
        rows = DOCUMENTS.slice(part * 28, 28).to_pylist()
        lines = (json.dumps(row) + "\n" for row in rows)
        (folder / f"in{part}.jsonl").write_text("".join(lines), "utf-8")


def call(folder: Path, *options: str) -> None:
    """Call `neardup dedup` in a folder, in this process."""
    with contextlib.chdir(folder):
        app(["dedup", *options], standalone_mode=False)


def outputs(folder: Path, name: str) -> dict[str, bytes]:
    """What a run wrote whose outputs are called that: kept files and tables."""
    files = [*(folder / name).rglob("*"), *folder.glob(f"{name}.*")]
    return {
        str(file.relative_to(folder)).replace(name, "", 1): file.read_bytes()
        for file in sorted(files)
        if file.is_file()
    }
