"""An estimate of a run's cost, from a sample of its inputs: `neardup dedup --dry-run`.

The beginning of every input is read, SAMPLE_BYTES in all, fingerprinted, and matched once. Costs in
proportion to the documents are multiplied; the time of a search by features grows with the power
GROWTH of the documents; a search by distance takes the time of its plan.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.documents import Rejects, rejects_doubt
from neardup.errors import UsageError
from neardup.hamming.plans.join_plan import plan_pairs
from neardup.pipeline.run.costs import WRITE_BYTES_A_SECOND, memory_and_disk
from neardup.pipeline.run.matching import match
from neardup.pipeline.run.read_documents import Reader, open_inputs
from neardup.pipeline.run.summary import Record
from neardup.runtime.progress import shown
from neardup.runtime.threads import worker_count
from neardup.similarity.feature_sets import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Choice, Limits, Rule

__all__ = ["Estimate", "estimate_run"]

SAMPLE_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 1 << 20
LEAST_BYTES: Final = 8 << 20
"""Least bytes read of an input: they count once they are in the reader's buffer, an eighth of
it."""
MOST_INPUTS: Final = 8
"""The most inputs that are read; of more, a random sample."""
GROWTH: Final = 1.2
"""The power of the documents with which a search by features grows; see docs/decisions/0018."""
UNSURE_TIMES: Final = 20


@dataclass(frozen=True, slots=True)
class Estimate(Record):
    """A plan and its expected cost; all figures except the first two are extrapolated.

    Args:
        sampled_bytes: Bytes of input that were sampled.
        input_bytes: Bytes of all inputs.
        documents: Documents in all inputs.
        features: Features of all documents together.
        bits: Width of a fingerprint.
        search: The kind of search.
        tables: Passes over the fingerprints; 0 for a search on features.
        candidates: Pairs that will be compared.
        memory: Bytes at the peak.
        disk: Bytes of temporary files.
        seconds: Time.
        notes: Limits of the figures, one line each.
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
class _Sample:
    """The part of the inputs that was read.

    Args:
        total: Bytes of all inputs.
        passed: Bytes of these that were read, as they are on disk.
        reached: Bytes of the inputs that were read in part, at least.
        counted: Documents expected in these, each from its own part.
        reading: Seconds of reading.
        taking: Seconds of fingerprinting.
        fronts: The names of inputs of which only the beginning was read.
        left: The number of inputs that were not read at all.
        rejects: The bad records in the sample.
    """

    total: int
    passed: int = 0
    reached: int = 0
    counted: float = 0.0
    reading: float = 0.0
    taking: float = 0.0
    fronts: list[str] = field(default_factory=list)
    left: int = 0
    rejects: Rejects = field(default_factory=Rejects)

    @property
    def documents(self) -> int:
        """Documents expected in all inputs."""
        return round(self.counted * max(1.0, self.total / max(1, self.reached)))


def estimate_run(
    paths: Sequence[str], rule: Rule, choice: Choice, read: ReadOptions, limits: Limits
) -> Estimate:
    """Run on the beginning of the inputs, and extrapolate.

    Args:
        paths: Inputs; not standard input, which cannot be read twice.
        rule: When documents match.
        choice: Which documents are kept.
        read: Fields, and what to do with bad records.
        limits: The resources of the run.

    Raises:
        UsageError: For standard input.
        DataError, FileError: As the run itself.
    """
    if "-" in paths:
        raise UsageError("--dry-run requires files: standard input cannot be read twice")
    rule.check_plan(limits.plan)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, read.input_format)
        names = [source.name for source in sources]
        reader = stack.enter_context(Reader(names, rule, limits, keep=choice.keep))
        sample = _Sample(sum(source.nbytes or 0 for source in sources))
        mixed = np.random.default_rng(0).permutation(len(sources))
        sample.left = max(0, mixed.size - MOST_INPUTS)
        for number in mixed[:MOST_INPUTS].tolist():
            _read_front(number, sources[number], reader, read, sample)
        start = time.perf_counter()
        documents = reader.finish()
        sample.taking += time.perf_counter() - start
        return _extrapolated(documents, rule, choice, limits, sample)


def _read_front(
    number: int, source: Source, reader: Reader, read: ReadOptions, sample: _Sample
) -> None:
    """Read an input up to its share of SAMPLE_BYTES, at least LEAST_BYTES."""
    nbytes, passed, documents = source.nbytes or 0, 0, 0
    share = max(LEAST_BYTES, SAMPLE_BYTES * nbytes // max(1, sample.total))
    batches = source.batches(replace(read, batch_bytes=BATCH_BYTES), sample.rejects)
    while True:
        start = time.perf_counter()
        batch = next(batches, None)
        sample.reading += time.perf_counter() - start
        if batch is None:
            passed = nbytes
            break
        start = time.perf_counter()
        reader.add(number, batch)
        sample.taking += time.perf_counter() - start
        passed += batch.nbytes
        documents += len(batch.texts)
        if passed >= share:
            break
    if passed < nbytes:
        sample.fronts.append(source.name)
    sample.passed += passed
    sample.reached += nbytes
    sample.counted += documents * nbytes / max(1, passed)


def _extrapolated(
    documents: Documents, rule: Rule, choice: Choice, limits: Limits, sample: _Sample
) -> Estimate:
    doubt = rejects_doubt(len(documents), sample.rejects.count)
    count, bits = sample.documents, rule.recipe.bits
    scale = max(1.0, count / max(1, len(documents)))
    features = round(int(documents.sizes.sum()) * scale) if rule.by_features else 0
    work = Work()
    if rule.by_features:
        start = time.perf_counter()
        match(documents, rule, choice, limits, work=work)
        matching = (time.perf_counter() - start) * scale**GROWTH
        search, tables = "features, exact: rare ones first", 0
        candidates = round(work.candidates * scale**GROWTH)
    else:
        codes, distance = documents.codes, rule.distance or 0
        plan = plan_pairs(max(2, count), distance, bits, codes, limits.plan)
        matching = plan.seconds / worker_count(limits.workers)
        search, tables = f"fingerprints, exact: {plan.name}", plan.tables
        candidates = round(plan.candidates)
    memory, on_disk = memory_and_disk(rule, limits, count, features, round(work.postings * scale))
    rest = sample.reading * sample.total / max(1, sample.passed) + sample.taking * scale
    return Estimate(
        sampled_bytes=sample.passed,
        input_bytes=sample.total,
        documents=count,
        features=features,
        bits=bits,
        search=search,
        tables=tables,
        candidates=candidates,
        memory=memory,
        disk=on_disk,
        seconds=rest + matching + sample.total / WRITE_BYTES_A_SECOND,
        notes=(
            *filter(None, [doubt]),
            *_unsure(sample, len(documents) if rule.by_features else count, count),
        ),
    )


def _unsure(sample: _Sample, matched: int, documents: int) -> list[str]:
    """Notes on the limits of a sample in which `matched` of all `documents` were matched."""
    lines = []
    if sample.fronts:
        more = f" and {len(sample.fronts) - 1} more" if len(sample.fronts) > 1 else ""
        lines.append(
            f"only the beginning of {sample.fronts[0]}{more} was read,"
            f" {sample.passed / sample.total:.1%} of the input: what comes later may be unlike it"
        )
    if sample.left:
        lines.append(
            f"{sample.left:,} inputs were not read: the estimate takes them to be like the others"
        )
    if documents > UNSURE_TIMES * max(1, matched):
        lines.append(
            f"matches were searched among {matched:,} documents: with all {documents:,} the search"
            " may take several times as long, or less"
        )
    return lines
