"""Hostile names, links and moments on an engine: outputs and errors as on one machine."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

import neardup as nd
from neardup import spark
from neardup.documents import ReadOptions
from neardup.pipeline import Limits, Outputs, dedup_files
from neardup.pipeline.run.rule import Choice, Rule
from neardup.spark.engine_session import check_master
from neardup.spark.workers.file_inputs import Folder
from test_paths import Listing

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RECORDS: Final = b'{"text": "one two three four"}\n{"text": "one two three four"}\n'
EVIL: Final = "a\x1b[2Jb\u202ec\nneardup: all is well\x07\x9b31m"
NAMES: Final = [
    "new\nline", "\x1b[2Jescape", "\u202eright", "back\\slash", "caf\udce9", "http:", "star*[a]?",
    "neardup.errors.TYPE_CHECKING: x", " space ", "-dash", "per%41cent#",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        check_master("sail")
    except nd.UsageError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()


def here(outputs: Outputs, *, skip: bool = False) -> Any:
    read = ReadOptions(skip_errors=skip)
    return dedup_files(["in"], outputs, Rule(), Choice(), read, Limits(1 << 26)).summary


def there(outputs: Outputs, *, skip: bool = False) -> Any:
    return spark.dedup_files(["in"], outputs, Rule(), Choice(), ReadOptions(skip_errors=skip))


def written(run: Callable[..., Any]) -> dict[str, bytes]:
    """Every file of a run, which are then removed."""
    run(Outputs("out/", "d.jsonl", "c.csv", "r.jsonl"), skip=True)
    paths = [Path(x) for x in ("d.jsonl", "c.csv", "r.jsonl", ".d.jsonl.options.json")]
    paths += sorted(path for path in Path("out").rglob("*") if path.is_file())
    files = {str(path): path.read_bytes() for path in paths}
    shutil.rmtree("out")
    for path in paths[:4]:
        path.unlink()
    assert os.listdir() == ["in"]  # noqa: PTH208
    return files


@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_whatever_files_are_called_the_outputs_are_those_of_one_machine(ending: str) -> None:
    for name in NAMES:
        Path("in", f"{name}.{ending}").write_bytes(RECORDS)
    Path("in", f"bad{NAMES[0]}{NAMES[4]}.{ending}").write_bytes(b"\xff\xfa\xff")
    files = written(here)
    assert written(there) == files
    assert files["d.jsonl"].count(b"\n") > len(NAMES) - 2
    assert files["r.jsonl"].count(b"\n") == 1
    assert len(files) == (4 if ending == "txt" else 5) + len(NAMES) - 10 * (ending == "txt")


def test_an_error_is_whole_and_one_line_whatever_is_in_it() -> None:
    name = "in/neardup.errors.TYPE_CHECKING: x\nneardup: all is well.jsonl"
    Path(name).write_bytes(b"bad\n")
    messages = []
    for run in (here, there):
        with pytest.raises(nd.DataError) as caught:
            run(Outputs("out/"))
        messages.append(" ".join(str(caught.value).split("\n")))
    assert messages[0] == messages[1]
    assert os.listdir() == ["in"]  # noqa: PTH208


@pytest.mark.parametrize("name", ["C:\\win", "x\\..\\..\\up"])
@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_a_name_that_leads_out_is_refused_before_the_engine_starts(
    name: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.spark.file_run.open_session", pytest.fail)
    Path("in", f"{name}.{ending}").write_bytes(RECORDS)
    with pytest.raises(nd.DataError, match="would be written outside of out/"):
        there(Outputs("out/"))
    assert os.listdir() == ["in"]  # noqa: PTH208


def test_a_worker_writes_nothing_outside_of_its_folder() -> None:
    Path("out").mkdir()
    Path("elsewhere").mkdir()
    Path("out/link").symlink_to(Path("elsewhere").absolute())
    for name in ("../x", "/abs/x", "..\\x", "link/x", "a/../../x"):
        with pytest.raises(nd.DataError, match="would be written outside of"):
            Folder("out").add(name, b"x")
    with pytest.raises(nd.FileError, match="cannot write"):
        Folder("out").add("a" * 300, b"x")
    assert not list(Path("elsewhere").iterdir())


def make_folder(_: Any) -> None:
    Path("out/theirs").mkdir(parents=True)


def make_link(_: Any) -> None:
    Path("out").symlink_to("nowhere")


@pytest.mark.parametrize("make", [make_folder, make_link])
def test_an_output_that_appeared_meanwhile_is_left_alone(
    make: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("in/a.jsonl").write_bytes(RECORDS)
    from neardup.spark.file_run import _decided_counts as counts

    def late(*frames: Any) -> dict[str, int]:
        make(frames)
        return counts(*frames)

    monkeypatch.setattr("neardup.spark.file_run._decided_counts", late)
    with pytest.raises(nd.FileError, match="cannot write out/"):
        there(Outputs("out/", "d.jsonl"))
    assert sorted(os.listdir()) == ["in", "out"]  # noqa: PTH208
    assert not Path("out").is_dir() or os.listdir("out") == ["theirs"]  # noqa: PTH208


def test_an_interrupt_as_the_outputs_appear_waits_until_all_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("in/a.jsonl").write_bytes(RECORDS)
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        there(Outputs("out/", "d.jsonl"))
    assert sorted(os.listdir()) == [".d.jsonl.options.json", "d.jsonl", "in", "out"]  # noqa: PTH208


def test_an_interrupt_ends_the_engine_and_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in/a.jsonl").write_bytes(RECORDS)
    monkeypatch.setattr("neardup.spark.file_run._decided_counts", lambda *_: signal.raise_signal(2))
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        there(Outputs("out/", "d.jsonl"))
    assert time.monotonic() - begun < 60  # PySpark would try for ten minutes to reach its server
    assert os.listdir() == ["in"]  # noqa: PTH208


LISTED: Final = ["bucket/in//abs/evil", "bucket/in/a\\..\\..\\evil"]


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_a_hostile_listing_writes_nowhere(
    name: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = Listing({f"{name}.{ending}": RECORDS, f"bucket/in/good.{ending}": RECORDS})
    for module in ("finding", "remote"):
        monkeypatch.setattr(
            f"neardup.documents.files.{module}.locate",
            lambda uri: (hostile, uri.partition("://")[2].rstrip("/")),
        )
    monkeypatch.setattr("neardup.spark.file_run.open_session", pytest.fail)
    with pytest.raises(nd.DataError, match="would be written outside of"):
        spark.dedup_files(["memory://bucket/in/"], Outputs("out/"), Rule(), Choice(), ReadOptions())
    assert os.listdir() == ["in"]  # noqa: PTH208


def test_a_folder_that_is_not_utf8_is_refused_in_one_line() -> None:
    Path("in/a.jsonl").write_bytes(RECORDS)
    Path("caf\udce9").mkdir()
    with pytest.raises(nd.UsageError, match="name is not UTF-8, and engines take no other"):
        there(Outputs("caf\udce9/out/"))


@pytest.mark.parametrize(
    ("text", "name"), [("te.xt", "a`b"), (EVIL, f"{EVIL}`.`"), ("id", "text"), ("number", "a b")]
)
def test_columns_may_be_called_anything_and_ids_hold_anything(
    text: str, name: str, session: Any
) -> None:
    ids = [f"{EVIL}{i}`;--\\'" for i in range(4)]
    words = ["one two three four", "one two three four", "five six seven", EVIL]
    table = pa.table({name: ids, text: words})
    result = spark.dedup(session.createDataFrame(table), text=text, id=name, parts=2).toArrow()
    kept = dict(zip(*(result[key].to_pylist() for key in ("id", "kept_id")), strict=True))
    assert kept == {ids[0]: ids[0], ids[1]: ids[0], ids[2]: ids[2], ids[3]: ids[3]}
    pairs = spark.similar_pairs(session.createDataFrame(table), text=text, id=name).toArrow()
    assert pairs.select(["left", "right"]).to_pylist() == [{"left": ids[0], "right": ids[1]}]
    with pytest.raises(nd.UsageError, match="no column 'none': there are"):
        spark.dedup(session.createDataFrame(table), text="none", id=name)
