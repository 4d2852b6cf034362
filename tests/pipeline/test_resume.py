"""A run that was killed at any moment goes on, and its result is that of a run that was not."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neardup as nd
import neardup.pipeline.run.read_documents
import neardup.pipeline.run.run_folder
from faults import REMOVALS, Faults, KilledError
from mode import Mode
from neardup.documents import ReadOptions
from neardup.documents.files.output_set import OutputSet
from neardup.errors import DataError, NeardupError, UsageError
from neardup.pipeline import Limits, Outputs, dedup_files
from neardup.pipeline.run.decision import Decision, References, decision_of, write_decision
from neardup.pipeline.run.run_folder import RunFolder, _line, _records
from neardup.pipeline.run.run_outputs import ReportOptions
from suite import examples

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("NEARDUP_RESUME_ROUNDS", "1"))

words = st.sampled_from(["a", "b", "c", "the", "é"])
documents = st.lists(st.lists(words, max_size=6).map(" ".join), min_size=1, max_size=12)
recipes = st.builds(nd.Recipe, ngram=st.just(1), bits=st.sampled_from([12, 70]))
matchings = st.one_of(
    st.builds(Mode.of, distance=st.integers(0, 6), recipe=recipes),
    st.builds(Mode.of, similarity=st.sampled_from([0.3, 0.8]), recipe=recipes),
    st.builds(
        Mode.of,
        recipe=recipes,
        policy=st.just("components"),
        keep=st.sampled_from(["last", "longest", "max:n"]),
    ),
)


@pytest.fixture(autouse=True)
def _keep_often_and_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neardup.pipeline.run.read_documents, "SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # only a power cut could tell, and it is slow
    monkeypatch.setattr(os, "sync", lambda: None)


@dataclasses.dataclass
class Case:
    """Inputs, a command over them, and the notes of its last run."""

    folder: Path
    mode: Mode
    read: ReadOptions
    report: ReportOptions | None = None
    notes: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, folder: Path, texts: list[str], mode: Mode) -> Case:
        cut = len(texts) // 2
        lines = [json.dumps({"text": x, "n": i % 3}).encode() + b"\n" for i, x in enumerate(texts)]
        (folder / "one.jsonl").write_bytes(b"".join(lines[:cut]) + b"{bad\n")
        with gzip.open(folder / "two.jsonl.gz", "wb") as packed:
            packed.write(b"".join(lines[cut:]))
        read = ReadOptions(skip_errors=True, batch_bytes=30, number=mode.choice.number)
        return cls(folder, mode, read)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def run(
        self, resume: bool = True, workers: int | None = None, **changes: Any
    ) -> dict[str, bytes]:
        """What the outputs hold after a run; they are removed."""
        inputs = [str(self.folder / name) for name in ("one.jsonl", "two.jsonl.gz")]
        target = self.folder / "out"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        names = ("out.jsonl", "dups.jsonl", "clusters.csv", "rejects.jsonl")
        state = str(self.state) if resume else None
        result = dedup_files(
            inputs,
            Outputs(*(str(target / name) for name in names), report=self.report, resume=state),
            *self.mode.replace(**changes).both,
            self.read,
            Limits(1 << 20, None, workers),
        )
        self.notes = list(result.summary.notes)
        return {path.name: path.read_bytes() for path in target.iterdir()}

    def run_killed(self, at: int) -> int:
        """Run until the n-th change of the state; how many changes were mode for."""
        faults = Faults(at)
        with pytest.MonkeyPatch.context() as patch:
            faults.replace_os(patch)
            try:
                self.run()
            except KilledError:
                return faults.calls
        return faults.calls


TEXTS = ["a b c", "a b c", "the a", "", "c c é", "é c", "b the é", "a b c é"]


@settings(max_examples=examples(60))
@given(
    texts=documents,
    mode=matchings,
    kills=st.lists(st.integers(1, 120), min_size=1, max_size=4),
)
@example(TEXTS, Mode.of(), [40, 3, 1])
def test_a_run_killed_at_any_write_goes_on_with_the_same_result(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], mode: Mode, kills: list[int]
) -> None:
    case = Case.of(tmp_path_factory.mktemp("run"), texts, mode)
    expected = case.run(resume=False)
    for at in kills:
        case.run_killed(at)
    assert case.run() == expected
    assert not case.state.exists()


def test_every_single_kill_point_is_survived(tmp_path: Path) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of(recipe=nd.Recipe(ngram=1)))
    expected = case.run(resume=False)
    whole = case.run_killed(10**9)
    assert whole > 40
    for at in range(1, whole + 1):
        case.run_killed(at)
        assert case.run() == expected, f"killed at call {at} of {whole}"


def test_an_interrupt_withdraws_only_what_its_own_run_published(tmp_path: Path) -> None:
    """What a run before gave its name stays there, and stays known, or nobody could go on."""
    outputs = OutputSet()
    facts = dict.fromkeys(("state", "version", "digest", "index"), "") | {
        "options": {},
        "inputs": [],
    }

    def leave(error: type[BaseException]) -> bool:
        with RunFolder(str(tmp_path / "state")) as folder:
            folder.begin(facts)
            was_publishing = folder.was_publishing
            with pytest.MonkeyPatch.context() as patch, contextlib.suppress(error):
                if error is KilledError:
                    patch.setattr(OutputSet, "is_committed", True)  # nothing is written down
                with folder.publishing(outputs):
                    raise error
        return was_publishing

    ends = [KeyboardInterrupt, KilledError, KeyboardInterrupt, KeyboardInterrupt]
    assert [leave(end) for end in ends] == [False, False, True, True]


def test_what_was_fingerprinted_is_not_fingerprinted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of(distance=0))
    case.run_killed(30)
    with RunFolder(str(case.state)) as folder:
        count = folder.files["counts"].nbytes // 8
    assert 0 < count < len(TEXTS)
    seen: list[int] = []
    add = neardup.fingerprinting.fingerprints.Fingerprinter.add
    monkeypatch.setattr(
        neardup.fingerprinting.fingerprints.Fingerprinter,
        "add",
        lambda s, x: (seen.append(len(x)), add(s, x))[1],
    )
    case.run()
    assert sum(seen) <= len(TEXTS) - count + 1
    assert case.notes == [f"resumed from {case.state}: {count} documents were fingerprinted before"]


def test_a_report_is_refused_where_no_features_were_saved(tmp_path: Path) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of(distance=0))
    case.run_killed(30)
    numbers = tmp_path / "numbers.json"
    case.report = ReportOptions(str(tmp_path / "report.html"), summary=str(numbers))
    with pytest.raises(
        UsageError, match=r"state has fingerprints alone of .* --report or --update"
    ):
        case.run()
    assert not numbers.exists()
    shutil.rmtree(case.state)
    case.run_killed(30)
    outputs, expected = [(case.run(resume), numbers.read_bytes()) for resume in (True, False)]
    assert outputs == expected


def test_a_finished_matching_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of())
    expected = case.run(resume=False)
    whole = case.run_killed(10**9)

    case.run_killed(whole - REMOVALS - 1)
    assert b'"grouped"' in (case.state / "journal").read_bytes()
    monkeypatch.setattr("neardup.pipeline.deduplicate.match", None)
    assert case.run() == expected
    assert any(" were fingerprinted, and matched before" in note for note in case.notes)


@example(kill=79, name="journal", place=0.9999999999999999, bit=0)
@settings(max_examples=examples(60))
@given(
    kill=st.integers(20, 110),
    name=st.sampled_from(["journal", "features", "fingerprints", "counts", "grouping"]),
    place=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_a_flipped_bit_is_found_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, kill: int, name: str, place: float, bit: int
) -> None:
    """By the file it is in; a journal's last line counts as cut off, so others may disagree."""
    case = Case.of(tmp_path_factory.mktemp("run"), TEXTS, Mode.of(recipe=nd.Recipe(ngram=1)))
    expected = case.run(resume=False)
    case.run_killed(kill)
    path = case.state / name
    data = bytearray(path.read_bytes() if path.exists() else b"")
    if not data:
        return
    data[int(place * len(data))] ^= 1 << bit
    path.write_bytes(data)
    actual, complaint = None, ""
    try:
        actual = case.run()
    except DataError as error:
        complaint = str(error)
    damaged = r"\S+" if path.name == "journal" else re.escape(str(path))
    assert actual == expected or re.match(rf".*{damaged} is damaged: ", complaint)
    assert actual == expected or f"; remove {case.state} to start again" in complaint


