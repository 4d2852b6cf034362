"""One virtual environment a peer, and two for neardup itself, under bench/.peers/NAME.

Peers come from the package index; neardup is installed from this checkout with one extra, as a user
would have it: what else a developer has installed slows the start of any program.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from harness import model

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "bench" / ".peers"
PEERS = {
    "datasketch": ("datasketch==2.0.0", "numpy", "orjson"),
    # A text is hashed as such, which later versions of xxhash refuse.
    "datatrove": (
        *(
            "datatrove==0.10.1",
            "spacy==3.8.18",
            "regex",
            "ftfy",
            "tokenizers",
            "xxhash==3.5.0",
            "numpy",
        ),
        "orjson",
    ),
    "faiss": ("faiss-cpu==1.15.1", "numpy", "rensa==0.5.0", "orjson"),
    "gaoya": ("gaoya==0.2.2", "numpy", "orjson"),
    "rensa": ("rensa==0.5.0", "numpy", "orjson"),
    "simhash": ("simhash==2.1.2", "numpy<2"),
    "simhash-pybind": ("simhash-pybind==0.0.3", "numpy"),
    "text-dedup": ("text-dedup==0.4.0",),
    "usearch": ("usearch==2.26.6", "numpy"),
}


def python_of(name: str, base: str = sys.executable) -> str:
    """The interpreter of an environment; a peer's is built first where it is absent or changed.

    Raises:
        RuntimeError: If the peer cannot be installed.
    """
    home = HOME / name
    ready = home / "ready"
    python = home / "bin" / "python"
    if name in model.EXTRAS:
        return _install_ours(model.EXTRAS[name], ready, python)
    expected = " ".join(PEERS[name])
    if not ready.exists() or ready.read_text(encoding="utf8") != expected:
        run([base, "-m", "venv", "--clear", str(home)])
        run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name]])
        ready.write_text(expected, encoding="utf8")
    return str(python)


def _install_ours(extra: str, ready: Path, python: Path) -> str:
    git = ["git", "-C", str(ROOT)]
    state = run([*git, "rev-parse", "HEAD:src", "HEAD:pyproject.toml"])
    state += run([*git, "diff", "HEAD", "--", "src", "pyproject.toml"])
    if not ready.exists() or ready.read_text(encoding="utf8") != state:
        if not python.exists():
            run([sys.executable, "-m", "venv", str(ready.parent)])
        run([str(python), "-m", "pip", "install", "--quiet", f"{ROOT}[{extra}]"])
        ready.write_text(state, encoding="utf8")
    return str(python)


def versions(python: str) -> dict[str, str]:
    """Name to version of what is installed beside an interpreter."""
    listed = run([python, "-m", "pip", "list", "--format", "json"])
    return {item["name"]: item["version"] for item in json.loads(listed)}


def run(command: list[str]) -> str:
    """Standard output of a command.

    Raises:
        RuntimeError: With the end of its error output, if it fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    return done.stdout
