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
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import orjson
import pyarrow as pa

from neardup.errors import UsageError
from neardup.pipeline.run.folder.facts import check_facts
from neardup.pipeline.run.matching import Grouping, References
from neardup.runtime.storage.append_file import AppendFile, append_failure, damaged
from neardup.runtime.storage.files import LockHeldError, lock_file, sync_folder, unlock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.documents import OutputSet

__all__ = ["DATA_FILES", "RunFolder", "references_bytes", "references_of"]

JOURNAL: Final = "journal"
LOCK: Final = "lock"
DATA_FILES: Final = ("fingerprints", "counts", "features")
GROUPING: Final = "grouping"
REFERENCES: Final = "beside"
_ASIDE: Final = "journal.new"
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
        self._journal: AppendFile | None = None
        self._journal_bytes = 0
        self._grouped: dict[str, Any] | None = None
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
        records = self._read_journal()
        if not records:
            self.facts = facts
            for file in self.files.values():
                file.cut(0)
            self._journal = self._new_journal(facts)
            return
        self._take(records[1:])
        check_facts(records[0], facts, str(self.path), updating=self.was_updating)
        self.facts = records[0]
        self._journal = AppendFile(self.path / JOURNAL)
        self._journal.cut(self._journal_bytes)
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
        self._append({"documents": documents, "content": content, "files": marks})

    def save_grouping(self, grouping: Grouping) -> None:
        """Keep the result of the matching step."""
        arrays = [grouping.kept_by, grouping.label]
        if grouping.similarity is not None:
            arrays.append(grouping.similarity)
        if grouping.via is not None:
            arrays.append(grouping.via)
        marks = {"grouped": self._save(GROUPING, arrays)}
        if grouping.references is not None:
            marks["beside"] = self._save(REFERENCES, [references_bytes(grouping.references)])
        sync_folder(self.path)
        has = {"similarity": grouping.similarity is not None, "via": grouping.via is not None}
        self._append(marks | has)

    def _save(self, name: str, arrays: list[Any]) -> dict[str, int]:
        with contextlib.closing(AppendFile(self.path / name)) as file:
            file.cut(0)
            for array in arrays:
                file.write(np.ascontiguousarray(array))
            return file.mark()

    def grouping(self) -> Grouping | None:
        """The result of the matching step, if it was finished; DataError if it is damaged."""
        if self._grouped is None:
            return None
        data = self._saved(GROUPING, self._grouped["grouped"])
        has_similarity, has_via = self._grouped["similarity"], self._grouped["via"]
        parts = np.split(data.view(np.int64), 2 + has_similarity + has_via)
        similarity = parts[2].view(np.float64) if has_similarity else None
        references = None
        if "beside" in self._grouped:
            references = references_of(self._saved(REFERENCES, self._grouped["beside"]))
        via = parts[-1] if has_via else None
        return Grouping(parts[0], parts[1], similarity, references, via)

    def _saved(self, name: str, mark: dict[str, int]) -> Any:
        with contextlib.closing(AppendFile(self.path / name)) as file:
            file.check(0, mark)
            return file.array(np.uint8)

    def note_aside(self, paths: list[str]) -> None:
        """Write down what a killed run would leave beside its outputs."""
        self._append({"aside": paths})

    @contextlib.contextmanager
    def publishing(self, outputs: OutputSet) -> Iterator[None]:
        """Write down that all outputs are whole and get their names now.

        An error that withdraws them withdraws that as well.
        """
        self._append({"publishing": True})
        try:
            yield
        except BaseException:
            if not outputs.is_committed:
                self._append({"publishing": False})
            raise

    def note_updating(self) -> None:
        """Write down that the outputs have their names, and documents go to an index now."""
        self._append({"updating": True})

    def remove(self) -> None:
        """Remove the state, and the folder if nothing else is in it; the run has succeeded."""
        for name in (JOURNAL, _ASIDE, GROUPING, REFERENCES, *DATA_FILES, LOCK):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path / name)  # noqa: PTH108  # one call to fail in
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the lock and the files; what is in them stays."""
        for file in (*self.files.values(), self._journal):
            if file is not None:
                file.close()
        unlock(self._lock)

    def _append(self, record: dict[str, Any]) -> None:
        if self._journal is None:
            raise RuntimeError("the folder has no journal yet: call begin first")
        self._journal.write(_line(record))
        self._journal.mark()

    def _take(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            if "documents" in record:
                self.checkpoints.append(record)
            elif "grouped" in record:
                self._grouped = record
            elif "aside" in record:
                self._aside += record["aside"]
            elif "updating" in record:
                self.was_updating = True
            else:
                self.was_publishing = record["publishing"]

    def _new_journal(self, facts: dict[str, Any]) -> AppendFile:
        """Begin it under another name, so that its first line is always whole."""
        aside = AppendFile(self.path / _ASIDE)
        aside.cut(0)
        aside.write(_line(facts))
        aside.mark()
        os.replace(self.path / _ASIDE, self.path / JOURNAL)  # noqa: PTH105  # one call to fail in
        sync_folder(self.path)
        return aside

    def _read_journal(self) -> list[dict[str, Any]]:
        path = self.path / JOURNAL
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise append_failure("read", path, error) from None
        self._journal_bytes = data.rfind(b"\n") + 1  # a torn last line was never promised
        records = list(_records(path, data[: self._journal_bytes]))
        if not records:
            raise damaged(path, "it has no first line")
        return records


def references_bytes(references: References) -> Any:
    """Ids and fingerprints as an Arrow stream."""
    width = references.codes.shape[1]
    codes = pa.FixedSizeListArray.from_arrays(pa.array(references.codes.reshape(-1)), width)
    table = pa.table({"id": references.ids.cast(pa.large_string()), "words": codes})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def references_of(data: Any) -> References:
    """Read what `references_bytes` made."""
    table = pa.ipc.open_stream(pa.py_buffer(data)).read_all().combine_chunks()
    codes = table["words"].combine_chunks()
    flat = codes.flatten().to_numpy().reshape(-1, codes.type.list_size)
    return References(table["id"].combine_chunks(), flat)


def _line(record: dict[str, Any]) -> bytes:
    body = orjson.dumps(record)
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _records(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.splitlines(), 1):
        checksum, _, body = line.partition(b" ")
        if checksum != b"%08x" % zlib.crc32(body):
            raise damaged(path, f"line {number} has another checksum")
        yield orjson.loads(body)


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
    known = {JOURNAL, _ASIDE, LOCK, GROUPING, REFERENCES, *DATA_FILES}
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
