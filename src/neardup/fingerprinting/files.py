"""Fingerprint files: Parquet with the columns `id` and `fingerprint`, and the recipe in the schema.

A fingerprint of up to 64 bits is a uint64, a wider one a fixed-size list of uint64, low word first;
null where a document has no tokens.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.errors import DataError, FileError, RecipeError
from neardup.fingerprinting.recipe import Recipe
from neardup.runtime.arrays import check_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FingerprintFile", "FingerprintReader", "fingerprint_table", "read_fingerprints"]

RECIPE_KEY: Final = b"neardup.recipe"
DIGEST_KEY: Final = b"neardup.digest"
BATCH_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FingerprintFile:
    """What a fingerprint file holds.

    Args:
        ids: Arrow large strings.
        values: uint64, shape (n, width), masked where there is no fingerprint.
        bits: Width of a fingerprint.
        recipe: How they were made; None where the file does not say.
    """

    ids: Any
    values: Any
    bits: int
    recipe: Recipe | None


def fingerprint_table(ids: Any, values: Any, recipe: Recipe) -> pa.Table:
    """Arrange ids and fingerprints, uint64 (n, width), as the table of a fingerprint file."""
    missing = np.ma.getmaskarray(values)[:, 0]
    codes = np.ascontiguousarray(np.ma.getdata(values))
    if recipe.words == 1:
        column = pa.array(codes[:, 0], mask=missing)
    else:
        flat = pa.array(codes.reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, recipe.words, mask=pa.array(missing))
    metadata = {RECIPE_KEY: recipe.to_json(), DIGEST_KEY: recipe.digest}
    return pa.table({"id": ids, "fingerprint": column}).replace_schema_metadata(metadata)


def read_fingerprints(path: str) -> FingerprintFile:
    """Read a fingerprint file.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not a fingerprint file, or its recipe does not match its digest.
        RecipeError: If its recipe is of another version.
    """
    with _opening(path):
        table = pq.read_table(path, page_checksum_verification=True)
        check_arrow(table)
    _check_columns(path, table.column_names)
    column = table["fingerprint"].combine_chunks()
    values = _values(path, column)
    recipe = _recipe(path, table.schema.metadata or {})
    ids = table["id"] if "id" in table.column_names else pa.array(np.arange(len(column)))
    bits = recipe.bits if recipe else 64 * values.shape[1]
    _check_width(path, values, bits)
    return FingerprintFile(ids.cast(pa.large_string()), values, bits, recipe)


class FingerprintReader:
    """Reads fingerprint files one after another, some rows at a time.

    Args:
        paths: The files; their rows are numbered through.

    Example:
        >>> reader = FingerprintReader(["news.parquet", "pages.parquet"])  # doctest: +SKIP
        >>> reader.rows, reader.bits  # doctest: +SKIP
        (21578, 64)
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Look at every file's schema.

        Raises:
            FileError: If one cannot be read.
            DataError: If one is not a fingerprint file.
            RecipeError: If they were made by different recipes or are of different widths.
        """
        self.paths = list(paths)
        self.rows = 0
        self.counts: list[int] = []
        first: tuple[Recipe | None, int] | None = None
        for path in self.paths:
            with _opening(path), pq.ParquetFile(path) as file:
                schema, count = file.schema_arrow, file.metadata.num_rows
            _check_columns(path, schema.names)
            recipe = _recipe(path, schema.metadata or {})
            kind = schema.field("fingerprint").type
            codes = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
            bits = recipe.bits if recipe else 64 * codes
            if first is None:
                first = recipe, bits
            elif (recipe, bits) != first:
                raise RecipeError(
                    f"{path} was made by recipe {_name(recipe)} of {bits} bits, {self.paths[0]} by"
                    f" {_name(first[0])} of {first[1]}: make them with one recipe"
                )
            self.counts.append(count)
        self.rows, self.bits = sum(self.counts), first[1] if first else 64

    def batches(self) -> Iterator[Any]:
        """The fingerprints: uint64 (rows, width), masked where there is none.

        Raises:
            FileError, DataError: As when a file is opened.
        """
        for path in self.paths:
            for batch in self._column(path, "fingerprint"):
                values = _values(path, batch)
                _check_width(path, values, self.bits)
                yield values

    def ids(self) -> Iterator[Any]:
        """The ids as Arrow large strings; where a file has none, the rows' numbers."""
        first = 0
        for path, count in zip(self.paths, self.counts, strict=True):
            with _opening(path), pq.ParquetFile(path) as file:
                named = "id" in file.schema_arrow.names
            if named:
                yield from (batch.cast(pa.large_string()) for batch in self._column(path, "id"))
            else:
                for at in range(0, count, BATCH_ROWS):
                    numbers = np.arange(first + at, first + min(at + BATCH_ROWS, count))
                    yield pa.array(numbers).cast(pa.large_string())
            first += count

    def _column(self, path: str, name: str) -> Iterator[pa.Array]:
        with _opening(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=[name]):
                check_arrow(batch)
                yield batch.column(0)


