"""`neardup index`: every command, what it prints, its exit codes, and its errors in one line."""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from commands import DOCS, NEARDUP, TEXT, TIMEOUT, Here, lines, read, write
from cppjieba_files import CONTENTS
from neardup.cli.commands.index import app
from neardup.features import keyword_weights

if TYPE_CHECKING:
    from collections.abc import Callable

NEAR_TEXT = ["a", "b", "f"]
"""The ids of DOCS whose text has the same words."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands in a folder with docs.jsonl, and an index `seen` that holds its documents."""
    (tmp_path / "docs.jsonl").write_bytes(lines(DOCS))
    shell = Here(tmp_path, monkeypatch, capfd)
    nd.DurableIndex.create("seen", distance=3, recipe=nd.Recipe()).close()
    shell("index", "add", "seen", "docs.jsonl", "--id", "id")
    return shell


def stored(folder: str = "seen") -> list[Any]:
    """The ids in an index, in order."""
    with nd.DurableIndex.open(folder, readonly=True) as index:
        assert index.check() == []
        return [identity for identity, _ in index]


def fails(here: Here, *arguments: str, code: int) -> str:
    """The one line of an error."""
    out, err = here("index", *arguments, code=code)
    assert out == ""
    assert err.startswith("neardup: ")
    assert err.count("\n") == 1
    return err


def test_an_index_by_learned_frequencies_takes_their_table(here: Here) -> None:
    here("idf", "learn", "docs.jsonl", "-o", "t.idf", "--ngram", "1")
    here("index", "create", "i", "-k", "3", "--ngram", "1", "--weight", "tfidf", "--idf", "t.idf")
    here("index", "add", "i", "docs.jsonl", "--id", "id", "--idf", "t.idf")
    out, _ = here("index", "query", "i", "--query-text", TEXT, "--idf", "t.idf", "--json")
    assert [hit["id"] for hit in json.loads(out)["hits"]] == NEAR_TEXT
    assert "cannot read no.idf" in fails(here, "add", "i", "docs.jsonl", "--idf", "no.idf", code=3)


def test_an_index_by_keywords_of_cppjieba_takes_its_folder(here: Here, tmp_path: Path) -> None:
    folder = tmp_path / "dict"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_text(content, "utf-8")
    write(tmp_path / "laws.jsonl", [{"id": "law", "text": "我来到北京清华大学"}])
    options = ["--dictionary", str(folder)]
    here("index", "create", "i", "--distance", "3", "--preset", "yanyiwu", *options)
    keyword_weights.FOLDERS.clear()  # as a process of its own finds it
    assert "--dictionary FOLDER" in fails(here, "add", "i", "laws.jsonl", "--id", "id", code=2)
    here("index", "add", "i", "laws.jsonl", "--id", "id", *options)
    keyword_weights.FOLDERS.clear()
    out, _ = here("index", "query", "i", "--query-text", "我来到北京清华大学", *options, "--json")
    assert [hit["id"] for hit in json.loads(out)["hits"]] == ["law"]
    wrong = fails(here, "add", "i", "laws.jsonl", "--dictionary", "none", code=3)
    assert "cannot read none/jieba.dict.utf8" in wrong


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ("", "similarity 0.7 (jaccard)"),
        ("--ngram 2", "similarity 0.8 (jaccard)"),
        ("--measure cosine", "similarity 0.8 (cosine)"),
        ("--similarity 0.7 --bits 128", "similarity 0.7 (jaccard)"),
        ("--measure cosine --bits 128", "similarity 0.8 (cosine)"),
        ("--store features", "similarity 0.7 (jaccard)"),
        ("--weight count", "similarity 0.8 (jaccard)"),
        ("--distance 2 --weight count", "distance 2"),
        ("--distance 3 --preset pypi-simhash", "distance 3"),
    ],
)
def test_an_index_is_by_similarity_unless_a_distance_is_asked_for(
    here: Here, options: str, rule: str
) -> None:
    assert here("index", "create", "i", *options.split())[1].startswith(f"made i: {rule}, ")


@pytest.mark.parametrize(
    "option",
    ["--no-recipe", "--bits 128", "--bits 64", "--preset pypi-simhash",
     "--store none", "--plan scan"],
)  # fmt: skip
def test_an_option_of_fingerprints_does_not_choose_the_kind(here: Here, option: str) -> None:
    """The error names both choices, and makes no folder; with a distance it is taken."""
    name = option.split(maxsplit=1)[0]
    wrong = fails(here, "create", "i", *option.split(), code=2)
    assert f"{name} is for fingerprints: pass --distance 3 for an index by distance" in wrong
    assert f"leave {name} out for one by similarity" in wrong
    assert not Path("i").exists()
    message = here("index", "create", "i", "--distance", "3", *option.split())[1]
    assert message.startswith("made i: distance 3, ")


def test_a_recipe_in_a_file_does_not_choose_the_kind(here: Here) -> None:
    Path("wide.json").write_text(nd.Recipe(bits=128).to_json())
    assert here("index", "create", "i", "--recipe", "wide.json")[1].startswith("made i: similar")


def test_create_makes_an_index_of_the_distance_recipe_and_store(here: Here) -> None:
    options = ["--distance", "7", "--tokens", "chars", "--ngram", "4", "--bits", "128"]
    _, err = here("index", "create", "other", *options, "--store", "text", "--plan", "scan")
    recipe = nd.Recipe(tokens="chars", ngram=4, bits=128)
    assert err == f"made other: distance 7, recipe {recipe.digest}\n"
    with nd.DurableIndex.open("other", readonly=True) as index:
        assert (index.distance, index.bits, index.store) == (7, 128, "text")
        assert index.recipe == recipe
        assert index.stats()["plan"] == "scan"
        assert len(index) == 0


