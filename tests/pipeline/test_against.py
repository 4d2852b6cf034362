"""Batch after batch against an index that is updated is one run over all batches."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import random
import threading
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
import neardup as nd
import neardup.pipeline.run.read_documents
import neardup.pipeline.run.run_folder
import neardup.pipeline.run.transaction
from faults import REMOVALS, Faults, KilledError
from mode import Mode
from neardup.cli import app
from neardup.documents import ReadOptions
from neardup.errors import DataError, FileError, RecipeError, UsageError
from neardup.pipeline import Against, Limits, Outputs, dedup_files
from neardup.pipeline.run.transaction import command_of
from suite import examples

RECIPE = nd.Recipe(ngram=1)
SIMILAR = "similar"
"""In the place of what an index by distance keeps: one by similarity."""
OUTPUTS = ("out.jsonl", "dups.jsonl", "clusters.jsonl")
MATCHINGS = [
    (Mode.of(recipe=RECIPE, similarity=0.4), "features"),
    (Mode.of(recipe=RECIPE, similarity=0.8, measure="containment"), "text"),
    (Mode.of(recipe=RECIPE, distance=5, verify=0.3), "features"),
    (Mode.of(recipe=RECIPE, distance=5, verify=0.3, keep="longest"), "text"),
    (Mode.of(recipe=RECIPE, distance=6), "none"),
    (Mode.of(recipe=RECIPE, distance=0, keep="last"), "text"),
    (Mode.of(recipe=RECIPE, similarity=0.4), SIMILAR),
    (Mode.of(recipe=RECIPE, similarity=0.8, measure="containment"), SIMILAR),
    (Mode.of(recipe=RECIPE, similarity=0.7, measure="cosine", keep="longest"), SIMILAR),
    (Mode.of(recipe=RECIPE, similarity=0.6, measure="dice"), SIMILAR),
]
TEXTS = ["a b c", "the a", "a b c", "", "c c é", "é c", "b the é", "a b c é", "the", "é the a"]

texts_of_batches = st.lists(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "the", "é"]), max_size=6).map(" ".join), max_size=6
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(autouse=True)
def _commit_often_and_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neardup.pipeline.run.read_documents, "SECONDS", 0.0)
    monkeypatch.setattr(neardup.pipeline.run.transaction, "WAITING_BYTES", 1)
    monkeypatch.setattr(neardup.pipeline.run.transaction, "ROWS_A_CALL", 2)


@dataclasses.dataclass
class Crawl:
    """Batches of documents, an index, and what runs over them wrote."""

    folder: Path
    mode: Mode
    store: str

    @property
    def index(self) -> Path:
        return self.folder / "seen.index"

    def create(self) -> None:
        if self.store == SIMILAR:
            least, measure = self.mode.rule.match.similarity - 0.1, self.mode.rule.measure
            nd.DurableIndex.open(
                self.index, similarity=least, measure=measure, recipe=self.mode.rule.recipe,
                store="text",
            ).close()  # fmt: skip
            return
        nd.DurableIndex.open(
            self.index, distance=6, recipe=self.mode.rule.recipe, store=self.store
        ).close()

    def write(self, batches: list[list[str]]) -> list[str]:
        """The batches' paths."""
        paths, number = [], 0
        for at, texts in enumerate(batches):
            path = self.folder / f"{at}.jsonl.gz"
            with gzip.open(path, "wt") as file:
                for text in texts:
                    file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
                    number += 1
            paths.append(str(path))
        return paths

    def run(
        self,
        paths: list[str],
        *,
        update: bool | None = True,
        resume: bool = False,
        own_ids: str = "seen",
        only: bool = False,
    ) -> Any:
        """The lines of every output, in order; `update` None is a run without the index."""
        target = self.folder / "out"
        target.mkdir(exist_ok=True)
        state = str(self.folder / "state") if resume else None
        outputs = Outputs(*(str(target / name) for name in OUTPUTS), resume=state)
        against = None if update is None else Against(str(self.index), update, own_ids, only)
        result = dedup_files(
            paths, dataclasses.replace(outputs, kept=f"{target}/"), *self.mode.both,
            ReadOptions(id="id", batch_bytes=40), Limits(1 << 20), against=against,
        )  # fmt: skip
        self.own = result.summary.own
        return self.outputs(paths)

    def outputs(self, paths: list[str]) -> Any:
        """As `run`, of the run before."""
        target, kept = self.folder / "out", []
        for path in paths:
            with gzip.open(target / path.rpartition("/")[2]) as file:
                kept += file.readlines()
        tables = [(target / name).read_bytes().splitlines() for name in OUTPUTS[1:]]
        return [kept, *tables]

    def contents(self) -> dict[str, Any]:
        """What the index holds: texts by similarity, else words of fingerprints."""
        with nd.DurableIndex.open(self.index, readonly=True) as index:
            return {
                identity: words if self.store == SIMILAR else words.tolist()
                for ids, rows, contents in index.documents()
                for identity, words in zip(
                    ids.to_pylist(), contents if self.store == SIMILAR else rows, strict=True
                )
            }


