"""What a service accepts and refuses, by the parts that decide, without a network."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import DataError, FileError, UsageError
from neardup.service import committer, server
from neardup.service.access import Access
from neardup.service.columns import Columns
from neardup.service.committer import Aging, Committer, Work
from neardup.service.messages import (
    Added,
    Document,
    First,
    Match,
    Nearest,
    Query,
    Terms,
    as_document,
    as_match,
    check_id,
    check_reach,
)
from neardup.service.operations import AskFirst, AskNearest, AskQuery, Write
from neardup.service.problem_details import Problem
from neardup.service.service import Service
from neardup.service.service_metrics import Metrics
from neardup.service.settings import Limits, Settings
from neardup.service.streams import _answered
from suite import ROOT

if TYPE_CHECKING:
    from pathlib import Path

BY_FEATURES = Terms(("text", "features"), "similarity", 0.8, 64, Limits())
BY_DISTANCE = Terms(("fingerprint",), "distance", 3, 64, Limits())


def problem_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(Problem) as raised:
        call(*arguments)
    return raised.value.name


@pytest.mark.parametrize("ours", [None, "https://pages.example"])
def test_pages_of_other_origins_are_refused(ours: str | None) -> None:
    access = Access([("write", "k" * 16)], "127.0.0.1", ours)
    headers = {b"host": b"near.example", b"authorization": b"Bearer " + b"k" * 16}
    access.check(headers, "write")
    access.check(headers | {b"origin": b"https://near.example"}, "write")
    elsewhere = headers | {b"origin": b"https://elsewhere.example"}
    assert problem_of(access.check, elsewhere, "write") == "origin-not-allowed"
    if ours:
        access.check(headers | {b"origin": ours.encode()}, "write")


def test_rights_are_those_of_the_key() -> None:
    access = Access([("read", "r" * 16), ("write", "w" * 16)], "0.0.0.0")  # noqa: S104
    reading = {b"authorization": b"Bearer " + b"r" * 16}
    access.check(reading, "read")
    assert problem_of(access.check, reading, "write") == "key-only-reads"
    assert problem_of(access.check, {}, "read") == "key-missing"
    for wrong in (b"Bearer x", b"Basic x"):
        assert problem_of(access.check, {b"authorization": wrong}, "read") == "key-missing"
    access.check({}, None)
    assert access.rights(b"w" * 16) == {"read", "write"}


def test_features_have_64_bits() -> None:
    for features in ([], [0], [2**64 - 1, 5]):
        assert as_document(Document("x", features=features), BY_FEATURES) == features
    for features in ([2**64], [-1], [5, 2**64], [-1, 5]):
        row = Document("x", features=features)
        assert problem_of(as_document, row, BY_FEATURES) == "invalid-document"


def test_fingerprints_have_the_bits_of_the_index() -> None:
    for value in (0, 2**64 - 1):
        assert as_document(Document("x", fingerprint=value), BY_DISTANCE) == value
    for value in (-1, 2**64):
        row = Document("x", fingerprint=value)
        assert problem_of(as_document, row, BY_DISTANCE) == "invalid-document"


def test_a_document_without_a_form_is_refused() -> None:
    for terms in (BY_FEATURES, BY_DISTANCE):
        with pytest.raises(Problem, match="a document has nothing"):
            as_document(Document("x"), terms)


def test_a_query_has_up_to_a_hundred_matches_where_it_names_no_limit() -> None:
    assert Query(text="a").limit == 100


def test_queries_reach_as_far_as_the_index() -> None:
    for similarity in (0.8, 0.9, 1.0):
        check_reach(Query(text="a", similarity=similarity), BY_FEATURES)
    for distance in (0, 3):
        check_reach(Query(fingerprint=1, distance=distance), BY_DISTANCE)
    for row, terms in (
        (Query(text="a", similarity=0.79), BY_FEATURES),
        (Query(text="a", similarity=1.01), BY_FEATURES),
        (Query(text="a", distance=3), BY_FEATURES),
        (Query(fingerprint=1, distance=4), BY_DISTANCE),
        (Query(fingerprint=1, distance=-1), BY_DISTANCE),
    ):
        assert problem_of(check_reach, row, terms) == "invalid-document"


def test_a_match_has_the_score_of_its_kind() -> None:
    assert as_match(("a", 0.9), "similarity") == Match("a", similarity=0.9)
    assert as_match(("a", 2), "distance") == Match("a", distance=2)


def test_a_column_may_have_as_many_features_as_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.service.columns.MOST_FEATURES", 3)
    for features in ([1, 2, 3], [1, 2, 3, 4]):
        columns = Columns.of(pa.table({"id": ["a"], "features": [features]}), BY_FEATURES)
        assert (columns is not None) == (len(features) == 3)


@pytest.mark.parametrize("key", ["k" * 15, "k" * 15 + "é", "k" * 15 + "\x01", "k" * 15 + " k"])
def test_a_key_is_16_printable_characters_of_ascii(key: str) -> None:
    with pytest.raises(DataError, match="printable ASCII"):
        Access.of(Settings(), {"NEARDUP_KEY": key})
    assert Access.of(Settings(), {"NEARDUP_KEY": "k" * 16}).has_keys


def test_a_missing_file_of_keys_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot read the keys in .*none"):
        Access.of(Settings(keys=tmp_path / "none"), {})


def test_ids_and_texts_may_have_the_documented_lengths() -> None:
    limits = Limits()
    check_id("i" * 1024, limits)
    assert problem_of(check_id, "i" * 1025, limits) == "too-large"
    most = BY_FEATURES._replace(limits=Limits(text_characters=9))
    assert as_document(Document("x", text="a" * 9), most) == "a" * 9
    assert problem_of(as_document, Document("x", text="a" * 10), most) == "too-large"


def test_the_guide_names_the_limits() -> None:
    guide, limits = (ROOT / "docs/guide/serve.md").read_text("utf8"), Limits()
    for row in (
        f"| a body or a line, an Arrow stream unpacked | {limits.body_bytes / 2**20:g} MiB |",
        f"| the head of a request, or what frames its body | {limits.head_bytes >> 10} KiB;",
        f"| a text | {limits.text_characters:,} characters |",
        f"| an id | {limits.id_characters:,} characters |",
        f"| an object, or an array of up to {limits.batch_rows:,} |",
        f"| {limits.queue_rows:,} documents or {limits.queue_bytes / 2**20:g} MiB;",
    ):
        assert row in guide
    assert (limits.body_seconds, limits.queue_seconds) == (10, 30)  # in words there


class _Idle(threading.Thread):
    """A thread that never begins, so that what is admitted waits."""

    def start(self) -> None:
        pass


def test_work_waits_up_to_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.service.committer.threading.Thread", _Idle)
    index: Any = nd.Index(distance=3)
    loop = asyncio.new_event_loop()

    def work(rows: int, nbytes: int) -> Work:
        return Work("add", [*range(rows)], [*range(rows)], nbytes, loop.create_future())

    def begun() -> Committer:
        return Committer(index, loop, Limits(queue_rows=4, queue_bytes=100), Metrics(index))

    alone = begun()
    alone.admit(work(9, 900))
    assert problem_of(alone.admit, work(1, 1)) == "queue-full"
    several = begun()
    several.admit(work(2, 50))
    several.admit(work(2, 50))
    assert (several.rows, several.nbytes) == (4, 100)
    assert problem_of(several.admit, work(1, 0)) == "queue-full"
    assert problem_of(several.admit, work(0, 1)) == "queue-full"
    several.withdraw(work(1, 1))
    assert problem_of(several.admit, work(1, 2)) == "queue-full"
    several.admit(work(1, 1))
    loop.close()


def test_documents_that_find_no_room_are_refused_one_by_one_next_to_a_bad_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("neardup.service.committer.threading.Thread", _Idle)

    async def story(*rows: Document) -> list[Any]:
        index: Any = nd.Index(distance=3)
        loop, limits = asyncio.get_running_loop(), Limits(queue_rows=1)
        committer = Committer(index, loop, limits, Metrics(index))
        committer.admit(Work("add", [0], [0], 1, loop.create_future()))
        pool = ThreadPoolExecutor(1)  # unused: the documents are small
        write = Write("add", index, committer, pool, BY_DISTANCE, Metrics(index))
        return await write.answers([*rows])

    good, bad = Document(1, fingerprint=1), Document(2, fingerprint=2**64)
    answers = asyncio.run(story(good, bad))
    assert [each.name for each in answers] == ["queue-full", "invalid-document"]
    with pytest.raises(Problem, match=r"^1 documents"):
        asyncio.run(story(good, good))


class _Damaged(nd.Index):
    """An index that removes nothing by age."""

    def expire(self, before: float) -> int:
        del before
        raise DataError("a file is damaged")


def test_documents_are_stored_where_old_ones_cannot_be_removed(tmp_path: Path) -> None:
    async def story() -> list[str]:
        index: Any = _Damaged(distance=3)
        loop = asyncio.get_running_loop()
        writer = Committer(index, loop, Limits(), Metrics(index), Aging(0.1, by_seen=False))
        states = []
        for identity in ("a", "b"):
            work = Work("seen", [identity], [5], 100, loop.create_future())
            writer.admit(work)
            writer.submit(work)
            outcome: Any = await asyncio.wait_for(work.future, 60)
            states.append(outcome[0].state)
        writer.close()
        return states

    assert asyncio.run(story()) == ["new", "seen"]
    gone: Any = SimpleNamespace(path=tmp_path / "gone")
    assert not committer._has_room(gone)  # noqa: SLF001


@pytest.mark.parametrize("operation", ["add", "seen"])
def test_a_document_that_cannot_be_stored_is_a_problem_of_its_own(operation: Any) -> None:
    index, ids = nd.Index(distance=3), ["a", "\ud800", "c"]
    work = Work(operation, ids, [1, 2, 0xFF00], 24, Future())  # type: ignore[arg-type]
    first, problem, last = committer._WRITE[operation](index, ids, [work])  # noqa: SLF001
    assert first.state == {"add": "added", "seen": "new"}[operation]
    assert last.state == first.state
    assert (type(problem), problem.name) == (Problem, "invalid-document")
    assert dict(index) == {"a": 1, "c": 0xFF00}


class _Picky(nd.Index):
    """An index that fails at one document."""

    error: Exception

    def add(self, ids: Any, *arguments: Any, **options: Any) -> Any:
        if "bad" in ids.ids:
            raise self.error
        return super().add(ids, *arguments, **options)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (RuntimeError("nobody thought of this document"), "failure"),
        (DataError("a file is damaged"), "failure"),
        (UsageError("a payload is too large"), "invalid-document"),
    ],
)
def test_a_document_at_which_a_commit_fails_is_refused_alone(
    error: Exception, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.service.committer.threading.Thread", _Idle)
    index: Any = _Picky(distance=3)
    index.error = error
    loop = asyncio.new_event_loop()
    writer = Committer(index, loop, Limits(), Metrics(index))
    works = [Work("add", [each], [5], 8, loop.create_future()) for each in ("a", "bad", "c")]
    first, problem, last = writer._written(works)  # noqa: SLF001
    loop.close()
    assert (first, last) == ([Added("added")], [Added("added")])
    assert isinstance(problem, Problem)
    assert problem.name == name
    assert dict(index) == {"a": 5, "c": 5}


def test_a_first_document_that_cannot_be_read_is_a_problem_of_its_own(tmp_path: Path) -> None:
    rows = [First(identity, fingerprint=5) for identity in ("a", "\ud800", "c")]
    with nd.DurableIndex.open(tmp_path / "i", distance=3) as index, ThreadPoolExecutor(1) as pool:
        index.add(["c"], [5])
        index.commit()
        answers = asyncio.run(AskFirst(index, pool, BY_DISTANCE, 1).answers(rows))
    assert [getattr(answer, "stored", None) for answer in answers] == ["absent", None, "same"]
    assert answers[1].name == "invalid-document"


def test_a_query_that_an_index_refuses_is_a_problem_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the index itself lacks, such as a page of a file, is none of the document's."""

    def failing(error: Exception) -> Any:
        def fail(*_: object, **__: object) -> None:
            raise error

        return fail

    with nd.DurableIndex.open(tmp_path / "i", distance=3) as index, ThreadPoolExecutor(1) as pool:
        query = AskQuery(index, pool, BY_DISTANCE, 1)
        monkeypatch.setattr(type(index), "query", failing(UsageError("not so")))
        (problem,) = asyncio.run(query.answers([Query(fingerprint=5)]))
        assert (problem.name, problem.detail) == ("invalid-document", "not so")
        monkeypatch.setattr(type(index), "query", failing(DataError("a file is damaged")))
        with pytest.raises(DataError, match="is damaged"):
            asyncio.run(query.answers([Query(fingerprint=5)]))


