"""Edits are what they say, questions are measured as they answer, the advice follows its rule."""

from __future__ import annotations

import difflib
import json
import random
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from commands import Here
from neardup.errors import UsageError
from neardup.fingerprinting.question import DEFAULT_QUESTION, Question
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.calibration.choice import advise
from neardup.pipeline.calibration.edits import (
    SMALL_KINDS,
    WORD_KINDS,
    Aim,
    Planter,
    is_unspaced,
    words_of,
)
from neardup.pipeline.calibration.questions import Questions
from neardup.pipeline.calibration.trials import (
    Measured,
    _projected,
    agreement,
    plant,
    try_questions,
)
from neardup.runtime.intervals import counted, paired
from suite import examples

if TYPE_CHECKING:
    from pathlib import Path

SPACED = "The 3 cafés of Ankara, said Ayşe; are open. They close at 9! Or: later?\n"
UNSPACED = "これは三つの短い文です。東京では雨が降っています。明日は晴れるでしょうか。"
ORDER = st.lists(st.sampled_from("abcdef"), max_size=12)


def documents(count: int, words: int, seed: int = 1) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(f"w{generator.randrange(4000)}" for _ in range(words)) for _ in range(count)]


def changed(one: str, other: str) -> tuple[int, int]:
    """How many words of each text are not in a common subsequence of both."""
    a, b = (text.split() for text in (one, other))
    same = sum(
        block.size
        for block in difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    )
    return len(a) - same, len(b) - same


@pytest.mark.parametrize(("aim", "size"), [("5%", 5), ("1", 1), ("10%", 10), ("3", 3)])
def test_an_edit_of_words_has_the_size_of_the_aim(aim: str, size: int) -> None:
    texts = documents(8, 100)
    planter = Planter(texts, 3)
    for row, text in enumerate(texts):
        edited = {kind: planter.copy(row, kind, Aim.parse(aim)) or "" for kind in WORD_KINDS}
        assert changed(text, edited["replaced"]) == (size, size)
        assert changed(text, edited["inserted"]) == (0, size)
        assert changed(text, edited["removed"]) == (size, 0)
        assert sorted(edited["moved"].split()) == sorted(text.split())
        assert 0 < changed(text, edited["moved"])[0] <= size


def test_a_script_without_spaces_is_edited_two_characters_at_a_time() -> None:
    assert is_unspaced(UNSPACED)
    planter = Planter([UNSPACED * 2, "東京都庁の前で会いましょう" * 8], 0)
    edited = planter.copy(0, "replaced", Aim.parse("5%")) or ""
    assert len(edited) == len(UNSPACED * 2)
    assert 0 < sum(a != b for a, b in zip(edited, UNSPACED * 2, strict=True)) <= 8
    assert " " not in edited + (planter.copy(0, "inserted", Aim()) or "")


@pytest.mark.parametrize("text", [SPACED * 4, UNSPACED * 4])
def test_every_kind_of_edit_is_deterministic_and_changes_the_text(text: str) -> None:
    texts = [text, "".join(reversed(words_of(text)))]
    for kind in (*WORD_KINDS, *SMALL_KINDS):
        copies = [Planter(texts, 7).copy(0, kind, Aim()) for _ in range(2)]
        assert copies[0] == copies[1]
        assert copies[0] != text
    spelling = {kind: Planter(texts, 7).copy(0, kind, Aim()) for kind in SMALL_KINDS}
    if text.startswith("The"):
        assert "CAFÉS" in (spelling["case"] or "")
        assert "cafes" in (spelling["accents"] or "")
        assert "," not in (spelling["punctuation"] or ",")
        assert "The 4" in (spelling["digits"] or "")
    assert (spelling["truncated"] or "") == text[: len(spelling["truncated"] or "")].rstrip(
        "\n"
    ) or (text.startswith((spelling["truncated"] or "x").rstrip()))
    assert text.strip() in (spelling["boilerplate"] or "")


