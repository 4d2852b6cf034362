"""Operations on many documents at once: written by the committer, or answered by query threads."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import UNSET

from neardup.errors import UsageError
from neardup.fingerprinting.sets_of_texts import fingerprints_of_sets
from neardup.index.hits import ABSENT, OTHER, SAME
from neardup.service.columns import Columns
from neardup.service.committer import Committer, Work
from neardup.service.messages import (
    Document,
    First,
    FirstMatch,
    FirstMatches,
    Matches,
    Nearest,
    Query,
    Removal,
    Terms,
    as_document,
    as_match,
    as_matches,
    check_id,
    check_reach,
    id_kind,
    other_ids,
)
from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pyarrow as pa

    from neardup.index import DurableIndex
    from neardup.service.access import Right
    from neardup.service.committer import Operation
    from neardup.service.service_metrics import Metrics

__all__ = ["Ask", "AskFirst", "AskNearest", "AskQuery", "Rows", "Write"]

LARGE_BYTES: Final = 256 << 10
"""The size of a work's documents from which their features take the committer some milliseconds."""
_STORED: Final[dict[int, Literal["absent", "other", "same"]]] = {
    ABSENT: "absent", OTHER: "other", SAME: "same",
}  # fmt: skip


class Rows(Protocol):
    """A route's operation on documents."""

    row: Any
    """The structure of one document."""
    right: Right

    def check(self, row: Any) -> Any:
        """The document of a row; Problem if it cannot be taken."""

    def columns(self, table: pa.Table) -> Columns | None:
        """The documents of a table without a row for each; None where rows must be made."""

    async def answers(self, rows: list[Any] | Columns, *, is_cut: bool = False) -> list[Any]:
        """An answer or a Problem for each row.

        Raises:
            Problem: If none can be taken.
        """


