"""Pairs judged in the browser: who may ask, what is kept, what it tells, and a run that obeys."""

from __future__ import annotations

import http.client
import json
import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from commands import Here
from full_disk import largest_file
from neardup.documents import ReadOptions
from neardup.errors import DataError, FileError, UsageError
from neardup.pipeline.evidence.pair_rows import PairRow, pair_rows
from neardup.pipeline.judgement.answers import Answer, Answers, read_answers
from neardup.pipeline.judgement.review_session import Review, ReviewOptions, Strata
from neardup.service.review_server import ReviewServer
from test_page import HOSTILE, OUTSIDE, Tags

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNIGRAMS = nd.Recipe(ngram=1)
NEWS = {
    "a": "the harbour opened again on monday after the storm",
    "b": "the harbour opened again on monday after the rain",
    "c": "the council agreed on a budget",
    "d": f"{HOSTILE} the harbour opened again on monday after the storm",
}


def write(path: Path, texts: dict[str, str]) -> Path:
    rows = (json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items())
    path.write_text("".join(rows))
    return path


def lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    docs = write(tmp_path / "docs.jsonl", NEWS)
    (tmp_path / "pairs.csv").write_text(
        "dropped,kept,distance,similarity,cluster\nb,a,3,0.8,a\nd,a,9,0.55,a\nc,a,30,,a\n"
    )
    options = ReviewOptions(str(tmp_path / "answers.jsonl"), border=0.8)
    read = ReadOptions(id="id")
    session = Review(str(tmp_path / "pairs.csv"), [str(docs)], options, UNIGRAMS, read)
    yield session
    session.close()


@pytest.fixture
def server(review: Review) -> Iterator[ReviewServer]:
    with ReviewServer(review) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: ReviewServer, path: str, form: dict[str, Any] | None = None, **headers: str
) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    body = None if form is None else urlencode(form)
    method = "GET" if form is None else "POST"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.title(): value for name, value in answer.getheaders()}


def test_pairs_are_shown_answered_kept_and_gone_back_to(
    server: ReviewServer, tmp_path: Path
) -> None:
    home = f"/{server.token}/"
    code, page, headers = ask(server, home)
    assert code == 200
    assert Tags(page).open == []
    assert "Are these duplicates?" in page
    assert headers["Cache-Control"] == "no-store"
    assert "form-action &#39;self&#39;" in page or "form-action 'self'" in page
    first = int(page.split('name="pair" value="')[1].split('"')[0])
    code, _, headers = ask(server, f"{home}answer", {"pair": first, "answer": "yes"})
    assert (code, headers["Location"]) == (303, home)
    kept = (tmp_path / "answers.jsonl").read_text()
    assert json.loads(kept) == {"first": "a", "second": "b", "answer": "yes", "similarity": 0.8}
    _, page, _ = ask(server, home)
    assert f'name="pair" value="{first}"><button id="back"' in page
    _, page, _ = ask(server, f"{home}?pair={first}")
    assert "You said: yes" in page
    ask(server, f"{home}answer", {"pair": first, "answer": "no"})
    answers = read_answers(str(tmp_path / "answers.jsonl"))
    assert answers["a", "b"].answer == "no"
    for _ in range(2):
        _, page, _ = ask(server, home)
        number = page.split('name="pair" value="')[1].split('"')[0]
        ask(server, f"{home}answer", {"pair": number, "answer": "unsure"})
    _, page, _ = ask(server, home)
    assert "All pairs are judged" in page
    _, status, _ = ask(server, f"{home}status")
    assert json.loads(status)["unsure"] == 2


