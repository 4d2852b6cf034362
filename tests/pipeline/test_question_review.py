"""A review that looks for the question: what it counts, what it learns, how it ends."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import pytest

import neardup as nd
from commands import Here, write
from neardup.documents import ReadOptions
from neardup.errors import DataError
from neardup.pipeline import Limits
from neardup.pipeline.judgement import learned_question
from neardup.pipeline.judgement.answers import read_answers
from neardup.pipeline.judgement.candidate_pairs import RECIPES, CandidatePairs, candidate_pairs
from neardup.pipeline.judgement.learned_question import Lesson, QuestionSoFar, learn, next_pair
from neardup.pipeline.judgement.question_review import QuestionReview, sample_pairs
from neardup.service.review_server import ReviewServer
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

STEMS = [f"{a}{b}" for a in ("ka", "lo", "mir", "ne", "so", "tun") for b in ("bel", "dra", "fi")]


def corpus(seed: int, copies: int = 60, others: int = 200) -> tuple[list[str], list[int]]:
    """Sentences; copies with a word or two replaced; strangers that share a frame of five words."""
    draw = random.Random(seed)

    def sentence() -> list[str]:
        return [f"{draw.choice(STEMS)}{draw.randrange(40)}" for _ in range(draw.randint(8, 14))]

    texts, groups = [], []
    for group in range(copies):
        words = sentence()
        other = list(words)
        for at in draw.sample(range(len(words)), draw.choice([1, 1, 2])):
            other[at] = f"new{draw.randrange(99)}"
        texts += [" ".join(words), " ".join(other)]
        groups += [group, group]
    frame = ["the", "answer", "of", "the", "day"]
    for stranger in range(others):
        texts.append(" ".join([*frame, *sentence()[: draw.randint(3, 6)]]))
        groups.append(copies + stranger)
    return texts, groups


def f1_by_definition(texts: list[str], groups: list[int], question: nd.Question) -> float:
    clusters = nd.dedup(texts, question=question, policy="components").cluster.tolist()

    def count(labels: Any) -> int:
        return sum(n * (n - 1) // 2 for n in Counter(labels).values())

    hits = count(zip(clusters, groups, strict=True))
    return 2 * hits / max(1, count(clusters) + count(groups))


@pytest.fixture(scope="module")
def small() -> tuple[list[str], list[int], CandidatePairs]:
    texts, groups = corpus(5)
    return texts, groups, candidate_pairs(texts)


def truth_of(pairs: CandidatePairs, groups: list[int]) -> dict[int, bool]:
    sides = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    return {row: groups[a] == groups[b] for row, (a, b) in enumerate(sides)}


def lesson_of(pairs: CandidatePairs, answers: dict[int, bool]) -> Lesson:
    rows = np.array(list(answers), np.int64)
    return Lesson(pairs.scores[rows], np.array(list(answers.values()), np.bool_))


def test_pairs_scores_and_groups_are_those_of_the_definition(
    small: tuple[list[str], list[int], CandidatePairs],
) -> None:
    texts, _, pairs = small
    draw = random.Random(1)
    for row in draw.sample(range(len(pairs)), 25):
        one, other = texts[pairs.left[row]], texts[pairs.right[row]]
        expected = [nd.compare(one, other, recipe=recipe).jaccard for recipe in RECIPES]
        assert pairs.scores[row].tolist() == pytest.approx(expected)
    for at in draw.sample(range(len(pairs.questions)), 8):
        question = pairs.questions[at]
        groups = nd.dedup(texts, question=question, policy="components").cluster
        assert pairs.matches[at].tolist() == (groups[pairs.left] == groups[pairs.right]).tolist()
        sizes = Counter(groups.tolist()).values()
        assert pairs.implied[at] == sum(n * (n - 1) // 2 for n in sizes)
    rows = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    near = nd.similar_pairs(texts, similarity=0.7, recipe=nd.Recipe(ngram=1))
    left, right = (near.column(name).to_pylist() for name in ("left", "right"))
    assert {(min(a, b), max(a, b)) for a, b in zip(left, right, strict=True)} <= rows
    assert pairs.weights.sum() >= len(pairs) == len(rows)


def test_with_every_answer_the_figures_are_exact(
    small: tuple[list[str], list[int], CandidatePairs],
) -> None:
    texts, groups, pairs = small
    answers = truth_of(pairs, groups)
    outcome = learn(pairs, lesson_of(pairs, answers), answers)
    exact = f1_by_definition(texts, groups, outcome.question)
    missed = 60 - sum(answers.values())  # no candidate matches these, so no answer knows of them
    assert missed <= 6
    assert outcome.f1.low == outcome.f1.high
    assert (
        exact - 0.01 <= outcome.f1.mean <= exact + missed / 60 + 0.01
    )  # some pairs stand for more
    best = max(f1_by_definition(texts, groups, each) for each in pairs.questions)
    assert exact >= best - 0.01


def answered(
    pairs: CandidatePairs, groups: list[int], most: int, seed: int
) -> tuple[dict[int, bool], QuestionSoFar]:
    truth, answers = truth_of(pairs, groups), dict[int, bool]()
    outcome = learn(pairs, lesson_of(pairs, answers), answers, seed)
    for _ in range(most):
        row = next_pair(pairs, outcome, set(answers), seed)
        assert row is not None
        assert row not in answers
        answers[row] = truth[row]
        outcome = learn(pairs, lesson_of(pairs, answers), answers, seed)
    return answers, outcome


@needs_jit
@pytest.mark.parametrize("seed", range(3))
def test_forty_answers_find_a_question_near_the_best(
    small: tuple[list[str], list[int], CandidatePairs], seed: int
) -> None:
    texts, groups, pairs = small
    _, outcome = answered(pairs, groups, 40, seed)
    best = max(f1_by_definition(texts, groups, each) for each in pairs.questions)
    exact = f1_by_definition(texts, groups, outcome.question)
    assert exact >= best - 0.04
    assert exact > f1_by_definition(texts, groups, nd.Question(similarity=0.7)) + 0.2
    assert outcome.f1.low < outcome.f1.mean < outcome.f1.high


def test_the_same_answers_show_the_same_pair_and_no_pair_twice(
    small: tuple[list[str], list[int], CandidatePairs],
) -> None:
    _, groups, pairs = small
    answers, outcome = answered(pairs, groups, 5, 0)
    again, same = answered(pairs, groups, 5, 0)
    assert list(answers) == list(again)
    assert (outcome.question, outcome.f1) == (same.question, same.f1)
    assert next_pair(pairs, outcome, set(range(len(pairs)))) is None


def test_only_yes_or_too_few_answers_never_end_it(
    small: tuple[list[str], list[int], CandidatePairs],
) -> None:
    _, _, pairs = small
    for said in itertools.chain([True] * 3, [False] * 3):
        answers = dict.fromkeys(range(20), said)
        assert learn(pairs, lesson_of(pairs, answers), answers).more >= 10
    answers = {0: True, 1: False}
    assert learn(pairs, lesson_of(pairs, answers), answers).more >= 8


def session(folder: Path, seed: int, answers: str) -> tuple[QuestionReview, list[int]]:
    texts, groups = corpus(seed)
    rows = [{"id": f"{seed}-{row}", "text": text} for row, text in enumerate(texts)]
    write(folder / f"docs{seed}.jsonl", rows)
    sampled = sample_pairs([str(folder / f"docs{seed}.jsonl")], ReadOptions(id="id"), Limits())
    return QuestionReview(sampled, str(folder / answers)), groups


def test_answers_serve_again_with_other_documents(tmp_path: Path) -> None:
    review, groups = session(tmp_path, 5, "answers.jsonl")
    for _ in range(30):
        number = review.following()
        assert number is not None
        question_pair = review.pair(number)
        assert question_pair is not None
        one, other = (groups[int(name.partition("-")[2])] for name in question_pair.names)
        assert review.answer(number, "yes" if one == other else "no")
    first = review.best
    review.close()
    kept = read_answers(str(tmp_path / "answers.jsonl"))
    assert len(kept) == 30
    assert all(set(each.scores or ()) >= {"words 1", "chars 4"} for each in kept.values())
    other_review, _ = session(tmp_path, 6, "answers.jsonl")
    status = other_review.status()
    assert (status["yes"] + status["no"], status["earlier"]) == (0, 30)
    texts, groups = corpus(6)
    best = f1_by_definition(texts, groups, first.question)
    assert f1_by_definition(texts, groups, other_review.best.question) >= best - 0.05
    other_review.close()


def test_an_answer_can_be_taken_back_and_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    review, _ = session(tmp_path, 5, "answers.jsonl")
    first = review.following()
    assert first == 0
    assert review.before(first) is None
    assert review.answer(first, "yes")
    second = review.following()
    assert second == 1
    assert review.before(second) == first
    assert review.answer(first, "no")
    assert review.answer_of(first) == "no"
    assert review.status()["no"] == 1
    assert not review.answer(99, "yes")
    assert not review.answer(second, "perhaps")
    assert review.pair(99) is None
    assert review.answer(second, "unsure")
    assert review.best.answers == 1
    assert "<b>" in review.so_far().section
    review.close()
    (tmp_path / "own.csv").write_text("first,second,answer,scores\na,b,yes,high\n")
    assert read_answers(str(tmp_path / "own.csv"))["a", "b"].scores is None
    (tmp_path / "bad.jsonl").write_text(
        '{"first": "a", "second": "b", "answer": "yes", "scores": {"words 1": "high"}}\n'
    )
    with pytest.raises(DataError, match=r"bad.jsonl:1: scores is"):
        read_answers(str(tmp_path / "bad.jsonl"))


def test_the_page_shows_the_pair_and_the_best_question_so_far(tmp_path: Path) -> None:
    review, _ = session(tmp_path, 5, "answers.jsonl")
    with ReviewServer(review) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with urlopen(server.url) as answer:  # noqa: S310
            page = answer.read().decode()
        body = urlencode({"pair": 0, "answer": "yes"}).encode()
        with urlopen(Request(f"{server.url}answer", body)) as answer:  # noqa: S310
            after = answer.read().decode()
        with urlopen(f"{server.url}status") as answer:  # noqa: S310
            status = json.load(answer)
        server.shutdown()
        thread.join()
    review.close()
    assert "Are these duplicates?" in page
    assert "So far: pair 1, about" in page
    assert "So far: pair 2, about" in after
    assert "Best question so far" in after
    assert status["yes"] == 1
    assert status["f1"][1] <= status["f1"][0] <= status["f1"][2]


def test_documents_without_pairs_have_nothing_to_judge(tmp_path: Path) -> None:
    write(tmp_path / "docs.jsonl", [{"text": "one two three"}, {"text": "other words here"}])
    with pytest.raises(DataError, match="no two of 2 documents are alike"):
        sample_pairs([str(tmp_path / "docs.jsonl")], ReadOptions(), Limits())


def test_the_command_ends_with_a_question_file_and_the_command_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    texts, groups = corpus(5)
    write(
        tmp_path / "docs.jsonl", [{"id": str(row), "text": text} for row, text in enumerate(texts)]
    )

    def answer_all(server: ReviewServer, *_: Any) -> None:
        review = server.review
        for _ in range(15):
            number = review.following()
            view = None if number is None else review.pair(number)
            assert number is not None
            assert view is not None
            one, other = (groups[int(name)] for name in view.names)
            assert review.answer(number, "yes" if one == other else "no")
        raise KeyboardInterrupt

    monkeypatch.setattr(ReviewServer, "serve_forever", answer_all)
    base = ["review", "docs.jsonl", "--id", "id", "--no-open"]
    _, err = here(*base, "-o", "question.toml")
    assert "best question: " in err
    assert "use: neardup dedup docs.jsonl -o OUT --id id --question question.toml" in err
    assert nd.Question.load(tmp_path / "question.toml").similarity > 0
    assert here.summary(
        "dedup", "docs.jsonl", "--id", "id", "-o", "o.jsonl", "--question", "question.toml"
    )["dropped"]
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 15
    scores = json.loads((tmp_path / "answers.jsonl").read_text().splitlines()[0])["scores"]
    assert len(scores) == len(RECIPES)
    _, err = here(*base, code=2)
    assert "or give -o question.toml" in err
    _, err = here(*base, "-o", "question.toml", "--similarity", "0.8", code=2)
    assert "-o and --similarity exclude each other" in err
    _, err = here(*base, "-o", "question.json", code=2)
    assert "a question file is TOML" in err
    monkeypatch.setattr(ReviewServer, "serve_forever", lambda *_: None)
    _, err = here(*base, "-o", "none.toml", "--answers", "none.jsonl", code=1)
    assert "no pair was judged: none.toml is not written" in err


def test_before_any_answer_a_pair_is_a_copy_the_more_likely_the_more_similar_it_is() -> None:
    """As likely as not at a mean similarity of 0.6, and nearly surely at 0.8."""
    nothing = Lesson(np.zeros((0, 3)), np.zeros(0, np.bool_))
    weights = learned_question._weights(nothing, np.random.default_rng(4))  # noqa: SLF001
    errors = 4 * np.array([2.0, 2.5, 1.2, 1.2, 1.2]) / np.sqrt(len(weights))
    assert (np.abs(weights.mean(axis=0) - [0, 2.5, 0, 0, 0]) < errors).all()
    at = np.array([[0.4] * 3, [0.6] * 3, [0.8] * 3])
    unlikely, even, likely = learned_question._chance(  # noqa: SLF001
        learned_question._inputs(at) @ weights.mean(axis=0)  # noqa: SLF001
    )
    assert unlikely < 0.05
    assert even == pytest.approx(0.5, abs=0.2)
    assert likely > 0.95