@pytest.mark.parametrize(("mode", "store"), MATCHINGS)
@settings(max_examples=examples(12))
@given(batches=texts_of_batches)
@example([TEXTS[:4], TEXTS[4:7], TEXTS[7:]])
@example([[], ["a"], ["a"]])
def test_batch_after_batch_is_one_run_over_all(
    tmp_path_factory: pytest.TempPathFactory,
    mode: Mode,
    store: str,
    batches: list[list[str]],
) -> None:
    if mode.choice.keep != "first":  # of two in one batch; in a later batch the earlier one is kept
        batches = [texts[:1] for texts in batches]
    crawl = Crawl(tmp_path_factory.mktemp("crawl"), mode, store)
    crawl.create()
    paths = crawl.write(batches)
    expected = Crawl(crawl.folder, mode.replace(keep="first"), store).run(paths, update=None)
    parts = [crawl.run([path]) for path in paths]
    assert [list(chain(*each)) for each in zip(*parts, strict=True)] == expected


@pytest.mark.parametrize(("mode", "store"), MATCHINGS)
def test_without_update_the_index_stays_as_it_is(tmp_path: Path, mode: Mode, store: str) -> None:
    crawl = Crawl(tmp_path, mode, store)
    crawl.create()
    first, second = crawl.write([TEXTS[:5], TEXTS[5:]])
    crawl.run([first])
    before = crawl.contents()
    once = crawl.run([second], update=False)
    assert crawl.run([second], update=False) == once
    assert crawl.contents() == before
    assert crawl.run([second]) == once
    assert len(crawl.contents()) > len(before)


@dataclasses.dataclass
class Model:
    """What runs against an index decide, in plain Python."""

    mode: Mode
    store: str
    stored: dict[str, str] = dataclasses.field(default_factory=dict)
    own: int = 0

    def is_match(self, one: str, other: str) -> bool:
        match, texts = self.mode.rule, (one, other)
        if match.distance is not None and match.verify is None:
            return naive.distance(*(print_of(text) for text in texts)) <= match.distance
        near = naive.similarity(set(one.split()), set(other.split()), match.measure)
        is_near = match.distance is None or (
            naive.distance(*(print_of(text) for text in texts)) <= match.distance
        )
        return is_near and near >= match.match.similarity

    def is_same(self, one: str, other: str) -> bool:
        if self.store == SIMILAR:
            return set(one.split()) == set(other.split())
        return print_of(one) == print_of(other)

    def run(self, batch: list[tuple[str, str]], own_ids: str) -> dict[str, str]:
        """Dropped ids and those kept for them; the index has what is kept then."""
        dropped, kept = dict[str, str](), list[int]()
        full = [row for row, (_, text) in enumerate(batch) if text]
        self.own = sum(batch[row][0] in self.stored for row in full)
        unchanged = {
            row for row in full
            if own_ids == "keep" and self.is_same(self.stored.get(batch[row][0], ""), batch[row][1])
        }  # fmt: skip
        order = {"first": full, "last": full[::-1]}.get(
            self.mode.choice.keep, sorted(full, key=lambda row: -len(batch[row][1]))
        )
        for row in order:
            name, text = batch[row]
            stored_matches = [
                each for each, theirs in self.stored.items()
                if not (own_ids == "keep" and each == name) and self.is_match(text, theirs)
            ]  # fmt: skip
            if stored_matches and row not in unchanged:
                dropped[name] = stored_matches[0]
        for row in order:
            name, text = batch[row]
            if name in dropped:
                continue
            matches = [other for other in kept if self.is_match(text, batch[other][1])]
            if matches:
                dropped[name] = batch[matches[0]][0]
            else:
                kept.append(row)
        for row in sorted(set(kept) - unchanged):
            self.stored.pop(batch[row][0], None)
            self.stored[batch[row][0]] = batch[row][1]
        return dropped


