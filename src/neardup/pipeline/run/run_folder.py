"""The state of a run in a folder, so that a killed run can continue.

The folder has data files, which only grow, and a journal of one line for each checkpoint. A
checkpoint syncs the data first and then appends its line, with the lengths and checksums of the new
data. Data beyond the last whole line are cut off when the folder is opened again. The first line
describes the run (inputs, recipe, options), and is compared when the run continues.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import FileError, UsageError
from neardup.pipeline.run.decision import decision_of, write_decision
from neardup.pipeline.run.rule import settings
from neardup.runtime.storage.append_file import AppendFile, append_failure, damaged
from neardup.runtime.storage.durable_files import LockHeldError, lock_file, sync_folder, unlock
from neardup.runtime.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import OutputSet, ReadOptions, Source
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.rule import Choice, Rule

__all__ = [
    "DATA_FILES",
    "JOURNAL",
    "JOURNAL_FILES",
    "Journal",
    "RunFolder",
    "check_facts",
    "described",
    "described_reading",
    "run_facts",
]

LOCK: Final = "lock"
DATA_FILES: Final = ("fingerprints", "counts", "features")
"""The data files of `neardup dedup`."""
GROUPING: Final = "grouping"
_TEMPORARY: Final = re.compile(r"\..*\.(tmp|old)", re.DOTALL)


class RunFolder:
    """The state of one run; locked while it is open.

    Args:
        path: The folder; a new one, an empty one, or one with such a state.
        names: Of the data files.

    Attributes:
        files: The data files by name.
        checkpoints: After `begin`: the checkpoints of this run and earlier ones.
        was_publishing: After `begin`: whether the earlier run was killed while it renamed the
            outputs, or later.
        was_updating: After `begin`: whether it was killed while it added documents to an index.
        facts: After `begin`: as they were when the run began.

    Raises:
        UsageError: If another run has it open, or there are other files in it.
        FileError: If it cannot be made or written.
    """

    def __init__(self, path: str, names: Sequence[str] = DATA_FILES) -> None:
        """Lock the folder; nothing is read yet."""
        self.path = Path(path)
        _make_folder(self.path, names)
        with contextlib.ExitStack() as stack:
            self._lock = _locked(self.path)
            stack.callback(unlock, self._lock)
            self.files: dict[str, AppendFile] = {}
            for name in names:
                self.files[name] = AppendFile(self.path / name)
                stack.callback(self.files[name].close)
            stack.pop_all()  # all are open, and closed with this object
        self.checkpoints: list[dict[str, Any]] = []
        self._journal = Journal(self.path)
        self._grouped: dict[str, int] | None = None
        self._aside: list[str] = []
        self.was_publishing = False
        self.was_updating = False
        self.facts: dict[str, Any] = {}

    def begin(self, facts: dict[str, Any]) -> None:
        """Continue from the existing state, or begin one.

        Args:
            facts: The description of the run, from `run_facts`.

        Raises:
            UsageError: If the state is that of another run; it names the difference.
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
        """Check every byte that the journal covers, and cut off the rest."""
        ends = dict.fromkeys(self.files, 0)
        for checkpoint in self.checkpoints:
            for name, mark in checkpoint["files"].items():
                self.files[name].check(ends[name], mark)
                ends[name] = mark["nbytes"]
        for name, file in self.files.items():
            file.cut(ends[name])

    def commit(self, documents: int, content: int) -> None:
        """Make a checkpoint: the data files are complete for a number of documents.

        Args:
            documents: The number of all documents so far.
            content: Checksum of the input since the previous checkpoint.
        """
        # Data first: a line of the journal is a promise about data on disk. A kill between the two
        # leaves data beyond the last mark, which the next run cuts off.
        marks = {name: file.mark() for name, file in self.files.items()}
        self._journal.append({"documents": documents, "content": content, "files": marks})

    def save_decision(self, decision: Decision) -> None:
        """Save the result of the matching step."""
        with contextlib.closing(AppendFile(self.path / GROUPING)) as file:
            file.cut(0)
            write_decision(decision, file)
            mark = file.mark()
        # The file and its name are on disk before the journal mentions them, as in `commit`.
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
        """Record the temporary files that a killed run would leave next to its outputs."""
        self._journal.append({"aside": paths})

    @contextlib.contextmanager
    def publishing(self, outputs: OutputSet) -> Iterator[None]:
        """Record that all outputs are complete and are being renamed.

        An error that withdraws them withdraws the record too; outputs that an earlier run published
        stay, and stay recorded.
        """
        self._journal.append({"publishing": True})
        try:
            yield
        except BaseException:
            if not outputs.is_committed:
                self._journal.append({"publishing": self.was_publishing})
            raise

    def note_updating(self) -> None:
        """Record that the outputs are published, and documents are being added to an index."""
        self._journal.append({"updating": True})

    def remove(self) -> None:
        """Remove the state, and the folder if nothing else is in it; the run has succeeded.

        The journal goes last, so that a run killed during this is known to have published.
        """
        self._journal.append({"done": True})
        for name in (GROUPING, *self.files, *JOURNAL_FILES[::-1], LOCK):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path / name)  # noqa: PTH108  # one call to fail in
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock and the files; their content stays."""
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
            elif "done" in record:  # the saved state is being removed
                self.checkpoints, self._grouped = [], None
            else:
                self.was_publishing = record["publishing"]


def _remove_output(path: str) -> None:
    """Remove a temporary file or folder that a killed run left next to its outputs.

    Only paths with the name of such a file are removed, also if the journal names others.
    """
    if not _TEMPORARY.fullmatch(Path(path).name):
        return
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(path).unlink()


def _make_folder(path: Path, names: Sequence[str]) -> None:
    own = {*JOURNAL_FILES, LOCK, GROUPING, *names}
    try:
        path.mkdir(exist_ok=True)
        others = sorted({x.name for x in path.iterdir()} - own)
    except OSError as error:
        raise append_failure("create", path, error) from None
    if others:
        raise UsageError(
            f"--resume is {path}, which holds {others[0]!r}: name a new folder, or one that a run"
            " before left"
        )


def _locked(path: Path) -> int:
    """Lock the folder's lock file; returns its descriptor. A killed process holds no lock."""
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


