"""The state of a run in a folder, so that a killed run goes on where it stopped.

The folder holds data files, which only grow, and a journal of one line for each checkpoint. A
checkpoint syncs the data first and then appends its line, with the lengths and checksums of what it
added: what lies beyond the last whole line is cut off when the folder is opened again. The first
line says what the run is about (inputs, recipe, options), and is compared when the run goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import UsageError
from neardup.pipeline.run.decision import decision_of, write_decision
from neardup.pipeline.run.folder.facts import check_facts
from neardup.pipeline.run.folder.journal import JOURNAL_FILES, Journal
from neardup.runtime.storage.append_file import AppendFile, append_failure
from neardup.runtime.storage.files import LockHeldError, lock_file, sync_folder, unlock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents import OutputSet
    from neardup.pipeline.run.decision import Decision

__all__ = ["DATA_FILES", "RunFolder"]

LOCK: Final = "lock"
DATA_FILES: Final = ("fingerprints", "counts", "features")
GROUPING: Final = "grouping"
_TEMPORARY: Final = re.compile(r"\..*\.(tmp|old)", re.DOTALL)


class RunFolder:
    """The state of one run; locked while it is open.

    Args:
        path: The folder; made unless it is there, when it must be empty or hold such a state.

    Attributes:
        checkpoints: After `begin`: what `commit` wrote, of this run and those before.
        was_publishing: After `begin`: whether the run before was killed while it gave the outputs
            their names, or after.
        was_updating: After `begin`: whether that was while it added documents to an index.
        facts: After `begin`: as they were when the run began.

    Raises:
        UsageError: If another run has it open, or there are other files in it.
        FileError: If it cannot be made or written.
    """

    def __init__(self, path: str) -> None:
        """Lock the folder; nothing is read yet."""
        self.path = Path(path)
        _make_folder(self.path)
        self._lock = _locked(self.path)
        self.files = {name: AppendFile(self.path / name) for name in DATA_FILES}
        self.checkpoints: list[dict[str, Any]] = []
        self._journal = Journal(self.path)
        self._grouped: dict[str, int] | None = None
        self._aside: list[str] = []
        self.was_publishing = False
        self.was_updating = False
        self.facts: dict[str, Any] = {}

    def begin(self, facts: dict[str, Any]) -> None:
        """Go on with the state that is there, or begin one.

        Args:
            facts: What the run is about, as `run_facts` gives it.

        Raises:
            UsageError: If the state is that of another run: names what differs.
            DataError: If the state is damaged.
            FileError: If a read or write fails.
        """
        records = self._journal.read()
        if not records:
            self.facts = facts
            for file in self.files.values():
                file.cut(0)
            self._journal.begin(facts)
            return
        self._take(records[1:])
        check_facts(records[0], facts, str(self.path), updating=self.was_updating)
        self.facts = records[0]
        self._journal.go_on()
        self._check_data()
        for path in self._aside:
            _remove_output(path)

    def _check_data(self) -> None:
        """Check every byte that the journal knows, and cut off what it does not know."""
        ends = dict.fromkeys(DATA_FILES, 0)
        for checkpoint in self.checkpoints:
            for name, mark in checkpoint["files"].items():
                self.files[name].check(ends[name], mark)
                ends[name] = mark["nbytes"]
        for name, file in self.files.items():
            file.cut(ends[name])

    def commit(self, documents: int, content: int) -> None:
        """Make a checkpoint: everything that the data files hold belongs to so many documents.

        Args:
            documents: How many there are in all, from the first one on.
            content: Checksum of what was read for those since the checkpoint before.
        """
        marks = {name: file.mark() for name, file in self.files.items()}
        self._journal.append({"documents": documents, "content": content, "files": marks})

    def save_decision(self, decision: Decision) -> None:
        """Keep the result of the matching step."""
        with contextlib.closing(AppendFile(self.path / GROUPING)) as file:
            file.cut(0)
            write_decision(decision, file)
            mark = file.mark()
        sync_folder(self.path)
        self._journal.append({"grouped": mark})

    @property
    def is_matched(self) -> bool:
        """Whether the matching step was finished."""
        return self._grouped is not None

    def decision(self) -> Decision | None:
        """The result of the matching step, if it was finished; DataError if it is damaged."""
        if self._grouped is None:
            return None
        with contextlib.closing(AppendFile(self.path / GROUPING)) as file:
            file.check(0, self._grouped)
            return decision_of(file.array(np.uint8)[: self._grouped["nbytes"]])

    def note_aside(self, paths: list[str]) -> None:
        """Write down what a killed run would leave beside its outputs."""
        self._journal.append({"aside": paths})

    @contextlib.contextmanager
    def publishing(self, outputs: OutputSet) -> Iterator[None]:
        """Write down that all outputs are whole and get their names now.

        An error that withdraws them withdraws that as well; what a run before gave its name stays
        there, and known.
        """
        self._journal.append({"publishing": True})
        try:
            yield
        except BaseException:
            if not outputs.is_committed:
                self._journal.append({"publishing": self.was_publishing})
            raise

    def note_updating(self) -> None:
        """Write down that the outputs have their names, and documents go to an index now."""
        self._journal.append({"updating": True})

    def remove(self) -> None:
        """Remove the state, and the folder if nothing else is in it; the run has succeeded.

        The journal goes last, so that a run that is killed meanwhile is known to have published.
        """
        self._journal.append({"done": True})
        for name in (GROUPING, *DATA_FILES, *JOURNAL_FILES[::-1], LOCK):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path / name)  # noqa: PTH108  # one call to fail in
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the lock and the files; what is in them stays."""
        for file in self.files.values():
            file.close()
        self._journal.close()
        unlock(self._lock)

    def _take(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            if "documents" in record:
                self.checkpoints.append(record)
            elif "grouped" in record:
                self._grouped = record["grouped"]
            elif "aside" in record:
                self._aside += record["aside"]
            elif "updating" in record:
                self.was_updating = True
            elif "done" in record:  # what was kept is being removed
                self.checkpoints, self._grouped = [], None
            else:
                self.was_publishing = record["publishing"]


def _remove_output(path: str) -> None:
    """Remove what a killed run left beside its outputs: a file or a folder, if it is there.

    Nothing is removed that does not have the name of such a file, whatever the journal says.
    """
    if not _TEMPORARY.fullmatch(Path(path).name):
        return
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(path).unlink()


def _make_folder(path: Path) -> None:
    known = {*JOURNAL_FILES, LOCK, GROUPING, *DATA_FILES}
    try:
        path.mkdir(exist_ok=True)
        others = sorted({x.name for x in path.iterdir()} - known)
    except OSError as error:
        raise append_failure("create", path, error) from None
    if others:
        raise UsageError(
            f"--resume is {path}, which holds {others[0]!r}: name a new folder, or one that a run"
            " before left"
        )


def _locked(path: Path) -> int:
    """Open and lock the folder's lock file; its descriptor. A killed process holds no lock."""
    name = path / LOCK
    while True:
        try:
            path.mkdir(exist_ok=True)
            descriptor = lock_file(name)
        except OSError as error:
            raise append_failure("open", name, error) from None
        except LockHeldError as error:
            raise UsageError(
                f"{path} is in use by another run (process {error.holder}): wait for it, or name"
                " another folder"
            ) from None
        if _is_open_file(name, descriptor):
            return descriptor
        unlock(descriptor)  # the run before removed it between our two calls


def _is_open_file(name: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(name), os.fstat(descriptor))  # noqa: PTH116
    except FileNotFoundError:
        return False