def print_of(text: str) -> int:
    return nd.fingerprint(text, RECIPE) or 0


LONG, HALF = (" ".join(f"w{i}" for i in range(count)) for count in (60, 30))
"""16 bits apart, and half of the words are shared; a word more changes LONG's fingerprint by 4."""
documents_with_ids = st.lists(
    st.tuples(
        st.sampled_from("tuvwxyz"),
        st.lists(st.sampled_from(["a", "b", "c", "the", "é"]), max_size=6).map(" ".join),
    ),
    max_size=6,
    unique_by=lambda each: each[0],
)


@pytest.mark.parametrize(("mode", "store"), MATCHINGS)
@settings(max_examples=examples(12))
@given(
    first=documents_with_ids,
    batches=st.lists(documents_with_ids, min_size=1, max_size=2),
    own_ids=st.sampled_from(["seen", "keep"]),
)
@example([("x", "a b"), ("y", "the é")], [[("x", "a b"), ("y", "the é")]], "keep")
@example([("x", "a b c the"), ("y", "a b c the")], [[("x", "the a b c é")]], "keep")
@example([("x", "a b c the"), ("y", "a b c the")], [[("x", "the a b c the")]], "keep")
@example([("x", LONG), ("y", HALF)], [[("x", f"{LONG} new0")]], "keep")
@example([("x", "a b c the"), ("y", "a")], [[("x", "the a b c é"), ("z", "a b c the")]], "keep")
def test_documents_with_ids_that_are_stored_follow_the_rule(
    tmp_path_factory: pytest.TempPathFactory,
    mode: Mode,
    store: str,
    first: list[tuple[str, str]],
    batches: list[list[tuple[str, str]]],
    own_ids: str,
) -> None:
    crawl, model = Crawl(tmp_path_factory.mktemp("crawl"), mode, store), Model(mode, store)
    crawl.create()
    with nd.DurableIndex.open(crawl.index) as index:
        for name, text in first:
            if index.add(name, text):
                model.stored[name] = text
    for at, batch in enumerate(batches):
        path = crawl.folder / f"{at}.jsonl.gz"
        with gzip.open(path, "wt") as file:
            file.writelines(json.dumps({"id": i, "text": text}) + "\n" for i, text in batch)
        before = list(model.stored)
        want = model.run(batch, own_ids)
        kept, duplicates, _ = crawl.run([str(path)], own_ids=own_ids)
        assert [json.loads(line)["id"] for line in kept] == [i for i, _ in batch if i not in want]
        rows = [json.loads(line) for line in duplicates]
        assert {row["dropped"]: row["kept"] for row in rows} == want
        assert crawl.own == model.own == len({i for i, text in batch if text} & set(before))
        assert list(crawl.contents()) == list(model.stored)
        assert store != SIMILAR or crawl.contents() == model.stored


@pytest.mark.parametrize("store", ["none", SIMILAR])
def test_a_run_repeated_to_other_outputs_says_that_it_dropped_its_own(
    tmp_path: Path, store: str
) -> None:
    mode = MATCHINGS[4 if store == "none" else 6][0]
    crawl = Crawl(tmp_path, mode, store)
    crawl.create()
    (path,) = crawl.write([TEXTS])
    options: dict[str, Any] = {
        "distance": mode.rule.distance, "similarity": mode.rule.similarity, "recipe": RECIPE,
        "id": "id", "against": crawl.index, "update": True,
    }  # fmt: skip
    first = nd.dedup([path], tmp_path / "first.jsonl", **options).summary
    again = nd.dedup([path], tmp_path / "again.jsonl", **options).summary
    assert (first.own, again.own) == (0, first.kept - first.empty)
    assert again.kept == again.empty
    assert f"own id    {again.own:>12} were in the index before" in str(again)
    before = crawl.contents()
    kept = nd.dedup([path], tmp_path / "kept.jsonl", own_ids="keep", **options).summary
    assert (kept.kept, kept.own) == (first.kept, again.own)
    assert (tmp_path / "kept.jsonl").read_bytes() == (tmp_path / "first.jsonl").read_bytes()
    assert list(crawl.contents().items()) == list(before.items())
    with nd.DurableIndex.open(crawl.index, readonly=True) as index:
        assert index.added == len(index)


