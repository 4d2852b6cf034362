"""The command line: every command and example, its outputs, its errors, and how it stops."""

from __future__ import annotations

import contextlib
import csv
import gzip
import inspect
import io
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from commands import (
    DOCS,
    NEARDUP,
    TEXT,
    TIMEOUT,
    Here,
    lines,
    read,
    without_notice,
    write,
)
from neardup.cli import app
from neardup.fingerprinting.fingerprint_files import read_fingerprints
from neardup.fingerprinting.recipe import Recipe
from neardup.runtime.version import __version__
from suite import needs_jit, without_kernels

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS: dict[str, Any] = {
    command.name or command.callback.__name__: command.callback
    for command in app.registered_commands
    if command.callback is not None
}


def run(*args: str, cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [*NEARDUP, *args], cwd=cwd, input=stdin, capture_output=True, timeout=TIMEOUT, check=False
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in this process, in a folder with docs.jsonl."""
    (tmp_path / "docs.jsonl").write_bytes(lines(DOCS))
    return Here(tmp_path, monkeypatch, capfd)


def ids(path: Path) -> str:
    return "".join(row["id"] for row in read(path))


def one_line(stderr: str | bytes) -> str:
    """The error: one line, no traceback."""
    text = without_notice(stderr.decode() if isinstance(stderr, bytes) else stderr)
    assert re.fullmatch(r"neardup: [^\n]+\n", text), text
    return text.removeprefix("neardup: ").removesuffix("\n")


def test_of_several_files_each_keeps_its_own(here: Here) -> None:
    for name in "abc":
        own = {"id": f"{name}2", "text": f"{name} has a text of its own"}
        write(here.folder / f"{name}.jsonl", [{"id": f"{name}1", "text": TEXT}, own])
    here("dedup", "a.jsonl", "b.jsonl", "c.jsonl", "-o", "kept/")
    assert [ids(here.folder / f"kept/{name}.jsonl") for name in "abc"] == ["a1a2", "b2", "c2"]


@pytest.mark.parametrize(
    ("documents", "tables"),
    [
        ("jsonl", "csv"),
        ("jsonl.gz", "jsonl"),
        ("jsonl.zst", "parquet"),
        ("csv", "tsv"),
        ("tsv.gz", "jsonl.gz"),
        ("parquet", "csv.zst"),
    ],
)
def test_each_format_is_read_and_written(here: Here, documents: str, tables: str) -> None:
    source, out = here.folder / f"in.{documents}", here.folder / f"out.{documents}"
    duplicates, clusters = here.folder / f"dups.{tables}", here.folder / f"clusters.{tables}"
    write(source, DOCS)
    summary = here.summary(
        "dedup", source.name, "-o", out.name, "--id", "id",
        "--duplicates", duplicates.name, "--clusters", clusters.name,
    )  # fmt: skip
    assert (summary["read"], summary["kept"], summary["dropped"]) == (6, 3, 3)
    assert (summary["empty"], summary["clusters"], summary["rejected"]) == (1, 1, 0)
    assert summary["outputs"] == [out.name, duplicates.name, clusters.name]
    assert read(out) == [DOCS[0], DOCS[2], DOCS[4]]
    rows = read(duplicates)
    assert [(row["dropped"], row["kept"], row["cluster"]) for row in rows] == [
        ("b", "a", "a"), ("d", "a", "a"), ("f", "a", "a"),
    ]  # fmt: skip
    assert [round(float(row["similarity"]), 3) for row in rows] == [1.0, 0.909, 1.0]
    assert [int(row["distance"]) == 0 for row in rows] == [True, False, True]
    result = [(row["id"], row["cluster"], str(row["kept"]).lower()) for row in read(clusters)]
    assert result == [
        ("a", "a", "true"), ("b", "a", "false"), ("c", "c", "true"),
        ("d", "a", "false"), ("e", "e", "true"), ("f", "a", "false"),
    ]  # fmt: skip


def test_no_file_that_a_command_reads_is_replaced(here: Here) -> None:
    (here.folder / "old").mkdir()
    for name in ("old.jsonl", "old/a.jsonl"):
        (here.folder / name).write_bytes(lines(DOCS[:1]))
    write(here.folder / "answers.jsonl", [{"first": "a", "second": "b", "answer": "no"}])
    here("fingerprint", "docs.jsonl", "-o", "fps.parquet")
    here("index", "create", "seen.index", "--distance", "3")
    for command, name in (
        ("dedup docs.jsonl --against old.jsonl -o", "old.jsonl"),
        ("dedup docs.jsonl --against old --duplicates", "old/a.jsonl"),
        ("dedup docs.jsonl --id id --decisions answers.jsonl -o", "answers.jsonl"),
        ("index query seen.index fps.parquet -o", "fps.parquet"),
        ("idf learn docs.jsonl -o", "docs.jsonl"),
    ):
        before = (here.folder / name).read_bytes()
        _, err = here(*command.split(), name, code=2)
        assert one_line(err) == f"{name} is an input; write to another path"
        assert (here.folder / name).read_bytes() == before


@pytest.mark.parametrize(
    ("keep", "kept", "named"),
    [("first", "ace", "a"), ("last", "cef", "f"), ("longest", "cde", "d")],
)
def test_keep_decides_which_one_stays(here: Here, keep: str, kept: str, named: str) -> None:
    here("dedup", "docs.jsonl", "-o", "out.jsonl", "--id", "id", "--keep", keep,
         "--duplicates", "dups.jsonl")  # fmt: skip
    assert ids(here.folder / "out.jsonl") == kept
    assert {row["kept"] for row in read(here.folder / "dups.jsonl")} == {named}


def test_greedy_drops_only_what_matches_a_kept_one_and_components_all_of_a_chain(
    here: Here,
) -> None:
    words = [f"w{i}" for i in range(14)]
    chain = [
        {"id": x, "text": " ".join(words[:n])} for x, n in zip("xyz", (10, 12, 14), strict=True)
    ]
    write(here.folder / "chain.jsonl", chain)
    for policy, kept in (("greedy", "xz"), ("components", "x")):
        here("dedup", "chain.jsonl", "-o", "out.jsonl", "--policy", policy)
        assert ids(here.folder / "out.jsonl") == kept


def test_modes_are_similarity_distance_and_both(here: Here) -> None:
    def kept(*options: str) -> str:
        here("dedup", "docs.jsonl", "-o", "out.jsonl", *options)
        return ids(here.folder / "out.jsonl")

    assert kept() == kept("--similarity", "0.9") == "ace"
    assert kept("--similarity", "0.95") == kept("--distance", "0") == "acde"
    assert kept("--distance", "63") == "ae"
    assert kept("--distance", "63", "--verify", "0.9") == "ace"


def test_a_recipe_comes_from_options_or_a_file(here: Here) -> None:
    recipe = Recipe(
        tokens="chars", ngram=5, bits=128, weight="log", normalize="NFC", casefold=False
    )
    (here.folder / "recipe.json").write_text(recipe.to_json())
    by_file = here.summary("dedup", "docs.jsonl", "-o", "out.jsonl", "--recipe", "recipe.json")
    by_options = here.summary(
        "dedup", "docs.jsonl", "-o", "out.jsonl", "--tokens", "chars", "--ngram", "5",
        "--bits", "128", "--weight", "log", "--normalize", "NFC", "--no-casefold",
    )  # fmt: skip
    assert by_file["settings"] == by_options["settings"]
    assert by_file["settings"]["digest"] == recipe.digest
    assert "b" in ids(here.folder / "out.jsonl")


def test_several_inputs_go_to_a_folder_or_one_file(here: Here) -> None:
    write(here.folder / "one.jsonl.gz", DOCS[:2])
    write(here.folder / "two.jsonl", DOCS[2:])
    here("dedup", "one.jsonl.gz", "two.jsonl", "-o", "new/", "--duplicates", "dups.csv")
    assert ids(here.folder / "new/one.jsonl.gz") == "a"
    assert ids(here.folder / "new/two.jsonl") == "ce"
    assert [(x["dropped"], x["kept"]) for x in read(here.folder / "dups.csv")] == [
        ("one.jsonl.gz:2", "one.jsonl.gz:1"),
        ("two.jsonl:2", "one.jsonl.gz:1"),
        ("two.jsonl:4", "one.jsonl.gz:1"),
    ]
    here("dedup", "one.jsonl.gz", "two.jsonl", "-o", "all.jsonl")
    assert ids(here.folder / "all.jsonl") == "ace"


@pytest.mark.parametrize("files", [20, 21])
def test_many_files_of_a_folder_are_counted_and_others_are_named(here: Here, files: int) -> None:
    paths = [f"{number}.jsonl" for number in range(files)]
    for path in paths:
        write(here.folder / path, DOCS[:1])
    _, err = here("dedup", *paths, "-o", "new/", "--duplicates", "dups.csv")
    written = [line.split(maxsplit=1)[1] for line in err.splitlines() if line.startswith("wrote")]
    kept = [f"new/{path}" for path in paths] if files == 20 else ["new/ (21 files)"]
    assert written == [*kept, "dups.csv"]


def test_kept_lines_are_the_bytes_that_were_read(here: Here) -> None:
    data = b'\xef\xbb\xbf{"text" : "a b c", "n":1.50}\r\n\n  {"text":"\\u00e9 d"}\n{"text":"a b c"}'
    (here.folder / "in.jsonl").write_bytes(data)
    here("dedup", "in.jsonl", "-o", "out.jsonl")
    kept = (here.folder / "out.jsonl").read_bytes().removeprefix(b"\xef\xbb\xbf")
    assert kept.split(b"\n")[0] == b'{"text" : "a b c", "n":1.50}\r'
    assert b'  {"text":"\\u00e9 d"}\n' in kept


def test_an_empty_file_is_zero_documents(here: Here) -> None:
    (here.folder / "none.jsonl").write_bytes(b"")
    summary = here.summary("dedup", "none.jsonl", "-o", "out.jsonl", "--clusters", "c.parquet")
    assert summary["read"] == summary["kept"] == 0
    assert (here.folder / "out.jsonl").read_bytes() == b""
    assert pq.read_table(here.folder / "c.parquet").num_rows == 0


def test_bad_records_are_skipped_counted_and_kept_aside(here: Here) -> None:
    good = lines(DOCS[:2])
    (here.folder / "bad.jsonl").write_bytes(good + b'{"text": 7}\nnot json\n{"id": "x"}\n\xff\n')
    _, err = here("dedup", "bad.jsonl", "-o", "out.jsonl", code=1)
    assert one_line(err).startswith("bad.jsonl:3: text is a number, not a string; ")
    assert "out.jsonl" not in here.files()
    summary = here.summary(
        "dedup", "bad.jsonl", "-o", "out.jsonl", "--on-error", "skip", "--rejects", "rej.jsonl"
    )
    assert (summary["read"], summary["rejected"], summary["kept"]) == (6, 4, 1)
    rejects = read(here.folder / "rej.jsonl")
    assert [(row["file"], row["row"]) for row in rejects] == [("bad.jsonl", i) for i in range(3, 7)]
    assert rejects[1]["record"] == "not json"
    assert rejects[3]["record_base64"] == "/w=="


def test_people_get_a_summary_on_the_standard_error_only(here: Here) -> None:
    out, err = here("dedup", "docs.jsonl", "-o", "out.jsonl")
    assert out == ""
    assert [row.split()[:2] for row in err.splitlines()[:4]] == [
        ["read", "6"], ["kept", "3"], ["dropped", "3"], ["rejected", "0"],
    ]  # fmt: skip
    assert err.splitlines()[-1].split() == ["wrote", "out.jsonl"]


def test_fingerprint_speaks_of_fingerprints(here: Here) -> None:
    _, err = here("fingerprint", "docs.jsonl", "-o", "fps.parquet")
    counts = [row.split()[0] for row in err.splitlines()]
    assert counts[:4] == ["documents", "hashed", "empty", "rejected"]
    assert not re.search("kept|dropped|cluster", err)
    summary = here.summary("fingerprint", "docs.jsonl", "-o", "fps.parquet")
    counted = {name: summary[name] for name in ("documents", "fingerprints", "empty", "rejected")}
    assert counted == {"documents": 6, "fingerprints": 5, "empty": 1, "rejected": 0}


@pytest.mark.parametrize(("bits", "form"), [(64, "signed"), (64, "hex"), (61, "hex"), (130, "hex")])
@pytest.mark.parametrize("name", ["f.csv", "f.jsonl", "f.tsv.gz"])
def test_fingerprints_as_text_are_those_of_the_file(
    here: Here, name: str, bits: int, form: str
) -> None:
    base = ("fingerprint", "docs.jsonl", "--id", "id", "--bits", str(bits), "-o")
    here(*base, "f.parquet")
    here(*base, name, *(() if form == "hex" else ("--form", form)))
    stored = read_fingerprints(str(here.folder / "f.parquet"))
    want = {}
    for identity, words in zip(stored.ids.to_pylist(), stored.values.tolist(), strict=True):
        number = None if words[0] is None else sum(x << 64 * at for at, x in enumerate(words))
        if number is not None and form == "signed":
            number -= (number >> 63) << 64
        hexadecimal = number is not None and form == "hex"
        want[identity] = f"{number:0{-(-bits // 4)}x}" if hexadecimal else number
    if name.endswith("jsonl"):
        rows = [json.loads(line) for line in (here.folder / name).read_text().splitlines()]
        result = {row["id"]: row["fingerprint"] for row in rows}
    else:
        data = (here.folder / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
        mark = "," if name == "f.csv" else "\t"
        rows = list(csv.DictReader(io.StringIO(text), delimiter=mark))
        result = {row["id"]: row["fingerprint"] or None for row in rows}
        want = {identity: None if x is None else str(x) for identity, x in want.items()}
    assert result == want


def test_pairs_are_found_in_a_fingerprint_file(here: Here) -> None:
    here("fingerprint", "docs.jsonl", "-o", "fps.parquet", "--id", "id", "--bits", "128")
    assert pq.read_table(here.folder / "fps.parquet")["id"].to_pylist() == list("abcdef")
    summary = here.summary("pairs", "fps.parquet", "-k", "0", "-o", "pairs.csv")
    assert (summary["fingerprints"], summary["pairs"], summary["bits"]) == (6, 3, 128)
    rows = [(x["left_id"], x["right_id"], x["distance"]) for x in read(here.folder / "pairs.csv")]
    assert rows == [("a", "b", "0"), ("a", "f", "0"), ("b", "f", "0")]
    out, err = here("pairs", "fps.parquet", "-o", "-")
    assert len(out.splitlines()) == 3
    assert "3 pairs within 3 bits among 6 fingerprints" in err


def test_compare_shows_distance_and_similarity(here: Here) -> None:
    for name, text in (("a", "one two three"), ("b", "one two four"), ("none", "")):
        (here.folder / name).write_text(text)
    out, _ = here("compare", "a", "b", "--ngram", "1")
    assert "jaccard      0.500 exact, 2 features shared" in out
    assert here.summary("compare", "a", "b", "--ngram", "1")["jaccard"] == 0.5
    assert "matches nothing" in here("compare", "a", "none")[0]


def test_compare_and_explain_take_records_texts_and_a_top_for_each_side(here: Here) -> None:
    out, _ = here("compare", "docs.jsonl:1", "docs.jsonl:2", "--ngram", "1")
    assert "distance     0 of 64 bits" in out
    monday = ("--text-a", "open on Monday", "--text-b", "open on Sunday", "--words")
    assert "\nopen on [-Monday-] {+Sunday+}\n" in here("compare", *monday)[0]
    assert here.summary("compare", *monday)["runs"][0] == ["equal", "open on"]
    assert "cosine       1.000 estimated from the distance; 0.98 to 1.00 in 19" in out
    texts = ("--text-a", "to be to be or", "--text-b", "to be to be not")
    summary = here.summary("compare", *texts, "--ngram", "1", "--top", "2", "--top", "3")
    assert (summary["features"], summary["shared"]) == ([2, 3], 2)
    out, _ = here("explain", *texts, "--ngram", "1", "--top", "2", "--top", "3", "--bits", "8")
    assert "2 features: words" in out
    assert "3 features: words" in out
    assert "1 feature: words" in here("explain", "--text-a", "one two three")[0]
    assert "3 features" in here("compare", "docs.jsonl:1", "--text-b", "a b c d e")[0]
    preset = ("--preset", "go-mfonda")
    assert "3 features" in here("compare", *texts, *preset)[0]


def test_show_puts_the_dropped_beside_the_kept(here: Here) -> None:
    here("dedup", "docs.jsonl", "-o", "out.jsonl", "--duplicates", "dropped.csv")
    out, _ = here("show", "dropped.csv", "--show", "1")
    assert "1 of 3  similarity 0.909  distance" in out
    assert "kept docs.jsonl:1, dropped docs.jsonl:4" in out
    assert "{+" in out
    assert "2 more are at least as similar; --show 3 shows all" in out
    out, _ = here("show", "dropped.csv", "docs.jsonl", "--json")
    assert len(out.splitlines()) == 3
    _, err = here("show", "docs.jsonl", code=1)
    assert "docs.jsonl is not a file that dedup --duplicates wrote" in one_line(err)
    here("dedup", "docs.jsonl", "-o", "out.jsonl", "-k", "0", "--id", "id", "--duplicates", "d.csv")
    assert "kept a, dropped b" in here("show", "d.csv", "docs.jsonl", "--id", "id")[0]
    assert "kept a, dropped b" in here("show", "d.csv")[0]
    _, err = here("show", "d.csv", "docs.jsonl", "--id", "text", code=2)
    assert "d.csv names documents such as 'a', and the inputs hold none" in one_line(err)


def test_what_was_removed_is_read_as_the_run_read_it(here: Here) -> None:
    table = "nr;text\n1;<b>Grüße</b> aus Köln am Rhein\n2;<i>grüße</i> aus Köln am Rhein\n"
    (here.folder / "in.csv").write_bytes(table.encode("cp1252"))
    how = ("--encoding", "cp1252", "--extract", "all")
    here("dedup", "in.csv", "-o", "out.csv", "--duplicates", "dropped.csv", *how)
    out, _ = here("show", "dropped.csv", "in.csv", *how, "--delimiter", ";")
    assert "[-Grüße-]{+grüße+} aus Köln am Rhein" in out
    out, _ = here("compare", "in.csv:2", "in.csv:3", *how)
    assert "jaccard      1.000" in out
    assert "köln" in here("explain", "in.csv:2", "--ngram", "1", *how)[0]
    for command in (("compare", "in.csv:2", "in.csv:3"), ("explain", "in.csv:2")):
        _, err = here(*command, code=1)
        assert "in.csv:2: not UTF-8, it looks like cp1252; pass --encoding cp1252" in err
    (here.folder / "page.txt").write_bytes("Köln".encode("cp1252"))
    assert "köln" in here("explain", "page.txt", "--encoding", "cp1252")[0]


def test_progress_lines_go_where_there_is_no_terminal(here: Here) -> None:
    _, err = here("dedup", "docs.jsonl", "-o", "out.jsonl", "--progress")
    steps = [row.split(": ")[2] for row in err.splitlines() if row.startswith("neardup: ")]
    assert [row.split()[0] for row in steps] == ["read", "read", "match", "match", "write", "write"]
    size = (here.folder / "docs.jsonl").stat().st_size
    assert steps[1] == f"read {size:,} of {size:,} bytes"


@needs_jit
@pytest.mark.parametrize("way", ["screen.warm_up(work)", "with screen.progress(): work()"])
def test_compiling_is_told_only_where_kernels_are_compiled(tmp_path: Path, way: str) -> None:
    program = """
import numpy as np
from neardup.cli import screen
from neardup.kernels.forest import find_root
screen._NOTICE_SECONDS, screen._LOOK_SECONDS = 0.001, 0.001
def work():
    find_root(np.array([0, 0]), 1)
    screen.threading.Event().wait(0.2)
WAY
work()
"""
    environment = without_kernels(tmp_path)
    for expected in (1, 0):
        process = subprocess.run(
            [sys.executable, "-c", program.replace("WAY", way)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stderr.count("neardup: compiling kernels") == expected


@pytest.mark.parametrize("command", [[], ["dedup"], ["index"], ["index", "plan"], ["review"]])
def test_a_flag_is_shown_without_a_type(here: Here, command: list[str]) -> None:
    assert "bool" not in here(*command, "--help")[0].lower()


def test_any_distance_at_the_width_is_refused(here: Here) -> None:
    here("fingerprint", "docs.jsonl", "-o", "f.parquet")
    wide = ("--distance", "64")
    commands = [
        ("pairs", "f.parquet", "-o", "p.csv", *wide),
        ("pairs", "f.parquet", "--clusters", "p.csv", *wide),
        ("pairs", "f.parquet", "--against", "f.parquet", "-o", "p.csv", *wide),
        ("index", "create", "i", *wide),
        ("index", "plan", "1000", *wide),
        ("dedup", "docs.jsonl", "-o", "o.jsonl", *wide),
    ]
    for command in commands:
        _, err = here(*command, code=2)
        assert "fingerprints have 64 bits, so that any two" in err
    assert not {"p.csv", "i", "o.jsonl"} & set(here.files())
    here("fingerprint", "docs.jsonl", "-o", "f8.parquet", "--bits", "8")
    for to in ("-o", "--clusters"):
        _, err = here("pairs", "f8.parquet", to, "p.csv")
        assert "warning: distance 3 of 8 bits matches unrelated documents: among 6" in err
        assert "--verify" not in err


def test_pairs_are_found_against_old_fingerprints(here: Here) -> None:
    here("fingerprint", "docs.jsonl", "-o", "old.parquet", "--id", "id")
    write(here.folder / "new.jsonl", DOCS[:1])
    here("fingerprint", "new.jsonl", "-o", "new.parquet", "--id", "id")
    summary = here.summary(
        "pairs", "new.parquet", "--against", "old.parquet", "-k", "0", "-o", "p.csv"
    )
    assert (summary["fingerprints"], summary["pairs"]) == (7, 3)
    assert [row["right_id"] for row in read(here.folder / "p.csv")] == ["a", "b", "f"]
    _, err = here("pairs", "new.parquet", "--against", "old.parquet", "--clusters", "c", code=2)
    assert "--against gives pairs" in err


def test_a_shell_completes_commands(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_NEARDUP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "neardup ded")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert here()[0].split() == ["dedup"]


def test_demo_works_on_its_own_documents(here: Here) -> None:
    out, err = here("demo", "-o", "demo")
    assert "read             1,949 documents" in err
    assert out.count("->") == 5
    rows = (here.folder / "demo/unique.jsonl").read_bytes().count(b"\n")
    assert f"kept      {rows:>12,}" in err
    lines = (here.folder / "demo/dropped.csv").read_text("utf-8").splitlines()[1:]
    assert 0.7 <= min(float(line.split(",")[3]) for line in lines) < 0.8


WRONG = [
    ("compare docs.jsonl:1", 2, "name two documents: files A and B, or --text-a"),
    ("compare a b --text-a x", 2, "b: two documents are enough"),
    ("compare docs.jsonl docs.jsonl:1", 2, "docs.jsonl holds records: name one, such as"),
    ("compare - -", 2, "standard input (-) is named twice"),
    ("compare --text-a a --text-b b --top 1 --top 1 --top 1", 2, "--top is given three times"),
    ("compare --text-a a --text-b b --top x", 2, "--top is 'x': use a whole number from 1 up"),
    ("explain", 2, "name a document: a file, or --text-a TEXT"),
    ("explain 这是一句话", 2, "there is no file '这是一句话': name one, or pass a text itself by"),
    ("compare docs.jsonl:1 'no file'", 2, "name one, or pass a text itself by --text-a TEXT or"),
    ("explain nothing.txt", 3, "cannot read nothing.txt: No such file"),
    ("dedup docs.jsonl -o x.jsonl --zork", 2, "(see neardup dedup --help)"),
    ("dedup docs.jsonl -o x.jsonl --threshold 1", 2, "--threshold; did you mean --similarity?"),
    ("dedup docs.jsonl -o x.jsonl -k 3 --verify 70", 2, "up to 1; 0.7?"),
    ("dedup docs.jsonl -o x.jsonl -s 0,8", 2, "'0,8': use a number above 0, up to 1; 0.8?"),
    ("dedup docs.jsonl -o x.jsonl -s 80%", 2, "'80%': use a number above 0, up to 1; 0.8?"),
    ("pairs docs.jsonl -o p.csv", 1, "make them with `neardup fingerprint docs.jsonl -o FPS"),
    ("zork", 2, "zork"),
    ("dedup", 2, "Missing argument 'IN...'"),
    ("dedup docs.jsonl", 2, "nothing to write: pass -o OUT"),
    ("dedup docs.jsonl -o x.jsonl --similarity 0.8 --distance 3", 2, "exclude each other"),
    ("dedup docs.jsonl -o x.jsonl --similarity 80", 2, "80"),
    ("dedup docs.jsonl -o x.jsonl --similarity nan", 2, "nan"),
    ("dedup docs.jsonl -o x.jsonl --distance -1", 2, "'-1': use a whole number from 0 up"),
    ("dedup docs.jsonl -o x.jsonl --distance many", 2, "'many': use a whole number from 0 up"),
    ("dedup docs.jsonl -o x.jsonl --verify 0.8", 2, "verify"),
    ("dedup docs.jsonl -o x.jsonl --keep best", 2, "'best': use one of first, last, longest"),
    ("dedup docs.jsonl -o x.jsonl --policy all", 2, "'all': use one of greedy, components"),
    ("dedup docs.jsonl -o x.jsonl --distance 3 --plan fast", 2, "fast"),
    ("dedup docs.jsonl -o x.jsonl --workers 0", 2, "'0': use a whole number from 1 up"),
    ("dedup docs.jsonl -o x.jsonl --memory much", 2, "much"),
    ("dedup docs.jsonl -o x.jsonl --bits 0", 2, "bits is 0: use a whole number from 1 to 32,767"),
    ("dedup docs.jsonl -o x.jsonl --bits wide", 2, "--bits is 'wide'"),
    ("dedup docs.jsonl -o x.jsonl --ngram 0", 2, "'0': use a whole number from 1 up"),
    (
        "dedup docs.jsonl -o x.jsonl --ngram 70000",
        2,
        "ngram is 70000: use a whole number from 1 to",
    ),
    ("dedup docs.jsonl -o x.jsonl --similarity high", 2, "'high': use a number above 0, up to 1"),
    ("dedup docs.jsonl -o x.jsonl --tokens word", 2, "'word': use one of words, chars"),
    ("dedup docs.jsonl -o x.jsonl --hash crc7", 2, "hash is 'crc7'"),
    ("dedup docs.jsonl -o x.jsonl --on-error ignore", 2, "'ignore': use stop or skip"),
    ("dedup docs.jsonl -o x.jsonl --rejects r.jsonl", 2, "--rejects requires --on-error skip"),
    ("dedup docs.jsonl -o x.jsonl --recipe r.json", 3, "cannot read r.json"),
    (
        "dedup docs.jsonl -o x.jsonl --recipe docs.jsonl",
        2,
        "docs.jsonl: a recipe is not valid JSON",
    ),
    ("dedup docs.jsonl -o x.jsonl --recipe r.json --bits 3", 2, "--recipe and --bits exclude"),
    ("dedup docs.jsonl -o - --json", 2, "--json prints on the standard output"),
    ("dedup docs.jsonl -o x.jsonl --on-error skip --rejects - --json", 2, "--json prints on"),
    ("dedup docs.jsonl -o x.jsonl --clusters x.jsonl", 2, "two outputs"),
    ("dedup docs.jsonl -o docs.jsonl", 2, "docs.jsonl is an input"),
    ("dedup docs.jsonl -o ./docs.jsonl", 2, "is an input"),
    ("dedup docs.jsonl -o x.jsonl --duplicates docs.jsonl", 2, "is an input"),
    ("dedup docs.jsonl -o x.csv", 2, "records keep their format"),
    ("dedup docs.jsonl docs.jsonl -o out/", 2, "docs.jsonl is named twice"),
    ("dedup docs.jsonl -o no/x.jsonl", 3, "there is no folder"),
    ("dedup docs.jsonl -o x.jsonl --duplicates no/d.csv", 3, "there is no folder"),
    ("dedup docs.jsonl -o x.jsonl --text body", 1, 'docs.jsonl:1: no field "body"'),
    ("dedup docs.jsonl -o x.jsonl --id key", 1, 'docs.jsonl:1: no field "key"'),
    ("dedup docs.jsonl -o x.jsonl --text ", 2, "--text"),
    ("dedup docs.jsonl -o x.jsonl --tmp no", 3, "--tmp is 'no': there is no such folder"),
    ("dedup missing.jsonl -o x.jsonl", 3, "cannot read missing.jsonl: No such file"),
    ("dedup docs.odd -o x.jsonl", 2, "docs.odd: unknown extension"),
    ("dedup - - -o x.jsonl", 2, "named twice"),
    ("fingerprint docs.jsonl", 2, "Missing option"),
    ("fingerprint docs.jsonl -o fps.txt", 2, "use the extension .parquet"),
    ("fingerprint docs.jsonl -o fps.xlsx", 2, "use the extension .parquet"),
    ("fingerprint docs.jsonl -o fps.csv --form octal", 2, "use hex or signed"),
    ("fingerprint docs.jsonl -o fps.csv --form signed --bits 128", 2, "use hex"),
    ("fingerprint docs.jsonl -o fps.parquet --form hex", 2, "is for CSV and JSON lines"),
    ("fingerprint docs.jsonl -o no/fps.parquet", 3, "there is no folder"),
    ("pairs docs.jsonl -o p.csv", 1, "docs.jsonl: not a Parquet file"),
    ("pairs missing.parquet -o p.csv", 3, "cannot read missing.parquet"),
    ("pairs missing.parquet -o - --json", 2, "--json prints on the standard output"),
    ("dedup docs.jsonl -o x.jsonl --update", 2, "--update requires --against"),
    ("dedup docs.jsonl -o x.jsonl --against x.index", 3, "to make one, neardup index create"),
    ("dedup docs.jsonl --dry-run --against x.index", 2, "leave out --against"),
    ("dedup docs.jsonl -o x.jsonl --report x.pdf", 2, "a report is an HTML page, not .pdf"),
    ("dedup docs.jsonl -o x.jsonl --decisions no.jsonl", 3, "no.jsonl: No such file or directory"),
    ("calibrate docs.jsonl --report x.csv", 2, "name it .html"),
    ("calibrate docs.jsonl --seed -1", 2, "'-1': use a whole number from 0 up"),
    ("calibrate docs.jsonl --sample few", 2, "'few': use a whole number from 2 up"),
    ("calibrate docs.jsonl --lowest 30", 2, "up to 1; 0.3?"),
    ("evaluate --docs docs.jsonl --labels l.csv --report x.csv", 2, "name it .html"),
    (
        "evaluate --docs docs.jsonl --labels l.csv",
        3,
        "cannot read l.csv: No such file or directory",
    ),
    ("evaluate --docs docs.jsonl --labels l.csv --seed -1", 2, "use a whole number from 0 up"),
    ("review no.csv docs.jsonl", 3, "cannot read no.csv: No such file or directory"),
    ("compare docs.jsonl:1 missing", 3, "cannot read missing: No such file"),
    ("compare - -", 2, "named twice"),
    ("demo -o docs.jsonl", 3, "cannot create docs.jsonl"),
]


@pytest.mark.parametrize(("command", "code", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_an_error_is_one_clear_line(here: Here, command: str, code: int, message: str) -> None:
    (here.folder / "docs.odd").write_bytes(b"")
    before = here.files()
    args = shlex.split(command) + ([""] if command.endswith(" ") else [])
    out, err = here(*args, code=code)
    assert out == ""
    assert message in one_line(err)
    assert here.files() == before


def test_the_version_is_shown(here: Here) -> None:
    assert here("--version") == (f"neardup {__version__}\n", "")


def test_no_command_shows_the_help(here: Here) -> None:
    out, err = here(code=2)
    assert "Commands" in out
    assert err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_describes_every_option(here: Here, command: str) -> None:
    out, _ = here(command, "--help")
    options = re.findall(r"--[a-z-]+", out)
    assert "--help" in options
    assert f"neardup {command}" in out
    assert all(re.search(rf"{option}\b.*\S+ \S+", out) for option in options)


def examples() -> list[str]:
    rows_of_page = []
    for name, command in COMMANDS.items():
        rows = [row.strip() for row in (inspect.getdoc(command) or "").split("\n")]
        shown = [row for row in rows if re.search(rf"\bneardup {name}\b", row)]
        assert shown, f"{name} shows no example"
        # No network here, no compiling of everything, and nothing that waits.
        if name not in {"compile", "review", "serve"}:
            rows_of_page += [row for row in shown if "://" not in row]
    return rows_of_page


def write_benchmarks(folder: Path) -> None:
    """Write training documents, and benchmarks whose questions they do not hold."""
    (folder / "train").mkdir()
    for name in ("train.jsonl", "train/1.parquet"):
        write(folder / name, DOCS)
    texts = [f"which of the {i} rivers is the longest" for i in "abc"]
    for name in ("mmlu.jsonl", "gsm8k.parquet"):
        write(folder / name, [{"text": x, "question": x, "answer": "b"} for x in texts])


def inputs_of_index_and_dedup(here: Here, example: str) -> None:
    """Make the index or the results that an example reads."""
    if "--fields" in example:
        more = {"Email": "a@b.org", "Date": "2024-01-01"}
        write(here.folder / "news.jsonl", [row | more for row in DOCS])
    if example.startswith(("neardup show", "neardup report")):
        for kind in ("csv", "jsonl"):
            files = f"--duplicates dropped.{kind} --clusters clusters.{kind}".split()
            own = ["--id", "id", "--similarity", "0.7"] if "--id" in example else []
            here("dedup", "news.jsonl", *files, *own)
    if example.startswith("neardup decontaminate"):
        write_benchmarks(here.folder)
    elif "--against" in example:
        here("index", "create", "seen.index", "--distance", "3")


@pytest.mark.parametrize("example", examples())
def test_every_example_of_the_help_works(here: Here, example: str) -> None:
    tmp_path = here.folder
    page = [{"title": "News", "body": row["text"]} for row in DOCS]
    (tmp_path / "crawl.gz").write_bytes(gzip.compress(lines(page)))
    for name in (
        "news.jsonl",
        "monday.jsonl",
        "a.jsonl.gz",
        "b.jsonl.gz",
        "news.csv",
        "news.parquet",
    ):
        write(tmp_path / name, DOCS)
    (tmp_path / "list.csv").write_text("text,changed\nan entry,03.02.2024\n")
    (tmp_path / "docs").mkdir()
    for name in ("LICENSE", "README.md", "docs/one.txt", "docs/two.txt"):
        (tmp_path / name).write_text(TEXT)
    if example.startswith("neardup calibrate"):
        own = [" ".join(f"w{i * j % 997}" for j in range(1, 40)) for i in range(1, 41)]
        write(tmp_path / "news.jsonl", [{"id": str(i), "text": x} for i, x in enumerate(own)])
    if example.startswith("neardup pairs"):
        (tmp_path / "fingerprints").mkdir()
        for name in ("news.parquet", "fingerprints/1.parquet"):
            here("fingerprint", "news.jsonl", "-o", name)
    inputs_of_index_and_dedup(here, example)
    if example.startswith(("neardup evaluate", "neardup calibrate")):
        (tmp_path / "crawl").mkdir()
        write(tmp_path / "crawl" / "1.jsonl.gz", DOCS)
        (tmp_path / "pairs.csv").write_text("id1,id2\na,b\n")
        (tmp_path / "clusters.csv").write_text("id,cluster\na,1\nb,1\nc,2\n")
    out, err = here.shell(example.replace("/tmp/", "./"))  # noqa: S108
    assert out or "wrote" in err


def test_a_pipe_is_read_and_written_quietly(tmp_path: Path) -> None:
    process = run(
        "dedup", "-", "-o", "-", "--duplicates", "dups.csv", cwd=tmp_path, stdin=lines(DOCS)
    )
    assert process.returncode == 0
    assert process.stdout == lines([DOCS[0], DOCS[2], DOCS[4]])
    assert b"\x1b" not in process.stderr
    assert without_notice(process.stderr.decode()).count("\n") == 7
    assert read(tmp_path / "dups.csv")[0]["dropped"] == "<stdin>:2"


def test_compressed_pipes_are_read(tmp_path: Path) -> None:
    process = run("dedup", "-", "-o", "-", cwd=tmp_path, stdin=gzip.compress(lines(DOCS)))
    assert process.stdout == lines([DOCS[0], DOCS[2], DOCS[4]])


@pytest.mark.parametrize("options", ["-o no/x.jsonl", "-o x.jsonl --clusters no/c.csv"])
def test_an_output_that_cannot_be_is_refused_before_reading(tmp_path: Path, options: str) -> None:
    os.mkfifo(tmp_path / "docs.jsonl")  # nobody writes: reading it would never end
    process = run("dedup", "docs.jsonl", *options.split(), cwd=tmp_path)
    assert process.returncode == 3
    assert "there is no folder" in one_line(process.stderr)


def test_a_closed_standard_output_ends_it_without_a_word(tmp_path: Path) -> None:
    records = [{"text": f"{i} {i * i} {i + 7} {'x' * 100}"} for i in range(5000)]
    write(tmp_path / "many.jsonl", records)
    script = f'{shlex.join(NEARDUP)} dedup many.jsonl -o - | head -n 1; exit "${{PIPESTATUS[0]}}"'
    process = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=TIMEOUT, check=False
    )
    assert process.returncode == 141
    assert without_notice(process.stderr.decode()) == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("this process ignores the signal, and so do those that it starts")
    fifo, spill = tmp_path / "docs.jsonl", tmp_path / "spill"
    os.mkfifo(fifo)
    spill.mkdir()
    process = subprocess.Popen(
        [*NEARDUP, "dedup", fifo.name, "-o", "out.jsonl", "--duplicates", "dups.csv",
         "--clusters", "c.parquet", "--on-error", "skip", "--rejects", "r.jsonl",
         "--tmp", str(spill)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process, fifo.open("wb", buffering=0) as pipe:
        pipe.write(lines(DOCS) * 100)
        time.sleep(0.3)
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 128 + number
    assert one_line(err) == "interrupted: no file was written"
    assert out == b""
    assert sorted(x.name for x in tmp_path.iterdir()) == ["docs.jsonl", "spill"]
    assert list(spill.iterdir()) == []


def test_a_terminal_shows_progress_and_is_left_clean(tmp_path: Path) -> None:
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [*NEARDUP, "dedup", "-", "-o", "out.jsonl"],
        cwd=tmp_path, stdin=subprocess.PIPE, stderr=side, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(side)
    assert process.stdin is not None
    process.stdin.write(lines(DOCS))
    process.stdin.flush()
    output = b""
    while b"read" not in output and process.poll() is None:
        output += os.read(terminal, 1 << 16)
    process.stdin.close()
    with contextlib.suppress(OSError):  # the other side is closed: EIO
        while more := os.read(terminal, 1 << 16):
            output += more
    assert process.wait(TIMEOUT) == 0
    os.close(terminal)
    assert output.index(b"\x1b[?25l") < output.index(b"\x1b[?25h"), (
        "the cursor is hidden, then shown"
    )
    summary = output[output.index(b"\x1b[?25h") :]
    assert b"kept                 3" in summary
    assert ids(tmp_path / "out.jsonl") == "ace"


def test_the_module_runs_as_the_script_does() -> None:
    run = [sys.executable, "-m", "neardup", "--version"]
    printed = subprocess.run(run, capture_output=True, text=True, check=True)
    assert printed.stdout == f"neardup {__version__}\n"


def test_what_is_compiled_ahead_is_what_a_run_needs() -> None:
    program = """
        import neardup as nd
        from neardup.pipeline.warm import compile_search
        from neardup.kernels.similarity.rare_keys import count_cells, rank_cells, select_keys
        from neardup.kernels.similarity.match_documents import match_components, match_greedy
        compile_search()
        kernels = [count_cells, rank_cells, select_keys, match_greedy]
        ahead = [kernel.signatures for kernel in kernels]
        assert all(ahead)
        nd.dedup(["a b c d", "a b c d", "e f"], workers=1)
        assert [kernel.signatures for kernel in kernels] == ahead
        assert not match_components.signatures  # compiled when first asked for
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
