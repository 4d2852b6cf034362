"""Reading: inputs become `Documents`, fingerprinted and reduced to the data of later steps.

A run that continues a killed one reads its inputs again from the start, which is quick; it only
skips fingerprinting and matching. So everything else (addresses, places of the records, rejects) is
as in a new run, and the inputs are compared with those of the killed run.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import open_sources, rejects_doubt
from neardup.documents.ordering import LARGEST_FIRST, SMALLEST_FIRST, OneKind
from neardup.documents.record_addresses import Addresses
from neardup.errors import UsageError
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.pipeline.run.likely_missed import TextSample
from neardup.runtime.progress import Quiet
from neardup.runtime.storage.spool import FeatureSpool
from neardup.runtime.threads import read_ahead, worker_count
from neardup.similarity.feature_sets import FeatureSets
from neardup.similarity.join import CHUNK_FEATURES
from neardup.similarity.spilled import Spill

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import ExitStack

    import numpy.typing as npt

    from neardup.documents import Batch, InputFormat, ReadOptions, Rejects, Source
    from neardup.pipeline.run.rule import Limits, Rule
    from neardup.pipeline.run.run_folder import RunFolder
    from neardup.runtime.progress import Progress, Stopwatch
    from neardup.runtime.storage.append_file import AppendFile
    from neardup.runtime.types import Codes, Flags, Hashes, Offsets, Rows

__all__ = [
    "SECONDS",
    "Documents",
    "Inputs",
    "Reader",
    "Resume",
    "begin_reading",
    "open_inputs",
    "priorities",
    "read_sources",
]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs that a run has read.

    Args:
        documents: Paths, or batches in memory.
        rejected: Rejected documents in memory.
    """

    documents: Sequence[str] | Sequence[Batch]
    rejected: int = 0

    @property
    def paths(self) -> list[str]:
        """The inputs that are files."""
        return [each for each in self.documents if isinstance(each, str)]

    @property
    def batches(self) -> list[Batch]:
        """The batches in memory."""
        return [each for each in self.documents if not isinstance(each, str)]


