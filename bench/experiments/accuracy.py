"""Pairs found and missed on real corpora: `accuracy.py [--quick] [CORPUS...]`.

The truth is brute force: the sparse product of the documents' own features (those of the default
recipe) with themselves. Peers get the same features, so only the search is compared; their seconds
begin with the features in memory, ours begin with the texts. Every measurement is a process of its
own, and its peak is that of the whole process.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import corpora, environments, records, report
from harness.model import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = corpora.CACHE / "accuracy"
THRESHOLDS = (0.8, 0.7)
DISTANCES = (3, 12)
ROWS_A_BLOCK = 256
CORPORA = {
    "reuters21578_en": None,
    "bib_dedupe_en": None,
    "sms_spam_en": None,
    "scancode_licenses_en": 6_000,
    "lohelp_revisions_en-us": None,
    "lohelp_revisions_tr": None,
    "lohelp_revisions_zh-cn": None,
    "livedoor_ja": None,
    "zh_laws": None,
}
"""Folders in shared/data, and how many documents, evenly spread, are taken where not all are."""

LABEL_FEATURES = (
    ("words", 1, (0.6, 0.7, 0.8, 0.9)),
    ("words", 2, (0.5, 0.6, 0.7, 0.8, 0.9)),
    ("words", 3, (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    ("chars", 5, (0.6, 0.7, 0.8, 0.9)),
)
"""Tokens, n and thresholds, the least first, for the pairs that people put together."""

METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("neardup similar_pairs", "ours", {}),
    ("datasketch MinHashLSH", "datasketch", {}),
    ("rensa RMinHashLSH, 8 bands", "rensa", {"bands": 8}),
    ("rensa RMinHashLSH, 16 bands", "rensa", {"bands": 16}),
    *((f"neardup pairs, k = {k}", "within", {"distance": k}) for k in DISTANCES),
)


def main() -> int:
    """Measure every method on every corpus, print the tables and keep the record."""
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        sys.stdout.write(json.dumps(WORKERS[sys.argv[2]](**json.loads(sys.argv[3]))) + "\n")
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="CORPUS", help=", ".join(CORPORA))
    parser.add_argument("--quick", action="store_true", help="600 documents each; nothing is kept")
    arguments = parser.parse_args()
    facts = records.machine()
    kept = not arguments.quick and not arguments.names
    if kept:
        records.check_committed(["accuracy"], facts)
    lines: list[dict[str, Any]] = []
    labelled: list[dict[str, Any]] = []
    for name in arguments.names or CORPORA:
        most = 600 if arguments.quick else CORPORA[name]
        prepared = call(OURS, "prepare", name=name, most=most)
        lines += measured(name, most, prepared)
        if (corpora.SHARED / "data" / name / "clusters.csv.gz").exists() and name.startswith("bib"):
            labelled = call(OURS, "labels", name=name, most=most)
    sys.stdout.write(report.accuracy_table(lines) + "\n" + report.labels_table(labelled))
    if kept:
        records.keep("accuracy", facts, {"lines": lines, "labels": labelled})
    return int(any("error" in line for line in (*lines, labelled)))


def measured(name: str, most: int | None, prepared: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One line for each threshold and method."""
    for threshold in THRESHOLDS:
        for label, worker, options in METHODS:
            home = worker if worker in environments.PEERS else OURS
            result = call(home, worker, name=name, most=most, threshold=threshold, **options)
            line = {"corpus": name, "threshold": threshold, "method": label}
            yield line | {"documents": prepared["documents"]} | result
            sys.stderr.write(f"{name} {threshold} {label}: {result}\n")


