"""The transaction of a run over files: outputs, state for `--resume`, documents in an index.

Nothing else renames an output or commits to an index. A commit does this, in this order:

1. the decision is written next to the index (`last-update`), if the run adds to one;
2. the journal records that the outputs are being published, if the run saves its state;
3. the outputs get their names, all of them or none;
4. the kept documents are added to the index and committed, in batches;
5. the state is removed, the journal last.

What a kill leaves, and what the same command then does:
- before 3: no output; it continues from the last checkpoint, or matches again;
- between 3 and 4: the outputs; they are replaced by the same ones. The decision of 1 is used, since
  the index may already have documents of this run, which would otherwise be dropped;
- within 4: some documents in the index, which knows their number; the rest are added;
- within 5: everything; the journal is removed last, so that the run is known to have published.
"""

from __future__ import annotations

import io
import os
from contextlib import ExitStack, nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import DataError, FileError, UsageError
from neardup.index.hits import ABSENT, SAME
from neardup.pipeline.run.decision import decision_of, write_decision
from neardup.pipeline.run.read_documents import Resume
from neardup.pipeline.run.run_folder import DATA_FILES, RunFolder, run_facts
from neardup.pipeline.run.run_outputs import check_outputs, output_set
from neardup.runtime.storage.checksums import checksum, sealed, unsealed
from neardup.runtime.storage.durable_files import file_failure, name_as_text, written_aside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from neardup.documents import OutputSet, ReadOptions, Source
    from neardup.pipeline.run.against import ReferenceIndex
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Limits
    from neardup.pipeline.run.run_outputs import Outputs
    from neardup.runtime.types import Rows

__all__ = [
    "LastUpdate", "NewDocuments", "Transaction", "command_of", "ids_of_kind", "made_id_error",
]  # fmt: skip


class Transaction:
    """The outputs, the state and the index of one run; a context manager.

    Args:
        sources: The inputs.
        outputs: Where to write.
        options: Identify the run, from `described`.
        limits: The resources of the run.
        reference: A reference index.
        skip_errors: As in ReadOptions.
        state: The data files of its state.
        others: Further paths that no output may replace.

    Attributes:
        files: The output files, which appear with `commit`.
        resume: The progress of a killed run and of this one; None if no state is saved.

    Raises:
        UsageError: If an output cannot be written, or the state is that of another run.
        DataError, FileError: If the state is damaged, or cannot be read or written.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        outputs: Outputs,
        options: dict[str, Any],
        limits: Limits,
        reference: ReferenceIndex | None = None,
        *,
        skip_errors: bool = False,
        state: Sequence[str] = DATA_FILES,
        others: Sequence[str] = (),
    ) -> None:
        """Lock the state and check the outputs, before anything is read."""
        self._sources, self._reference, self._outputs = sources, reference, outputs
        self.resume: Resume | None = None
        self._folder: RunFolder | None = None
        self._last: LastUpdate | None = None
        self._new: NewDocuments | None = None
        with ExitStack() as stack:
            if outputs.resume is not None:
                index = None if reference is None else reference.facts
                self._folder = stack.enter_context(RunFolder(outputs.resume, state))
                self._folder.begin(run_facts(options, sources, index))
                self.resume = Resume(self._folder)
            note = None if self._folder is None else self._folder.note_aside
            self.files: OutputSet = stack.enter_context(output_set(sources, limits, note, others))
            if reference is not None and reference.updates and reference.service is None:
                paths = outputs.kept, outputs.duplicates, outputs.clusters, outputs.rejects
                command = command_of(
                    sources, paths, options, reference.own_ids, skip_errors=skip_errors,
                    only="only" in reference.facts,
                )  # fmt: skip
                self._last = LastUpdate(reference, command)
            may_repeat = self._last is not None and self._last.may_repeat
            self.files.may_repeat = self._was_publishing or may_repeat
            check_outputs(sources, outputs, self.files)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Withdraw uncommitted outputs, and release the state, which stays."""
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # what the interpreter gives

    @property
    def _was_publishing(self) -> bool:
        return self._folder is not None and self._folder.was_publishing

    @property
    def _is_repeated(self) -> bool:
        """Whether the index has documents that the same command added before."""
        return self._last is not None and self._last.first is not None

    @property
    def notes(self) -> list[str]:
        """Notes on the progress of a killed run."""
        return [] if self.resume is None else self.resume.notes

    def earlier_decision(self, documents: Documents) -> Decision | None:
        """The decision of the same run before it was killed, or None."""
        decision = None if self._last is None else self._last.decision(documents)
        if decision is None and self._folder is not None:
            decision = self._folder.decision()
        return decision

    def keep(self, decision: Decision) -> None:
        """Save a decision with the state, so that a killed run need not match again."""
        if self._folder is not None:
            self._folder.save_decision(decision)

    def prepare(self, documents: Documents, decision: Decision) -> None:
        """Refuse, before writing, what could not be committed afterwards.

        Raises:
            UsageError: If an output has appeared during the run, or documents of the index would
                be replaced by others.
        """
        self.check_again()
        if self._reference is not None and self._reference.updates:
            first = None if self._last is None else self._last.first
            self._new = NewDocuments(self._reference, documents, decision, self._folder, first)

    def check_again(self) -> None:
        """Refuse an output that has appeared during the run, as `prepare` does."""
        # Any other folder of kept files appeared during the run, and is refused.
        self.files.may_repeat = self._was_publishing or self._is_repeated
        check_outputs(self._sources, self._outputs, self.files)

    def commit(self, decision: Decision, read: ReadOptions) -> None:
        """Publish the outputs and add the kept documents to the index: see the top of this file."""
        if self._last is not None and not self._is_repeated:
            # Before any output appears: the last point at which an interrupt may stop the run.
            self._last.save(decision, self._folder)
        self._publish()
        if self._new is not None:
            # After the outputs: a document in the index must also be in an output.
            self._new.add(self._sources, read)
        self._remove_state()

    def finish(self) -> None:
        """Publish the outputs of a run without a decision, which adds to no index."""
        self._publish()
        self._remove_state()

    def _publish(self) -> None:
        with nullcontext() if self._folder is None else self._folder.publishing(self.files):
            self.files.commit()

    def _remove_state(self) -> None:
        if self._folder is not None:
            self._folder.remove()