def test_own_ids_are_whole_numbers_where_those_of_the_index_are(tmp_path: Path) -> None:
    with nd.DurableIndex.open(tmp_path / "seen", distance=0, recipe=RECIPE) as index:
        index.add([7, -(2**63), 2**63 - 1], ["a b", "c the", "b c the é"])
    lines = [("7", "a b"), ("07", "a b"), (str(2**63 - 1), "b c the é"), ("x", "the a b")]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in lines))
    run: dict[str, Any] = {"distance": 0, "recipe": RECIPE, "id": "id"}
    result = nd.dedup([path], tmp_path / "out", against=tmp_path / "seen", own_ids="keep", **run)
    assert (result.kept.tolist(), result.summary.own) == ([True, False, True, True], 2)


@pytest.mark.parametrize("kind", [{"distance": 0}, {"similarity": 0.8}])
def test_an_update_adds_whole_numbers_where_the_ids_of_the_index_are(
    tmp_path: Path, kind: dict[str, Any]
) -> None:
    seen = tmp_path / "seen"
    with nd.DurableIndex.open(seen, recipe=RECIPE, **kind) as index:
        index.add([7], ["a b"])
    run: dict[str, Any] = {"recipe": RECIPE, "against": seen, "update": True} | kind
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": 8, "text": "b a"}\n{"id": 9, "text": "the c"}\n')
    with pytest.raises(DataError, match=r"jsonl:2' is not a whole number, .* pass --id FIELD"):
        nd.dedup([path], tmp_path / "out.jsonl", **run)
    assert not (tmp_path / "out.jsonl").exists()
    for _ in range(2):
        result = nd.dedup([path], tmp_path / "out.jsonl", id="id", **run)
        assert result.kept.tolist() == [False, True]
        with nd.DurableIndex.open(seen, readonly=True) as index:
            assert [7 in index, 8 in index, 9 in index, index.added] == [True, False, True, 2]


def test_of_html_a_run_compares_what_the_index_compares(tmp_path: Path) -> None:
    pytest.importorskip("resiliparse")
    page = "<html><body><p>{}</p></body></html>"
    kind: dict[str, Any] = {"recipe": RECIPE, "similarity": 0.9}
    with nd.DurableIndex.open(tmp_path / "seen", extract="all", **kind) as index:
        index.add("x", page.format("a b c"))
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": page.format("c <i>b</i> a")}))
    run: dict[str, Any] = kind | {"against": tmp_path / "seen"}
    assert nd.dedup([path], tmp_path / "out.jsonl", **run).kept.tolist() == [False]
    with pytest.raises(UsageError, match=r"--extract is none, but .* was made with all"):
        nd.dedup([path], tmp_path / "out.jsonl", extract="none", **run)


def test_ids_that_are_made_are_no_identity(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, MATCHINGS[4][0], "none")
    crawl.create()
    (path,) = crawl.write([TEXTS])
    against: dict[str, Any] = {"against": crawl.index, "distance": 6, "recipe": RECIPE}
    nd.dedup([path], tmp_path / "first.jsonl", update=True, **against)
    again = nd.dedup([path], tmp_path / "again.jsonl", **against).summary
    assert again.own == len(crawl.contents())
    with gzip.open(path, "wt") as file:
        file.writelines('{"text": "the b"}\n' for _ in TEXTS)
    assert nd.dedup([path], tmp_path / "other.jsonl", **against).summary.own < again.own
    with pytest.raises(UsageError, match="--own-ids keep requires --id FIELD"):
        nd.dedup([path], tmp_path / "more.jsonl", own_ids="keep", **against)
    with pytest.raises(UsageError, match="own_ids is 'new': use 'seen' or 'keep'"):
        nd.dedup([path], tmp_path / "more.jsonl", own_ids="new", **against)
    with pytest.raises(UsageError, match="own_ids='keep' requires against"):
        nd.dedup([path], tmp_path / "more.jsonl", own_ids="keep")


