"""Fingerprint files: Parquet with the columns `id` and `fingerprint`, and the recipe in the schema.

A fingerprint of up to 64 bits is a uint64, a wider one a fixed-size list of uint64, low word first;
null where a document has no tokens.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.errors import DataError, FileError, RecipeError, UsageError
from neardup.fingerprinting.recipe import Recipe
from neardup.runtime.arrays import check_arrow
from neardup.runtime.storage.checksums import ColumnSum
from neardup.runtime.storage.open_parquet import open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "FORMS",
    "FingerprintFile",
    "FingerprintReader",
    "Sealing",
    "check_form",
    "fingerprint_table",
    "read_fingerprints",
    "text_table",
]

RECIPE_KEY: Final = b"neardup.recipe"
DIGEST_KEY: Final = b"neardup.digest"
SEAL_KEY: Final = b"neardup.checksums"
"""In the file's metadata, not the schema's: rows, digest and a `ColumnSum` of each column."""
BATCH_ROWS: Final = 1 << 20
FORMS: Final = ("hex", "signed")
"""Of fingerprints in CSV and JSON lines."""
HEX_DIGITS: Final = 16
"""Of a word."""


@dataclass(frozen=True, slots=True)
class FingerprintFile:
    """The content of a fingerprint file.

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


def text_table(ids: Any, values: Any, recipe: Recipe, form: str) -> pa.Table:
    """As `fingerprint_table`, with fingerprints as databases and scripts read them from text.

    Args:
        ids: Of the documents.
        values: uint64 (n, width), masked where a document has no tokens.
        recipe: Of the fingerprints.
        form: "hex", as many digits as the bits take, the highest first; or "signed", a whole number
            of 64 bits in two's complement, as SQL's bigint.
    """
    missing = np.ma.getmaskarray(values)[:, 0]
    codes = np.ascontiguousarray(np.ma.getdata(values))
    if form == "signed":
        column = pa.array(codes[:, 0].view(np.int64), mask=missing)
    else:
        whole = codes[:, ::-1].astype(">u8").tobytes().hex()
        step, digits = HEX_DIGITS * recipe.words, -(-recipe.bits // 4)
        ends = range(step, len(whole) + 1, step)
        column = pa.array([whole[end - digits : end] for end in ends], pa.string(), mask=missing)
    return pa.table({"id": ids, "fingerprint": column})


def check_form(form: str, recipe: Recipe) -> None:
    """Refuse a form that the fingerprints of a recipe cannot have.

    Raises:
        UsageError: For an unknown one, or numbers of more than 64 bits.
    """
    if form not in FORMS:
        raise UsageError(f"form is {form!r}: use {' or '.join(FORMS)}")
    if form == "signed" and recipe.words > 1:
        raise UsageError(f"signed numbers have 64 bits, the recipe has {recipe.bits}: use hex")


class Sealing:
    """Checksums of the rows of a fingerprint file while it is written; nothing else covers its end.

    Args:
        recipe: That of the fingerprints.
    """

    def __init__(self, recipe: Recipe) -> None:
        """Begin with no rows."""
        self._digest, self._sums = recipe.digest, _no_sums()

    def passing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, of the columns of `fingerprint_table`."""
        for batch in batches:
            self._sums["id"].add_texts(batch.column("id"))
            self._sums["fingerprint"].add_codes(_values("", batch.column("fingerprint")))
            yield batch

    def metadata(self) -> dict[str, str]:
        """The metadata to add to the file after the last batch."""
        sums = {name: str(column_sum) for name, column_sum in self._sums.items()}
        facts = {"rows": self._sums["id"].rows, "digest": self._digest, **sums}
        return {SEAL_KEY.decode(): json.dumps(facts)}


def _no_sums() -> dict[str, ColumnSum]:
    return {"id": ColumnSum(), "fingerprint": ColumnSum()}


def read_fingerprints(path: str) -> FingerprintFile:
    """Read a fingerprint file.

    Raises:
        FileError: If it cannot be read.
        DataError: If it is not a fingerprint file, is damaged, or its recipe does not match its
            digest.
        RecipeError: If its recipe is of another version.
    """
    reader = FingerprintReader([path])
    none = np.empty((0, -(-reader.bits // 64)), np.uint64)
    parts = [none, *reader.batches()]
    merge: Any = np.ma.concatenate if any(map(np.ma.isMaskedArray, parts)) else np.concatenate
    ids = pa.chunked_array(list(reader.ids()), pa.large_string())
    return FingerprintFile(ids, merge(parts), reader.bits, reader.recipe)


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
        self.counts: list[int] = []
        self._seals: list[dict[str, Any] | None] = []
        first: tuple[Recipe | None, int] | None = None
        for path in self.paths:
            with _opening(path), pq.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                facts = metadata.metadata or {}
            _check_columns(path, schema.names)
            recipe = _recipe(path, schema.metadata or {})
            seal = _seal(path, facts, recipe, metadata.num_rows, schema.names)
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
            self.counts.append(metadata.num_rows)
            self._seals.append(seal)
        self.rows = sum(self.counts)
        self.recipe, self.bits = first or (None, 64)

    def batches(self) -> Iterator[Any]:
        """The fingerprints: uint64 (rows, width), masked where there is none.

        Raises:
            FileError, DataError: As when a file is opened; after the last row of a file, if they
                were not those that were written.
        """
        for path, seal in zip(self.paths, self._seals, strict=True):
            column_sum = ColumnSum()
            for batch in _column(path, "fingerprint"):
                values = _values(path, batch)
                _check_width(path, values, self.bits)
                if seal:
                    column_sum.add_codes(values)
                yield values
            _check_sum(path, "fingerprint", column_sum, seal)

    def ids(self) -> Iterator[Any]:
        """The ids as Arrow large strings; where a file has none, the rows' numbers.

        Raises:
            FileError, DataError: As `batches`.
        """
        first = 0
        for path, count, seal in zip(self.paths, self.counts, self._seals, strict=True):
            with _opening(path), pq.ParquetFile(path) as file:
                named = "id" in file.schema_arrow.names
            column_sum = ColumnSum()
            for batch in _column(path, "id") if named else ():
                ids = _texts(path, batch)
                if seal:
                    column_sum.add_texts(ids)
                yield ids
            for at in range(0, 0 if named else count, BATCH_ROWS):
                numbers = np.arange(first + at, first + min(at + BATCH_ROWS, count))
                yield pa.array(numbers).cast(pa.large_string())
            _check_sum(path, "id", column_sum, seal)
            first += count


def _column(path: str, name: str) -> Iterator[pa.Array]:
    with _opening(path), open_parquet(path) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=[name]):
            check_arrow(batch)
            yield batch.column(0)


def _texts(path: str, column: pa.Array) -> pa.Array:
    with _opening(path):
        return column.cast(pa.large_string())


def _name(recipe: Recipe | None) -> str:
    return f"{recipe.digest[:12]}" if recipe else "unknown"


@contextmanager
def _opening(path: str) -> Iterator[None]:
    """A context that turns errors of reading a file into errors that name it."""
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
            f" `neardup fingerprint {path} -o FPS.parquet`, or write those that you have to Parquet"
            " in a column 'fingerprint'"
        )
    return DataError(f"{path}: not a Parquet file: {str(error).splitlines()[0]}")


def _check_columns(path: str, names: Sequence[str]) -> None:
    if "fingerprint" not in names:
        raise DataError(
            f"{path}: no column 'fingerprint' among {list(names)}; give the column that has them"
            " this name, or make the file with `neardup fingerprint`"
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
    stored = 64 * values.shape[1]
    used = np.ma.getdata(values)[:, -1]
    if stored - bits not in range(64) or (bits % 64 and (used >> np.uint64(bits % 64)).any()):
        raise DataError(
            f"{path}: its recipe says {bits} bits, but its fingerprints ({stored} bits) differ;"
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


def _seal(
    path: str, facts: dict[bytes, bytes], recipe: Recipe | None, rows: int, names: Sequence[str]
) -> dict[str, Any] | None:
    """The checksums in a file's metadata; None in one of before, or from elsewhere."""
    if SEAL_KEY not in facts:
        return None
    try:
        seal = json.loads(facts[SEAL_KEY])
        same = seal["rows"] == rows and recipe is not None and seal["digest"] == recipe.digest
        if same and {"id", "fingerprint"} <= set(names) & set(seal):
            return dict(seal)
    except (ValueError, TypeError, KeyError):
        pass
    raise _unsealed(path, "footer")


def _check_sum(path: str, name: str, column_sum: ColumnSum, seal: dict[str, Any] | None) -> None:
    if seal is not None and str(column_sum) != seal[name]:
        raise _unsealed(path, f"column {name!r}")


def _unsealed(path: str, what: str) -> DataError:
    return DataError(
        f"{path} is damaged (its {what} does not agree with its checksums): restore it from a"
        " copy, or make it again with `neardup fingerprint`"
    )