def killed(tmp_path: Path) -> Case:
    """A case with two checkpoints or more."""
    case = Case.of(tmp_path, TEXTS, Mode.of(similarity=0.8))
    case.run_killed(40)
    return case


def test_a_flipped_byte_of_the_features_is_named(tmp_path: Path) -> None:
    case = killed(tmp_path)
    path = case.state / "features"
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"features is damaged: bytes 0 to .* another checksum"):
        case.run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"similarity": 0.7}, "an option changed .*: similarity was 0.8, now it is 0.7"),
        ({"keep": "last"}, "keep was first, now it is last"),
        ({"policy": "components"}, "policy was greedy, now it is components"),
        ({"recipe": nd.Recipe(ngram=2)}, "the recipe changed .*: ngram was 3, now it is 2"),
        ({"similarity": None, "distance": 3}, "distance was not given, now it is 3"),
    ],
)
def test_a_changed_option_or_recipe_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    case = killed(tmp_path)
    with pytest.raises(UsageError, match=f"{message}; .*remove .*state to start again"):
        case.run(**changes)
    assert case.run() == case.run(resume=False)


def test_threads_and_memory_may_change(tmp_path: Path) -> None:
    case = killed(tmp_path)
    assert case.run(workers=1) == case.run(resume=False)


def test_a_changed_input_is_named(tmp_path: Path) -> None:
    case = killed(tmp_path)
    path = tmp_path / "one.jsonl"
    with path.open("ab") as more:
        more.write(b'{"text": "more"}\n')
    with pytest.raises(
        UsageError, match=r"one\.jsonl changed since .*: it had \d+ bytes of .*, now \d+ bytes"
    ):
        case.run()


