"""Small inputs: what counts as small, and that plain kernels write the same bytes."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

import neardup as nd
from commands import without_notice
from neardup.cli import app, small_inputs
from neardup.cli.small_inputs import FIRST, OWN_PROCESS, SMALL
from neardup.kernels import folders
from strategies import LETTERS, PHRASES
from suite import needs_jit

COMMANDS: Final = """
dedup docs.jsonl -o default.jsonl --duplicates default.csv --clusters clusters.tsv
dedup docs.jsonl -o components.jsonl -s 0.5 --policy components --clusters components.csv
dedup docs.jsonl -o reported.jsonl --report report.html --summary summary.json
dedup docs.jsonl -o distance.jsonl --distance 3 --duplicates distance.csv
dedup docs.jsonl -o wide.jsonl --distance 40 --bits 256 --policy components --weight count
dedup docs.jsonl -o md5.jsonl --hash md5 --tokens chars --ngram 4 -s 0.6
dedup docs.jsonl -o contained.jsonl --measure containment --keep longest
dedup docs.jsonl -o against.jsonl --against few.csv
dedup pages -o unique/ --extract main
decontaminate docs.jsonl --against few.csv -o clean.jsonl
lines docs.jsonl -o lines.jsonl --seen-in 2 --min-words 1
fingerprint docs.jsonl -o fingerprints.csv --weight textrank
compare --text-a "one two three" --text-b "one two four" --json
explain few.csv:2 --json
index create similar -s 0.6
index add similar docs.jsonl
index query similar few.csv
index nearest similar few.csv
index create near --distance 5
index add near docs.jsonl
index query near few.csv
"""
RUN: Final = """
import shlex, sys
from neardup.cli import run
from neardup.runtime.signals import Interrupts
for line in sys.stdin.read().splitlines():
    sys.argv = ["neardup", *shlex.split(line)]
    assert run(Interrupts(), has_own_process=True) == 0, line
