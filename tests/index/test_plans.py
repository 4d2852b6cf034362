"""What an index by similarity is said to cost, against what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from neardup import DurableIndex, Index, Recipe, UsageError, plan_similar
from neardup.index.index_plans import parts_as_added
from neardup.index.set_segments import LEVEL_ROWS, SEGMENTS_A_LEVEL

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"


@pytest.mark.parametrize("measure", ["jaccard", "cosine", "containment", "dice"])
def test_memory_is_known_before_it_is_built(measure: str) -> None:
    n, size = 3000, 100
    features = np.random.default_rng(1).integers(0, 1 << 64, (n, size), np.uint64)
    index = Index(similarity=0.8, measure=measure)
    index.add(np.arange(n), features)
    index.compact()
    (part,) = index._source.current().segments  # noqa: SLF001 - what is in memory tells no bytes
    nbytes = sum(array.nbytes for array in part.arrays.values())
    nbytes += part.numbers.nbytes + part.ids.values.nbytes
    row = plan_similar(n, 0.8, measure, features=size).to_pylist()[1]
    assert row["bytes_per_document"] == pytest.approx(nbytes / n, rel=0.02)


def test_disk_is_known_within_a_factor_of_2(tmp_path: Path) -> None:
    n, size = 3000, 100
    features = np.random.default_rng(1).integers(0, 1 << 64, (n, size), np.uint64)
    with DurableIndex.open(tmp_path / "i", similarity=0.8) as index:
        for first in range(0, n, 1000):
            index.add(np.arange(first, first + 1000), features[first : first + 1000])
            index.commit()
        index.compact()
        index.commit()
    total = sum(path.stat().st_blocks * 512 for path in (tmp_path / "i").rglob("*"))
    row = plan_similar(n, 0.8, features=size).to_pylist()[1]
    assert 0.5 < row["disk_bytes_per_document"] / (total / n) < 2


@pytest.mark.parametrize("n", [0, 1, 2048, 2049, 8191, 8192, 8193, 40_000])
def test_parts_are_those_that_additions_leave(n: int) -> None:
    parts = parts_as_added(n)
    assert sum(parts) == n
    assert parts == sorted(parts, reverse=True)
    sizes = {LEVEL_ROWS * SEGMENTS_A_LEVEL**level for level in range(20)}
    assert sum(part not in sizes for part in parts) <= 1
    assert max([0, *(parts.count(size) for size in sizes)]) < SEGMENTS_A_LEVEL


def test_a_sample_tells_how_many_features_documents_have() -> None:
    texts = ["one two three four", "", "one two three four five six"]
    assert plan_similar(10, documents=texts, recipe=Recipe()).features == 3
    assert (
        plan_similar(10, documents=pa.array([[1, 2, 3], [4]], pa.list_(pa.uint64()))).features == 2
    )


def test_numbers_of_features_that_cannot_be_are_refused() -> None:
    for features in (0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match=r"features is .*: use a number from 1"):
            plan_similar(10, features=features)


def test_a_query_costs_more_the_lower_the_similarity_and_the_larger_the_index() -> None:
    def cost(n: int, similarity: float) -> float:
        (added, compacted) = plan_similar(n, similarity)
        assert compacted["search_microseconds"] <= added["search_microseconds"]
        return float(compacted["microseconds"])

    assert cost(10**6, 0.9) < cost(10**6, 0.8) < cost(10**6, 0.5)
    assert cost(10**4, 0.8) < cost(10**6, 0.8) < cost(10**7, 0.8) < 2 * cost(10**6, 0.8)


def test_plans_are_a_table_for_people() -> None:
    head, titles, *rows = str(plan_similar(10_000, 0.7, "dice", features=50)).splitlines()
    assert head == "10,000 documents of 50 features, dice from 0.7"
    assert titles.split()[0] == "form"
    assert [row.split("  ")[0] for row in rows] == ["as added", "compacted"]


def test_texts_that_are_kept_are_counted(tmp_path: Path) -> None:
    """The plan is within half of what the folder has, compacted, of texts of real words."""
    texts = [page.read_text() for page in sorted(GUIDE.glob("*.md"))]
    paragraphs = [each for text in texts for each in text.split("\n\n") if len(each) > 200]
    with DurableIndex.open(tmp_path / "i", similarity=0.8, recipe=Recipe(), store="text") as index:
        index.add(range(len(paragraphs)), paragraphs)
        index.compact()
        stored = index.stats()["content_bytes"] / len(index)
        features = len(index.sets_of(paragraphs).features) / len(paragraphs)
    rows = [plan_similar(1000, features=features, store=store) for store in ("features", "text")]
    plain, kept = (row.to_pylist()[1]["disk_bytes_per_document"] for row in rows)
    assert stored / 1.5 < kept - plain < 1.5 * stored
    assert (
        rows[1].to_pylist()[1]["build_microseconds"] > rows[0].to_pylist()[1]["build_microseconds"]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": -1}, "n is -1"),
        ({"n": True}, "n is True"),
        ({"n": 5, "similarity": 1.5}, "similarity is 1.5"),
        ({"n": 5, "measure": "cos"}, "cos"),
        ({"n": 5, "features": 0}, "features is 0"),
        ({"n": 5, "documents": ["a text"]}, "no recipe"),
        ({"n": 5, "store": "none"}, "store is 'none'"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_similar(**options)
