"""What a run will take, told from a sample of its inputs: `neardup dedup --dry-run`.

The inputs are read for some seconds, and batches spread over what is read are fingerprinted. Then
matches are looked for among more and more of these documents, for some seconds as well; how the
time grew says what all documents will take.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import ReadOptions, Rejects, open_sources
from neardup.errors import UsageError
from neardup.hamming.plans.join import plan_pairs
from neardup.pipeline.run.collection import Collection
from neardup.pipeline.run.costs import WRITE_BYTES_A_SECOND, bands_instead, memory_and_disk
from neardup.pipeline.run.matching import group
from neardup.pipeline.run.summary import Record
from neardup.similarity.feature_sets import FeatureSets, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, Source
    from neardup.pipeline.run.matching import Matching
    from neardup.pipeline.run.resources import Resources

__all__ = ["Estimate", "estimate_run"]

SAMPLE_BYTES: Final = 32 << 20
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
        return "\n".join(
            [
                f"sampled     {share:.0%} of {self.input_bytes / 1e6:,.1f} MB",
                f"documents   about {self.documents:,}, {self.features:,} features",
                f"width       {self.bits} bits",
                f"search      {self.search}",
                f"tables      {self.tables}",
                f"candidates  about {self.candidates:,}",
                f"memory      about {self.memory / 2**20:,.0f} MiB",
                f"disk        about {self.disk / 2**20:,.0f} MiB of temporary files",
                f"time        about {self.seconds:,.1f} s",
                *(f"note        {note}" for note in self.notes),
            ]
        )


@dataclass(slots=True)
class _Read:
    """What was read: the part of the inputs, and how long it took.

    Args:
        total: Bytes of all inputs.
        passed: Bytes of those that were read.
        documents: Documents in these.
        reading: Seconds of reading alone.
        taking: Seconds of fingerprinting the sample.
        counted: Documents expected in each input, from its own part.
    """

    total: int
    passed: int = 0
    documents: int = 0
    reading: float = 0.0
    taking: float = 0.0
    counted: list[float] = field(default_factory=list)


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
        for number, source in enumerate(sources):
            _sample(number, source, collection, read, seen)
        begun = time.perf_counter()
        values = collection.finish()
        seen.taking += time.perf_counter() - begun
        tries = _match_more_and_more(collection, values, matching, resources)
        return _extrapolate(collection, values, matching, resources, seen, tries)


def _sample(
    number: int, source: Source, collection: Collection, read: ReadOptions, seen: _Read
) -> None:
    """Read an input for its share of the time; take batches spread evenly over what is read."""
    nbytes = source.nbytes or 0
    share = nbytes / max(1, seen.total)
    passed = documents = taken = 0
    spent = 0.0
    with Rejects() as rejects:
        batches = source.batches(read, rejects)
        while True:
            begun = time.perf_counter()
            batch = next(batches, None)
            seen.reading += time.perf_counter() - begun
            if batch is None:
                passed = nbytes
                break
            if taken * max(1, seen.total) <= SAMPLE_BYTES * passed:
                adding = time.perf_counter()
                collection.add(number, batch)
                seen.taking += time.perf_counter() - adding
                taken += batch.nbytes
            passed += batch.nbytes
            # The first batch may have waited for kernels to be compiled.
            spent += time.perf_counter() - begun if documents else 0.0
            documents += len(batch.texts)
            if spent > READ_SECONDS * share:
                break
    seen.passed += passed
    seen.documents += documents
    seen.counted.append(documents * max(1.0, nbytes / max(1, passed)))


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
    documents = round(sum(seen.counted))
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
    if seen.passed < seen.total:
        found.append(
            f"{READ_SECONDS:.0f} s were enough for {seen.passed / seen.total:.0%} of the input,"
            " the beginning of each file: what comes later may be unlike it"
        )
    if documents > UNSURE_TIMES * max(1, tried.documents):
        found.append(
            f"matches were looked for among {tried.documents:,} documents: with all"
            f" {documents:,} the search may take some times as long, or a part of it"
        )
    return found
