"""Outputs that appear together or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from neardup.documents.files.atomic import (
    STANDARD_OUTPUT,
    AtomicFile,
    AtomicFolder,
    Output,
    RemoteFile,
    is_device,
    not_empty,
)
from neardup.documents.files.problems import file_error
from neardup.documents.files.remote import as_local, is_uri, locate, remote_errors
from neardup.errors import FileError, UsageError
from neardup.runtime.signals import note_what_is_there, removes_what_is_left, uninterrupted
from neardup.runtime.storage.durable_files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

__all__ = ["OutputSet", "check_apart", "check_empty", "check_no_file", "is_folder"]

T = TypeVar("T", bound=Output)


class _Files:
    """Files, whatever path leads to them.

    Args:
        paths: A path or URI of each; some may not exist.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._identities: dict[str, set[object]] = {}

    def __contains__(self, path: str) -> bool:
        """Whether a path leads to one of them."""
        scheme = _scheme(path)
        if scheme not in self._identities:
            paths = (each for each in self._paths if _scheme(each) == scheme)
            self._identities[scheme] = {_identity(each) for each in paths} - {None}
        return _identity(path) in self._identities[scheme]


def _identity(path: str) -> object:
    """What all paths of a file share: its device and number, or its full URI; None if absent."""
    if is_uri(path):
        return _full_name(path)
    try:
        status = os.stat(path)  # noqa: PTH116 - called for each of many files
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _scheme(path: str) -> str:
    return path.partition("://")[0] if is_uri(path) else ""


class OutputSet:
    """All outputs of one run: after `commit` they all exist, without it none does.

    Args:
        inputs: Paths that no output may replace.
        tmp: Folder for files that wait for their upload to a URI; the system's own if None.
        notify: Called with the paths of temporary files before an output begins, so that a later
            run can clean up after a kill; behind a URI just after.
        workers: Threads that compress each output; by default all available processors.

    Example:
        >>> with OutputSet() as outputs:
        ...     _ = outputs.create("/dev/null").write(b"gone")
        ...     outputs.commit()
    """

    def __init__(
        self,
        inputs: Iterable[str | None] = (),
        tmp: str | None = None,
        notify: Callable[[list[str]], None] | None = None,
        workers: int | None = None,
    ) -> None:
        """Remember the inputs."""
        self._workers = workers
        self._notify = notify or (lambda _: None)
        self._tmp = tmp
        self._inputs = _Files(path for path in inputs if path is not None)
        self._files: list[Output] = []
        self._taken: set[str] = set()
        self._folders: list[Path] = []
        self._committed = False
        self.replaced: list[str] = []
        """Files that existed when their output began."""
        self.may_repeat = False
        """Whether a run that was killed may have published the same folder of files."""
        removes_what_is_left(self._discard)  # where an interrupt keeps `__exit__` from it

    def create(self, path: str, workers: int | None = None) -> AtomicFile:
        """Begin an output.

        Args:
            path: Where.
            workers: Threads that compress it; by default those of the set.

        Raises:
            UsageError: If the path is an input, an output already, or a folder.
            FileError: If the folder around it is missing or cannot be written.
        """
        path, workers = as_local(path), workers or self._workers
        self.check(path)
        if not is_uri(path) and is_device(path):  # which may wait for its reader
            return self._begin(lambda: AtomicFile(path, self._notify, workers))
        self._take(path)
        if not is_uri(path) and Path(path).exists():
            self.replaced.append(path)
        with uninterrupted():
            if is_uri(path):
                return self._begin(lambda: RemoteFile(path, self._tmp, self._notify, workers))
            return self._begin(lambda: AtomicFile(path, self._notify, workers))

    def finished(self, path: str) -> Path:
        """The path of an output's bytes until the commit, now complete."""
        name = _full_name(as_local(path))
        file = next(
            x for x in self._files if isinstance(x, AtomicFile) and _full_name(x.path) == name
        )
        file.finish()
        return file.aside

    def create_tree(self, path: str) -> AtomicFolder:
        """Begin a folder of files, which must be empty or absent; with `may_repeat` also the same.

        Raises:
            UsageError: If there is something in it.
            FileError: If it cannot be created.
        """
        path = as_local(path)
        self._check_empty(path)
        if not is_uri(path):
            self.create_folder(str(Path(path).resolve().parent))
        with uninterrupted():
            return self._begin(
                lambda: AtomicFolder(path, self._tmp, self._notify, may_repeat=self.may_repeat)
            )

    def _begin(self, begin: Callable[[], T]) -> T:
        file = begin()
        self._files.append(file)
        return file

    def create_folder(self, path: str) -> None:
        """Make a folder unless it exists; it is removed without a commit."""
        path = as_local(path)
        if is_uri(path):
            return
        folder = Path(path)
        missing = [x for x in (folder, *folder.parents) if not x.exists()]
        for parent in reversed(missing):
            try:
                with uninterrupted():
                    parent.mkdir()
                    self._folders.append(parent)
            except OSError as error:
                raise file_error(path, "create the folder", error) from None

    def commit(self) -> None:
        """Flush, sync and rename every output; an error restores the previous state.

        A first SIGINT or SIGTERM during the renames is deferred until they are done.
        """
        for file in self._files:
            file.finish()
        with uninterrupted():
            self._publish()

    @property
    def is_committed(self) -> bool:
        """Whether all outputs have their names."""
        return self._committed

    def _publish(self) -> None:
        # All files are complete and synced by now. A rename is atomic, so a crash in between leaves
        # some new outputs and some old ones, each complete; an error withdraws the new ones, the
        # last first, since a folder may have a later file in it.
        published: list[Output] = []
        try:
            for file in self._files:
                published.append(file)  # before: a rename may be done although it raises
                file.publish()
        except BaseException:
            for file in reversed(published):
                file.withdraw()
            raise
        self._committed = True  # from here on nothing is withdrawn, even if `settle` fails
        if self._files:
            note_what_is_there("the outputs are written")
        for file in self._files:
            file.settle()
        for folder in {x for x in (file.folder for file in self._files) if x is not None}:
            with contextlib.suppress(OSError):
                sync_folder(folder)

    def check(self, path: str, *, makes_folder: bool = False) -> None:
        """Raise the errors of `create`, without creating anything; call it before a long run.

        Args:
            path: The output.
            makes_folder: Whether the run makes the folder around it.
        """
        path = as_local(path)
        if path in STANDARD_OUTPUT:
            return
        if path.endswith("/") or _is_there_as_folder(path):
            raise UsageError(f"{path} is a folder; name a file in it, or end the name with /")
        folder = Path(path).resolve().parent
        if not is_uri(path) and not makes_folder and not folder.is_dir():
            raise FileError(f"cannot write {path}: there is no folder {folder}; create it first")
        if path in self._inputs:
            raise UsageError(f"{path} is an input; write to another path")
        if not is_uri(path) and not is_device(path):
            _check_writable(path)
            _check_place(path, folder)

    def check_tree(self, path: str, others: Iterable[str] = ()) -> None:
        """Raise the errors of `create_tree`, without creating anything.

        Args:
            path: The folder.
            others: The other outputs, none of which may be in it.
        """
        path = as_local(path)
        self._check_empty(path)
        if is_uri(path):
            return
        folder = Path(path).resolve()
        _check_place(path, folder.parent)
        for other in map(as_local, others):
            if not is_uri(other) and Path(other).resolve().is_relative_to(folder):
                raise UsageError(
                    f"{other} is in {path}, which is for the kept files alone; write it to another"
                    " folder"
                )

    def _check_empty(self, path: str) -> None:
        if is_uri(path) or not self.may_repeat:  # else it is compared when it is complete
            check_empty(path)

    def _take(self, path: str) -> None:
        name = _full_name(path)
        if name in self._taken:
            raise _named_twice(path)
        self._taken.add(name)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove every temporary file, and, without a commit, the folders made."""
        if self._committed and isinstance(error, KeyboardInterrupt):
            error.add_note("the outputs are written")
        self._discard()

    def _discard(self) -> None:
        for file in self._files:
            file.discard()
        if not self._committed:
            for folder in reversed(self._folders):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        self._files, self._folders = [], []


def _is_there_as_folder(path: str) -> bool:
    if not is_uri(path):
        return Path(path).is_dir()
    fs, key = locate(path)
    with remote_errors(path, "read"):
        return bool(fs.isdir(key))


def _check_writable(path: str) -> None:
    """Refuse to replace a read-only file, also for a privileged user."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return
    if not mode & 0o222:
        raise FileError(
            f"cannot write {path}: it is there and read-only; name another file, or allow writing:"
            f" chmod +w {path}"
        )


