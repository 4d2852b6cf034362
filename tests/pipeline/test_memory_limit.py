"""A run stays below its budget, with the same result, and leaves no temporary file behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import ReadOptions
from neardup.errors import DataError
from neardup.kernels.similarity import join_parts
from neardup.kernels.similarity.join_parts import decide_groups
from neardup.pipeline import Limits, Outputs, dedup_files
from neardup.pipeline.run.rule import Choice, Rule
from neardup.similarity import join
from neardup.similarity.feature_sets import FeatureSets, Match
from neardup.similarity.join import similar_components, similar_greedy
from neardup.similarity.spilled import Spill
from suite import JIT, examples, needs_jit

if TYPE_CHECKING:
    from collections.abc import Iterator

linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")

MEASURES = ["jaccard", "cosine", "containment", "dice"]
feature_sets = st.lists(st.sets(st.integers(1, 40), max_size=12), min_size=1, max_size=30)


def sets_of(documents: list[set[int]], spill: Spill | None, groups: Any = None) -> FeatureSets:
    """The sets with features that are spread over the hash range."""
    hashes = np.random.default_rng(5).integers(1, 2**64, 41, np.uint64)
    parts = [np.sort(hashes[sorted(x)]) for x in documents]
    offsets = np.append(0, np.cumsum([len(x) for x in parts])).astype(np.int64)
    features = np.concatenate([np.zeros(0, np.uint64), *parts])
    return FeatureSets(
        features, offsets, np.zeros((len(documents), 1), np.uint64), groups, spill=spill
    )


@settings(max_examples=examples(80, 20))
@given(
    documents=feature_sets,
    similarity=st.sampled_from([0.2, 0.5, 0.8, 1.0]),
    measure=st.sampled_from(MEASURES),
    limit=st.sampled_from([160, 1000, 5000]),
    backwards=st.booleans(),
    several=st.booleans(),
)
def test_an_index_in_parts_gives_the_same_result(
    documents: list[set[int]],
    similarity: float,
    measure: str,
    limit: int,
    backwards: bool,
    several: bool,
) -> None:
    groups = np.arange(len(documents), dtype=np.int32) % 2 if several else None
    match = Match(similarity, measure)
    order = np.arange(len(documents))[:: -1 if backwards else 1]
    whole, cut = (sets_of(documents, spill, groups) for spill in (None, Spill(limit)))
    kept_by = similar_greedy(cut, order, match, 2)
    for column, expected in zip(kept_by, similar_greedy(whole, order, match, 2), strict=True):
        assert column.tolist() == expected.tolist()
    decided: list[int] = []

    def noted(documents: Any, begins: Any, *rest: Any) -> int:
        decided.extend(begins[:-1].tolist())
        return decide_groups(documents, begins, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "CHUNK_FEATURES", 9)
        patch.setattr(join_parts, "decide_groups", noted)
        again = similar_greedy(cut, order, match, 2)
    assert again[0].tolist() == kept_by[0].tolist()
    assert len(decided) == len(set(decided))
    labels = similar_components(cut, match, 2).tolist()
    assert labels == similar_components(whole, match, 2).tolist()


MEMORY = 8 << 20
ROOM = 160 << 20
"""Beside the budget: queued text, the parts in hand and threads' stacks; whatever the corpus."""
A_DOCUMENT = 300
COUNT = 32_000

LIMITED = """
import resource, sys
from neardup.documents import ReadOptions
from neardup.pipeline import Choice, Limits, Outputs, Rule, dedup_files
few, path, target, tmp, memory, room = sys.argv[1:]
rule, choice = Rule(), Choice()
def run(source, nbytes):
    using = Limits(nbytes, tmp, workers=2)
    return dedup_files([source], Outputs(target), rule, choice, ReadOptions(), using)
run(few, 1 << 30)
now = next(x for x in open("/proc/self/status") if x.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (1024 * int(now.split()[1]) + int(room),) * 2)
found = run(path, int(memory))
print(found.summary.read, found.summary.dropped)
"""


def run_limited(
    folder: Path, path: Path, memory: int, room: int
) -> subprocess.CompletedProcess[str]:
    """Run in a process that may take `room` bytes more than after a small run."""
    few = folder / "few.jsonl"
    few.write_bytes(b"".join(corpus(40, seed=3)))
    spill = folder / "spill"
    spill.mkdir(exist_ok=True)
    arguments = [few, path, folder / "out.jsonl", spill, memory, room]
    return subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"},
    )


