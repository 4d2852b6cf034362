"""A sample of a long file is made of its own records, from wherever they are."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import ReadOptions, open_sources
from neardup.documents.files.stretches import whole_lines, whole_rows

if TYPE_CHECKING:
    from pathlib import Path

fields = st.text(st.sampled_from('ab,"\n '), max_size=12)


@given(st.lists(st.binary(max_size=9).filter(lambda x: b"\n" not in x)), st.data())
def test_whole_lines_are_lines_of_the_file(lines: list[bytes], data: st.DataObject) -> None:
    file = b"".join(line + b"\n" for line in lines)
    begin = data.draw(st.integers(0, len(file)))
    piece = file[begin : data.draw(st.integers(begin, len(file)))]
    found = whole_lines(piece)
    assert found in piece
    assert set(found.split(b"\n")) <= {*lines, b""}


@given(st.lists(st.tuples(fields, fields, fields), min_size=1), st.data())
def test_whole_rows_end_where_rows_end_and_have_all_columns(
    rows: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    file = written.getvalue().encode()
    begin = data.draw(st.integers(0, len(file)))
    piece = file[begin : data.draw(st.integers(begin, len(file)))]
    found = whole_rows(piece, ",", 3)
    assert found in piece
    read = csv.reader(io.StringIO(found.decode(), newline=""), strict=True)
    assert all(len(row) in (0, 3) for row in read)


def test_plain_files_can_be_read_at_any_place(tmp_path: Path) -> None:
    """Each place is one of whole records; a file that is compressed, and a stream, has none."""
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf8") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["name", "text"])
        rows.writerows([i, f'he said: "{i};\n{i}"'] for i in range(100_000))
    (source,) = open_sources([str(path)])
    next(source.batches(ReadOptions(id="name", batch_bytes=1000)))  # reads the header
    sample = source.spread(1000, 1 << 20)
    assert sample is not None
    names = []
    for batch in sample.batches(ReadOptions(id="name")):
        for name, text in zip(batch.ids.to_pylist(), batch.texts.to_pylist(), strict=True):
            assert text == f'he said: "{name};\n{name}"'
            names.append(int(name))
    places = sum(one + 1 != other for one, other in pairwise(names))
    assert 32 <= places < 64
    assert len(set(names)) == len(names) > 10_000
    assert min(names) < 5_000
    assert max(names) > 95_000
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(b"")
    (compressed,) = open_sources([str(packed)])
    assert compressed.spread(0, 1 << 20) is None
