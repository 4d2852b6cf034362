"""After `neardup compile` nothing compiles: not in a run of any command, nor in the service."""

from __future__ import annotations

import json
import random
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from suite import needs_jit, without_kernels

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS: Final = """
dedup docs.jsonl -o default.jsonl --duplicates pairs.csv
dedup docs.jsonl -o reported.jsonl --report report.html
dedup docs.jsonl -o components.jsonl -s 0.5 --policy components --clusters clusters.csv
dedup docs.jsonl -o distance.jsonl --distance 3
dedup docs.jsonl -o dense.jsonl --distance 3 --policy components
dedup docs.jsonl -o new.jsonl --against few.jsonl
dedup docs.jsonl -o contained.jsonl --measure containment
dedup docs.jsonl -o cosine.jsonl --measure cosine --keep longest
dedup docs.jsonl -o small.jsonl --memory 64M
fingerprint docs.jsonl -o codes.parquet
pairs codes.parquet -o codes.csv
calibrate docs.jsonl
calibrate docs.jsonl --similarity 0.8
lines docs.jsonl -o lines.jsonl
decontaminate docs.jsonl --against few.jsonl -o clean.jsonl
show pairs.csv docs.jsonl
compare --text-a "one two three" --text-b "one two four"
explain --text-a "one two three"
idf learn docs.jsonl -o table.idf
index create similar -s 0.8
index add similar docs.jsonl
index query similar few.jsonl
index nearest similar few.jsonl
index compact similar
index create near --distance 3
index add near docs.jsonl
index query near few.jsonl
index nearest near few.jsonl
dedup docs.jsonl -o seen.jsonl --against similar
"""


@needs_jit
def test_after_compile_nothing_compiles(tmp_path: Path) -> None:
    draw, words = random.Random(1), [f"word{number}" for number in range(500)]
    texts = [" ".join(draw.choices(words, k=60)) for _ in range(300)]
    texts += [text.replace("word1 ", "other ") for text in texts[:100]]
    rows = [json.dumps({"id": row, "text": text}) + "\n" for row, text in enumerate(texts)]
    (tmp_path / "docs.jsonl").write_text("".join(rows))
    (tmp_path / "few.jsonl").write_text("".join(rows[:50]))
    run(tmp_path, "compile")
    first = kernels(tmp_path)
    assert len(first) > 100
    late = {}
    for command in COMMANDS.strip().splitlines():
        run(tmp_path, *shlex.split(command))
        late[command] = kernels(tmp_path) - first
        first |= late[command]
    for index in ("similar", "near"):
        serve(tmp_path, index)
        late[index] = kernels(tmp_path) - first
    assert not {each: sorted(names) for each, names in late.items() if names}


def run(folder: Path, *arguments: str) -> None:
    """Run a command, which must not fail."""
    process = subprocess.run(
        program(*arguments), cwd=folder, env=without_kernels(folder / "kernels"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, (arguments, process.stderr)


def serve(folder: Path, index: str) -> None:
    """Start the service, and end it once it is ready."""
    pytest.importorskip("uvicorn")
    with subprocess.Popen(
        program("serve", index, "--port", "0"), cwd=folder, env=without_kernels(folder / "kernels"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert any('"ready"' in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "neardup", *arguments]


def kernels(folder: Path) -> set[str]:
    """The names of the files of kernels."""
    return {path.name for path in (folder / "kernels").rglob("*.nbc")}