def test_a_question_counts_only_while_it_runs(tmp_path: Path) -> None:
    with nd.DurableIndex.open(tmp_path / "i", distance=3) as index, ThreadPoolExecutor(1) as pool:
        index.add(["a"], [5])
        index.commit()
        ask = AskQuery(index, pool, BY_DISTANCE, 1)

        async def story() -> tuple[Any, list[Any]]:
            first = await ask.answers([Query(fingerprint=5)])
            both = [ask.answers([Query(fingerprint=5)]) for _ in range(2)]
            return first, await asyncio.gather(*both, return_exceptions=True)

        first, both = asyncio.run(story())
        assert [match.id for match in first[0].matches] == ["a"]
        assert both[0] == first
        assert (type(both[1]), both[1].name) == (Problem, "queue-full")


def held(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> threading.Event:
    """The event that calls of a method wait for."""
    may_end, method = threading.Event(), getattr(owner, name)

    def waiting(*arguments: Any) -> Any:
        may_end.wait(60)
        return method(*arguments)

    monkeypatch.setattr(owner, name, waiting)
    return may_end


def test_a_stream_waits_until_the_queue_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = held(monkeypatch, Committer, "_commit")

    async def story() -> list[Any]:
        loop, limits = asyncio.get_running_loop(), Limits(queue_rows=1)
        index = nd.DurableIndex.open(tmp_path / "i", distance=3)
        service = Service(index, Settings(limits=limits), loop, has_keys=False)
        add = service.operations["add"]
        rows = [Document(f"d{number}", fingerprint=number) for number in range(3)]
        streams = [asyncio.create_task(_answered(add, [row], limits)) for row in rows]
        await asyncio.sleep(0)  # each has begun by now: one is written, one waits at most
        may_end.set()
        answers = [each for (each,) in await asyncio.gather(*streams)]
        await loop.run_in_executor(None, service.close)
        return answers

    answers = asyncio.run(story())
    assert not [each for each in answers if isinstance(each, Problem)], answers


def test_four_calls_of_nearest_for_each_thread_wait_or_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = held(monkeypatch, AskNearest, "ask")

    async def story() -> list[Any]:
        index = nd.DurableIndex.open(tmp_path / "i", distance=3)
        settings = Settings(limits=Limits(nearest=2))
        service = Service(index, settings, asyncio.get_running_loop(), has_keys=False)
        nearest = service.operations["nearest"]
        calls = [asyncio.create_task(nearest.answers([Nearest(fingerprint=5)])) for _ in range(10)]
        await asyncio.sleep(0)  # each has begun by now, or was refused
        may_end.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        service.close()
        index.close()
        return answers

    answers = asyncio.run(story())
    refused = [each.name if isinstance(each, Problem) else type(each) for each in answers]
    assert refused == [list] * 8 + ["queue-full"] * 2, answers


def test_metrics_tell_what_waits_for_a_commit_and_in_which_sizes_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.new_event_loop()
    with nd.DurableIndex.open(tmp_path / "i", distance=3) as index:
        monkeypatch.setattr("neardup.service.committer.threading.Thread", _Idle)
        service = Service(index, Settings(), loop, has_keys=False)
        work = Work("add", [1, 2, 3], [1, 2, 3], 70, loop.create_future())
        service._committer.admit(work)  # type: ignore[union-attr]  # noqa: SLF001
        text = service.metrics.text().decode()
    loop.close()
    for name in ("neardup_index_bytes", "neardup_disk_free_bytes", "neardup_index_segments"):
        assert f"\n{name} " in text
    assert "neardup_queue_documents 3.0" in text
    assert "neardup_queue_bytes 70.0" in text
    sizes = re.findall(r'neardup_batch_documents_bucket{le="(.+)"}', text)
    assert sizes == [*(f"{2.0**power}" for power in range(10)), "+Inf"]
    seconds = re.findall(r'neardup_commit_duration_seconds_bucket{le="(.+)"}', text)
    assert list(map(float, seconds)) == sorted(map(float, seconds))
    assert (seconds[:2], seconds[-2:]) == (["0.001", "0.0025"], ["10.0", "+Inf"])


def test_the_rate_is_that_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    index: Any = nd.Index(distance=3)
    metrics, now = Metrics(index), 100.0
    monkeypatch.setattr("neardup.service.service_metrics.time.monotonic", lambda: now)
    metrics.committed(120, 1.0)
    for now, rate in ((159.5, 2.0), (160.5, 0.0)):  # noqa: B007 - the clock reads it
        assert metrics.rate() == rate


def test_what_waited_too_long_is_not_stored_and_clients_hear_when_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("neardup.service.committer.threading.Thread", _Idle)
    index: Any = nd.Index(distance=3)
    loop = asyncio.new_event_loop()
    writer = Committer(index, loop, Limits(), Metrics(index))
    work = Work("add", ["late"], [1], 8, loop.create_future())
    work.since -= 31
    (late,) = writer._written([work])  # noqa: SLF001
    assert isinstance(late, Problem)
    assert (late.name, "late" in index) == ("too-late", False)
    assert late.retry_after
    failed = writer._write_failed(FileError("the disk is gone"))  # noqa: SLF001
    assert failed.name == "write-failed"
    # A client that comes again by then is not refused for the same failure.
    assert (failed.retry_after or 0) >= committer.FAILED_SECONDS
    assert problem_of(writer.admit, work) == "write-failed"
    loop.close()


def test_lines_of_the_log_reach_no_other_logger_while_the_service_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = ("neardup.service", "uvicorn.error", "asyncio")

    def warn(moment: str) -> None:
        for name in names:
            logging.getLogger(name).warning(moment)

    with server._logs():  # noqa: SLF001
        warn("during")
    warn("after")
    assert caplog.record_tuples == [(name, logging.WARNING, "after") for name in names]
