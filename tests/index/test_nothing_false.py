"""What is stored is what it says it is: contents, recipes and times."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import neardup as nd
from neardup.errors import UsageError
from neardup.fingerprinting.fingerprints import feature_hashes
from stories import durable, reopened, small_segments


@pytest.mark.parametrize("kept", ["features", "text"])
def test_fingerprints_alone_are_refused_where_contents_are_kept(kept: str) -> None:
    """Nothing tells what they were made of; the fingerprint itself is not a feature."""
    index = durable(recipe=nd.Recipe(), store=kept)
    codes = nd.fingerprints(["a b c d", "b c d e"])
    for ids, codes_of in [
        (["a", "b"], codes),
        ("a", np.array([5], np.uint64)),
        ("a", 7),
        (["a"], [7]),
    ]:
        with pytest.raises(UsageError, match="pass contents="):
            index.add(ids, codes_of)
    assert len(index) == 0
    assert index.add(["a", "b"], codes, contents=["a b c d", "b c d e"]) == 2
    assert index.add(["c", "d"], ["c d e f", None]) == 1


@pytest.mark.parametrize(("kind", "document"), [({}, 5), ({"similarity": 0.8}, [5])], ids=str)
def test_an_index_with_a_recipe_merges_no_documents_of_an_unknown_one(
    kind: dict[str, float], document: int | list[int]
) -> None:
    """Unless it is told that they are of its own."""
    mine, theirs = nd.Index(recipe=nd.Recipe(), **kind), nd.Index(**kind)
    theirs.add(["a"], [document])
    with pytest.raises(UsageError, match=r"the other none, so nothing says .* foreign=True"):
        mine.merge(theirs)
    assert len(mine) == 0
    mine.merge(theirs, foreign=True)
    assert dict(mine) == dict(theirs)
    theirs.merge(mine)


@pytest.mark.parametrize(("theirs", "mine"), [("text", "text"), ("features", "features"),
                                              ("text", "features"), ("text", "none")])  # fmt: skip
def test_merging_keeps_contents_and_times(
    monkeypatch: pytest.MonkeyPatch, theirs: str, mine: str
) -> None:
    """So a copy that is made by merging expires as the index does."""
    clock = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr("neardup.index.row_writer.time", clock)
    small_segments(monkeypatch)
    old, new = durable(recipe=nd.Recipe(), store=theirs), durable(recipe=nd.Recipe(), store=mine)
    for i in range(50):
        now = 100.0 + i
        old.add(f"d{i}", f"one two three {i}")
    now = 1000.0
    new.add("d3", "something else that is replaced")
    new.merge(old)
    new.commit()
    assert dict(new) == dict(old)
    if mine != "none":
        kept = [new.content("d3"), new.contents(["d30"])[0]]
        texts = ["one two three 3", "one two three 30"]
        want = texts if mine == "text" else [feature_hashes(x, nd.Recipe()) for x in texts]
        assert [list(x) for x in kept] == [list(x) for x in want]
    assert new.expire(130.0) == 30
    assert len(reopened(new)) == 20


def test_what_keeps_less_is_not_merged() -> None:
    """Contents would be missing."""
    full, bare = durable(recipe=nd.Recipe(), store="text"), durable(recipe=nd.Recipe())
    bare.add("a", "one two three four")
    with pytest.raises(UsageError, match="contents would be missing"):
        full.merge(bare)