def test_an_input_that_changed_behind_its_size_and_time_is_noticed(tmp_path: Path) -> None:
    case = killed(tmp_path)
    path = tmp_path / "one.jsonl"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"a b c", b"a c b", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UsageError, match=r"an input changed since .* at about document 1: "):
        case.run()


def test_another_list_of_inputs_is_named(tmp_path: Path) -> None:
    path, state = tmp_path / "a.jsonl", tmp_path / "state"
    other = tmp_path / "b.jsonl"
    for name in (path, other):
        name.write_bytes(b'{"text": "a"}\n')
    target = tmp_path / "none" / "out.jsonl"  # there is no such folder, so that the run fails
    with pytest.raises(NeardupError):
        nd.dedup([path, other], target, resume=state)
    with pytest.raises(UsageError, match=r"b\.jsonl was an input of the run that left"):
        nd.dedup([path], target, resume=state)
    with pytest.raises(UsageError, match="in another order"):
        nd.dedup([other, path], target, resume=state)
    (tmp_path / "c.jsonl").write_bytes(b"")
    with pytest.raises(UsageError, match=r"c\.jsonl is not an input of the run that left"):
        nd.dedup([path, other, tmp_path / "c.jsonl"], target, resume=state)


def test_the_folder_of_an_older_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(neardup.pipeline.run.run_folder, "VERSION", 1)
        case = killed(tmp_path)
    with pytest.raises(UsageError, match=r"another version \(its format 1, now 2\): .*again"):
        case.run()


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("more", [(), ("similarity",), ("via",), ("similarity", "via")])
def test_a_decision_is_read_as_it_was_written(rows: int, more: tuple[str, ...]) -> None:
    arrays = {"kept_by": np.arange(rows), "label": np.zeros(rows, np.int64)}
    extra = {"similarity": np.linspace(0, 1, rows), "via": np.arange(rows)[::-1]}
    arrays |= {name: extra[name] for name in more}
    codes = np.arange(6, dtype=np.uint64).reshape(3, 2)
    for references in (None, References(pa.array(["a", "", "é"]), codes)):
        file = io.BytesIO()
        write_decision(Decision(**{"similarity": None} | arrays, references=references), file)
        decision = decision_of(file.getvalue())
        for name in ("kept_by", "label", "similarity", "via"):
            assert np.array_equal(getattr(decision, name), arrays.get(name)), name
        assert (decision.references is None) == (references is None)
        if decision.references is not None:
            assert decision.references.ids.to_pylist() == ["a", "", "é"]
            assert np.array_equal(decision.references.codes, codes)


