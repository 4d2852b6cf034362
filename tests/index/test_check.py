"""What a check of a folder finds where every checksum holds: rows that contradict each other.

No program of ours writes that; the test puts it between the log and the check.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

import neardup as nd
from neardup.index.durable.log_reading import Reading
from stories import durable

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.durable.log_entries import Manifest
    from neardup.index.durable.log_reading import Changes

TEXTS: Final = [f"the text of number {number} and its words" for number in range(40)]


@pytest.fixture
def index() -> nd.DurableIndex:
    """Two files, then rows that only the log has; each with its text."""
    index = durable(recipe=nd.Recipe(), store="text")
    for first in (0, 10):
        index.add(range(first, first + 10), TEXTS[first : first + 10])
        index.commit()
        index._folder.flush_now()  # noqa: SLF001 - a file of its own
    index.add(range(20, 25), TEXTS[20:25])
    index.commit()
    return index


def with_manifest(change: Callable[[Manifest], dict[str, Any]]) -> Callable[[Changes], Changes]:
    """A change of the manifest alone."""

    def changed(changes: Changes) -> Changes:
        assert changes.manifest is not None
        return replace(changes, manifest=replace(changes.manifest, **change(changes.manifest)))

    return changed


def with_record(**fields: Any) -> Callable[[Changes], Changes]:
    """A change of the one record."""
    return lambda changes: replace(changes, records=[replace(changes.records[0], **fields)])


WRONG: Final[dict[str, Callable[[Changes], Changes]]] = {
    "segments overlap": with_manifest(lambda manifest: {"files": manifest.files[::-1]}),
    "the log goes on at row 20, not 25": with_manifest(lambda _: {"next": 25}),
    "does not hold the rows that the index names": with_manifest(
        lambda manifest: {"files": (replace(manifest.files[0], last=8), *manifest.files[1:])}
    ),
    "is not the file that the index names": with_manifest(
        lambda manifest: {"files": (replace(manifest.files[0], checksum=""), *manifest.files[1:])}
    ),
    "is missing, but the index names it": with_manifest(
        lambda manifest: {"files": (replace(manifest.files[0], name="gone"), *manifest.files[1:])}
    ),
    "an id is stored twice": with_record(ids=pa.array([20, 21, 3, 23, 24])),
    "5 contents belong to no document": lambda changes: replace(changes, records=[]),
}


def test_a_sound_index_has_no_problem(index: nd.DurableIndex) -> None:
    assert len(index._source.current().segments) == 2  # noqa: SLF001 - what the cases below take
    assert index.check() == []


@pytest.mark.parametrize("problem", WRONG)
def test_rows_that_contradict_each_other_are_named(
    problem: str, index: nd.DurableIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reading.changes
    monkeypatch.setattr(Reading, "changes", lambda *given: WRONG[problem](read(*given)))
    problems = index.check()
    assert sum(problem in each for each in problems) == 1, problems
    assert all(str(index.path) in each and "\n" not in each for each in problems)


def test_a_commit_during_the_check_is_no_damage(
    index: nd.DurableIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reading.changes

    def changes(*given: Any) -> Changes:
        result = read(*given)
        monkeypatch.undo()
        index.add(30, TEXTS[30])
        index.commit()
        return result

    monkeypatch.setattr(Reading, "changes", changes)
    assert index.check() == []
    assert 30 in index