def test_add_stores_what_has_tokens_and_its_summary_adds_up(here: Here) -> None:
    assert stored() == ["a", "b", "c", "d", "f"]
    summary = here.summary("index", "add", "seen", "docs.jsonl", "--id", "id")
    del summary["seconds"]
    assert summary == {
        "read": 6, "stored": 5, "replaced": 5, "unchanged": 0, "seen": 0, "empty": 1,
        "rejected": 0, "documents": 5, "notes": [], "warnings": [],
    }  # fmt: skip
    _, err = here("index", "add", "seen", "docs.jsonl")
    assert stored()[5:] == [f"docs.jsonl:{row}" for row in (1, 2, 3, 4, 6)]
    assert re.search(r"read +6 \(0 rejected, 1 empty\)\nstored +5\nindex +10 documents", err)


def test_add_counts_an_id_that_comes_twice_as_replaced(here: Here) -> None:
    records = [{"id": "x", "text": TEXT}, {"id": "x", "text": "other words than before"}]
    (here.folder / "twice.jsonl").write_bytes(lines(records))
    summary = here.summary("index", "add", "seen", "twice.jsonl", "--id", "id")
    assert (summary["read"], summary["stored"], summary["replaced"], summary["documents"]) == (
        2,
        2,
        1,
        6,
    )


def test_add_if_new_leaves_out_what_is_near(here: Here) -> None:
    nd.DurableIndex.create("fresh", distance=3, recipe=nd.Recipe()).close()
    summary = here.summary("index", "add", "fresh", "docs.jsonl", "--id", "id", "--if-new")
    kept = stored("fresh")
    assert kept[0] == "a"
    assert not {"b", "f"} & set(kept)
    assert summary["stored"] == summary["documents"] == len(kept)
    assert (
        summary["read"]
        == summary["stored"] + summary["seen"] + summary["empty"] + summary["rejected"]
    )
    again = here.summary("index", "add", "fresh", "docs.jsonl", "--id", "id", "--if-new")
    assert (again["stored"], again["unchanged"], again["seen"]) == (0, 3, 2)
    assert again["read"] == again["unchanged"] + again["seen"] + again["empty"]


def test_add_if_new_says_what_becomes_of_an_id_with_other_content(here: Here) -> None:
    records = [
        {"id": "a", "text": "the fog closed the harbour for two nights"},
        {"id": "c", "text": TEXT},
        {"id": "new", "text": "the ferry to the islands was late again"},
        {"id": "b", "text": "the last boat of the year left on Monday"},
    ]
    (here.folder / "again.jsonl").write_bytes(lines(records))
    add = ["index", "add", "seen", "again.jsonl", "--id", "id", "--if-new", "--stored"]
    before = dict(nd.DurableIndex.open("seen", readonly=True))
    error = fails(here, *add[1:], "error", code=1)
    assert "again.jsonl:1: the id 'a' is stored with other content: pass --stored replace" in error
    assert dict(nd.DurableIndex.open("seen", readonly=True)) == before
    kept = here.summary(*add, "keep")
    names = ("stored", "replaced", "unchanged", "seen")
    assert [kept[name] for name in names] == [1, 0, 2, 1]
    assert before.items() < dict(nd.DurableIndex.open("seen", readonly=True)).items()
    replaced = here.summary(*add, "replace")
    assert [replaced[name] for name in names] == [2, 2, 1, 1]
    _, err = here(*add, "keep")
    assert re.search(r"stored +0, 3 unchanged, 1 seen before\n", err)
    assert "stored is 'drop': use 'replace'" in fails(here, *add[1:], "drop", code=2)
    del add[6]
    assert "--stored keep requires --if-new" in fails(here, *add[1:], "keep", code=2)


def test_add_if_new_writes_what_was_new(here: Here) -> None:
    """Records as they were read, of each input its own, before they are stored."""
    more = [{"id": "new", "text": "the ferry to the islands was late again"}, DOCS[0]]
    (here.folder / "more.jsonl").write_bytes(lines(more))
    add = ["index", "add", "fresh", "docs.jsonl", "more.jsonl", "--id", "id", "--if-new"]
    nd.DurableIndex.create("fresh", distance=3, recipe=nd.Recipe()).close()
    summary = here.summary(*add, "-o", "out/")
    lines_in = lines(DOCS).splitlines(keepends=True)
    kept = [each for each, doc in zip(lines_in, DOCS, strict=True) if doc["id"] in "acde"]
    assert (here.folder / "out" / "docs.jsonl").read_bytes() == b"".join(kept)
    assert (here.folder / "out" / "more.jsonl").read_bytes() == lines(more[:1])
    assert (summary["stored"], summary["empty"], stored("fresh")) == (4, 1, ["a", "c", "d", "new"])
    out, _ = here(*add, "-o", "-")
    assert out.encode() == lines([doc for doc in DOCS if not doc["text"]])
    for wrong, message in (
        (["-o", "docs.jsonl"], "docs.jsonl"),
        (["-o", "new.csv"], "records keep their format"),
        (["-o", "-", "--json"], "--json prints on the standard output"),
    ):
        assert message in fails(here, *add[1:], *wrong, code=2)
    assert "--output new requires --if-new" in fails(
        here, "add", "seen", "docs.jsonl", "-o", "new", code=2
    )
    here("fingerprint", "docs.jsonl", "-o", "docs.parquet", "--id", "id")
    line = fails(here, "add", "seen", "docs.parquet", "--if-new", "-o", "new.parquet", code=2)
    assert "docs.parquet is a fingerprint file" in line