def test_nobody_else_may_ask(server: ReviewServer) -> None:
    home = f"/{server.token}/"
    assert server.url.startswith("http://127.0.0.1:")
    assert ask(server, "/")[0] == 403
    other = "y" if server.token.endswith("x") else "x"
    assert ask(server, f"/{server.token[:-1]}{other}/")[0] == 403
    assert ask(server, home, Host="evil.example")[0] == 403
    assert ask(server, home, Host=f"evil.example:{server.server_port}")[0] == 403
    yes = {"pair": 0, "answer": "yes"}
    assert ask(server, f"{home}answer", yes, Origin="http://evil.example")[0] == 403
    assert ask(server, f"{home}answer", yes, Origin="null")[0] == 403
    assert ask(server, "/answer", yes)[0] == 403
    assert server.review.answers == {}
    assert "frame-ancestors 'none'" in ask(server, home)[2]["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("path", "form", "code"),
    [
        ("answer", {"pair": "99", "answer": "yes"}, 400),
        ("answer", {"pair": "-1", "answer": "yes"}, 400),
        ("answer", {"pair": "0", "answer": "maybe"}, 400),
        ("answer", {"pair": "x" * 5000, "answer": "yes"}, 413),
        ("other", {"pair": "0"}, 404),
        ("?pair=99", None, 404),
        ("../etc/passwd", None, 404),
    ],
)
def test_what_makes_no_sense_is_refused(
    server: ReviewServer, path: str, form: dict[str, Any] | None, code: int
) -> None:
    ask(server, f"/{server.token}/")
    assert ask(server, f"/{server.token}/{path}", form)[0] == code
    assert server.review.answers == {}


def test_without_pairs_or_a_port_there_is_no_review(review: Review, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="port is 99999: use a number from 0 to 65535"):
        ReviewServer(review, 99_999)
    (tmp_path / "none.csv").write_text("dropped,kept,distance,similarity,cluster\n")
    options = ReviewOptions(str(tmp_path / "none.jsonl"))
    with pytest.raises(DataError, match="has no pairs: there is nothing to judge"):
        Review(str(tmp_path / "none.csv"), ["docs.jsonl"], options, UNIGRAMS, ReadOptions())


def test_hostile_text_is_text(server: ReviewServer) -> None:
    home = f"/{server.token}/"
    pages = []
    for _ in range(3):
        page = ask(server, home)[1]
        number = page.split('name="pair" value="')[1].split('"')[0]
        pages.append(page)
        ask(server, f"{home}answer", {"pair": number, "answer": "no"})
    html = "".join(pages)
    assert "U+202E" in html
    assert "<img" not in html
    assert "alert(1)" not in html
    assert not OUTSIDE.search(html.replace(' action="', " "))


def test_a_second_review_goes_on_where_the_first_ended(review: Review, tmp_path: Path) -> None:
    first = review.following()
    assert first is not None
    assert review.answer(first, "yes")
    options = ReviewOptions(review.options.answers, border=0.8)
    docs, pairs = str(tmp_path / "docs.jsonl"), str(tmp_path / "pairs.csv")
    again = Review(pairs, [docs], options, UNIGRAMS, ReadOptions(id="id"))
    view = again.pair(again.following() or 0)
    assert view is not None
    assert view.names != ("a", "b")
    again.close()
    with pytest.raises(UsageError, match="the inputs hold none"):
        Review(pairs, [docs], options, UNIGRAMS, ReadOptions())


def rows(count: int, seed: int = 3) -> list[PairRow]:
    generator = random.Random(seed)
    return [PairRow(f"k{i}", f"d{i}", 0.5 + generator.random() / 2) for i in range(count)]


def test_the_border_comes_first_and_every_band_in_time() -> None:
    strata, answers = Strata(rows(2000), 0.8), dict[tuple[str, str], Answer]()
    order = []
    for _ in range(60):
        pair = strata.following(answers)
        assert pair is not None
        assert pair.similarity is not None
        order.append(pair.similarity)
        answer = Answer(pair.first, pair.second, "yes")
        answers[answer.key] = answer
    assert all(0.75 <= x <= 0.9 for x in order[:2])
    assert sum(0.75 <= x < 0.85 for x in order) > sum(x < 0.6 for x in order) > 0
    assert len({int(x * 20) for x in order}) == 10