class Write:
    """Operation that the committer carries out.

    Args:
        operation: What it does with them.
        index: Whose documents they become.
        committer: Which.
        pool: The threads that make features of large documents.
        terms: Of documents.
        metrics: Where states are counted.
    """

    right: Right = "write"

    def __init__(
        self, operation: Operation, index: DurableIndex, committer: Committer | None,
        pool: Executor, terms: Terms, metrics: Metrics,
    ) -> None:  # fmt: skip
        """Store the committer; without one the service only reads."""
        self._operation, self._committer, self._terms = operation, committer, terms
        self._index, self._pool = index, pool
        self._metrics = metrics
        self.row: Any = Removal if operation == "remove" else Document

    def check(self, row: Any) -> Any:
        """See Rows."""
        check_id(row.id, self._terms.limits)
        return None if self.row is Removal else as_document(row, self._terms)

    def columns(self, table: pa.Table) -> Columns | None:
        """See Rows."""
        return None if self.row is Removal else Columns.of(table, self._terms)

    async def answers(self, rows: list[Any] | Columns, *, is_cut: bool = False) -> list[Any]:
        """See Rows."""
        committer = self._committer
        if committer is None:
            raise Problem("read-only", "the index was opened for queries only")
        answers: list[Any] = [None] * len(rows)
        if isinstance(rows, Columns):
            ids = rows.ids.to_pylist()
            future = asyncio.get_running_loop().create_future()
            work = Work(self._operation, ids, rows.documents, rows.nbytes, future, is_cut)
            works = [(list(range(len(ids))), work)]
        else:
            ids = [row.id for row in rows]
            works = self._works(rows, answers, is_cut=is_cut)
        await self._write(committer, works, answers)
        if self._operation == "seen":
            self._count(ids, answers)
        return answers

    def _count(self, ids: list[Any], answers: list[Any]) -> None:
        states: dict[str, int] = {}
        for identity, answer in zip(ids, answers, strict=True):
            state = "refused" if isinstance(answer, Problem) else answer.state
            states[state] = states.get(state, 0) + 1
            if state == "seen":
                self._metrics.duplicate(identity, answer.match.id)
        for state, count in states.items():
            self._metrics.seen(state, count)

    def _works(
        self, rows: list[Any], answers: list[Any], *, is_cut: bool
    ) -> list[tuple[list[int], Work]]:
        """The works of valid rows, with their places; `answers` gets the other rows' Problems."""
        works: list[tuple[list[int], Work]] = []
        loop = asyncio.get_running_loop()
        kind_before = None
        for place, row in enumerate(rows):
            try:
                document = self.check(row)
            except Problem as problem:
                answers[place] = problem.with_traceback(None)  # which would hold all the texts
                continue
            kind = (type(row.id), type(document))
            if kind != kind_before:  # a work has ids and documents of one type
                kind_before = kind
                work = Work(self._operation, [], [], 0, loop.create_future(), is_cut)
                places: list[int] = []
                works.append((places, work))
            places.append(place)
            work.ids.append(row.id)
            work.documents.append(document)
            work.nbytes += 100 + (len(document) if isinstance(document, str) else 0)
        return works

    async def _write(
        self, committer: Committer, works: list[tuple[list[int], Work]], answers: list[Any]
    ) -> None:
        """Submit works, and put their answers in their places."""
        admitted = []
        for number, (_, work) in enumerate(works):
            try:
                committer.admit(work)
            except Problem as problem:
                if not number and len(works[0][0]) == len(answers):
                    raise  # all of the request: the status says so
                work.future.set_result(problem.with_traceback(None))
            else:
                admitted.append(work)
        await self._submit(committer, admitted)
        for places, work in works:
            outcome = await work.future
            if isinstance(outcome, Problem) and len(places) == len(answers):
                raise outcome
            each = [outcome] * len(places) if isinstance(outcome, Problem) else outcome
            for place, answer in zip(places, each, strict=True):
                answers[place] = answer

    async def _submit(self, committer: Committer, works: list[Work]) -> None:
        """Submit works in order, those with much text once they have features.

        The committer would make everybody else wait for these.
        """
        loop, left = asyncio.get_running_loop(), deque(works)
        try:
            while left:
                work = left[0]
                if work.is_column or (work.nbytes > LARGE_BYTES and work.documents[0] is not None):
                    prepare = functools.partial(self._index.prepare, bad="report")
                    work.prepared = await loop.run_in_executor(
                        self._pool, prepare, work.ids, work.documents
                    )
                committer.submit(left.popleft())
        finally:
            for work in left:  # nothing but what cannot be prepared, and what follows it
                committer.withdraw(work)


class Ask:
    """Operation that query threads answer from committed documents.

    Args:
        index: Which.
        pool: The threads.
        terms: Of documents.
        most: Questions that wait or run; more are refused.
    """

    right: Right = "read"
    row: Any

    def __init__(self, index: DurableIndex, pool: Executor, terms: Terms, most: int) -> None:
        """Start without a question."""
        self._index, self._pool, self._terms, self._most = index, pool, terms, most
        self._running = 0

    async def answers(self, rows: list[Any] | Columns, *, is_cut: bool = False) -> list[Any]:
        """See Rows."""
        assert isinstance(rows, list)  # noqa: S101  # `columns` makes none
        if self._running >= self._most and not is_cut:
            raise Problem(
                "queue-full", f"{self._running} calls run, and the limit is {self._most}",
                retry_after=1,
            )  # fmt: skip
        self._running += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._all, rows)
        finally:
            self._running -= 1

    def _all(self, rows: list[Any]) -> list[Any]:
        return [self._one(row) for row in rows]

    def columns(self, _: pa.Table) -> Columns | None:
        """See Rows."""
        return None

    def _one(self, row: Any) -> Any:
        try:
            return self.ask(row, self.check(row))
        except Problem as problem:
            return problem.with_traceback(None)
        except UsageError as error:
            return Problem("invalid-document", str(error))

    def check(self, row: Any) -> Any:
        """See Rows."""
        return as_document(row, self._terms)

    def ask(self, row: Any, document: Any) -> Any:
        """The answer to one document, computed in a thread."""
        raise NotImplementedError


