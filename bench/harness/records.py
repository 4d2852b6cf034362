"""Records: results/CASE/MACHINE.json, the newest run of each case on each machine.

Git keeps the older ones, so a record that is not committed is never overwritten: `check_committed`
refuses before anything is measured. Only runs write records; tools/benchmark_tables.py makes the
tables of the docs from them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from harness.model import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
LIBRARIES = ("neardup", "numpy", "numba", "llvmlite", "pyarrow", "orjson")


class UncommittedRecordError(Exception):
    """A run would overwrite a record that git does not keep yet."""


def machine() -> dict[str, Any]:
    """Where, when and with what a run is made."""
    return {
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "load_at_start": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def when() -> dict[str, Any]:
    """What a single measurement keeps of this, for a record may be made in parts."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"at": {"commit": commit(), "date": date, "load": round(os.getloadavg()[0], 2)}}


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def cpu_model() -> str:
    cpu = Path("/proc/cpuinfo")
    if not cpu.exists():
        return platform.processor()
    names = [line for line in cpu.read_text(encoding="utf8").splitlines() if "model name" in line]
    return names[0].partition(":")[2].strip() if names else platform.processor()


def commit() -> str:
    """Short hash of this checkout, which is what is measured, with -dirty where it differs."""
    name = git(ROOT, "rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    changed = git(ROOT, "status", "--porcelain", "--", "src").stdout.strip()
    return f"{name}-dirty" if changed else name


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def name_of(facts: dict[str, Any]) -> str:
    """A machine's name in results: its processor and cores, such as amd-epyc-2-cores."""
    plain = re.sub(r"\((r|tm)\)|@.*|\b(processor|cpu)\b", "", facts["cpu"].lower())
    words = re.findall(r"[a-z0-9.]+", plain) or ["unknown"]
    return f"{'-'.join(words)}-{facts['cores']}-cores"


def path_of(case: str, facts: dict[str, Any], results: Path = RESULTS) -> Path:
    """Where the record of a case on a machine is kept."""
    return results / case / f"{name_of(facts)}.json"


def check_committed(cases: Iterable[str], facts: dict[str, Any], results: Path = RESULTS) -> None:
    """Look whether git keeps what a run of these cases would overwrite.

    Raises:
        UncommittedRecordError: If it does not, or if there is no git.
    """
    for case in cases:
        path = path_of(case, facts, results)
        if (
            path.exists()
            and git(path.parent, "diff", "--quiet", "HEAD", "--", path.name).returncode
        ):
            raise UncommittedRecordError(f"{path} is not committed: commit it or move it away")
        if path.exists() and git(path.parent, "ls-files", "--error-unmatch", path.name).returncode:
            raise UncommittedRecordError(
                f"{path} is not in git: add and commit it, or move it away"
            )


def keep(case: str, facts: dict[str, Any], found: dict[str, Any], results: Path = RESULTS) -> Path:
    """Write the record of a case; what it was before, git keeps.

    Raises:
        UncommittedRecordError: If git does not keep it yet.
    """
    check_committed([case], facts, results)
    path = path_of(case, facts, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {"case": case, "machine": facts} | found
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf8")
    return path


def outcomes(
    case: str, facts: dict[str, Any], results: Path = RESULTS
) -> dict[Measurement, list[dict[str, Any]]]:
    """The measurements of a case's record on a machine; none without a record."""
    path = path_of(case, facts, results)
    if not path.exists():
        return {}
    return {
        Measurement(*(each[name] for name in ("case", "function", "environment", "options"))): each[
            "results"
        ]
        for each in read(path).value["measurements"]
    }


@dataclass(frozen=True)
class Record:
    """One file of results."""

    path: Path
    value: dict[str, Any]

    @property
    def machine(self) -> dict[str, Any]:
        """Where, when and with what it was measured."""
        return dict(self.value["machine"])

    def result(self, function: str, environment: str = "ours", **options: Any) -> dict[str, Any]:
        """The medians of the measurement with these options; the last of what is not a number.

        Raises:
            LookupError: If none has.
        """
        for each in self.value["measurements"]:
            had = json.loads(each["options"])
            same = all(name in had and had[name] == value for name, value in options.items())
            if (each["function"], each["environment"]) == (function, environment) and same:
                return medians(each["results"])
        raise LookupError(f"{self.path}: no {function} of {environment} with {options}")

    def find(self, function: str, environment: str = "ours", **options: Any) -> dict[str, Any]:
        """The same, and nothing where it was not measured."""
        try:
            return self.result(function, environment, **options)
        except LookupError:
            return {}


def medians(results: list[dict[str, Any]]) -> dict[str, Any]:
    """One dict of several rounds; an empty one of none."""
    if not results:
        return {}
    return {
        name: median(each[name] for each in results)
        if isinstance(last, int | float) and not isinstance(last, bool)
        else last
        for name, last in results[-1].items()
    }


def read(path: Path) -> Record:
    """One record."""
    return Record(path, json.loads(path.read_text("utf-8")))


def every_record() -> list[Record]:
    """All records, by case and machine."""
    return [read(path) for path in sorted(RESULTS.glob("*/*.json"))]


def newest(case: str) -> Record:
    """The newest record of a case."""
    result = [read(path) for path in sorted((RESULTS / case).glob("*.json"))]
    return max(result, key=lambda record: record.machine["date"])
