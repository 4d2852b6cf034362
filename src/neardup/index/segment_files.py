"""Segments as files: written once, mapped into memory, never changed.

Layout: a prefix with magic, version and the checksum of the header; the header, JSON that names
every array with its place and CRC-32; the arrays, each at a multiple of 4096 bytes. Words, ids,
numbers, the hash table of the ids and the search tables are all in the file, so that nothing is
computed when it is opened.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, FileError
from neardup.index.id_columns import ID_KINDS, IdColumn
from neardup.runtime.storage.checksums import checksum
from neardup.runtime.storage.durable_files import file_failure, path_of, written_aside
from neardup.runtime.threads import in_threads, stop_if_abandoned, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


__all__ = [
    "SegmentFile",
    "damaged",
    "file_to_save",
    "id_arrays",
    "saved_file",
    "write_arrays",
]

PREFIX: Final = struct.Struct("<8sIIQQ8s")  # magic, version, 0, header and file bytes, checksum
MAGIC: Final = b"NDsegmt\n"
VERSION: Final = 1
SYNCED_BYTES: Final = 1 << 26
"""Bytes that are written between syncs, so that the last sync of a large file is short."""


class SegmentFile:
    """A segment's file, open: `header` and arrays.

    Raises:
        FileError: If it cannot be read; FileNotFoundError if it does not exist.
        DataError: If it is cut short, damaged, of a newer version, or something else.
    """

    def __init__(self, path: Path) -> None:
        """Map the file and check its header, but not its arrays."""
        self.path = path
        try:
            with path.open("rb") as file:
                self.nbytes = os.fstat(file.fileno()).st_size
                if self.nbytes < PREFIX.size:
                    raise damaged(path, f"it has {self.nbytes} bytes")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._advise("RANDOM")  # else one query of a cold file reads megabytes
        except FileNotFoundError:
            raise
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror or error}") from None
        magic, version, _, size, total, sum_of_header = PREFIX.unpack_from(self._map)
        if magic != MAGIC:
            raise damaged(path, "it does not begin as a segment of an index does")
        if version > VERSION:
            raise DataError(
                f"{path} has format version {version}, and this neardup reads up to {VERSION}:"
                " install a newer neardup"
            )
        header = self._map[PREFIX.size : PREFIX.size + size]
        if checksum(header + struct.pack("<Q", total)) != sum_of_header:
            raise damaged(path, "the checksum of its header does not agree")
        if total != self.nbytes:
            raise damaged(path, f"it has {self.nbytes:,} bytes, not {total:,}")
        self.header: dict[str, Any] = json.loads(header)
        self.checksum = sum_of_header.hex()
        self._broken: dict[str, bool] = {}
        try:
            fault = _layout_fault(self)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            fault = f"its header cannot be read: {error!r}"
        if fault:
            raise damaged(path, fault)

    def array(self, name: str) -> Any:
        """An array, read-only and mapped; KeyError if the file has no such array."""
        entry = self.header["arrays"][name]
        shape, kind = entry["shape"], np.dtype(entry["dtype"])
        if 0 in shape:
            return np.empty(shape, kind)
        count = int(np.prod(shape))
        return np.frombuffer(self._map, kind, count, entry["offset"]).reshape(shape)

    @contextlib.contextmanager
    def read_in_order(self) -> Iterator[None]:
        """A context in which the system reads ahead of sequential reads of the arrays."""
        self._advise("SEQUENTIAL")
        try:
            yield
        finally:
            self._advise("RANDOM")

    def fetch(self) -> None:
        """Let the system read the whole file ahead."""
        self._advise("WILLNEED")

    def _advise(self, how: str) -> None:
        advice = getattr(mmap, f"MADV_{how}", None)
        if advice is not None:  # not on every system
            self._map.madvise(advice)

    def ids(self) -> IdColumn:
        """The ids, with their hash table."""
        kind, count = self.header["ids"], self.header["rows"]
        data = pa.py_buffer(self.array("ids"))
        buffers = [None, data] if kind == "int" else [None, pa.py_buffer(self.array("ends")), data]
        values = pa.Array.from_buffers(ID_KINDS[kind], count, buffers)
        ascending = self.header["ascending"]
        return _StoredIds(self.path, values, None if ascending else self.array("slots"), ascending)

    def broken_arrays(self, names: Iterable[str] | None = None) -> list[str]:
        """Names of the arrays, among these or all, whose CRC-32 does not match.

        An array is read once; later calls return that result.
        """
        entries = self.header["arrays"]
        chosen = [name for name in entries if names is None or name in names]
        with self.read_in_order():
            sums = _sums({name: self.array(name) for name in chosen if name not in self._broken})
        self._broken |= {name: crc != entries[name]["crc"] for name, crc in sums.items()}
        return [name for name in chosen if self._broken[name]]

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Raise DataError unless the CRC-32 of these arrays, or of all, match."""
        broken = self.broken_arrays(names)
        if broken:
            raise damaged(self.path, f"in {', '.join(broken)}")


