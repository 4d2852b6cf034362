"""The examples of docs/guide/serve.md: what a reader types is answered as it is shown."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from services import Service
from suite import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "guide" / "serve.md"
ADDRESS = "http://127.0.0.1:8080"


def test_what_the_guide_shows_is_what_comes(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    examples = [part for block in blocks for part in block.split("\n\n") if part.startswith("curl")]
    assert len(examples) == 2
    with Service(tmp_path / "index") as service:
        for example in examples:
            command, _, answer = example.strip().rpartition("\n")
            process = subprocess.run(  # noqa: S602  # as a reader types it
                command.replace(ADDRESS, service.url),
                shell=True,
                capture_output=True,
                text=True,
                check=True,
            )
            assert process.stdout == answer
        (session,) = [block for block in blocks if block.startswith(">>>")]
        service.ask("remove", {"id": "page-1"})
        test = doctest.DocTestParser().get_doctest(
            session.replace(ADDRESS, service.url), {}, PAGE.name, str(PAGE), 0
        )
        runner = doctest.DocTestRunner(verbose=False)
        output: list[str] = []
        runner.run(test, out=output.append, clear_globs=False)
        test.globs["client"].close()
        assert not runner.failures, "".join(output)
