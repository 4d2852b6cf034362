"""Compile all kernels, by small examples of everything that uses them.

tests/cli/test_compile.py checks that no command and no service compiles afterwards.
"""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.pipeline.run.rule import Choice, Limits, Rule
from neardup.similarity.measures import MEASURES

__all__ = ["compile_all"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.runtime.progress import Progress

_TEXTS = ["one two three four", "one two three four", "five six seven", "", "İstanbul 你好"]


def compile_all(progress: Progress) -> None:
    """Run small examples of everything that runs kernels, so that all of them are in the cache."""
    for name, step in _steps():
        progress.begin(f"compile: {name}")
        step()


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "fingerprints", _make_fingerprints
    yield "pairs and groups", _join
    yield "similarity", _match
    yield "files", _run_on_files
    yield "calibration", _calibrate
    yield "questions of a test set", _find_leaks
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
    from neardup.hamming.join.sinks import merge
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
    widest = np.tile(codes, 2)  # 256 bits, which `neardup calibrate` tries
    widest[100:] = widest[100]
    pairs(widest, 3, plan="blocks")
    alone = np.arange(2, dtype=np.uint32)
    merge(alone, alone.copy())  # the merge of threads that both found groups


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


def _run_on_files() -> None:
    from neardup.documents import ReadOptions
    from neardup.pipeline.deduplicate import dedup
    from neardup.pipeline.passage_files import LineOutputs, Repeated, lines_files
    from neardup.pipeline.reference_files import index_of_files

    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        lines, table, few = f"{folder}/in.jsonl", f"{folder}/in.csv", _few_documents(folder)
        Path(lines).write_text('{"text": "one two three"}\n' * 200_000)
        Path(table).write_text("text\n" + "one two three\n" * 400_000)
        for path, ending in ((lines, ".jsonl.zst"), (table, ".csv")):
            dedup(path, f"{path}.out{ending}")
        for distance in (None, 3):
            out, rule = f"{few}.{distance}", Rule(distance=distance)
            dedup(few, f"{out}.jsonl", distance=distance, report=f"{out}.html")
            with index_of_files([few], rule, ReadOptions(), Limits()) as index:
                dedup(few, f"{out}.new.jsonl", distance=distance, against=index)
        for unit in ("paragraph", "line"):
            outputs = LineOutputs(f"{few}.{unit}.jsonl")
            lines_files([few], outputs, Repeated(unit, 2, 1), ReadOptions())


def _few_documents(folder: str) -> str:
    """A file of JSON lines, enough for two threads, each near another."""
    texts = (" ".join(f"w{row // 2 + 9 * i}" for i in range(30 - row % 2)) for row in range(400))
    path = Path(folder, "few.jsonl")
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    return str(path)


def _calibrate() -> None:
    from neardup.documents import ReadOptions
    from neardup.fingerprinting.question import DEFAULT_QUESTION
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.calibration.calibrate import CalibrationOptions, calibrate_files
    from neardup.pipeline.calibration.edits import Aim
    from neardup.pipeline.calibration.questions import ComparisonOptions, compare_questions

    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        few, read, limits = _few_documents(folder), ReadOptions(), Limits()
        calibrate_files([few], CalibrationOptions(similarity=0.8), Recipe(), read, limits)
        compare_questions([few], ComparisonOptions(Aim(), DEFAULT_QUESTION, 0), read, limits)


def _find_leaks() -> None:
    from neardup.pipeline.contamination import decontaminate
    from neardup.pipeline.passage_cuts import cut_passages

    documents = [f"before {text} after" for text in _TEXTS]
    for rule in (None, "gpt-3", "llama", "olmo", "lm-eval"):
        cut_passages(documents, decontaminate(documents, _TEXTS, rule=rule))


def _ask_indexes() -> None:
    from neardup.fingerprinting.recipe import Recipe
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
    kinds: list[dict[str, Any]] = [
        {"distance": 3}, {"distance": 3, "bits": 128}, {"similarity": 0.8, "recipe": Recipe()}
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        for number, kind in enumerate(kinds):
            with DurableIndex.open(f"{folder}/{number}", **kind) as durable:
                durable.warm_up("all")
