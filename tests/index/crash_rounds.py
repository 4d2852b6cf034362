"""Kill a writer at random moments, again and again; what it had committed must be there, whole.

    python tests/index/crash_rounds.py --rounds 200

Each round forks a writer, which adds, replaces, removes, commits, checkpoints and compacts, and a
reader, which compares all that it sees with the states that a commit can leave. After a random time
the writer gets SIGKILL (and in some rounds the reader). Then the folder must hold the state of the
last commit that the writer acknowledged, or of the one that it was in.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import neardup as nd
from neardup.index import code_segments as segments
from neardup.index import row_writer as writing
from neardup.index.durable import folder_store as durable
from neardup.index.durable import log_store as store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DISTANCE = 2
State = dict[str, int]


def shrink() -> None:
    """Make checkpoints, joined records and merges happen every few commits."""
    segments.TAIL_ROWS = 32
    writing.SMALL_BATCH = 12
    durable.FLUSH_ROWS["distance"] = 150
    store.MOST_SMALL = 6


def story(seed: int, state: State, index: Any = None) -> Iterator[State]:
    """The states after each commit; if an index is given, it does the same."""
    rng = random.Random(seed)
    state = dict(state)
    for step in range(1_000_000):
        for part in range(rng.choice([1, 1, 3])):
            size = rng.choice([1, 1, 4, 40, 200])
            ids = [f"{rng.randrange(700)}" for _ in range(size)]
            values = [rng.getrandbits(64) for _ in ids]
            for identity, value in zip(ids, values, strict=True):
                state.pop(identity, None)
                state[identity] = value
            if index is not None and size == 1:
                index.add(ids[0], values[0])
            elif index is not None:
                index.add(ids, values)
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


def write(path: Path, seed: int, before: State, pipe: int) -> None:
    """Go on until killed; one byte to the pipe for each commit."""
    with nd.DurableIndex.open(path) as index:
        for _ in story(seed, before, index):
            os.write(pipe, b".")


def read(path: Path, seed: int, before: State, pipe: int) -> None:
    """Compare what a reader sees with the states of commits, in their order, until killed."""
    seen, states = before, story(seed, before)
    while True:
        with nd.DurableIndex.open(path, readonly=True) as index:
            for _ in range(20):
                found = list(index)
                for _ in range(100_000):
                    if list(seen.items()) == found:
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


def one_round(path: Path, rng: random.Random, before: State) -> tuple[State, int, int]:
    """The state that is there after a kill, the commits that were acknowledged, and reads."""
    seed = rng.getrandbits(32)
    writer, acknowledged = forked(write, path, seed, before)
    reader, reads = forked(read, path, seed, before)
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
        *(state for state, _ in zip(story(seed, before), range(count + 1), strict=False)),
    ]
    with nd.DurableIndex.open(path) as index:
        found = list(index)
        wanted = [state for state in possible[count:] if list(state.items()) == found]
        if not wanted:
            lost = set(possible[count].items()) - set(found)
            raise AssertionError(
                f"{len(lost)} acknowledged documents lost, or order, or half a commit"
            )
        check(index, wanted[0], rng)
    return wanted[0], count, seen


def check(index: Any, state: State, rng: random.Random) -> None:
    """Checksums, and answers as a loop gives them."""
    problems = index.check()
    if problems:
        raise AssertionError(problems)
    for identity in rng.sample(list(state), min(5, len(state))):
        query = state[identity] ^ 1 << 63 ^ 1 << rng.randrange(63)
        near = [(i, (v ^ query).bit_count()) for i, v in state.items()]
        wanted = sorted((hit for hit in near if hit[1] <= DISTANCE), key=lambda hit: hit[1])
        if index.query(query) != wanted:
            raise AssertionError(f"query {query}: {index.query(query)}, not {wanted}")


def main() -> None:
    """Run the rounds; a failure keeps the folder and says where it is."""
    parser = argparse.ArgumentParser(description="Kill a writer at random moments.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    shrink()
    rng, state = random.Random(options.seed), {}
    folder = Path(tempfile.mkdtemp())
    path = folder / "index"
    nd.DurableIndex.open(path, distance=DISTANCE).close()
    with nd.DurableIndex.open(folder / "warm", distance=DISTANCE) as warm:
        for _ in zip(story(1, {}, warm), range(20), strict=False):
            warm.query(5)
    commits = reads = 0
    for number in range(options.rounds):
        try:
            state, acknowledged, seen = one_round(path, rng, state)
        except BaseException:
            print(f"round {number} of seed {options.seed} failed; the folder is {path}", flush=True)
            raise
        commits, reads = commits + acknowledged, reads + seen
    shutil.rmtree(folder)
    print(f"{options.rounds} rounds, {commits} acknowledged commits, {reads} reads: nothing lost")


if __name__ == "__main__":
    main()
