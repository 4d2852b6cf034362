"""Every corpus, on every engine: the files of one machine, byte for byte; also after a kill.

`python tests/spark/rounds.py [--most N] [--engines sail,local[2],cluster] [--all] [CORPUS...]`; the
long form is `make spark-rounds`. Sail takes every case of every corpus. Spark itself, ten times as
slow, takes two cases of a corpus, others of the next, or all with `--all`. On the cluster the
first of them also runs while a third worker is killed, at another step with each corpus.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from cluster import Cluster, started
from neardup.cli import app
from neardup.errors import NeardupError

DATA: Final = Path(__file__).parents[2] / ".." / "shared" / "data"
CASES: Final = [
    ("--similarity", "0.8"),
    ("--similarity", "0.7", "--policy", "components", "--keep", "longest"),
    ("--similarity", "0.8", "--measure", "cosine", "--keep", "last"),
    ("--similarity", "0.9", "--measure", "containment"),
    ("--similarity", "0.9", "--measure", "dice"),
    ("--distance", "3"),
    ("--distance", "6", "--policy", "components"),
    ("--distance", "8", "--verify", "0.5"),
]
FILES: Final = 5


def prepare(corpus: str, folder: Path, most: int) -> int:
    """Write the first documents of a corpus to FILES files."""
    with gzip.open(DATA / corpus / "docs.jsonl.gz", "rb") as file:
        lines = file.readlines()[:most]
    for part in range(FILES):
        (folder / f"in{part}.jsonl").write_bytes(b"".join(lines[part::FILES]))
    return len(lines)


def outputs(
    folder: Path, name: str, options: tuple[str, ...], environment: dict[str, str] | None = None
) -> dict[str, bytes] | str:
    """Run once, and give every file that comes out, which are removed; or what went wrong.

    Args:
        folder: With the inputs.
        name: Of the run.
        options: Of the command.
        environment: Of a process of its own; None: in this one, which saves its start.
    """
    inputs = sorted(str(x) for x in folder.glob("in*.jsonl"))
    out = folder / name
    out.mkdir()
    command = ["dedup", *inputs, "-o", f"{out}/kept/", "--id", "id", "--duplicates",
               str(out / "dropped.jsonl"), "--clusters", str(out / "groups.jsonl"),
               *options]  # fmt: skip
    failed = ""
    if environment is None:
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                app(command, standalone_mode=False)
        except NeardupError as error:
            failed = f"{type(error).__name__}: {error}"
    else:
        neardup = [sys.executable, "-m", "neardup"]
        process = subprocess.run(
            [*neardup, *command], capture_output=True, text=True, check=False, env=environment
        )
        failed = f"code {process.returncode}: {process.stderr}" if process.returncode else ""
    files = {str(x.relative_to(out)): x.read_bytes() for x in out.rglob("*") if x.is_file()}
    shutil.rmtree(out)
    return failed or files


def killed(
    cluster: Cluster, folder: Path, options: tuple[str, ...], tables: int
) -> dict[str, bytes] | str:
    """Run on the cluster, and kill one of its workers when so many tables are written."""
    victim, stop = cluster.add_worker(), threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            if len(list(folder.glob("killed/.neardup-*/work/*"))) >= tables:
                Cluster.kill(victim)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = outputs(folder, "killed", options, cluster.environment)
    stop.set()
    watcher.join()
    if victim.poll() is None:
        Cluster.kill(victim)
        return f"it was done before {tables} tables were written"
    return result


def differences(
    case: str, here: dict[str, bytes] | str, outcome: dict[str, bytes] | str
) -> list[str]:
    """Print how a run went; its name if it went wrong."""
    same = outcome == here and isinstance(here, dict)
    reason = "" if same or isinstance(outcome, dict) else f": {outcome}"
    print(f"{case}: {'same' if same else 'DIFFERENT'}{reason}", flush=True)
    return [] if same else [case]


def compare(
    corpus: tuple[int, str], engines: list[str], cluster: Cluster | None, most: int, *, is_all: bool
) -> list[str]:
    """Run the cases of a corpus on every engine; what differs."""
    number, name = corpus
    wrong = []
    slow = range(len(CASES)) if is_all else {number % len(CASES), (number + 3) % len(CASES)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        count = prepare(name, folder, most)
        for place, options in enumerate(CASES):
            chosen = [x for x in engines if x == "sail" or place in slow]
            here = outputs(folder, "here", options) if chosen else {}
            lines = here["dropped.jsonl"].count(b"\n") if isinstance(here, dict) and here else 0
            case = f"{name} {count:,} {' '.join(options)}: {lines:,} dropped"
            for engine in chosen:
                own = cluster if engine == "cluster" else None
                there = (*options, "--engine", "spark", "--master", own.url if own else engine)
                begin = time.monotonic()
                environment = own.environment if own else dict(os.environ)
                result = outputs(folder, "there", there, None if engine == "sail" else environment)
                took = time.monotonic() - begin
                wrong += differences(f"{case}; {engine} {took:.0f} s", here, result)
                if own is not None and place == min(slow):
                    result = killed(own, folder, there, 1 + number)
                    wrong += differences(f"{case}; {engine}, a worker killed", here, result)
    return wrong


def main() -> int:
    """Run all; 1 if anything differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--most", type=int, default=1 << 40)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--engines", default="sail,cluster")
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    corpora = arguments.corpora or sorted(x.name for x in DATA.iterdir() if x.is_dir())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the cluster goes too
    wrong = []
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        cluster = None
        if "cluster" in engines:
            cluster = stack.enter_context(started(Path(name) / "cluster"))
        for corpus in enumerate(corpora):
            wrong += compare(corpus, engines, cluster, arguments.most, is_all=arguments.all)
    print(f"{len(wrong)} different: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