def test_the_estimate_is_the_truth_within_its_interval_and_finds_the_threshold() -> None:
    pairs = rows(3000)
    generator = random.Random(8)
    truth = {
        (pair.first, pair.second): generator.random() < 2 * ((pair.similarity or 0) - 0.5)
        for pair in pairs
    }
    strata, answers = Strata(pairs, None), dict[tuple[str, str], Answer]()
    for _ in range(500):
        pair = strata.following(answers)
        assert pair is not None
        said = "yes" if truth[pair.first, pair.second] else "no"
        answer = Answer(pair.first, pair.second, said)
        answers[answer.key] = answer
    for estimate in strata.estimates(answers)[:8]:
        inside = [p for p in pairs if (p.similarity or 0) >= (estimate.least or 0)]
        share = sum(truth[p.first, p.second] for p in inside) / len(inside)
        assert estimate.pairs == len(inside)
        assert estimate.low - 0.03 <= share <= estimate.high + 0.03
    likely, surely = strata.reaching(0.8, answers)
    assert likely is not None
    assert 0.75 <= (likely.least or 0) <= 0.9
    assert surely is None or (surely.least or 0) >= (likely.least or 0)


def test_the_last_answer_counts_and_others_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "answers.jsonl")
    file = Answers(path)
    file.add(Answer("a", "b", "yes"))
    file.add(Answer("b", "a", "no", 0.5))
    file.close()
    assert [x.answer for x in read_answers(path).values()] == ["no"]
    (tmp_path / "bad.jsonl").write_text('{"first": "a", "second": "b", "answer": "perhaps"}\n')
    with pytest.raises(DataError, match=r"bad.jsonl:1: no answer"):
        read_answers(str(tmp_path / "bad.jsonl"))
    (tmp_path / "worse.jsonl").write_text("{\n")
    with pytest.raises(DataError, match=r"worse.jsonl:1: not valid JSON"):
        Answers(str(tmp_path / "worse.jsonl"))


def test_answers_survive_a_full_disk_at_every_byte(tmp_path: Path) -> None:
    said = [Answer("a", "b", "yes", 0.5), Answer("a", "ç", "no"), Answer("b", "ç", "unsure")]
    whole = tmp_path / "whole.jsonl"
    file = Answers(str(whole))
    for answer in said:
        file.add(answer)
    file.close()
    for most in range(whole.stat().st_size):
        path = str(tmp_path / f"{most}.jsonl")
        file, kept = Answers(path), []
        with largest_file(most):
            for answer in said:
                with suppress(FileError):
                    file.add(answer)
                    kept.append(answer)
        assert len(kept) < len(said)
        assert list(read_answers(path).values()) == list(file.by_pair.values()) == kept
        file.add(said[-1])  # there is room again
        file.close()
        assert read_answers(path) == {x.key: x for x in [*kept, said[-1]]}


def test_an_answer_of_which_a_part_was_written_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    file = Answers(str(path))
    file.add(Answer("a", "b", "yes"))
    file.add(Answer("a", "ç", "no"))
    file.close()
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for end in range(first, len(data)):
        path.write_bytes(data[:end])
        count = 1 + (end == len(data) - 1)
        assert len(read_answers(str(path))) == count
        file = Answers(str(path))
        file.add(Answer("b", "c", "yes"))
        file.close()
        assert len(read_answers(str(path))) == count + 1
        assert path.read_bytes().startswith(data[:first])
    path.write_bytes(b"what somebody wrote by hand")
    with pytest.raises(DataError, match=r"answers.jsonl:1: not valid JSON"):
        Answers(str(path))
    assert path.read_bytes() == b"what somebody wrote by hand"


def test_a_full_disk_is_told_by_the_page_and_in_the_terminal(
    review: Review, tmp_path: Path
) -> None:
    messages: list[str] = []
    with ReviewServer(review, tell=messages.append) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        home = f"/{server.token}/"
        ask(server, home)
        with largest_file(10):
            code, text, _ = ask(server, f"{home}answer", {"pair": 0, "answer": "yes"})
        assert code == 507
        assert "this answer was not kept: cannot write" in text
        assert "File too large" in text
        assert len(messages) == 1
        assert "an answer was not kept: cannot write" in messages[0]
        assert (tmp_path / "answers.jsonl").read_bytes() == b""
        assert ask(server, f"{home}answer", {"pair": 0, "answer": "yes"})[0] == 303
        server.shutdown()
        thread.join()
    assert len(read_answers(str(tmp_path / "answers.jsonl"))) == 1


