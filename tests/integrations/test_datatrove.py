"""Steps of datatrove: its own filter keeps what `dedup` keeps; an index filters between runs."""

from __future__ import annotations

import contextlib
import json
import random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import neardup as nd
from services import Service
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("datatrove")

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.utils.text import simplify_text

from neardup.integrations.datatrove import (
    NeardupCluster,
    NeardupFilter,
    NeardupTexts,
)

pytestmark = needs_jit

FILES, TASKS = 4, 3


def documents() -> list[list[dict[str, str]]]:
    """Documents of four files, with near-duplicates within and across them; some have no text."""
    draw = random.Random(5)
    pool = [" ".join(f"w{draw.randrange(900)}" for _ in range(60)) for _ in range(40)]
    files: list[list[dict[str, str]]] = [[] for _ in range(FILES)]
    for at in range(150):
        words = draw.choice(pool).split()
        if at % 3:
            words[draw.randrange(60)] = "changed"
        text = "" if at % 17 == 5 else " ".join(words)
        files[draw.randrange(FILES)].append({"id": f"d{at}", "text": text})
    return files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The documents as files."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number, rows in enumerate(documents()):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number}.jsonl").write_text(lines)
    return folder


def collecting(passed: list[Document]) -> Any:
    """The last step of a pipeline; steps that are objects would be copied for each task."""

    def collect(data: Any, rank: int = 0, world_size: int = 1) -> Any:
        del rank, world_size
        for document in data:
            passed.append(document)
            yield document

    return collect


def in_order_of_tasks(tasks: int = TASKS) -> list[dict[str, str]]:
    """The documents as tasks read them: files dealt to tasks, those without text skipped."""
    files = documents()
    return [
        row for rank in range(tasks) for rows in files[rank::tasks] for row in rows if row["text"]
    ]


def ran(*steps: Any, tasks: int = 1) -> None:
    """Run steps in this process, one task after the other."""
    with TemporaryDirectory() as logs:  # unless given, they are written to the working directory
        LocalPipelineExecutor(list(steps), tasks=tasks, workers=1, logging_dir=logs).run()


@pytest.mark.parametrize("tasks", [TASKS, FILES + 2])
def test_its_own_filter_keeps_what_dedup_keeps(source: Path, tmp_path: Path, tasks: int) -> None:
    texts, removed = str(tmp_path / "texts"), str(tmp_path / "removed")
    ran(JsonlReader(str(source)), NeardupTexts(texts), tasks=tasks)
    ran(NeardupCluster(texts, removed, save_cluster_id=True, save_cluster_size=True,
                       similarity=0.8, keep="last"))  # fmt: skip
    passed: list[Document] = []
    filtered = MinhashDedupFilter(removed, load_cluster_ids=True, load_cluster_sizes=True)
    ran(JsonlReader(str(source)), filtered, collecting(passed), tasks=tasks)

    rows = in_order_of_tasks(tasks)
    want = nd.dedup([row["text"] for row in rows], similarity=0.8, keep="last")
    assert 0 < want.summary.dropped < len(rows)
    kept = np.flatnonzero(want.kept).tolist()
    assert [document.id for document in passed] == [rows[at]["id"] for at in kept]
    sizes = np.bincount(want.cluster)
    for at, document in zip(kept, passed, strict=True):
        size = sizes[want.cluster[at]]
        assert document.metadata["minhash_cluster_size"] == size
        label = want.cluster[at] if size > 1 else -1
        assert document.metadata["minhash_cluster_id"] == label


def test_the_preset_compares_texts_as_datatrove_normalises_them(tmp_path: Path) -> None:
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    pool = [
        ", ".join(f"Rose {name} {at * 17.5} %!" for at, name in enumerate(names, 1)),
        " \u2014 ".join(f"rosé {name} {at}" for at, name in enumerate(names, 1)),
        "other",
    ]
    data = [Document(text=text, id=str(at)) for at, text in enumerate(pool)]
    for preset in (None, "datatrove"):
        folder = tmp_path / str(preset)
        NeardupTexts(str(folder / "texts"), preset=preset).run(iter(data))
        NeardupCluster(str(folder / "texts"), str(folder / "removed")).run()
        removed = np.fromfile(folder / "removed" / "000000.remove", "<u4").tolist()
        assert removed == ([] if preset is None else [1])
    plain = [simplify_text(text) for text in pool[:2]]
    assert nd.compare(*plain, recipe=nd.Recipe(ngram=5)).jaccard == 1


def test_texts_of_other_tasks_are_refused(tmp_path: Path) -> None:
    folder, out = str(tmp_path / "texts"), str(tmp_path / "out")
    with pytest.raises(nd.DataError, match="has no texts: run NeardupTexts"):
        NeardupCluster(folder, out).run()
    for rank in (0, 2):
        NeardupTexts(folder).run(iter([Document(text="one two", id="a")]), rank, 3)
    with pytest.raises(nd.DataError, match="has 2 files of 3 tasks: run the missing"):
        NeardupCluster(folder, out).run()
    NeardupTexts(folder).run(iter(()), 1, 4)
    with pytest.raises(nd.DataError, match="of several runs"):
        NeardupCluster(folder, out).run()
    with pytest.raises(nd.UsageError, match="run it with tasks=1"):
        NeardupCluster(folder, out).run(None, 0, 2)


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("update", [True, False])
def test_an_index_filters_between_runs(tmp_path: Path, *, update: bool, served: bool) -> None:
    path = tmp_path / "seen"
    rows = in_order_of_tasks(1)
    index = nd.Index(similarity=0.8, recipe=nd.Recipe())
    with nd.DurableIndex.open(path, similarity=0.8, recipe=nd.Recipe()) as writer:
        for each in (index, writer):
            each.add([row["id"] for row in rows[:20]], [row["text"] for row in rows[:20]])
    want = [index.add_if_new(row["id"], row["text"]) for row in rows] if update else [
        next((hit for hit in index.query(row["text"]) if hit[0] != row["id"]), None) for row in rows
    ]  # fmt: skip
    assert None in want
    assert any(want)
    with Service(path) if served else contextlib.nullcontext() as service:
        place = path if service is None else service.url
        for _ in range(2):  # a task that runs again passes the same
            step = NeardupFilter(place, update=update)
            everything = [Document(text=row["text"], id=row["id"]) for row in rows]
            assert [document.id for document in step.run(iter(everything))] == [
                row["id"] for row, match in zip(rows, want, strict=True) if match is None
            ]
            for document, match in zip(everything, want, strict=True):
                actual = (
                    document.metadata.get("near_duplicate_of"),
                    document.metadata.get("similarity"),
                )
                assert actual == (match or (None, None))
            assert step.stats["dropped_near_duplicate"].total == sum(map(bool, want))


def test_a_question_beside_a_url_is_refused() -> None:
    step = NeardupFilter("http://127.0.0.1:8080", 0.7)
    with pytest.raises(nd.UsageError, match="has its own question"):
        next(iter(step.run(iter([]))))