def _check_place(path: str, folder: Path) -> None:
    """Refuse an output in a folder that cannot be made, or which takes no files."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        raise FileError(f"cannot write {path}: {there} is a file; name another folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError(
            f"cannot write {path}: you may not write to {there}; name another folder, or allow"
            f" writing: chmod u+wx {there}"
        )


def check_apart(paths: Iterable[str]) -> None:
    """Raise UsageError if two outputs have the same path."""
    names = set[str]()
    for path in map(as_local, paths):
        if is_uri(path) or path in STANDARD_OUTPUT or not is_device(path):
            name = _full_name(path)
            if name in names:
                raise _named_twice(path)
            names.add(name)


def _named_twice(path: str) -> UsageError:
    return UsageError(f"{path} is named for two outputs; give each its own path")


def _full_name(path: str) -> str:
    if path in STANDARD_OUTPUT:
        return "-"
    if not is_uri(path):
        return str(Path(path).resolve())
    fs, key = locate(path)
    return str(fs.unstrip_protocol(key))


def is_folder(path: str) -> bool:
    """Whether an output is a folder, by its name alone: it ends in a slash or has no extension.

    Example:
        >>> is_folder("out/"), is_folder("out"), is_folder("out.jsonl"), is_folder("-")
        (True, True, False, False)
    """
    path = as_local(path)
    if path.endswith("/"):
        return True
    if path in STANDARD_OUTPUT or (
        not is_uri(path) and is_device(path) and not Path(path).is_dir()
    ):
        return False
    name = path.rpartition("/")[2].lstrip(".")
    return "." not in name


def check_no_file(path: str) -> None:
    """Raise UsageError if there is a file where a folder is meant."""
    path = as_local(path)
    if not is_uri(path) and Path(path).is_file():
        raise UsageError(
            f"{path} is a file, and a name without an extension means a folder; give the file an"
            " extension, or name another folder"
        )


def check_empty(path: str) -> None:
    """Raise UsageError if there is something in a folder."""
    if is_uri(path):
        fs, key = locate(path)
        with remote_errors(path, "read"):
            is_used = fs.exists(key) and bool(fs.find(key))
    else:
        try:
            is_used = Path(path).is_dir() and any(Path(path).iterdir())
        except OSError as error:
            raise file_error(path, "read", error) from None
    if is_used:
        raise not_empty(path)
