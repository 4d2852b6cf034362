"""Folders of compiled kernels, and the names of the files in them; Numba is not loaded."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KERNELS", "file_name", "folders", "hold_kernels"]

KERNELS: Final = Path(__file__).parent
_IMPORTED: Final = re.compile(r"^ *(?:from|import) neardup\.kernels\.([\w.]+)", re.MULTILINE)
"""Within functions too: `jit` imports there what compiles."""
_COMMON: Final = "features.tokenise"
"""A module of kernels that all commands over texts compile."""


def file_name(kind: str, module: str) -> str:
    """The name, without an extension, of the files of a compiled kernel.

    Args:
        kind: Module and function, which do not change from version to version.
        module: The module, whose source the name has a digest of.
    """
    version = f"py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    return f"{kind}-{digest(module)[:12]}.{version}"


def hold_kernels() -> bool:
    """Whether a folder holds kernels of this version, for texts."""
    name = file_name(f"{_COMMON}.*", _COMMON)
    return any(next(folder.glob(f"{name}*"), None) is not None for folder in folders())


@functools.cache
def folders() -> tuple[Path, ...]:
    """The folders that may hold compiled kernels, in the order in which they are searched."""
    return tuple(dict.fromkeys(folder for folder in _candidates() if folder.is_dir()))


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        yield _made(Path(named).absolute() / "neardup")
    yield _made(KERNELS / "__pycache__")
    home = os.path.expanduser("~")  # noqa: PTH111 - without a home it stays as it is, Path raises
    caches = Path(os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache")
    if caches.is_absolute():
        yield _made(caches / "neardup")
    with contextlib.suppress(FileNotFoundError):  # no temporary folder at all
        yield _private(Path(tempfile.gettempdir()) / f"neardup-{_user()}")


def _made(folder: Path) -> Path:
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _private(folder: Path) -> Path:
    """The folder, if nobody else can write it, since its code is run; else the null device."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == _user() and not status.st_mode & 0o077:
            return folder
    return Path(os.devnull)


@functools.cache
def digest(module: str) -> str:
    """A digest of the source of a kernel module and of all kernel modules that it imports.

    The module `cache` is left out: it stores compiled code, and changes none of it.
    """
    sources: dict[str, bytes] = {"cache": b""}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = _source(name)
            waiting += _IMPORTED.findall(sources[name].decode())
    joined = b"\0".join(name.encode() + sources[name] for name in sorted(sources))
    return hashlib.blake2b(joined, digest_size=16).hexdigest()


@functools.cache
def _source(module: str) -> bytes:
    path = KERNELS / f"{module.replace('.', '/')}.py"
    return path.read_bytes() if path.is_file() else b""
