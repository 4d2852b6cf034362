"""What a run will take, told from a sample of its inputs: `neardup dedup --dry-run`.

The inputs are read for some seconds: from the beginning, and where that would take too long, at
places spread over the rest. Batches spread over what is read are fingerprinted. Then
matches are looked for among more and more of these documents, for some seconds as well; how the
time grew says what all documents will take.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import ReadOptions, Rejects, open_sources
from neardup.errors import UsageError
from neardup.hamming.plans.join import plan_pairs
from neardup.pipeline.run.collection import Collection
from neardup.pipeline.run.costs import WRITE_BYTES_A_SECOND, bands_instead, memory_and_disk
from neardup.pipeline.run.matching import group
from neardup.pipeline.run.summary import Record
from neardup.runtime.progress import shown
from neardup.similarity.feature_sets import FeatureSets, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, Source
    from neardup.pipeline.run.matching import Matching
    from neardup.pipeline.run.resources import Resources

__all__ = ["Estimate", "estimate_run"]

SAMPLE_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 1 << 21
READ_SECONDS: Final = 4.0
MATCH_SECONDS: Final = 3.0
FIRST_DOCUMENTS: Final = 500
MOST_TIMES: Final = 4
"""So many times as many documents are matched in the next try, at most."""
MOST_POWER: Final = 2.0
"""Time grows with the square of the documents at most, as all pairs do."""
UNSURE_TIMES: Final = 20


@dataclass(frozen=True, slots=True)
class Estimate(Record):
    """A plan, and what it is expected to take; figures but the first two are extrapolated.

    Args:
        sampled_bytes: Bytes of input that the figures come from.
        input_bytes: Bytes of all inputs.
        documents: Documents in all inputs.
        features: Features of all documents together.
        bits: Width of a fingerprint.
        search: How matches will be found.
        tables: Passes over the fingerprints; 0 for a search on features.
        candidates: Pairs that will be compared.
        memory: Bytes at the peak.
        disk: Bytes of temporary files.
        seconds: Time.
        notes: What the figures do not say, a line each.
    """

    sampled_bytes: int
    input_bytes: int
    documents: int
    features: int
    bits: int
    search: str
    tables: int
    candidates: int
    memory: int
    disk: int
    seconds: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A few lines for people."""
        share = min(1.0, self.sampled_bytes / max(1, self.input_bytes))
        digits = 0 if share > 0.1 else 1
        return "\n".join(
            [
                f"sampled     {share:.{digits}%} of {self.input_bytes / 1e6:,.1f} MB",
                f"documents   about {self.documents:,}, {self.features:,} features",
                f"width       {self.bits} bits",
                f"search      {self.search}",
                f"tables      {self.tables}",
                f"candidates  about {self.candidates:,}",
                f"memory      about {self.memory / 2**20:,.0f} MiB",
                f"disk        about {self.disk / 2**20:,.0f} MiB of temporary files",
                f"time        about {self.seconds:,.1f} s",
                *(f"note        {shown(note)}" for note in self.notes),
            ]
        )


@dataclass(slots=True)
class _Read:
    """What was read: the part of the inputs, and how long it took.

    Args:
        total: Bytes of all inputs.
        passed: Bytes of those that were read.
        reading: Seconds of reading alone.
        taking: Seconds of fingerprinting the sample.
        spent: Seconds, less those for the first batch of all: kernels are compiled for it.
        reached: Bytes of the inputs that were read in part, at least.
        counted: Documents expected in these, each from its own part.
        places: Inputs that were read at places spread over them.
        fronts: The names of those of which only the beginning was read.
        left: How many were not read at all.
    """

    total: int
    passed: int = 0
    reading: float = 0.0
    taking: float = 0.0
    spent: float | None = None
    reached: int = 0
    counted: float = 0.0
    places: int = 0
    fronts: list[str] = field(default_factory=list)
    left: int = 0

    @property
    def documents(self) -> int:
        """Documents expected in all inputs."""
        return round(self.counted * max(1.0, self.total / max(1, self.reached)))


@dataclass(frozen=True, slots=True)
class _Try:
    """Matches were looked for among some documents."""

    documents: int
    seconds: float
    work: Work


