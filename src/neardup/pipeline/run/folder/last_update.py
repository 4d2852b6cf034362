"""The decision of the last run that updated an index, kept beside it: run again, it is the same.

A run that is interrupted after its outputs appeared finds its own documents in the index when it is
run again, would drop them, and replace its outputs by what is left. So a run writes down what it
decided before its outputs appear. The same command over the same documents, to the same outputs,
decides the same again, and adds what is not in the index yet. Nothing ever takes it back but the
next run that updates the index, since no moment is late enough for an interrupt.
"""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from neardup.errors import DataError, UsageError
from neardup.pipeline.run.decision import decision_of, write_decision
from neardup.pipeline.run.folder.facts import run_facts
from neardup.runtime.storage.failures import file_failure
from neardup.runtime.storage.files import name_as_text
from neardup.runtime.storage.sealed import checksum, sealed, unsealed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.against import ReferenceIndex
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.folder.state import RunFolder
    from neardup.pipeline.run.reading import Documents
    from neardup.pipeline.run.rule import Choice, Rule

__all__ = ["LastUpdate", "command_of"]

NAME: Final = "last-update"
FORMAT: Final = 2


class LastUpdate:
    """What is kept beside an index.

    Args:
        known: The index, open for writing.
        command: As `command_of` gives it.

    Attributes:
        first: After `decision` found one: what the index had had added when that run began.

    Raises:
        FileError: If what is there cannot be read.
    """

    def __init__(self, known: ReferenceIndex, command: bytes) -> None:
        """Read what is there."""
        self._index, self._asked, self._command = known.index, command, ""
        self._path = known.index.path / NAME
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
        """Whether the same was asked before, of the same inputs as far as can be told unread."""
        return self._head.get("asked") == self._asked.hex()

    def decision(self, documents: Documents) -> Decision | None:
        """What the same command decided if it has added documents, else None."""
        codes = np.ascontiguousarray(documents.codes)
        empty = np.ascontiguousarray(np.ma.getmaskarray(documents.values))
        self._command = checksum(self._asked + checksum(codes) + checksum(empty)).hex()
        head = self._head
        is_same = head.get("format") == FORMAT and head["command"] == self._command
        if not is_same or self._index.added == head["first"]:
            return None
        self.first = head["first"]
        return decision_of(self._arrays)

    def save(self, decision: Decision, folder: RunFolder | None = None) -> None:
        """Keep a decision, after `decision` found none; on disk when this returns.

        Args:
            decision: The decision.
            folder: The state of the run, which may have begun to add documents before.

        Raises:
            FileError: If it cannot be written.
        """
        first = self._index.added
        if folder is not None and folder.was_updating:
            first = folder.facts["index"]["added"]
        told = {"format": FORMAT, "asked": self._asked.hex(), "command": self._command}
        head = orjson.dumps({**told, "first": first})
        body = io.BytesIO()
        body.write(len(head).to_bytes(8, "little") + head)
        write_decision(decision, body)
        aside = self._path.with_name(f".{NAME}.{os.getpid()}.tmp")
        try:
            with aside.open("wb") as file:
                file.write(sealed(body.getvalue()))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self._path)
        except OSError as error:
            raise file_failure("write", self._path, error) from None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink()


def command_of(
    sources: Sequence[Source],
    outputs: Sequence[str | None],
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    own_ids: str,
) -> bytes:
    """A checksum of everything that tells one command from another before documents are read.

    Args:
        sources: The inputs; streams are told apart by their documents.
        outputs: Paths.
        rule: When documents match.
        choice: Which are kept.
        read: Which fields it reads, and of which format.
        own_ids: As of Against.
    """
    facts = run_facts([], rule, choice, read)
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
    options = facts["digest"], facts["options"], read.skip_errors, own_ids
    return checksum(orjson.dumps([*options, inputs, paths]))
