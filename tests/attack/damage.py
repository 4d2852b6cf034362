"""Damage to the files of an index, and what a victim process makes of it."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import traceback
import zlib
from typing import TYPE_CHECKING, Any, Final

import lmdb
import pytest

import neardup as nd
from neardup.errors import NeardupError
from neardup.index.durable import folder_store
from suite import LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

PAGE: Final = 4096
RIGHT, REFUSED, WRONG, SILENT, RAW = range(5)
"""What a victim says: SILENT is a wrong answer after `check` found nothing."""
SECONDS: Final = 60


def make_index(folder: Path, kind: str, rng: Random, rows: int = 1200) -> Any:
    """An index with a segment, marks of removed rows, a log and contents; ids are of a kind."""
    settings: dict[str, Any] = {
        "int": {"distance": 3, "plan": "blocks", "store": "features"},
        "str": {"distance": 3, "plan": "auto", "store": "text"},
        "similar": {"similarity": 0.6},
    }[kind]
    name = (lambda i: 3 * i % 65537) if kind == "int" else (lambda i: f"né-{i * 7919 % 99991}")
    texts = [f"w{rng.randrange(50)} w{rng.randrange(50)} x{i % 1000}" for i in range(rows)]
    with nd.DurableIndex.open(folder, recipe=nd.Recipe(ngram=1), **settings) as index:
        for begin in range(0, rows, 600):
            part = range(begin, min(begin + 600, rows))
            index.add([name(i) for i in part], [texts[i] for i in part])
            index.commit()
        index.remove([name(i) for i in range(0, rows, 17)])
        with pytest.MonkeyPatch.context() as patch:
            for compared_by in folder_store.FLUSH_ROWS:
                patch.setitem(folder_store.FLUSH_ROWS, compared_by, 1)
            index.compact()  # what is pending after it goes to files, however little
        index.remove([name(i) for i in range(7, rows, 99) if i % 17])
        index.commit()  # marks them
        index.remove([name(i) for i in range(5, rows, 99) if i % 17])
        more = range(rows, rows + 40)
        index.add([name(i) for i in more], [f"more {i}" for i in more])
    return answers(folder)


def answers(folder: Path, *, verify: bool = False) -> Any:
    """Every kind of question, in a form that can be compared."""
    with nd.DurableIndex.open(folder, readonly=True, create=False, verify=verify) as index:
        if hasattr(index, "similarity"):
            return similar_answers(index)
        listed = list(index)
        queries = [value ^ 1 for _, value in listed[:: max(1, len(listed) // 20)]]
        names = [identity for identity, _ in listed[::61]]
        return [
            listed,
            [index.query(query) for query in queries],
            index.query_batch(queries).to_pylist(),
            [index.nearest(query, 3) for query in queries[:3]],
            [identity in index for identity in names],
            index.fingerprints_by_id(names).tolist(),
            [str(index.content(identity)) for identity in names],
            sum(len(ids) for ids, _, _ in index.documents()),
            len(index),
        ]


def similar_answers(index: Any) -> Any:
    """As `answers`, of an index by similarity."""
    rows = [
        (name, features.tolist())
        for ids, _, kept in index.documents()
        for name, features in zip(ids.to_pylist(), kept, strict=True)
    ]
    texts = [f"w{i} w{i + 1} x{41 * i}" for i in range(12)]
    names = [name for name, _ in rows[::61]]
    return [
        rows,
        [list(index.query(text, 0.6)) for text in texts],
        index.query_batch(texts).to_pylist(),
        [index.nearest(text, 3) for text in texts[:3]],
        [name in index for name in names],
        [index.features(name).tolist() for name in names],
        len(index),
    ]


def compacted(folder: Path) -> Any:
    """The answers after everything was written again; no power is cut, so nothing is synced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        with nd.DurableIndex.open(folder, create=False) as index:
            index.compact()
    return answers(folder)