def test_two_runs_on_one_folder_are_refused(tmp_path: Path) -> None:
    case = killed(tmp_path)
    message = rf"in use by another run \(process {os.getpid()}\)"
    with RunFolder(str(case.state)), pytest.raises(UsageError, match=message):
        case.run()
    case.run()


def test_a_folder_that_cannot_be_opened_is_not_left_locked(tmp_path: Path) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of())
    (case.state / "features").mkdir(parents=True)
    with pytest.raises(NeardupError, match=r"cannot open .*features"):
        case.run()
    (case.state / "features").rmdir()
    assert case.run() == case.run(resume=False)


@pytest.mark.parametrize("before", [True, False])
def test_a_report_may_count_by_a_field_that_the_killed_run_did_not_read(
    tmp_path: Path, before: bool
) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of(similarity=0.8))
    report = ReportOptions(str(tmp_path / "report.html"), source="n")
    case.report = report if before else None
    case.run_killed(40)
    case.report = None if before else report
    outputs = case.run()
    assert "fingerprinted before" in case.notes[0]
    assert outputs == case.run(resume=False)


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    case = Case.of(tmp_path, TEXTS, Mode.of())
    case.state.mkdir()
    (case.state / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds 'thesis\.txt': name a new folder"):
        case.run()
    assert [path.name for path in case.state.iterdir()] == ["thesis.txt"]


def test_documents_in_memory_have_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="resume requires files"):
        nd.dedup(["a", "b"], resume=tmp_path / "state")


