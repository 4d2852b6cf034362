"""Document frequencies: in how many documents each feature is, learned, stored, merged, applied.

A table knows features by the XXH3 of their UTF-8, seed 0, whatever hash the recipe folds. Its file:
a line `neardup-idf 1`, a line with the checksum of all that follows, a line of JSON, then the keys
(uint64, sorted) and the document counts, or inverse frequencies in units of 2**-16 (int64), all
little-endian.
"""

from __future__ import annotations

import codecs
import functools
import hashlib
import json
import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from neardup.errors import DataError, FileError, RecipeError, UsageError
from neardup.features.choices import UNICODE_VERSION, Choices
from neardup.features.hashes import HASHES, hash_features
from neardup.runtime.storage.durable_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


__all__ = [
    "SPACE_FIELDS",
    "FrequencyTable",
    "feature_space",
    "jieba_name",
    "load_table",
    "summed",
    "table_of",
]

UNIT: Final = 1 << 16
MOST_IDF: Final = 1 << 20
MAGIC: Final = b"neardup-idf 1\n"
SPACE_FIELDS: Final = (
    "normalize", "casefold", "tokens", "ngram", "stopwords", "language", "fold_chinese",
    "dictionary", "ignore",
)  # fmt: skip

_JIEBA: Final = "jieba:"

_TABLES: Final[dict[str, FrequencyTable]] = {}


