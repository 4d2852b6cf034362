"""Questions are found in files on Sail as on one machine, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commands import Here, lines
from spark_cases import WARNINGS, engine_or_skip
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [*WARNINGS, needs_jit]

QUIZ = [f"question {n} asks how many moons the planet number {n} has" for n in range(9)]
WORDS = " ".join(f"w{n}" for n in range(40))
RULES = [
    ("--share", "0.6"), ("--run", "5", "--common", "0.2"), ("--rule", "llama"),
    ("--common", "0.05", "--on-error", "skip", "--rejects", "rejects.jsonl"),
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in a folder with documents and questions."""
    quiz = [*QUIZ, WORDS, "asks how many"]
    (tmp_path / "quiz.jsonl").write_bytes(lines([{"text": text} for text in quiz]))
    halves = [f"x {WORDS[:60]}", f"y {WORDS[50:]}"]
    for part in range(4):
        texts = [f"{n} {QUIZ[n % 9].upper()}" if n % 5 == part else f"none {n}" for n in range(20)]
        rows = lines([{"id": f"{part}-{n}", "text": x} for n, x in enumerate([*texts, *halves])])
        (tmp_path / f"in{part}.jsonl").write_bytes(rows)
    return Here(tmp_path, monkeypatch, capfd)


@pytest.mark.parametrize("rule", RULES)
def test_files_come_out_byte_for_byte(here: Here, rule: tuple[str, ...]) -> None:
    engine_or_skip("sail")
    if "skip" in rule:
        with (here.folder / "in1.jsonl").open("a") as file:
            file.write("{bad\n")
    result = []
    for engine in ("local", "spark"):
        summary = here.summary(
            "decontaminate", "in*.jsonl", "--against", "quiz.jsonl", "--id", "id",
            "--question-id", "text", "-o", f"{engine}/", "--found", f"{engine}.csv",
            "--engine", engine, *rule,
        )  # fmt: skip
        names = ("read", "kept", "dropped", "rejected", "findings", "common", "benchmarks",
                 "nbytes", "settings")  # fmt: skip
        files = [f"{engine}.csv", *(f"{engine}/in{part}.jsonl" for part in range(4))]
        contents = [(here.folder / name).read_bytes() for name in files]
        if "skip" in rule:
            contents.append((here.folder / "rejects.jsonl").read_bytes())
        result.append(([summary[name] for name in names], contents))
    assert result[0] == result[1]
    assert result[0][0][4] > 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("-o c/ --cut 1", 2, "--cut requires --engine local"),
        ("-o c.jsonl", 2, "name a folder/"),
        ("-o c/ --text body", 1, 'no field "body"'),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    here: Here, options: str, code: int, message: str
) -> None:
    engine_or_skip("sail")
    _, err = here("decontaminate", "in*.jsonl", "--against", "quiz.jsonl", "--parts", "text",
                  "--engine", "spark", *options.split(), code=code)  # fmt: skip
    assert message in err
    assert len(err.splitlines()) == 1
    assert not list(here.folder.glob("c*"))
