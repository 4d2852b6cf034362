"""A dry run tells what a run would take, and writes nothing."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING

import pytest

from neardup.documents import ReadOptions
from neardup.errors import UsageError
from neardup.pipeline.estimate import _Input, _Read, estimate_run
from neardup.pipeline.run.matching import Matching
from neardup.pipeline.run.resources import Resources

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.pipeline.run.collection import Collection

TAKE = _Input.take


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


def test_a_sample_stands_for_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = write(tmp_path / "large.jsonl", 400_000)
    monkeypatch.setattr("neardup.pipeline.estimate.SAMPLE_BYTES", 1)
    found = estimate_run([str(large)], Matching(distance=3), ReadOptions(), Resources())
    assert found.sampled_bytes < found.input_bytes / 2
    assert abs(found.documents - 400_000) < 60_000


def test_the_sample_is_spread_over_an_input_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long documents come first: their number does not stand for that of the short ones."""
    monkeypatch.setattr("neardup.pipeline.estimate.SAMPLE_BYTES", 1 << 20)
    path, long = tmp_path / "mixed.jsonl", "word " * 400
    count = 10_000
    lines = [json.dumps({"text": f"{long} {i}"}) for i in range(count // 10)]
    lines += [json.dumps({"text": f"short {i}"}) for i in range(count)]
    path.write_text("\n".join(lines) + "\n")
    found = estimate_run([str(path)], Matching(distance=3), ReadOptions(), Resources())
    assert found.documents == len(lines)
    assert found.notes == ()


def test_it_is_bounded_and_says_what_it_could_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.pipeline.estimate.READ_SECONDS", 0.0)
    monkeypatch.setattr("neardup.pipeline.estimate.MATCH_SECONDS", 0.0)
    large = write(tmp_path / "large.jsonl", 800_000)
    found = estimate_run([str(large)], Matching(), ReadOptions(), Resources())
    assert found.sampled_bytes < found.input_bytes
    assert "% of the input" in found.notes[0]
    assert "among 500 documents" in found.notes[1]
    assert f"note        {found.notes[1]}" in str(found)


def long_ones_first(path: Path, scale: int) -> int:
    """Write documents of which the later ones are short; how many there are."""
    texts = [f"{'word ' * 400} {i}" for i in range(scale)]
    texts += [f'short, "{i}"\nof two lines' for i in range(20 * scale)]
    with path.open("w", encoding="utf8", newline="") as file:
        if path.suffix == ".csv":
            rows = csv.writer(file)
            rows.writerow(["id", "text"])
            rows.writerows([i, text] for i, text in enumerate(texts))
        else:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    return len(texts)


@pytest.mark.parametrize("name", ["long.jsonl", "long.csv"])
def test_a_long_file_is_sampled_at_places_spread_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("neardup.pipeline.estimate.SAMPLE_BYTES", 4 << 20)
    monkeypatch.setattr("neardup.pipeline.estimate.READ_SECONDS", 1e-9)
    monkeypatch.setattr("neardup.pipeline.estimate._Input.take", all_but_the_front)
    path = tmp_path / name
    count = long_ones_first(path, 6_000)
    found = estimate_run([str(path)], Matching(distance=3), ReadOptions(), Resources())
    assert abs(found.documents - count) < count / 8
    assert "places spread over it" in found.notes[0]
    assert not any("only the beginning" in note for note in found.notes)


def all_but_the_front(
    self: _Input, collection: Collection, seen: _Read, seconds: float, *, every: bool
) -> bool:
    """All places, however slow the machine is; of the front one batch."""
    return TAKE(self, collection, seen, 60.0 if every else seconds, every=every)


def test_a_compressed_file_is_said_to_be_read_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.pipeline.estimate.BATCH_BYTES", 1 << 16)
    monkeypatch.setattr("neardup.pipeline.estimate.READ_SECONDS", 1e-9)
    plain = write(tmp_path / "news.jsonl", 20_000)
    packed = tmp_path / "news.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = estimate_run([str(packed)], Matching(distance=3), ReadOptions(), Resources())
    assert any("of " in note and "only the beginning" in note for note in found.notes)


def test_of_very_many_inputs_some_stand_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.pipeline.estimate.READ_SECONDS", 1e-9)
    paths = [str(write(tmp_path / f"{i}.jsonl", 100)) for i in range(50)]
    found = estimate_run(paths, Matching(distance=3), ReadOptions(), Resources())
    assert abs(found.documents - 5_000) < 500
    assert any("inputs were not read" in note for note in found.notes)


@pytest.mark.parametrize("matching", [Matching(), Matching(distance=3)])
def test_of_nothing_it_says_nothing(tmp_path: Path, matching: Matching) -> None:
    empty = write(tmp_path / "empty.jsonl", 0)
    found = estimate_run([str(empty)], matching, ReadOptions(), Resources())
    assert (found.documents, found.features, found.notes) == (0, 0, ())


def test_standard_input_cannot_be_sampled() -> None:
    with pytest.raises(UsageError, match="standard input"):
        estimate_run(["-"], Matching(), ReadOptions(), Resources())