def test_a_sentence_is_cut_or_one_of_any_document_is_added() -> None:
    sentences = [f"This is sentence {i} of the text. " for i in range(8)]
    planter = Planter(["".join(sentences), "Another one here. "], 0)
    left = (planter.copy(0, "sentence cut", Aim()) or "").split(". ")
    assert len(left) == len(sentences)  # with the empty one behind the last
    assert {f"{each}. " for each in left[:-1]} < set(sentences)
    more = (planter.copy(0, "sentence added", Aim()) or "").split(". ")
    assert len(more) == len(sentences) + 2


def test_what_cannot_be_edited_so_has_no_copy() -> None:
    planter = Planter(["one two", "naïve"], 0)
    assert planter.copy(0, "accents", Aim()) is None
    assert planter.copy(0, "digits", Aim()) is None
    assert planter.copy(0, "sentence cut", Aim()) is None
    assert planter.lookalike(1) is None
    assert planter.copy(1, "removed", Aim()) is None


@pytest.mark.parametrize("text", ["0%", "60%", "0", "x", "5 %%", "1.5", "-1", ""])
def test_what_is_no_aim_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="edits is"):
        Aim.parse(text)


@settings(max_examples=examples(200, 200))
@given(one=ORDER, other=ORDER)
def test_agreement_is_the_longest_common_subsequence(one: list[str], other: list[str]) -> None:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            longer = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else longer
    common = table[-1][-1]
    both = len(one) + len(other)
    whole = 2 * common / both if one and other else 0.0
    assert agreement(" ".join(one), " ".join(other)) == pytest.approx(whole)


def test_shares_and_pairs_are_those_of_the_definition() -> None:
    texts = documents(40, 30)
    texts += [text.rsplit(" ", 6)[0] + " one two three" for text in texts[:8]]
    recipe = nd.Recipe(ngram=2)
    planted = plant(texts, (Aim(), Aim(0.1)), 0)

    def shingles(text: str) -> set[tuple[str, ...]]:
        words = text.replace("&", " ").casefold().replace(".", " ").split()
        return set(pairwise(words))

    def score(a: str, b: str) -> float:
        x, y = shingles(a), shingles(b)
        return len(x & y) / len(x | y)

    tried = try_questions(
        planted, pa.array(texts, pa.large_string()), recipe, "jaccard", [0.5, 0.7, 0.9], 4.0
    )
    every = planted.texts.to_pylist()
    copies = every[len(texts) :]
    for each in tried:
        step = each.question.similarity
        for kind, share in each.found.items():
            own = [i for i, name in enumerate(planted.kinds) if name == kind]
            hits = [score(copies[i], texts[planted.original[i]]) >= step - 1e-9 for i in own]
            assert share == pytest.approx(sum(hits) / len(hits)), kind
        pairs = [p for p in combinations(texts, 2) if score(*p) >= step - 1e-9]
        assert each.pairs == each.implied == len(pairs)
    assert tried[0].expected[0] == 4 * tried[0].unlike


def test_groups_that_chain_imply_more_pairs_than_match() -> None:
    words = [f"w{i}" for i in range(200)]
    chain = [" ".join(words[at : at + 40]) for at in range(0, 120, 12)]
    sample = pa.array([*chain, *documents(30, 40)], pa.large_string())
    planted = plant(documents(30, 40), (Aim(), Aim(0.1)), 0)
    (each,) = try_questions(planted, sample, nd.Recipe(ngram=1), "jaccard", [0.5], 1.0)
    assert (each.pairs, each.implied) == (9, 45)
    assert each.signs[0] == pytest.approx(29 / 65)


def measured(similarity: float, aim: float, recall: float, **signs: Any) -> Measured:
    result = {"replaced": aim, "2 x replaced": 2 * recall - aim}
    figures = {"lookalikes": 0.0, "pairs": 100, "implied": 100, "unlike": 0.0} | signs
    question = replace(DEFAULT_QUESTION, similarity=similarity)
    return Measured(question, result, expected=(0.0, 0.0, 0.0), **figures)


