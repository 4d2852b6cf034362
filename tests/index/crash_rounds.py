"""Kill a writer at random moments, again and again; what it had committed must be there, whole.

    python tests/index/crash_rounds.py --rounds 200

Each round forks a writer, which adds, offers batches with twins, replaces, removes, commits,
checkpoints and compacts, and a reader, which compares all that it sees with the states that a
commit can leave. After a random time the writer gets SIGKILL (and in some rounds the reader). Then
the folder must hold the state of the last commit that the writer acknowledged, or of the one that
it was in.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import neardup as nd
from neardup.index import code_segments as segments
from neardup.index import row_writer as writing
from neardup.index import set_segments
from neardup.index.durable import folder_store as durable
from neardup.index.durable import log_store as store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

State = dict[str, int]
DISTANCE, SIMILARITY = 2, 0.6


@dataclass(frozen=True)
class Kind:
    """A kind of index, whose documents are made of numbers of 64 bits.

    Args:
        options: Of a new index.
        document: Of a number: itself, or a feature for each of its 16 digits of 4 bits.
        score: How close two numbers are.
        is_near: Whether a score is within reach.
        closest_first: Sorts scores.
    """

    options: dict[str, Any]
    document: Callable[[int], Any]
    score: Callable[[int, int], float]
    is_near: Callable[[float], bool]
    closest_first: Callable[[float], float]

    def written(self, values: list[int | None]) -> tuple[list[Any], list[str | None] | None]:
        """Documents, and what is kept of them: of an index by similarity the number as a text."""
        documents = [None if value is None else self.document(value) for value in values]
        texts = [None if value is None else str(value) for value in values]
        return documents, texts if "store" in self.options else None

    def numbers(self, index: Any) -> list[tuple[str, int]]:
        """Ids and numbers of what an index holds at one moment, in order."""
        with index.snapshot() as seen:
            if "store" not in self.options:
                return list(seen)
            ids = [name for name, _ in seen]
            return [(name, int(x)) for name, x in zip(ids, seen.contents(ids), strict=True)]


def digits(value: int) -> Any:
    """Of a number: which digit stands where."""
    return np.array([at << 32 | value >> 4 * at & 15 for at in range(16)], np.uint64)


def jaccard(one: int, other: int) -> float:
    """Of the digits of two numbers."""
    shared = sum(not (one ^ other) >> 4 * at & 15 for at in range(16))
    return shared / (32 - shared)


KINDS = {
    "distance": Kind(
        {"distance": DISTANCE}, lambda value: value, lambda one, two: (one ^ two).bit_count(),
        lambda bits: bits <= DISTANCE, lambda bits: bits,
    ),
    "similarity": Kind(
        {"similarity": SIMILARITY, "store": "text"}, digits, jaccard,
        lambda share: share >= SIMILARITY, lambda share: -share,
    ),
}  # fmt: skip


def shrink() -> None:
    """Make checkpoints, joined records and merges happen every few commits."""
    segments.TAIL_ROWS = set_segments.TAIL_ROWS = set_segments.LEVEL_ROWS = 32
    writing.SMALL_BATCH = 12
    for name in KINDS:
        durable.FLUSH_ROWS[name] = 150
    store.MOST_SMALL = 6


def offered(kind: Kind, state: State, identity: str, value: int | None, stored: str) -> str:
    """What becomes of a document that is offered; the state changes accordingly."""
    if value is None:
        return "empty"
    if state.get(identity) == value:
        return "stored"
    if any(kind.is_near(kind.score(value, x)) for name, x in state.items() if name != identity):
        return "seen"
    if identity in state and stored == "keep":
        return "stored"
    answer = "replaced" if identity in state else "new"
    state.pop(identity, None)
    state[identity] = value
    return answer


def offer(kind: Kind, rng: random.Random, state: State, step: int, index: Any) -> None:
    """Offer a batch in a transaction: repeated and stored ids, twins of each other, empty ones."""
    ids, values = [f"new{step}"], list[int | None]([rng.getrandbits(64)])
    for _ in range(rng.choice([1, 8, 60])):
        known = rng.choice([*values, *state.values()])
        twin = None if known is None else known ^ 1 << rng.randrange(64)
        ids.append(rng.choice([f"{rng.randrange(700)}", rng.choice(ids)]))
        values.append(rng.choice([twin, twin, known, rng.getrandbits(64), None]))
    stored: Any = rng.choice(["replace", "replace", "keep"])
    want = [offered(kind, state, *each, stored) for each in zip(ids, values, strict=True)]
    if index is not None:
        with index.transaction() as t:
            files = t.offer_many(ids, *kind.written(values), stored=stored)
            if [answer.state for answer in files] != want:
                raise AssertionError(f"{files}, not {want}")


def add(kind: Kind, rng: random.Random, state: State, index: Any) -> None:
    """Add one document or many; some replace others."""
    size = rng.choice([1, 1, 4, 40, 200])
    ids = [f"{rng.randrange(700)}" for _ in range(size)]
    values = [rng.getrandbits(64) for _ in ids]
    for identity, value in zip(ids, values, strict=True):
        state.pop(identity, None)
        state[identity] = value
    documents, texts = kind.written([*values])
    if index is not None and size == 1:
        index.add(ids[0], documents[0], texts and texts[0])
    elif index is not None:
        index.add(ids, documents, texts)


def story(kind: Kind, seed: int, state: State, index: Any = None) -> Iterator[State]:
    """The states after each commit; if an index is given, it does the same."""
    rng = random.Random(seed)
    state = dict(state)
    for step in range(1_000_000):
        if rng.random() < 0.3:
            offer(kind, rng, state, step, index)
            yield dict(state)
            continue
        for part in range(rng.choice([1, 1, 3])):
            add(kind, rng, state, index)
            gone = rng.sample(list(state), min(len(state), rng.choice([0, 1, 30]) * (part == 0)))
            for identity in gone:
                del state[identity]
            if gone and index is not None:
                index.remove(gone)
        if index is not None and step % 17 == 16:
            index.compact()
        elif index is not None:
            index.commit()
        yield dict(state)


def write(kind: Kind, path: Path, seed: int, before: State, pipe: int) -> None:
    """Go on until killed; one byte to the pipe for each commit."""
    with nd.DurableIndex.open(path) as index:
        for _ in story(kind, seed, before, index):
            os.write(pipe, b".")


def read(kind: Kind, path: Path, seed: int, before: State, pipe: int) -> None:
    """Compare what a reader sees with the states of commits, in their order, until killed."""
    seen, states = before, story(kind, seed, before)
    while True:
        with nd.DurableIndex.open(path, readonly=True) as index:
            for _ in range(20):
                contents = kind.numbers(index)
                for _ in range(100_000):
                    if list(seen.items()) == contents:
                        break
                    seen = next(states)
                else:
                    raise AssertionError("a reader saw what no commit left")
                os.write(pipe, b".")


def forked(work: Callable[..., None], *arguments: Any) -> tuple[int, int]:
    """Work in a child; its process number and the pipe on which it reports."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(*arguments, writing)
        except BaseException:  # noqa: BLE001  # a child must not go on as its parent
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    return child, reading