NAME: Final = "last-update"
FORMAT: Final = 2


class LastUpdate:
    """The state of the last update, stored next to an index.

    Args:
        reference: The index, open for writing.
        command: From `command_of`.

    Attributes:
        first: After `decision` returned one: the number of additions to the index when that run
            began.

    Raises:
        FileError: If the file cannot be read.
    """

    def __init__(self, reference: ReferenceIndex, command: bytes) -> None:
        """Read what is there."""
        self._index, self._asked, self._command = reference.index, command, ""
        self._path = reference.index.path / NAME
        self._head, self._arrays = self._read()
        self.first: int | None = None

    def _read(self) -> tuple[dict[str, Any], bytes]:
        try:
            body = unsealed(self._path.read_bytes(), str(self._path))
        except (FileNotFoundError, DataError):
            return {}, b""
        except OSError as error:
            raise file_failure("read", self._path, error) from None
        size = int.from_bytes(body[:8], "little")
        return orjson.loads(body[8 : 8 + size]), body[8 + size :]

    @property
    def may_repeat(self) -> bool:
        """Whether this may repeat an earlier command, judged before inputs are read."""
        return self._head.get("asked") == self._asked.hex()

    def decision(self, documents: Documents) -> Decision | None:
        """The decision of the same command if it has added documents, or None.

        A run that ended before it added one is not repeated: the index may have others by now.
        """
        codes = np.ascontiguousarray(documents.codes)
        empty = np.ascontiguousarray(np.ma.getmaskarray(documents.values))
        self._command = checksum(self._asked + checksum(codes) + checksum(empty)).hex()
        head = self._head
        is_same = head.get("format") == FORMAT and head["command"] == self._command
        if not is_same or self._index.added == head["first"]:
            return None
        decision = decision_of(self._arrays)
        if not self._has_added(documents, decision):
            return None
        self.first = head["first"]
        return decision

    def _has_added(self, documents: Documents, decision: Decision) -> bool:
        """Whether the index got a kept document of the run since it had `first` additions."""
        rows = np.flatnonzero(decision.kept)
        for begin in range(0, len(rows), ROWS_A_CALL):
            ids = documents.addresses.of(rows[begin : begin + ROWS_A_CALL])
            for identity in ids_of_kind(ids, self._index.id_kind).to_pylist():
                if identity in self._index and self._index.number(identity) >= self._head["first"]:
                    return True
        return False

    def save(self, decision: Decision, folder: RunFolder | None = None) -> None:
        """Save a decision, after `decision` returned None; it is on disk when this returns.

        Args:
            decision: The decision.
            folder: The state of the run, which may have added documents before.

        Raises:
            FileError: If it cannot be written.
        """
        first = self._index.added
        if folder is not None and folder.was_updating:
            first = folder.facts["index"]["added"]
        fields = {"format": FORMAT, "asked": self._asked.hex(), "command": self._command}
        head = orjson.dumps({**fields, "first": first})
        body = io.BytesIO()
        body.write(len(head).to_bytes(8, "little") + head)
        write_decision(decision, body)
        try:
            # Complete and synced before it has its name, which is synced too: an incomplete one
            # would count as none, and the outputs are published only afterwards.
            with written_aside(self._path) as aside, aside.open("wb") as file:
                file.write(sealed(body.getvalue()))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise file_failure("write", self._path, error) from None


