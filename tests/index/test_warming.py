"""After `warm_up(calls="all")` nothing compiles, whatever is called: each in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from suite import IMPORTS, needs_jit

PROGRAM: Final = """
import sys, tempfile
import numpy as np, pyarrow as pa
import neardup as nd
from neardup.index import Prepared
from suite import compiled_kernels

kind, options = sys.argv[1], eval(sys.argv[2])
def make():
    if kind == "memory":
        return nd.Index(**options)
    return nd.DurableIndex.open(tempfile.mkdtemp(), **options)

make().warm_up(calls="all")
before = compiled_kernels()
assert len(before) > 10
random = np.random.default_rng(1)
sizes = random.integers(1, 400, 700)
texts = [" ".join(f"w{i}" for i in random.integers(0, 300, size)) for size in sizes]
texts += texts[:200] + ["", "é è ü", "日本語の文章です", "a " * 9000, "Straße und Wege " * 50]
if "similarity" in options:
    own = [np.unique(random.integers(0, 900, 40)).astype(np.uint64) for _ in range(700)]
    own += own[:100] + [np.arange(6000, dtype=np.uint64), np.arange(1, dtype=np.uint64)]
    forms, singles = [own, pa.array(own), [each.tolist() for each in own]], [own[0]] * 3
else:
    own = random.integers(0, 1 << 60, 900).astype(np.uint64)
    own[500:600] = own[:100] ^ np.uint64(1)
    forms, singles = [own, own.tolist(), pa.array(own), own.astype(np.int64)], [int(own[0])] * 4
if options.get("recipe") is not None:
    forms += [texts, pa.array(texts), pa.array(texts, pa.large_string())]
    singles += [texts[0]] * 3
store = options.get("store", "none")
for documents, one in zip(forms, singles, strict=True):
    count = len(documents)
    shuffled = random.permutation(count)
    for ids in (list(range(count)), shuffled, [f"id{i}" for i in shuffled]):
        kept, index = None, make()
        if store != "none" and not isinstance(one, str):
            kept = ["x" if store == "text" else np.arange(4, dtype=np.uint64)] * count
        def given(a, b):
            return ids[a:b], documents[a:b], kept and kept[a:b]
        name = ids[0] if isinstance(ids[0], str) else int(ids[0])
        index.offer(name, one, content=kept and kept[0])
        for size in (1, 7, 100):
            index.add_new(*given(size, 2 * size))
        index.commit()
        with index.transaction() as t:
            t.offer_many(Prepared.joined([t.prepare(*given(a, a + 5)) for a in (3, 9, 17)]))
        index.add_new(*given(0, count))
        index.add(*given(0, count))
        index.commit()
        for _ in range(2):
            index.query(one)
            index.query(one, limit=2)
            index.query_batch(documents)
            index.first_within(documents)
            index.query_batch(documents[:9], limit=1, workers=2)
            for by in (None, "cosine") if "similarity" in options else (None,):
                index.nearest(one, 3, by)
                index.nearest(one, 2000, by)
                index.nearest_batch(documents[:5], 4, by)
            index.remove(ids[::3], missing="ignore")
            index.add_new(*given(0, 50))
            index.compact()
        present = [each for each, _ in index][:9]
        index.touch(present)
        index.times(present), index.payloads(present), index.contents(present)
        index.expire(0.0)
        index.close()
new = compiled_kernels() - before
assert not new, "\\n".join(map(str, sorted(new)))
"""
KINDS: Final = {
    "by similarity": ("memory", "dict(similarity=0.8, recipe=nd.Recipe())"),
    "features alone": ("folder", "dict(similarity=0.6, measure='containment')"),
    "in a folder": ("folder", "dict(similarity=0.7, recipe=nd.Recipe())"),
    "by distance": ("memory", "dict(distance=3, recipe=nd.Recipe())"),
    "with texts": ("folder", "dict(distance=3, recipe=nd.Recipe(), store='text')"),
}


@needs_jit
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_compiles_after_warming_up(kind: str) -> None:
    process = subprocess.run(  # a program of ours
        [sys.executable, "-c", PROGRAM, *KINDS[kind]], capture_output=True, text=True, check=False,
        env=os.environ | IMPORTS,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-5000:]
