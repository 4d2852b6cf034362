"""Fill an index from files, and query it for files: documents, or fingerprint files."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.documents import Rejects, rejects_doubt, write_outputs, write_table
from neardup.documents.record_addresses import Addresses
from neardup.errors import DataError, RecipeError, UsageError
from neardup.fingerprinting.fingerprint_files import FingerprintFile, read_fingerprints
from neardup.index.hits import OTHER
from neardup.pipeline.index_questions import SIMILAR_HITS, Reach, ask_texts, check_by, check_reach
from neardup.pipeline.run.against import read_as
from neardup.pipeline.run.read_documents import open_inputs
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.run_outputs import Outputs, check_outputs, messages, output_set
from neardup.pipeline.run.summary import IndexSummary, QuerySummary
from neardup.pipeline.run.transaction import ids_of_kind, made_id_error
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.index import Answer, Prepared, Stored
    from neardup.index.base_index import BaseIndex
    from neardup.index.durable.durable_index import DurableIndex
    from neardup.index.hits import State
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Flags, Rows

__all__ = [
    "HITS", "PASSED", "IfNew", "Reach", "add_files", "ask_files", "offered",
]  # fmt: skip

ROWS_A_COMMIT: Final = 1 << 17
PASSED: Final = frozenset({"new", "replaced", "empty"})
"""States of documents that are written out; a stored one was, before its commit."""
_MASK64: Final = (1 << 64) - 1
_SIGNED_BITS: Final = 64
"""The width of fingerprints that databases store as signed numbers."""
HITS: Final = pa.schema(
    [("query", pa.large_string()), ("id", pa.large_string()), ("distance", pa.int16())]
)


@dataclass(frozen=True, slots=True)
class IfNew:
    """Settings for storing only the new documents of an input.

    Args:
        stored: What happens to an id that is stored with other content, as in `add_new`.
        output: For the records of new documents, like the kept ones of `dedup`.
    """

    stored: Stored = "replace"
    output: str | None = None


def add_files(
    index: DurableIndex,
    paths: Sequence[str],
    read: ReadOptions,
    *,
    if_new: IfNew | None = None,
    rejects_path: str | None = None,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
    foreign: bool = False,
) -> IndexSummary:
    """Store the documents of files, or the fingerprints of fingerprint files.

    It commits every ROWS_A_COMMIT documents. After a kill or an error the same call can be made
    again, since a stored document is replaced by itself (with `if_new` it stays). With an output
    all are committed at once, after it has its name: after a kill in between they are written
    again, and none is missing.

    Args:
        index: The index, which needs a recipe for documents.
        paths: Inputs, as for `open_sources`, or fingerprint files.
        read: Which fields to read, and what to do with bad records.
        if_new: Leave out documents near a stored one.
        rejects_path: Where bad records go if they are skipped.
        progress: Shows the progress.
        format_name: Format of all inputs; by default their extensions decide.
        foreign: Accept fingerprints of an unknown recipe as those of the index's.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
        RecipeError: If a fingerprint file's recipe is not the index's.
        UsageError: If an id that neardup makes itself is stored with other content.
        DataError: If an id is, and `if_new.stored` is "error".
    """
    watch = Stopwatch(progress or Quiet())
    output = if_new.output if if_new else None
    states, waiting = Counter[str](), 0
    passed = list[bool]()
    before = len(index)
    with ExitStack() as stack:
        inputs = _Inputs(stack, index, paths, read, rejects_path, format_name)
        inputs.take_numbers(index.store, foreign=foreign)
        if output is not None:
            inputs.check_output(output)
        inputs.begin(watch, "add")
        for part in inputs.batches(progress or Quiet()):
            offer = if_new.stored if if_new else None
            counts = _add_batch(index, part, offer, has_ids=inputs.has_ids)
            states.update(counts)
            if output is not None:
                passed += [state in PASSED for state in counts]
            waiting += len(counts)
            if output is None and waiting >= ROWS_A_COMMIT:
                index.commit()
                waiting = 0
        if output is not None:
            inputs.begin(watch, "write")
            inputs.write(np.array(passed, np.bool_), output, progress or Quiet())
        rejected = inputs.finish(states.total())
        index.commit()
        notes, warnings = inputs.messages()
    count, stored = len(index), states["new"] + states["replaced"]
    return IndexSummary(
        states.total() + rejected, stored, stored - (count - before), states["stored"],
        states["seen"], states["empty"], rejected, count, watch.stop(), notes, warnings,
    )  # fmt: skip


def ask_files(
    index: BaseIndex,
    paths: Sequence[str],
    output: str,
    read: ReadOptions,
    *,
    reach: Reach | None = None,
    rejects_path: str | None = None,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
) -> QuerySummary:
    """Write the stored documents near each document of files: HITS or SIMILAR_HITS.

    Args:
        index: The index.
        paths: Inputs, as for `add_files`.
        output: A table file.
        read: Which fields to read, and what to do with bad records.
        reach: The reach, and the most hits of a document.
        rejects_path: Where bad records go if they are skipped.
        progress: Shows the progress.
        format_name: Format of all inputs; by default their extensions decide.

    Raises:
        UsageError, DataError, FileError, RecipeError: As `add_files`.
    """
    reporter, within = progress or Quiet(), reach or Reach()
    check_reach(index, within)
    watch = Stopwatch(reporter)
    counts = dict.fromkeys(("queries", "empty", "matched", "hits", "cut", "rejected"), 0)
    with ExitStack() as stack:
        inputs = _Inputs(stack, index, paths, read, rejects_path, format_name)
        inputs.begin(watch, "query")

        def similar(index: BaseIndex) -> Iterator[pa.RecordBatch]:
            for ids, values, _ in inputs.batches(reporter):
                yield from ask_texts(index, ids, values, within, counts).to_batches()

        def near(index: BaseIndex) -> Iterator[pa.RecordBatch]:
            seen = stack.enter_context(index.snapshot())
            for ids, values, _ in inputs.batches(reporter):
                codes = values if isinstance(values, np.ndarray) else index.fingerprints_of(values)
                if within.nearest is None:
                    hits = seen.query_batch(codes, within.distance, within.limit)
                    counts["cut"] += int(hits.schema.metadata[b"cut"])
                else:
                    check_by(index, within.by)
                    hits = seen.nearest_batch(codes, within.nearest)
                rows = hits["row"].to_numpy()
                counts["queries"] += len(ids)
                counts["empty"] += _count_missing(codes)
                counts["matched"] += len(np.unique(rows))
                counts["hits"] += len(rows)
                named = ids.take(pa.array(rows)).cast(pa.large_string())
                columns = [named, hits["id"].cast(pa.large_string()), hits["distance"]]
                yield from pa.table(columns, schema=HITS).to_batches()

        safe = within.csv_safe
        if index.by == "similarity":
            write_table(inputs.written, output, SIMILAR_HITS, similar(index), csv_safe=safe)
        else:
            write_table(inputs.written, output, HITS, near(index), csv_safe=safe)
        counts["rejected"] = inputs.finish(counts["queries"])
        notes, warnings = inputs.messages()
    return QuerySummary(
        **counts, seconds=watch.stop(), output=output, notes=notes, warnings=warnings
    )


class _Part(NamedTuple):
    """Some documents of an input.

    Args:
        ids: Arrow array.
        values: Arrow texts, or uint64 (n, width).
        place: The file and line, or row, of each document.
    """

    ids: Any
    values: Any
    place: Callable[[int], str]


class _Inputs:
    """Batches of ids and of texts or fingerprints, from documents or fingerprint files."""

    def __init__(
        self,
        stack: ExitStack,
        index: BaseIndex,
        paths: Sequence[str],
        read: ReadOptions,
        rejects_path: str | None,
        format_name: InputFormat | str | None,
    ) -> None:
        self._index, self._read = index, read_as(index.extract, read)
        self._bits = 0 if index.by == "similarity" else index.bits
        stored = [path for path in paths if _is_fingerprint_file(path)]
        if stored and len(stored) < len(paths):
            raise UsageError(f"{stored[0]} is a fingerprint file, others are documents: not both")
        self._stored = stored
        self.has_ids = read.id is not None
        """Whether the ids are the user's, not file:row."""
        self._foreign: bool | None = None
        """Whether fingerprints of an unknown recipe are stored; None where none are."""
        if stored and index.by == "similarity":
            raise UsageError(
                f"{stored[0]} has fingerprints, and the index is by similarity of features: give"
                " the documents themselves"
            )
        self._sources = [] if stored else open_inputs(stack, paths, Limits(), format_name)
        self.written = stack.enter_context(output_set(self._sources, Limits(), others=stored))
        self._rejects = Rejects(rejects_path, self.written)
        self._doubt: str | None = None
        self._counts = [0] * len(self._sources)

    def begin(self, watch: Stopwatch, step: str) -> None:
        """Begin the step that reads them; its length is known unless an input's is not."""
        sizes = [source.nbytes for source in self._sources]
        is_known = bool(sizes) and None not in sizes
        watch.begin(step, sum(size or 0 for size in sizes) if is_known else None)

    def messages(self) -> tuple[list[str], list[str]]:
        """Notes and warnings about what was read, a line each."""
        notes, warnings = messages(self._sources, self.written)
        return notes, [*warnings, *filter(None, [self._doubt])]

    def batches(self, progress: Progress) -> Iterator[_Part]:
        """All documents, in batches."""
        if not self._stored and not self._read.numbers and self._index.recipe is None:
            raise UsageError(
                "the index has no recipe, so it takes fingerprints only: files that `neardup"
                " fingerprint` made, or a field of numbers with --fingerprint-field"
            )
        for path in self._stored:
            fingerprint_file = read_fingerprints(path)
            self._check_recipe(path, fingerprint_file.recipe, fingerprint_file.bits)
            self.has_ids = "id" in pq.read_schema(path).names
            rows = np.arange(1, len(fingerprint_file.ids) + 1)
            ids = _stored_ids(path, fingerprint_file) if self.has_ids else _named(path, rows)
            for first in range(0, len(ids), ROWS_A_COMMIT):
                part = slice(first, first + ROWS_A_COMMIT)
                yield _Part(
                    ids[part], fingerprint_file.values[part], partial(_place, path, rows[part])
                )
        column = NumberColumn(self._bits)
        for number, source in enumerate(self._sources):
            for batch in source.batches(self._read, self._rejects):
                progress.advance(batch.nbytes)
                self._counts[number] += len(batch.rows)
                names = _named(source.name, batch.rows, batch.ids)
                places = partial(_place, source.name, batch.rows)
                if self._read.numbers:
                    yield _Part(names, column.codes(batch.texts, names), places)
                else:
                    _check_texts(source.name, batch.texts)
                    yield _Part(names, batch.texts, places)

    def check_output(self, output: str) -> None:
        """Refuse, before reading, an output that cannot be written."""
        if self._stored:
            raise UsageError(
                f"{self._stored[0]} is a fingerprint file, which has no documents to write: leave"
                " --output out"
            )
        check_outputs(self._sources, Outputs(output), self.written)

    def write(self, passed: Flags, output: str, progress: Progress) -> None:
        """Write the records of passed documents."""
        masks = np.split(passed, np.cumsum(self._counts)[:-1])
        write_outputs(self._sources, masks, output, self.written, progress.advance, workers=None)

    def take_numbers(self, kept: str, *, foreign: bool) -> None:
        """Take fingerprints to store; refuse them for an index that stores more than these."""
        self._foreign, is_text = foreign, self._read.numbers
        if foreign and not is_text and not self._stored:
            raise UsageError("--foreign is for fingerprints, and these are documents: leave it out")
        if is_text and self._stored:
            raise UsageError(
                f"{self._stored[0]} is a fingerprint file: leave --fingerprint-field out"
            )
        if kept != "none" and (self._stored or is_text):
            name = self._stored[0] if self._stored else "a field of fingerprints"
            raise UsageError(
                f"{name} has no texts, and the index keeps {kept}: add the documents themselves"
            )
        if is_text:
            self._check_foreign("--fingerprint-field")

    def finish(self, accepted: int) -> int:
        """Publish the outputs, unless no record was accepted; returns the number rejected."""
        self._doubt = rejects_doubt(accepted, self._rejects.count)
        self.written.commit()
        return self._rejects.count

    def _check_recipe(self, path: str, recipe: Any, bits: int) -> None:
        mine = self._index.recipe
        if mine is not None and recipe is not None and recipe.digest != mine.digest:
            raise RecipeError(
                f"{path}: its recipe is {recipe.digest}, the index's is {mine.digest}:"
                " fingerprints of two recipes cannot be compared"
            )
        if bits != self._bits:
            raise UsageError(f"{path} has fingerprints of {bits} bits, not {self._bits}")
        if recipe is None and self._foreign is not None:
            self._check_foreign(path)

    def _check_foreign(self, name: str) -> None:
        recipe = self._index.recipe
        if recipe is not None and not self._foreign:
            raise RecipeError(
                f"{name}: nothing says that these fingerprints are of the index's recipe,"
                f" {recipe.digest}: if they are, pass --foreign; else make an index with"
                " --no-recipe"
            )