def call(environment: str, worker: str, **options: Any) -> Any:
    """What a worker in its own process returns, or {"error": its last line}."""
    python = environments.python_of(environment)
    command = [python, __file__, "--worker", worker, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def documents_of(name: str, most: int | None) -> tuple[list[str], list[str]]:
    """Ids and texts; `most` of them, evenly spread, unless None."""
    records = list(corpora.read_archives([corpora.SHARED / "data" / name / "docs.jsonl.gz"]))
    count = min(len(records), most or len(records))
    picked = [records[place * len(records) // count] for place in range(count)]
    return [key for key, _ in picked], [text for _, text in picked]


def home_of(name: str, most: int | None) -> Path:
    return CACHE / f"{name}-{most or 'all'}"


def prepare(name: str, most: int | None) -> dict[str, Any]:
    """Write every document's features, and the true pairs at each threshold.

    Each of our searches runs once as well: so that no compilation is in the seconds later.
    """
    import numpy as np

    from neardup import Recipe, fingerprints, pairs, similar_pairs
    from neardup.fingerprinting.fingerprints import feature_hashes

    _, texts = documents_of(name, most)
    for threshold in THRESHOLDS:
        similar_pairs(texts, threshold)
    for distance in DISTANCES:
        pairs(fingerprints(texts), distance)
    sets = [feature_hashes(text, Recipe()) if text else np.zeros(0, np.uint64) for text in texts]
    sizes = np.array([len(features) for features in sets], np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    home = home_of(name, most)
    home.mkdir(parents=True, exist_ok=True)
    features = np.concatenate(sets)
    np.savez(home / "features.npz", features=features, offsets=offsets)
    start = time.perf_counter()
    keys, scores = similar_by_force(features, offsets, min(THRESHOLDS))
    seconds = time.perf_counter() - start
    for threshold in THRESHOLDS:
        np.save(home / f"truth-{threshold}.npy", keys[scores >= threshold])
    return {"documents": len(texts), "features": int(sizes.sum()), "brute_force_seconds": seconds}


def similar_by_force(features: Any, offsets: Any, least: float) -> tuple[Any, Any]:
    """Keys (left row * n + right row) and Jaccard similarities of all pairs at or above `least`."""
    import numpy as np
    from scipy import sparse

    sizes, n = np.diff(offsets), offsets.size - 1
    distinct, columns = np.unique(features, return_inverse=True)
    ones = np.ones(features.size, np.int32)
    matrix = sparse.csr_array((ones, columns, offsets), shape=(n, distinct.size))
    turned = matrix.T.tocsr()
    keys, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for begin in range(0, n, ROWS_A_BLOCK):
        shared = (matrix[begin : begin + ROWS_A_BLOCK] @ turned).tocoo()
        left, right = shared.row.astype(np.int64) + begin, shared.col.astype(np.int64)
        score = shared.data / (sizes[left] + sizes[right] - shared.data)
        near = (left < right) & (score >= least)
        keys.append(left[near] * n + right[near])
        scores.append(score[near])
    return np.concatenate(keys), np.concatenate(scores)


def judged(name: str, most: int | None, threshold: float, keys: Any) -> dict[str, Any]:
    """Recall and precision of found pairs (keys: left row * n + right row, in any order)."""
    import numpy as np

    truth = np.load(home_of(name, most) / f"truth-{threshold}.npy")
    keys = np.unique(np.asarray(keys, np.int64))
    hits = int(np.isin(keys, truth, assume_unique=True).sum())
    return {
        "true_pairs": int(truth.size),
        "pairs": int(keys.size),
        "recall": hits / truth.size if truth.size else None,
        "precision": hits / keys.size if keys.size else None,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def ours(name: str, most: int | None, threshold: float) -> dict[str, Any]:
    import neardup

    _, texts = documents_of(name, most)
    neardup.similar_pairs(["one", "one"])
    start = time.perf_counter()
    table = neardup.similar_pairs(texts, threshold)
    seconds = time.perf_counter() - start
    keys = table["left"].to_numpy() * len(texts) + table["right"].to_numpy()
    return judged(name, most, threshold, keys) | {"seconds": seconds}


def within(name: str, most: int | None, threshold: float, distance: int) -> dict[str, Any]:
    """Exact mode: every pair whose 64-bit fingerprints differ in at most `distance` bits."""
    import neardup

    _, texts = documents_of(name, most)
    neardup.pairs(neardup.fingerprints(["one", "one"]), distance)
    start = time.perf_counter()
    table = neardup.pairs(neardup.fingerprints(texts), distance)
    seconds = time.perf_counter() - start
    keys = table["left"].to_numpy() * len(texts) + table["right"].to_numpy()
    return judged(name, most, threshold, keys) | {"seconds": seconds}


def sets_of(name: str, most: int | None) -> tuple[Any, Any]:
    import numpy as np

    stored = np.load(home_of(name, most) / "features.npz")
    return stored["features"], stored["offsets"]


def datasketch(name: str, most: int | None, threshold: float) -> dict[str, Any]:
    """128 permutations; a feature's hash is the low half of the hash that it has already."""
    import numpy as np
    from datasketch import MinHash, MinHashLSH

    features, offsets = sets_of(name, most)
    n = offsets.size - 1
    start = time.perf_counter()
    low = (features & np.uint64(0xFFFFFFFF)).tolist()
    documents = (low[offsets[row] : offsets[row + 1]] for row in range(n))
    sketches = list(MinHash.generator(documents, num_perm=128, hashfunc=int))
    index = MinHashLSH(threshold=threshold, num_perm=128)
    keys = []
    for row, sketch in enumerate(sketches):
        if offsets[row] == offsets[row + 1]:
            continue
        near = index.query(sketch)
        keys += [other * n + row for other in near if sketch.jaccard(sketches[other]) >= threshold]
        index.insert(row, sketch, check_duplication=False)
    seconds = time.perf_counter() - start
    return judged(name, most, threshold, keys) | {"seconds": seconds}


def rensa(name: str, most: int | None, threshold: float, bands: int) -> dict[str, Any]:
    """128 permutations; a feature is the eight bytes of its hash."""
    from rensa import RMinHash, RMinHashLSH

    features, offsets = sets_of(name, most)
    n = offsets.size - 1
    start = time.perf_counter()
    data = features.tobytes()
    tokens = [data[at : at + 8] for at in range(0, len(data), 8)]
    documents = (tokens[offsets[row] : offsets[row + 1]] for row in range(n))
    sketches = RMinHash.from_token_sets(documents, 128, 42)
    index = RMinHashLSH(threshold, 128, bands)
    keys = []
    for row, sketch in enumerate(sketches):
        if offsets[row] == offsets[row + 1]:
            continue
        near = index.query(sketch)
        keys += [other * n + row for other in near if sketch.jaccard(sketches[other]) >= threshold]
        index.insert(row, sketch)
    seconds = time.perf_counter() - start
    return judged(name, most, threshold, keys) | {"seconds": seconds}


def labels(name: str, most: int | None) -> list[dict[str, Any]]:
    """Precision and recall of the pairs that people put together, by shingle and threshold."""
    import neardup

    ids, texts = documents_of(name, most)
    truth = labelled_pairs(name, ids)
    lines = []
    for tokens, ngram, thresholds in LABEL_FEATURES:
        recipe = neardup.Recipe(tokens=tokens, ngram=ngram)
        table = neardup.similar_pairs(texts, thresholds[0], recipe=recipe)
        pairs = zip(*(table[side].to_pylist() for side in ("left", "right")), strict=True)
        matches = dict(zip(pairs, table["similarity"].to_pylist(), strict=True))
        for threshold in thresholds:
            chosen = {pair for pair, score in matches.items() if score >= threshold}
            hits = len(chosen & truth)
            precision, recall = hits / max(1, len(chosen)), hits / max(1, len(truth))
            features = f"{ngram} {tokens}"
            lines.append(
                {"features": features, "threshold": threshold, "precision": precision}
                | {"recall": recall, "pairs": len(chosen), "labelled_pairs": len(truth)}
            )
    return lines


def labelled_pairs(name: str, ids: list[str]) -> set[tuple[int, int]]:
    row_of = {key: row for row, key in enumerate(ids)}
    clusters: dict[str, list[int]] = {}
    path = corpora.SHARED / "data" / name / "clusters.csv.gz"
    with gzip.open(path, "rt", encoding="utf8", newline="") as lines:
        for record in csv.DictReader(lines):
            if record["id"] in row_of:
                clusters.setdefault(record["cluster"], []).append(row_of[record["id"]])
    return {
        (min(a, b), max(a, b))
        for rows in clusters.values()
        for place, a in enumerate(rows)
        for b in rows[:place]
    }


WORKERS = {
    "prepare": prepare,
    "ours": ours,
    "within": within,
    "datasketch": datasketch,
    "rensa": rensa,
    "labels": labels,
}

if __name__ == "__main__":
    sys.exit(main())
