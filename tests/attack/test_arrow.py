"""Arrow data whose offsets or indices lead elsewhere is refused before they are followed."""

from __future__ import annotations

import collections
import contextlib
import os
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from damage import REFUSED, RIGHT, WRONG, in_victim
from neardup.errors import NeardupError
from suite import ATTACKS, LONG

if TYPE_CHECKING:
    from pathlib import Path

SECRET = b"foreign memory"


class Strings:
    """Strings whose offsets become any at all after Arrow has looked at them."""

    def __init__(self, kind: Any, offsets: list[int]) -> None:
        width = np.int32 if kind in {pa.string(), pa.binary()} else np.int64
        self._spoilt = offsets
        self._offsets = np.linspace(0, 8, len(offsets)).astype(width)
        buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(b"abcdefgh")]
        self.array = pa.Array.from_buffers(kind, len(offsets) - 1, buffers)

    def spoil(self) -> None:
        self._offsets[:] = self._spoilt


class Indices:
    """Dictionary indices beyond the dictionary."""

    def __init__(self, *indices: int) -> None:
        self._spoilt = indices
        self._indices = np.zeros(len(indices), np.int32)
        words = pa.array(["a", "b"])
        self.array = pa.DictionaryArray.from_arrays(pa.array(self._indices), words)

    def spoil(self) -> None:
        self._indices[:] = self._spoilt


EVIL: list[Any] = [
    lambda: Strings(pa.string(), [0, 5, 2**31 - 5]),
    lambda: Strings(pa.string(), [0, 100_000, 8]),
    lambda: Strings(pa.string(), [-5, 4, 8]),
    lambda: Strings(pa.large_string(), [0, 6, 2, 8]),
    lambda: Strings(pa.large_string(), [0, 4, 2**62]),
    lambda: Strings(pa.large_binary(), [-(2**40), 4, 8]),
    lambda: Indices(0, 7, 1),
    lambda: Indices(0, -1),
]


@pytest.mark.parametrize("make", EVIL)
def test_arrays_of_callers_are_refused(make: Any) -> None:
    evil = make()
    array = evil.array
    chunks = pa.chunked_array([array])
    table = pa.table({"text": chunks, "id": chunks})
    evil.spoil()
    index = nd.Index(distance=1, recipe=nd.Recipe())
    for call in (
        lambda: nd.fingerprints(array),
        lambda: nd.fingerprints(chunks),
        lambda: nd.dedup(array),
        lambda: nd.dedup(table),
        lambda: nd.dedup(table, id="id"),
        lambda: index.add(array, ["x"] * len(array)),
        lambda: index.add(chunks, ["x"] * len(array)),
        lambda: index.query_batch(array),
    ):
        with pytest.raises(nd.UsageError, match="not valid Arrow data"):
            call()


@pytest.mark.parametrize("make", EVIL)
@pytest.mark.parametrize("stream", [True, False])
def test_arrow_files_are_refused_and_nothing_of_the_memory_is_written(
    make: Any, stream: bool, tmp_path: Path
) -> None:
    evil = make()
    batch = pa.RecordBatch.from_arrays([evil.array], ["text"])
    path = tmp_path / "in.arrow"
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(str(path), batch.schema) as writer:
        writer.write_batch(batch)
    before, after = spoilt_bytes(evil)
    data = path.read_bytes()
    assert before in data
    path.write_bytes(data.replace(before, after))
    code = in_victim(lambda: deduplicated(path, tmp_path, b""), tmp_path / "log")
    assert code == REFUSED, (tmp_path / "log").read_text()
    assert [x.name for x in tmp_path.iterdir() if x.name not in {"in.arrow", "log"}] == []


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_sound_data_of_every_kind_is_read(kind: Any, tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["a b", "c d"], kind), "tags": [[{"a": "x"}], None]})
    with pa.ipc.new_file(str(tmp_path / "in.arrow"), table.schema) as writer:
        writer.write_table(table)
    nd.dedup(tmp_path / "in.arrow", tmp_path / "out.arrow")
    assert pa.ipc.open_file(str(tmp_path / "out.arrow")).read_all().equals(table)


def test_what_is_not_utf8_is_still_a_bad_record_and_not_a_bad_file(tmp_path: Path) -> None:
    texts = pa.array([b"good one", b"\xff\xfe", b"good two"], pa.binary()).view(pa.string())
    with pa.ipc.new_file(str(tmp_path / "in.arrow"), pa.schema([("text", pa.string())])) as writer:
        writer.write_table(pa.table({"text": texts}))
    out, rejects = tmp_path / "out.arrow", tmp_path / "rejects.jsonl"
    nd.dedup(tmp_path / "in.arrow", out, on_error="skip", rejects=rejects)
    assert orjson.loads(rejects.read_bytes())["reason"] == "text is not UTF-8"
    assert pa.ipc.open_file(str(out)).read_all().num_rows == 2