def estimate_run(
    paths: Sequence[str],
    matching: Matching,
    read: ReadOptions,
    resources: Resources,
    format_name: InputFormat | str | None = None,
) -> Estimate:
    """Run on a sample of every input for some seconds, and extrapolate.

    Args:
        paths: Inputs; not standard input, which cannot be read twice.
        matching: What the run would do.
        read: Fields, and what to do with bad records.
        resources: What the run may use.
        format_name: Format of the inputs; by their extensions unless given.

    Raises:
        UsageError: For standard input.
        DataError, FileError: As the run itself.
    """
    if "-" in paths:
        raise UsageError("--dry-run needs files: standard input cannot be read twice")
    with ExitStack() as stack:
        sources = open_sources(paths, resources.tmp, format_name)
        for source in sources:
            stack.callback(source.close)
        names = [source.name for source in sources]
        collection = stack.enter_context(Collection(names, matching, resources))
        seen = _Read(sum(source.nbytes or 0 for source in sources))
        mixed = np.random.default_rng(0).permutation(len(sources)).tolist()
        for number in mixed:
            _sample(number, sources[number], collection, read, seen)
        begun = time.perf_counter()
        values = collection.finish()
        seen.taking += time.perf_counter() - begun
        tries = _match_more_and_more(collection, values, matching, resources)
        return _extrapolate(collection, values, matching, resources, seen, tries)


class _Input:
    """An input that is being read for the sample.

    Args:
        number: Which.
        source: Itself.
        batches: Its batches, or those of its places.
        passed: Bytes of those that were read.
        documents: Documents in these.
    """

    def __init__(self, number: int, source: Source, read: ReadOptions, rejects: Rejects) -> None:
        """Nothing is read yet."""
        self.number, self.source = number, source
        self.batches = source.batches(read, rejects)
        self.passed = self.documents = self._taken = 0

    def take(self, collection: Collection, seen: _Read, seconds: float, *, every: bool) -> bool:
        """Read for some seconds, one batch at least; whether there is no more.

        Of what is read the collection gets its share of SAMPLE_BYTES, or every batch.
        """
        begun = time.perf_counter()
        while True:
            before = time.perf_counter()
            batch = next(self.batches, None)
            seen.reading += time.perf_counter() - before
            if batch is None:
                return True
            if every or self._taken * max(1, seen.total) <= SAMPLE_BYTES * self.passed:
                adding = time.perf_counter()
                collection.add(self.number, batch)
                seen.taking += time.perf_counter() - adding
                self._taken += batch.nbytes
            self.passed += batch.nbytes
            self.documents += len(batch.texts)
            now = time.perf_counter()
            if seen.spent is None:
                seen.spent, begun = 0.0, now
                continue
            seen.spent += now - before
            if now - begun > seconds:
                return False


def _sample(
    number: int, source: Source, collection: Collection, read: ReadOptions, seen: _Read
) -> None:
    """Read an input for its share of the time: its beginning, then places spread over the rest."""
    nbytes = source.nbytes or 0
    if (seen.spent or 0.0) > READ_SECONDS:
        seen.left += 1
        return
    seconds = READ_SECONDS * nbytes / max(1, seen.total) / 2
    with Rejects() as rejects:
        front = _Input(number, source, replace(read, batch_bytes=BATCH_BYTES), rejects)
        is_whole = front.take(collection, seen, seconds, every=False)
        places = None
        if not is_whole and 2 * front.passed < nbytes:
            wanted = SAMPLE_BYTES * (nbytes - front.passed) // seen.total
            places = source.spread(front.passed, wanted)
        if not is_whole and places is None:
            is_whole = front.take(collection, seen, seconds, every=False)
        counted, passed = float(front.documents), nbytes if is_whole else front.passed
        if places is not None:
            # Rows are numbered from the first place on: one that is bad cannot be named.
            options = replace(read, batch_bytes=BATCH_BYTES, skip_errors=True)
            rest = _Input(number, places, options, rejects)
            rest.take(collection, seen, seconds, every=True)
            counted += rest.documents * (nbytes - front.passed) / max(1, rest.passed)
            passed += rest.passed
            seen.places += 1
        elif not is_whole:
            counted *= nbytes / max(1, front.passed)
            seen.fronts.append(source.name)
    seen.passed += passed
    seen.reached += nbytes
    seen.counted += counted


def _match_more_and_more(
    collection: Collection, values: Any, matching: Matching, resources: Resources
) -> list[_Try]:
    """Look for matches among some documents, then more, until the time is up or all are in."""
    begun, tries = time.perf_counter(), [_Try(0, 0.0, Work())]
    count = min(len(values), FIRST_DOCUMENTS)
    mixed = np.random.default_rng(0).permutation(len(values))
    _match_some(collection, values, np.sort(mixed[:count]), matching, resources)  # compiles
    compiled = time.perf_counter() - begun
    while count > tries[-1].documents:
        tries.append(_match_some(collection, values, np.sort(mixed[:count]), matching, resources))
        left = MATCH_SECONDS + compiled - (time.perf_counter() - begun)
        times = min(MOST_TIMES, (max(left, 0) / max(tries[-1].seconds, 1e-3)) ** (1 / MOST_POWER))
        count = min(len(values), max(int(count * times), count))
    return tries[-2:]


