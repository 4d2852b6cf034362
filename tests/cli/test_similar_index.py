"""`neardup index` with an index by similarity: every command, what it prints, and its errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import neardup as nd
from commands import Here, lines

if TYPE_CHECKING:
    from pathlib import Path

WORDS = "one two three four five six seven eight nine ten eleven twelve"
DOCS = [
    {"id": "a", "text": WORDS},
    {"id": "b", "text": f"{WORDS} thirteen"},
    {"id": "c", "text": "nothing of the kind is here"},
    {"id": "d", "text": "  "},
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands in a folder with docs.jsonl, and an index `seen` that holds its documents."""
    (tmp_path / "docs.jsonl").write_bytes(lines(DOCS))
    shell = Here(tmp_path, monkeypatch, capfd)
    _, err = shell("index", "create", "seen", "--similarity", "0.8")
    assert err == f"made seen: similarity 0.8 (jaccard), recipe {nd.Recipe().digest}\n"
    shell("index", "add", "seen", "docs.jsonl", "--id", "id")
    return shell


def test_add_counts_and_if_new_leaves_out_what_is_similar(here: Here) -> None:
    again = here.summary("index", "add", "seen", "docs.jsonl", "--id", "id", "--if-new")
    counts = {name: again[name] for name in ("read", "stored", "unchanged", "empty", "documents")}
    assert counts == {"read": 4, "stored": 0, "unchanged": 3, "empty": 1, "documents": 3}


def test_query_prints_similarity_and_id(here: Here) -> None:
    out, _ = here("index", "query", "seen", "--query-text", WORDS)
    assert out == "1.0000  a\n0.9091  b\n"
    out, _ = here("index", "query", "seen", "--query-text", WORDS, "-s", "0.95", "--json")
    assert json.loads(out) == {"hits": [{"id": "a", "similarity": 1.0}], "total": 1}
    out, _ = here(
        "index", "query", "seen", "--query-text", "here is nothing of the", "--nearest", "2"
    )
    assert out == "0.1667  c\n"


def test_query_of_files_writes_a_table(here: Here) -> None:
    here("index", "query", "seen", "docs.jsonl", "--id", "id", "-o", "hits.parquet")
    table = pq.read_table("hits.parquet")
    assert table.column_names == ["query", "id", "similarity"]
    assert table["id"].to_pylist() == ["a", "b", "b", "a", "c"]


def test_remove_stats_check_and_compact(here: Here) -> None:
    here("index", "remove", "seen", "b")
    here("index", "compact", "seen")
    out, _ = here("index", "stats", "seen")
    assert out.startswith("documents    2, and 0 removed, to compact\n")
    assert "jaccard from 0.8" in out
    summary = here.summary("index", "stats", "seen")
    assert f"\nfeatures     recipe {summary['recipe']}\n" in out
    assert summary["documents"] == 2
    assert [each["name"] for each in summary["plans"]] == ["as it is", "compacted"]
    _, err = here("index", "check", "seen")
    assert err == "seen: 2 documents, all checksums right\n"


