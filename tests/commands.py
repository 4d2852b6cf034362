"""Running the command line as a user does."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.cli import main

if TYPE_CHECKING:
    from pathlib import Path

NEARDUP = [sys.executable, "-m", "neardup"]


TEXT = "one two three four five six seven eight nine ten eleven twelve"


DOCS = [
    {"id": "a", "text": TEXT},
    {"id": "b", "text": TEXT.upper()},
    {"id": "c", "text": "something else that nobody wrote before"},
    {"id": "d", "text": TEXT + " thirteen"},
    {"id": "e", "text": ""},
    {"id": "f", "text": TEXT.replace("two ", "two,") + "!"},
]


TIMEOUT = 120


class Here:
    """Runs commands in this process, in a folder, and captures what they print."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder = folder
        self._patch = patch
        self._capture = capture
        patch.chdir(folder)

    def __call__(self, *args: str, code: int = 0) -> tuple[str, str]:
        """Give (standard output, standard error); check the exit code."""
        self._patch.setattr(sys, "argv", ["neardup", *args])
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as stopped:
                main()
        finally:
            signal.signal(signal.SIGTERM, handler)
        out, err = self._capture.readouterr()
        err = without_notice(err)
        assert stopped.value.code == code, err
        return out, err

    def shell(self, command: str) -> tuple[str, str]:
        """Run a line of a shell, as `__call__` does; one plain command without a process."""
        if re.fullmatch(r"neardup [^|<>;&$`\\]*", command):
            return self(*shlex.split(command)[1:])
        script = f'neardup() {{ {shlex.join(NEARDUP)} "$@"; }}\nset -eo pipefail\n{command}'
        process = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        return process.stdout, process.stderr

    def summary(self, *args: str) -> dict[str, Any]:
        """Run with --json and give the summary, after checking that the counts add up."""
        out, err = self(*args, "--json")
        result: dict[str, Any] = json.loads(out)
        assert err == ""
        if "kept" in result:
            assert result["read"] == result["kept"] + result["dropped"] + result["rejected"]
        return result

    def files(self) -> list[str]:
        """Every file in the folder."""
        return sorted(str(x.relative_to(self.folder)) for x in self.folder.rglob("*"))


def lines(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def delimited(records: list[dict[str, Any]], delimiter: str) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def write(path: Path, records: list[dict[str, Any]]) -> None:
    """Write records in the format of the path's extensions."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
        return
    kind = path.name.split(".")[1]
    data = lines(records) if kind == "jsonl" else delimited(records, ",\t"[kind == "tsv"])
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.output_stream(str(path), compression=codec) as file:
        file.write(data)


def read(path: Path) -> list[dict[str, Any]]:
    """Read records in the format of the path's extensions; CSV values are strings."""
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.input_stream(str(path), compression=codec) as file:
        text = file.read().decode()
    kind = path.name.split(".")[1]
    if kind == "jsonl":
        return [json.loads(row) for row in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text), delimiter=",\t"[kind == "tsv"]))


def without_notice(stderr: str) -> str:
    """Drop what is said once, when a new version's kernels are compiled."""
    return re.sub("neardup: compiling kernels[^\n]*\n", "", stderr)