def saved_file(path: str | os.PathLike[str]) -> SegmentFile:
    """The open file of a saved index.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not such a file.
    """
    try:
        return SegmentFile(path_of(path))
    except FileNotFoundError:
        raise FileError(f"cannot read {path}: there is no such file") from None


def file_to_save(path: str | os.PathLike[str]) -> Path:
    """The path for saving an index; FileError if it is a folder."""
    if path_of(path).is_dir():
        raise FileError(f"cannot write {path}: it is a folder; name a file in it")
    return path_of(path)


class _StoredIds(IdColumn):
    """Ids in a file: offsets that Arrow would follow blindly are checked first."""

    def __init__(self, path: Path, values: Any, slots: Any, ascending: bool) -> None:
        super().__init__(values, slots, ascending)
        self._path = path
        self._is_sound = self.kind == "int"
        self._bytes, self._places = self.bytes_and_offsets()

    @property
    def values(self) -> Any:
        """See IdColumn.values; the first call checks all.

        Raises:
            DataError: If they are not ids.
        """
        if not self._is_sound:
            try:
                self._values.validate(full=True)
            except pa.ArrowInvalid as error:
                raise damaged(self._path, f"in ids: {error}") from None
            self._is_sound = True
        return self._values

    def value(self, row: int) -> Any:
        """See IdColumn.value; DataError if it is not an id."""
        if self._is_sound:
            return super().value(row)
        begin, end = self._places[row : row + 2].tolist()
        try:
            if not 0 <= begin <= end <= len(self._bytes):
                raise damaged(self._path, f"in ids: row {row:,} lies from {begin:,} to {end:,}")
            return self._bytes[begin:end].tobytes().decode()
        except UnicodeDecodeError as error:
            raise damaged(self._path, f"in ids: row {row:,} is not UTF-8: {error}") from None

    def disagreement(self) -> DataError:
        """See IdColumn.disagreement; it names the file."""
        return damaged(self._path, f"in ids: {super().disagreement()}")


