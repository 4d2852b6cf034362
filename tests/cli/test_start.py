"""How a process of the command line starts: what it leaves out, and for whom."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

import neardup
from neardup.__main__ import _is_on_spark, _LeftOut
from neardup.cli import app
from suite import examples

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
WORDS = ["spark", "local", "spark.jsonl", "--engine", "--engine=spark", "--engine=local", "-o"]
WORDS += ["out/", "--master", "sail", "--", "--json", "--json=spark", "--text"]


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_a_command_line_that_asks_for_spark_is_known_before_it_is_taken_apart(
    words: list[str],
) -> None:
    with suppress(Exception):  # wrong usage runs nowhere
        context = COMMANDS["dedup"].make_context("dedup", words.copy())
        if context.params["engine"] == "spark":
            assert _is_on_spark(["neardup", "dedup", *words])


@pytest.mark.parametrize("words", [["dedup", "spark.jsonl"], ["dedup", "--engine", "local"], []])
def test_a_name_with_spark_in_it_is_no_engine(words: list[str]) -> None:
    assert not _is_on_spark(["/opt/spark/bin/neardup", *words])


@pytest.mark.parametrize("asker", ["numba.core", "pyarrow.pandas_compat", "neardup.features"])
def test_arrow_and_numba_find_no_pandas(asker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_LeftOut, "NAMES", frozenset({"left_out"}))
    monkeypatch.setattr(sys, "meta_path", [_LeftOut, *sys.meta_path])
    for how in ("import left_out", "import importlib; importlib.import_module('left_out')"):
        with pytest.raises(ModuleNotFoundError, match="to start sooner"):
            exec(how, {"__name__": asker})  # noqa: S102
        with pytest.raises(ModuleNotFoundError, match="No module named"):
            exec(how, {"__name__": "fsspec.core"})  # noqa: S102


def test_the_first_handler_is_there_before_anything_slow_is_loaded() -> None:
    code = (
        "import sys\n"
        "slow = {'typing', 're', 'threading', 'importlib.util', 'typer'} - set(sys.modules)\n"
        "import neardup.__main__\n"
        "print(len(slow & set(sys.modules)))"
    )
    source = str(Path(neardup.__file__).parents[1])  # which -S, without site-packages, needs named
    process = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": source}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert process.stdout == "0\n"
