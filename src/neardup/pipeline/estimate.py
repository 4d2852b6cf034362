"""What a run will take, told from a sample of its inputs: `neardup dedup --dry-run`."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import ReadOptions, Rejects, open_sources
from neardup.errors import UsageError
from neardup.hamming.plans.join import plan_pairs
from neardup.pipeline.run.collection import Collection
from neardup.pipeline.run.costs import WRITE_BYTES_A_SECOND, memory_and_disk
from neardup.pipeline.run.summary import Record
from neardup.similarity.feature_sets import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, Source
    from neardup.pipeline.run.matching import Matching
    from neardup.pipeline.run.resources import Resources

__all__ = ["Estimate", "estimate_run"]

SAMPLE_BYTES: Final = 32 << 20


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
            ]
        )


def estimate_run(
    paths: Sequence[str],
    matching: Matching,
    read: ReadOptions,
    resources: Resources,
    format_name: InputFormat | str | None = None,
) -> Estimate:
    """Run on the first part of every input, and extrapolate.

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
        begun = time.perf_counter()
        total = sum(source.nbytes or 0 for source in sources)
        for number, source in enumerate(sources):
            _sample(number, source, collection, read, SAMPLE_BYTES // len(sources))
        values = collection.finish()
        reading = time.perf_counter() - begun
        collection.group(values)  # kernels may have to be compiled: only the second time counts
        begun, work = time.perf_counter(), Work()
        collection.group(values, work)
        seconds = reading + time.perf_counter() - begun
        return _extrapolate(collection, values, matching, resources, work, total, seconds)


def _sample(
    number: int, source: Source, collection: Collection, read: ReadOptions, most: int
) -> None:
    seen = 0
    with Rejects() as rejects:
        for batch in source.batches(read, rejects):
            collection.add(number, batch)
            seen += batch.nbytes
            if seen >= most:
                return


def _extrapolate(
    collection: Collection,
    values: Any,
    matching: Matching,
    resources: Resources,
    work: Work,
    total: int,
    seconds: float,
) -> Estimate:
    scale = max(1.0, total / max(1, collection.nbytes))
    documents = round(len(values) * scale)
    features = round(collection.feature_count * scale)
    bits = matching.recipe.bits
    bands = matching.bands(documents)
    if matching.by_features:
        search, tables = "features, exact: rare ones first", 0
        candidates = round(work.candidates * scale)
        if bands is not None:
            search, tables, bits = f"bands, recall {bands.recall:.4f}", bands.tables, bands.bits
    else:
        sample = np.ma.getdata(values)
        plan = plan_pairs(max(2, documents), matching.distance or 0, bits, sample, resources.plan)
        search, tables = (
            f"fingerprints, exact: {plan.name}",
            plan.tables,
        )
        candidates = round(plan.candidates)
    postings = round(work.postings * scale)
    memory, on_disk = memory_and_disk(matching, resources, documents, features, postings)
    return Estimate(
        sampled_bytes=collection.nbytes,
        input_bytes=total,
        documents=documents,
        features=features,
        bits=bits,
        search=search,
        tables=tables,
        candidates=candidates,
        memory=memory,
        disk=on_disk,
        seconds=seconds * scale + total / WRITE_BYTES_A_SECOND,
    )
