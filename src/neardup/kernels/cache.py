"""The cache of compiled kernels: read from several folders, written to the first that allows it.

Numba takes a folder only if it can be written, and refuses to start where there is none. Here, in
this order: NUMBA_CACHE_DIR, next to this file, the user's cache, a private folder under the
temporary one. The first three may be read-only, as in an image whose kernels root compiled; where
nothing can be written, kernels are compiled in each process, with one warning.

A kernel is known by a digest of its own source and of every kernel source that it imports, so an
edit or an upgrade never meets old code. One process compiles a kernel while others wait for it. In
a folder that cannot be written, code for a CPU with fewer features serves too, as in an image that
was built on another machine.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numba
import numba.core.caching
from numba.core.runtime import rtsys  # type: ignore[attr-defined]

from neardup.kernels.folders import KERNELS, file_name, folders

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Implementation", "KernelCache"]

caching: Final[Any] = numba.core.caching

MOST_SECONDS: Final = 300
"""The longest wait for another process that compiles a kernel; then this one compiles it too."""


class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's way to write a compiled kernel as bytes, under a name of ours."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = self
        self._py_file = function.__code__.co_filename
        module = function.__module__.removeprefix("neardup.kernels.")
        # With bounds checks, other code comes of the same source.
        checks = ".checked" if getattr(numba.config, "BOUNDSCHECK", None) else ""
        name = f"{module}.{function.__qualname__}{checks}"
        self.kind = name.replace("<", "").replace(">", "")
        self._filename_base = file_name(self.kind, module)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The compiled forms of one kernel, in all folders of the cache."""

    def __init__(
        self, function: Callable[..., Any], implementation: Implementation | None = None
    ) -> None:
        """Describe the cache of a kernel, without a look at any file."""
        self._name, self._py_func = repr(function), function
        self._impl = implementation or Implementation(function)
        self._place = int(hashlib.blake2b(self._impl.filename_base.encode()).hexdigest()[:7], 16)
        self._locked = False
        self.enable()

    @property
    def cache_path(self) -> str | None:
        """The folder to which compiled kernels are written, if there is one."""
        writable = _writable()
        return None if writable is None else str(writable)

    def flush(self) -> None:
        """Forget the compiled forms in the folder that is written."""
        if self.cache_path is not None:
            self._file(Path(self.cache_path)).flush()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code without the parts for compiling, which take a quarter of a start.

        A process that compiles the kernel, after None, loads those parts itself.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        key = self._index_key(sig, target_context.codegen())
        data = self._find(key)
        if data is None and self._wait_for_others():
            data = self._find(key)
            if data is not None:
                self._release()
        return None if data is None else self._impl.rebuild(target_context, data)

    def _save_overload(self, sig: Any, data: Any) -> None:
        path = self.cache_path
        try:
            if self._enabled and path is not None and self._impl.check_cachable(data):
                file = self._file(Path(path))
                self._remove_older(Path(path))
                if _index(file) is None:
                    file.flush()
                # A full disk costs the next start, not this one.
                with contextlib.suppress(OSError):
                    file.save(self._index_key(sig, data.codegen), self._impl.reduce(data))
        finally:
            self._release()

    def _file(self, folder: Path) -> Any:
        return caching.IndexDataCacheFile(str(folder), self._impl.filename_base, "")

    def _find(self, key: Any) -> Any:
        for folder in folders():
            file = self._file(folder)
            known = _index(file) or {}
            fitting = key if key in known else None
            if fitting is None and folder != _writable():
                fitting = _for_lesser_cpu(key, known)
            if fitting is not None:
                with contextlib.suppress(Exception):  # damaged or gone: compile it
                    return file.load(fitting)
        return None

    def _wait_for_others(self) -> bool:
        """Wait to be the process that compiles this kernel; false if it is already or cannot be."""
        folder = _writable()
        if folder is None or self._locked:
            return False
        end = time.monotonic() + MOST_SECONDS
        while not self._locked and time.monotonic() < end:
            try:
                self._locked = _lock(folder, self._place)
            except OSError:
                return False
            if not self._locked:
                time.sleep(0.05)
        return True

    def _release(self) -> None:
        folder = _writable()
        if self._locked and folder is not None:
            self._locked = False
            with contextlib.suppress(OSError):
                _lock(folder, self._place, free=True)

    def _remove_older(self, folder: Path) -> None:
        """Remove files of other versions of the kernel if the folder is that of the package."""
        if folder == KERNELS / "__pycache__":
            for path in folder.glob(f"{self._impl.kind}-*"):
                if not path.name.startswith(self._impl.filename_base):
                    with contextlib.suppress(OSError):
                        path.unlink()


def _lock(folder: Path, place: int, *, free: bool = False) -> bool:
    """Take (or free) the lock of one kernel: a byte of a file that all processes share."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: every process compiles for itself
        return True
    kind = fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB
    try:
        fcntl.lockf(_lock_file(folder), kind, 1, place)
    except BlockingIOError:
        return False
    return True


@functools.cache
def _lock_file(folder: Path) -> int:
    return os.open(folder / "neardup.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


@functools.cache
def _writable() -> Path | None:
    """The first folder in which a file can be made; None, with a warning, where there is none."""
    for folder in folders():
        with contextlib.suppress(OSError):
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    message = (
        "no folder for compiled kernels can be written, so each start compiles them again: set"
        " NUMBA_CACHE_DIR to a folder that can be written, or run `neardup compile --into DIR`"
        " where one can, and set it to that DIR"
    )
    warnings.warn(message, RuntimeWarning, stacklevel=2)
    return None


def _index(file: Any) -> dict[Any, str] | None:
    """The compiled forms that a file lists; None for an index that this version cannot read."""
    try:
        return dict(file._load_index())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - of another version, or damaged: whatever unpickling raises
        return None


def _for_lesser_cpu(key: Any, known: dict[Any, str]) -> Any:
    """The key of the same kernel for the CPU with the most features, all of which this one has."""
    signature, (triple, _, features), code = key
    ours = _enabled(features)
    fitting = [
        other
        for other in known
        if (other[0], other[1][0], other[2]) == (signature, triple, code)
        and _enabled(other[1][2]) <= ours
    ]
    return max(fitting, key=lambda other: len(_enabled(other[1][2])), default=None)


def _enabled(features: str) -> set[str]:
    return {each for each in features.split(",") if each.startswith("+")}