def command_of(
    sources: Sequence[Source],
    outputs: Sequence[str | None],
    options: dict[str, Any],
    own_ids: str,
    *,
    skip_errors: bool,
    only: bool,
) -> bytes:
    """A checksum of everything that identifies a command before documents are read.

    Args:
        sources: The inputs; streams are identified by their documents.
        outputs: Paths.
        options: As `described` gives them.
        own_ids: As in Against.
        skip_errors: As in ReadOptions.
        only: As in Against.
    """
    inputs: list[Any] = []
    for source in sources:
        try:
            inputs += source.stamps()
        except UsageError:
            inputs.append(source.name)
    paths = [
        None if path is None else name_as_text(os.path.abspath(path))  # noqa: PTH100
        for path in outputs
    ]
    facts = [options["digest"], options["options"], skip_errors, own_ids, inputs, paths]
    return checksum(orjson.dumps([*facts, "only"] if only else facts))


ROWS_A_CALL: Final = 1 << 17
WAITING_BYTES: Final = 1 << 28
"""Bytes that may wait for a commit."""


class NewDocuments:
    """The kept documents of a run with tokens that the index does not yet have unchanged.

    Args:
        reference: The index, open for writing.
        documents: Of the run.
        decision: The decision.
        folder: The state of the run, if it saves one.
        first: The number of additions to the index when an earlier run with this decision began.

    Raises:
        UsageError: If a document without an id of its own is in the index already, or the index has
            received other documents since the run was killed.
        DataError: If an id is not a whole number, and those of the index are.
    """

    def __init__(
        self,
        reference: ReferenceIndex,
        documents: Documents,
        decision: Decision,
        folder: RunFolder | None,
        first: int | None = None,
    ) -> None:
        """Find the documents to add, without adding any."""
        self._index, self._documents, self._folder = reference.index, documents, folder
        self._is_similar = reference.is_similar
        self._codes = documents.codes
        chosen = decision.kept & ~documents.empty[: documents.own]
        if reference.keeps_own and decision.own is not None:
            chosen &= decision.own != SAME
        self._rows = np.flatnonzero(chosen)
        self._count = documents.own
        if self._index.id_kind == "int":
            self._ids(self._rows)  # refuses others here, before an output appears
        if reference.service is not None:
            self._pass_stored(reference)
        elif first is not None:
            self._pass(first)
        elif folder is not None and folder.was_updating:
            self._pass(folder.facts["index"]["added"])
        elif not reference.has_ids:
            self._check_addresses()

    def add(self, sources: Sequence[Source], read: ReadOptions) -> None:
        """Add and commit the documents.

        Args:
            sources: The inputs, whose texts are read again if the index stores texts.
            read: Of the run.

        Raises:
            FileError: If a write fails, as on a full disk; the same command adds the rest.
        """
        if self._folder is not None:
            self._folder.note_updating()
        left = (
            f"the outputs are written, but {self._index.path} does not have all of their documents"
            " yet: run the same command again"
        )
        try:
            self._add(sources, read)
        except KeyboardInterrupt as error:
            error.add_note(left)
            raise
        except FileError as error:
            raise FileError(f"{error}; {left}") from None

    def _add(self, sources: Sequence[Source], read: ReadOptions) -> None:
        waiting = begin = 0
        keeps_text = self._index.store == "text"
        parts: Iterator[Any] = _texts(sources, read) if keeps_text else _ranges(self._count)
        for part in parts:
            first, last = np.searchsorted(self._rows, (begin, begin + len(part)))
            rows = self._rows[first:last]
            if len(rows):
                documents: Any = self._codes[rows]
                contents: Any = None
                if self._is_similar:
                    documents = self._documents.features_of(rows)
                elif self._index.store == "features":
                    contents = self._documents.features_of(rows)
                if keeps_text:
                    contents = part.take(pa.array(rows - begin))
                self._index.add(self._ids(rows), documents, contents)
                waiting += self._codes[rows].nbytes + _nbytes(documents) + _nbytes(contents)
            if waiting >= WAITING_BYTES:
                # In the order of the run: after a kill the number of additions to the index tells
                # how many of these rows it has (see `_pass`).
                self._index.commit()
                waiting = 0
            begin += len(part)
        self._index.commit()

    def _ids(self, rows: Rows) -> pa.Array:
        """The ids of documents, of the index's kind."""
        return ids_of_kind(self._documents.addresses.of(rows), self._index.id_kind)

    def _pass(self, first: int) -> None:
        """Skip documents that a killed run has added since the index had `first` additions."""
        count = self._index.added - first
        theirs = count > len(self._rows)
        if count and not theirs:
            last = self._ids(self._rows[count - 1 : count])[0].as_py()
            theirs = self._index.number(last) != self._index.added - 1
        if theirs:
            raise UsageError(
                f"{self._index.path} got other documents after this run's outputs were written;"
                " the outputs stay as they are: add their documents with neardup index add, or"
                " compare again with other outputs"
            )
        self._rows = self._rows[count:]

    def _pass_stored(self, reference: ReferenceIndex) -> None:
        """Leave out documents that a killed run added to a service; refuse to replace others.

        A service counts additions of all clients, so each document is looked up instead.
        """
        was_updating = self._folder is not None and self._folder.was_updating
        if reference.has_ids and not was_updating:
            return
        states = reference.versions(self._rows, self._documents)
        if was_updating:
            left = states != SAME
            self._rows, states = self._rows[left], states[left]
        if not reference.has_ids and (states != ABSENT).any():
            first = self._rows[states != ABSENT][:1]
            identity = self._documents.addresses.of(first)[0].as_py()
            raise made_id_error(identity, self._index.path)

    def _check_addresses(self) -> None:
        """Refuse to replace documents of the index by others of the same row and file name."""
        for identity in self._documents.addresses.of(self._rows).to_pylist():
            if identity in self._index:
                raise made_id_error(identity, self._index.path)