assert ("numba" in sys.modules) == COMPILES
"""
INDEXES: Final = ("similar", "near")
"""Folders whose files have times and numbers of processes; queries show what is stored."""
SWITCH: Final = "NUMBA_DISABLE_JIT"
TIMES: Final = re.compile(rb"seconds +.*|[0-9.,]+ s\b|\"seconds\": (\{[^}]*\}|[0-9.]+)")


@needs_jit
def test_plain_kernels_write_the_same_bytes(tmp_path: Path) -> None:
    compiled, plain = outputs(tmp_path / "compiled", "0"), outputs(tmp_path / "plain", None)
    assert sorted(compiled) == sorted(plain)
    assert [name for name in compiled if compiled[name] != plain[name]] == []


def outputs(folder: Path, switch: str | None) -> dict[str, bytes]:
    """What the commands write to files, standard output and standard error, without times."""
    folder.mkdir()
    write_documents(folder)
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    if switch is not None:
        environment[SWITCH] = switch
    program = RUN.replace("COMPILES", str(switch is not None))
    process = subprocess.run(
        [sys.executable, "-c", program], input=COMMANDS.strip().encode(), env=environment,
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr.decode()
    paths = [
        each for each in folder.rglob("*") if each.is_file() and each.parent.name not in INDEXES
    ]
    written = {str(each.relative_to(folder)): each.read_bytes() for each in paths}
    errors = without_notice(process.stderr.decode())
    written |= {"output": process.stdout, "errors": errors.encode()}
    return {name: TIMES.sub(b"", value) for name, value in written.items()}


def write_documents(folder: Path) -> None:
    """Texts of all scripts, some of them nearly equal, and two pages."""
    draw = random.Random(1)
    letters = "".join("".join(LETTERS[name]) for name in LETTERS if name != "surrogates")
    texts = [" ".join(draw.choices(PHRASES, k=8)) for _ in range(25)]
    texts += [" ".join("".join(draw.choices(letters, k=4)) for _ in range(20)) for _ in range(10)]
    texts += [text.replace(" ", "  ", 1).upper() for text in texts[:8]] + ["", "one", "a b c"]
    rows = [json.dumps({"id": row, "text": text}) + "\n" for row, text in enumerate(texts)]
    (folder / "docs.jsonl").write_text("".join(rows))
    lines = ["text", *(re.sub(r'[",\s]+', " ", text) for text in texts[:5])]
    (folder / "few.csv").write_text("\n".join(lines) + "\n", encoding="utf8")
    (folder / "pages").mkdir()
    for name in ("one", "two"):
        page = f"<html><body><nav>{name}</nav><p>{texts[0]}</p><p>{texts[1]}</p></body></html>"
        (folder / "pages" / f"{name}.html").write_text(page, encoding="utf8")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with inputs of several kinds, where nothing is compiled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(small_inputs, "_has_kernels", lambda: False)
    line = json.dumps({"text": "x" * 80}) + "\n"
    Path("small.jsonl").write_text(line)
    Path("more.csv").write_text("text\n" + "one two\n" * 1000)
    Path("many.csv").write_text("text\n" + "one two\n" * 3000)
    Path("lines.txt").write_text("one two\n" * 3000)
    Path("array.json").write_text(json.dumps([{"text": "one two"}] * 3000))
    Path("wide.jsonl").write_text(json.dumps({"text": "x" * SMALL}) + "\n")
    Path("large.jsonl").write_text(json.dumps({"text": "x" * FIRST}) + "\n")
    Path("packed.jsonl").write_bytes(gzip.compress(line.encode()))
    Path("packed.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    Path("table.parquet").write_bytes(b"PAR1" * 10)
    Path("packed").write_bytes(gzip.compress(bytes(range(256))))
    for name, count in (("folder", 2), ("full", small_inputs.MOST_FILES + 1)):
        Path(name).mkdir()
        for number in range(count):
            Path(name, f"{number}.txt").write_text("one two")
    return tmp_path


def is_small(command: str) -> bool:
    """Whether all that a command reads is small."""
    name, *words = command.split()
    parsed: Any = get_command(app).commands[name]  # type: ignore[attr-defined]
    if name == "index":
        parsed = parsed.commands[words.pop(0)]
    with parsed.make_context(name, words) as context:
        return small_inputs.is_small(parsed, context.params)


@pytest.mark.parametrize(
    "command",
    [
        "dedup small.jsonl",
        "dedup small.jsonl small.jsonl folder",
        "dedup small.jsonl --against folder",
        "dedup lines.txt -o folder/",
        "dedup small.jsonl -o table.parquet --duplicates packed.jsonl.gz --tmp full",
        "compare --text-a one --text-b two",
        "index add folder small.jsonl",
    ],
)
@pytest.mark.usefixtures("here")
def test_whatis_small_runs_plain(command: str) -> None:
    assert is_small(command)


@pytest.mark.parametrize(
    "command",
    [
        "dedup -",
        "dedup small.jsonl -",
        "dedup missing.jsonl",
        "dedup s3://bucket/small.jsonl",
        "dedup small*.jsonl",
        "dedup packed.jsonl",
        "dedup packed.jsonl.gz",
        "dedup packed",
        "dedup table.parquet",
        "dedup large.jsonl",
        "dedup many.csv",
        "dedup array.json",
        "dedup lines.txt --format csv",
        "dedup full",
        "dedup" + " wide.jsonl" * 8,
        "dedup small.jsonl --engine spark",
        "dedup small.jsonl --against large.jsonl",
        "dedup small.jsonl --against http://127.0.0.1:1",
        "dedup small.jsonl --decisions large.jsonl",
        "index create new",
    ],
)
@pytest.mark.usefixtures("here")
def test_what_is_large_or_unknown_is_compiled(command: str) -> None:
    assert not is_small(command)


@pytest.mark.usefixtures("here")
def test_a_limit_is_lower_where_kernels_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    medium = ["dedup wide.jsonl", "dedup more.csv"]
    assert all(map(is_small, medium))
    monkeypatch.setattr(small_inputs, "_has_kernels", lambda: True)
    assert not any(map(is_small, medium))
    assert is_small("dedup small.jsonl")


@needs_jit
def test_kernels_are_seen_in_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nd.fingerprint("one two three")
    assert folders.hold_kernels()
    monkeypatch.setattr(folders, "folders", lambda: (tmp_path,))
    assert not folders.hold_kernels()


@pytest.mark.parametrize(("own", "switch"), [(False, None), (True, "0"), (True, "1")])
def test_a_program_and_a_switch_decide_for_themselves(
    here: Path, monkeypatch: pytest.MonkeyPatch, own: bool, switch: str | None
) -> None:
    monkeypatch.delenv(SWITCH)
    if switch is not None:
        monkeypatch.setenv(SWITCH, switch)
    arguments = ["dedup", str(here / "small.jsonl"), "-o", str(here / "out.jsonl")]
    app(arguments, standalone_mode=False, obj=OWN_PROCESS if own else None)
    assert os.environ.get(SWITCH) == switch
