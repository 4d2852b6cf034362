"""What `deploy/` starts: the steps of the Dockerfile, in an environment that has nothing else.

With NEARDUP_CLEAN_INSTALL=1 (`make deploy-check`) the package is first installed into a new one.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import httpx
import pytest

from suite import ROOT

DEPLOY = ROOT / "deploy"
KEY = "0123456789abcdef"


def installed(folder: Path) -> Path:
    """Where the commands of an installation are: of a new one, or of this one."""
    if not os.environ.get("NEARDUP_CLEAN_INSTALL"):
        return Path(sysconfig.get_path("scripts"))
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (step,) = re.findall(r"pip install .*?'/src(\[\w+\])'", (DEPLOY / "Dockerfile").read_text())
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", f"{ROOT}{step}"]
    subprocess.run(pip, check=True)
    return folder / "bin"


def start(commands: Path, volumes: Path, **more: str) -> subprocess.Popen[str]:
    """Run the entry point as the container does."""
    environment = {
        "PATH": f"{commands}:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "NUMBA_CACHE_DIR": str(volumes / "cache"),
        "NEARDUP_INDEX": str(volumes / "seen.index"),
    }
    arguments = ["--similarity", "0.8", "--port", "0"]
    return subprocess.Popen(
        ["/bin/sh", str(DEPLOY / "start.sh"), *arguments],
        env=environment | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip


def ready(process: subprocess.Popen[str]) -> str:
    """Where it listens, once it is ready."""
    assert process.stdout is not None
    line = next(iter(each for each in process.stdout if "serving" in each), "")
    match = re.search(r"http://0\.0\.0\.0(:\d+)", line)
    assert match is not None, line
    url, end_at = f"http://127.0.0.1{match[1]}", time.monotonic() + 300
    while (status := httpx.get(f"{url}/readyz").status_code) != 200:
        assert status == 503
        assert time.monotonic() < end_at
        time.sleep(0.1)
    return url


def compiled(volumes: Path) -> set[Path]:
    """The files of kernels."""
    return set((volumes / "cache").rglob("*.nbc"))


def end(process: subprocess.Popen[str]) -> int:
    """Send what docker stop sends."""
    process.send_signal(signal.SIGTERM)
    code = process.wait(60)
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    return code


def test_the_entry_point_compiles_into_its_volume_and_serves(tmp_path: Path) -> None:
    commands = installed(tmp_path / "environment")
    if "NEARDUP_CLEAN_INSTALL" not in os.environ and "NUMBA_CACHE_DIR" in os.environ:
        (tmp_path / "cache").symlink_to(os.environ["NUMBA_CACHE_DIR"])  # what the tests compiled
    process = start(commands, tmp_path, NEARDUP_KEY=KEY)
    url = ready(process)
    first = compiled(tmp_path)
    row = {"id": "a", "text": "the harbour opened again on Monday"}
    headers = {"authorization": f"Bearer {KEY}"}
    answer = httpx.post(f"{url}/v1/seen", json=row, headers=headers, timeout=60)
    assert answer.json() == {"new": True, "state": "new"}
    assert end(process) == 0
    again = start(commands, tmp_path, NEARDUP_KEY=KEY)
    ready(again)
    assert end(again) == 0
    assert compiled(tmp_path) == first or "NEARDUP_CLEAN_INSTALL" not in os.environ


def test_without_a_key_it_says_so_and_does_not_start(tmp_path: Path) -> None:
    if "NUMBA_CACHE_DIR" in os.environ:
        (tmp_path / "cache").symlink_to(os.environ["NUMBA_CACHE_DIR"])
    process = start(Path(sysconfig.get_path("scripts")), tmp_path)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 2
    assert "set NEARDUP_KEY" in error
    assert not (tmp_path / "seen.index").exists()


def test_the_files_of_deploy_fit_the_command() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "neardup.service")
    command = shlex.split(unit["Service"]["ExecStart"])
    docker = (DEPLOY / "Dockerfile").read_text()
    (arguments,) = re.findall(r"^CMD \[(.*)\]$", docker, re.MULTILINE)
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text()
    options = [*command[3:], *shlex.split(arguments.replace(",", " "))]
    for option in (each for each in options if each.startswith("--")):
        assert f"`{option}" in reference or f"{option} " in reference, option
    for name in re.findall(r"NEARDUP_INDEX|NUMBA_CACHE_DIR", docker):
        assert name in (DEPLOY / "start.sh").read_text()
    assert (DEPLOY / "start.sh").stat().st_mode & 0o111


@pytest.mark.parametrize("name", ["Dockerfile", "start.sh", "neardup.service"])
def test_the_runbook_names_each_file(name: str) -> None:
    assert f"deploy/{name}" in (ROOT / "docs" / "guide" / "serve-runbook.md").read_text()