@pytest.mark.parametrize("at", range(1, 4))
def test_a_folder_of_text_files_killed_while_it_appears_is_whole(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, out, state = tmp_path / "docs", tmp_path / "out", tmp_path / "state"
    docs.mkdir()
    for i, text in enumerate(["a b c d", "a b c d", "e f g h"]):
        (docs / f"{i}.txt").write_text(text)
    whole = Faults(10**9)
    with monkeypatch.context() as patch:
        whole.replace_os(patch)
        nd.dedup(docs, f"{out}/", resume=state)
    shutil.rmtree(out)

    with monkeypatch.context() as patch:
        Faults(whole.calls - REMOVALS - 2 + at).replace_os(patch)
        with pytest.raises(KilledError):
            nd.dedup(docs, f"{out}/", resume=state)
    shutil.copytree(state, copied := tmp_path / "copied")
    nd.dedup(docs, f"{out}/", resume=state)
    assert sorted(path.name for path in out.iterdir()) == ["0.txt", "2.txt"]
    assert not state.exists()

    (out / "0.txt").write_text("mine")  # it only looks like the folder of this run
    with pytest.raises(UsageError, match="out/ is not empty"):
        nd.dedup(docs, f"{out}/", resume=copied)
    assert (out / "0.txt").read_text() == "mine"
    nd.dedup(docs, f"{tmp_path}/other/", resume=copied)
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["0.txt", "2.txt"]


PROGRAM = (
    "import sys; from neardup.pipeline.run import read_documents as r; r.SECONDS = 0.0;"
    "from neardup.cli import main; sys.argv[0] = 'neardup'; main()"
)


class Process:
    """`neardup dedup` as a process of its own, over a file that takes it a moment."""

    def __init__(self, folder: Path, count: int, seed: int) -> None:
        rng = random.Random(seed)
        vocabulary = [f"w{i}" for i in range(5000)]
        path = folder / "in.jsonl.gz"
        with gzip.open(path, "wt", compresslevel=1) as lines:
            texts: list[str] = []
            for i in range(count):
                text = " ".join(rng.choices(vocabulary, k=300))
                if texts and rng.random() < 0.3:
                    text = rng.choice(texts[-100:])
                texts.append(text)
                lines.write(json.dumps({"id": i, "text": text}) + "\n")
        mode = ["--distance", "3"] if seed % 2 else ["--policy", "components"][: 2 * (seed % 4 > 1)]
        self.state, self.target = folder / "state", folder / "out"
        self._tmp = folder / "tmp"
        self._tmp.mkdir()
        self._command = [
            *(sys.executable, "-c", PROGRAM, "dedup", str(path), "--tmp", str(self._tmp)),
            *("-o", str(self.target / "kept.jsonl"), "--id", "id", *mode),
            *("--duplicates", str(self.target / "dups.jsonl")),
        ]
        self.target.mkdir()

    def start(self, resume: bool = True) -> subprocess.Popen[str]:
        more = ["--resume", str(self.state)] if resume else []
        return subprocess.Popen([*self._command, *more], text=True, stderr=subprocess.PIPE)

    def finish(self, resume: bool = True) -> dict[str, bytes]:
        """Run to the end; what the outputs hold, which are removed, and nothing else is left."""
        process = self.start(resume)
        _, complaints = process.communicate()
        assert process.returncode == 0, complaints
        files = {path.name: path.read_bytes() for path in self.target.iterdir()}
        assert sorted(files) == [".dups.jsonl.options.json", "dups.jsonl", "kept.jsonl"]
        assert list(self._tmp.iterdir()) == []
        for name in files:
            (self.target / name).unlink()
        return files

    def kill(self, seconds: float) -> bool:
        """Kill a run some time after its state appeared; whether that was before its end."""
        with self.start() as process:
            self._wait(process)
            time.sleep(seconds)
            process.kill()
        return process.returncode == -signal.SIGKILL

    def time_with_state(self) -> float:
        """Seconds from the appearance of the state to the end of a whole run."""
        with self.start() as process:
            self._wait(process)
            begun = time.monotonic()
            process.wait()
        return time.monotonic() - begun

    def _wait(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None and not (self.state / "lock").exists():
            time.sleep(0.002)


def test_a_process_killed_at_random_moments_goes_on_with_the_same_result(tmp_path: Path) -> None:
    rounds = 0
    kills = 0
    for seed in range(-(-ROUNDS // 10)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        process = Process(folder, 4000 if ROUNDS < 10 else 20_000, seed)
        expected = process.finish(resume=False)
        whole = process.time_with_state()
        rng = random.Random(seed)
        for _ in range(min(10, ROUNDS - rounds)):
            for _ in range(rng.choice([1, 1, 2, 3])):
                kills += process.kill(rng.uniform(0, whole))
            assert process.finish() == expected
            assert not process.state.exists()
            rounds += 1
    assert rounds == ROUNDS
    assert kills <= 3 * rounds
    (tmp_path / "rounds.txt").write_text(f"{rounds} rounds, {kills} kills before the end\n")


def test_a_damaged_line_of_the_journal_has_its_number(tmp_path: Path) -> None:
    whole, path = [_line({"number": n}) for n in range(3)], tmp_path / "journal"
    assert [each["number"] for each in _records(path, b"".join(whole))] == [0, 1, 2]
    damaged = b"".join([whole[0], whole[1].replace(b"1}", b"7}"), whole[2]])
    with pytest.raises(DataError, match="line 2 has another checksum"):
        list(_records(path, damaged))
