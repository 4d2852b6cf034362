"""Every corpus, on every engine: the files of one machine, byte for byte; also after a kill.

`python tests/spark/rounds.py [--most N] [--cases N] [--engines sail,local[2],cluster] [CORPUS...]`;
the long form is `make spark-rounds`. On the cluster each case also runs while a third worker is
killed in the middle of it.
"""

from __future__ import annotations

import argparse
import gzip
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

DATA: Final = Path(__file__).parents[2] / ".." / "shared" / "data"
CASES: Final = [
    ("--similarity", "0.8"),
    ("--similarity", "0.7", "--policy", "components", "--keep", "longest"),
    ("--similarity", "0.8", "--measure", "cosine", "--keep", "last"),
    ("--similarity", "0.9", "--measure", "containment"),
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
) -> dict[str, bytes]:
    """Run once, and give every file that comes out; they are removed."""
    inputs = sorted(str(x) for x in folder.glob("in*.jsonl"))
    out = folder / name
    out.mkdir()
    command = [sys.executable, "-m", "neardup", "dedup", *inputs, "-o", f"{out}/kept/",
               "--id", "id", "--duplicates", str(out / "dropped.jsonl"),
               "--clusters", str(out / "groups.jsonl"), *options]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{name} {options}: {done.stderr}")
    files = {str(x.relative_to(out)): x.read_bytes() for x in out.rglob("*") if x.is_file()}
    subprocess.run(["rm", "-r", str(out)], check=True)
    return files


def killed(
    cluster: Cluster, folder: Path, options: tuple[str, ...], after: float
) -> dict[str, bytes]:
    """Run on the cluster, and kill one of its workers meanwhile."""
    victim = cluster.add_worker()
    time.sleep(5)
    timer = threading.Timer(after, Cluster.kill, [victim])
    timer.start()
    found = outputs(folder, "killed", options, cluster.environment)
    timer.join()
    return found


def told(case: str, *, same: bool) -> list[str]:
    """Print how a run went; its name if it went wrong."""
    print(f"{case}: {'same' if same else 'DIFFERENT'}", flush=True)
    return [] if same else [case]


def compare(
    corpus: str, engines: list[str], cluster: Cluster | None, most: int, cases: int
) -> list[str]:
    """Run every case on every engine; what differs."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = prepare(corpus, folder, most)
        for options in CASES[:cases]:
            here = outputs(folder, "here", options)
            lines = here["dropped.jsonl"].count(b"\n")
            for engine in engines:
                master = cluster.url if engine == "cluster" and cluster else engine
                there = (*options, "--engine", "spark", "--master", master)
                environment = cluster.environment if engine == "cluster" and cluster else None
                case = f"{corpus} {count:,} {' '.join(options)}: {lines:,} dropped"
                begin = time.monotonic()
                found = outputs(folder, "there", there, environment)
                took = time.monotonic() - begin
                wrong += told(f"{case}; {engine} {took:.0f} s", same=found == here)
                if cluster is not None and engine == "cluster":
                    found = killed(cluster, folder, there, took / 2)
                    wrong += told(f"{case}; {engine}, a worker killed", same=found == here)
    return wrong


def main() -> int:
    """Run all; 1 if anything differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--most", type=int, default=1 << 40)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--engines", default="sail,cluster")
    asked = parser.parse_args()
    engines = asked.engines.split(",")
    corpora = asked.corpora or sorted(x.name for x in DATA.iterdir() if x.is_dir())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the cluster goes too
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        if "cluster" in engines:
            with started(Path(name)) as cluster:
                for corpus in corpora:
                    wrong += compare(corpus, engines, cluster, asked.most, asked.cases)
        else:
            for corpus in corpora:
                wrong += compare(corpus, engines, None, asked.most, asked.cases)
    print(f"{len(wrong)} different: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
