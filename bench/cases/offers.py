"""Offering batches to an index on disk: processor microseconds a document, commits included.

Texts of 2 kB, a tenth of them near another one of the same load, to a million stored documents of
some 60 features in fifteen files that are not merged; fingerprints by distance 3 to 200,000; ids
are addresses. "value" is the processor time of the process, user and system, in `add_new` and in
`commit`; "add" is that of `add_new` alone.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "offers"
PARTS = 15
PART = 66_667
NEAR = 10
MOST_ROUNDS = 1


def rows(quick: bool) -> list[Row]:
    """Batches of a hundred and of one, by similarity and by distance."""
    part, report_rows = (1_000 if quick else PART), list[Row]()
    lower: dict[str, Any] = {"better": "lower", "unit": "us"}
    for batch, offered, target in ((100, 8_000, 80), (1, 600, 800)):
        run = Measurement.of(CASE, "texts", OURS, part=part, batch=batch, offered=offered)
        label = f"texts of 2 kB to {PARTS * part:,} in {PARTS} files, batches of {batch}"
        report_rows += [
            Row(f"{label}, with commits", run, (), target, **lower),
            Row(f"{label}, without", run, key="add", **lower),
        ]
    for batch in (100, 10_000):
        run = Measurement.of(CASE, "prints", OURS, n=3 * part, batch=batch, offered=60_000)
        label = f"fingerprints to {3 * part:,}, batches of {batch:,}, with commits"
        report_rows.append(Row(label, run, (), 8, **lower))
    return report_rows


def texts(part: int, batch: int, offered: int) -> dict[str, Any]:
    """Offer texts to an index by similarity."""
    import numpy as np
    import pyarrow as pa

    import neardup as nd
    from neardup.index.durable import folder_store

    random = np.random.default_rng(1)
    folder = tempfile.mkdtemp()
    # As a folder is while documents come faster than the background merges their files.
    folder_store.FolderStore._schedule_merge = lambda _: None  # type: ignore[method-assign]  # noqa: SLF001
    try:
        with nd.DurableIndex.open(f"{folder}/index", similarity=0.8, recipe=nd.Recipe()) as index:
            for first in range(0, PARTS * part, part):
                offsets = np.append(0, np.cumsum(random.integers(50, 70, part)))
                features = random.integers(0, 2**63, offsets[-1]).astype(np.uint64)
                ids = [f"https://example.org/page/{first + row}" for row in range(part)]
                index.add(ids, pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(features)))
                index._folder.flush_now()  # noqa: SLF001
            words = [f"w{number:x}" for number in random.integers(0, 2**32, 50_000).tolist()]
            chosen = random.integers(0, len(words), (offered + batch, 317))
            chosen[:offered:NEAR] = chosen[1:offered:NEAR][: len(chosen[:offered:NEAR])]
            chosen[:offered:NEAR, 5] = 0
            return _offered(index, [" ".join(words[i] for i in row) for row in chosen], batch)
    finally:
        shutil.rmtree(folder)


def prints(n: int, batch: int, offered: int) -> dict[str, Any]:
    """Offer fingerprints to an index by distance."""
    import numpy as np

    import neardup as nd

    random = np.random.default_rng(3)
    folder = tempfile.mkdtemp()
    try:
        with nd.DurableIndex.open(f"{folder}/index", distance=3) as index:
            ids = [f"https://example.org/page/{row}" for row in range(n)]
            index.add(ids, random.integers(0, 2**63, n).astype(np.uint64))
            index.commit()
            codes = random.integers(0, 2**63, offered + batch).astype(np.uint64)
            codes[:offered:NEAR] = codes[1:offered:NEAR] ^ np.uint64(5)
            return _offered(index, codes, batch)
    finally:
        shutil.rmtree(folder)


def _offered(index: Any, documents: Any, batch: int) -> dict[str, Any]:
    """The cost of all but the last batch, which is offered first, to warm up."""
    index.warm_up()
    offered = len(documents) - batch
    index.add_new([f"warm {row}" for row in range(batch)], documents[offered:])
    index.commit()
    adding = committing = 0.0
    for first in range(0, offered, batch):
        last = min(first + batch, offered)
        ids = [f"https://example.org/new/{row}" for row in range(first, last)]
        begin = time.process_time()
        index.add_new(ids, documents[first:last])
        middle = time.process_time()
        index.commit()
        adding, committing = adding + middle - begin, committing + time.process_time() - middle
    micro = 1e6 / offered
    return {"value": (adding + committing) * micro, "add": adding * micro}
