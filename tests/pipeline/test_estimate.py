"""A dry run tells what a run would take, and writes nothing."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from neardup.documents import ReadOptions
from neardup.errors import DataError, UsageError
from neardup.pipeline import Choice, Limits, Rule
from neardup.pipeline.estimate import Estimate, estimate_run

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, count: int) -> Path:
    texts = [f"one two three four five six seven {i // 2}" for i in range(count)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "news.jsonl", 400)


def estimate(*paths: Path, rule: Rule, plan: str = "auto") -> Estimate:
    names = [str(path) for path in paths]
    return estimate_run(names, rule, Choice(), ReadOptions(), Limits(plan=plan))


def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.pipeline.estimate.SAMPLE_BYTES", 1)
    monkeypatch.setattr("neardup.pipeline.estimate.LEAST_BYTES", 3 << 20)


def test_a_small_input_is_counted_not_extrapolated(corpus: Path) -> None:
    counted = estimate(corpus, rule=Rule())
    assert counted.documents == 400
    assert counted.sampled_bytes == counted.input_bytes == corpus.stat().st_size
    assert counted.features == 400 * 6
    assert counted.tables == 0
    assert counted.candidates >= 200
    assert counted.notes == ()
    assert str(counted).startswith("sampled     100% of 0.0 MB\n")
    assert [path.name for path in corpus.parent.iterdir()] == ["news.jsonl"]


def test_exact_mode_names_its_plan(corpus: Path) -> None:
    planned = estimate(corpus, rule=Rule(distance=3), plan="multi:5")
    assert planned.search == "fingerprints, exact: multi:5"
    assert planned.tables == 10


@pytest.mark.parametrize("rule", [Rule(), Rule(distance=3)])
@pytest.mark.parametrize("packed", [False, True])
def test_the_beginning_stands_for_the_whole_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: Rule, packed: bool
) -> None:
    small_sample(monkeypatch)
    monkeypatch.setattr("neardup.pipeline.estimate.UNSURE_TIMES", 2)
    path = write(tmp_path / "news.jsonl", 200_000)
    if packed:
        path = tmp_path / "news.jsonl.gz"
        lines = (tmp_path / "news.jsonl").read_bytes()
        path.write_bytes(gzip.compress(lines, 0))  # stored: longer than the buffer of the reader
    part = estimate(path, rule=rule)
    assert part.sampled_bytes < part.input_bytes / 2
    assert abs(part.documents - 200_000) < 70_000
    assert f"only the beginning of {path} was read" in part.notes[0]
    assert f"note        {part.notes[0]}" in str(part)
    assert any("may take several times as long" in x for x in part.notes) is rule.by_features


class _Clock:
    """A clock that is a second later whenever somebody looks at it."""

    def __init__(self) -> None:
        self.looks = 0

    def perf_counter(self) -> float:
        self.looks += 1
        return self.looks


@pytest.mark.parametrize("inputs", [1, 2])
def test_a_search_by_features_grows_faster_than_the_input_and_all_else_as_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: int
) -> None:
    small_sample(monkeypatch)
    monkeypatch.setattr("neardup.pipeline.estimate.MOST_INPUTS", 1)
    clock = _Clock()
    monkeypatch.setattr("neardup.pipeline.estimate.time", clock)
    part = estimate(*(write(tmp_path / f"{i}.jsonl", 200_000) for i in range(inputs)), rule=Rule())
    times = part.input_bytes / part.sampled_bytes
    batches = clock.looks // 4 - 1  # each is read and taken; then all are finished and matched
    seconds = (2 * batches + 1) * times + times**1.2 + part.input_bytes / 1e9
    assert times > 2
    assert part.seconds == pytest.approx(seconds, rel=1e-3)


def test_a_search_by_distance_is_shared_among_workers(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(workers: int) -> float:
        monkeypatch.setattr("neardup.pipeline.estimate.time", _Clock())
        limits = Limits(workers=workers, plan="multi:5")
        rule = Rule(distance=3)
        return estimate_run([str(corpus)], rule, Choice(), ReadOptions(), limits).seconds

    one, two, four = map(seconds, (1, 2, 4))
    assert one - two == pytest.approx(2 * (two - four))
    assert one > two


def test_each_input_has_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_sample(monkeypatch)
    paths = [write(tmp_path / f"{i}.jsonl", 100 + 200 * i) for i in range(5)]
    assert abs(estimate(*paths, rule=Rule()).documents - 2_500) < 250


def test_of_very_many_inputs_some_stand_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.pipeline.estimate.MOST_INPUTS", 10)
    paths = [write(tmp_path / f"{i}.jsonl", 100) for i in range(50)]
    some = estimate(*paths, rule=Rule(distance=3))
    assert abs(some.documents - 5_000) < 500
    assert any("40 inputs were not read" in note for note in some.notes)


@pytest.mark.parametrize("rule", [Rule(), Rule(distance=3)])
def test_of_nothing_it_says_nothing(tmp_path: Path, rule: Rule) -> None:
    nothing = estimate(write(tmp_path / "empty.jsonl", 0), rule=rule)
    assert (nothing.documents, nothing.features, nothing.notes) == (0, 0, ())


def test_standard_input_cannot_be_sampled() -> None:
    with pytest.raises(UsageError, match="standard input"):
        estimate_run(["-"], Rule(), Choice(), ReadOptions(), Limits())


def test_a_plan_says_what_is_rejected_and_fails_where_nothing_is_left(tmp_path: Path) -> None:
    path, read = tmp_path / "news.jsonl", ReadOptions(skip_errors=True)
    path.write_text('{"text": "one two three four"}\n' + 2 * "no record\n")
    summary = estimate_run([str(path)], Rule(), Choice(), read, Limits())
    assert summary.notes[0].startswith("2 of 3 records were rejected: check that the options")
    path.write_text(2 * "no record\n")
    with pytest.raises(DataError, match="no record is left: 2 of 2 were rejected"):
        estimate_run([str(path)], Rule(), Choice(), read, Limits())