def _match_some(
    collection: Collection, values: Any, some: Any, matching: Matching, resources: Resources
) -> _Try:
    """Look for matches among documents `some`, int64, ascending."""
    work, sets = Work(), None
    groups = None
    if matching.by_features:
        every = collection.sets(values)
        sizes = collection.sizes[some]
        offsets = np.append(0, np.cumsum(sizes))
        places = np.repeat(every.offsets[some] - offsets[:-1], sizes) + np.arange(offsets[-1])
        groups = None if every.groups is None else every.groups[some]
        sets = FeatureSets(
            every.features[places], offsets, every.codes[some], groups, every.cell_limit
        )
    rank = np.empty(len(values), np.int64)
    rank[collection.order(len(values))] = np.arange(len(values))
    order = np.argsort(rank[some], kind="stable")
    begun = time.perf_counter()
    group(matching, resources, values[some], order, sets, groups, work)
    return _Try(some.size, time.perf_counter() - begun, work)


def _power(tries: list[_Try], figures: list[float]) -> float:
    """With which power of the documents a figure grew from one try to the next."""
    before, last = tries[0].documents, tries[-1].documents
    if not before or min(figures) <= 0 or before == last:
        return 1.0
    power = np.log(figures[-1] / figures[0]) / np.log(last / before)
    return float(min(MOST_POWER, max(1.0, power)))


def _extrapolate(
    collection: Collection,
    values: Any,
    matching: Matching,
    resources: Resources,
    seen: _Read,
    tries: list[_Try],
) -> Estimate:
    documents = seen.documents
    scale = max(1.0, documents / max(1, len(values)))
    features = round(collection.feature_count * scale)
    bits = matching.recipe.bits
    bands = matching.bands(documents)
    tried, times = tries[-1], max(1.0, documents / max(1, tries[-1].documents))
    matching_seconds = tried.seconds * times ** _power(tries, [each.seconds for each in tries])
    if matching.by_features:
        search, tables = "features, exact: rare ones first", 0
        compared = [float(each.work.candidates) for each in tries]
        candidates = round(compared[-1] * times ** _power(tries, compared))
        if bands is not None:
            search, tables, bits = f"bands, recall {bands.recall:.4f}", bands.tables, bands.bits
    else:
        sample = np.ma.getdata(values)
        plan = plan_pairs(max(2, documents), matching.distance or 0, bits, sample, resources.plan)
        search, tables = f"fingerprints, exact: {plan.name}", plan.tables
        candidates = round(plan.candidates)
    postings = round(tried.work.postings * times)
    memory, on_disk = memory_and_disk(matching, resources, documents, features, postings)
    reading = seen.reading * seen.total / max(1, seen.passed) + seen.taking * scale
    sizes = collection.sizes if matching.by_features else ()
    quicker = bands_instead(matching, sizes, documents, matching_seconds, resources.workers)
    return Estimate(
        sampled_bytes=collection.nbytes,
        input_bytes=seen.total,
        documents=documents,
        features=features,
        bits=bits,
        search=search,
        tables=tables,
        candidates=candidates,
        memory=memory,
        disk=on_disk,
        seconds=reading + matching_seconds + seen.total / WRITE_BYTES_A_SECOND,
        notes=tuple(filter(None, [*_unsure(seen, tried, documents), quicker])),
    )


def _unsure(seen: _Read, tried: _Try, documents: int) -> list[str]:
    """What the sample cannot tell."""
    found = []
    if seen.places or seen.fronts or seen.left:
        what = f"{READ_SECONDS:.0f} s were enough for {seen.passed / seen.total:.1%} of the input"
        if seen.places:
            what += ", places spread over it"
        found.append(what)
    if seen.fronts:
        more = f" and {len(seen.fronts) - 1} more" if len(seen.fronts) > 1 else ""
        found.append(
            f"of {seen.fronts[0]}{more} only the beginning was read, as only JSON lines and CSV"
            " without compression can be read at any place: what comes later may be unlike it"
        )
    if seen.left:
        found.append(f"{seen.left:,} inputs were not read: they are taken to be like the others")
    if documents > UNSURE_TIMES * max(1, tried.documents):
        found.append(
            f"matches were looked for among {tried.documents:,} documents: with all"
            f" {documents:,} the search may take some times as long, or a part of it"
        )
    return found
