"""Features in memory, and in files that threads fill, are those that were appended, in order."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import FileError
from neardup.runtime.storage import mapped_writes
from neardup.runtime.storage import spool as module
from neardup.runtime.storage.append_file import AppendFile
from neardup.runtime.storage.spool import FeatureSpool
from suite import examples

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = mapped_writes.mmap.ALLOCATIONGRANULARITY // 8
needs_fallocate = pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="not here")


def arrays(sizes: list[int]) -> list[Any]:
    starts = np.cumsum([0, *sizes])
    return [np.arange(x, x + size, dtype=np.uint64) for x, size in zip(starts, sizes, strict=False)]


@settings(max_examples=examples(60, 20), deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 7, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE]), max_size=12),
    limit=st.sampled_from([0, 8 * PAGE - 8, 8 * PAGE, 1 << 40]),
    later=st.integers(0, 12),
)
def test_what_is_appended_is_there_in_its_order(sizes: list[int], limit: int, later: int) -> None:
    with pytest.MonkeyPatch.context() as patch:  # edges of pieces and of maps in a few pages
        patch.setattr(module, "_PIECE_BYTES", 8 * PAGE + 16)
        patch.setattr(mapped_writes, "_LEAST_BYTES", 8 * PAGE)
        patch.setattr(mapped_writes, "_MOST_BYTES", 32 * PAGE)
        with FeatureSpool(limit) as spool:
            for i, part in enumerate(arrays(sizes)):
                if i == later:  # as documents of an index follow those of the run
                    assert spool.finish().tolist() == list(range(sum(sizes[:i])))
                spool.append(part)
            assert spool.on_disk == (8 * sum(sizes) > limit)
            assert spool.finish().tolist() == list(range(sum(sizes)))


@settings(max_examples=examples(30, 10), deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 7, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE]), max_size=12),
    limit=st.sampled_from([0, 8 * PAGE, 40 * PAGE, 1 << 40]),
    is_kept=st.booleans(),
)
def test_threads_that_copy_later_change_nothing(
    sizes: list[int], limit: int, is_kept: bool
) -> None:
    """What is taken in order may be copied in any order, also while memory grows."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(module, "_PIECE_BYTES", 8 * PAGE)
        patch.setattr(module, "_FIRST_BYTES", 8)
        patch.setattr(mapped_writes, "_LEAST_BYTES", 8 * PAGE)
        kept = AppendFile(Path(folder, "features")) if is_kept else None
        with FeatureSpool(limit, kept=kept) as spool, ThreadPoolExecutor(3) as pool:
            for number, part in enumerate(arrays(sizes)):
                rest = spool.take(part)
                if rest is not None:
                    pool.submit(late, rest, 0.001 * (number % 3))
            pool.shutdown()
            assert spool.finish().tolist() == list(range(sum(sizes)))


def late(work: Callable[[], None], seconds: float) -> None:
    time.sleep(seconds)
    work()


@needs_fallocate
@pytest.mark.parametrize("room", [0, 1 << 20])
def test_a_full_disk_is_an_error_and_no_end_of_the_process(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocate = os.posix_fallocate

    def full(file: int, begin: int, nbytes: int) -> None:
        if begin + nbytes > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        allocate(file, begin, nbytes)

    class Full:
        def __init__(self, file: Any) -> None:
            self.fileno, self.close = file.fileno, file.close

        def write(self, _: Any) -> None:
            full(0, room, 1)

    make = module.temporary_file
    monkeypatch.setattr(module, "temporary_file", lambda *given: Full(make(*given)))
    monkeypatch.setattr(os, "posix_fallocate", full)
    first, second = arrays([room // 8, 1])
    with FeatureSpool(0) as spool:
        spool.append(first)
        with pytest.raises(FileError, match="temporary features"):
            spool.append(second)


def test_where_no_room_can_be_taken_features_are_written_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with FeatureSpool(8) as spool:
        for part in arrays([1, 2, PAGE]):
            spool.append(part)
        assert spool.on_disk
        assert spool.finish().tolist() == list(range(3 + PAGE))


def test_features_follow_those_of_a_kept_file(tmp_path: Path) -> None:
    for first in (0, 3):
        kept = AppendFile(tmp_path / "features")
        with FeatureSpool(0, kept=kept) as spool:
            spool.append(np.arange(first, first + 3, dtype=np.uint64))
            assert spool.finish().tolist() == list(range(first + 3))
    assert (tmp_path / "features").stat().st_size == 8 * 6