class Kills(Faults):
    """Commits of an index that has something to commit count as changes as well."""

    def commit(self, index: nd.DurableIndex) -> None:
        if index.uncommitted:
            self.calls += 1
            self.left -= 1
            if self.left <= 0:
                raise KilledError
        COMMIT(index)


COMMIT = nd.DurableIndex.commit


def run_killed(crawl: Crawl, path: str, at: int, own_ids: str = "seen") -> int:
    """Run until the n-th change of the state or of the index; how many were mode for."""
    kills = Kills(at)
    with pytest.MonkeyPatch.context() as patch:
        kills.replace_os(patch)
        patch.setattr(nd.DurableIndex, "commit", lambda index: kills.commit(index))  # noqa: PLW0108
        with contextlib.suppress(KilledError):
            crawl.run([path], resume=True, own_ids=own_ids)
    return kills.calls


@pytest.mark.parametrize(
    ("mode", "store", "own_ids"),
    [
        (*MATCHINGS[0], "seen"), (*MATCHINGS[3], "seen"), (*MATCHINGS[4], "seen"),
        (*MATCHINGS[6], "keep"),
    ],
)  # fmt: skip
def test_a_run_killed_anywhere_goes_on_and_adds_each_document_once(
    tmp_path: Path, mode: Mode, store: str, own_ids: str
) -> None:
    def crawl(name: str) -> tuple[Crawl, str]:
        outcome = Crawl(tmp_path / name, mode, store)
        outcome.folder.mkdir()
        outcome.create()
        first, second = outcome.write([TEXTS[:4], TEXTS[4:]])
        outcome.run([first])
        if own_ids == "keep":  # one stored as it is, one with other content, and new ones
            first, second = outcome.write([[], [TEXTS[0], *TEXTS[5:]]])
        return outcome, second

    whole, path = crawl("whole")
    calls = run_killed(whole, path, 10**9, own_ids)
    assert calls > 30
    unharmed, path = crawl("unharmed")
    before = len(unharmed.contents())
    expected = unharmed.run([path], own_ids=own_ids)
    with nd.DurableIndex.open(unharmed.index, readonly=True) as index:
        added = index.added
    assert added - len(unharmed.contents()) == (own_ids == "keep")
    for at in range(1, calls + 1, 2):
        killed, path = crawl(str(at))
        run_killed(killed, path, at, own_ids)
        begun, done = (
            (killed.folder / "state" / "journal").exists(),
            len(killed.contents()) > before,
        )
        is_over = done and not begun
        outcome = (
            killed.outputs([path]) if is_over else killed.run([path], resume=True, own_ids=own_ids)
        )
        assert outcome == expected, f"killed at {at} of {calls}"
        assert killed.contents() == unharmed.contents(), f"killed at {at} of {calls}"
        with nd.DurableIndex.open(killed.index, readonly=True) as index:
            assert index.added == added, f"killed at {at} of {calls}"


def stopped(folder: Path, at: int) -> tuple[Crawl, str, int]:
    """A crawl whose second run was killed, if it makes so many changes."""
    folder.mkdir()
    crawl = Crawl(folder, MATCHINGS[4][0], "none")
    crawl.create()
    first, second = crawl.write([TEXTS[:4], TEXTS[4:]])
    crawl.run([first])
    return crawl, second, run_killed(crawl, second, at)


def test_a_run_that_compares_with_the_index_alone_is_another_run(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, MATCHINGS[4][0], "none")
    crawl.create()
    (path,) = crawl.write([["a b", "a b", "c the é"]])
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KilledError):
        Faults(20).replace_os(patch)
        crawl.run([path], resume=True, only=True)
    with pytest.raises(UsageError, match="only_against was True, now it is not given"):
        crawl.run([path], resume=True)
    assert len(crawl.run([path], resume=True, only=True)[0]) == 3
    assert len(crawl.run([path], only=True)[0]) == 3
    assert not crawl.run([path])[0]