class FrequencyTable:
    """Document frequencies by feature; `neardup.DocumentFrequencies` adds learning them."""

    def __init__(
        self, keys: Any, values: Any, documents: int = 0, missed: int = 0, space: str | None = None
    ) -> None:
        """Take sorted uint64 keys and int64 values: counts, or units where `documents` is 0."""
        self._keys, self._values = keys, values
        self.documents, self.missed, self.space = documents, missed, space
        self._units, self._default = self._inverse()
        self._lock = threading.Lock()
        self._lookup: Any = None
        self.digest = hashlib.blake2b(self._payload(), digest_size=8).hexdigest()
        _TABLES[self.digest] = self

    def __len__(self) -> int:
        """Count the features."""
        return int(self._keys.size)

    @classmethod
    def from_jieba(cls, path: str) -> Self:
        """Read inverse frequencies in the format of jieba's idf.txt: a word, a space, a number.

        A feature that is not in it has the median of its values, as in jieba.

        Raises:
            FileError: If it cannot be read.
            DataError: For a line that is something else; it is named.
        """
        words: dict[str, int] = {}
        lines = _read(path).removeprefix(codecs.BOM_UTF8).split(b"\n")
        for number, line in enumerate(lines, 1):
            if line.strip():
                word, units = _parsed(line, f"{path}:{number}")
                words[word] = units
        if not words:
            raise DataError(f"{path}: no words; write `word number` on each line")
        keys = np.array(_keys(words), np.uint64)
        order = np.argsort(keys)
        return cls(keys[order], np.array(list(words.values()), np.int64)[order])

    @classmethod
    def load(cls, path: str) -> Self:
        """Read a table that `save` wrote.

        Raises:
            FileError: If it cannot be read.
            DataError: If it is not such a file, of another version, or damaged.
        """
        whole = _read(path)
        if not whole.startswith(MAGIC):
            raise DataError(
                f"{path}: not a table of document frequencies that this neardup can read"
            )
        digest, _, payload = whole[len(MAGIC) :].partition(b"\n")
        actual = hashlib.blake2b(payload, digest_size=8).hexdigest()
        if digest.decode("latin-1") != actual:
            raise DataError(f"{path}: damaged: its checksum is {actual}, not {digest!r}")
        header, _, arrays = payload.partition(b"\n")
        keys, values = np.split(np.frombuffer(arrays, "<u8"), 2)
        return cls(keys, values.view("<i8"), **json.loads(header))

    def save(self, path: str) -> None:
        """Write the table; it appears whole or not at all.

        Raises:
            FileError: If that fails.
        """
        write_whole(path, MAGIC + f"{self.digest}\n".encode() + self._payload())

    def merge(self, other: FrequencyTable) -> Self:
        """Add the counts of other documents; the order of merging does not matter.

        Raises:
            RecipeError: If the features were made in another way.
            UsageError: If one has values that were given, not counts, or is not a table.
        """
        if not isinstance(other, FrequencyTable):
            raise UsageError(f"cannot merge {other!r:.60}: pass another DocumentFrequencies")
        if not self.documents or not other.documents:
            raise UsageError("a table of given values has no counts to merge: learn both tables")
        if self.space != other.space:
            raise RecipeError(f"tables of features made by {self.space} and {other.space}")
        keys, counts = summed(
            np.concatenate([self._keys, other._keys]),
            np.concatenate([self._values, other._values]),
        )
        documents, missed = self.documents + other.documents, self.missed + other.missed
        return type(self)(keys, counts, documents, missed, self.space)

    def idf(self, feature: str) -> float:
        """Give the inverse document frequency of a feature, a multiple of 2**-16.

        ln((1 + documents) / (1 + count)) + 1 for a learned table; a feature that is not in it is
        in one document, the one that is asked about, and so has the highest value.
        """
        return self.units_of([feature])[0] / UNIT

    def units_of(self, features: Sequence[str], *, error: bool = False) -> list[int]:
        """Give the inverse document frequency of features in units of 2**-16.

        Raises:
            RecipeError: If `error` is set and one is not in the table.
        """
        keys = np.array(_keys(features), np.uint64)
        if not self._keys.size:
            places, present = np.zeros(keys.size, np.int64), np.zeros(keys.size, np.bool_)
        else:
            places = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
            present = self._keys[places] == keys
        if error and not present.all():
            feature = features[int(np.argmin(present))]
            raise RecipeError(
                f"{feature!r:.60} is not in the document frequencies {self.digest}: learn them from"
                " more texts, or let the recipe's missing be default"
            )
        if not self._keys.size:
            return [self._default] * keys.size
        units: list[int] = np.where(present, self._units[places], self._default).tolist()
        return units

    def kernel_table(self) -> tuple[Any, Any, int]:
        """The table of features for kernels, its sieve, and the units of an unknown feature."""
        with self._lock:
            if self._lookup is None:
                from neardup.kernels.features.lookup import hash_sieve, hash_table

                is_known = self._units != self._default
                keys = self._keys[is_known]
                self._lookup = hash_table(keys, self._units[is_known]), hash_sieve(keys)
        return *self._lookup, self._default

    def _inverse(self) -> tuple[Any, int]:
        if not self.documents:
            ordered = np.sort(self._values)
            return self._values, int(ordered[ordered.size // 2]) if ordered.size else UNIT
        counts, places = np.unique(self._values, return_inverse=True)
        units = np.array([self._units_of_count(count) for count in counts.tolist()], np.int64)
        return units[places], self._units_of_count(1)

    def _units_of_count(self, count: int) -> int:
        return max(1, _rounded(math.log((1 + self.documents) / (1 + count)) + 1.0))

    def _payload(self) -> bytes:
        fields = {"documents": self.documents, "missed": self.missed, "space": self.space}
        header = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        arrays = self._keys.astype("<u8").tobytes() + self._values.astype("<i8").tobytes()
        return b"\n".join([header, arrays])


def table_of(recipe: Choices) -> FrequencyTable:
    """Find the table that a recipe names.

    Raises:
        RecipeError: If this process has not loaded it, it counts features made in another way, or
            the jieba that is installed has another table.
    """
    if str(recipe.idf).startswith(_JIEBA):
        name = jieba_name()
        if name != recipe.idf:
            raise RecipeError(
                f"the recipe's idf is {recipe.idf}, the jieba that is installed has {name}: install"
                " the jieba of the recipe, or load its idf.txt and name that table by its digest"
            )
        return _jieba_table()
    table = _TABLES.get(str(recipe.idf))
    if table is None:
        raise RecipeError(
            f"idf is {recipe.idf!r}: load this table first with"
            " neardup.DocumentFrequencies.load(path), or pass --idf FILE"
        )
    if table.space not in (None, feature_space(recipe)):
        raise RecipeError(
            f"the table {recipe.idf} counts features made by {table.space}, and the recipe makes"
            f" {feature_space(recipe)}: learn one with this recipe"
        )
    return table


def jieba_name() -> str:
    """Name the table of the jieba that is installed as recipes do, by what it contains.

    Raises:
        UsageError: If jieba is not installed.
    """
    return _JIEBA + _jieba_table().digest


def load_table(path: str) -> FrequencyTable:
    """Read a table of either format.

    Raises:
        FileError, DataError: As `FrequencyTable.load` and `from_jieba`.
    """
    if _read(path, len(MAGIC)).startswith(MAGIC[:12]):
        return FrequencyTable.load(path)
    return FrequencyTable.from_jieba(path)


def feature_space(recipe: Choices) -> str:
    """The settings of a recipe that determine its features, as canonical JSON."""
    fields = {name: getattr(recipe, name) for name in SPACE_FIELDS}
    for later in ("dictionary", "ignore"):
        if fields[later] is None:
            del fields[later]  # tables older than the field have none
    return json.dumps(fields | {"unicode": UNICODE_VERSION}, sort_keys=True)


@functools.cache
def _jieba_table() -> FrequencyTable:
    from neardup.features.jieba_words import jieba_package

    folder = Path(jieba_package().analyse.__file__).parent
    return FrequencyTable.from_jieba(str(folder / "idf.txt"))


def _keys(features: Iterable[str]) -> list[int]:
    return hash_features(HASHES["xxh3"], [x.encode("utf-8", "replace") for x in features])


def summed(keys: Any, counts: Any) -> tuple[Any, Any]:
    """Sum the counts of equal keys; keys ascend then."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    if not keys.size:
        return keys, counts
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(counts, first)


def _rounded(value: float) -> int:
    return math.floor(value * UNIT + 0.5)


def _parsed(line: bytes, place: str) -> tuple[str, int]:
    parts = line.strip().split(b" ")
    try:
        word, value = parts[0].decode(), float(parts[-1])
    except ValueError:
        value = math.nan
    if len(parts) != 2 or not 0 < value <= MOST_IDF:
        text = line.decode("utf-8", "replace")
        raise DataError(f"{place}: {text!r:.60} is not a word, a space and a number above 0")
    return word, max(1, _rounded(value))


def _read(path: str, size: int = -1) -> bytes:
    try:
        with Path(path).open("rb") as file:
            whole: bytes = file.read(size)
            return whole
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