JOURNAL: Final = "journal"
_ASIDE: Final = "journal.new"
JOURNAL_FILES: Final = (JOURNAL, _ASIDE)


class Journal:
    """The records of a run, in order; an appended one is on disk when the call returns.

    Args:
        folder: The folder of the file.
    """

    def __init__(self, folder: Path) -> None:
        """Open nothing yet."""
        self._folder = folder
        self._file: AppendFile | None = None
        self._whole = 0

    def read(self) -> list[dict[str, Any]]:
        """The existing records; none if there is no journal.

        Raises:
            DataError: If one is damaged. An incomplete last line is skipped, since it was never
                promised.
            FileError: If it cannot be read.
        """
        path = self._folder / JOURNAL
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise append_failure("read", path, error) from None
        self._whole = data.rfind(b"\n") + 1
        records = list(_records(path, data[: self._whole]))
        if not records:
            raise damaged(path, "it has no first line")
        return records

    def begin(self, record: dict[str, Any]) -> None:
        """Begin a journal, under another name, so that its first line is always whole."""
        self._file = AppendFile(self._folder / _ASIDE)
        self._file.cut(0)
        self._file.write(_line(record))
        self._file.mark()
        os.replace(self._folder / _ASIDE, self._folder / JOURNAL)  # noqa: PTH105  # one call to fail in
        sync_folder(self._folder)

    def go_on(self) -> None:
        """Continue the journal after its last whole line."""
        self._file = AppendFile(self._folder / JOURNAL)
        self._file.cut(self._whole)

    def append(self, record: dict[str, Any]) -> None:
        """Add a record."""
        if self._file is None:
            raise RuntimeError("there is no journal yet: call begin or go_on first")
        self._file.write(_line(record))
        self._file.mark()

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file is not None:
            self._file.close()


def _line(record: dict[str, Any]) -> bytes:
    body = json.dumps(record).encode()  # of any path, also one that is not UTF-8
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _records(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.splitlines(), 1):
        checksum, _, body = line.partition(b" ")
        if checksum != b"%08x" % zlib.crc32(body):
            raise damaged(path, f"line {number} has another checksum")
        yield json.loads(body)


VERSION: Final = 2
"""The version of the layout of the state on disk."""


def described(rule: Rule, choice: Choice, read: ReadOptions) -> dict[str, Any]:
    """All options on which a result depends, as JSON values.

    Raises:
        FileError: If the file of decisions cannot be read.
    """
    every = settings(rule, choice)
    options = {name: every[name] for name in ("similarity", "measure", "distance")}
    return {
        "digest": rule.recipe.digest,
        "recipe": json.loads(rule.recipe.to_json()),
        "options": options
        | {
            "policy": choice.policy,
            "keep": choice.keep,
            **described_reading(read),
            "decisions": _digest_of(choice.decisions),
        }
        | ({} if choice.date_format is None else {"date_format": choice.date_format}),
    }


