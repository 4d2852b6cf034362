"""A dry run tells what a run would take, and writes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from neardup.documents import ReadOptions
from neardup.errors import UsageError
from neardup.pipeline.estimate import estimate_run
from neardup.pipeline.run.matching import Matching
from neardup.pipeline.run.resources import Resources
from suite import JIT

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, count: int) -> Path:
    texts = [f"one two three four five six seven {i // 2}" for i in range(count)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "news.jsonl", 400)


def estimate(path: Path, matching: Matching, plan: str = "auto") -> dict[str, object]:
    return estimate_run([str(path)], matching, ReadOptions(), Resources(plan=plan)).to_dict()


def test_a_small_input_is_counted_not_extrapolated(corpus: Path) -> None:
    found = estimate(corpus, Matching())
    assert found["documents"] == 400
    assert found["sampled_bytes"] == found["input_bytes"] == corpus.stat().st_size
    assert found["features"] == 400 * 6
    assert found["tables"] == 0
    assert int(found["candidates"]) >= 200  # type: ignore[call-overload]
    assert [path.name for path in corpus.parent.iterdir()] == ["news.jsonl"]


def test_exact_mode_names_its_plan(corpus: Path) -> None:
    found = estimate(corpus, Matching(distance=3), plan="multi:5")
    assert found["search"] == "fingerprints, exact: multi:5"
    assert found["tables"] == 10


@pytest.mark.skipif(not JIT, reason="large")
def test_a_sample_stands_for_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = write(tmp_path / "large.jsonl", 400_000)
    monkeypatch.setattr("neardup.pipeline.estimate.SAMPLE_BYTES", 1)
    found = estimate_run([str(large)], Matching(distance=3), ReadOptions(), Resources())
    assert found.sampled_bytes < found.input_bytes / 2
    assert abs(found.documents - 400_000) < 60_000


def test_standard_input_cannot_be_sampled() -> None:
    with pytest.raises(UsageError, match="standard input"):
        estimate_run(["-"], Matching(), ReadOptions(), Resources())
