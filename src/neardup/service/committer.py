"""The thread that writes to the index: a commit takes what came during the one before.

So batches grow by themselves with the load, and nobody waits for a timer. What the loop hands over
is Work: the documents of one request, or of one cut of a stream. Its future gets answers only once
they are on the disk.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from neardup.errors import FileError, UsageError
from neardup.service.messages import Added, Removed, as_seen, id_kind, other_ids
from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from neardup.index import DurableIndex, Prepared
    from neardup.index.hits import Id
    from neardup.service.service_metrics import Metrics
    from neardup.service.settings import Limits

__all__ = ["Aging", "Committer", "Operation", "Work"]

Operation: TypeAlias = Literal["seen", "add", "remove"]
Outcome: TypeAlias = "list[Any] | Problem"
"""An answer or a Problem for each document, or one Problem for all of them."""
FAILED_SECONDS: Final = 1.0
"""The seconds between a failed write and the next attempt."""
_FULL: Final = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))
"""The words by which the system and LMDB report a full disk, quota or file."""
ROOM_BYTES: Final = 8 << 20
"""The free disk space from which writes are tried again."""
_log: Final = logging.getLogger("neardup.service")


@dataclass(slots=True, eq=False)
class Work:
    """The documents of one request, or of one cut of a stream, to be written.

    Args:
        operation: What is done with the documents.
        ids: Of one kind.
        documents: Texts; or feature hashes or fingerprints. None where nothing but ids is needed.
            An Arrow array is prepared before it is submitted.
        nbytes: Of the documents, about.
        future: Gets the Outcome.
        is_cut: Whether it is one of many cuts: single requests go between them.
        since: When it came, of time.monotonic.
        prepared: The documents with their features, made in another thread where that takes long.
    """

    operation: Operation
    ids: list[Id]
    documents: list[Any] | pa.Array
    nbytes: int
    future: asyncio.Future[Outcome]
    is_cut: bool = False
    since: float = field(default_factory=time.monotonic)
    prepared: Prepared | None = None

    @property
    def fits(self) -> tuple[Operation, bool, int]:
        """The key of works that one call may write together; prepared works share none."""
        if self.prepared is not None:
            return self.operation, False, id(self)
        return self.operation, bool(self.documents) and isinstance(self.documents[0], str), 0

    @property
    def is_column(self) -> bool:
        """Whether the documents are an Arrow array."""
        return not isinstance(self.documents, list)


@dataclass(frozen=True, slots=True)
class Aging:
    """The age at which documents are removed.

    Args:
        seconds: Until a document is removed.
        by_seen: Whether the time counts from when a document was last matched.
    """

    seconds: float
    by_seen: bool

    @property
    def interval(self) -> float:
        """Seconds between two removals."""
        return min(max(self.seconds / 20, 0.1), 60.0)


class Committer:
    """The writer of an index, in a thread of its own.

    Args:
        index: Open for writing, by nobody else.
        loop: Where futures live.
        limits: Of batches and of what waits.
        metrics: What happens is counted there.
        aging: How old documents may become; by default as old as they like.
    """

    def __init__(
        self, index: DurableIndex, loop: asyncio.AbstractEventLoop, limits: Limits,
        metrics: Metrics, aging: Aging | None = None,
    ) -> None:  # fmt: skip
        """Start the thread."""
        self._index, self._loop, self._limits, self._metrics = index, loop, limits, metrics
        self._aging = aging
        self._ready = threading.Condition()
        # Guarded by `_ready`: what waits, how much of it, and what the thread is doing.
        self._singles, self._cuts = deque[Work](), deque[Work]()
        self.rows = self.nbytes = 0
        self._is_idle, self._is_closing = False, False
        self._had_cut = False
        self._rate = 1000.0
        """Rows a second in recent batches."""
        self.failure: Problem | None = None
        """The reason why the last commit failed; None after a commit, or once the disk has room
        again."""
        self._failed_at = 0.0
        self._thread = threading.Thread(target=self._run, name="neardup-committer", daemon=True)
        self._thread.start()

    def admit(self, work: Work) -> None:
        """Reserve room in the queue; only the event loop calls it, then `submit` or `withdraw`.

        Raises:
            Problem: If too much waits, or the service is ending.
        """
        failure = self.failure
        if failure is not None and time.monotonic() < self._failed_at + FAILED_SECONDS:
            raise failure
        limits = self._limits
        with self._ready:
            if self._is_closing:
                raise Problem("not-ready", "the service is ending", retry_after=5)
            rows, nbytes = self.rows + len(work.ids), self.nbytes + work.nbytes
            # A work that alone is over a limit is taken when nothing waits.
            if self.rows and (rows > limits.queue_rows or nbytes > limits.queue_bytes):
                seconds = max(1, round(self.rows / self._rate))
                raise Problem(
                    "queue-full",
                    f"{self.rows:,} documents of {self.nbytes:,} bytes wait, and the limits are"
                    f" {limits.queue_rows:,} and {limits.queue_bytes:,}",
                    retry_after=seconds,
                )
            self.rows, self.nbytes = rows, nbytes

    def submit(self, work: Work) -> None:
        """Queue a work behind the works submitted before."""
        with self._ready:
            (self._cuts if work.is_cut else self._singles).append(work)
            if self._is_idle:
                self._ready.notify()

    def withdraw(self, work: Work) -> None:
        """Release the room of a work that cannot be prepared."""
        with self._ready:
            self.rows -= len(work.ids)
            self.nbytes -= work.nbytes

    def close(self) -> None:
        """Write the queued works and end the thread."""
        with self._ready:
            self._is_closing = True
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        expire_at = time.monotonic()
        while True:
            batch = self._take()
            if batch is None:
                return
            if batch:
                outcomes = self._written(batch)
                self._loop.call_soon_threadsafe(_deliver, batch, outcomes)
            if self._aging is not None and time.monotonic() >= expire_at:
                self._expire(self._aging)
                expire_at = time.monotonic() + self._aging.interval

    def _take(self) -> list[Work] | None:
        """The next batch; an empty one when it is time to check disk and ages, None at the end."""
        with self._ready:
            if not self._singles and not self._cuts:
                if self._is_closing:
                    return None
                self._is_idle = True
                pause = 60.0 if self._aging is None else self._aging.interval
                self._ready.wait(pause if self.failure is None else FAILED_SECONDS)
                self._is_idle = False
            if self.failure is not None and not self.rows:
                self._look_at_disk()
            batch = list(self._batch())
            for work in batch:
                self.rows -= len(work.ids)
                self.nbytes -= work.nbytes
            return batch

    def _batch(self) -> Iterator[Work]:
        """The works of the next commit; every other batch begins with a cut, so none waits long."""
        limits, rows, nbytes = self._limits, 0, 0
        self._had_cut = bool(self._cuts) and not (self._had_cut and self._singles)
        if self._had_cut:
            work = self._cuts.popleft()
            rows, nbytes = len(work.ids), work.nbytes
            yield work
        while self._singles:
            work = self._singles[0]
            rows, nbytes = rows + len(work.ids), nbytes + work.nbytes
            # The first is taken whatever its size.
            if rows > len(work.ids) and (rows > limits.cut_rows or nbytes > limits.cut_bytes):
                return
            yield self._singles.popleft()

    def _written(self, batch: list[Work]) -> list[Outcome]:
        """The outcome of each work once the batch is on disk."""
        begin = time.monotonic()
        outcomes: dict[Work, Outcome] = {}
        for work in batch:
            waited = begin - work.since
            if waited > self._limits.queue_seconds:
                detail = f"it waited {waited:.0f} seconds; the disk or the processor is too slow"
                outcomes[work] = Problem("too-late", detail, retry_after=5)
        alive = [work for work in batch if work not in outcomes]
        outcomes.update(zip(alive, self._commit(alive), strict=True))
        rows, seconds = sum(len(work.ids) for work in alive), time.monotonic() - begin
        if rows:
            self._rate += 0.2 * (rows / max(seconds, 1e-6) - self._rate)
        self._metrics.committed(rows, seconds)
        return [outcomes[work] for work in batch]

    def _commit(self, batch: list[Work]) -> list[Outcome]:
        """Write works in one transaction; if it fails for one of them, write them one by one."""
        if not batch:
            return []
        try:
            with self._index.transaction() as index:
                outcomes = list(self._applied(index, batch))
        except FileError as error:
            return [self._write_failed(error)] * len(batch)
        except Exception as error:  # noqa: BLE001  # the thread must go on, whatever one document does
            if len(batch) > 1:
                return [self._commit([work])[0] for work in batch]
            if isinstance(error, UsageError):
                return [Problem("invalid-document", str(error))]
            _log.exception("a write failed")
            return [Problem("failure", "the log has the error", retry_after=1)]
        self.failure = None
        return outcomes

    def _applied(self, index: DurableIndex, batch: list[Work]) -> Iterator[Outcome]:
        """The outcome of each work; neighbours that fit together are written by one call."""
        at = 0
        while at < len(batch):
            end = at + 1
            while end < len(batch) and batch[end].fits == batch[at].fits:
                end += 1
            yield from self._applied_alike(index, batch[at:end])
            at = end

    def _applied_alike(self, index: DurableIndex, works: list[Work]) -> Iterator[Outcome]:
        kind = index.id_kind or id_kind(works[0].ids[0])
        right = [work for work in works if not work.ids or id_kind(work.ids[0]) == kind]
        ids = [identity for work in right for identity in work.ids]
        answers = iter(_WRITE[right[0].operation](index, ids, right) if ids else [])
        if self._aging is not None and self._aging.by_seen and works[0].operation == "seen":
            answers = iter(_touched(index, ids, list(answers)))
        for work in works:
            if work.ids and id_kind(work.ids[0]) != kind:
                yield other_ids(kind)
            else:
                yield [next(answers) for _ in work.ids]

    def _write_failed(self, error: FileError) -> Problem:
        """Refuse writes for some seconds after a failed commit, which left the index unchanged."""
        name = "disk-full" if _is_full(error) else "write-failed"
        _log.error("a write failed", extra={"fields": {"problem": name, "error": str(error)}})
        self._failed_at = time.monotonic()
        self.failure = Problem(name, str(error), retry_after=1)
        return self.failure

    def _look_at_disk(self) -> None:
        """Forget a failure once the disk has room; the next write shows whether it is over."""
        if time.monotonic() >= self._failed_at + FAILED_SECONDS and _has_room(self._index):
            self.failure = None

    def _expire(self, aging: Aging) -> None:
        """Remove documents that are older than the maximum age."""
        try:
            with self._index.transaction() as index:
                removed = index.expire(time.time() - aging.seconds)
        except FileError as error:
            self._write_failed(error)
        except Exception:  # noqa: BLE001  # as in `_commit`: the thread must go on
            _log.exception("old documents could not be removed")
        else:
            self._metrics.expired(removed)


def _deliver(batch: Sequence[Work], outcomes: Sequence[Outcome]) -> None:
    """Hand outcomes to the requests that still wait for them; runs in the event loop."""
    for work, outcome in zip(batch, outcomes, strict=True):
        if not work.future.done():
            work.future.set_result(outcome)


def _prepared(index: DurableIndex, ids: list[Any], works: list[Work]) -> Prepared:
    """The documents of works that fit together; a prepared work comes alone."""
    if works[0].prepared is not None:
        return works[0].prepared
    documents = [document for work in works for document in work.documents]
    return index.prepare(ids, documents, bad="report")


def _seen(index: DurableIndex, ids: list[Any], works: list[Work]) -> list[Any]:
    prepared = _prepared(index, ids, works)
    name, problems = index.by, prepared.problems
    answers = index.offer_many(prepared)
    if not problems:
        return [as_seen(each, name) for each in answers]
    return [
        Problem("invalid-document", problems[row]) if row in problems else as_seen(each, name)
        for row, each in enumerate(answers)
    ]


def _add(index: DurableIndex, ids: list[Any], works: list[Work]) -> list[Any]:
    prepared = _prepared(index, ids, works)
    index.add(prepared)
    answers: list[Any] = [Added("empty")] * len(ids)
    for row in prepared.rows.tolist():
        answers[row] = Added("added")
    for row, why in prepared.problems.items():
        answers[row] = Problem("invalid-document", why)
    return answers


def _remove(index: DurableIndex, ids: list[Any], _: list[Work]) -> list[Any]:
    answers, seen = [], set[Any]()
    for identity in ids:
        answers.append(Removed(identity not in seen and identity in index))
        seen.add(identity)
    index.remove(list(seen), missing="ignore")
    return answers


_WRITE: Final[dict[Operation, Callable[[Any, list[Any], list[Work]], list[Any]]]] = {
    "seen": _seen, "add": _add, "remove": _remove,
}  # fmt: skip


def _touched(index: DurableIndex, ids: list[Any], answers: list[Any]) -> list[Any]:
    """The same answers, after the matched and the repeated documents were marked as seen now."""
    again = dict[Any, None]()
    for identity, answer in zip(ids, answers, strict=True):
        state = getattr(answer, "state", "")
        if state == "stored":
            again[identity] = None
        elif state == "seen":
            again[answer.match.id] = None
    if again:
        index.touch(list(again))
    return answers


def _is_full(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, reports a full disk."""
    while error is not None:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            return True
        if any(words.lower() in str(error).lower() for words in _FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


def _has_room(index: DurableIndex) -> bool:
    """Whether the disk of the index has ROOM_BYTES free."""
    try:
        disk = os.statvfs(index.path)
    except OSError:  # no folder, or no file system
        return False
    return disk.f_bavail * disk.f_frsize > ROOM_BYTES
