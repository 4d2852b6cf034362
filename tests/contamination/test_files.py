"""`neardup decontaminate`: what is left stays byte for byte, what was found says where."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from commands import Here, lines, read, write
from neardup.pipeline.run.summary import BenchmarkCounts, ContaminationSummary
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_jit

LEAK = "How many moons does the planet Mars have in all?"
OTHER = "Which river flows through the city of Vienna today?"
TRAIN = [
    {"id": "a", "text": f"Quiz night. {LEAK.upper()} Two."},
    {"id": "b", "text": "Nothing of the kind is asked here, not at all."},
    {"id": "c", "text": "", "more": [1.0]},
    {"id": "d", "text": "the planet Mars, and two moons"},
]
QUESTIONS = [
    {"id": "q1", "text": LEAK, "answer": "Two"},
    {"id": "q2", "text": OTHER, "answer": "Danube and canal"},
    {"id": "q3", "text": "Mars", "answer": ""},
    {"id": "q4", "text": "two moons", "answer": "two moons"},
]
AGAINST = ("decontaminate", "train.jsonl", "--against", "quiz.jsonl")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Here:
    """Commands run in a folder with documents and questions."""
    (tmp_path / "train.jsonl").write_bytes(lines(TRAIN))
    (tmp_path / "quiz.jsonl").write_bytes(lines(QUESTIONS))
    return Here(tmp_path, monkeypatch, capfd)


def test_what_is_left_is_byte_for_byte_what_was_read(here: Here) -> None:
    summary = here.summary(*AGAINST, "--id", "id", "-o", "clean.jsonl", "--found", "f.csv")
    all_lines = (here.folder / "train.jsonl").read_bytes().splitlines(keepends=True)
    assert (here.folder / "clean.jsonl").read_bytes() == all_lines[1] + all_lines[2]
    leaks = read(here.folder / "f.csv")
    pairs = [(row["document"], row["question"], row["rule"]) for row in leaks]
    assert pairs == [("a", "q1", "share"), ("d", "q4", "share")]
    passage = TRAIN[0]["text"][int(leaks[0]["start"]) : int(leaks[0]["end"])]  # type: ignore[index]
    assert passage == leaks[0]["text"] == LEAK.upper().rstrip("?")
    assert (summary["kept"], summary["dropped"]) == (2, 2)
    (counts,) = summary["benchmarks"]
    assert [counts[x] for x in ("questions", "found", "one_word", "short")] == [4, 2, 1, 1]


def test_the_summary_has_shares_and_what_is_common() -> None:
    counts = BenchmarkCounts("quiz.jsonl", None, 8, 2, 0, 0, 0)
    assert str(counts).strip() == "2 of 8 questions (25.00%) of quiz.jsonl"
    summary = ContaminationSummary(10, 8, 2, 0, 3, 4, 1, [counts], 99, {"total": 1.0})
    assert "a document and a question (1 of them by common text alone)\n" in str(summary)
    assert "common" not in str(replace(summary, common=0))


def test_bad_records_are_read_and_neither_kept_nor_dropped(here: Here) -> None:
    with (here.folder / "train.jsonl").open("ab") as file:
        file.write(b'{"id": "e"}\n{"id": "f", "text": 1}\n')
    summary = here.summary(*AGAINST, "-o", "clean.jsonl", "--on-error", "skip")
    counts = [summary[name] for name in ("read", "kept", "dropped", "rejected")]
    assert counts == [6, 2, 2, 2]


def test_parts_are_scored_apart(here: Here) -> None:
    summary = here.summary(*AGAINST, "--id", "id", "--parts", "text,answer", "--found", "f.csv")
    pairs = [(x["document"], x["question"], x["part"]) for x in read(here.folder / "f.csv")]
    assert pairs == [("a", "q1", "text"), ("d", "q4", "text"), ("d", "q4", "answer")]
    counts = {x["part"]: (x["found"], x["one_word"], x["empty"]) for x in summary["benchmarks"]}
    assert counts == {"text": (2, 1, 0), "answer": (1, 1, 1)}
    _, err = here(*AGAINST, "--parts", "text,answer", "--fail-above", "1")
    assert re.findall(r"questions \(.*%\) of ([^(\n]*\w)", err) == [
        "quiz.jsonl text",
        "quiz.jsonl answer",
    ]
    _, err = here(*AGAINST, "--fail-above", "1")
    assert re.findall(r"questions \(.*%\) of ([^(\n]*\w)", err) == ["quiz.jsonl"]


def test_the_field_question_is_taken_where_there_is_no_text(here: Here) -> None:
    rows = [{"question": row["text"], "text": "quite another thing"} for row in QUESTIONS]
    for names, count in ((("question",), 2), (("question", "text"), 0)):
        records = [{name: row[name] for name in names} for row in rows]
        (here.folder / "quiz.jsonl").write_bytes(lines(records))
        (counts,) = here.summary(*AGAINST, "--found", "f.csv")["benchmarks"]
        assert counts["found"] == count


def test_a_bad_text_is_not_passed_over_for_the_field_question(here: Here) -> None:
    rows = [{"question": "quite another thing", "text": row["text"]} for row in QUESTIONS]
    (here.folder / "quiz.jsonl").write_bytes(lines([*rows, {"question": "else", "text": None}]))
    _, err = here(*AGAINST, "--fail-above", "0", code=1)
    assert f"quiz.jsonl:{len(rows) + 1}: text is null" in err


def test_joined_fields_are_one_question(here: Here) -> None:
    write(here.folder / "quiz.csv", [{"text": "two", "answer": "moons"}])
    here("decontaminate", "train.jsonl", "--against", "quiz.csv", "--found", "f.csv", "--text",
         "text", "--parts", "text,answer")  # fmt: skip
    assert read(here.folder / "f.csv") == []
    write(here.folder / "train.csv", [{"text": "there are two", "answer": "moons"}])
    here("decontaminate", "train.csv", "--against", "quiz.csv", "--found", "f.csv", "--text",
         "text,answer")  # fmt: skip
    (row,) = read(here.folder / "f.csv")
    assert (row["start"], row["end"], row["text"]) == ("10", "19", "two\nmoons")


def test_the_gate_fails_and_everything_is_written(here: Here) -> None:
    base = (*AGAINST, "-o", "c.jsonl", "--found", "f.csv", "--fail-above")
    _, err = here(*base, "49%", code=1)
    assert "50% of a benchmark's questions were found, more" in err
    assert len(read(here.folder / "c.jsonl")) == len(read(here.folder / "f.csv")) == 2
    here(*base, "0.5")


def test_the_gate_alone_writes_nothing(here: Here) -> None:
    before = sorted(here.folder.iterdir())
    _, err = here(*AGAINST, "--fail-above", "0", code=1)
    assert "50% of a benchmark's questions were found, more" in err
    here(*AGAINST, "--fail-above", "0.5")
    assert sorted(here.folder.iterdir()) == before


def test_what_many_documents_have_is_no_leak(here: Here) -> None:
    template = "Choose the right answer from the list below"
    write(here.folder / "train.jsonl", [{"text": f"{template} {n} {n + 1}"} for n in range(200)])
    write(here.folder / "more.jsonl", [{"text": f"{template} {LEAK}"}])
    write(here.folder / "quiz.jsonl", [{"text": template}, {"text": LEAK}])
    summary = here.summary(
        "decontaminate", "train.jsonl", "more.jsonl", "--against", "quiz.jsonl", "-o", "clean/",
        "--found", "f.jsonl", "--common", "0.1",
    )  # fmt: skip
    leaks = read(here.folder / "f.jsonl")
    assert [x["document"] for x in leaks if x["leak"]] == ["more.jsonl:1"]
    assert {x["question"] for x in leaks if not x["leak"]} == {"quiz.jsonl:1"}
    assert [x["uncommon_share"] for x in leaks if x["leak"]] == [1.0]
    assert (summary["common"], summary["dropped"]) == (201, 1)
    assert len(read(here.folder / "clean" / "train.jsonl")) == 200
    assert (here.folder / "clean" / "more.jsonl").read_bytes() == b""


def test_what_exactly_the_share_of_documents_have_is_not_common(here: Here) -> None:
    texts = [f"{LEAK} {n}" if n < 63 else f"nothing but {n}" for n in range(90)]
    write(here.folder / "train.jsonl", [{"text": text} for text in texts])
    for common, want in (("0.7", 0), ("0.699", 63)):  # 0.7 * 90 is less than 63 in floating point
        summary = here.summary(*AGAINST, "--found", "f.jsonl", "--common", common)
        assert summary["common"] == want


def test_several_benchmarks_of_several_formats(here: Here) -> None:
    with gzip.open(here.folder / "train.jsonl.gz", "wb") as file:
        file.write(lines(TRAIN))
    write(here.folder / "river.csv", [{"text": OTHER}])
    here("decontaminate", "train.jsonl.gz", "--against", "quiz.jsonl", "river.csv", "-o",
         "clean.jsonl.gz", "--found", "f.parquet", "--run", "4", "--share", "0.9")  # fmt: skip
    table = pq.read_table(here.folder / "f.parquet")
    assert table["benchmark"].to_pylist() == ["quiz.jsonl", "quiz.jsonl"]
    assert table["rule"].to_pylist() == ["both", "both"]
    assert len(json.loads(gzip.decompress((here.folder / "clean.jsonl.gz").read_bytes())
                          .splitlines()[0])) == 2  # fmt: skip


def test_a_published_rule_is_named_in_each_row(here: Here) -> None:
    words = [f"w{at}" for at in range(20)]
    write(here.folder / "quiz.jsonl", [{"id": "q", "text": " ".join(words)}])
    parts = [words[:10], words[10:], [word.upper() for word in words]]
    rows = [{"id": str(number), "text": " ".join(part)} for number, part in enumerate(parts)]
    write(here.folder / "train.jsonl", rows)
    for rule, want in (("gpt-3", ["2"]), ("llama", ["0", "1", "2"]), ("olmo", ["2"])):
        summary = here.summary(*AGAINST, "--id", "id", "--found", "f.csv", "--rule", rule)
        assert [x["document"] for x in read(here.folder / "f.csv")] == want
        assert {x["rule"] for x in read(here.folder / "f.csv")} == {rule}
        assert summary["settings"]["rule"] == rule


def test_a_page_counts_the_other_passages(here: Here) -> None:
    between = " Nothing else was asked on that long evening, and nobody went home before ten. "
    (here.folder / "train.jsonl").write_bytes(
        lines([{"id": "a", "text": between.join([LEAK] * 3)}])
    )
    here.summary(*AGAINST, "--id", "id", "--report", "leaks.html")
    assert "; 2 more passages" in (here.folder / "leaks.html").read_text()


def test_a_page_shows_each_question_above_its_passage(here: Here) -> None:
    row = {"id": "<i>", "text": f"<script>x</script> {LEAK.replace('planet', 'red &')} & more"}
    write(here.folder / "train.jsonl", [*TRAIN, row, row])
    options = ("--id", "id", "--report", "leaks.html", "--common", "0.45")
    summary = here.summary(*AGAINST, *options)
    assert summary["outputs"] == ["leaks.html"]
    page = (here.folder / "leaks.html").read_text()
    assert "<mark>How many moons does the</mark> planet <mark>Mars have in all</mark>?" in page
    passage = "<mark>How many moons does the</mark> red &amp; <mark>Mars have in all</mark>"
    around = '<span class="around">&lt;script&gt;x&lt;/script&gt; </span>'
    assert f"{around}{passage}<span" in page
    assert "<mark>two moons</mark></p>" in page
    assert "<bdi>&lt;i&gt;</bdi>" in page
    assert "<h4>Question of <bdi>quiz.jsonl</bdi></h4>" in page
    assert page.count('<details class="pair" id="f1" open>') == page.count(" open><summary>") == 1
    (numbers,) = re.findall(r'id="summary">(.*?)</script>', page)
    counts = json.loads(numbers)["benchmarks"]
    assert [(x["questions"], x["found"], x["one_word"]) for x in counts] == [(4, 2, 1)]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("quiz.jsonl", 2, "nothing to write"),
        ("none.jsonl -o c.jsonl", 3, "none.jsonl"),
        ("quiz.jsonl -o quiz.jsonl", 2, "quiz.jsonl is an input"),
        ("quiz.jsonl -o train.jsonl", 2, "train.jsonl is an input"),
        ("quiz.jsonl -o c.jsonl --share 0", 2, "use a number above 0, up to 1"),
        ("quiz.jsonl -o c.jsonl --run 1", 2, "use a whole number from 2 up"),
        ("quiz.jsonl -o c.jsonl --rule gpt4", 2, "use gpt-3, llama, olmo, lm-eval"),
        ("quiz.jsonl -o c.jsonl --rule olmo --run 13", 2, "leave out run"),
        ("quiz.jsonl -o c.jsonl --parts text,", 2, "a part without a field"),
        ("quiz.jsonl -o c.jsonl --parts body", 1, "pass --parts FIELD, such as --parts text"),
        ("quiz.jsonl -o c.jsonl --question-id no", 1, "pass --question-id FIELD"),
        ("none_in.jsonl -o c.jsonl", 1, "none_in.jsonl holds no questions: leave it out"),
        (
            "number.jsonl -o c.jsonl",
            1,
            "text is a number, not a string; fix the line or pass --parts FIELD",
        ),
        ("quiz.jsonl -o c.jsonl --fail-above 2", 2, "such as 0.1%"),
        ("quiz.jsonl --report r.csv", 2, "a report is an HTML page"),
    ],
)
def test_bad_usage_is_one_line(here: Here, options: str, code: int, message: str) -> None:
    (here.folder / "none_in.jsonl").touch()
    (here.folder / "number.jsonl").write_bytes(b'{"text": 5}\n')
    before = here.files()
    _, err = here("decontaminate", "train.jsonl", "--against", *options.split(), code=code)
    assert message in err
    assert len(err.splitlines()) == 1
    assert here.files() == before
