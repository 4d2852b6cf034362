"""The texts that the benchmarks read, as JSON lines in a cache folder; standard library only.

`speed_corpus` is real text that every development machine has: /usr/share/doc, /usr/include and the
libraries of every Python under pyenv, site-packages included. Several Python versions hold many
files that are equal or nearly so. That is real duplication, and the facts say how much of it there
is.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(os.environ.get("NEARDUP_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CACHE = Path(tempfile.gettempdir()) / "neardup-bench"
LEAST_BYTES = 200
MOST_BYTES = 200_000
LANGUAGES = {
    "English": ("reuters21578_en",),
    "Chinese": ("zh_laws", "lohelp_revisions_zh-cn"),
    "Turkish": ("lohelp_revisions_tr",),
}


def read_texts(path: str, most_mb: float | None = None) -> list[str]:
    """The texts of a JSON lines file, up to about `most_mb` million bytes of UTF-8."""
    texts = []
    left = float("inf") if most_mb is None else most_mb * 1e6
    with Path(path).open(encoding="utf8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            left -= len(text.encode())
            texts.append(text)
            if left <= 0:
                break
    return texts


def megabytes(texts: list[str]) -> float:
    """Million bytes of UTF-8."""
    return sum(len(text.encode()) for text in texts) / 1e6


def language_corpora(target_mb: float) -> dict[str, dict[str, Any]]:
    """Facts of a corpus a language; without the shared ones, English is the speed corpus."""
    results = {}
    for language, folders in LANGUAGES.items():
        paths = [SHARED / "data" / folder / "docs.jsonl.gz" for folder in folders]
        present = [path for path in paths if path.exists()]
        if present:
            name = f"{language}-{target_mb:g}"
            what = " + ".join(path.parent.name for path in present)
            results[language] = cached(name, what, read_archives(present), target_mb)
    if "English" not in results:
        results["English"] = speed_corpus(target_mb)
    return results


def read_archives(paths: list[Path]) -> Iterator[tuple[str, str]]:
    """Ids and texts of gzip JSON lines files."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf8") as lines:
            for line in lines:
                record = json.loads(line)
                yield record["id"], record["text"]


def speed_corpus(target_mb: float = 300) -> dict[str, Any]:
    """Facts of a corpus of at least `target_mb`, or of all there is; made once, then cached."""
    what = "text files of /usr/share/doc, /usr/include and the installed Pythons' libraries"
    return cached(f"speed-{target_mb:g}", what, read_machine(), target_mb)


def read_machine(most_bytes: int = MOST_BYTES) -> Iterator[tuple[str, str]]:
    """Paths and texts of this machine's readable UTF-8 files, by path within each root."""
    for root in machine_roots():
        for path in sorted(text_files(root, most_bytes)):
            try:
                data = path.read_bytes()
                yield str(path), data.decode("utf8")
            except (OSError, UnicodeDecodeError):
                continue


def machine_roots() -> list[Path]:
    versions = Path.home() / ".pyenv" / "versions"
    libraries = [Path(sys.base_prefix) / "lib", *sorted(versions.glob("*/lib"))]
    system = [Path("/usr/share/doc"), Path("/usr/include"), Path("/usr/lib")]
    unique = dict.fromkeys(root.resolve() for root in (*system[:2], *libraries, system[2]))
    return [root for root in unique if root.is_dir()]


def text_files(root: Path, most_bytes: int) -> Iterator[Path]:
    """Plain files, not links, of 200 bytes or more."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.suffix in {".pyc", ".so", ".a", ".gz"} or path.is_symlink():
                continue
            try:
                size = path.stat().st_size
            except OSError:
                continue
            if LEAST_BYTES < size < most_bytes and path.is_file():
                yield path


def cached(
    name: str, what: str, records: Iterator[tuple[str, str]], target_mb: float
) -> dict[str, Any]:
    """Write records until there is enough text, unless the file is there; return its facts."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{name}.jsonl"
    facts_path = CACHE / f"{name}.facts.json"
    if not facts_path.exists():
        aside = path.with_suffix(".partial")
        facts = write_lines(aside, records, target_mb)
        aside.replace(path)
        facts |= {"what": what, "path": str(path)}
        facts_path.write_text(json.dumps(facts, indent=1), encoding="utf8")
    return dict(json.loads(facts_path.read_text(encoding="utf8")))


def write_lines(path: Path, records: Iterator[tuple[str, str]], target_mb: float) -> dict[str, Any]:
    """Write JSON lines; count documents, text, and text that repeats an earlier one exactly."""
    seen: set[bytes] = set()
    documents = size = repeated = 0
    digest = hashlib.sha256()
    with path.open("wb") as lines:
        for name, text in records:
            body = text.encode()
            key = hashlib.sha1(body, usedforsecurity=False).digest()
            line = json.dumps({"id": name, "text": text}, ensure_ascii=False).encode() + b"\n"
            lines.write(line)
            digest.update(line)
            documents += 1
            size += len(body)
            repeated += len(body) if key in seen else 0
            seen.add(key)
            if size >= target_mb * 1e6:
                break
        written = lines.tell()
    return {
        "documents": documents,
        "text_mb": round(size / 1e6, 1),
        "jsonl_mb": round(written / 1e6, 1),
        "exactly_repeated_share": round(repeated / max(size, 1), 4),
        "sha256": digest.hexdigest(),
    }