def priorities(n: int, keep: str, measured: Any = None) -> Rows:
    """Order n documents from the highest priority to the lowest; int64 (n,).

    Args:
        n: The number of documents.
        keep: As in Choice.
        measured: (n,), for "longest" the code points of each document, for a field its number or
            date, NaN for none.

    Example:
        >>> priorities(3, "max:stars", np.array([1.0, np.nan, 2.0])).tolist()
        [2, 0, 1]
    """
    by = keep.partition(":")[0]
    if by in SMALLEST_FIRST:
        return np.argsort(measured, kind="stable")
    if by in LARGEST_FIRST or keep == "longest":
        return np.argsort(-measured, kind="stable")
    rows = np.arange(n, dtype=np.int64)
    return rows[::-1].copy() if keep == "last" else rows


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a run: O(1) for each, with the features in memory or on disk.

    Args:
        addresses: Their ids or places.
        values: uint64 (n, width): fingerprints, masked where a document has no tokens.
        sets: The feature sets, and the groups within which documents match; empty sets if the rule
            needs no features.
        spool: Where the features are.
        scores: float64 (n,): the code points or numbers that `keep` compares, or empty.
        groups: int32 (n,): the number of each document's group, None without groups.
        group_names: The names of the groups.
        text_bytes: int64 (n,): bytes of each text, if features are stored.
        nbytes: Bytes of input.
        counts: The number of documents of each input.
        sample: The beginnings of some texts.
        references: The number of documents of an index after the run's own.
    """

    addresses: Addresses
    values: Any
    sets: FeatureSets
    spool: FeatureSpool
    scores: npt.NDArray[np.float64]
    groups: npt.NDArray[np.int32] | None
    group_names: tuple[str | None, ...]
    text_bytes: npt.NDArray[np.int64]
    nbytes: int
    counts: tuple[int, ...]
    sample: TextSample
    references: int = 0

    def __len__(self) -> int:
        """The number of documents, including those of an index."""
        return len(self.values)

    @property
    def own(self) -> int:
        """The number of the run's own documents; they come first."""
        return len(self.values) - self.references

    @property
    def codes(self) -> Codes:
        """uint64 (n, width): the fingerprints without their mask."""
        codes: Codes = np.ma.getdata(self.values)
        return codes

    @property
    def empty(self) -> Flags:
        """Bool (n,): the document has no tokens, so it matches nothing."""
        empty: Flags = np.ma.getmaskarray(self.values)[:, 0]
        return empty

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of features of each document, int64 (n,)."""
        return np.diff(self.sets.offsets)

    def order(self, keep: str) -> Rows:
        """All documents from the highest priority to the lowest, int64 (n,): an index's first."""
        own = self.own
        return np.concatenate([np.arange(own, len(self)), priorities(own, keep, self.scores)])

    def features_of(self, rows: Rows) -> list[Hashes]:
        """The distinct feature hashes of each of some documents."""
        features, offsets = self.sets.features, self.sets.offsets
        begins, ends = offsets[rows].tolist(), offsets[rows + 1].tolist()
        return [features[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def feature_sets(self, begin: int, end: int) -> tuple[Hashes, Offsets]:
        """A copy of the features of documents from `begin` to `end`, and their offsets."""
        offsets = self.sets.offsets[begin : end + 1]
        return self.sets.features[offsets[0] : offsets[-1]].copy(), offsets - offsets[0]

    def followed_by(self, parts: Iterable[tuple[Codes, list[Hashes]]]) -> Documents:
        """Documents followed by those of an index; all features are in the same spool.

        Args:
            parts: Fingerprints of some documents, and the distinct feature hashes of each.
        """
        codes, counts = [self.codes], [self.sizes]
        for some, features in parts:
            self.spool.append(np.concatenate([np.zeros(0, np.uint64), *features]))
            codes.append(some)
            counts.append(np.array([len(each) for each in features], np.int64))
        # After the run's own, so that row numbers stay the same in addresses, groups and outputs.
        whole = np.concatenate(codes)
        references = len(whole) - self.own
        empty = np.zeros(whole.shape, np.bool_)
        empty[: len(self)] = np.ma.getmaskarray(self.values)
        return replace(
            self,
            values=np.ma.MaskedArray(whole, empty),
            sets=replace(
                self.sets,
                features=self.spool.finish(),
                offsets=np.append(0, np.cumsum(np.concatenate(counts))),
                codes=whole,
            ),
            references=references,
        )

    def without_features(self) -> Documents:
        """Documents after the decision: the disk space of their features is freed."""
        self.spool.close()
        return replace(self, sets=replace(self.sets, features=np.zeros(0, np.uint64)))


class Reader:
    """Fingerprints batches while the next one is read; `finish` gives the Documents.

    Args:
        names: The inputs' names, for addresses.
        rule: Decides which data of a document are stored.
        limits: Memory, the folder for temporary files, and threads.
        resume: The state of an earlier run, and of this one.
        keep: As in Choice.
        keep_features: Store the features even if the search does not need them.
        restrict: Documents match only within a group, if the batches have groups; otherwise groups
            are only noted.
        progress: Shows the progress, in bytes of features.

    Attributes:
        workers: Threads, as in the limits.
        counts: The number of documents of each input so far.
        nbytes: Bytes of input so far.
    """

    def __init__(
        self,
        names: Sequence[str],
        rule: Rule,
        limits: Limits,
        resume: Resume | None = None,
        *,
        keep: str = "first",
        keep_features: bool = False,
        restrict: bool = True,
        progress: Progress | None = None,
    ) -> None:
        """Begin without documents."""
        self._rule, self._keep, self._limits, self._resume = rule, keep, limits, resume
        self._keep_features = keep_features or rule.by_features
        self._restrict, self._progress = restrict, progress or Quiet()
        self._addresses = Addresses(names)
        self.workers = limits.workers
        self.counts = [0] * len(names)
        self.nbytes = 0
        self._text_bytes: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self._scores: list[npt.NDArray[np.float64]] = []
        self._sample = TextSample()
        self._groups = _GroupNumbers()
        kept = None if resume is None else resume.features
        self._spool = FeatureSpool(limits.memory // 8, limits.tmp, kept)
        self._done: list[tuple[Codes, npt.NDArray[np.int64]]] = (
            [] if resume is None else [resume.fingerprints(rule.recipe.words)]
        )
        if resume is not None and self._keep_features:
            resume.check_features()
        self._fingerprinter = self._new_fingerprinter()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads and remove the spool."""
        self._fingerprinter.close()
        self._spool.close()

    def add(self, source: int, batch: Batch) -> None:
        """Take a batch of documents of input number `source`."""
        if self._resume is None or not self._resume.passes(self._decisive(batch)):
            self._fingerprinter.add(batch.texts)
        self._sample.see(batch.texts)
        self._addresses.add(source, batch.rows, batch.ids)
        self.counts[source] += len(batch.texts)
        self.nbytes += batch.nbytes
        if self._keep_features:
            self._text_bytes.append(pc.binary_length(batch.texts).to_numpy())
        if self._keep == "longest":
            self._scores.append(np.asarray(pc.utf8_length(batch.texts), np.float64))
        elif batch.numbers is not None:
            self._scores.append(batch.numbers.to_numpy(zero_copy_only=False))
        if batch.within is not None:
            self._groups.add(batch.within)
        if self._resume is not None and self._resume.is_due:
            self._checkpoint(self._resume)

    def _decisive(self, batch: Batch) -> Batch:
        """What the result depends on: a report may count by a field that the killed run lacked."""
        return batch if self._restrict else replace(batch, within=None)

    def finish(self) -> Documents:
        """Wait for the fingerprints."""
        values, offsets = self._values()
        groups = self._groups.numbers()
        sets = FeatureSets(
            self._spool.finish(),
            offsets,
            np.ma.getdata(values),
            cell_limit=self._limits.memory // 8,
            groups=groups if self._restrict else None,
            forget=_Forgetting(self._spool, self._progress),
            spill=Spill(self._limits.memory // 2, self._limits.tmp),
        )
        return Documents(
            self._addresses,
            values,
            sets,
            self._spool,
            np.concatenate([np.zeros(0), *self._scores]),
            groups,
            self._groups.names(),
            np.concatenate(self._text_bytes),
            self.nbytes,
            tuple(self.counts),
            self._sample,
        )

    def _values(self) -> tuple[Any, Offsets]:
        if self._resume is None:
            return self._fingerprinter.finish(), self._fingerprinter.feature_offsets()
        self._resume.check_end()
        self._checkpoint(self._resume)
        counts = np.concatenate([part for _, part in self._done])
        values = np.concatenate([part for part, _ in self._done])
        empty = np.repeat(counts[:, None] == 0, values.shape[1], axis=1)
        offsets = np.append(0, np.cumsum(counts))
        return np.ma.MaskedArray(values, empty) if empty.any() else values, offsets

    def _new_fingerprinter(self) -> Fingerprinter:
        spool = self._spool if self._keep_features else None
        return Fingerprinter(self._rule.recipe, self._limits.workers, spool)

    def _checkpoint(self, resume: Resume) -> None:
        """Wait for the fingerprints of documents since the last checkpoint, and save them."""
        # The threads must be idle here: only then the spool has the features of exactly the
        # documents with fingerprints, from which a killed run continues.
        values = np.ma.getdata(self._fingerprinter.finish())
        counts = np.diff(self._fingerprinter.feature_offsets())
        self._fingerprinter.close()
        self._fingerprinter = self._new_fingerprinter()
        if len(counts):
            self._done.append((values, counts))
            resume.keep(len(counts), fingerprints=values, counts=counts)


class _Forgetting:
    """Called between two chunks of a search: frees pages, and counts the bytes passed."""

    def __init__(self, spool: FeatureSpool, progress: Progress) -> None:
        self._spool, self._progress, self._passed = spool, progress, 0

    def __call__(self) -> None:
        self._spool.forget_pages()
        step = min(8 * CHUNK_FEATURES, self._spool.nbytes - self._passed)
        self._passed += step
        self._progress.advance(step)


class _GroupNumbers:
    """Numbers the distinct values of a field in the order of their appearance; null is one."""

    def __init__(self) -> None:
        self._numbers: dict[str | None, int] = {}
        self._parts: list[npt.NDArray[np.int32]] = []

    def add(self, values: pa.Array) -> None:
        encoded = values.dictionary_encode(null_encoding="encode")
        numbers_of = self._numbers
        numbers = [
            numbers_of.setdefault(x, len(numbers_of)) for x in encoded.dictionary.to_pylist()
        ]
        self._parts.append(np.array(numbers, np.int32)[encoded.indices.to_numpy()])

    def names(self) -> tuple[str | None, ...]:
        """The names of the groups, by number."""
        return tuple(self._numbers)

    def numbers(self) -> npt.NDArray[np.int32] | None:
        """int32 (n,), or None if nothing was added."""
        return np.concatenate(self._parts) if self._parts else None


def open_inputs(
    stack: ExitStack,
    paths: Sequence[str],
    limits: Limits,
    input_format: InputFormat | str | None,
) -> list[Source]:
    """Find every input; each is closed with the stack."""
    sources = open_sources(paths, limits.tmp, input_format)
    for source in sources:
        stack.callback(source.close)
    return sources


def begin_reading(sources: Sequence[Source], watch: Stopwatch, step: str = "read") -> None:
    """Begin a step through all inputs, whose length is known unless an input's is not."""
    sizes = [source.nbytes for source in sources]
    watch.begin(step, None if None in sizes else sum(size or 0 for size in sizes))


def read_sources(
    sources: Sequence[Source],
    reader: Reader,
    read: ReadOptions,
    rejects: Rejects,
    watch: Stopwatch,
    progress: Progress,
) -> Documents:
    """Read every input to its end."""
    begin_reading(sources, watch)
    kinds = OneKind(read.number)
    read = replace(read, workers=worker_count(reader.workers))
    for number, source in enumerate(sources):
        passed = 0
        batches = source.batches(read, rejects)
        # A stream may never end, so this thread waits for it, which an interrupt reaches.
        for batch in read_ahead(batches) if source.is_here else batches:
            reader.add(number, batch)
            progress.advance(batch.nbytes)
            passed += batch.nbytes
        reader.nbytes += source.bytes_read - passed  # bad records at its end come in no batch
        progress.advance(source.bytes_read - passed)
        kinds.check(source.name, source.compares)
    rejects_doubt(sum(reader.counts), rejects.count)
    if any(reader.counts) and read.number is not None and not kinds.firsts:
        what = "date" if read.dates else "number"
        raise UsageError(
            f"no record has a {what} in the field {read.number}, which decides what is kept: name"
            " another one"
        )
    return reader.finish()


SECONDS: Final = 10.0
"""Seconds between two checkpoints."""


class Resume:
    """The progress of a run, in a folder: documents fingerprinted, or searched for questions.

    Args:
        folder: Locked, after `begin`.

    Attributes:
        notes: The progress of an earlier run, for the summary.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Begin at the first document; nothing is read yet."""
        self.folder = folder
        self._checkpoints = list(folder.checkpoints)
        self.documents = self._checkpoints[-1]["documents"] if self._checkpoints else 0
        self.notes = _notes(folder, self.documents)
        self._passed = 0
        self._content = 0
        self._kept_at = time.monotonic()

    @property
    def features(self) -> AppendFile:
        """The file of feature hashes."""
        return self.folder.files["features"]

    def fingerprints(self, width: int) -> tuple[Codes, npt.NDArray[np.int64]]:
        """The saved fingerprints, uint64 (n, width), and feature counts, int64 (n,)."""
        files = self.folder.files
        values = files["fingerprints"].array(np.uint64).reshape(-1, width)
        return values, files["counts"].array(np.int64)

    def check_features(self) -> None:
        """Raise UsageError if an earlier run, which needed none, saved documents without features.

        An output or an update that needs them may be new in this run.
        """
        features = int(self.folder.files["counts"].array(np.int64).sum())
        if self.features.nbytes != features * np.dtype(np.uint64).itemsize:
            raise UsageError(
                f"{self.folder.path} has fingerprints alone of the documents that were read before,"
                " and --report or --update needs their features: leave it out, or remove"
                f" {self.folder.path} to start again"
            )

    def passes(self, batch: Batch) -> bool:
        """Whether the next batch is fingerprinted already.

        Raises:
            UsageError: If it differs from the batch that was read then.
        """
        self._content = _checksum(batch, self._content)
        if not self._checkpoints:
            return False
        first = self._passed
        self._passed += len(batch.texts)
        expected = self._checkpoints[0]
        if self._passed > expected["documents"]:
            raise self._changed(first)
        if self._passed == expected["documents"]:
            if self._content != expected["content"]:
                raise self._changed(first)
            self._checkpoints.pop(0)
            self._content = 0
        return True

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._kept_at >= SECONDS

    def keep(self, documents: int, **data: Any) -> None:
        """Save the data of all batches since the last checkpoint, by file."""
        for name, array in data.items():
            if array.size:
                self.folder.files[name].write(np.ascontiguousarray(array))
        self.documents += documents
        self.folder.commit(self.documents, self._content)
        self._content = 0
        self._kept_at = time.monotonic()

    def check_end(self) -> None:
        """Raise UsageError, after the last batch, if the killed run had more documents."""
        if self._checkpoints:
            raise self._changed(self._passed)

    def _changed(self, document: int) -> UsageError:
        return UsageError(
            f"an input changed since {self.folder.path} was left, at about document"
            f" {document + 1:,}: put it back, or remove {self.folder.path} to start again"
        )


def _notes(folder: RunFolder, documents: int) -> list[str]:
    done = "fingerprinted" if "fingerprints" in folder.files else "searched"
    done += ", and matched" if folder.is_matched else ""
    line = f"resumed from {folder.path}: {documents:,} documents were {done} before"
    return [line] if documents else []


def _checksum(batch: Batch, checksum: int) -> int:
    """Update the checksum over all data that are read of documents."""
    checksum = zlib.crc32(np.ascontiguousarray(batch.rows).data, checksum)
    for column in (batch.texts, batch.ids, batch.within):
        if column is not None:
            checksum = _strings_checksum(column, checksum)
    if batch.numbers is not None:
        numbers = batch.numbers.to_numpy(zero_copy_only=False)
        checksum = zlib.crc32(np.ascontiguousarray(numbers).data, checksum)
    return checksum


def _strings_checksum(column: pa.LargeStringArray, checksum: int) -> int:
    _, offsets, data = column.buffers()
    if not len(column):
        return checksum
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    checksum = zlib.crc32((ends - ends[0]).data, checksum)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        checksum = zlib.crc32(np.packbits(nulls).data, checksum)
    if data is not None:
        checksum = zlib.crc32(memoryview(data)[ends[0] : ends[-1]], checksum)
    return checksum