def reported(pipe: int, seconds: float) -> int:
    """How many bytes a child sent within a time; then the pipe is read to its end when closed."""
    count, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([pipe], [], [], left)[0]:
            data = os.read(pipe, 4096)
            if not data:
                break
            count += len(data)
    return count


def drained(pipe: int) -> int:
    """The bytes that are left in the pipe of a dead child."""
    count = 0
    while data := os.read(pipe, 4096):
        count += len(data)
    os.close(pipe)
    return count


def one_round(kind: Kind, path: Path, rng: random.Random, before: State) -> tuple[State, int, int]:
    """The state that is there after a kill, the commits that were acknowledged, and reads."""
    seed = rng.getrandbits(32)
    writer, acknowledged = forked(write, kind, path, seed, before)
    reader, reads = forked(read, kind, path, seed, before)
    count = reported(acknowledged, rng.uniform(0.02, 0.8))
    os.kill(writer, signal.SIGKILL)
    _, status = os.waitpid(writer, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("the writer failed")
    if rng.random() < 0.7:
        time.sleep(0.05)
    count += drained(acknowledged)
    finished, status = os.waitpid(reader, os.WNOHANG)
    if finished:
        raise AssertionError("the reader failed")
    os.kill(reader, signal.SIGKILL)
    os.waitpid(reader, 0)
    seen = drained(reads)
    possible = [
        before,
        *(state for state, _ in zip(story(kind, seed, before), range(count + 1), strict=False)),
    ]
    with nd.DurableIndex.open(path) as index:
        contents = kind.numbers(index)
        expected = [state for state in possible[count:] if list(state.items()) == contents]
        if not expected:
            lost = set(possible[count].items()) - set(contents)
            raise AssertionError(
                f"{len(lost)} acknowledged documents lost, or order, or half a commit"
            )
        check(kind, index, expected[0], rng)
    return expected[0], count, seen


def check(kind: Kind, index: Any, state: State, rng: random.Random) -> None:
    """Checksums, and answers as a loop gives them, to questions and to twins that are offered."""
    problems = index.check()
    if problems:
        raise AssertionError(problems)
    for identity in rng.sample(list(state), min(5, len(state))):
        query = state[identity] ^ 1 << 63 ^ 1 << rng.randrange(63)
        near = [(name, kind.score(value, query)) for name, value in state.items()]
        expected = sorted(
            (hit for hit in near if kind.is_near(hit[1])),
            key=lambda hit: kind.closest_first(hit[1]),
        )
        (document,), texts = kind.written([query])
        if index.query(document) != expected:
            raise AssertionError(f"query {query}: {index.query(document)}, not {expected}")
        twins = index.offer_many(["a twin", "b twin"], [document] * 2, texts and texts * 2)
        if [answer.near for answer in twins] != [expected[0]] * 2:
            raise AssertionError(f"offered {query}: {twins}, not {expected[0]}")


def main() -> None:
    """Run the rounds; a failure keeps the folder and says where it is."""
    parser = argparse.ArgumentParser(description="Kill a writer at random moments.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--kind", choices=list(KINDS), default="distance")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    shrink()
    rng, state = random.Random(options.seed), {}
    folder = Path(tempfile.mkdtemp())
    path, kind = folder / "index", KINDS[options.kind]
    nd.DurableIndex.open(path, **kind.options).close()
    with nd.DurableIndex.open(folder / "warm", **kind.options) as warm:
        for _ in zip(story(kind, 1, {}, warm), range(20), strict=False):
            warm.query(kind.document(5))
    commits = reads = 0
    for number in range(options.rounds):
        try:
            state, acknowledged, seen = one_round(kind, path, rng, state)
        except BaseException:
            print(f"round {number} of seed {options.seed} failed; the folder is {path}", flush=True)
            raise
        commits, reads = commits + acknowledged, reads + seen
    shutil.rmtree(folder)
    print(f"{options.rounds} rounds, {commits} acknowledged commits, {reads} reads: nothing lost")


if __name__ == "__main__":
    main()
