"""No output leaves its folder, whatever the files are called that were found."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import neardup as nd
from neardup.documents.files.atomic import AtomicFolder
from neardup.documents.files.finding import InputFile, check_relative, path_below
from neardup.documents.formats.jsonl import JsonlSource
from neardup.documents.write_kept import plan_outputs
from neardup.errors import DataError, FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

parts = st.sampled_from(
    ["..", ".", "", "a", "b.jsonl", "...", "C:", "~", "a\\b", "..\\c", "\\", "x::y", "http:", "\0"]
)
names = st.one_of(
    st.tuples(st.lists(parts, max_size=6), st.sampled_from(["/", "\\", "//"])).map(
        lambda x: x[1].join(x[0])
    ),
    st.text(max_size=20),
)
EVIL = [
    "/abs/evil.jsonl",
    "../evil.jsonl",
    "a/../../evil.jsonl",
    "a/..",
    "..\\evil.jsonl",
    "\\evil.jsonl",
    "C:\\evil.jsonl",
    "c:evil.jsonl",
    "..",
    ".",
    "",
    "a/",
    "a\0b",
]


def outside(path: str, root: str) -> bool:
    """Whether a path leaves a folder if each of the two separators is one, by plain reading."""
    depth = 0
    for part in path.removeprefix(root).replace("\\", "/").split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return depth == 0


@given(names)
@example("/etc/passwd")
@example("a/../b")
@example("..\\..\\a")
def test_a_name_gives_a_path_below_the_folder_or_is_refused(name: str) -> None:
    for folder in ("/out", "s3://bucket/out", "/out/"):
        try:
            path = path_below(folder, name)
        except (DataError, ValueError) as error:
            assert isinstance(error, DataError)  # noqa: PT017
            continue
        assert path.startswith("/out/" if folder[0] == "/" else "s3://bucket/out/")
        assert not outside(path, folder.rstrip("/"))
        assert os.path.normpath(path).startswith(folder.rstrip("/").replace("//", "/")[:5])


@pytest.mark.parametrize("name", EVIL)
def test_each_way_out_is_refused_and_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="would be written outside of"):
        path_below(str(tmp_path), name)
    tree = AtomicFolder(str(tmp_path / "out"), None)
    with pytest.raises(DataError, match="would be written outside of"):
        tree.add(name, b"x")
    tree.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.jsonl", "a/b.jsonl", "a\\b.jsonl", "..a", "a..b/c", "a/./b"])
def test_names_that_stay_inside_are_served(name: str) -> None:
    check_relative(name, "out")


def test_a_chain_of_uris_in_a_name_is_refused() -> None:
    with pytest.raises(DataError, match="begins another one"):
        path_below("s3://bucket/out", "ab::file:///etc/evil.jsonl")


def test_a_link_in_the_output_folder_is_not_followed_out_of_it(tmp_path: Path) -> None:
    for folder in ("in/sub", "out", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "in/sub/a.jsonl").write_text('{"text": "a b c"}\n')
    (tmp_path / "out/sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="a symbolic link leads there"):
        nd.dedup(tmp_path / "in", f"{tmp_path}/out/")
    (tmp_path / "out/sub").unlink()
    (tmp_path / "out/sub").mkdir()
    (tmp_path / "out/sub/a.jsonl").symlink_to(tmp_path / "elsewhere/a.jsonl")
    with pytest.raises(DataError, match="a symbolic link leads there"):
        nd.dedup(tmp_path / "in", f"{tmp_path}/out/")
    assert list((tmp_path / "elsewhere").iterdir()) == []


class Listing:
    """A file system that lists whatever names its owner likes."""

    protocol = "memory"

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def isfile(self, key: str) -> bool:
        return key in self.files

    def isdir(self, _: str) -> bool:
        return True

    exists = isdir

    def find(self, _: str, detail: bool = False) -> dict[str, Any]:  # noqa: ARG002
        return {x: {"type": "file", "size": len(data)} for x, data in self.files.items()}

    def unstrip_protocol(self, name: str) -> str:
        return f"memory://{name}"

    def info(self, key: str) -> dict[str, Any]:
        return {"type": "file", "size": len(self.files[key])}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bucket/in//abs/evil.jsonl", "would be written outside of"),
        ("bucket/in/a\\..\\..\\..\\evil.jsonl", "would be written outside of"),
        ("bucket/in/a::file:///etc/evil.jsonl", "read from elsewhere"),
        ("elsewhere/evil.jsonl", "read from elsewhere"),
    ],
)
@pytest.mark.parametrize("ending", [".jsonl", ".txt"])
def test_a_hostile_listing_writes_nowhere(
    name: str, message: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name.replace(".jsonl", ending)
    hostile = Listing({name: b'{"text": "a b c"}\n', f"bucket/in/good{ending}": b"a"})
    for module in ("finding", "remote"):
        monkeypatch.setattr(
            f"neardup.documents.files.{module}.locate",
            lambda uri: (hostile, uri.partition("://")[2].rstrip("/")),
        )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        nd.dedup(["memory://bucket/in/"], "out/")
    assert list(tmp_path.rglob("*")) == []


@pytest.fixture
def bucket() -> Iterator[str]:
    """A folder in fsspec's memory."""
    fsspec = pytest.importorskip("fsspec")
    name = uuid.uuid4().hex
    yield name
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)


def test_a_real_file_system_with_a_hostile_object(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    record = json.dumps({"text": "a b c"}).encode() + b"\n"
    fs.store[f"/{bucket}/in/{tmp_path}/evil.jsonl"] = _object(fs, record)
    monkeypatch.chdir(tmp_path)
    with pytest.raises((DataError, FileError)):
        nd.dedup([f"memory://{bucket}/in/"], "out/")
    assert list(tmp_path.rglob("*")) == []


def _object(fs: Any, data: bytes) -> Any:
    fs.pipe("/scratch", data)
    return fs.store.pop("/scratch")


def test_the_journal_of_a_run_removes_nothing_but_its_own(tmp_path: Path) -> None:
    from neardup.pipeline.run.run_folder import _remove_output

    mine, theirs = tmp_path / ".out.jsonl.0123abcd.tmp", tmp_path / "thesis"
    mine.write_text("")
    theirs.mkdir()
    _remove_output(str(mine))
    _remove_output(str(theirs))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_two_sources_of_one_plan_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n')
    from neardup.documents import open_sources

    source = open_sources([str(path)])[0]
    assert isinstance(source, JsonlSource)
    source.relative = InputFile(str(path), "../a.jsonl").relative
    with pytest.raises(DataError, match="outside of"):
        plan_outputs([source], f"{tmp_path}/out/")
