"""What users' type checkers see: ids and answers have types, and nonsense is refused."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import neardup as nd
from neardup.index import AnyIndex

USER = """
from collections.abc import Sequence

import neardup as nd
from neardup.index import Answer, AnyIndex, Hits, Id


def nearest_id(index: nd.Index, text: str) -> Id | None:
    hits: Hits[int] = index.query(text)
    return hits[0][0] if hits else None


def first_seen(index: nd.DurableIndex, name: str, text: str) -> tuple[Id, int] | None:
    return index.add_if_new(name, text, stored="keep")


def crawl(index: AnyIndex, names: Sequence[str], texts: Sequence[str]) -> list[Id]:
    answer: Answer = index.offer(names[0], texts[0])
    if answer.near is not None:
        near, closeness = answer.near
        print(closeness + 1.0, answer.is_new, answer.state == "seen")
    index.add_new(names, texts)
    index.touch(names)
    ages: list[float] = index.times(names).tolist()
    index.commit()
    return [identity for text in texts for identity, _ in index.query(text)] if ages else []


def both() -> None:
    with nd.DurableIndex.open("seen", distance=3) as durable:
        crawl(durable, ["a"], ["a text"])
        stored: int = durable.add(["a", "b"], [1, 2])
        print(stored + durable.remove("a"))
    crawl(nd.Index(similarity=0.8, recipe=nd.Recipe()), ["a"], ["a text"])
"""
WRONG = {
    "index.add(3.5, 7)": "add",
    "index.add('a', object())": "add",
    "index.add_if_new(['a'], 7)": "add_if_new",
    "index.add_if_new('a', 7, stored='drop')": "stored",
    "index.query('a').append(3)": "append",
    "index.touch(2.5)": "touch",
}


def checked(tmp_path: Path, code: str) -> str:
    """What mypy --strict says of a user's module, who has the package installed."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "user.py").write_text(code)
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-pyarrow.*]\nignore_missing_imports = True\n")
    source = str(Path(nd.__file__).parent.parent)
    process = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "user.py"],
        cwd=tmp_path, env=os.environ | {"MYPYPATH": source}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    return process.stdout


@pytest.mark.timeout(300)
def test_a_user_needs_no_any_under_strict_rules(tmp_path: Path) -> None:
    assert (Path(nd.__file__).parent / "py.typed").exists()
    calls = "\n    ".join(WRONG)
    errors = checked(tmp_path, f"{USER}\n\ndef wrong(index: nd.Index) -> None:\n    {calls}\n")
    begin = USER.count("\n") + 4
    lines = {int(line.split(":")[1]) - begin for line in errors.splitlines() if ": error:" in line}
    assert lines == set(range(len(WRONG))), errors


@pytest.mark.timeout(300)
def test_pyright_agrees(tmp_path: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "user.py").write_text(USER)
    environment = os.environ | {"PYTHONPATH": str(Path(nd.__file__).parent.parent)}
    process = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "user.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "0 errors" in process.stdout, process.stdout


def test_every_kind_of_index_has_the_calls_of_all(tmp_path: Path) -> None:
    kinds = [
        nd.Index(distance=1),
        nd.Index(similarity=0.5),
        nd.DurableIndex.open(tmp_path / "distance"),
        nd.DurableIndex.open(tmp_path / "similarity", similarity=0.5),
    ]
    for index in kinds:
        assert isinstance(index, AnyIndex)
        with index:
            assert not index.closed
            index.commit()
            index.check()
            index.close()
