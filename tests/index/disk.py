"""A disk whose power fails: record what a process writes and syncs, and keep only what must stay.

The record is strace's. What was written and not synced may be kept, dropped or cut at a sector; a
name that was made, changed or removed may be lost until its folder is synced.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

SECTOR: Final = 512
CALLS: Final = (
    "openat,close,lseek,write,pwrite64,writev,ftruncate,truncate,rename,unlink,fsync,fdatasync,"
    "msync,sync_file_range,dup,dup2"
)
LINE: Final = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)")
TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True)
class Call:
    """One change of a file, or an acknowledgement: what the process wrote to standard output."""

    kind: str
    path: str = ""
    file: int = -1
    offset: int = 0
    data: bytes = b""
    target: str = ""
    thread: str = ""


@dataclass
class Opened:
    """A file descriptor."""

    path: str
    file: int
    synced: bool = False
    offset: int = 0


@dataclass
class Recording:
    """The calls of a process that concern one folder."""

    folder: str
    calls: list[Call] = field(default_factory=list)

    @property
    def first_acknowledgement(self) -> int:
        """The number of calls until the first one, it included."""
        return 1 + next(i for i, call in enumerate(self.calls) if call.kind == "acknowledge")

    def acknowledged(self, count: int) -> int:
        """How many acknowledgements are among the first `count` calls."""
        return sum(call.kind == "acknowledge" for call in self.calls[:count])

    def between_acknowledgements(self) -> list[list[Call]]:
        """The calls of the same thread between each two of them."""
        groups: list[list[Call]] = [[]]
        for call in self.calls:
            if call.kind == "acknowledge":
                groups.append([])
            elif call.thread == self.first_thread:
                groups[-1].append(call)
        return groups[1:-1]

    @property
    def first_thread(self) -> str:
        """The one that acknowledges."""
        return next(call.thread for call in self.calls if call.kind == "acknowledge")

    def of_other_threads(self) -> list[list[Call]]:
        """The calls of each thread that the first one has started."""
        groups: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.thread != self.first_thread:
                groups.setdefault(call.thread, []).append(call)
        return list(groups.values())


def recorded(command: list[str], folder: Path, trace: Path) -> Recording:
    """Run a command under strace."""
    options = ["-f", "-qq", "-xx", "-s", "99999999", "-e", f"trace={CALLS}", "-e", "signal=none"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        ["strace", *options, "-o", str(trace), *command],
        check=True, stdout=subprocess.DEVNULL, timeout=300, env=environment,
    )  # fmt: skip
    parser = _Parser(str(folder))
    with trace.open(encoding="ascii") as lines:
        for thread, name, arguments, result in _finished(lines):
            parser.thread = thread
            parser.take(name, arguments, result)
    return parser.recording


def _finished(lines: Any) -> Iterator[tuple[str, str, str, int]]:
    """Calls that succeeded, those put together that another thread's interrupted.

    A descriptor is free from the beginning of `close` on: another thread may get its number before
    `close` returns.
    """
    begun: dict[str, str] = {}
    for line in lines:
        process, _, rest = line.partition(" ")
        if closing := re.match(r" *close\((\d+) *<unfinished", rest):
            yield process, "close", closing[1], 0
            continue
        if re.match(r" *<\.\.\. close resumed>", rest):
            continue
        if rest.rstrip().endswith("<unfinished ...>"):
            begun[process] = rest.rstrip().removesuffix("<unfinished ...>")
            continue
        if resumed := re.match(r" *<\.\.\. \w+ resumed>(.*)", rest):
            rest = f"{begun.pop(process)}{resumed[1]}"
        match = LINE.match(f"{process} {rest}")
        if match and int(match[4]) >= 0:
            yield process, match[2], match[3], int(match[4])


class _Parser:
    """Follows file descriptors and names."""

    def __init__(self, folder: str) -> None:
        self.recording = Recording(folder)
        self.thread = ""
        self._open: dict[int, Opened] = {}
        self._names: dict[str, int] = {}
        self._files = 0

    def take(self, name: str, arguments: str, result: int) -> None:
        getattr(self, f"_{name}", self._unexpected)(arguments, result)

    def _add(self, *values: Any, **named: Any) -> None:
        self.recording.calls.append(Call(*values, **named, thread=self.thread))

    def _unexpected(self, arguments: str, _: int) -> None:
        if _number(arguments) in self._open:
            raise AssertionError(f"an unexpected way to change a file: {arguments}")

    def _openat(self, arguments: str, result: int) -> None:
        (path,) = _texts(arguments)
        name = path.decode()
        self._open.pop(result, None)
        is_inside = name.startswith(self.recording.folder) and not name.endswith("lock")
        if not is_inside:
            return
        if name not in self._names and "O_CREAT" in arguments:
            self._files += 1
            self._names[name] = self._files
            self._add("create", name, self._files)
        opened = Opened(name, self._names.get(name, 0), "O_DSYNC" in arguments)
        self._open[result] = opened
        if "O_TRUNC" in arguments:
            self._add("truncate", name, opened.file)

    def _close(self, arguments: str, _: int) -> None:
        self._open.pop(_number(arguments), None)

    def _lseek(self, arguments: str, result: int) -> None:
        if opened := self._open.get(_number(arguments)):
            opened.offset = result

    def _write(self, arguments: str, result: int) -> None:
        if _number(arguments) == 1:
            self._add("acknowledge")
        self._writev(arguments, result)

    def _writev(self, arguments: str, result: int) -> None:
        if opened := self._open.get(_number(arguments)):
            self._written(opened, opened.offset, b"".join(_texts(arguments)), result)
            opened.offset += result

    def _pwrite64(self, arguments: str, result: int) -> None:
        if opened := self._open.get(_number(arguments)):
            offset = int(arguments.rpartition(",")[2])
            self._written(opened, offset, b"".join(_texts(arguments)), result)

    def _written(self, opened: Opened, offset: int, data: bytes, result: int) -> None:
        kind = "synced write" if opened.synced else "write"
        self._add(kind, opened.path, opened.file, offset, data[:result])

    def _ftruncate(self, arguments: str, _: int) -> None:
        if opened := self._open.get(_number(arguments)):
            self._add("truncate", opened.path, opened.file, int(arguments.rpartition(",")[2]))

    def _truncate(self, arguments: str, _: int) -> None:
        name = _texts(arguments)[0].decode()
        if name in self._names:
            offset = int(arguments.rpartition(",")[2])
            self._add("truncate", name, self._names[name], offset)

    def _rename(self, arguments: str, _: int) -> None:
        source, target = (text.decode() for text in _texts(arguments))
        if source in self._names:
            file = self._names[target] = self._names.pop(source)
            self._add("rename", source, file, target=target)

    def _unlink(self, arguments: str, _: int) -> None:
        name = _texts(arguments)[0].decode()
        if name in self._names:
            self._add("unlink", name, self._names.pop(name))

    def _fsync(self, arguments: str, _: int) -> None:
        if opened := self._open.get(_number(arguments)):
            kind = "sync" if opened.file else "sync folder"
            self._add(kind, opened.path, opened.file)

    _fdatasync = _fsync


class Disk:
    """What is on the disk for good, and what is not yet."""

    def __init__(self) -> None:
        self._files: dict[int, bytearray] = {}
        self._names: dict[str, int] = {}
        self._loose: dict[int, list[Call]] = {}
        self._loose_names: list[Call] = []

    @classmethod
    def after(cls, calls: list[Call], rng: Random) -> Self:
        """The disk after a power failure behind these calls."""
        disk = cls()
        for call in calls:
            disk._take(call)
        for loose in disk._loose.values():
            for call in loose:
                disk._apply(call, rng.choice(["keep", "drop", "cut"]))
        kept = rng.randint(0, len(disk._loose_names))
        disk._sync_names(kept)
        return disk

    def write(self, folder: Path) -> None:
        """Write the files into a folder."""
        folder.mkdir(parents=True)
        for name, file in self._names.items():
            (folder / Path(name).name).write_bytes(self._files.get(file, b""))

    def _take(self, call: Call) -> None:
        if call.kind in {"write", "truncate"}:
            self._loose.setdefault(call.file, []).append(call)
        elif call.kind == "synced write":
            self._apply(call, "keep")
        elif call.kind == "sync":
            for loose in self._loose.pop(call.file, []):
                self._apply(loose, "keep")
        elif call.kind in {"create", "rename", "unlink"}:
            self._loose_names.append(call)
        elif call.kind == "sync folder":
            self._sync_names(len(self._loose_names))

    def _sync_names(self, count: int) -> None:
        for call in self._loose_names[:count]:
            if call.kind == "create":
                self._names[call.path] = call.file
            elif call.kind == "unlink":
                self._names.pop(call.path, None)
            else:
                self._names.pop(call.path, None)
                self._names[call.target] = call.file
        del self._loose_names[:count]

    def _apply(self, call: Call, fate: str) -> None:
        if fate == "drop":
            return
        content = self._files.setdefault(call.file, bytearray())
        if call.kind == "truncate":
            content[call.offset :] = bytes(max(0, call.offset - len(content)))
            return
        half = len(call.data) // 2 // SECTOR * SECTOR
        data = call.data if fate == "keep" else call.data[:half]
        if data:
            content.extend(bytes(max(0, call.offset - len(content))))
            content[call.offset : call.offset + len(data)] = data


def _number(arguments: str) -> int:
    match = re.match(r"\d+", arguments)
    return int(match[0]) if match else -1


def _texts(arguments: str) -> list[bytes]:
    return [bytes.fromhex(text.replace("\\x", "")) for text in TEXT.findall(arguments)]