USUAL = DEFAULT_QUESTION.similarity


@pytest.mark.parametrize(
    ("tried", "chosen"),
    [
        ([measured(USUAL, 0.9, 0.5), measured(0.5, 1.0, 0.9)], USUAL),
        ([measured(USUAL, 0.89, 0.5), measured(0.5, 0.96, 0.9)], 0.5),
        ([measured(USUAL, 0.8, 0.5), measured(0.5, 0.93, 0.9), measured(0.6, 0.96, 0.6)], 0.6),
        ([measured(USUAL, 0.8, 0.5), measured(0.5, 0.92, 0.9)], 0.5),
        ([measured(USUAL, 0.8, 0.5), measured(0.5, 0.7, 0.6)], None),
        # as tight as the default: what finds most; a chain or a lookalike is not as tight
        ([measured(USUAL, 0.8, 0.5), measured(0.4, 0.99, 0.9, implied=130),
          measured(0.5, 0.96, 0.7), measured(0.6, 0.95, 0.6)], 0.5),
        ([measured(USUAL, 0.8, 0.5), measured(0.5, 0.99, 0.9, lookalikes=0.1),
          measured(0.6, 0.95, 0.7, unlike=4)], 0.6),
        ([measured(USUAL, 0.95, 0.8, implied=300)], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_advice_follows_the_rule(tried: list[Measured], chosen: float | None) -> None:
    best, why = advise(tried, DEFAULT_QUESTION)
    assert (None if best is None else best.question.similarity) == chosen
    assert why


def write(path: Path, texts: list[str]) -> None:
    path.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)))


def test_the_advised_question_is_written_taken_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    texts = documents(120, 9)
    planter = Planter(texts, 5)
    write(
        tmp_path / "in.jsonl",
        [*texts, *(planter.copy(i, "replaced", Aim.parse("1")) or "" for i in range(40))],
    )
    out, _ = here("calibrate", "in.jsonl", "--edits", "1", "-o", "question.toml")
    assert "words 3, 0.7 (default)" in out
    head, *rows = (line for line in out.splitlines() if line.startswith(("question", "words ")))
    assert {len(row) for row in rows} == {len(head)}
    assert "cannot tell: " in out
    assert out.splitlines()[-1].startswith("use: neardup dedup in.jsonl -o OUT --similarity 0.")
    question = nd.Question.load(tmp_path / "question.toml")
    assert question != DEFAULT_QUESTION
    output, _ = here(
        "dedup", "in.jsonl", "--question", "question.toml", "-o", "out.jsonl", "--json"
    )
    assert json.loads(output)["dropped"] >= 36
    lines = (tmp_path / "in.jsonl").read_text().splitlines()
    result = nd.dedup([json.loads(line)["text"] for line in lines], question=question)
    assert int((~result.kept).sum()) == json.loads(output)["dropped"]
    here("index", "create", "seen.index", "--question", "question.toml")
    with nd.DurableIndex.open(tmp_path / "seen.index") as index:
        assert index.question == question
    again, _ = here("dedup", "in.jsonl", "--against", "seen.index", "-o", "out.jsonl", "--json")
    assert json.loads(again)["dropped"] == json.loads(output)["dropped"]