def spoilt_bytes(evil: Any) -> tuple[bytes, bytes]:
    """The offsets or indices, as they were and as they shall be."""
    numbers = evil._offsets if isinstance(evil, Strings) else evil._indices  # noqa: SLF001
    before = numbers.tobytes()
    evil.spoil()
    return before, numbers.tobytes()


def deduplicated(path: Path, folder: Path, data: bytes) -> int:
    """Whether every text that comes out of a file is in its bytes."""
    out, rejects = folder / f"out{path.suffix}", folder / "rejects.jsonl"
    try:
        nd.dedup([str(path)], str(out), on_error="skip", rejects=str(rejects), workers=1)
    except NeardupError:
        return REFUSED
    if path.suffix == ".arrow":
        is_file = out.read_bytes()[:6] == b"ARROW1"
        with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(str(out)) as file:
            column = file.read_all()["text"]
    else:
        column = pq.read_table(out)["text"]
    texts = column.cast(pa.binary()).to_pylist()
    if data and path.suffix == ".arrow" and any(text not in data for text in texts if text):
        return WRONG
    return RIGHT


def sample(folder: Path, name: str) -> Path:
    texts = pa.array([f"text number {i} é" for i in range(40)])
    table = pa.table({"text": texts, "id": [f"i{i}" for i in range(40)]})
    if name == "dictionary.arrow":
        table = table.set_column(0, "text", texts.dictionary_encode())
    path = folder / name
    if name.endswith("parquet"):
        pq.write_table(table, path, compression="zstd", use_dictionary=name[0] == "d")
        return path
    codec = pa.ipc.IpcWriteOptions(compression="zstd" if name[0] == "c" else None)
    make = pa.ipc.new_stream if name[0] == "s" else pa.ipc.new_file
    with make(str(path), table.schema, options=codec) as writer:
        writer.write_table(table, max_chunksize=15)
    return path


@pytest.mark.timeout(4 * 3600)
@pytest.mark.filterwarnings("ignore::neardup.DoubtfulResultWarning")  # many bad records
@pytest.mark.parametrize(
    "name",
    [
        "file.arrow",
        "stream.arrow",
        "compressed.arrow",
        "dictionary.arrow",
        "plain.parquet",
        "dictionary.parquet",
    ],
)
def test_damaged_files_never_end_the_process(name: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32) if LONG else 1
    rng, path = random.Random(seed), sample(tmp_path, name)
    sound = path.read_bytes()
    assert deduplicated(path, tmp_path, b"" if name[0] in "cd" else sound) == RIGHT
    counts: collections.Counter[int] = collections.Counter()
    for _ in range(ATTACKS):
        data = bytearray(sound)
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at] ^= 1 << rng.randrange(8)
            else:
                width = rng.choice([1, 4, 8])
                data[at : at + width] = rng.choice([b"\xff", b"\x7f", b"\0"]) * width
        if rng.random() < 0.1:
            del data[rng.randrange(len(data)) :]
        path.write_bytes(data)
        plain = b"" if name[0] in "cd" else bytes(data)
        code = in_victim(lambda: deduplicated(path, tmp_path, plain), tmp_path / "log")  # noqa: B023
        counts[code] += 1
        assert code in {RIGHT, REFUSED}, f"{code}, {seed=}: {(tmp_path / 'log').read_text()}"
    assert counts[REFUSED] > 0


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::neardup.DoubtfulResultWarning")
def test_flipped_bits_of_a_parquet_footer_never_end_the_process(tmp_path: Path) -> None:
    table = pa.table({"text": [f"text {i}" for i in range(40)], "id": [str(i) for i in range(40)]})
    path = tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=30)
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    flips = [(at, bit) for at in range(begin, len(data)) for bit in range(8)]
    if not LONG:  # where another type of a column contradicts the sizes of its chunks
        flips = [(at, bit) for at in range(begin, begin + 60) for bit in (0, 3)]

    def read() -> int:
        for at, bit in flips:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            os.write(2, f"\nbit {bit} of {at}\n".encode())  # the last one of the log is at fault
            with contextlib.suppress(NeardupError):
                nd.dedup(str(path), str(tmp_path / "out.parquet"), on_error="skip", workers=1)
        return RIGHT

    assert in_victim(read, tmp_path / "log", 600) == RIGHT, (tmp_path / "log").read_text()[-2000:]
