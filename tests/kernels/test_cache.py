"""Compiled kernels are found wherever they are, and never needed to be kept anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import neardup
from suite import JIT

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.skipif(not JIT, reason="with the JIT off there is nothing to keep")

PACKAGE = Path(neardup.__file__).parent
RUN = """
import numpy as np
from neardup.kernels.forest import find_root as kernel
assert kernel(np.array([0, 0, 1], np.int64), 2) == 0
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""
FOUND, COMPILED = "1 0", "0 1"


def mounting() -> bool:
    """Whether this machine lets a process mount folders read-only for itself."""
    process = subprocess.run(
        ["unshare", "-m", "mount", "--bind", str(PACKAGE), str(PACKAGE)],
        capture_output=True,
        check=False,
    )
    return process.returncode == 0


needs_mounts = pytest.mark.skipif(
    shutil.which("unshare") is None or not mounting(), reason="no mounts here"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An installation of its own, with nothing compiled."""
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "neardup", ignore=shutil.ignore_patterns("__pycache__"))
    return site


def run(
    site: Path, home: Path | None, readonly: tuple[Path, ...] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the kernel from an installation; `readonly` folders are mounted so."""
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    kept |= {"TMPDIR": str(site.parent)} | ({} if home is None else {"HOME": str(home)})
    environment: Mapping[str, str] = kept | more
    mounts = "".join(
        f"mount --bind {x} {x} && mount -o remount,ro,bind {x} && " for x in map(str, readonly)
    )
    command = [sys.executable, "-c", RUN]
    if readonly:
        command = ["unshare", "-m", "sh", "-c", f'{mounts}exec "$@"', "sh", *command]
    return subprocess.run(
        command, env=environment, cwd=site, capture_output=True, text=True, timeout=120, check=False
    )


def output_of(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_the_second_start_compiles_nothing(site: Path, tmp_path: Path) -> None:
    assert output_of(run(site, tmp_path / "home")) == COMPILED
    assert output_of(run(site, tmp_path / "home")) == FOUND
    assert list((site / "neardup" / "kernels" / "__pycache__").glob("forest.find_root-*.nbi"))


SHARING = """
import sys
import numpy as np
from neardup.kernels.jit import fill, kernel
@kernel
def first(array):
    fill(array, 0, 2, 7)
@kernel
def second(array):
    fill(array, 0, 2, 7)
    array[2] = 5
array = np.zeros(3, np.int64)
(first if sys.argv[1] == "first" else second)(array)
print(array.tolist(), sum(fill.stats.cache_hits.values()), sum(fill.stats.cache_misses.values()))
"""


def test_what_two_kernels_call_is_compiled_for_the_first_one(site: Path, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "HOME": str(tmp_path / "home"),
    }
    for name, expected in (("first", "[7, 7, 0] 0 1"), ("second", "[7, 7, 5] 1 0")):
        command = [sys.executable, "-c", SHARING, name]
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        assert output_of(process).endswith(expected)


def test_a_person_at_a_prompt_is_told_once_and_a_program_nothing(
    site: Path, tmp_path: Path
) -> None:
    program = f"""
import sys
sys.ps1 = ">>> "
{RUN}
from neardup.kernels.forest import unite
unite(np.array([0, 1, 2], np.int64), 0, 2)
"""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "HOME": str(tmp_path / "home"),
    }
    for expected in (1, 0):
        process = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stderr.count("neardup: compiling kernels for this processor") == expected
    other = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "elsewhere")}
    quiet = subprocess.run(
        [sys.executable, "-c", RUN], env=other, capture_output=True, text=True, check=True
    )
    assert quiet.stderr == ""


@needs_mounts
def test_what_an_image_compiled_is_read_where_nothing_can_be_written(
    site: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert output_of(run(site, home)) == COMPILED
    process = run(site, None, readonly=(tmp_path,), TMPDIR=str(tmp_path))
    assert output_of(process) == FOUND
    assert process.stderr == ""


@needs_mounts
def test_a_folder_that_was_filled_and_is_read_only_now_is_read(site: Path, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    assert output_of(run(site, None, NUMBA_CACHE_DIR=str(kernels))) == COMPILED
    process = run(site, None, readonly=(tmp_path,), NUMBA_CACHE_DIR=str(kernels))
    assert output_of(process) == FOUND


@needs_mounts
def test_without_a_home_a_private_temporary_folder_keeps_them(site: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for expected in (COMPILED, FOUND):
        process = run(site, None, readonly=(site,), TMPDIR=str(temporary), HOME="~")
        assert output_of(process) == expected
    (private,) = temporary.glob("neardup-*")
    assert private.stat().st_mode & 0o077 == 0
    assert not list(tmp_path.rglob("~"))


@needs_mounts
def test_a_temporary_folder_of_somebody_else_is_not_trusted(site: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    (temporary / f"neardup-{os.getuid()}").mkdir(parents=True, mode=0o777)
    (temporary / f"neardup-{os.getuid()}").chmod(0o777)
    for _ in range(2):
        process = run(site, None, readonly=(site,), TMPDIR=str(temporary), HOME="~")
        assert output_of(process) == COMPILED
    assert list((temporary / f"neardup-{os.getuid()}").iterdir()) == []


@needs_mounts
def test_nowhere_to_write_is_one_warning(site: Path, tmp_path: Path) -> None:
    folders = tuple(x for x in map(Path, ("/tmp", "/var/tmp", "/usr/tmp")) if x.is_dir())  # noqa: S108
    process = run(site, None, readonly=(*folders, tmp_path), HOME=str(tmp_path))
    assert output_of(process) == COMPILED
    assert (
        process.stderr.count("RuntimeWarning: no folder for compiled kernels can be written") == 1
    )


def test_a_folder_that_cannot_be_made_is_passed_over(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for expected in (COMPILED, FOUND):
        process = run(site, tmp_path / "home", NUMBA_CACHE_DIR=str(tmp_path / "file" / "x"))
        assert output_of(process) == expected


def test_of_four_processes_one_compiles(site: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        process = list(pool.map(lambda _: output_of(run(site, tmp_path / "home")), range(4)))
    assert sorted(process) == [COMPILED, FOUND, FOUND, FOUND]


@needs_mounts
def test_an_image_for_a_lesser_cpu_is_used(site: Path, tmp_path: Path) -> None:
    plain = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}
    assert output_of(run(site, tmp_path / "home", **plain)) == COMPILED
    assert output_of(run(site, None, readonly=(tmp_path,))) == FOUND


def test_a_damaged_or_older_index_is_written_anew(site: Path, tmp_path: Path) -> None:
    output_of(run(site, tmp_path / "home"))
    (index,) = (site / "neardup" / "kernels" / "__pycache__").glob("forest.find_root-*.nbi")
    whole = index.read_bytes()
    for damaged in (whole[:40], whole.replace(b"int64", b"int65"), b""):
        index.write_bytes(damaged)
        assert output_of(run(site, tmp_path / "home")) == COMPILED
        assert output_of(run(site, tmp_path / "home")) == FOUND


@pytest.mark.parametrize("name", ["jit.py", "linked.py", "passes.py"])
def test_an_edit_of_what_compiles_a_kernel_is_seen(site: Path, tmp_path: Path, name: str) -> None:
    output_of(run(site, tmp_path / "home"))
    called = site / "neardup" / "kernels" / name
    called.write_text(called.read_text() + "\n# edited\n")
    assert output_of(run(site, tmp_path / "home")) == COMPILED
    assert len(list((site / "neardup/kernels/__pycache__").glob("forest.find_root-*.nbi"))) == 1
