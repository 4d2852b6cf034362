"""Build the wheel and the sdist, and try the wheel in new environments: `make packages`.

Each environment holds the wheel with one extra and nothing else. What the extra is for is done in
it; with the base alone the same must end in a line that names the extra. Run it with each Python
that there is; the tables of docs/contributing/releases.md are what it prints.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TEXT: Final = "The harbour opened again on Monday after three days of storm."
PAGE: Final = f"<html><body><p>{TEXT}</p></body></html>"
RECORD: Final = (
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{id}>\r\n"
    "WARC-Target-URI: http://a.test/{id}\r\nWARC-Date: 2026-11-23T00:00:00Z\r\n"
    "Content-Type: application/http; msgtype=response\r\nContent-Length: {size}\r\n\r\n"
)
HTTP: Final = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{PAGE}"

PROBES: Final = {
    "": "dedup('t.jsonl', '-o', 'out')\n"
    "assert nd.dedup([text, text]).kept.tolist() == [True, False]",
    "remote": "from neardup.documents.files.remote import locate; locate('memory://t.jsonl')",
    "s3": "from neardup.documents.files.remote import locate; locate('s3://t/t.jsonl')",
    "chinese": "nd.fingerprint('漢字', nd.Recipe(fold_chinese='simplified'))",
    "jieba": "nd.fingerprint('我来到北京清华大学', nd.Recipe(tokens='jieba'))",
    "stopwords": "nd.fingerprint(text, nd.Recipe(stopwords='en'))",
    "html": "dedup('pages', '--extract', 'main', '-o', 'kept')",
    "trafilatura": "dedup('pages', '--extract', 'trafilatura', '-o', 'kept')",
    "warc": "dedup('crawl.warc', '-o', 'kept.warc')",
    "excel": "dedup('t.jsonl', '--duplicates', 'd.xlsx')",
    "spark": "dedup('t.jsonl', '--engine', 'spark', '--master', 'sail', '-o', 'parts')",
    "datasets": "import neardup.integrations.datasets as made\nfrom datasets import Dataset\n"
    "assert len(made.dedup(Dataset.from_dict({'text': [text, text]}))[0]) == 1",
    "pandas": "import neardup.integrations.pandas, pandas\n"
    "assert len(pandas.DataFrame({'text': [text, text]}).neardup.dedup()) == 1",
    "polars": "import neardup.integrations.polars, polars\n"
    "assert len(polars.DataFrame({'text': [text, text]}).neardup.dedup()) == 1",
    "duckdb": "import neardup.integrations.duckdb as made, duckdb\nmade.register(duckdb.connect())",
    "datatrove": "import neardup.integrations.datatrove",
    "scrapy": "import neardup.integrations.scrapy",
    "client": "from neardup.client import Client; Client('http://127.0.0.1:9').close()",
    "serve": "import neardup.service.server",
}
"""What is done with each extra alone, and fails without it; `""` is the base."""
NEEDS_NO_MESSAGE: Final = ("", "duckdb")
"""The base, and what takes an object that nobody can have without its library."""

PRELUDE: Final = f"""
import subprocess, sys
import neardup as nd
text = {TEXT!r}
def dedup(*arguments):
    command = [sys.executable, "-m", "neardup", "dedup", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
"""


def main() -> None:
    """Build, install, try, and print a table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--extras", nargs="*", default=list(PROBES), help="all unless given")
    options.add_argument("--dist", type=Path, default=ROOT / "dist", help="for packages")
    given = options.parse_args()
    wheel = build(given.dist)
    version = ".".join(map(str, sys.version_info[:2]))
    print(f"Python {version}, {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB\n")
    print("| extra | packages | MB | `import neardup`, s | `neardup --help`, s | without it |")
    print("|---|---:|---:|---:|---:|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="neardup-packages-") as folder:
        os.chdir(folder)
        base = install(wheel, "", Path("base"))
        for extra in given.extras:
            python = install(wheel, extra, Path("other")) if extra else base
            try_probe(python, extra)
            without = "" if extra in NEEDS_NO_MESSAGE else message_without(base, extra)
            print(f"| {extra or 'base'} | {' | '.join(sizes(python))} | {without} |", flush=True)


def build(dist: Path) -> Path:
    """Build both packages where there is no wheel yet, and give the wheel."""
    if not list(dist.glob("*.whl")):
        subprocess.run([sys.executable, "-m", "build", "-o", str(dist), str(ROOT)], check=True)
    (wheel,) = dist.glob("*.whl")
    return wheel.resolve()


def write_inputs(folder: Path) -> None:
    """Write two copies of a text in each format that a probe reads."""
    line = json.dumps({"text": TEXT}) + "\n"
    (folder / "t.jsonl").write_text(2 * line, encoding="utf8")
    (folder / "pages").mkdir()
    for name in ("a", "b"):
        (folder / "pages" / f"{name}.html").write_text(PAGE, encoding="utf8")
    records = [RECORD.format(id=name, size=len(HTTP)) + HTTP + "\r\n\r\n" for name in ("a", "b")]
    (folder / "crawl.warc").write_text("".join(records), encoding="utf8", newline="")


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """Make an environment with the wheel and one extra, and give its interpreter."""
    venv.create(folder, clear=True, with_pip=True)
    python = folder.resolve() / "bin" / "python"
    pip = [python, "-m", "pip"]
    subprocess.run([*pip, "install", "-q", f"{wheel}[{extra}]" if extra else wheel], check=True)
    subprocess.run([*pip, "check"], check=True, stdout=subprocess.DEVNULL)
    return python


def attempt(python: Path, extra: str) -> subprocess.CompletedProcess[str]:
    """Do what an extra is for, with plain kernels: what is tried is the packages."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        write_inputs(Path(folder))
        return subprocess.run(
            [python, "-c", PRELUDE + PROBES[extra]],
            env=environment, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip


def try_probe(python: Path, extra: str) -> None:
    """End where the probe of an extra fails with it."""
    done = attempt(python, extra)
    if done.returncode:
        sys.exit(f"{extra or 'base'} fails: {done.stderr}")


def message_without(base: Path, extra: str) -> str:
    """Give the line that an extra's probe ends in without it; end where it names no extra."""
    done = attempt(base, extra)
    last = done.stderr.strip().rpartition("\n")[2]
    if not done.returncode or f"neardup[{extra}]" not in last:
        sys.exit(f"without {extra}: {done.stderr or 'no error'}")
    return "named"


def sizes(python: Path) -> list[str]:
    """Measure an environment: packages, megabytes, seconds of a processor for two starts."""
    site = next(python.parent.parent.glob("lib/python*/site-packages"))
    files = (each for each in site.rglob("*") if each.is_file() and "pip" not in each.parts)
    size = sum(each.stat().st_size for each in files) / 1e6
    starts = [["-c", "import neardup"], ["-m", "neardup", "--help"]]
    return [
        str(len(list(site.glob("*.dist-info"))) - 1),  # without pip
        f"{size:.0f}",
        *(f"{min(seconds([str(python), *start]) for _ in range(5)):.2f}" for start in starts),
    ]


def seconds(command: list[str]) -> float:
    """Seconds of a processor that a command takes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
