"""Systems that are not POSIX: all is imported, and what needs more than they have says so."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

HIDE = """
import importlib, mmap, os, pkgutil, signal, sys
import asyncio, concurrent.futures, multiprocessing.connection, random, ssl, subprocess, tempfile
import lmdb, numba, numpy, orjson, pyarrow.compute, pyarrow.csv, pyarrow.parquet, rich, typer

for name in ("fcntl", "resource", "termios"):
    sys.modules[name] = None
for module, names in (
    (os, "fork register_at_fork sysconf sched_getaffinity posix_fadvise O_CLOEXEC O_DIRECTORY"
         " O_NONBLOCK pread preadv pwrite sync getuid statvfs"),
    (signal, "SIGHUP SIGKILL pthread_kill"),
    (mmap, "MAP_PRIVATE MAP_ANONYMOUS MADV_DONTNEED MADV_RANDOM MADV_WILLNEED"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
"""What Windows lacks; of the libraries, those of the base have looked before."""

IMPORTS = """
import neardup
left_out = ("neardup.integrations.", "neardup.spark.", "neardup.__main__")
for module in pkgutil.walk_packages(neardup.__path__, "neardup."):
    if not module.name.startswith(left_out):
        importlib.import_module(module.name)
"""

RUNS = """
import neardup as nd
texts = ["one two three four", "One two, three four!", "alone in the world"]
assert nd.dedup(texts).kept.tolist() == [True, False, True]
with open("in.jsonl", "w") as file:
    file.writelines(f'{{"text": "{text}"}}\\n' for text in texts)
assert nd.dedup("in.jsonl", "out.jsonl").summary.kept == 2
index = nd.Index(distance=3, recipe=nd.Recipe())
index.add(["a"], texts[:1])
assert len(index.query(texts[1])) == 1

from neardup.pipeline.judgement.answers import Answers
from neardup.runtime.storage.temporary import temporary_file
for refused in (
    lambda: nd.DurableIndex.open("index", distance=3),
    lambda: nd.dedup("in.jsonl", "again.jsonl", resume="state"),
    lambda: nd.dedup("in.tar", "again.jsonl"),
    lambda: Answers("answers.jsonl"),
    lambda: temporary_file(None, "rows"),
):
    try:
        refused()
    except nd.UsageError as error:
        assert str(error).endswith("needs a POSIX system: use Linux, macOS or WSL"), error
    else:
        raise AssertionError(refused)
"""


def run(tmp_path: Path, *parts: str) -> None:
    """Run a program without what other systems lack."""
    program = [sys.executable, "-W", "ignore", "-c", HIDE + "".join(parts)]
    process = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stderr


def test_every_module_of_the_base_is_imported(tmp_path: Path) -> None:
    run(tmp_path, IMPORTS)


@needs_jit
def test_memory_and_files_work_and_what_needs_locks_says_so(tmp_path: Path) -> None:
    (tmp_path / "in.tar").write_bytes(bytes(10240))
    run(tmp_path, RUNS)
