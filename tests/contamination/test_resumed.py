"""A run that was killed at any write goes on, and its result is that of a run that was not."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neardup.pipeline.run.read_documents
from faults import Faults, KilledError
from neardup.contamination.cutting import Cut
from neardup.contamination.rules import leak_rule
from neardup.documents import ReadOptions
from neardup.errors import UsageError
from neardup.pipeline import Benchmarks, CleanOutputs, Limits, decontaminate_files
from suite import examples, needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_jit

QUIZ = ["one two three four", "five six seven eight nine", "a b"]
TEXTS = [
    "so one two three four", "FIVE six seven", "eight nine five six", "b a b", "", "a b a b c",
    "one two one two three four and five six seven eight nine",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _keep_often_and_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neardup.pipeline.run.read_documents, "SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # only a power cut could tell, and it is slow


class Case:
    """Files, and a command over them."""

    def __init__(self, folder: Path, texts: list[str], options: dict[str, Any]) -> None:
        self.folder, self.options = folder, options
        for name, own in (("one", texts[::2]), ("two", texts[1::2]), ("quiz", QUIZ)):
            rows = [json.dumps({"text": text}) for text in own]
            rows += ["{bad"] * (name == "one")
            (folder / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))

    def run(self, *, resume: bool = True, **changes: Any) -> dict[str, bytes]:
        """What the outputs hold after a run."""
        options = self.options | changes
        target = self.folder / "out"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        names = ("out.jsonl", "found.csv", "rejects.jsonl")
        decontaminate_files(
            [str(self.folder / "one.jsonl"), str(self.folder / "two.jsonl")],
            Benchmarks((str(self.folder / "quiz.jsonl"),), common=options.get("common")),
            CleanOutputs(
                *(str(target / name) for name in names),
                cut=options.get("cut"),
                resume=str(self.folder / "state") if resume else None,
            ),
            leak_rule(options.get("share"), name=options.get("rule")),
            ReadOptions(skip_errors=True, batch_bytes=20),
            Limits(1 << 20, None, 1),
        )
        return {path.name: path.read_bytes() for path in target.iterdir()}

    def run_killed(self, at: int) -> None:
        """Run until the n-th change of the state."""
        with pytest.MonkeyPatch.context() as patch:
            Faults(at).replace_os(patch)
            with contextlib.suppress(KilledError):
                self.run()


OPTIONS = [{}, {"common": 0.2}, {"cut": Cut(1)}, {"cut": Cut(0), "common": 0.4}, {"rule": "llama"}]


@settings(max_examples=examples(40, 10))
@given(
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=10),
    options=st.sampled_from(OPTIONS),
    kills=st.lists(st.integers(1, 100), min_size=1, max_size=4),
)
@example(TEXTS, OPTIONS[3], [60, 25, 9])
def test_a_run_killed_at_any_write_goes_on_with_the_same_result(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    options: dict[str, Any],
    kills: list[int],
) -> None:
    case = Case(tmp_path_factory.mktemp("run"), texts, options)
    expected = case.run(resume=False)
    for at in kills:
        case.run_killed(at)
    assert case.run() == expected
    assert not (case.folder / "state").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"share": 0.7}, "rule was"), ({"common": 0.3}, "common was"), ({"cut": Cut(2)}, "cut was")],
)
def test_another_run_does_not_go_on(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    case = Case(tmp_path, TEXTS, {})
    case.run_killed(20)
    with pytest.raises(UsageError, match=message):
        case.run(**changes)
    (tmp_path / "quiz.jsonl").write_text('{"text": "others"}\n')
    with pytest.raises(UsageError, match="questions was"):
        case.run()