def test_an_index_that_changed_while_a_run_was_stopped_is_named(tmp_path: Path) -> None:
    crawl, path, _ = stopped(tmp_path / "crawl", 20)
    with nd.DurableIndex.open(crawl.index) as index:
        index.add("other", 5)
    with pytest.raises(
        UsageError,
        match=r"seen\.index changed since .* had 2 documents of 2 ever added, now 3 of 3",
    ):
        crawl.run([path], resume=True)


def test_an_update_is_refused_where_no_features_were_saved(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, MATCHINGS[4][0], "features")
    crawl.create()
    (path,) = crawl.write([TEXTS])
    kills = Faults(20)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KilledError):
        kills.replace_os(patch)
        crawl.run([path], resume=True, update=False)
    with pytest.raises(
        UsageError, match=r"state has fingerprints alone of .* --report or --update"
    ):
        crawl.run([path], resume=True)
    assert not crawl.contents()


def test_documents_of_others_that_came_between_outputs_and_index_are_named(tmp_path: Path) -> None:

    _, _, changes = stopped(tmp_path / "whole", 10**9)
    crawl, path, _ = stopped(tmp_path / "crawl", changes - REMOVALS)
    with nd.DurableIndex.open(crawl.index) as index:
        index.add("other", 5)
    with pytest.raises(UsageError, match="got other documents after this run's outputs"):
        crawl.run([path], resume=True)


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        (Mode.of(recipe=RECIPE), UsageError, "keeps fingerprints only.*--distance .up to 6"),
        (Mode.of(recipe=RECIPE, distance=7), UsageError, "--distance is 7, but .* made for 6"),
        (Mode.of(recipe=nd.Recipe(), distance=3), RecipeError, "two recipes cannot be compared"),
        (Mode.of(recipe=RECIPE, distance=3, policy="components"), UsageError, "requires greedy"),
    ],
)
def test_what_an_index_cannot_serve_is_refused(
    tmp_path: Path, mode: Mode, error: type[Exception], message: str
) -> None:
    Crawl(tmp_path, Mode.of(recipe=RECIPE), "none").create()
    crawl = Crawl(tmp_path, mode, "none")
    with pytest.raises(error, match=message):
        crawl.run(crawl.write([TEXTS]))


@pytest.mark.parametrize("recipe", [None, RECIPE])
def test_recipes_that_differ_are_named_by_their_digests(
    tmp_path: Path, recipe: nd.Recipe | None
) -> None:
    crawl = Crawl(tmp_path, Mode.of(recipe=nd.Recipe(), distance=3), "none")
    nd.DurableIndex.open(crawl.index, distance=3, recipe=recipe).close()
    digest = recipe.digest if recipe else "none"
    message = f"has recipe {digest}, the run {nd.Recipe().digest}: "
    with pytest.raises(RecipeError, match=message):
        crawl.run(crawl.write([TEXTS]))


@pytest.mark.parametrize(
    ("index", "named"),
    [
        ({"distance": 2, "recipe": nd.preset("pypi-simhash")}, {}),
        ({"distance": 2, "recipe": nd.preset("pypi-simhash")}, {"distance": 2}),
        (
            {"distance": 2, "recipe": nd.preset("pypi-simhash")},
            {"recipe": nd.preset("pypi-simhash")},
        ),
        ({"distance": 5, "recipe": RECIPE, "store": "features"}, {"verify": 0.3}),
        ({"distance": 5, "recipe": RECIPE, "store": "features"}, {"similarity": 0.4}),
        ({"similarity": 0.4, "recipe": RECIPE, "measure": "dice"}, {}),
        ({"similarity": 0.4, "recipe": RECIPE, "measure": "dice"}, {"recipe": RECIPE}),
        ({"similarity": 0.4, "recipe": RECIPE, "measure": "dice"}, {"similarity": 0.4}),
    ],
)
def test_what_a_call_does_not_name_is_that_of_the_index(
    tmp_path: Path, index: dict[str, Any], named: dict[str, Any]
) -> None:
    with nd.DurableIndex.open(tmp_path / "seen", **index) as seen:
        seen.add("a", "a b c the")
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"text": t}) + "\n" for t in [*TEXTS, "A b c the"])
    )
    whole = {x: index[x] for x in ("distance", "similarity", "recipe", "measure") if x in index}
    if "similarity" in named:
        whole.pop("distance", None)
    tables = []
    for options in (named, whole | named):
        result = nd.dedup(
            [tmp_path / "in.jsonl"], tmp_path / "out.jsonl", against=tmp_path / "seen", **options
        )
        tables.append(result.duplicates.to_pylist())
    assert tables[0] == tables[1]
    assert "a" in {row["kept"] for row in tables[0]}