def described_reading(read: ReadOptions) -> dict[str, Any]:
    """The options about records on which a result depends, as JSON values."""
    form = read.input_format
    return {
        "text": ",".join(read.text),
        "id": read.id,
        "within": read.within,
        "extract": read.extract,
        "format": form.name if form.sheet is None else f"{form.name}:{form.sheet}",
        "delimiter": form.delimiter,
        "encoding": form.encoding,
    } | ({} if form.records is None else {"records": form.records})


def run_facts(
    options: dict[str, Any], sources: Sequence[Source], index: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Everything on which the result of a run depends, as JSON values.

    Args:
        options: From `described`.
        sources: The inputs.
        index: Facts about a reference index: "path", "documents", "added", "own_ids", and "only"
            if the inputs are compared with it alone.

    Raises:
        UsageError: If an input is a stream, which cannot be read again.
        FileError: If an input is missing.
    """
    against = {name: None if index is None else index[name] for name in ("path", "own_ids")}
    named: dict[str, Any] = {"against": against["path"], "own_ids": against["own_ids"]}
    if index is not None and "only" in index:
        named["only_against"] = True
    return {
        "state": VERSION,
        "version": __version__,
        **options,
        "options": options["options"] | named,
        "index": index,
        "inputs": [list(stamp) for source in sources for stamp in source.stamps()],
    }


def _digest_of(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


def check_facts(
    before: dict[str, Any], now: dict[str, Any], folder: str, *, updating: bool = False
) -> None:
    """Compare two runs.

    Args:
        before: Of the run that left the folder.
        now: Of this one.
        folder: Where its state is, for the message.
        updating: Whether the run was killed while it added to its index, which may then differ.

    Raises:
        UsageError: Names the first difference, with both values.
    """
    for name, title in (("state", "its format"), ("version", "neardup")):
        if before[name] != now[name]:
            raise UsageError(
                f"{folder} was left by another version ({title} {before[name]}, now {now[name]}):"
                f" use that one, or remove {folder} to start again"
            )
    if before["digest"] != now["digest"]:
        what = _difference(before["recipe"], now["recipe"]) or (
            f"its digest was {before['digest']}, now it is {now['digest']}"
        )
        raise UsageError(f"the recipe changed since {folder} was left: {what}; {_next(folder)}")
    what = _difference(before["options"], now["options"])
    if what:
        raise UsageError(f"an option changed since {folder} was left: {what}; {_next(folder)}")
    _check_inputs(before["inputs"], now["inputs"], folder)
    was, here = before["index"], now["index"]
    if was != here and not updating:
        raise UsageError(
            f"{here['path']} changed since {folder} was left: it had {was['documents']:,} documents"
            f" of {was['added']:,} ever added, now {here['documents']:,} of {here['added']:,};"
            f" remove {folder} to start again"
        )


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    for name in sorted({*before, *now}):
        was, is_now = before.get(name), now.get(name)
        if was != is_now:
            return f"{name} was {_short(was)}, now it is {_short(is_now)}"
    return ""


def _check_inputs(before: list[Any], now: list[Any], folder: str) -> None:
    was, here = ({row[0]: row for row in rows} for rows in (before, now))
    for path, row in here.items():
        if path not in was:
            raise UsageError(
                f"{path} is not an input of the run that left {folder}; {_next(folder)}"
            )
        if row != was[path]:
            raise UsageError(
                f"{path} changed since {folder} was left: it had {_stamp(was[path])}, now"
                f" {_stamp(row)}; {_next(folder)}"
            )
    for path in was:
        if path not in here:
            raise UsageError(
                f"{path} was an input of the run that left {folder}, and no longer is;"
                f" {_next(folder)}"
            )
    if before != now:
        raise UsageError(
            f"the inputs were in another order when {folder} was left; {_next(folder)}"
        )


def _next(folder: str) -> str:
    return f"put it back, or remove {folder} to start again"


def _stamp(row: list[Any]) -> str:
    _, nbytes, changed = row
    when = changed
    if isinstance(changed, int):
        when = datetime.fromtimestamp(changed / 1e9, UTC).isoformat(" ", "microseconds")
    return f"{nbytes:,} bytes of {when}"


def _short(value: Any) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
