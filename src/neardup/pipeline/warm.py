"""Compile kernels before they are needed: those of the search in a second process, or all of them.

Numba compiles one kernel at a time in a process, so another process takes half of the work of a
first start. Both find in the cache (kernels/cache.py) what either has compiled.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neardup.pipeline.run.rule import Choice, Limits, Rule
from neardup.runtime.storage.spool import FeatureSpool
from neardup.runtime.threads import worker_count
from neardup.similarity.feature_sets import FeatureSets, Match
from neardup.similarity.join import similar_greedy
from neardup.similarity.measures import MEASURES

__all__ = ["compile_all", "compile_search", "search_compiler"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.runtime.progress import Progress

_SPOOL_BYTES = 1 << 12
_TEXTS = ["one two three four", "one two three four", "five six seven", "", "İstanbul 你好"]


def compile_search() -> None:
    """Load what a search by similarity runs, as a run over documents does."""
    features = np.arange(3, dtype=np.uint64)
    with FeatureSpool(_SPOOL_BYTES) as spool:
        spool.append(features)
        spool.append(features)
        values, offsets = np.zeros((2, 1), np.uint64), np.array([0, 3, 6])
        sets = FeatureSets(spool.finish(), offsets, values)
        similar_greedy(sets, np.arange(2), Match())


def search_compiler() -> subprocess.Popen[bytes] | None:
    """Begin `compile_search` in a process of its own; None where there is no core for it."""
    if worker_count(None) == 1:
        return None
    program = "from neardup.pipeline.warm import compile_search; compile_search()"
    silent = subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603  # nothing in it comes from outside
        [sys.executable, "-c", program], stdin=silent, stdout=silent, stderr=silent
    )


def compile_all(progress: Progress) -> None:
    """Run small examples of everything that runs kernels, so that all of them are in the cache."""
    for name, step in _steps():
        progress.begin(f"compile: {name}")
        step()


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "fingerprints", _make_fingerprints
    yield "pairs and groups", _join
    yield "similarity", _match
    yield "files", _read_files
    yield "indexes", _ask_indexes


def _make_fingerprints() -> None:
    from neardup.features.hashes import HASHES
    from neardup.fingerprinting.document_frequencies import DocumentFrequencies
    from neardup.fingerprinting.fingerprints import fingerprint, fingerprints
    from neardup.fingerprinting.projection import project
    from neardup.fingerprinting.recipe import Recipe

    table = DocumentFrequencies.learn(_TEXTS, Recipe(ngram=1))
    recipes = [Recipe(tokens=x, weight=y) for x, y in product(("words", "chars"), ("set", "log"))]
    recipes += [Recipe(bits=128), Recipe(top=2), Recipe(stopwords=("the",))]
    recipes += [Recipe(hash=x) for x, hash_ in HASHES.items() if not hash_.unfit]
    recipes.append(Recipe(ngram=1, weight="tfidf", idf=table.digest))
    for recipe in recipes:
        fingerprints(_TEXTS, recipe)
    fingerprint(_TEXTS[0])
    for method in ("hashed", "gaussian"):
        project(np.eye(4), method=method)


def _join() -> None:
    from neardup.hamming import components, greedy, pair_batches, pairs
    from neardup.hamming.paths_by_distance import paths_by_distance
    from neardup.hamming.spilled.spilled_groups import spilled_greedy

    for width in (1, 2):
        codes = np.random.default_rng(0).integers(0, 2**64, (300, width), dtype=np.uint64)
        codes[1] = codes[0]
        for plan in ("scan", "blocks", "multi:5", "mih:2", "bits", "probe"):
            pairs(codes, 3, plan=plan)
        components(codes, 3)
        codes[:3] = [[0], [7], [63]]
        paths_by_distance(codes[:3], np.zeros(3, np.int64), 3)
        greedy(codes, distance=3)
        list(pair_batches(codes, 3))
        spilled_greedy(codes, distance=3)


def _match() -> None:
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.deduplicate import dedup_texts
    from neardup.pipeline.similar_texts import similar_pairs

    for measure, policy in product(MEASURES, ("greedy", "components")):
        dedup_texts(_TEXTS, Rule(measure=measure), Choice(policy=policy), Limits())
    chain, by_words = ["a b c d", "b c d e", "c d e f"], Recipe(ngram=1)
    dedup_texts(chain, Rule(0.5, recipe=by_words), Choice(policy="components"), Limits())
    dedup_texts(_TEXTS, Rule(), Choice(), Limits(memory=1 << 8))  # an index in parts
    dedup_texts(_TEXTS, Rule(distance=3), Choice(), Limits())
    similar_pairs(_TEXTS)


def _read_files() -> None:
    from neardup.pipeline.deduplicate import dedup

    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        lines, table = Path(folder, "in.jsonl"), Path(folder, "in.csv")
        lines.write_text('{"text": "one two three"}\n' * 200_000)
        table.write_text("text\n" + "one two three\n" * 400_000)
        for path, ending in ((lines, ".jsonl.zst"), (table, ".csv")):
            dedup(path, f"{path}.out{ending}")


def _ask_indexes() -> None:
    from neardup.index.durable import DurableIndex
    from neardup.index.memory_index import Index

    for bits in (64, 128):
        codes = np.random.default_rng(0).integers(0, 2**64, (9000, bits // 64), dtype=np.uint64)
        for plan in ("auto", "scan", "bits", "blocks", "probe", "mih:2", "permute:4"):
            index = Index(3, bits, plan=plan)
            index.add([f"id {i}" for i in range(len(codes))], codes)
            index.query(codes[0])
            index.query_batch(codes[:5])
            index.nearest(~codes[0], 2)
    with (
        tempfile.TemporaryDirectory(prefix="neardup-") as folder,
        DurableIndex.open(f"{folder}/index") as durable,
    ):
        durable.add(range(9000), codes[:, 0])
        durable.commit()
        durable.query_batch(codes[:5, 0])
        durable.compact()