def corpus(count: int, seed: int = 0, words: int = 400) -> Iterator[bytes]:
    """JSON lines of about 2.4 kB, of which one in eight is a near-duplicate of one before."""
    rng = np.random.default_rng(seed)
    last = rng.integers(0, 1 << 20, words)
    for i in range(count):
        if i % 8 == 7:
            last = last.copy()
            last[words // 2] = i
        else:
            last = rng.integers(0, 1 << 20, words)
        yield b'{"text": "%s"}\n' % b" ".join(b"%d" % x for x in last.tolist())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of ten times the memory; the long form makes both larger."""
    scale = int(os.environ.get("NEARDUP_MEMORY_SCALE", "1"))
    path = tmp_path_factory.mktemp("large") / "docs.jsonl"
    with path.open("wb") as file:
        file.writelines(corpus(COUNT * scale))
    assert path.stat().st_size >= 10 * MEMORY * scale
    return path


@needs_jit
@linux
def test_a_corpus_of_ten_times_the_memory_stays_below_it(large: Path, tmp_path: Path) -> None:
    scale = int(os.environ.get("NEARDUP_MEMORY_SCALE", "1"))
    memory, count = MEMORY * scale, COUNT * scale
    process = run_limited(tmp_path, large, memory, ROOM + memory + A_DOCUMENT * count)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == [str(count), str(count // 8)]
    assert list((tmp_path / "spill").iterdir()) == []


@needs_jit
@linux
def test_the_limit_is_one_that_an_unbounded_run_passes(large: Path, tmp_path: Path) -> None:
    scale = int(os.environ.get("NEARDUP_MEMORY_SCALE", "1"))
    room = ROOM + MEMORY * scale + A_DOCUMENT * COUNT * scale
    process = run_limited(tmp_path, large, 64 << 30, room)
    assert process.returncode == 1
    signs = ("MemoryError", "Cannot allocate memory", "can't start new thread")
    assert any(words in process.stderr for words in signs), process.stderr


def neardup(path: Path, folder: Path) -> list[str]:
    """The command over a file, with spill files in a folder."""
    code = "import sys; from neardup.cli import main; sys.argv[0] = 'neardup'; main()"
    target = str(folder / "out.jsonl")
    more = ["-o", target, "--memory", "64M", "--tmp", str(folder / "spill")]
    return [sys.executable, "-c", code, "dedup", str(path), *more]


def is_spilling(process: subprocess.Popen[Any], folder: Path) -> bool:
    """Whether a process has a file in a folder open, if only one without a name."""
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            if str(link.readlink()).startswith(f"{folder}/"):
                return True
        except OSError:  # closed meanwhile
            continue
    return False


@needs_jit
@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_no_spill_file_and_the_next_run_is_right(
    large: Path, tmp_path: Path, number: signal.Signals
) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("this process ignores the signal, and so do those that it starts")
    spill = tmp_path / "spill"
    spill.mkdir()
    with subprocess.Popen(neardup(large, tmp_path), stderr=subprocess.PIPE) as process:
        while process.poll() is None and not is_spilling(process, spill):
            time.sleep(0.005)
        process.send_signal(number)
        process.communicate()
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert list(spill.iterdir()) == []
    assert [x.name for x in tmp_path.iterdir()] == ["spill"]
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(corpus(16)))
    subprocess.run(neardup(few, tmp_path), check=True, capture_output=True)
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 14
    assert list(spill.iterdir()) == []


def test_a_failure_leaves_no_spill_file(tmp_path: Path) -> None:
    path, spill = tmp_path / "docs.jsonl", tmp_path / "spill"
    spill.mkdir()
    path.write_bytes(b"".join(corpus(64, words=40)) + b"{bad\n")
    with pytest.raises(DataError):
        dedup_files(
            [str(path)],
            Outputs(str(tmp_path / "out.jsonl")),
            Rule(),
            Choice(),
            ReadOptions(batch_bytes=4096),
            Limits(1 << 10, str(spill)),
        )
    assert list(spill.iterdir()) == []
    assert sorted(x.name for x in tmp_path.iterdir()) == ["docs.jsonl", "spill"]


def test_a_tiny_budget_changes_no_result(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(b"".join(corpus(200 if JIT else 24, words=60)))
    for policy in ("greedy", "components"):
        expected = nd.dedup(path, similarity=0.6, policy=policy)
        rules = Rule(0.6), Choice(policy=policy)
        summary = dedup_files([str(path)], Outputs(), *rules, ReadOptions(), Limits(1 << 9))
        assert summary.kept.tolist() == expected.kept.tolist()
        assert summary.duplicates.equals(expected.duplicates)