class AskQuery(Ask):
    """The operation of `/v1/query`: the near documents."""

    row = Query

    def check(self, row: Query) -> Any:
        """See Rows."""
        check_reach(row, self._terms)
        return super().check(row)

    def ask(self, row: Query, document: Any) -> Matches:
        """See Ask."""
        similarity = None if row.similarity is UNSET else row.similarity
        distance = None if row.distance is UNSET else row.distance
        hits = self._index.query(
            document, limit=row.limit, similarity=similarity, distance=distance, committed=True
        )
        return as_matches(hits, self._index.by)


class AskNearest(Ask):
    """The operation of `/v1/nearest`: the closest documents, however far."""

    row = Nearest

    def ask(self, row: Nearest, document: Any) -> Matches:
        """See Ask."""
        with self._index.snapshot(committed=True) as seen:
            hits = seen.nearest(document, row.n)
        matches = [as_match(hit, self._index.by) for hit in hits]
        return Matches(matches, len(matches))


class AskFirst(Ask):
    """The operation of `/v1/first`: near documents that were stored first, and states of ids."""

    row = First

    def check(self, row: First) -> Any:
        """See Rows."""
        check_id(row.id, self._terms.limits)
        kind = self._index.id_kind
        if kind is not None and kind != id_kind(row.id):
            raise other_ids(kind)
        check_reach(row, self._terms)
        return super().check(row)

    def _all(self, rows: list[First]) -> list[Any]:
        answers: list[Any] = [None] * len(rows)
        alike: dict[Any, list[tuple[int, First, Any]]] = {}  # what one search can answer
        for place, row in enumerate(rows):
            try:
                document = self.check(row)
            except Problem as problem:
                answers[place] = problem.with_traceback(None)  # which would hold all the texts
                continue
            reach = row.distance if row.similarity is UNSET else row.similarity
            key = type(row.id), type(document), row.limit, reach
            alike.setdefault(key, []).append((place, row, document))
        with self._index.snapshot(committed=True) as seen:
            for (_, _, limit, reach), group in alike.items():
                places, some, documents = zip(*group, strict=True)
                ids = [row.id for row in some]
                least = self._terms.reach if reach is UNSET else reach
                firsts = self._first(seen, ids, list(documents), least, limit)
                for place, answer in zip(places, firsts, strict=True):
                    answers[place] = answer
        return answers

    def _first(
        self, seen: Any, ids: list[Any], documents: list[Any], reach: Any, limit: int
    ) -> list[Any]:
        """The answers to documents of one form, by one search."""
        prepared = self._index.prepare(ids, documents, bad="report")
        column, rows = prepared.column.take(prepared.rows), prepared.rows.tolist()
        answers: list[Any] = [FirstMatches("absent", []) for _ in ids]
        for at, state in zip(rows, seen.versions(column, prepared.contents), strict=True):
            answers[at].stored = _STORED[int(state)]
        if limit:
            table = seen.first_within(prepared.contents, reach, limit)
            prints = self._fingerprints(seen, table["id"])
            closeness = table[self._index.by].to_pylist()
            matched = zip(table["row"].to_pylist(), table["id"].to_pylist(), closeness, strict=True)
            for row, identity, close in matched:
                match = FirstMatch(identity, fingerprint=prints[identity])
                setattr(match, self._index.by, close)
                answers[rows[row]].matches.append(match)
        for at, why in prepared.problems.items():
            answers[at] = Problem("invalid-document", why)
        return answers

    def _fingerprints(self, seen: Any, ids: pa.ChunkedArray) -> dict[Any, Any]:
        """The fingerprints of stored documents; UNSET if features alone do not determine them."""
        names = ids.unique()
        codes, recipe = seen.stored(names), self._index.recipe
        if self._index.by == "similarity":
            if recipe is None:
                return dict.fromkeys(names.to_pylist(), UNSET)
            codes = fingerprints_of_sets(codes.features, codes.offsets, recipe)
        values = [
            int.from_bytes(each.tobytes(), "little") if len(each) else UNSET for each in codes
        ]
        return dict(zip(names.to_pylist(), values, strict=True))
