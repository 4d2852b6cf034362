"""The line of a summary about copies that a question is likely to miss."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.pipeline.run.likely_missed import TextSample, likely_missed
from neardup.pipeline.run.rule import Rule

WORDS = [
    f"{a}{b}" for a in ("ka", "lo", "mi", "re", "su", "ta") for b in ("na", "pel", "ris", "to")
]
GLYPHS = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))


def texts_of(words: int, count: int = 200, seed: int = 3) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(f"{draw.choice(WORDS)}{draw.randrange(99)}" for _ in range(words))
            for _ in range(count)]  # fmt: skip


def with_one_changed(text: str, at: int = 4) -> str:
    words = text.split()
    words[at] = "changed"
    return " ".join(words)


def line_of(texts: list[str], **options: object) -> str:
    (line,) = nd.dedup(texts, **options).summary.notes or [""]  # type: ignore[arg-type]
    return line


@pytest.mark.parametrize("ngram", [1, 2, 3, 5])
@pytest.mark.parametrize("words", [8, 12, 25])
def test_the_similarity_that_is_expected_is_that_of_a_changed_word(ngram: int, words: int) -> None:
    recipe = nd.Recipe(ngram=ngram)
    texts = texts_of(words)
    copies = [with_one_changed(text, at % words) for at, text in enumerate(texts)]
    exact = np.mean(
        [nd.compare(a, b, recipe=recipe).jaccard for a, b in zip(texts, copies, strict=True)]
    )
    sample, sizes = TextSample(texts[:20]), np.full(200, words - ngram + 1)
    line = likely_missed(Rule(0.99, recipe=recipe), sizes, sample)
    assert line is not None
    similarity = float(line.partition("is about ")[2].partition(",")[0])
    assert similarity == pytest.approx(float(exact), abs=0.07)


def test_short_texts_get_one_line_whose_option_finds_the_copies() -> None:
    texts = texts_of(10)
    line = line_of(texts)
    assert "one word changed" in line
    assert "--ngram 1 --similarity 0.7 finds most" in line
    copies = [with_one_changed(text) for text in texts]
    assert nd.dedup([*texts, *copies]).summary.dropped == 0
    mended = nd.dedup([*texts, *copies], recipe=nd.Recipe(ngram=1), similarity=0.7)
    assert mended.summary.dropped == 200
    assert mended.summary.notes == []


def test_long_texts_get_a_line_at_08_and_none_by_default() -> None:
    texts = texts_of(60)
    assert line_of(texts) == ""
    line = line_of(texts, similarity=0.8)
    assert "one word in 20 changed" in line
    assert "; --similarity 0.7 finds" in line


def test_unspaced_texts_are_counted_in_pairs_of_characters() -> None:
    draw = random.Random(1)
    texts = ["".join(draw.choices(GLYPHS, k=14)) for _ in range(150)]
    assert "two characters changed" in line_of(texts)
    assert "--tokens chars --similarity 0.5" in line_of(texts)
    assert line_of(["".join(draw.choices(GLYPHS, k=90)) for _ in range(150)]) == ""


def test_letters_of_a_language_name_their_option() -> None:
    turkish = [f"{text} \u0130zmir ve Do\u011fu yakas\u0131 {text}" for text in texts_of(30)]
    assert line_of(turkish).endswith("--language tr")
    assert line_of(turkish, similarity=0.7, recipe=nd.Recipe(language="tr")) == ""
    arabic = [f"{text} \u0643\u0640\u062a\u0627\u0628" for text in texts_of(40)]
    assert line_of(arabic).endswith("--ignore tatweel")
    assert line_of(arabic, similarity=0.7, recipe=nd.Recipe(ignore=("tatweel",))) == ""


def test_few_documents_and_distances_get_no_line() -> None:
    assert line_of(texts_of(10, 99)) == ""
    assert line_of(texts_of(10), distance=3) == ""
    assert line_of([""] * 300) == ""


def test_a_sample_takes_some_of_each_batch_and_beginnings_only() -> None:
    sample = TextSample()
    texts = pa.array(["\u0131" * 2000, "b", ""] * 20, pa.large_string())
    sample.see(texts.slice(1, 0))
    for _ in range(100):
        sample.see(texts.slice(1))
    assert len(sample.texts) == 128
    assert max(map(len, sample.texts)) == 300
