"""The file of answers: JSON lines, one for each answer, on disk before the next pair is shown.

Several reviews may share a file. One at a time appends, under the file's lock, and each reads the
others' lines before it adds one or reports the answers.
"""

from __future__ import annotations

import contextlib
import os
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from neardup.documents import format_of_path, read_table
from neardup.errors import DataError, FileError, UsageError
from neardup.pipeline.evidence.pair_rows import similarity_of
from neardup.runtime.storage.append_file import append_whole
from neardup.runtime.storage.durable_files import check_system, file_failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ANSWERS", "Answer", "Answers", "read_answers"]

Said = Literal["yes", "no", "unsure"]
ANSWERS: Final = ("yes", "no", "unsure")
_HEAD: Final = b'{"first":'
"""The beginning of an answer's line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a person about two documents.

    Attributes:
        first: Id or address of one document.
        second: Id or address of the other.
        answer: "yes": they are duplicates; "no"; "unsure".
        similarity: Theirs, if it was known.
        scores: Theirs by each candidate recipe, if the review looked for a question: from these,
            answers about other documents teach too.
    """

    first: str
    second: str
    answer: str
    similarity: float | None = None
    scores: Mapping[str, float] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The two documents, in a fixed order."""
        return (self.first, self.second) if self.first <= self.second else (self.second, self.first)


def read_answers(path: str) -> dict[tuple[str, str], Answer]:
    """The final answers in a file: the last answer of each pair counts.

    It may be any table; an incomplete last line of JSON, as from a full disk, is skipped.

    Raises:
        UsageError: If it is a stream or not a table.
        DataError: If a line is not an answer.
        FileError: If it cannot be read.
    """
    if path == "-" or Path(path).is_fifo():
        raise UsageError(
            f"{path}: answers are read twice, which a stream cannot be: save them to a file"
        )
    answers: dict[tuple[str, str], Answer] = {}
    for answer in _answers(path):
        answers.pop(answer.key, None)
        answers[answer.key] = answer
    return answers


def _answers(path: str) -> Iterator[Answer]:
    for place, row in read_table(path, _is_cut):
        first, second, label = (row.get(name) for name in ("first", "second", "answer"))
        if not (isinstance(first, str) and isinstance(second, str) and label in ANSWERS):
            raise DataError(
                f"{place}: no answer; each row needs first, second (ids or addresses) and answer:"
                " yes, no or unsure"
            )
        yield Answer(
            first, second, str(label), similarity_of(row, place), _scores(row.get("scores"), place)
        )


def _scores(value: Any, place: str) -> dict[str, float] | None:
    """Similarities by the names of recipes; another column of that name is ignored."""
    if not isinstance(value, dict):
        return None
    if not all(isinstance(each, int | float) and 0 <= each <= 1 for each in value.values()):
        raise DataError(f"{place}: scores is {value!r:.60}: a number from 0 to 1 for each recipe")
    return dict(value)


def _is_cut(line: bytes) -> bool:
    """Whether a line is one of an answer, of which only a part was written.

    Example:
        >>> [_is_cut(line) for line in (b'{"fi', b'{"first":1}', b"hello")]
        [True, False, False]
    """
    if line.endswith(b"\n") or not (line.startswith(_HEAD) or _HEAD.startswith(line)):
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False


class Answers:
    """A file of answers that grows.

    Args:
        path: JSON lines; existing answers count.

    Raises:
        UsageError: If it is another table, to which no line can be appended, or the system has no
            locks.
        DataError: If it is not a file of answers.
        FileError: If it cannot be read or written.
    """

    def __init__(self, path: str) -> None:
        """Read the existing answers."""
        self.path = path
        check_system("a file of answers")
        self._by_pair: dict[tuple[str, str], Answer] = (
            read_answers(path) if Path(path).exists() else {}
        )
        if path.lower().endswith((".gz", ".zst")) or format_of_path(path) not in {None, "jsonl"}:
            raise _unlike_lines(path)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = -1
            with self._locked():
                self._read_others()
        except OSError as error:
            raise _refused(path, error) from None

    @property
    def by_pair(self) -> dict[tuple[str, str], Answer]:
        """The answers, also those of other reviews of this file, in a new dict after additions."""
        if self._file >= 0 and os.fstat(self._file).st_size != self._size:
            with self._locked():
                self._read_others()
        return self._by_pair

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """A context with the lock of the file, on file systems that have locks."""
        import fcntl  # a POSIX system has it, and the constructor has asked

        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _read_others(self) -> None:
        """Read answers that others appended; under the lock an incomplete line is from a crash."""
        if os.fstat(self._file).st_size == self._size:
            return
        self._end_last_line()
        self._by_pair = read_answers(self.path)
        self._size = os.fstat(self._file).st_size

    def _end_last_line(self) -> None:
        """Remove an incomplete last line, or end the last line, before the next answer."""
        data = Path(self.path).read_bytes()
        if data.removeprefix(BOM_UTF8).strip()[:1] not in {b"", b"{"}:
            raise _unlike_lines(self.path)
        last = data[data.rfind(b"\n") + 1 :]
        if _is_cut(last):
            os.ftruncate(self._file, len(data) - len(last))
        elif last:
            append_whole(self._file, b"\n")

    def add(self, answer: Answer) -> None:
        """Append an answer; it is on disk when this returns.

        Raises:
            FileError: If it cannot be written.
        """
        line: dict[str, Any] = {
            "first": answer.first,
            "second": answer.second,
            "answer": answer.answer,
        }
        if answer.similarity is not None:
            line["similarity"] = round(answer.similarity, 6)
        if answer.scores is not None:
            line["scores"] = {name: round(each, 4) for name, each in answer.scores.items()}
        try:
            with self._locked():
                self._read_others()
                append_whole(self._file, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
                self._size = os.fstat(self._file).st_size
                os.fsync(self._file)
        except OSError as error:
            raise _refused(self.path, error) from None
        self._by_pair.pop(answer.key, None)
        self._by_pair[answer.key] = answer

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
        self._file = -1


def _unlike_lines(path: str) -> UsageError:
    return UsageError(
        f"{path} is not a file of JSON lines, which answers are appended to: name another by"
        " --answers"
    )


def _refused(path: str, error: OSError) -> FileError:
    return file_failure("write", path, error, "name another file by --answers")