def ids_of_kind(ids: Any, kind: str | None) -> Any:
    """Ids of files, which are strings, as whole numbers if the index has whole numbers."""
    if kind != "int":
        return ids
    try:
        numbers = ids.cast(pa.int64())
        strange = pc.not_equal(numbers.cast(pa.large_string()), ids)
    except pa.ArrowInvalid:
        strange = pc.invert(pc.match_substring_regex(ids, r"^-?\d{1,18}$"))
    at = pc.index(strange, True).as_py()
    if at < 0:
        return numbers
    raise DataError(
        f"the id {ids[at].as_py()!r} is not a whole number, and those of the index are: pass --id"
        " FIELD for a field of numbers, or use an index of its own"
    )


def made_id_error(identity: Any, path: Path | str) -> UsageError:
    """The error for an id that neardup made and that is stored with other content."""
    return UsageError(
        f"{identity!r} is in {path} already, with other content: give the documents ids with --id,"
        " or the file another name"
    )


def _nbytes(contents: Any) -> int:
    if contents is None:
        return 0
    if isinstance(contents, pa.Array | np.ndarray):
        return contents.nbytes
    return sum(each.nbytes for each in contents)


def _ranges(count: int) -> Iterator[range]:
    for edge in pairwise([*range(0, count, ROWS_A_CALL), count]):
        yield range(*edge)


def _texts(sources: Sequence[Source], read: ReadOptions) -> Iterator[Any]:
    """The texts of all accepted documents once more, Arrow arrays."""
    for source in sources:
        for batch in source.batches(read):
            yield batch.texts