def write_arrays(path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a header, JSON values, and arrays aside, sync the file, and rename it.

    The header gets the places of the arrays. A crash leaves the whole file under its final name or
    none: the temporary file is removed when the folder is next opened for writing.

    Args:
        path: The final path; a file there is replaced.
        header: JSON values.
        arrays: By name.


    Raises:
        FileError: If it cannot be written.
    """
    header = header | {"arrays": {}}
    head, offset = b"", PREFIX.size + 2 * len(json.dumps(header)) + 256 * len(arrays)
    for name, crc in _sums(arrays).items():
        array = arrays[name]
        offset = -(-offset // PAGE) * PAGE
        header["arrays"][name] = {
            "dtype": array.dtype.str, "shape": array.shape, "offset": offset, "crc": crc,
        }  # fmt: skip
        offset += array.nbytes
    head = json.dumps(header).encode()
    seal = checksum(head + struct.pack("<Q", offset))
    prefix = PREFIX.pack(MAGIC, VERSION, 0, len(head), offset, seal)
    places = [(header["arrays"][name]["offset"], array) for name, array in arrays.items()]
    try:
        with written_aside(path) as aside:
            _write(aside, [(0, np.frombuffer(prefix + head, np.uint8)), *places])
    except OSError as error:
        raise file_failure("write", path, error) from None


def id_arrays(ids: IdColumn) -> dict[str, Any]:
    """The arrays that hold the ids of a segment."""
    data, ends = ids.bytes_and_offsets()
    arrays = {"ids": data}
    if len(ends):
        arrays = {"ids": data[ends[0] : ends[-1]], "ends": ends - ends[0]}
    if not ids.ascending:
        arrays["slots"] = ids.slots
    return arrays


def damaged(path: Path, why: str) -> DataError:
    """The error for a file that differs from what was written."""
    return DataError(
        f"{path} is damaged ({why}): restore the index from a copy, or make it again from the"
        " documents"
    )


def _sums(arrays: dict[str, Any]) -> dict[str, int]:
    """The CRC-32 of each array, on threads; in the order of the arrays."""
    sums = dict.fromkeys(arrays, 0)

    def add(_: int, name: str) -> None:
        sums[name] = zlib.crc32(arrays[name].reshape(-1).view(np.uint8))

    in_threads(worker_count(None), add, arrays)
    return sums


def _write(path: Path, places: list[tuple[int, Any]]) -> None:
    with path.open("wb") as file:
        for offset, array in places:
            file.write(bytes(offset - file.tell()))
            data = array.reshape(-1).view(np.uint8).data
            for begin in range(0, len(data), SYNCED_BYTES):
                stop_if_abandoned()
                file.write(data[begin : begin + SYNCED_BYTES])
                if len(data) - begin > SYNCED_BYTES:
                    file.flush()
                    os.fsync(file.fileno())
        file.flush()
        os.fsync(file.fileno())


PAGE: Final = 4096
KINDS: Final = {
    "words": "<u8", "numbers": "<i8", "ids": "|u1", "ends": "<i8", "slots": "<u4", "masks": "<u8",
    "table_words": "<u8", "table_rows": "<u4", "table_starts": "<u4", "table_factors": "<u8",
    "features": "<u8", "offsets": "<i8", "set_of": "<u4", "members": "<u4", "member_starts": "<i8",
    "sizes": "<i8", "firsts": "<i8", "order_keys": "<u8", "order_ranks": "<u4", "starts": "<u4",
    "entries": "<u8", "rest_starts": "<u4", "rest_entries": "<u8", "sketches": "<u8",
    "beside": "|u1", "beside_ends": "<i8",
}  # fmt: skip
NAMES: Final = {"ends": "ids", "beside_ends": "payloads"}
LIMITS: Final = (
    "masks", "table_factors", "offsets", "set_of", "members", "member_starts", "sizes", "firsts",
    "order_keys", "order_ranks", "starts", "rest_starts",
)  # fmt: skip
"""Arrays of positions in other arrays, which kernels follow: verified when a file is opened."""


def _layout_fault(file: Any) -> str:
    """The fault in the places and shapes that a header names; "" if there is none.

    Only the ends of arrays and the small arrays are checked, so that opening stays quick. With
    this, and with the kernels' own limits, no content of a file can make them read outside it.
    """
    header = file.header
    entries, rows = header["arrays"], header["rows"]
    for name, entry in entries.items():
        nbytes = np.dtype(KINDS[name]).itemsize * math.prod(entry["shape"])
        if entry["dtype"] != KINDS[name] or min(entry["shape"]) < 0 or entry["offset"] % PAGE:
            return f"its header describes {name} as {entry}"
        if not 0 <= entry["offset"] <= file.nbytes - nbytes:
            return f"{name} lies beyond its end"
    shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}
    for name, shape in _shapes(header, shapes).items():
        if shapes[name] != shape:
            return f"{name} has shape {shapes[name]}, not {shape}"
    slots = math.prod(shapes.get("slots", ()))
    if not header["ascending"] and (slots <= rows or slots & (slots - 1)):
        return f"{slots:,} slots for {rows:,} ids"
    for name, end in _ends(header, shapes).items():
        if file.array(name)[[0, -1]].tolist() != [0, end]:
            return f"its {NAMES.get(name, name)} do not end where they are said to"
    broken = file.broken_arrays(LIMITS)
    return f"in {', '.join(broken)}" if broken else ""


def _shapes(header: dict[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """The shapes that arrays must have, by the header and the number of tables."""
    rows = header["rows"]
    expected: dict[str, Any] = {"numbers": (rows,)}
    expected |= {"ids": (8 * rows,)} if header["ids"] == "int" else {"ends": (rows + 1,)}
    if "beside" in shapes:
        expected["beside_ends"] = (rows + 1,)
    if "set_of" in shapes:
        return expected | _shapes_of_sets(rows, shapes)
    width = -(-header["bits"] // 64)
    expected["words"] = (rows, width)
    if header["plan"] is not None and "table_factors" in shapes:
        tables, keys = shapes["masks"][0], (1 << header["plan"]["key_bits"]) + 1
        expected |= {"masks": (tables, width), "table_factors": (tables, width)}
        expected |= {"table_words": (tables, rows * width), "table_rows": (tables, rows)}
        expected["table_starts"] = (tables, keys)
    return expected


def _shapes_of_sets(rows: int, shapes: dict[str, Any]) -> dict[str, Any]:
    """As `_shapes`, for an index by similarity."""
    (places,), (sizes,), (keys,) = shapes["offsets"], shapes["sizes"], shapes["order_keys"]
    buckets = [1 << max(1, shapes[name][0].bit_length() - 1) for name in ("starts", "rest_starts")]
    return {
        "offsets": (max(places, 1),), "set_of": (rows,), "members": (rows,),
        "member_starts": (places,), "firsts": (sizes + 1,),
        "order_keys": (1 << (keys - 1).bit_length(),), "order_ranks": (keys,),
        "sketches": (places - 1, min(max(1, shapes["sketches"][-1]), 4)),
        "starts": (buckets[0] + 1,), "rest_starts": (buckets[1] + 1,),
    }  # fmt: skip


def _ends(header: dict[str, Any], shapes: dict[str, Any]) -> dict[str, int]:
    """The last values of the arrays that begin at 0."""
    ends = {} if header["ids"] == "int" else {"ends": shapes["ids"][0]}
    if "beside" in shapes:
        ends["beside_ends"] = shapes["beside"][0]
    if "set_of" not in shapes:
        return ends
    return ends | {
        "offsets": shapes["features"][0], "member_starts": header["rows"],
        "firsts": shapes["offsets"][0] - 1, "starts": shapes["entries"][0],
        "rest_starts": shapes["rest_entries"][0],
    }  # fmt: skip
