"""`neardup index filter`: new lines go on at once, numbers continue, a kill loses nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from commands import DOCS, NEARDUP, TEXT, TIMEOUT, lines
from suite import examples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def seen(tmp_path: Path) -> str:
    """An index without documents."""
    folder = str(tmp_path / "seen")
    nd.DurableIndex.create(folder, similarity=0.6, recipe=nd.Recipe()).close()
    return folder


def filtered(folder: str, data: bytes, *options: str, code: int = 0) -> tuple[bytes, str]:
    """What comes out, and what is told."""
    command = [*NEARDUP, "index", "filter", folder, *options]
    process = subprocess.run(  # our own command
        command, input=data, capture_output=True, timeout=TIMEOUT, check=False
    )
    assert process.returncode == code, process.stderr.decode()
    return process.stdout, process.stderr.decode()


def stored(folder: str) -> list[Any]:
    """The ids in an index, in order."""
    with nd.DurableIndex.open(folder, readonly=True) as index:
        assert index.check() == []
        return [identity for identity, _ in index]


@pytest.mark.parametrize("end", [b"\n", b" \r\n"])
def test_records_that_are_new_pass_byte_for_byte(seen: str, end: bytes) -> None:
    data = lines(DOCS).replace(b"\n", end)
    out, message = filtered(seen, data, "--id", "id")
    rows = data.splitlines(keepends=True)
    assert out == rows[0] + rows[2] + rows[4]
    assert stored(seen) == ["a", "c"]
    assert "new                  2, 3 seen before" in message
    out, message = filtered(seen, data, "--id", "id")
    assert out == rows[4]
    assert "2 unchanged, 3 seen before" in message


def test_lines_are_texts_which_an_index_without_recipe_does_not_take(tmp_path: Path) -> None:
    folder = str(tmp_path / "hashes")
    nd.DurableIndex.create(folder, distance=3).close()
    out, message = filtered(folder, lines(DOCS), code=2)
    assert out == b""
    assert "has no recipe, and lines are texts: make an index without --no-recipe" in message


def test_all_lines_pass_with_their_answer(seen: str) -> None:
    out, _ = filtered(seen, lines(DOCS), "--id", "id", "--mark")
    answers = [json.loads(line) for line in out.splitlines()]
    marks = [each.pop("neardup") for each in answers]
    assert answers == DOCS
    assert marks[0] == {"state": "new"}
    assert marks[1] == {"state": "seen", "id": "a", "similarity": 1.0}
    assert [each["state"] for each in marks] == ["new", "seen", "new", "seen", "empty", "seen"]


def test_an_id_with_other_content_is_named_with_its_line(seen: str) -> None:
    """Nothing of what was read with it is written or stored: give it again."""
    filtered(seen, lines(DOCS), "--id", "id")
    more = lines([{"id": "new", "text": "the ferry to the islands"}, {"id": "c", "text": TEXT}])
    out, message = filtered(seen, b"\n" + more, "--id", "id", "--stored", "error", code=1)
    assert (out, stored(seen)) == (b"", ["a", "c"])
    assert message.startswith(
        "neardup: -:3: the id 'c' is stored with other content: pass --stored"
    )
    message = filtered(seen, b"a text\n", "--id", "id", "--lines", "text", code=2)[1]
    assert "--id names a field of JSON" in message


def test_lines_of_text_are_numbered_and_numbers_continue(seen: str) -> None:
    first = f"{TEXT}\n\n{TEXT}!\nsomething else that nobody wrote before"
    out, _ = filtered(seen, first.encode())
    assert out.decode() == f"{TEXT}\n\nsomething else that nobody wrote before\n"
    assert stored(seen) == [0, 3]
    out, _ = filtered(seen, f"a third text of a second run\n{TEXT}\n".encode(), "--mark")
    assert out.decode().splitlines() == [
        "new\t\t\ta third text of a second run", f"seen\t0\t1.0\t{TEXT}"
    ]  # fmt: skip
    assert stored(seen) == [0, 3, 4]
    assert filtered(seen, b"x", "--id", "id", code=2)[0] == b""


def test_bad_lines_stop_or_are_skipped(seen: str) -> None:
    rows = [b'{"text": "one two three"}', b'{"text": 7}', b"{", b'{"text": "four five six"}']
    data = b"\n".join(rows) + b"\n"
    out, message = filtered(seen, data, code=1)
    assert out == rows[0] + b"\n"
    assert message.count("\n") == 1
    assert "-:2: " in message
    out, message = filtered(seen, data, "--on-error", "skip")
    assert out == rows[3] + b"\n"
    assert "(2 rejected, 0 empty)" in message
    assert "pass --id" in filtered_into_text_ids(seen)


def filtered_into_text_ids(seen: str) -> str:
    """What is told where lines cannot be numbered."""
    folder = seen + "-texts"
    with nd.DurableIndex.open(folder, similarity=0.6, recipe=nd.Recipe()) as index:
        index.add("a", TEXT)
    return filtered(folder, b"some line\n", code=2)[1]


def test_a_line_of_a_pipe_goes_on_before_the_next_one_comes(seen: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(  # noqa: S602  # a shell, as a user has
        f"{' '.join(NEARDUP)} index filter {seen} < {fifo}", shell=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with fifo.open("wb", buffering=0) as pipe:
            for word in ("one", "two", "three"):
                pipe.write(f"{word} line {word} of {word} log\n".encode())
                assert process.stdout.readline().startswith(word.encode())
                pipe.write(f"{word} line {word} of {word} log\n".encode())
        assert process.stdout.read() == b""
        assert process.wait(TIMEOUT) == 0


def test_every_so_many_lines_are_one_commit(seen: str) -> None:
    data = "".join(f"line {n} and {n * n} of {n + 7}\n" for n in range(50)).encode()
    assert filtered(seen, data, "--every", "20")[0] == data
    assert stored(seen) == list(range(50))
    with nd.DurableIndex.open(seen) as index:
        assert index.stats()["log_rows"] == 50
    assert filtered(seen, b"", "--every", "20")[0] == b""


@pytest.mark.parametrize("seed", range(examples(6, 2)))
def test_after_a_kill_lines_may_come_twice_and_none_is_missing(
    seen: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    texts = [f"line {n} and {n * n} of {n + 7} words" for n in range(3000)]
    for n in range(0, 3000, 9):
        texts[n] = texts[chance.randrange(3000)]
    data = "".join(f"{text}\n" for text in texts).encode()
    given, out = tmp_path / "given", tmp_path / "out"
    given.write_bytes(data)
    for run in range(3):
        with given.open("rb") as source, out.open("ab") as target:
            process = subprocess.Popen(  # our own command
                [*NEARDUP, "index", "filter", seen, "--every", "50"], stdin=source, stdout=target,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if run < 2:
                size = out.stat().st_size
                while process.poll() is None and out.stat().st_size == size:
                    time.sleep(0.001)
                time.sleep(chance.random() * 0.2)
                process.send_signal(signal.SIGKILL)
            process.wait(TIMEOUT)
    written = out.read_bytes().decode().splitlines()
    assert set(texts) == set(written)
    whole = nd.Index(similarity=0.6, recipe=nd.Recipe())
    assert all(answer.state in {"new", "seen"} for answer in whole.offer_many(
        list(range(len(written))), written
    ))  # fmt: skip
    with nd.DurableIndex.open(seen, readonly=True) as index:
        assert len(index) == len(whole) == len(set(texts))


def records(chance: random.Random, count: int) -> list[dict[str, str]]:
    """Records with ids, some of which come again with other texts, twins and empty ones."""
    texts = [f"line {n} and {n * n} of {n + 7} words" for n in range(count)]
    rows = [{"id": f"a{n}", "text": text} for n, text in enumerate(texts)]
    for row in range(9, count, 3):
        earlier = rows[chance.randrange(row)]
        rows[row] = chance.choice([
            {"id": earlier["id"], "text": texts[row]},
            {"id": f"b{row}", "text": earlier["text"] + " again"},
            {"id": f"c{row}", "text": ""},
            earlier,
        ])  # fmt: skip
    return rows


def unlike(texts: list[str], others: list[str]) -> list[str]:
    """The texts to which none of the others is near."""
    index = nd.Index(similarity=0.6, recipe=nd.Recipe())
    index.add(range(len(others)), others)
    return [text for text in texts if text and not index.query(text)]


@pytest.mark.parametrize("every", [[], ["--every", "40"], ["--every", "1"]], ids=str)
@pytest.mark.parametrize("seed", range(examples(2, 1)))
def test_kills_of_a_filter_of_records_lose_none(
    seen: str, tmp_path: Path, every: list[str], seed: int
) -> None:
    """At any moment, also before the first line: what is not written is near what is."""
    chance = random.Random(f"{seed}{every}")
    given, out = tmp_path / "given", tmp_path / "out"
    rows = records(chance, 1500 if every[1:] != ["1"] else 300)
    given.write_bytes(lines(rows))
    out.touch()
    for run in range(5):
        with given.open("rb") as source, out.open("ab") as target:
            command = [*NEARDUP, "index", "filter", seen, "--id", "id", *every]
            process = subprocess.Popen(  # our own command
                command, stdin=source, stdout=target, stderr=subprocess.PIPE
            )
            size = out.stat().st_size
            while run % 2 and process.poll() is None and out.stat().st_size == size:
                time.sleep(0.001)
            if run < 4:
                time.sleep(chance.random() * (0.3 if run % 2 else 1.5))
                process.send_signal(signal.SIGKILL)
            message = process.communicate(timeout=TIMEOUT)[1].decode()
            assert process.returncode in {0, -signal.SIGKILL}, message
    assert process.returncode == 0
    written = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert all(row in rows for row in written)
    missing = [row["text"] for row in rows if row not in written]
    assert unlike(missing, [row["text"] for row in written]) == []
    assert all(row in written for row in rows if not row["text"])
    with nd.DurableIndex.open(seen, readonly=True) as index:
        assert index.check() == []
        assert {name for name, _ in index} <= {row["id"] for row in written}


@pytest.mark.skipif(shutil.which("tail") is None, reason="there is no tail")
def test_a_file_that_grows_is_filtered_and_again_after_a_kill(seen: str, tmp_path: Path) -> None:
    source, out = tmp_path / "given", tmp_path / "out"
    rows = [{"id": f"a{n}", "text": f"line {n} and {n * n} of {n + 7} words"} for n in range(8)]
    source.touch()
    for begin in (0, 4):
        with out.open("ab") as target:
            tail = subprocess.Popen(["tail", "-n", "+1", "-f", str(source)], stdout=subprocess.PIPE)
            command = [*NEARDUP, "index", "filter", seen, "--id", "id"]
            process = subprocess.Popen(command, stdin=tail.stdout, stdout=target)
            for at in range(begin, begin + 4):
                with source.open("ab") as more:
                    more.write(lines(rows[at : at + 1] * 2))
                while lines(rows[at : at + 1]) not in out.read_bytes():
                    assert process.poll() is None
                    time.sleep(0.01)
            if begin == 0:
                process.kill()
            tail.terminate()
            assert process.wait(TIMEOUT) == (0 if begin else -signal.SIGKILL)
            tail.wait(TIMEOUT)
            assert tail.stdout is not None
            tail.stdout.close()
    written = [json.loads(line)["id"] for line in out.read_bytes().splitlines()]
    assert sorted(set(written)) == [row["id"] for row in rows] == stored(seen)
    assert len(written) <= len(rows) + 1  # the last one before the kill may come again
