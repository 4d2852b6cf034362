"""An interrupt at any moment of `dedup --against --update`: the same again loses nothing."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

import neardup as nd
import neardup.pipeline.run.transaction
from damage import in_victim
from moments import COMMIT, Moments
from neardup.documents import ReadOptions
from neardup.documents.files.atomic import AtomicFile
from neardup.pipeline import Against, Choice, Limits, Outputs, dedup_files
from neardup.pipeline.run.rule import Rule
from suite import LONG

if TYPE_CHECKING:
    from pathlib import Path

RECIPE: Final = nd.Recipe(ngram=1)
KINDS: Final = [
    (Rule(recipe=RECIPE, distance=3), "none"),
    (Rule(recipe=RECIPE, similarity=0.6), "text"),
]
MONDAY: Final = ["a b c d e", "f g h i j", "a b c d e", "k l m n o"]
TUESDAY: Final = ["f g h i j", "p q r s t", "p q r s t", "u v w x y", "z y x w v", "k l m n"]


@pytest.fixture(autouse=True)
def _commit_often_and_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neardup.pipeline.run.transaction, "WAITING_BYTES", 1)
    monkeypatch.setattr(neardup.pipeline.run.transaction, "ROWS_A_CALL", 2)
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Day:
    """An index that has Monday's documents, and Tuesday's run."""

    def __init__(self, folder: Path, rule: Rule, store: str, resume: bool) -> None:
        folder.mkdir()
        self.folder, self.rule, self.resume = folder, rule, resume
        self.index = folder / "seen.index"
        nd.DurableIndex.create(self.index, distance=3, recipe=RECIPE, store=store).close()
        for name, texts in (("monday", MONDAY), ("tuesday", TUESDAY)):
            records = [{"id": f"{name[0]}{i}", "text": text} for i, text in enumerate(texts)]
            if name == "tuesday":
                records[1]["id"] = "m0"  # replaces one of Monday's
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (folder / f"{name}.jsonl").write_text(lines)
        self.run("monday", resume=False)

    def run(self, name: str = "tuesday", *, resume: bool | None = None) -> list[bytes]:
        paths = [str(self.folder / f"{name}.{each}.jsonl") for each in ("kept", "dropped")]
        state = str(self.folder / "state") if resume or (resume is None and self.resume) else None
        dedup_files(
            [str(self.folder / f"{name}.jsonl")], Outputs(*paths, resume=state), self.rule,
            Choice(), ReadOptions(id="id"), Limits(1 << 20),
            against=Against(str(self.index), update=True),
        )  # fmt: skip
        return [(self.folder / f"{name}.{each}.jsonl").read_bytes() for each in ("kept", "dropped")]

    def moments(self, at: int, kills: bool) -> int:
        """Run until a moment; how many there are."""
        moments = Moments(at, kills)
        with moments, contextlib.suppress(KeyboardInterrupt):
            self.run()
        return moments.count

    def interrupted(self, at: int, kills: bool) -> None:
        """In a process of its own, run until a moment."""
        in_victim(lambda: self.moments(at, kills) * 0, self.folder / "log")

    def contents(self) -> list[Any]:
        with nd.DurableIndex.open(self.index, readonly=True) as index:
            return sorted(index)


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(("rule", "store"), KINDS)
def test_the_same_command_again_gives_the_same(
    rule: Rule, store: str, resume: bool, kills: bool, tmp_path: Path
) -> None:
    whole = Day(tmp_path / "whole", rule, store, resume)
    moments = whole.moments(10**9, kills)
    assert moments > 15
    other = Day(tmp_path / "other", rule, store, resume)
    expected, known = other.run(), other.contents()
    assert whole.run() == expected  # after its end as well
    for at in range(1, moments + 1, 1 if LONG else 5):
        day = Day(tmp_path / str(at), rule, store, resume)
        day.interrupted(at, kills)
        assert day.run() == expected, f"at {at} of {moments}"
        assert day.contents() == known, f"at {at} of {moments}"


def test_another_output_is_another_command(tmp_path: Path) -> None:
    day = Day(tmp_path / "day", *KINDS[0], resume=False)
    day.run()
    result = nd.dedup(
        [str(day.folder / "tuesday.jsonl")], day.folder / "again.jsonl", recipe=RECIPE,
        distance=3, id="id", against=day.index, update=True,
    )  # fmt: skip
    assert not result.kept.any()


def test_after_others_came_the_outputs_stay_as_they_are(tmp_path: Path) -> None:
    day = Day(tmp_path / "day", *KINDS[0], resume=False)
    expected = day.run()
    with nd.DurableIndex.open(day.index) as index:
        index.add("other", "nothing like it")
    with pytest.raises(nd.UsageError, match=r"got other documents after this run's outputs"):
        day.run()
    kept = (day.folder / "tuesday.kept.jsonl").read_bytes()
    assert kept == expected[0]


def test_a_run_that_failed_before_its_outputs_appeared_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, late = (Day(tmp_path / name, *KINDS[0], resume=False) for name in ("day", "late"))
    with monkeypatch.context() as patch:
        patch.setattr(AtomicFile, "publish", fail)
        with pytest.raises(nd.FileError, match="a full disk"):
            day.run()
    for each in (day, late):
        with nd.DurableIndex.open(each.index) as index:
            index.add("other", TUESDAY[1])
    assert day.run() == late.run()
    assert day.contents() == late.contents()


def test_a_full_disk_of_the_index_says_that_the_outputs_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, other = (Day(tmp_path / name, *KINDS[0], resume=False) for name in ("day", "other"))

    def fails_once(index: nd.DurableIndex) -> None:
        monkeypatch.setattr(nd.DurableIndex, "commit", COMMIT)
        fail(index)

    monkeypatch.setattr(nd.DurableIndex, "commit", fails_once)
    message = r"a full disk; the outputs are written, but .*same command again"
    with pytest.raises(nd.FileError, match=message):
        day.run()
    assert day.run() == other.run()
    assert day.contents() == other.contents()


def fail(_: Any) -> None:
    raise nd.FileError("a full disk")


def test_a_damaged_decision_is_no_decision(tmp_path: Path) -> None:
    day = Day(tmp_path / "day", *KINDS[0], resume=False)
    path = day.index / "last-update"
    path.write_bytes(path.read_bytes()[:-1])
    assert day.run()[0]