def verdict(folder: Path, expected: Any) -> int:
    """What a process finds that meets the folder as it is."""

    def asked(question: Callable[[], Any]) -> int:
        try:
            return RIGHT if question() == expected else WRONG
        except NeardupError:
            return REFUSED
        except KeyError:  # the answer for an id that is not there
            return WRONG

    plain = asked(lambda: answers(folder))
    problems = problems_of(folder)
    if asked(lambda: answers(folder, verify=True)) == WRONG:
        return SILENT
    rewritten = asked(lambda: compacted(folder))
    if rewritten == WRONG and not problems_of(folder):
        return SILENT
    return SILENT if plain == WRONG and not problems else plain


def problems_of(folder: Path) -> list[str]:
    """What `check` finds."""
    try:
        with nd.DurableIndex.open(folder, readonly=True, create=False) as index:
            return index.check()
    except NeardupError as error:
        return [str(error)]


def damaged_copy(folder: Path, target: Path, pattern: str, rng: Random) -> str:
    """Copy an index and damage one of its files; what was done."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    path = rng.choice(sorted(target.glob(pattern)))
    data = bytearray(path.read_bytes())
    what = damage(data, rng)
    path.write_bytes(data)
    return f"{what} of {path.name}"


def damaged_entry(folder: Path, target: Path, database: str, rng: Random) -> str:
    """Copy an index and damage an entry of its log, with which LMDB finds nothing wrong.

    Args:
        folder: The index.
        target: Where its copy is made.
        database: Its name, and perhaps a key: of "meta/ledger" it is the value.
        rng: Chooses what is done to the value, and in one of eight to the key instead.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    path = max(target.glob("log-*.mdb"))
    name, _, only = database.partition("/")
    with lmdb.open(str(path), subdir=False, max_dbs=4, sync=False) as env:
        result = env.open_db(name.encode(), create=False)
        with env.begin(write=True, db=result) as txn:
            keys = [only.encode()] if only else [bytes(key) for key, _ in txn.cursor()]
            key = rng.choice(keys)
            value, moved = bytearray(txn.pop(key)), bytearray(key)
            what = damage(value if only or rng.random() < 7 / 8 else moved, rng)
            txn.put(bytes(moved) or b"\0", bytes(value))
    return f"{what} of {key!r} in {database}"


def damage(data: bytearray, rng: Random) -> str:
    """Flip, cut, zero or overwrite something of it; what was done, and the CRC-32 after it."""
    at = rng.randrange(len(data))
    what = rng.choice(["flip"] * 6 + ["cut", "zero", "zero", "noise"])
    if what == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[at:]
    else:
        begin = at - at % PAGE
        page = min(PAGE, len(data) - begin)
        data[begin : begin + page] = bytes(page) if what == "zero" else rng.randbytes(page)
    return f"{what} at {at} (crc {zlib.crc32(data):08x})"


def in_victim(work: Callable[[], int], log: Path, seconds: int = SECONDS) -> int:
    """Do it in a forked process: its verdict, or minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        code = RAW
        try:
            signal.alarm(seconds)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(output, 2)
            code = work()
        except BaseException:  # noqa: BLE001  # what a user would see as a traceback
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def footer_flips(path: Path, ask: Callable[[], Any], log: Path) -> int:
    """Flip bits of a Parquet file's footer, its length and the magic behind it; how many there are.

    Each is refused, or what is found is what was: all in the long form, sixty or so in the quick.
    """
    expected, data = ask(), path.read_bytes()
    size = 8 + int.from_bytes(data[-8:-4], "little")
    flips = [(at, bit) for at in range(len(data) - size, len(data)) for bit in range(8)]

    def verdict() -> int:
        for at, bit in flips[:: 1 if LONG else len(flips) // 60]:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            os.write(2, f"\nbit {bit} of {at}\n".encode())  # the last one of the log is at fault
            with contextlib.suppress(NeardupError):
                if ask() != expected:
                    return WRONG
        return RIGHT

    code = in_victim(verdict, log, seconds=3600)
    assert code == RIGHT, log.read_text()[-2000:]
    return len(flips)


def address_space() -> int:
    """Bytes of addresses that this process has, on Linux."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * 4096