def test_files_of_pairs_are_told_by_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id1,id2,label\nx,y,1\nx,z,no\nx,w,unsure\n")
    assert [row.label for row in pair_rows(str(tmp_path / "a.csv"))] == [True, False, None]
    (tmp_path / "b.csv").write_text("one,two\nx,y\n")
    with pytest.raises(DataError, match="names no pairs: it has one, two"):
        list(pair_rows(str(tmp_path / "b.csv")))
    (tmp_path / "c.csv").write_text("a,b,similarity\nx,y,high\n")
    with pytest.raises(DataError, match="the similarity is 'high'"):
        list(pair_rows(str(tmp_path / "c.csv")))
    nd.dedup(
        [write(tmp_path / "d.jsonl", NEWS)], tmp_path / "o.jsonl", similarity=0.5, recipe=UNIGRAMS,
        id="id", duplicates=tmp_path / "d.parquet",
    )  # fmt: skip
    rows = list(pair_rows(str(tmp_path / "d.parquet")))
    assert [(row.first, row.second) for row in rows][:1] == [("a", "b")]


WORDS = [f"w{i}" for i in range(7)]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=2, max_size=9)


def by_the_definition(
    texts: list[str], matches: Any, said: dict[tuple[int, int], str]
) -> list[int]:
    kept: list[int] = []
    result = []
    for row in range(len(texts)):
        hit = row
        for other in kept:
            answer = said.get((other, row))
            if answer == "yes" or (answer != "no" and matches(other, row)):
                hit = other
                break
        result.append(hit)
        if hit == row:
            kept.append(row)
    return result


@given(texts=TEXTS, data=st.data(), by_distance=st.booleans())
def test_a_run_with_answers_decides_by_the_definition(
    texts: list[str],
    data: st.DataObject,
    by_distance: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    row = st.integers(0, len(texts) - 1)
    pairs = st.tuples(row, row).filter(lambda x: x[0] < x[1])
    said = data.draw(st.dictionaries(pairs, st.sampled_from(["yes", "no", "unsure"]), max_size=6))
    rows = [{"first": str(b), "second": str(a), "answer": x} for (a, b), x in said.items()]
    path = lines(tmp_path_factory.mktemp("said") / "answers.jsonl", rows)
    values = nd.fingerprints(texts, UNIGRAMS)

    def matches(a: int, b: int) -> bool:
        left, right = set(texts[a].split()), set(texts[b].split())
        if not left or not right:
            return False
        if by_distance:
            return (int(values.data[a, 0]) ^ int(values.data[b, 0])).bit_count() <= 20
        return len(left & right) / len(left | right) >= 0.5

    rule: dict[str, Any] = {"distance": 20} if by_distance else {"similarity": 0.5}
    result = nd.dedup(texts, recipe=UNIGRAMS, decisions=path, **rule)
    assert result.cluster.tolist() == by_the_definition(texts, matches, said)
    assert result.kept.sum() + result.duplicates.num_rows == len(texts)


def test_the_command_takes_answers_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    write(tmp_path / "docs.jsonl", NEWS)
    answers = [
        {"first": "a", "second": "b", "answer": "no"},
        {"first": "c", "second": "a", "answer": "yes"},
        {"first": "a", "second": "lost", "answer": "yes"},
    ]
    lines(tmp_path / "said.jsonl", answers)
    run = ["dedup", "docs.jsonl", "-o", "out.jsonl", "--id", "id", "--ngram", "1"]
    run += ["--similarity", "0.7", "--decisions", "said.jsonl"]
    summary = here.summary(*run, "--duplicates", "dropped.csv", "--report", "report.html")
    assert summary["kept"] == 3
    assert (tmp_path / "dropped.csv").read_text().splitlines()[1].startswith("c,a,")
    assert any("1 duplicates, 1 different; 1 name" in note for note in summary["notes"])
    _, err = here(*run, "--policy", "components", code=2)
    assert "decisions require the policy greedy" in err
    _, err = here(*run, "--engine", "spark", code=2)
    assert "--decisions requires --engine local" in err
    _, err = here(*run, "--against", "some.index", code=2)
    assert "leave out against" in err
