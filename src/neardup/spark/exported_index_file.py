"""The Parquet file of an index's documents: its columns, metadata and checksums.

The file has `place` (long, from the first that was added), `id`, `codes` and `features` (uint64s as
bytes, little-endian; features are null where the index keeps none). Its metadata have the recipe,
the similarity and the measure of an index by similarity, and behind the last row how many there
were and checksums of all that: Parquet has none of its footer.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.errors import DataError, FileError
from neardup.fingerprinting.recipe import Recipe
from neardup.runtime.arrays import check_arrow
from neardup.runtime.storage.checksums import ColumnSum, checksum
from neardup.runtime.storage.open_parquet import open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "MEASURE",
    "SCHEMA",
    "SIMILARITY",
    "ReferenceWriter",
    "check_reference",
    "metadata_of",
    "reference_batches",
]

SCHEMA: Final = pa.schema(
    [("place", pa.int64()), ("id", pa.string()), ("codes", pa.binary()), ("features", pa.binary())]
)
RECIPE: Final = b"neardup:recipe"
BITS: Final = b"neardup:bits"
SIMILARITY: Final = b"neardup:similarity"
MEASURE: Final = b"neardup:measure"
SEAL: Final = b"neardup:checksums"
WORD_BYTES: Final = 8


class ReferenceWriter:
    """A writer of files of exported documents.

    Args:
        file: Open for writing, in binary.
        recipe: Of the index.
        more: Of SIMILARITY and MEASURE, for an index by similarity.

    Attributes:
        rows: How many were written.
    """

    def __init__(self, file: Any, recipe: Recipe, more: Mapping[bytes, bytes]) -> None:
        """Write the header."""
        self._description = {RECIPE: recipe.to_json().encode(), BITS: b"%d" % recipe.bits, **more}
        self._schema, self._sums = SCHEMA.with_metadata(self._description), _Sums()
        self._writer = pq.ParquetWriter(
            pa.PythonFile(file, "w"), self._schema, write_page_checksum=True
        )
        self.rows = 0

    def write(self, ids: pa.Array, codes: pa.Array, features: pa.Array) -> None:
        """Write rows: ids as strings, and binary cells of uint64 values."""
        places = pa.array(np.arange(self.rows, self.rows + len(ids)))
        columns = [places, ids, codes, features]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._sums.add(batch)
        self._writer.write_batch(batch)
        self.rows += len(batch)

    def close(self) -> None:
        """Write the checksums and the footer."""
        seal = {"told": _sum_of(self._description), **self._sums.as_dict()}
        self._writer.add_key_value_metadata({SEAL.decode(): json.dumps(seal)})
        self._writer.close()

    def abandon(self) -> None:
        """Stop writing; the file is going to be removed."""
        self._writer.is_open = False


class _Sums:
    """Checksums of consecutive rows of SCHEMA."""

    def __init__(self) -> None:
        self._columns = {name: ColumnSum() for name in SCHEMA.names[1:]}

    @property
    def rows(self) -> int:
        return self._columns["id"].rows

    def add(self, batch: pa.RecordBatch) -> None:
        for name, column_sum in self._columns.items():
            column = batch.column(name)
            wide = pa.large_string() if name == "id" else pa.large_binary()
            column_sum.add_texts(column.cast(wide))

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            **{name: str(column_sum) for name, column_sum in self._columns.items()},
        }


def metadata_of(path: str) -> tuple[Recipe, dict[bytes, bytes]]:
    """The recipe of an exported index, and neardup's metadata in its file.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not such a file, or damaged.
        RecipeError: If its recipe is of another version.
    """
    with _opening(path):
        metadata = dict(pq.read_metadata(path).metadata or {})
    if RECIPE not in metadata:
        raise DataError(f"{path} was not written by export_index: it names no recipe")
    seal = _seal_of(path, metadata)
    settings = {
        name: metadata[name] for name in (RECIPE, BITS, SIMILARITY, MEASURE) if name in metadata
    }
    if seal is not None and seal["told"] != _sum_of(settings):
        raise _damaged(path, "its metadata have another checksum")
    return Recipe.from_json(metadata[RECIPE]), settings


def reference_batches(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of an exported index's file, of SCHEMA, in order.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is damaged: with the first row that says so, or after the last one.
        RecipeError: As `metadata_of`.
    """
    recipe, _ = metadata_of(path)
    sums = _Sums()
    with _opening(path), open_parquet(path) as file:
        seal = _seal_of(path, file.metadata.metadata)
        for batch in file.iter_batches(columns=SCHEMA.names):
            check_arrow(batch)
            rows = batch.select(SCHEMA.names).cast(SCHEMA)
            fault = _fault(rows, recipe, sums.rows)
            if fault:
                raise _damaged(path, fault)
            sums.add(rows)
            yield rows
    if seal is not None and seal != {"told": seal["told"], **sums.as_dict()}:
        raise _damaged(path, "its rows are not those that were written")


def check_reference(path: str) -> None:
    """Read an exported index's file to its end; raises as `reference_batches`."""
    for _ in reference_batches(path):
        pass


def _fault(batch: pa.RecordBatch, recipe: Recipe, first: int) -> str:
    """The fault of rows, the first of which has this place; empty without a fault."""
    places = batch.column("place")
    if not places.equals(pa.array(np.arange(first, first + len(batch)))):
        return f"the places of the rows from {first:,} on are wrong"
    if batch.column("id").null_count or batch.column("codes").null_count:
        return f"a row from {first:,} on has no id, or no fingerprint"
    lengths = _cell_bytes(batch.column("codes"))
    if (lengths != WORD_BYTES * recipe.words).any():
        return f"a row from {first:,} on has no fingerprint of {recipe.bits} bits"
    if (_cell_bytes(batch.column("features")) % WORD_BYTES).any():
        return f"a row from {first:,} on has incomplete features"
    return ""


def _cell_bytes(column: pa.Array) -> Any:
    cells = column.cast(pa.large_binary())
    ends = np.frombuffer(cells.buffers()[1], np.int64)[cells.offset : cells.offset + len(cells) + 1]
    return np.diff(ends)


def _seal_of(path: str, metadata: dict[bytes, bytes]) -> dict[str, Any] | None:
    """The checksums in a file's metadata; None for a file of an earlier version."""
    if SEAL not in metadata:
        return None
    try:
        seal = json.loads(metadata[SEAL])
        if isinstance(seal["told"], str):
            return dict(seal)
    except (ValueError, TypeError, KeyError):
        pass
    raise _damaged(path, "its checksums cannot be read")


def _sum_of(metadata: Mapping[bytes, bytes]) -> str:
    return checksum(repr(sorted(metadata.items())).encode()).hex()


def _damaged(path: str, why: str) -> DataError:
    return DataError(f"{path} is damaged ({why}): write it again with export_index")


@contextmanager
def _opening(path: str) -> Iterator[None]:
    """A context that turns errors of reading a file into errors that name it."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        if error.errno is None:  # Arrow's own, of a damaged file
            raise _damaged(path, str(error).splitlines()[0]) from None
        raise FileError(f"cannot read {path}: {error}; name a file of export_index") from None
    except (pa.ArrowException, OverflowError, UnicodeDecodeError, KeyError) as error:
        if "magic bytes" in str(error):
            raise DataError(f"{path} is not a Parquet file: {error}") from None
        raise _damaged(path, str(error).splitlines()[0]) from None