def _name(recipe: Recipe | None) -> str:
    return f"{recipe.digest[:12]}" if recipe else "unknown"


@contextmanager
def _opening(path: str) -> Iterator[None]:
    """Say what is wrong with a file that cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"cannot read {path}: no such file") from None
    except (FileError, DataError):
        raise
    except OSError as error:
        if error.errno is None:  # Arrow's own, of a damaged file
            raise _damaged(path, error) from None
        raise FileError(f"cannot read {path}: {error}") from None
    except UnicodeEncodeError:
        raise FileError(f"cannot read {path}: its name is not UTF-8; rename it") from None
    except (pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> DataError:
    if "magic bytes" in str(error):
        return DataError(
            f"{path}: not a Parquet file, so it has no fingerprints; make them with"
            f" `neardup fingerprint {path} -o FPS.parquet`"
        )
    return DataError(f"{path}: not a Parquet file: {str(error).splitlines()[0]}")


def _check_columns(path: str, names: Sequence[str]) -> None:
    if "fingerprint" not in names:
        raise DataError(
            f"{path}: no column 'fingerprint' among {list(names)}; make the file with"
            " `neardup fingerprint`"
        )


def _values(path: str, column: pa.Array) -> Any:
    kind = column.type
    if pa.types.is_uint64(kind) or pa.types.is_int64(kind):
        codes = column.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)[:, None]
    elif pa.types.is_fixed_size_list(kind) and pa.types.is_uint64(kind.value_type):
        flat = column.values.slice(column.offset * kind.list_size, len(column) * kind.list_size)
        codes = flat.fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
    else:
        raise DataError(
            f"{path}: fingerprints are {kind}; uint64 or a fixed-size list of it is read"
        )
    missing = np.asarray(column.is_null())
    if not missing.any():
        return codes
    return np.ma.MaskedArray(codes, np.repeat(missing[:, None], codes.shape[1], axis=1))


def _check_width(path: str, values: Any, bits: int) -> None:
    held = 64 * values.shape[1]
    used = np.ma.getdata(values)[:, -1]
    if held - bits not in range(64) or (bits % 64 and (used >> np.uint64(bits % 64)).any()):
        raise DataError(
            f"{path}: its recipe says {bits} bits, but its fingerprints ({held} bits) have others;"
            " make the file again with `neardup fingerprint`"
        )


def _recipe(path: str, metadata: dict[bytes, bytes]) -> Recipe | None:
    if RECIPE_KEY not in metadata:
        return None
    recipe = Recipe.from_json(metadata[RECIPE_KEY])
    stored = metadata.get(DIGEST_KEY, b"").decode(errors="replace")
    if stored != recipe.digest:
        raise DataError(
            f"{path}: its recipe has digest {recipe.digest}, but the file says {stored}"
        )
    return recipe
