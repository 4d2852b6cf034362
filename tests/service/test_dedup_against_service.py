"""`dedup --against http://...` gives what the same run against the folder gives."""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from commands import Here
from neardup.client import ServiceError
from neardup.errors import RecipeError, UsageError
from services import Service, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "0123456789abcdef"
KINDS: dict[str, dict[str, Any]] = {
    "similarity": {"similarity": 0.7},
    "distance": {"distance": 5},
    "wide": {"distance": 20},
}


def question(kind: str) -> dict[str, Any]:
    """What an index of a kind is made with, and a run asks."""
    return KINDS[kind] | {"recipe": nd.Recipe(bits=128 if kind == "wide" else 64)}


def write(path: Path, count: int, seed: int) -> None:
    """Documents, a third of them near to others of the same or an earlier file."""
    chance = random.Random(seed)
    with path.open("w") as file:
        for number in range(count):
            text = words(("shared", chance.randrange(3 * count)), 40)
            if chance.random() < 0.5:
                text = f"x{text}"
            if chance.random() < 0.05:
                text = ""
            name = f"d{seed}.{number}" if chance.random() < 0.8 else f"d{chance.randrange(50)}"
            file.write(json.dumps({"id": f"{name}.{number}", "text": text}) + "\n")


def runs(folder: Path, index: str, kind: str, **more: Any) -> list[Any]:
    """What three runs wrote, one after the other, each adding what it kept."""
    actual: list[Any] = []
    for number in range(3):
        paths = {
            name: folder / f"{name}{number}.jsonl" for name in ("output", "duplicates", "clusters")
        }
        result = nd.dedup(
            [folder.parent / f"in{number}.jsonl"], id="id", against=index, update=True,
            **paths, **question(kind), **more,
        )  # fmt: skip
        actual.append([path.read_text() for path in paths.values()])
        actual.append([result.summary.kept, result.summary.dropped, result.summary.own])
    return actual


def contents_of(folder: Path) -> list[Any]:
    """What an index has, in the order in which it was added."""
    with nd.DurableIndex.open(folder, readonly=True) as index:
        return [(name, str(content)) for name, content in index]