class NumberColumn:
    """A column of whole numbers as texts, read as fingerprints.

    It is hexadecimal, without 0x, if the first batch with numbers has one of full width with a
    letter: then all have that width. Else its numbers are decimal, of 64 bits signed ones too. In
    either form a number may have 0x.

    Args:
        bits: Of the fingerprints.
    """

    def __init__(self, bits: int) -> None:
        """Begin, before the first batch."""
        self._bits = bits
        self._hexadecimal = re.compile(rf"[0-9a-fA-F]{{{-(-bits // 4)}}}")
        self._base: int | None = None

    def codes(self, texts: Any, names: Any) -> Any:
        """Fingerprints of a batch.

        Args:
            texts: Arrow array of strings.
            names: Arrow array: the name of each in errors.

        Returns:
            uint64 (n, width), masked where a text is empty.

        Raises:
            DataError: If one is not a number of the column's width and form.
        """
        width = -(-self._bits // 64)
        codes = np.zeros((len(texts), width), np.uint64)
        empty = np.zeros((len(texts), width), np.bool_)
        numbers = [text.strip() for text in texts.to_pylist()]
        if self._base is None and any(numbers):
            is_hexadecimal = any(
                not x.isdigit() and self._hexadecimal.fullmatch(x) for x in numbers
            )
            self._base = 16 if is_hexadecimal else 10
        for row, text in enumerate(numbers):
            if not text:
                empty[row] = True
                continue
            number = self._number(text)
            if number is None:
                raise DataError(
                    f"{names[row].as_py()}: the fingerprint is {text!r:.40}: {self._use()}"
                )
            codes[row] = [number >> 64 * w & _MASK64 for w in range(width)]
        return np.ma.MaskedArray(codes, empty)

    def _number(self, text: str) -> int | None:
        if self._base == 16 and not text.startswith(("0x", "0X")):
            return int(text, 16) if self._hexadecimal.fullmatch(text) else None
        try:
            number = int(text, 0)
        except ValueError:
            return None
        if number < 0 and self._bits == _SIGNED_BITS:
            number += 1 << self._bits
        return number if 0 <= number < 1 << self._bits else None

    def _use(self) -> str:
        digits = -(-self._bits // 4)
        if self._base == 16:
            return f"others of this column have {digits} hexadecimal digits: use as many"
        return (
            f"use a whole number of {self._bits} bits, such as 123 or 0x7b; without 0x each"
            f" hexadecimal number of the column needs {digits} digits"
        )


def _check_texts(name: str, texts: Any) -> None:
    """Refuse a column of fingerprints: their digits are not text."""
    nonempty = pc.filter(texts, pc.greater(pc.utf8_length(texts), 0))
    long = pc.match_substring_regex(nonempty, r"^\s*-?\d{15,}\s*$")
    plain = pc.match_substring_regex(nonempty, r"^\s*-?\d+\s*$")
    if len(nonempty) and 2 * pc.sum(long).as_py() > len(nonempty) == pc.sum(plain).as_py():
        raise UsageError(
            f"{name}: the texts are whole numbers such as {nonempty[0].as_py()!r:.40}, which look"
            " like fingerprints: name their field with --fingerprint-field, not --text"
        )


def _named(name: str, rows: Rows, ids: Any = None) -> Any:
    addresses = Addresses([name])
    addresses.add(0, rows, ids)
    return addresses.of(np.arange(len(rows)))


def _place(name: str, rows: Rows, row: int) -> str:
    return str(_named(name, rows[row : row + 1])[0])


def _stored_ids(path: str, fingerprint_file: FingerprintFile) -> Any:
    """The ids of a fingerprint file."""
    column = fingerprint_file.ids
    ids = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if ids.null_count:
        row = pc.index(ids.is_null(), True).as_py() + 1
        raise DataError(f"{path}:{row}: the id is null; give every fingerprint an id")
    return ids


def _is_fingerprint_file(path: str) -> bool:
    if not path.lower().endswith((".parquet", ".pq")):
        return False
    try:
        return "fingerprint" in pq.read_schema(path).names
    except (OSError, pa.ArrowException, OverflowError, UnicodeError):
        return False  # reading it as documents will say what is wrong


def _count_missing(values: Any) -> int:
    if isinstance(values, np.ma.MaskedArray):
        return int(np.ma.getmaskarray(values).reshape(len(values), -1)[:, 0].sum())
    return 0


def _add_batch(
    index: DurableIndex, part: _Part, if_new: Stored | None, *, has_ids: bool
) -> list[State]:
    """Store texts or fingerprints; the state of each as from `add_new`, "new" without `if_new`."""
    ids, values = ids_of_kind(part.ids, index.id_kind), part.values
    contents: tuple[Any, ...] = ()
    documents: Any
    if index.by == "similarity":
        documents = index.sets_of(values)
        empty, plain = np.diff(documents.offsets) == 0, documents
        contents = (values,) if index.store == "text" else ()
    else:
        documents = values if isinstance(values, np.ndarray) else index.fingerprints_of(values)
        plain = np.ma.getdata(documents).reshape(len(documents), -1)
        empty = np.ma.getmaskarray(documents).reshape(plain.shape)[:, 0]
        contents = () if index.store == "none" else (values,)
    if not has_ids:
        other = np.flatnonzero((index.versions(ids, plain) == OTHER) & ~empty)
        if len(other):
            raise made_id_error(ids[int(other[0])].as_py(), index.path)
    if if_new is None:
        index.add(ids, documents, *contents)
        return ["empty" if each else "new" for each in empty.tolist()]
    prepared = index.prepare(ids, documents, *contents)
    return [answer.state for answer in offered(index, prepared, if_new, part.place)]


def offered(
    index: DurableIndex, prepared: Prepared, stored: Stored, place: Callable[[int], str]
) -> list[Answer]:
    """As `offer_many`; an error about a stored id names the place of its document.

    Args:
        index: To which documents are offered.
        prepared: The documents.
        stored: What happens to an id that is stored with other content.
        place: The place of the document of a row.

    Raises:
        DataError: If there is one, and `stored` is "error".
    """
    try:
        return index.offer_many(prepared, stored=stored)
    except DataError:
        ids = prepared.column.take(pa.array(prepared.rows))
        others = np.flatnonzero(index.versions(ids, prepared.contents) == OTHER)
        if stored != "error" or not len(others):
            raise
        row = int(prepared.rows[others[0]])
        raise DataError(
            f"{place(row)}: the id {prepared.ids[row]!r:.60} is stored with other content: pass"
            " --stored replace or keep, or give the document another id"
        ) from None