def test_plan_says_what_an_index_to_come_costs(here: Here) -> None:
    out, _ = here("index", "plan", "1000000", "--similarity", "0.8")
    assert out.startswith("1,000,000 documents of 300 features, jaccard from 0.8\n")
    options = "-s", "0.9", "--similarity-measure", "cosine", "--features", "20"
    plans = json.loads(here("index", "plan", "5000", *options, "--json")[0])
    assert [each["parts"] for each in plans] == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "5", "-s", "0.8", "-k", "3"], "an index has one of them"),
        (["plan", "5", "--features", "3"], "require --similarity"),
        (["plan", "5", "-s", "8"], "similarity is 8"),
        (["query", "seen", "--query-text", "x", "-k", "3"], "the index is by similarity, from 0.8"),
        (["query", "seen", "--query-text", "x", "-s", "0.5"], "the index was made for 0.8"),
        (["query", "seen", "--fingerprint", "5"], "the index is by similarity of features"),
        (
            ["create", "new", "-s", "0.8", "-k", "3"],
            "--similarity and --distance exclude each other",
        ),
        (["create", "new", "-s", "0.8", "--store", "none"], "--store is for fingerprints"),
        (
            ["create", "new", "--measure", "cosine", "-k", "3"],
            "--measure and --distance exclude each other",
        ),
        (["create", "new", "--measure", "cosine", "--plan", "scan"], "--plan is for fingerprints"),
    ],
)
def test_what_belongs_to_the_other_kind_is_one_line(
    here: Here, arguments: list[str], message: str
) -> None:
    out, err = here("index", *arguments, code=2)
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_dedup_against_it_drops_what_it_has(here: Here) -> None:
    run = ("dedup", "docs.jsonl", "-o", "new.jsonl", "--id", "id", "--duplicates", "d.csv")
    here(*run, "--against", "seen")
    rows = (here.folder / "d.csv").read_text().splitlines()
    assert len(rows) == 4
    assert all(row.split(",")[3] != "" for row in rows[1:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--similarity", "0.5"], "--similarity is 0.5, but seen was made for 0.8"),
        (["--distance", "3"], "--distance is 3, but seen is by similarity, from 0.8"),
        (["--measure", "cosine"], "--measure is cosine, but seen was made with jaccard"),
        (["--policy", "components"], "--against requires greedy"),
    ],
)
def test_runs_that_it_cannot_serve_are_refused_in_one_line(
    here: Here, arguments: list[str], message: str
) -> None:
    out, err = here(
        "dedup", "docs.jsonl", "-o", "new.jsonl", "--against", "seen", *arguments, code=2
    )
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_an_index_that_compares_the_visible_text_of_html(here: Here) -> None:
    pytest.importorskip("resiliparse")
    here("index", "create", "pages", "--similarity", "0.8", "--extract", "all")
    html = f"<html><body><p class='x y z'>{WORDS}</p><br><br></body></html>"
    (here.folder / "page.jsonl").write_bytes(lines([{"id": "page", "text": html}]))
    here("index", "add", "pages", "page.jsonl", "--id", "id")
    assert here("index", "query", "pages", "--query-text", WORDS)[0] == "1.0000  page\n"
    assert "\nof HTML      all\n" in here("index", "stats", "pages")[0]
    assert here("index", "stats", "seen", "--json")[0].count('"extract": null') == 1
    _, err = here("serve", "pages", "--extract", "none", code=2)
    assert "was made with 'all'" in err
    (here.folder / "named.html").write_text(f"<body><nav>{WORDS}</nav><p>and more</p></body>")
    here("index", "add", "pages", "named.html")
    query = here("index", "query", "pages", "--query-text", f"{WORDS} and more")
    assert "1.0000  named.html\n" in query[0]
    _, err = here("index", "add", "pages", "named.html", "--extract", "main", code=2)
    assert "--extract is main, but the index was made with all: leave it out" in err


def test_nearest_to_a_stored_document_and_to_files(here: Here) -> None:
    assert here("index", "nearest", "seen", "--id", "b")[0] == "0.9091  a\n"
    out, _ = here("index", "nearest", "seen", "--id", "a", "--by", "cosine", "--json")
    assert json.loads(out) == {"hits": [{"id": "b", "similarity": pytest.approx(0.9535, abs=1e-4)}]}
    here("index", "nearest", "seen", "docs.jsonl", "--id-field", "id", "-n", "1", "-o", "x.parquet")
    assert pq.read_table("x.parquet")["id"].to_pylist() == ["a", "b", "c"]
    out, err = here("index", "nearest", "seen", "--id", "c", "-n", "3")
    assert (out, err) == ("", "no stored document shares a feature with it\n")


def test_nearest_shows_the_first_words_where_texts_are_stored(here: Here) -> None:
    for name, kind in (("likes", "--similarity=0.8"), ("prints", "--distance=3")):
        here("index", "create", name, kind, "--store", "text")
        here("index", "add", name, "docs.jsonl", "--id", "id")
        out, _ = here("index", "nearest", name, "--id", "a", "-n", "1")
        assert out.split("  ")[-2:] == [
            "b",
            "one two three four five six seven eight nine ten eleven ...\n",
        ]
        rows = {"likes": "feature hashes", "prints": "fingerprints"}[name]
        assert f"stored       {rows} and texts, " in here("index", "stats", name)[0]
    _, err = here("index", "nearest", "prints", "--id", "a", "--by", "cosine", code=2)
    assert "--by is cosine, but the index is by distance, up to 3" in err


def test_nearest_refuses_in_one_line(here: Here) -> None:
    for code, args, message in (
        (1, ("--id", "x"), "seen: no document has the id 'x'"),
        (2, ("--id", "a", "docs.jsonl"), "give one of IN... and --id"),
        (2, ("--id", "a", "-o", "x.csv"), "--output is for IN..."),
        (2, ("--id", "a", "--by", "dice"), "by is 'dice': use one of similarity, cosine"),
    ):
        _, err = here("index", "nearest", "seen", *args, code=code)
        assert message in err
