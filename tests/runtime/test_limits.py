"""What a container allows is read from its control groups, of either version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from neardup.runtime import free_memory, threads
from neardup.runtime.limits import allowed_memory, allowed_processors, unused_memory

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30


def files(root: Path, contents: dict[str, str]) -> Path:
    """A file system with these files."""
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Version 2: a pod of 2 GiB with a container of "max" in it, one and a half processors."""
    return files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pod/container",
            "sys/fs/cgroup/pod/memory.max": f"{2 * GIB}",
            "sys/fs/cgroup/pod/memory.current": f"{GIB}",
            "sys/fs/cgroup/pod/memory.stat": f"anon {GIB // 4}\ninactive_file {GIB // 2}",
            "sys/fs/cgroup/pod/container/memory.max": "max",
            "sys/fs/cgroup/pod/container/cpu.max": "150000 100000",
            "sys/fs/cgroup/pod/cpu.max": "max 100000",
        },
    )


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Version 1, as Docker mounts it: the container sees its group as the top."""
    return files(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB // 2}",
            "sys/fs/cgroup/memory/memory.stat": f"total_inactive_file {GIB // 8}",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )


def test_the_smallest_limit_of_the_groups_above_counts(second: Path) -> None:
    assert allowed_memory(second) == 2 * GIB
    assert unused_memory(second) == 2 * GIB - GIB // 2
    assert allowed_processors(second) == 2


def test_the_first_version_is_read_as_well(first: Path) -> None:
    assert allowed_memory(first) == GIB
    assert unused_memory(first) == GIB - GIB // 2 + GIB // 8
    assert allowed_processors(first) == 1


def test_without_limits_there_are_none(tmp_path: Path) -> None:
    assert (allowed_memory(tmp_path), unused_memory(tmp_path)) == (None, None)
    assert allowed_processors(tmp_path) is None
    unlimited = files(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n1:cpu:/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2**63 - 4096),
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )
    assert (allowed_memory(unlimited), allowed_processors(unlimited)) == (None, None)


def test_defaults_stay_within_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "allowed_memory", lambda: 512 << 20)
    monkeypatch.setattr(free_memory, "unused_memory", lambda: 100 << 20)
    monkeypatch.setattr(threads, "_quota", lambda: 1)
    assert free_memory.default_memory() == 256 << 20
    assert free_memory.free_memory() <= 100 << 20
    assert threads.worker_count(None) == 1
    assert threads.worker_count(3) == 3