def test_a_kill_before_the_commit_has_the_new_ones_written_again(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is committed before the output has its name, however many documents there are."""
    nd.DurableIndex.create("fresh", distance=3, recipe=nd.Recipe()).close()
    monkeypatch.setattr("neardup.pipeline.index_files.ROWS_A_COMMIT", 1)
    commit, seen = nd.DurableIndex.commit, []

    def stopped(_: nd.DurableIndex) -> None:
        seen.append(Path("new.jsonl").exists())
        raise nd.FileError("killed")

    add = ["index", "add", "fresh", "docs.jsonl", "--id", "id", "--if-new", "-o", "new.jsonl"]
    monkeypatch.setattr(nd.DurableIndex, "commit", stopped)
    here(*add, code=3)
    monkeypatch.setattr(nd.DurableIndex, "commit", commit)
    before = Path("new.jsonl").read_bytes()
    assert (seen, stored("fresh")) == ([True], [])
    here(*add)
    assert Path("new.jsonl").read_bytes() == before
    assert stored("fresh") == ["a", "c", "d"]


@pytest.mark.parametrize("kind", [["--distance", "3"], ["--similarity", "0.8"]])
@pytest.mark.parametrize("option", [[], ["--if-new"]])
def test_ids_that_are_made_do_not_replace_other_content(
    here: Here, kind: list[str], option: list[str]
) -> None:
    here("index", "create", "rows", *kind)
    first = here.summary("index", "add", "rows", "docs.jsonl", *option)
    again = here.summary("index", "add", "rows", "docs.jsonl", *option)
    assert again["documents"] == first["documents"] == first["stored"]
    records = [{"text": ""}, {"text": ""}, {"text": "the fog closed the harbour for two nights"}]
    (here.folder / "docs.jsonl").write_bytes(lines(records))
    before = stored("rows")
    error = fails(here, "add", "rows", "docs.jsonl", *option, code=2)
    assert re.search(r"'docs.jsonl:3' is in \S+rows already, with other content: give", error)
    assert stored("rows") == before


def test_rows_of_fingerprint_files_without_ids_do_not_replace_others(here: Here) -> None:
    here("index", "create", "hashes", "--distance", "3", "--no-recipe")
    for number in (5, 6):
        pq.write_table(pa.table({"fingerprint": pa.array([number], pa.uint64())}), "f.parquet")
        if number == 6:
            error = fails(here, "add", "hashes", "f.parquet", code=2)
            assert re.search(r"'f.parquet:1' is in \S+hashes already, with other", error)
        else:
            here("index", "add", "hashes", "f.parquet")
            here("index", "add", "hashes", "f.parquet")
    assert stored("hashes") == ["f.parquet:1"]


def test_bad_records_stop_it_or_are_skipped_and_kept(here: Here) -> None:
    good, bad = lines(DOCS[:1]), b'{"id": 5}\nno json\n'
    (here.folder / "bad.jsonl").write_bytes(good.replace(b'"a"', b'"new"') + bad)
    arguments = ["add", "seen", "bad.jsonl", "--id", "id"]
    assert "bad.jsonl:2" in fails(here, *arguments, code=1)
    assert "new" not in stored()
    skip = ["--on-error", "skip", "--rejects", "rejects.jsonl"]
    summary = here.summary("index", *arguments, *skip)
    assert (summary["read"], summary["stored"], summary["rejected"]) == (3, 1, 2)
    assert [each["row"] for each in read(here.folder / "rejects.jsonl")] == [2, 3]
    assert "new" in stored()


@pytest.mark.parametrize("kind", ["jsonl.gz", "csv", "parquet"])
def test_documents_come_in_every_format(here: Here, kind: str) -> None:
    write(here.folder / f"more.{kind}", [{**each, "id": f"{each['id']}2"} for each in DOCS])
    here("index", "add", "seen", f"more.{kind}", "--id", "id")
    assert stored()[5:] == ["a2", "b2", "c2", "d2", "f2"]


@pytest.mark.parametrize("name", ["hits.jsonl", "hits.csv", "hits.tsv", "hits.parquet"])
def test_hits_go_out_in_every_format(here: Here, name: str) -> None:
    summary = here.summary("index", "query", "seen", "docs.jsonl", "--id", "id", "-o", name)
    hits = [(each["query"], each["id"], int(each["distance"])) for each in read(here.folder / name)]
    assert [hit for hit in hits if hit[0] == "a" and not hit[2]] == [("a", x, 0) for x in NEAR_TEXT]
    assert (summary["queries"], summary["empty"], summary["matched"]) == (6, 1, 5)
    assert (summary["hits"], summary["cut"]) == (len(hits), 0)


def test_hits_of_files_are_printed_if_no_output_is_named(here: Here) -> None:
    out, err = here("index", "query", "seen", "docs.jsonl", "--id", "id", "--distance", "0")
    assert [json.loads(line) for line in out.splitlines()][:3] == [
        {"query": "a", "id": each, "distance": 0} for each in NEAR_TEXT
    ]
    assert "queries      6" in err
    assert "--json" in fails(here, "query", "seen", "docs.jsonl", "--json", code=2)


def test_a_limit_says_how_many_hits_it_cut(here: Here) -> None:
    question = ["index", "query", "seen", "--query-text", TEXT, "--distance", "0"]
    out, err = here(*question, "--limit", "2")
    assert out == "  0  a\n  0  b\n"
    assert err == "1 more were cut by --limit\n"
    out, err = here(*question, "--limit", "0")
    assert (out, err.splitlines()[0]) == ("", "3 more were cut by --limit")
    assert json.loads(here(*question, "--limit", "1", "--json")[0]) == {
        "hits": [{"id": "a", "distance": 0}],
        "total": 3,
    }
    files = ["docs.jsonl", "-o", "hits.csv", "-k", "0", "--limit", "1"]
    summary = here.summary("index", "query", "seen", *files)
    assert (summary["hits"], summary["cut"]) == (5, 6)


def test_a_text_and_its_fingerprint_find_the_same(here: Here) -> None:
    value = nd.fingerprint(TEXT)
    assert value is not None
    queries = [("--query-text", TEXT), ("--fingerprint", f"{value}"), ("--fingerprint", hex(value))]
    assert len({here("index", "query", "seen", *each) for each in queries}) == 1
    out, _ = here("index", "query", "seen", *queries[0])
    assert out.splitlines()[:3] == [f"  0  {each}" for each in NEAR_TEXT]


def test_nearest_gives_as_many_as_asked_however_far(here: Here) -> None:
    question = ["index", "query", "seen", "--query-text", "nothing like it is here"]
    assert here(*question) == ("", "no stored document is near it\n")
    out, err = here(*question, "--nearest", "4")
    distances = [int(line.split()[0]) for line in out.splitlines()]
    assert len(distances) == 4
    assert distances == sorted(distances)
    assert err == ""


def test_a_text_without_tokens_is_near_to_nothing_and_says_so(here: Here) -> None:
    out, err = here("index", "query", "seen", "--query-text", " -- ")
    assert out == ""
    assert err.startswith("the text has no tokens")
    out, _ = here("index", "query", "seen", "--query-text", "", "--json")
    assert json.loads(out) == {"hits": [], "total": 0}


def with_stdin(here: Here, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Ask about the standard input, in a process of its own."""
    return subprocess.run(
        [*NEARDUP, "index", "query", "seen", "--query-text", "-"],
        cwd=here.folder, input=data, capture_output=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip


def test_the_text_may_be_the_standard_input(here: Here) -> None:
    assert with_stdin(here, TEXT.encode()).stdout.startswith(b"  0  a\n  0  b\n")
    process = with_stdin(here, b"\xff" + TEXT.encode())
    assert (process.returncode, process.stdout) == (1, b"")
    assert process.stderr == b"neardup: the standard input is not UTF-8 (byte 1)\n"


def test_fingerprint_files_are_added_and_asked(here: Here) -> None:
    here("fingerprint", "docs.jsonl", "-o", "docs.parquet", "--id", "id")
    nd.DurableIndex.create("other", recipe=nd.Recipe()).close()
    summary = here.summary("index", "add", "other", "docs.parquet")
    assert (summary["stored"], summary["empty"]) == (5, 1)
    assert stored("other") == stored()
    out, _ = here("index", "query", "other", "docs.parquet", "--distance", "0", "--limit", "1")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a", "a", "c", "d", "a"]


def table(values: list[int | None], ids: list[Any] | None) -> pa.Table:
    """A fingerprint file of another program's."""
    columns = {} if ids is None else {"id": ids}
    return pa.table({**columns, "fingerprint": pa.array(values, pa.uint64())})


def test_fingerprints_of_other_programs_are_taken_with_bit_63_and_without_ids(here: Here) -> None:
    pq.write_table(table([2**63, None, 2**64 - 1], [5, 6, 7]), "numbers.parquet")
    pq.write_table(table([2**63, 1], None), "bare.parquet")
    assert "pass --foreign" in fails(here, "add", "seen", "numbers.parquet", code=2)
    here("index", "add", "seen", "numbers.parquet", "--foreign")
    here("index", "add", "seen", "bare.parquet", "--foreign")
    assert stored()[5:] == ["5", "7", "bare.parquet:1", "bare.parquet:2"]
    out, _ = here("index", "query", "seen", "--fingerprint", f"{2**63}", "-k", "0")
    assert out == "  0  5\n  0  bare.parquet:1\n"
    pq.write_table(table([1, 2], ["x", None]), "gap.parquet")
    assert "gap.parquet:2" in fails(here, "add", "seen", "gap.parquet", "--foreign", code=1)


def test_a_field_of_fingerprints_is_taken_as_such_and_not_as_text(here: Here) -> None:
    """A table of another program's, as a database writes it: signed."""
    rows = ["url,simhash", f"a,{2**63 + 5}", f"b,{5 - 2**63}", "c,0x8000000000000007", "d,"]
    (here.folder / "pg.csv").write_text("\n".join([*rows, ""]))
    plain = ["url,simhash", *(f"u{i},{-(2**62) + i}" for i in range(9)), ""]
    (here.folder / "plain.csv").write_text("\n".join(plain))
    options = ("plain.csv", "--id", "url", "--text", "simhash")
    assert "--fingerprint-field" in fails(here, "add", "seen", *options, code=2)
    here("index", "create", "hashes", "--no-recipe", "--distance", "2")
    add = ("pg.csv", "--id", "url", "--fingerprint-field", "simhash")
    assert "pass --foreign" in fails(here, "add", "seen", *add, code=2)
    summary = here.summary("index", "add", "hashes", *add)
    assert (summary["stored"], summary["empty"]) == (3, 1)
    out, _ = here("index", "query", "hashes", "--fingerprint", f"{2**63 + 5}")
    assert out == "  0  a\n  0  b\n  1  c\n"
    (here.folder / "bad.csv").write_text(f"url,simhash\na,5\nb,{2**64}\n")
    assert "b: the fingerprint is" in fails(here, "add", "hashes", "bad.csv", *add[1:], code=1)


@pytest.mark.parametrize("name", ["jsonl", "json", "parquet", "signed.parquet", "texts.parquet"])
def test_a_field_of_fingerprints_has_numbers_or_texts_of_numbers(here: Here, name: str) -> None:
    numbers = [5, 2**63 + 5, 2**64 - 1, 7]
    rows = [{"url": f"u{i}", "simhash": number} for i, number in enumerate(numbers)]
    path = here.folder / f"hashes.{name}"
    if name == "jsonl":
        rows[3]["simhash"] = "7"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif name == "json":
        path.write_text(json.dumps(rows))
    else:
        column = pa.array(numbers, pa.uint64())
        column = column.view(pa.int64()) if "signed" in name else column
        column = column.cast(pa.string()) if "texts" in name else column
        pq.write_table(pa.table({"url": [row["url"] for row in rows], "simhash": column}), path)
    here("index", "create", "hashes", "--no-recipe", "--distance", "0")
    here("index", "add", "hashes", path.name, "--id", "url", "--fingerprint-field", "simhash")
    for row, number in enumerate(numbers):
        found, _ = here("index", "query", "hashes", "--fingerprint", str(number))
        assert found == f"  0  u{row}\n"


def test_what_is_no_number_is_refused_with_the_option_that_names_the_field(here: Here) -> None:
    here("index", "create", "hashes", "--no-recipe", "--distance", "0")
    (here.folder / "bad.jsonl").write_text('{"url": "a", "simhash": 1.5}\n')
    pq.write_table(pa.table({"url": ["a"], "simhash": [1.5]}), here.folder / "bad.parquet")
    options = ("--id", "url", "--fingerprint-field")
    for name in ("bad.jsonl", "bad.parquet"):
        for field in ("simhash", "hash"):
            message = fails(here, "add", "hashes", name, *options, field, code=1)
            assert "--fingerprint-field" in message
            assert "--text" not in message


def hexadecimal_column(here: Here, name: str, *numbers: str) -> tuple[str, ...]:
    """Write a table of other people's fingerprints; the arguments that add it to an index."""
    rows = ["url,simhash", *(f"{name}{i},{number}" for i, number in enumerate(numbers)), ""]
    (here.folder / f"{name}.csv").write_text("\n".join(rows))
    return (f"{name}.csv", "--id", "url", "--fingerprint-field", "simhash")


def test_a_column_of_hexadecimal_numbers_needs_no_0x_where_all_have_the_full_width(
    here: Here,
) -> None:
    here("index", "create", "hashes", "--no-recipe", "--distance", "0")
    given = hexadecimal_column(
        here, "x", "1234567890123456", "8c3a5f7e9ecb3f35", "", "0x5", "00000000000000FF"
    )
    here("index", "add", "hashes", *given)
    for number, name in (
        ("0x1234567890123456", "x0"),
        ("0x8c3a5f7e9ecb3f35", "x1"),
        ("5", "x3"),
        ("255", "x4"),
    ):
        out, _ = here("index", "query", "hashes", "--fingerprint", number)
        assert out == f"  0  {name}\n"
    given = hexadecimal_column(here, "whole", "1234567890123456", "7")
    here("index", "add", "hashes", *given)
    assert here("index", "query", "hashes", "--fingerprint", "1234567890123456")[0].endswith(
        "whole0\n"
    )
    for at, numbers in enumerate(
        [("8c3a5f7e9ecb3f35", "77"), ("5", "ff"), ("8c3a5f7e9ecb3f35", "-5")]
    ):
        given = hexadecimal_column(here, f"bad{at}", *numbers)
        assert "16" in fails(here, "add", "hashes", *given, code=1)


def test_the_hexadecimal_numbers_that_neardup_writes_are_read_again(here: Here) -> None:
    here("fingerprint", "docs.jsonl", "--id", "id", "-o", "prints.csv")
    here("index", "create", "hashes", "--distance", "3")
    field = ("--id", "id", "--fingerprint-field", "fingerprint", "--foreign")
    here("index", "add", "hashes", "prints.csv", *field)
    assert (
        here("index", "query", "hashes", "--query-text", TEXT, "-k", "0")[0]
        == "  0  a\n  0  b\n  0  f\n"
    )


def test_the_nearest_of_each_document_of_files_are_those_of_its_text(here: Here) -> None:
    (here.folder / "one.txt").write_text(TEXT)
    for options in (["--distance", "3"], ["--similarity", "0.8"]):
        here("index", "create", f"n{options[0]}", *options)
        here("index", "add", f"n{options[0]}", "docs.jsonl", "--id", "id")
        out, _ = here("index", "query", f"n{options[0]}", "one.txt", "--nearest", "4")
        text = here("index", "query", f"n{options[0]}", "--query-text", TEXT, "--nearest", "4")[0]
        found = [json.loads(line)["id"] for line in out.splitlines()]
        assert found == [line.split()[1] for line in text.splitlines()]


def test_an_index_of_numbers_takes_numbers(here: Here) -> None:
    with nd.DurableIndex.open("numbers", recipe=nd.Recipe()) as index:
        index.add([1, 2], [5, 6])
    records = [{"id": 2, "text": TEXT}, {"id": -3, "text": TEXT}]
    (here.folder / "some.jsonl").write_bytes(lines(records))
    here("index", "add", "numbers", "some.jsonl", "--id", "id")
    assert stored("numbers") == [1, 2, -3]
    assert "'a'" in fails(here, "add", "numbers", "docs.jsonl", "--id", "id", code=1)
    assert "'x'" in fails(here, "remove", "numbers", "x", code=2)
    here("index", "remove", "numbers", "2", "--", "-3")
    assert stored("numbers") == [1]


def test_remove_removes_all_or_none(here: Here) -> None:
    assert "'zz'; none was removed" in fails(here, "remove", "seen", "a", "zz", code=1)
    assert len(stored()) == 5
    assert here("index", "remove", "seen", "a", "d") == ("", "removed 2\n")
    assert stored() == ["b", "c", "f"]


def test_a_backup_is_restored_to_a_new_folder(here: Here) -> None:
    assert here("index", "backup", "seen", "copy") == ("", "copy: 5 documents\n")
    here("index", "remove", "seen", "a")
    message = here("index", "restore", "copy", "again")
    assert message == ("", "again: 5 documents, all checksums right\n")
    assert stored("again") == stored("copy") == ["a", "b", "c", "d", "f"]
    assert "name a new folder" in fails(here, "backup", "seen", "copy", code=3)
    assert "there is no index in none" in fails(here, "restore", "none", "x", code=3)


def test_expire_removes_what_is_older_than_the_age(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in ("1h", "1.5h", "2d", "1w", "90m", "9000s"):
        assert here("index", "expire", "seen", "--max-age", age)[1] == "removed 0, 5 left\n"
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    here("index", "add", "seen", "docs.jsonl")
    assert here("index", "expire", "seen", "--max-age", "30m")[1] == "removed 5, 5 left\n"
    assert stored() == [f"docs.jsonl:{row}" for row in (1, 2, 3, 4, 6)]
    for age in ("bad", "", "5", "-1d", "1e3d", "1y"):
        assert repr(age) in fails(here, "expire", "seen", f"--max-age={age}", code=2)


def test_expire_of_all_needs_yes_in_a_script(here: Here) -> None:
    wrong = fails(here, "expire", "seen", "--max-age", "0s", code=2)
    assert "every document of seen (5) is older than 0s: pass --yes to remove them all" in wrong
    assert len(stored()) == 5
    assert here("index", "expire", "seen", "--max-age", "0s", "--yes")[1] == "removed 5, 0 left\n"
    assert here("index", "expire", "seen", "--max-age", "0s")[1] == "removed 0, 0 left\n"


@pytest.mark.parametrize(("answer", "left"), [("n", 5), ("", 5), ("y", 0)])
def test_expire_asks_on_a_terminal_before_it_removes_all(
    here: Here, answer: str, left: int
) -> None:
    command = [*NEARDUP, "index", "expire", "seen", "--max-age", "0s"]
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command, cwd=here.folder, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    os.write(ours, f"{answer}\n".encode())
    _, err = process.communicate(timeout=300)
    for end in (ours, theirs):
        os.close(end)
    assert "every document of seen (5) is older than 0s: remove them all? [y/N]" in err
    assert (process.returncode, len(stored())) == (int(left > 0), left)


def test_stats_tells_what_is_held_and_compares_the_plans(here: Here) -> None:
    out, err = here("index", "stats", "seen")
    assert err == ""
    assert out.startswith("documents    5, and 0 removed, to compact")
    assert "newest       5 rows, which queries scan" in out
    assert re.search(r"^\* +scan +0", out, re.MULTILINE)
    summary = here.summary("index", "stats", "seen")
    assert (summary["documents"], summary["ids"], summary["store"]) == (5, "str", "none")
    assert f"bits, recipe {summary['recipe']}\n" in out
    assert [each["name"] for each in summary["plans"] if each["chosen"]] == ["scan"]
    nd.DurableIndex.create("empty", recipe=nd.Recipe()).close()
    assert "none yet" in here("index", "stats", "empty")[0]
    assert here.summary("index", "stats", "empty")["plans"] == []


def test_plan_compares_searches_of_an_index_to_come(here: Here) -> None:
    out, _ = here("index", "plan", "10000000", "--distance", "3")
    assert out.startswith("10,000,000 fingerprints of 64 bits, distance 3\n")
    assert re.search(r"^\* +multi:4 ", out, re.MULTILINE)
    plans = json.loads(here("index", "plan", "1000", "-k", "60", "--json")[0])
    assert [each["name"] for each in plans if each["chosen"]] == ["scan"]


def test_compact_gives_back_the_room_of_removed_documents(here: Here) -> None:
    here("index", "remove", "seen", "a")
    assert here.summary("index", "stats", "seen")["removed"] == 1
    assert here("index", "compact", "seen") == ("", "seen: 4 documents\n")
    summary = here.summary("index", "stats", "seen")
    assert (summary["documents"], summary["removed"], summary["log_rows"]) == (4, 0, 0)


def turn_a_bit(path: Path) -> None:
    """Damage the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: list[tuple[Callable[[Path], Any], str]] = [
    (turn_a_bit, "damaged"),
    (lambda path: os.truncate(path, 100), "damaged"),
    (lambda path: path.unlink(), "is missing"),
]


@pytest.mark.parametrize(("damage", "word"), DAMAGES)
def test_check_names_the_damaged_file_and_what_to_do(
    here: Here, damage: Callable[[Path], Any], word: str
) -> None:
    here("index", "compact", "seen")
    assert here("index", "check", "seen") == ("", "seen: 5 documents, all checksums right\n")
    segment = next(Path("seen").glob("*.nds"))
    damage(segment)
    _, err = here("index", "check", "seen", code=1)
    assert str(segment) in err
    assert word in err
    assert "restore the index from a copy" in err
    assert err.count("\n") == 1


def test_a_log_that_was_cut_is_refused(here: Here) -> None:
    log = next(Path("seen").glob("*.mdb"))
    os.truncate(log, 0)
    for command in (["stats"], ["check"], ["query", "--fingerprint", "5"], ["add", "docs.jsonl"]):
        wrong = fails(here, command[0], "seen", *command[1:], code=1)
        assert "restore the index from a copy" in wrong


WRONG: list[tuple[str, int, str]] = [
    ("query nowhere --query-text x", 3, "no index in nowhere"),
    ("add nowhere docs.jsonl", 3, "neardup index create nowhere"),
    ("stats docs.jsonl", 1, "docs.jsonl is a file"),
    ("create docs.jsonl", 3, "docs.jsonl exists"),
    ("create seen", 3, "seen exists"),
    ("create new -k 3 --store all", 2, "'all'"),
    ("create new -k 3 --plan magic", 2, "magic"),
    ("create new --distance x", 2, "'x'"),
    ("create new --distance 3 --measure cosine", 2, "--measure and --distance exclude each"),
    ("create new --distance 3 -s 0.8", 2, "--similarity and --distance exclude each other"),
    ("add seen", 2, "IN..."),
    ("add seen missing.jsonl", 3, "missing.jsonl"),
    ("add seen docs.jsonl --id nope", 1, '"nope"'),
    ("add seen docs.jsonl --on-error maybe", 2, "maybe"),
    ("add seen docs.jsonl --rejects r.jsonl", 2, "--on-error skip"),
    ("query seen", 2, "--query-text"),
    ("query seen docs.jsonl --query-text x", 2, "one of"),
    ("query seen --query-text x --fingerprint 5", 2, "one of"),
    ("query seen --query-text x -o hits.csv", 2, "--output"),
    ("query seen --query-text x --text body", 2, "--text is for IN..."),
    ("query seen --fingerprint 5 --csv-safe", 2, "--csv-safe is for IN..."),
    ("nearest seen --id a --format csv", 2, "--format is for IN..."),
    ("add seen docs.jsonl --foreign", 2, "--foreign is for fingerprints"),
    ("add seen docs.jsonl --text text --fingerprint-field n", 2, "takes the place of --text"),
    ("plan 5 -s 0.8 --bits 128", 2, "--bits is 128 and --similarity 0.8"),
    ("expire seen --max-age 0s", 2, "pass --yes"),
    ("query seen docs.jsonl --nearest 2 --limit 1", 2, "--nearest"),
    ("query seen --query-text x --nearest 2 --limit 1", 2, "--limit"),
    ("query seen --query-text x --nearest 0", 2, "--nearest"),
    ("query seen --query-text 'a b c' --distance 99", 2, "distance is 99"),
    ("query seen --query-text 'a b c' --distance -1", 2, "--distance"),
    ("query seen --query-text 'a b c' --limit -1", 2, "--limit"),
    ("query seen --fingerprint abc", 2, "'abc'"),
    ("query seen --fingerprint -5", 2, "-5"),
    ("query seen --fingerprint 0x1ffffffffffffffff", 2, "2**64"),
    ("query seen docs.jsonl -o docs.jsonl", 2, "docs.jsonl"),
    ("remove seen", 2, "ID..."),
    ("expire seen", 2, "--max-age"),
    ("plan x", 2, "N"),
    ("plan 5 --bits 0", 2, "--bits"),
    ("forget seen", 2, "forget"),
]


@pytest.mark.parametrize(("command", "code", "word"), WRONG)
def test_wrong_usage_is_one_line_with_its_exit_code(
    here: Here, command: str, code: int, word: str
) -> None:
    """And it changes nothing."""
    assert word in fails(here, *shlex.split(command), code=code)
    assert stored() == ["a", "b", "c", "d", "f"]
    assert read(here.folder / "docs.jsonl") == DOCS


def test_fingerprints_of_another_recipe_or_width_are_refused(here: Here) -> None:
    here("fingerprint", "docs.jsonl", "-o", "chars.parquet", "--tokens", "chars")
    for command in ("add", "query"):
        assert "two recipes" in fails(here, command, "seen", "chars.parquet", code=2)
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4, dtype=np.uint64)), 2)
    pq.write_table(pa.table({"id": ["x", "y"], "fingerprint": wide}), "wide.parquet")
    assert "128 bits, not 64" in fails(here, "add", "seen", "wide.parquet", code=2)
    assert "not both" in fails(here, "add", "seen", "wide.parquet", "docs.jsonl", code=2)


def test_an_index_that_keeps_texts_takes_documents_and_can_be_asked_with_fingerprints(
    here: Here,
) -> None:
    here("fingerprint", "docs.jsonl", "-o", "docs.parquet", "--id", "id")
    here("index", "create", "texts", "--distance", "3", "--store", "text")
    assert "keeps text" in fails(here, "add", "texts", "docs.parquet", code=2)
    here("index", "add", "texts", "docs.jsonl", "--id", "id")
    with nd.DurableIndex.open("texts", readonly=True) as index:
        assert index.content("b") == TEXT.upper()
    assert here("index", "query", "texts", "docs.parquet", "-k", "0")[0]


def test_an_index_without_a_recipe_takes_fingerprints_only(here: Here) -> None:
    nd.DurableIndex.open("bare").close()
    assert "no recipe" in fails(here, "add", "bare", "docs.jsonl", code=2)
    assert "no recipe" in fails(here, "query", "bare", "--query-text", "x", code=2)
    pq.write_table(table([7], ["x"]), "x.parquet")
    here("index", "add", "bare", "x.parquet")
    assert stored("bare") == ["x"]


def test_while_one_writes_others_read_and_do_not_write(here: Here) -> None:
    with nd.DurableIndex.open("seen") as index:
        index.add("new", 5)
        for command in (["add", "seen", "docs.jsonl"], ["expire", "seen", "--max-age", "1d"]):
            process = subprocess.run(
                [*NEARDUP, "index", *command],
                cwd=here.folder, capture_output=True, timeout=TIMEOUT, check=False,
            )  # fmt: skip
            assert process.returncode == 3
            assert b"open for writing in process" in process.stderr
            assert process.stderr.count(b"\n") == 1
        with nd.DurableIndex.open("seen", readonly=True) as reader:
            assert len(reader) == 5
            index.commit()
            assert len(reader) == 6


def test_runs_that_wait_for_each_other_are_one_after_the_other(here: Here) -> None:
    """Of documents in both inputs one is kept, whichever run comes first."""
    nd.DurableIndex.create("shared", similarity=0.8, recipe=nd.Recipe(), store="text").close()
    texts = [f"story {n} of {n * n} and {n + 7} in {n * 3} words" for n in range(60)]
    for name, part in (("one", range(40)), ("two", range(20, 60))):
        rows = [{"id": f"{name}{n}", "text": texts[n]} for n in part]
        (here.folder / f"{name}.jsonl").write_bytes(lines(rows))
    runs = [
        ["dedup", f"{name}.jsonl", "-o", f"{name}-new.jsonl", "--id", "id", "--similarity", "0.8",
         "--against", "shared", "--update", "--wait", "2m"]
        for name in ("one", "two")
    ]  # fmt: skip
    runs.append(["index", "add", "shared", "docs.jsonl", "--id", "id", "--if-new", "--wait", "2m"])
    with nd.DurableIndex.open("shared") as index:
        waiting = [
            subprocess.Popen([*NEARDUP, *run], cwd=here.folder, stderr=subprocess.PIPE)
            for run in runs
        ]
        index.add("own", TEXT)
        short = here(*runs[2][:-1], "0.1s", code=3)[1]
        assert "after 0.1 s of waiting: wait until it closes" in short
        assert [each.poll() for each in waiting] == [None] * 3
    for each in waiting:
        assert each.communicate(timeout=TIMEOUT)[1].count(b"neardup:") == 0
        assert each.returncode == 0
    kept = [*read(here.folder / "one-new.jsonl"), *read(here.folder / "two-new.jsonl")]
    assert sorted(row["text"] for row in kept) == sorted(texts)
    with nd.DurableIndex.open("shared", wait=1) as index:
        assert index.check() == []
        others = {"own": TEXT, "c": DOCS[2]["text"]}
        names = [name for name, _ in index]
        contents = dict(zip(names, index.contents(names), strict=True))
        assert contents == {row["id"]: row["text"] for row in kept} | others
    assert "--wait is '5x': use a number" in fails(here, "compact", "seen", "--wait", "5x", code=2)
    _, err = here("dedup", "docs.jsonl", "-o", "-", "--against", "seen", "--wait", "5s", code=2)
    assert "--wait requires --update" in err


def bytes_in(pipe: BinaryIO) -> int:
    """What its reader has not taken yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def test_an_interrupted_add_keeps_what_was_committed_and_can_go_on(here: Here) -> None:
    os.mkfifo("pipe.jsonl")
    command = [*NEARDUP, "index", "add", "seen", "pipe.jsonl", "--id", "id"]
    with (
        subprocess.Popen(command, cwd=here.folder, stderr=subprocess.PIPE) as adding,
        Path("pipe.jsonl").open("wb") as pipe,
    ):
        pipe.write(lines([{"id": "late", "text": TEXT}]))
        pipe.flush()
        while bytes_in(pipe) and adding.poll() is None:
            time.sleep(0.05)
        time.sleep(0.2)  # it waits for more: a signal just before would be seen behind that only
        adding.send_signal(signal.SIGINT)
        _, err = adding.communicate(timeout=TIMEOUT)
    assert adding.returncode == 130
    assert b"neardup: interrupted: what seen had committed stays" in err
    assert stored() == ["a", "b", "c", "d", "f"]


def test_a_pipe_that_closes_is_no_traceback(here: Here) -> None:
    (here.folder / "many.jsonl").write_bytes(lines([{"text": TEXT}]) * 20_000)
    script = (
        f'{shlex.join(NEARDUP)} index query seen many.jsonl | head -n 1; exit "${{PIPESTATUS[0]}}"'
    )
    process = subprocess.run(
        ["bash", "-c", script], capture_output=True, timeout=TIMEOUT, check=False
    )
    assert process.returncode == 141
    assert b"Traceback" not in process.stderr


def test_the_examples_of_every_command_name_it_and_run(here: Here) -> None:
    """Each docstring's examples, in order, on files of their names."""
    shutil.copy("docs.jsonl", "news.jsonl")
    shutil.copy("docs.jsonl", "new.jsonl")
    (here.folder / "question.txt").write_text("when do ships leave the harbour?")
    here("fingerprint", "docs.jsonl", "-o", "news-fingerprints.parquet", "--id", "id")
    (here.folder / "pages.csv").write_text("url,simhash\nx,-42\n")
    nd.Question(similarity=0.6).save("question.toml")
    for each in app.registered_commands:
        assert each.callback is not None
        text = inspect.getdoc(each.callback) or ""
        examples = [line for line in text.splitlines() if line.startswith("neardup ")]
        assert examples, each.callback.__name__
        for example in examples:
            assert example.startswith(f"neardup index {each.name or each.callback.__name__} ")
            if "<" in example:  # of a shell: see test_index_filter.py
                continue
            if "news.jsonl:17" in example:
                here("index", "add", "seen.index", "news.jsonl")
                example = example.replace("news.jsonl:17", "news.jsonl:1")  # noqa: PLW2901
            here(*shlex.split(example)[1:])


def test_what_is_read_for_an_index_is_told_as_for_dedup(here: Here) -> None:
    table = "nr;body\n1;<p>Grüße aus <b>Köln</b> am schönen Rhein</p>\n2;<p>Öl und Käse</p>\n"
    (here.folder / "export.csv").write_bytes(table.encode("cp1252"))
    fields = ("--id", "nr", "--text", "body", "--encoding", "cp1252")
    _, err = here("index", "add", "seen", "export.csv", *fields)
    assert "note      export.csv was read as cp1252" in err
    assert "warning   export.csv: 100% of the first texts begin like HTML" in err
    _, err = here("index", "add", "seen", "export.csv", *fields, "--extract", "all", "--progress")
    assert "stored               2 (2 replaced)" in err
    assert "begin like HTML" not in err
    assert re.search(r"^neardup: 0 s: add 0 of \d+ bytes$", err, re.MULTILINE)
    (here.folder / "new.csv").write_text("nr|body\n7|Grüße aus Köln am schönen Rhein\n")
    options = ("--id", "nr", "--text", "body", "--delimiter", "|", "--progress")
    out, err = here("index", "query", "seen", "new.csv", *options)
    assert json.loads(out) == {"query": "7", "id": "1", "distance": 0}
    assert "query 0 of" in err