@pytest.mark.parametrize("own_ids", ["seen", "keep"])
@pytest.mark.parametrize("kind", KINDS)
def test_runs_against_a_service_are_those_against_its_folder(
    kind: str, own_ids: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARDUP_KEY", KEY)
    for number in range(2):
        write(tmp_path / f"in{number}.jsonl", 700, number)
    lines = (tmp_path / "in0.jsonl").read_text().splitlines(keepends=True)
    changed = [line.replace('"text": "', '"text": "y') for line in lines[:50]]
    (tmp_path / "in2.jsonl").write_text("".join([*lines[50:300], *changed]))
    for name in ("folder", "service"):
        nd.DurableIndex.open(tmp_path / name / "index", **question(kind)).close()
    mine = runs(tmp_path / "folder", str(tmp_path / "folder" / "index"), kind, own_ids=own_ids)
    with Service(tmp_path / "service" / "index") as service:
        theirs = runs(tmp_path / "service", service.url, kind, own_ids=own_ids)
        assert service.stop() == 0
    assert mine == theirs
    assert mine[3][1] > 10  # it dropped some
    assert contents_of(tmp_path / "folder" / "index") == contents_of(tmp_path / "service" / "index")


def test_an_update_adds_whole_numbers_where_the_ids_of_the_index_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARDUP_KEY", KEY)
    with nd.DurableIndex.open(tmp_path / "index", **question("distance")) as index:
        index.add([7], [words("other", 40)])
    write(tmp_path / "in.jsonl", 30, 0)
    lines = map(json.loads, (tmp_path / "in.jsonl").read_text().splitlines())
    numbered = [json.dumps(line | {"id": number}) for number, line in enumerate(lines, 8)]
    (tmp_path / "in.jsonl").write_text("\n".join(numbered))
    with Service(tmp_path / "index") as service:
        result = dedup(tmp_path, service.url, update=True)
        assert service.stop() == 0
    added = [each for each, _ in contents_of(tmp_path / "index")][1:]
    summary = result.summary
    assert added
    assert len(added) == summary.kept - summary.empty
    assert min(added) >= 8


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("seen")
    keys = folder / "keys"
    keys.write_text(f"write {KEY}\nread fedcba9876543210\n")
    with Service(folder / "index", "--keys", str(keys)) as server:
        yield server


def dedup(tmp_path: Path, url: str, **more: Any) -> Any:
    if not (tmp_path / "in.jsonl").exists():
        write(tmp_path / "in.jsonl", 100, 7)
    return nd.dedup([tmp_path / "in.jsonl"], tmp_path / "out.jsonl", id="id", against=url, **more)


def documents_of(service: Service) -> int:
    """How many its index has."""
    headers = {"authorization": f"Bearer {KEY}"}
    return int(service.client.get("/v1/index", headers=headers).json()["documents"])


def test_keys_recipe_and_questions_of_the_service(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServiceError, match="no key of this service"):
        dedup(tmp_path, service.url)
    monkeypatch.setenv("NEARDUP_READ_KEY", "fedcba9876543210")
    assert (
        dedup(tmp_path, service.url).summary.dropped
        == dedup(tmp_path, service.url, similarity=0.8).summary.dropped
    )
    with pytest.raises(ServiceError, match="the key may only read"):
        dedup(tmp_path, service.url, update=True)
    monkeypatch.setenv("NEARDUP_KEY", KEY)
    for options, message, kind in (
        ({"recipe": nd.Recipe(ngram=2)}, f"{service.url} has recipe", RecipeError),
        ({"similarity": 0.5}, "was made for 0.8", UsageError),
        ({"distance": 3}, "is by similarity", UsageError),
        ({"policy": "components"}, "requires greedy", UsageError),
    ):
        with pytest.raises(kind, match=message):
            dedup(tmp_path, service.url, **options)


def test_a_run_that_is_killed_while_it_adds_goes_on(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARDUP_KEY", KEY)
    from neardup.pipeline.run.service_index import ServiceIndex

    write(tmp_path / "in.jsonl", 300, 11)
    whole = dedup(tmp_path, service.url).kept.tolist()
    (tmp_path / "out.jsonl").unlink()
    add = ServiceIndex.add

    def add_some(self: ServiceIndex, ids: Any, contents: Any, kept: Any = None) -> None:
        add(self, ids[:100], contents[:100], kept)
        raise KeyboardInterrupt

    monkeypatch.setattr(ServiceIndex, "add", add_some)
    state = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        dedup(tmp_path, service.url, update=True, resume=state)
    monkeypatch.setattr(ServiceIndex, "add", add)
    before = service.client.get("/v1/index", headers={"authorization": f"Bearer {KEY}"}).json()[
        "documents"
    ]
    again = dedup(tmp_path, service.url, update=True, resume=state)
    assert again.kept.tolist() == whole
    empty = (tmp_path / "in.jsonl").read_text().count('"text": ""')
    assert documents_of(service) - before == sum(whole) - empty - 100


def test_ids_that_neardup_makes_replace_nobodys(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARDUP_KEY", KEY)
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": words("made")}) + "\n")
    nd.dedup([source], tmp_path / "a.jsonl", against=service.url, update=True)
    source.write_text(json.dumps({"text": words("made otherwise")}) + "\n")
    with pytest.raises(UsageError, match="already, with other content"):
        nd.dedup([source], tmp_path / "b.jsonl", against=service.url, update=True)


def test_the_command_says_in_a_line_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capfd)
    write(tmp_path / "in.jsonl", 3, 1)
    command = ["dedup", "in.jsonl", "-o", "out.jsonl", "--against", "http://127.0.0.1:9"]
    _, error = here(*command, code=3)
    assert error.startswith("neardup: the service at http://127.0.0.1:9 cannot be reached:")
    assert error.count("\n") == 1
    _, error = here(*command, "--engine", "spark", code=2)
    assert "--engine local" in error
    monkeypatch.setitem(sys.modules, "httpx", None)
    _, error = here(*command, code=2)
    assert "pip install 'neardup[client]'" in error
    assert error.count("\n") == 1
