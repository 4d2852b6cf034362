"""The banded search at a stated recall beside the exact join: the matching step at similarity 0.8.

Texts are read and hashed before the clock starts. "independent" gives every table bits of its own:
one permutation of a fingerprint so wide that no key needs another. Fingerprints alone are random,
with one in fifty planted next to another exactly at the threshold.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness import corpora
from harness.model import OURS, Measurement, Row

if TYPE_CHECKING:
    from neardup.similarity.band_plans import BandPlan

CASE = "bands"
SIMILARITY = 0.8
MILLION = 1_000_000
MEBIBYTE = 1 << 20
RECALLS = (0.95, 0.99)
FOLDERS = ("reuters21578_en", "scancode_licenses_en")


def rows(quick: bool) -> list[Row]:
    """Seconds of the exact join and of the bands; share of the similar pairs found."""
    found = []
    for name, path in texts(quick).items():
        exact = Measurement.of(CASE, "exact", OURS, path=path)
        found.append(Row(f"{name}: exact join", exact, (), None, "lower", unit="s"))
        for recall in RECALLS:
            for keys in ("planned", "independent"):
                bands = Measurement.of(CASE, "bands", OURS, path=path, recall=recall, keys=keys)
                label = f"{name}: recall {recall}, {keys} keys"
                found += [
                    Row(label, bands, (), None, "lower", unit="s"),
                    Row(
                        f"{label}: share of the pairs found",
                        bands,
                        (),
                        recall,
                        key="recall",
                        unit="",
                    ),
                ]
    n = MILLION // 10 if quick else 10 * MILLION
    for recall in RECALLS:
        alone = Measurement.of(CASE, "fingerprints", OURS, n=n, recall=recall)
        label = f"{n:,} fingerprints, recall {recall}"
        found.append(Row(label, alone, (), None, "lower", unit="s"))
    return found


def texts(quick: bool) -> dict[str, str]:
    """JSON lines by name."""
    target = 1 if quick else 1_000
    found = {}
    for folder in FOLDERS:
        archive = corpora.SHARED / "data" / folder / "docs.jsonl.gz"
        if archive.exists():
            records = corpora.read_archives([archive])
            facts = corpora.cached(f"{folder}-{target}", folder, records, target)
            found[folder] = facts["path"]
    found["speed corpus"] = corpora.speed_corpus(3 if quick else 300)["path"]
    return found


def exact(path: str) -> dict[str, Any]:
    """Greedy keep by the exact join."""
    return matched(path, None)


def bands(path: str, recall: float, keys: str) -> dict[str, Any]:
    """Greedy keep among the documents to which the bands give a partner."""
    return matched(path, recall, keys)


def matched(path: str, recall: float | None, keys: str = "planned") -> dict[str, Any]:
    import numpy as np

    from cases.pairs import forget_peak, memory
    from neardup.pipeline.run.read_documents import Reader
    from neardup.pipeline.run.rule import Limits, Rule
    from neardup.similarity.band_plans import plan_bands
    from neardup.similarity.bands import documents_with_partner
    from neardup.similarity.feature_sets import Match
    from neardup.similarity.join import similar_greedy, similar_sets

    match = Match(SIMILARITY)
    for most in (200, None):  # the first compiles
        with Reader([""], Rule(SIMILARITY), Limits()) as reader:
            collect(reader, path, most)
            sets = reader.finish().sets
            plan = None if recall is None else plan_bands(SIMILARITY, recall, len(sets))
            if plan is not None and keys == "independent":
                plan = independent(plan, recall)
            before = memory("VmRSS")
            forget_peak()
            start, used = time.perf_counter(), processor_seconds()
            among = np.arange(len(sets))
            if plan is not None:
                among = documents_with_partner(sets, match, plan)
            bands_seconds = time.perf_counter() - start
            kept_of, _ = similar_greedy(sets, among, match)
            outcome: dict[str, Any] = {
                "value": time.perf_counter() - start,
                "cpu_seconds": processor_seconds() - used,
                "bands_seconds": bands_seconds,
                "peak_mib": (memory("VmHWM") - before) / MEBIBYTE,
                "documents": len(sets),
                "among": int(among.size),
                "dropped": int((kept_of != np.arange(len(sets))).sum()),
            }
            if plan is not None and most is None:
                has = np.zeros(len(sets), bool)
                has[among] = True
                every = found = 0
                for chunk in similar_sets(sets, match):
                    every += len(chunk)
                    found += int((has[chunk[:, 0]] & has[chunk[:, 1]]).sum())
                outcome |= {"recall": found / max(1, every), "pairs": every}
                outcome |= {"plan": plan.to_dict()} | candidates(sets, plan)
    return outcome


def collect(reader: Any, path: str, most: int | None) -> None:
    import pyarrow as pa

    from neardup.documents import ReadOptions
    from neardup.pipeline.run.in_memory import InMemory

    found = pa.array(corpora.read_texts(path, None if most is None else 1), pa.large_string())
    for batch in InMemory(
        pa.chunked_array([found[:most] if most else found]), ReadOptions()
    ).batches:
        reader.add(0, batch)


def candidates(sets: Any, plan: BandPlan) -> dict[str, float]:
    """Pairs for each long document that share a key, and that pass the distance filter too."""
    import numpy as np

    from neardup.similarity.bands import band_pairs, fold_sets
    from neardup.similarity.recall import LEAST_FEATURES

    rows = np.flatnonzero(np.diff(sets.offsets) >= LEAST_FEATURES)
    words = np.unique(fold_sets(sets, rows, plan.bits // 64), axis=0)
    counts = {}
    for name, distance in (("sharing", plan.bits), ("near", plan.distance)):
        found = band_pairs(words, replace(plan, distance=distance))
        counts[name] = 2 * sum(map(len, found)) / max(1, len(words))
    return counts


def independent(plan: BandPlan, recall: float) -> BandPlan:
    """The same length of key and loss to the filter, with bits for each table of its own."""
    import numpy as np

    from neardup.similarity.band_plans import FILTER_SHARE
    from neardup.similarity.recall import recall_of, worst_agreement

    likely = worst_agreement(SIMILARITY)
    key_bits = min(plan.key_bits, 16)
    for words in range(1, 1_000):
        bits = 64 * words
        trial = replace(plan, bits=bits, key_bits=key_bits, tables=bits // key_bits, distance=bits,
                        check_bits=0, check_distance=0)  # fmt: skip
        if recall_of(bits, key_bits, trial.tables, likely) < 1 - (1 - FILTER_SHARE) * (1 - recall):
            continue
        spread = 4 * np.sqrt(bits * likely * (1 - likely))
        return replace(trial, distance=int(bits * (1 - likely) + spread))
    raise AssertionError


def fingerprints(n: int, recall: float) -> dict[str, Any]:
    """Candidate pairs of fingerprints alone."""
    from cases.pairs import forget_peak, memory
    from neardup.similarity.band_plans import plan_bands
    from neardup.similarity.bands import band_pairs

    plan = plan_bands(SIMILARITY, recall, n)
    words, planted = random_fingerprints(n, plan)
    list(band_pairs(words[:5_000], plan))  # compiles
    before = memory("VmRSS")
    forget_peak()
    start, used = time.perf_counter(), processor_seconds()
    found = total = 0
    for pairs in band_pairs(words, plan):
        left, right = pairs[:, 0], pairs[:, 1]
        total += len(pairs)
        found += int(((left % 2 == 0) & (right == left + 1) & (left < 2 * planted)).sum())
    return {
        "value": time.perf_counter() - start,
        "cpu_seconds": processor_seconds() - used,
        "peak_mib": (memory("VmHWM") - before) / MEBIBYTE,
        "input_mib": words.nbytes / MEBIBYTE,
        "pairs": total,
        "recall": found / planted,
        "plan": plan.to_dict(),
    }


def random_fingerprints(n: int, plan: BandPlan) -> tuple[Any, int]:
    """uint64 (n, words), where rows 2 i and 2 i + 1 are at the threshold for i < planted."""
    import numpy as np

    from neardup.similarity.recall import worst_agreement

    random, planted, part = np.random.default_rng(1), n // 100, 1 << 14
    words = np.empty((n, plan.bits // 64), np.uint64)
    for begin in range(0, n, part):
        words[begin : begin + part] = random.integers(
            0, 2**64, words[begin : begin + part].shape, dtype=np.uint64
        )
    for begin in range(0, planted, part):
        end = min(begin + part, planted)
        flips = random.random((end - begin, plan.bits)) > worst_agreement(SIMILARITY)
        masks = np.packbits(flips, axis=1, bitorder="little").view("<u8")
        words[2 * begin + 1 : 2 * end : 2] = words[2 * begin : 2 * end : 2] ^ masks
    return words, planted


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
