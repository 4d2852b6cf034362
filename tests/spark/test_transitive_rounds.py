"""The steps of transitive groups on workers, in this process: rounds of pairs, and whole groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hamming.test_clusters import linked, near
from hamming.test_paths_by_distance import paths_by_definition as paths_by_distance
from neardup.similarity.feature_sets import Match, similarities
from neardup.spark.engine import Settings
from neardup.spark.matches import _heavy
from neardup.spark.workers import document_keys, key_pairs
from neardup.spark.workers.near import blocks_of, near_links
from neardup.spark.workers.partition_rows import binary, sets_of
from neardup.spark.workers.whole_groups import decide_groups
from similarity.test_join import brute_force, collections, components_by_definition, matches
from similarity.test_paths_by_features import kept_of, paths_by_definition

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS: Final = 3


def batch_of(documents: list[set[int]]) -> pa.RecordBatch:
    """The documents as the engine has them; codes as `brute_force` compares them."""
    ends = np.append(0, np.cumsum([len(each) for each in documents]))
    features = np.array([x for each in documents for x in sorted(each)], np.uint64)
    codes = np.array([len(each) % 7 for each in documents], np.uint64)
    columns = {
        "number": np.arange(len(documents)),
        "score": np.zeros(len(documents)),
        "within": pa.nulls(len(documents), pa.string()),
        "codes": binary(codes, np.arange(len(documents) + 1)),
        "features": binary(features, ends),
    }
    return pa.record_batch(columns)


def routed(rows: pa.Table, heavy: document_keys.Heavy) -> Iterable[pa.Table]:
    """The postings of each partition."""
    carried = tuple(x for x in rows.column_names if x != "key")
    sent = document_keys.routed(rows.to_batches(), heavy, PARTS, carried)
    table = pa.Table.from_batches(list(sent))
    p = table.column("p").to_numpy()
    return [table.filter(pa.array(p == part)) for part in range(PARTS)]


def listed(parts: Iterable[pa.Table], match: Match, **how: Any) -> set[tuple[int, int]]:
    batches = (
        batch
        for part in parts
        for batch in key_pairs.candidates(part.to_batches(), match, leads=False, **how)
    )
    return {tuple(row.values()) for batch in batches for row in batch.to_pylist()}


@given(collections(), matches, st.integers(1, 4), st.integers(2, 5))
def test_rounds_unite_what_all_pairs_unite(
    documents: list[set[int]], match: Match, most: int, of_key: int
) -> None:
    documents = [set(each) for each in dict.fromkeys(map(frozenset, documents)) if each]
    if not documents:
        return
    batch = batch_of(documents)
    cells = next(document_keys.cells_of([batch], 10)).column("cells")[0].as_py()
    keys = list(document_keys.keys_of([batch], cells, match))
    if not keys:
        return
    rows = pa.Table.from_batches(keys)
    (loads,) = document_keys.loads_of(keys)
    heavy = _heavy(np.frombuffer(loads.column("loads")[0].as_py(), np.int64), of_key)
    every, expected = listed(routed(rows, heavy), match), brute_force(documents, match)
    assert expected <= every
    labels, links, seen = list(range(len(documents))), set(), 0
    while True:
        pairs = listed(routed(rows, heavy), match, most=most, seen=seen)
        more = (key_pairs.MORE, key_pairs.MORE)
        assert pairs - {more} <= every
        assert not seen or all(labels[i] != labels[j] for i, j in pairs - {more})
        links |= pairs & expected
        labels = components_by_definition(len(documents), links)
        if more not in pairs:
            break
        of_rows = np.array(labels)[rows.column("number").to_numpy()]
        rows = rows.select([x for x in rows.column_names if x != "label"])
        rows, seen, most = rows.append_column("label", pa.array(of_rows)), most, 2 * most
    assert labels == components_by_definition(len(documents), expected)


@given(collections(), matches, st.sampled_from(["first", "last"]))
def test_whole_groups_are_decided_by_definition(
    documents: list[set[int]], match: Match, keep: str
) -> None:
    documents = [set(each) for each in dict.fromkeys(map(frozenset, documents)) if each]
    if not documents:
        return
    pairs, batch = brute_force(documents, match), batch_of(documents)
    labels = components_by_definition(len(documents), pairs)
    columns = [x for x in batch.schema.names if x != "within"]
    sent = pa.table(
        {name: batch.column(name) for name in columns}
        | {"label": labels, "lowest": batch.column("number"), "p": np.zeros(len(batch), np.int32)}
    )
    settings = Settings(match, by_features=True, bits=64, keep=keep, policy="components")
    shuffled = sent.take(pa.array(np.random.default_rng(len(sent)).permutation(len(sent))))
    result = pa.Table.from_batches(list(decide_groups(shuffled.to_batches(), settings)))
    result = result.sort_by("number").to_pydict()
    order = list(range(len(documents)))
    kept = kept_of(labels, order[::-1] if keep == "last" else order)
    assert result["kept_by"] == kept
    assert result["label"] == labels
    assert result["via"] == paths_by_definition(kept, pairs)
    _, sets, _ = sets_of(pa.Table.from_batches([batch]))
    reached = similarities(sets, np.arange(len(kept)), np.array(kept), match.measure).tolist()
    own = [None if x == number else reached[number] for number, x in enumerate(kept)]
    assert result["similarity"] == own


@given(
    st.sampled_from([9, 64, 100]),
    st.integers(1, 60),
    st.sampled_from([0, 1, 3, 12]),
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from(["first", "last"]),
    st.integers(0, 2**32),
)
def test_groups_by_distance_are_joined_and_decided_by_definition(
    bits: int, rows: int, distance: int, of_block: int, has_within: bool, keep: str, seed: int
) -> None:
    codes = np.unique(linked(bits, rows, seed), axis=0)
    names = [["en", "de", None][x % 3] if has_within else None for x in range(len(codes))]
    settings = Settings(Match(distance=distance), False, bits, keep, "components", has_within)
    batch = pa.record_batch(
        {
            "number": np.arange(len(codes)),
            "score": np.zeros(len(codes)),
            "within": pa.array(names, pa.string()),
            "codes": binary(codes.reshape(-1), np.arange(len(codes) + 1) * codes.shape[1]),
            "features": binary(np.zeros(0, np.uint64), np.zeros(len(codes) + 1, np.int64)),
        }
    )
    blocks = list(blocks_of([batch], settings, range(distance + 1)))
    (loads,) = document_keys.loads_of(blocks)
    heavy = _heavy(np.frombuffer(loads.column("loads")[0].as_py(), np.int64), of_block)
    parts = routed(pa.Table.from_batches(blocks), heavy)
    found = [x for part in parts for x in near_links(part.to_batches(), settings)]
    links = {tuple(row.values()) for each in found for row in each.to_pylist()}
    places = zip(*np.nonzero(near(codes, distance)), strict=True)
    pairs = {(int(i), int(j)) for i, j in places if names[i] == names[j]}
    labels = components_by_definition(len(codes), pairs)
    assert components_by_definition(len(codes), links) == labels

    columns = {x: batch.column(x) for x in ("number", "score", "codes", "features")}
    sent = pa.table(columns | {"label": labels, "lowest": batch.column("number")})
    sent = sent.append_column("p", pa.array(np.zeros(len(sent), np.int32)))
    table = pa.Table.from_batches(list(decide_groups(sent.to_batches(), settings)))
    order = list(range(len(codes)))
    kept = kept_of(labels, order[::-1] if keep == "last" else order)
    result = table.sort_by("number").to_pydict()
    assert result["kept_by"] == kept
    assert result["via"] == paths_by_distance(codes, kept, distance)
    apart = np.bitwise_count(codes ^ codes[kept]).sum(axis=1, dtype=np.int64).tolist()
    assert result["distance"] == [None if x == i else apart[i] for i, x in enumerate(kept)]
    assert not any(result["similarity"])
