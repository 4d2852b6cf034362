"""neardup's steps of datatrove beside its own MinHash: costs, and what each removes.

    python bench/experiments/datatrove_minhash.py [DOCUMENTS]

Needs datatrove with tokenizers, spacy and xxhash<4, scipy, and ../shared/data (Reuters, licences).
Both run in two tasks with the defaults of datatrove: runs of five words, 14 x 8 hashes of 64 bits,
and of neardup the same runs at 0.8, with and without the preset that normalises alike. Judged by
the exact Jaccard similarity of all pairs over datatrove's own shingles.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("NEARDUP_SHARED", ROOT.parent / "shared")) / "data"
CORPORA = ("reuters21578_en", "scancode_licenses_en")
WAYS = ("minhash", "neardup", "neardup-preset")
TASKS, THRESHOLD, LOOSE = 2, 0.8, 0.7
BLOCK = 400


def main() -> None:
    """Run each way in a process of its own, then judge."""
    if len(sys.argv) > 2:
        _step(sys.argv[1], Path(sys.argv[2]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 22_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = _source(folder, count)
        print(f"{documents:,} documents, {_bytes(folder / 'source') / 1e6:.1f} MB")
        for way in (*WAYS, "judge"):
            subprocess.run([sys.executable, __file__, way, str(folder)], check=True)  # noqa: S603


def _source(folder: Path, count: int) -> int:
    texts = []
    for name in CORPORA:
        with gzip.open(DATA / name / "docs.jsonl.gz", "rt") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    texts = [text for text in texts if text.strip()][:count]
    (folder / "source").mkdir()
    for part in range(4):
        with (folder / "source" / f"{part}.jsonl").open("w") as file:
            for at in range(part, len(texts), 4):
                file.write(json.dumps({"id": str(at), "text": texts[at]}) + "\n")
    return len(texts)


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _step(way: str, folder: Path) -> None:
    from loguru import logger

    logger.remove()
    if way == "judge":
        _judge(folder)
    else:
        _removed(way, folder)


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _removed(way: str, folder: Path) -> None:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup.minhash import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    import neardup as nd
    from neardup.integrations.datatrove import NeardupCluster, NeardupTexts

    def run(steps: list[Any], tasks: int) -> Any:
        logs = tempfile.mkdtemp(dir=folder)
        return LocalPipelineExecutor(
            steps, tasks, workers=TASKS, start_method="fork", logging_dir=logs
        )

    here = {name: str(folder / way / name) for name in ("made", "buckets", "removed", "kept")}

    def read() -> Any:
        return JsonlReader(str(folder / "source"))

    if way == "minhash":
        config = _config()
        run([read(), MinhashDedupSignature(here["made"], config=config)], tasks=TASKS).run()
        run([MinhashDedupBuckets(here["made"], here["buckets"], config=config)],
            tasks=config.num_buckets).run()  # fmt: skip
        cluster = MinhashDedupCluster(here["buckets"], here["removed"], config=config,
                                      save_cluster_id=True)  # fmt: skip
    else:
        preset = "datatrove" if way == "neardup-preset" else None
        run([read(), NeardupTexts(here["made"], preset=preset)], tasks=TASKS).run()
        cluster = NeardupCluster(here["made"], here["removed"], save_cluster_id=True,
                                 similarity=THRESHOLD, recipe=nd.Recipe(ngram=5))  # fmt: skip
    run([cluster], tasks=1).run()
    used = _cpu()
    filtered = MinhashDedupFilter(here["removed"], load_cluster_ids=True)
    run([read(), filtered, JsonlWriter(here["kept"], compression=None)], tasks=TASKS).run()
    peaks = (
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(
        f"{way}: {used:.1f} s of processor to the decision, {_cpu() - used:.1f} s to filter;"
        f" peaks of parent and workers {', '.join(f'{peak / 1024:.0f}' for peak in peaks)} MB;"
        f" {_bytes(Path(here['made'])) / 1e6:.1f} MB written between"
    )


def _config() -> Any:
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.utils.hashing import HashConfig

    return MinhashConfig(hash_config=HashConfig(precision=64))


def _judge(folder: Path) -> None:
    import scipy.sparse
    from datatrove.pipeline.dedup.minhash import MinhashDedupSignature

    shingles = MinhashDedupSignature(str(folder / "unused"), config=_config()).get_shingles
    where: dict[tuple[int, int], int] = {}
    sets = []
    for rank in range(TASKS):
        files = sorted((folder / "source").iterdir())[rank::TASKS]
        lines = [line for file in files for line in file.open()]
        for at, line in enumerate(lines):
            where[rank, at] = len(sets)
            sets.append(np.unique(shingles(json.loads(line)["text"]).ravel()))
    sizes = np.array([each.size for each in sets])
    _, columns = np.unique(np.concatenate(sets), return_inverse=True)
    starts = np.r_[0, np.cumsum(sizes)]
    ones = np.ones(columns.size, np.int32)
    matrix = scipy.sparse.csr_matrix((ones, columns, starts))
    best = np.zeros(len(sets))
    near = []
    for begin in range(0, len(sets), BLOCK):
        shared = (matrix[begin : begin + BLOCK] @ matrix.T).tocoo()
        left, right = shared.row + begin, shared.col
        jaccard = shared.data / (sizes[left] + sizes[right] - shared.data)
        close = (left != right) & (jaccard >= LOOSE)
        np.maximum.at(best, left[close], jaccard[close])
        exact = close & (jaccard >= THRESHOLD) & (left < right)
        near += zip(left[exact].tolist(), right[exact].tolist(), strict=True)
    print(f"{len(near):,} pairs at {THRESHOLD} by datatrove's own shingles")
    for way in WAYS:
        removed, cluster = _decided(folder / way / "removed", where)
        together = sum(a in cluster and cluster[a] == cluster.get(b) for a, b in near)
        left = sum(a not in removed and b not in removed for a, b in near)
        alone = sum(best[at] < THRESHOLD for at in removed)
        far = sum(best[at] < LOOSE for at in removed)
        print(
            f"{way}: removed {len(removed):,}; of the pairs {together / len(near):.4f} in one"
            f" cluster, {left / len(near):.4f} both kept;"
            f" of the removed {alone:,} ({alone / len(removed):.1%}) have no partner at"
            f" {THRESHOLD}, {far:,} none at {LOOSE}"
        )


def _decided(folder: Path, where: dict[tuple[int, int], int]) -> tuple[set[int], dict[int, int]]:
    """Documents that are removed, and the cluster of each that is in one."""
    removed: set[int] = set()
    cluster: dict[int, int] = {}
    for rank in range(TASKS):
        file = folder / f"{rank:06d}.remove"
        if file.exists():
            removed |= {where[rank, at] for at in np.fromfile(file, "<u4").tolist()}
        pairs = np.fromfile(file.with_suffix(".clusters"), "<u4").reshape(-1, 2).tolist()
        cluster |= {where[rank, at]: number for at, number in pairs}
    return removed, cluster


if __name__ == "__main__":
    main()