def test_the_command_takes_recipe_and_distance_from_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(json.dumps({"id": "x", "text": "one two three"}) + "\n")
    run("index", "create", "seen", "--distance", "3", "--preset", "pypi-simhash")
    for own in ([], ["--preset", "pypi-simhash"], ["--distance", "3"]):
        update = [] if own else ["--update"]
        run(
            "dedup", "in.jsonl", "-o", "out.jsonl", "--id", "id", "--against", "seen", *update, *own
        )
        assert Path("out.jsonl").read_bytes().count(b"\n") == bool(update)
    for other, message in (
        (["--preset", "gaoya"], "two recipes cannot be compared.*--preset pypi-simhash"),
        (["--distance", "4"], "--distance is 4, but seen was made for 3"),
        (["--similarity", "0.8"], "pypi-simhash has no features to compare"),
    ):
        with pytest.raises(nd.NeardupError, match=message):
            run("dedup", "in.jsonl", "-o", "out.jsonl", "--against", "seen", *other)


def test_an_index_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, Mode.of(recipe=RECIPE), "none")
    with pytest.raises(FileError, match="there is no index in"):
        crawl.run(crawl.write([TEXTS]))
    assert not crawl.index.exists()


def test_rows_of_a_file_that_are_known_already_need_ids(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, Mode.of(recipe=RECIPE, distance=0), "none")
    crawl.create()
    (path,) = crawl.write([TEXTS])
    out, against = tmp_path / "kept.jsonl", {"against": crawl.index, "update": True}
    nd.dedup([path], out, distance=0, recipe=RECIPE, **against)
    with gzip.open(path, "wt") as file:
        file.write('{"text": "something else"}\n')
    with pytest.raises(UsageError, match=r"is in .*seen\.index already, with other content: give"):
        nd.dedup([path], tmp_path / "more.jsonl", distance=0, recipe=RECIPE, **against)
    assert not (tmp_path / "more.jsonl").exists()


def test_documents_in_memory_ask_the_index_themselves(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="against requires files"):
        nd.dedup(["a"], against=tmp_path / "seen.index")


@pytest.mark.parametrize("store", ["text", "features", SIMILAR])
def test_a_run_sees_one_commit_of_an_index_whose_documents_are_replaced(
    tmp_path: Path, store: str
) -> None:
    """A service that stores every page again changes nothing of what has been seen."""
    texts = [f"{'word ' * (i % 7)} page {i} of {i * 37}" for i in range(40)]
    crawl = Crawl(tmp_path, Mode.of(recipe=RECIPE, similarity=0.9), store)
    crawl.create()
    (path,) = crawl.write([texts])
    assert len(crawl.run([path])[0]) == len(texts)
    stop = threading.Event()

    def serve() -> None:
        with nd.DurableIndex.open(crawl.index) as index:
            while not stop.is_set():
                for i, text in enumerate(texts):
                    index.add(f"d{i}", text)
                index.commit()

    service = threading.Thread(target=serve)
    service.start()
    try:
        kept = [crawl.run([path], update=False)[0] for _ in range(examples(10, 10))]
    finally:
        stop.set()
        service.join()
    assert not any(kept)


@pytest.mark.parametrize("store", ["text", "features", SIMILAR])
def test_documents_that_were_all_replaced_since_they_were_written_are_found(
    tmp_path: Path, store: str
) -> None:
    """A file of the index has no document that counts any more: the others keep their places."""
    texts = [f"page {i} of {i * 37} and {i * i}" for i in range(60)]
    crawl = Crawl(tmp_path, Mode.of(recipe=RECIPE, similarity=0.9), store)
    crawl.create()
    names = [f"d{i}" for i in range(60)]
    with nd.DurableIndex.open(crawl.index) as index:
        index.add(names, texts)
        index.compact()
        index.add(names, texts)
    (path,) = crawl.write([texts])
    assert not any(crawl.run([path], update=False)[0])


