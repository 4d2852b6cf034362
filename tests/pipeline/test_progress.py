"""A run tells where it is: every step through files or features ends at its total."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.documents import ReadOptions
from neardup.pipeline import Limits, Outputs, dedup_files
from neardup.pipeline.index_files import add_files
from neardup.pipeline.run.rule import Choice, Rule

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [
    f"document {i // 2} says something {i // 2} that no other {i // 2} says" for i in range(60)
]


class Steps:
    """The totals of the steps, and how far each went."""

    def __init__(self) -> None:
        self.totals: dict[str, int | None] = {}
        self.done: dict[str, int] = {}

    def begin(self, step: str, total: int | None = None) -> None:
        self._step = step
        self.totals[step], self.done[step] = total, 0

    def advance(self, units: int) -> None:
        assert units >= 0
        self.done[self._step] += units


def inputs(folder: Path, kind: str) -> list[str]:
    folder.mkdir()
    lines = b"".join(orjson.dumps({"text": text}) + b"\n" for text in TEXTS)
    if kind == "text":
        for i, text in enumerate(TEXTS):
            (folder / f"{i}.txt").write_text(text)
        return [str(folder)]
    if kind == "csv":
        (folder / "in.csv").write_text("text\n" + "\n".join(TEXTS))
    elif kind == "parquet":
        pq.write_table(pa.table({"text": TEXTS}), folder / "in.parquet", row_group_size=20)
    elif kind == "json":
        (folder / "in.json").write_bytes(b"[" + lines.strip().replace(b"\n", b",") + b"]")
    else:
        for name in ("a.jsonl.gz", "b.jsonl.gz"):
            (folder / name).write_bytes(gzip.compress(lines))
    return sorted(map(str, folder.iterdir()))


@pytest.mark.parametrize("kind", ["text", "csv", "parquet", "json", "jsonl.gz"])
def test_every_step_ends_at_its_total(tmp_path: Path, kind: str) -> None:
    paths, steps = inputs(tmp_path / "in", kind), Steps()
    outputs = Outputs(f"{tmp_path}/out/")
    arguments: Any = (Rule(), Choice(), ReadOptions(), Limits(), steps)
    summary = dedup_files(paths, outputs, *arguments).summary
    assert summary.dropped >= 30
    assert list(steps.totals) == ["read", "match", "write"]
    assert steps.done == steps.totals
    assert steps.totals["write"] == steps.totals["read"] == summary.nbytes


def test_a_step_of_unknown_length_says_so_and_one_without_outputs_is_none(tmp_path: Path) -> None:
    paths, steps = inputs(tmp_path / "in", "csv"), Steps()
    outputs = Outputs(clusters=f"{tmp_path}/c.csv")
    dedup_files(paths, outputs, Rule(distance=3), Choice(), ReadOptions(), Limits(), steps)
    assert steps.totals["match"] is None
    assert (steps.totals["write"], steps.done["write"]) == (0, 0)


def test_an_index_advances_by_the_bytes_that_it_reads(tmp_path: Path) -> None:
    paths, steps = inputs(tmp_path / "in", "csv"), Steps()
    with nd.DurableIndex.open(tmp_path / "index", recipe=nd.Recipe(), similarity=0.8) as index:
        add_files(index, paths, ReadOptions(), progress=steps)
        assert len(index) == len(TEXTS)
    assert steps.done == steps.totals == {"add": (tmp_path / "in/in.csv").stat().st_size}