def test_few_documents_are_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    write(tmp_path / "in.jsonl", ["one", "two"])
    out, _ = here("calibrate", "in.jsonl")
    assert "no advice: 2 documents are too few to tell" in out
    assert "neardup review" in out
    _, err = here("calibrate", "in.jsonl", "-o", "question.toml", code=1)
    assert "no question is advised" in err
    assert not (tmp_path / "question.toml").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["dedup", "in.jsonl", "-o", "o.jsonl", "--similarity", "0.7"],
        ["dedup", "in.jsonl", "-o", "o.jsonl", "--measure", "jaccard"],
        ["dedup", "in.jsonl", "-o", "o.jsonl", "--distance", "3"],
        ["dedup", "in.jsonl", "-o", "o.jsonl", "--ngram", "3"],
        ["dedup", "in.jsonl", "-o", "o.jsonl", "--preset", "pypi-simhash"],
        ["index", "create", "i.index", "--similarity", "0.7"],
        ["index", "create", "i.index", "--distance", "3"],
        ["calibrate", "in.jsonl", "--similarity", "0.7"],
        ["calibrate", "in.jsonl", "--tokens", "chars"],
        ["review", "d.csv", "in.jsonl", "--measure", "dice", "--no-open"],
        ["report", "d.csv", "in.jsonl", "--similarity", "0.7"],
        ["evaluate", "--docs", "in.jsonl", "--labels", "l.csv", "--measure", "dice"],
    ],
)
def test_a_question_and_an_option_that_it_decides_exclude_each_other(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    write(tmp_path / "in.jsonl", ["one"])
    nd.Question().save(tmp_path / "q.toml")
    _, err = here(*options, "--question", "q.toml", code=2)
    assert "question" in err


def test_a_call_that_names_no_part_asks_the_default_question() -> None:
    words = [f"w{i}" for i in range(40)]
    texts = [" ".join(words), " ".join([*words[:20], "x", *words[21:]])]
    assert 35 / 41 > 0.8  # of three words 35 are shared, 41 in all
    words[10] = "y"
    texts.append(" ".join(words))
    assert nd.dedup(texts[1:]).kept.tolist() == [True, False]  # 32 of 44
    assert nd.dedup(texts[1:], recipe=nd.Recipe()).kept.tolist() == [True, True]
    assert nd.dedup(texts[1:], measure="jaccard").kept.tolist() == [True, True]
    assert nd.dedup(texts[1:], question=nd.Question(similarity=0.7)).kept.tolist() == [True, False]
    with pytest.raises(UsageError, match="question and distance exclude each other"):
        nd.dedup(texts, question=nd.Question(), distance=3)


def test_an_index_takes_a_question() -> None:
    question = nd.Question(nd.Recipe(ngram=1), 0.6, "dice")
    index: Any = nd.Index(question=question)
    index.add(1, "one two three four")
    assert index.question == question
    assert index.query("one two three five") == [(1, 0.75)]
    with pytest.raises(UsageError, match="question and similarity exclude each other"):
        nd.Index(question=question, similarity=0.8)


def test_a_sample_without_unlike_pairs_leaves_some_possible_among_all() -> None:
    assert _projected(0.0, 1) == (0, 0, 0)  # of all documents it is a count
    for unlike, interval in ((0.0, counted(0)), (0.5, counted(0)), (1.0, paired(1.0, 2.0))):
        assert _projected(unlike, 10) == (10 * unlike, *(10 * bound for bound in interval))


def test_each_recipe_has_the_tightest_question_that_serves_or_the_best_that_comes_near() -> None:
    def of(tokens: str, ngram: int, similarity: float, aim: float) -> Measured:
        question = Question(Recipe(tokens=tokens, ngram=ngram), similarity)  # type: ignore[arg-type]
        return replace(measured(similarity, aim, aim), question=question)

    usual = measured(USUAL, 0.9, 0.8)
    serving = [of("words", 1, 0.6, 0.99), of("words", 1, 0.7, 0.95), of("words", 1, 0.9, 0.94)]
    near = [of("words", 2, 0.5, 0.9), of("words", 2, 0.6, 0.8)]
    far = [of("chars", 4, 0.5, 0.79)]
    tried = (*far, *near, usual, *serving)
    questions = Questions(9, 0, 9, 9, "", tried, (), DEFAULT_QUESTION, None, "", (), "")
    assert questions.rows[0] == usual
    assert {id(each) for each in questions.rows} == {id(usual), id(serving[1]), id(near[0])}