def _rows(draw: random.Random, name: str, pool: list[str]) -> list[dict[str, str]]:
    rows = []
    for at in range(30):
        words = draw.choice(pool).split()
        words[draw.randrange(20)] = "other"
        rows.append({"id": f"{name}{at}", "text": " ".join(words)})
    return [*rows, {"id": f"{name} empty", "text": ""}]


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize(
    "options", ["--similarity 0.5", "--distance 12", "--similarity 0.6 --measure containment"]
)
def test_files_after_against_are_an_index(tmp_path: Path, options: str, only: bool) -> None:
    draw = random.Random(1)
    pool = [" ".join(f"w{draw.randrange(60)}" for _ in range(20)) for _ in range(35)]
    parts = {"one": pool[:20], "two": pool[:20], "new": pool[10:]}
    tables = {name: _rows(draw, name, part) for name, part in parts.items()}
    paths = {name: str(tmp_path / f"{name}.jsonl") for name in tables}
    for name, rows in tables.items():
        Path(paths[name]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    index, kind = str(tmp_path / "index"), options.split()
    run("index", "create", index, *kind)
    run("index", "add", index, paths["one"], paths["two"], "--id", "id")
    flags = ["--only-against"] if only else []
    results = []
    for against in ([index], [paths["one"], paths["two"]]):
        out = [str(tmp_path / "out.jsonl"), str(tmp_path / "dups.csv")]
        run("dedup", paths["new"], "-o", out[0], "--duplicates", out[1], "--id", "id", *kind,
            "--against", *against, *flags)  # fmt: skip
        results.append([Path(each).read_text() for each in out])
    assert results[0] == results[1]
    kept = [json.loads(line)["id"] for line in results[1][0].splitlines()]
    reference = nd.DurableIndex.open(index, readonly=True)
    matched = [row["id"] for row in tables["new"] if reference.query(row["text"])]
    reference.close()
    assert matched
    rest = [row for row in tables["new"] if row["id"] not in matched]
    if not only:
        values = [float(x) if "." in x else x for x in kind[1::2]]
        settings: dict[str, Any] = {
            name[2:]: int(value) if name == "--distance" else value
            for name, value in zip(kind[::2], values, strict=True)
        }
        is_kept = nd.dedup([row["text"] for row in rest], **settings).kept
        assert not is_kept.all()
        rest = [row for row, each in zip(rest, is_kept, strict=True) if each]
    assert kept == [row["id"] for row in rest]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only-against"], "--only-against requires --against"),
        (["--against", "new.jsonl", "--update"], "--update requires --against INDEX"),
        (["--against", "new.jsonl", "--resume", "state"], "--resume requires --against INDEX"),
        (["--against", "no.index"], "there is no index in no.index"),
        (["--against", "new.jsonl", "--only-against", "--distance", "3", "--verify", "0.5"],
         "by --distance without --verify"),
        (["--against", "twice.jsonl", "--id", "id"], "1 documents of twice.jsonl have an id"),
    ],
)  # fmt: skip
def test_files_after_against_have_their_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row = json.dumps({"id": "a", "text": "one two three"}) + "\n"
    (tmp_path / "new.jsonl").write_text(row)
    (tmp_path / "twice.jsonl").write_text(row * 2)
    with pytest.raises(nd.NeardupError, match=message):
        run("dedup", "new.jsonl", "-o", "out.jsonl", *options)
    assert not (tmp_path / "out.jsonl").exists()


def run(*words: str) -> None:
    """A command of neardup in this process."""
    app(list(words), standalone_mode=False)


def test_a_command_is_known_by_its_inputs_options_and_outputs() -> None:
    def command(stamp: str, path: str = "out", **options: Any) -> bytes:
        source: Any = SimpleNamespace(stamps=lambda: [(stamp, 5, 7)])
        facts = {"digest": "d", "options": {}, **options}
        return command_of([source], [path], facts, "compare", skip_errors=False, only=False)

    assert command("a") == command("a")
    others = [command("b"), command("a", "other"), command("a", digest="e")]
    assert len({command("a"), *others}) == 4
