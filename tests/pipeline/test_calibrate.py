"""A calibration counts what the definition counts, extrapolates, and says what it doubts."""

from __future__ import annotations

import json
import random
import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from commands import Here
from neardup.documents import InputFormat, ReadOptions, Rejects, open_sources
from neardup.errors import UsageError
from neardup.pipeline.calibration.advice import commands, read_options
from neardup.pipeline.calibration.calibrate import CalibrationOptions, calibrate_files
from neardup.pipeline.calibration.measure import LENGTHS, _range
from neardup.pipeline.calibration.model import Choice, advised_choices
from neardup.pipeline.calibration.sample import take_sample
from neardup.pipeline.run.rule import Limits
from neardup.runtime.intervals import counted, kish, paired, stratified, wilson
from neardup.runtime.progress import Quiet
from suite import examples
from test_page import HOSTILE, OUTSIDE, Tags

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.pipeline.calibration.model import Calibration

UNIGRAMS = nd.Recipe(ngram=1)
WORDS = [f"w{i}" for i in range(10)]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=2, max_size=14
)


def write(path: Path, texts: list[str]) -> Path:
    rows = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    path.write_text("".join(row + "\n" for row in rows))
    return path


def calibrated(path: Path, **settings: Any) -> Calibration:
    return calibrate_files(
        [str(path)], CalibrationOptions(**settings), UNIGRAMS, ReadOptions(), Limits()
    )


def jaccard(a: str, b: str) -> float:
    left, right = set(a.split()), set(b.split())
    return len(left & right) / len(left | right) if left and right else 0.0


@settings(max_examples=examples(20))
@given(texts=TEXTS)
def test_of_a_whole_corpus_all_figures_are_counts(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.mktemp("calibrate") / "docs.jsonl", texts)
    calibration = calibrated(path, similarity=0.6)
    pairs = [p for p in combinations(range(len(texts)), 2) if all(texts[i].split() for i in p)]
    score = {p: jaccard(texts[p[0]], texts[p[1]]) for p in pairs}
    for level in calibration.levels:
        count = sum(x >= level.similarity - 1e-9 for x in score.values())
        assert (level.sampled, level.pairs, level.interval) == (count, count, (count, count))
    values = np.ma.getdata(nd.fingerprints(texts, UNIGRAMS))[:, 0].tolist()
    apart = {(a, b): (values[a] ^ values[b]).bit_count() for a, b in pairs}
    for choice in calibration.choices:
        if choice.bits != 64:
            continue
        expected = {p for p in pairs if score[p] >= choice.similarity - 1e-9}
        near = {p for p in pairs if apart[p] <= choice.distance}
        assert choice.found == len(near)
        assert choice.recall == (len(expected & near) / len(expected) if expected else None)
        assert choice.precision == (len(expected & near) / len(near) if near else None)
    by_band = [
        sum(band.levels[i].sampled for band in calibration.lengths)
        for i in range(len(calibration.levels))
    ]
    assert by_band == [level.sampled for level in calibration.levels]
    assert sum(band.documents for band in calibration.lengths) == sum(
        bool(t.split()) for t in texts
    )


def many(count: int, seed: int = 1) -> list[str]:
    """Texts of which every second repeats the one before, but for a word."""
    generator = random.Random(seed)
    texts = []
    for _ in range(count // 2):
        words = [f"x{generator.randrange(10**6)}" for _ in range(30)]
        texts += [" ".join(words), " ".join([*words[1:], "other"])]
    return texts


def test_a_sample_tells_the_whole_within_its_interval(tmp_path: Path) -> None:
    calibration = calibrated(write(tmp_path / "docs.jsonl", many(800)), sample=400, similarity=0.8)
    assert (calibration.documents, calibration.sampled) == (800, 400)
    level = next(x for x in calibration.levels if x.similarity == 0.8)
    low, high = level.interval
    assert 0 < level.sampled < 400
    assert low < level.pairs < high
    assert low <= 400 <= high
    assert all(cost.seconds > 0 and cost.memory > 0 for cost in calibration.costs)


def test_the_same_seed_takes_the_same_documents_however_they_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", many(400))

    def taken(size: int, seed: int, batch_bytes: int = 8 << 20) -> list[str]:
        sources = open_sources([str(path)])
        read = ReadOptions(id="id", batch_bytes=batch_bytes)
        sample = take_sample(sources, read, size, seed, Rejects(), Quiet())
        assert sample.documents == 400
        assert sample.part(5).names.to_pylist() == [
            name
            for name in sample.names.to_pylist()
            if name in set(sample.part(5).names.to_pylist())
        ]
        return list(sample.names.to_pylist())

    assert taken(50, 3) == taken(50, 3, 500)
    assert taken(50, 3) != taken(50, 4)
    assert set(taken(20, 3)) < set(taken(50, 3))
    assert len(taken(1000, 3)) == 400
    rows = [int(name[1:]) for name in taken(200, 7)]
    assert rows == sorted(rows)
    assert 150 < np.mean(rows) < 250


def graph(generator: np.random.Generator, sizes: list[int]) -> tuple[Any, Any, int]:
    """Pairs among documents of which groups of these sizes are all alike."""
    left, right, first = [], [], 0
    for size in sizes:
        for a, b in combinations(range(first, first + size), 2):
            left.append(a)
            right.append(b)
        first += size
    mixed = generator.permutation(first)
    return mixed[left], mixed[right], first


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([2] * 300 + [1] * 5400, 1000),
        ([2] * 200 + [3] * 60 + [9] * 8 + [1] * 4000, 800),
        ([40, 25, 15, 12, 9, 7] + [3] * 20 + [2] * 60 + [1] * 3000, 500),
    ],
)
def test_the_interval_of_pairs_covers_as_often_as_it_says(sizes: list[int], taken: int) -> None:
    generator = np.random.default_rng(11)
    left, right, n = graph(generator, sizes)
    scale, covered, ratios = n * (n - 1) / (taken * (taken - 1)), 0, []
    for _ in range(400):
        chosen = np.zeros(n, bool)
        chosen[generator.choice(n, taken, replace=False)] = True
        both = chosen[left] & chosen[right]
        met = np.bincount(np.concatenate([left[both], right[both]])).astype(float)
        low, high = paired(int(both.sum()), float(met @ met))
        covered += low * scale <= len(left) <= high * scale
        ratios.append(high / max(low, 1e-9))
    assert covered >= 0.93 * 400
    assert np.median(ratios) < 15


def sheet(count: int) -> list[str]:
    """Short rows, a tenth of them copies of which a word is abridged or added."""
    generator = random.Random(2)
    rows = []
    for _ in range(count - count // 10):
        street, town = generator.choice(["Oak", "Elm", "Hill"]), generator.choice(["York", "Bath"])
        rows.append(
            f"{generator.choice(['Ann', 'Bob', 'Eve'])} {generator.randrange(200)} {street} Street"
            f" {town} order {generator.randrange(10**5)} please deliver on Monday"
        )
    for _ in range(count // 10):
        row = generator.choice(rows)
        rows.append(generator.choice([row, row.replace("Street", "St."), f"{row} thanks"]))
    return rows


def tail(count: int) -> list[str]:
    """Long texts whose similarities thin out towards 1: the more alike, the fewer."""
    generator = random.Random(3)
    texts = []
    for _ in range(count // 2):
        words = [f"x{generator.randrange(10**6)}" for _ in range(60)]
        changed = round(36 * generator.random() ** 0.5)
        texts += [" ".join(words), " ".join([*words[changed:], *(["other"] * (changed > 0))])]
    return texts


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (sheet(1200), "documents have fewer than 20 features"),
        (tail(800), "no threshold from 0.5 to 0.85 lies in a valley"),
        (["a text of its own", "and another"], "fewer than 20 features"),
    ],
)
def test_where_nothing_is_known_nothing_is_advised(
    texts: list[str], reason: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "docs.jsonl", texts)
    calibration = calibrated(path)
    assert reason in calibration.unknown
    assert (calibration.commands, calibration.advised, calibration.threshold) == ((), None, 0.8)
    assert f"no advice: {calibration.unknown}; look at the example pairs" in str(calibration)
    assert "use:" not in str(calibration)
    at_threshold = calibrated(path, similarity=0.73)
    assert at_threshold.unknown == ""
    assert at_threshold.commands[0].endswith("--similarity 0.73")
    assert "\n      0.73 " in str(at_threshold)


def test_a_valley_is_found_where_it_was_made(tmp_path: Path) -> None:
    """Copies with one word in thirty changed, and others of which a third is the same."""
    generator = random.Random(4)
    texts = []
    for _ in range(200):
        words = [f"x{generator.randrange(10**6)}" for _ in range(60)]
        others = [f"y{generator.randrange(10**6)}" for _ in range(20)]
        texts += [" ".join(words), " ".join([*words[2:], "one", "two"])]
        texts += [" ".join([*words[:45], *others])] if generator.random() < 0.5 else []
    calibration = calibrated(write(tmp_path / "docs.jsonl", texts))
    assert calibration.unknown == ""
    assert 0.6 < calibration.threshold <= 0.85
    assert calibration.commands[0].endswith(f"--similarity {calibration.threshold:g}")


def test_pairs_at_a_high_similarity_are_not_chained_by_those_at_a_low_one(tmp_path: Path) -> None:
    """Each pair of copies shares words with all others, which makes one group of them at 0.3."""
    common = " ".join(f"common{i}" for i in range(12))
    texts = [
        f"{common} {' '.join(f'{i}x{j}' for j in range(9))} {k}" for i in range(60) for k in (1, 2)
    ]
    path = write(tmp_path / "docs.jsonl", texts * 2)
    calibration = calibrated(path, similarity=0.8, sample=120, lowest=0.3)
    level = next(level for level in calibration.levels if level.similarity == 0.8)
    assert level.sampled > 20
    assert level.interval[1] / level.interval[0] < 5
    assert not any("too few duplicates" in each for each in calibration.warnings)


def test_too_few_duplicates_are_said(tmp_path: Path) -> None:
    texts = [f"every text {i} is {i * 7} of its own {i * 13} words {i * 17}" for i in range(60)]
    calibration = calibrated(write(tmp_path / "docs.jsonl", texts), sample=30, similarity=0.9)
    assert "too few duplicates: 0 pairs at 0.9 or more" in calibration.warnings[0]
    assert "--sample 60" in calibration.warnings[0]
    assert calibration.advised is None
    assert calibration.levels[-1].interval[1] > 3
    unknown = {each.recall_interval for each in calibration.choices if each.recall is None}
    assert unknown == {(0, 1)}


def test_the_sample_to_take_is_in_thousands(tmp_path: Path) -> None:
    texts = [f"text {i} of {i * 7} its own {i * 13} words {i * 17}" for i in range(1200)]
    calibration = calibrated(write(tmp_path / "docs.jsonl", texts), sample=30, similarity=0.9)
    assert calibration.warnings[0].endswith("take a larger one: --sample 1000")


def test_a_sample_with_too_many_pairs_is_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.pipeline.calibration.measure.MOST_PAIRS", 100)
    calibration = calibrated(write(tmp_path / "docs.jsonl", ["the very same words"] * 40))
    assert calibration.sampled == 10
    assert calibration.levels[-1].sampled == 45
    assert calibration.levels[-1].pairs == pytest.approx(40 * 39 / 2)
    assert any(
        "only 10 documents of the sample were compared" in each for each in calibration.warnings
    )


def test_the_advice_finds_the_pairs_and_the_command_says_it(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", many(200))
    calibration = calibrated(path, recall=0.9)
    assert calibration.is_own
    assert calibration.advised is not None
    assert (calibration.advised.recall or 0) >= 0.9
    command = f"neardup dedup {path} -o OUT --ngram 1 --similarity {calibration.threshold:g}"
    assert calibration.commands[0] == command
    assert f"--distance {calibration.advised.distance} --verify" in calibration.commands[1]


def test_the_command_repeats_how_documents_are_read_and_what_is_asked() -> None:
    question = nd.Question(nd.Recipe(ngram=1, top=9, ignore=("accents",)), 0.7, "cosine")
    form = InputFormat("csv", "\t", "cp1252")
    read = ReadOptions(("a", "b"), "nr", skip_errors=True, extract="all", input_format=form)
    reading = "--text a,b --id nr --format csv --delimiter tab --encoding cp1252 --extract all"
    own = "--on-error skip --measure cosine --ngram 1 --top 9 --ignore accents"
    asked = commands(["in.csv"], read, question, None)
    assert asked == [f"neardup dedup in.csv -o OUT {reading} {own} --similarity 0.7"]
    formats = InputFormat(records="a.b"), InputFormat("excel:May")
    options = [read_options(ReadOptions(input_format=each)) for each in formats]
    assert options == [["--records", "a.b"], ["--format", "excel:May"]]


def test_the_command_writes_numbers_and_an_inert_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    write(tmp_path / "docs.jsonl", [*many(40), f"{HOSTILE} one two", f"{HOSTILE} one two three"])
    out, _ = here("calibrate", "docs.jsonl", "--report", "page.html", "--json", "--ngram", "1")
    page = (tmp_path / "page.html").read_text()
    tags = Tags(page)
    assert tags.open == []
    assert not OUTSIDE.search(page)
    assert "<img" not in page
    assert "<b>42</b> documents, <b>all of them</b> looked at" in page
    (low, high), *_ = re.findall(r"\d <small>([01][.]\d{3}) to ([01][.]\d{3})</small>", page)
    assert low < high
    here("calibrate", "docs.jsonl", "--report", "some.html", "--ngram", "1", "--sample", "30")
    some = (tmp_path / "some.html").read_text()
    assert "<b>42</b> documents, <b>30</b> looked at" in some
    assert json.loads(out)["documents"] == 42
    plain, _ = here("calibrate", "docs.jsonl", "--ngram", "1", "--similarity", "0.8")
    assert "use: neardup dedup docs.jsonl -o OUT --ngram 1 --similarity 0.8" in plain
    _, err = here("calibrate", "docs.jsonl", "--similarity", "0.2", code=2)
    assert "the search begins at 0.3" in err


@pytest.mark.parametrize("texts", [[], [""], ["one"], ["", ""]])
def test_next_to_nothing_has_a_calibration(texts: list[str], tmp_path: Path) -> None:
    calibration = calibrated(write(tmp_path / "docs.jsonl", texts))
    assert calibration.documents == len(texts)
    assert {level.sampled for level in calibration.levels} == {0}


def test_each_twentieth_and_the_threshold_have_a_line(tmp_path: Path) -> None:
    calibration = calibrated(write(tmp_path / "docs.jsonl", ["one"]), lowest=0.7, similarity=0.73)
    steps = [level.similarity for level in calibration.steps]
    assert steps == pytest.approx([0.7, 0.73, 0.75, 0.8, 0.85, 0.9, 0.95, 1])


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(UsageError, match="sample is 1"):
        CalibrationOptions(sample=1)
    with pytest.raises(UsageError, match="recall is 0"):
        CalibrationOptions(recall=0)
    with pytest.raises(UsageError, match="similarity is 0"):
        CalibrationOptions(lowest=0)


@given(trials=st.integers(1, 500), data=st.data())
def test_intervals_hold_what_was_seen(trials: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, trials))
    low, high = wilson(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1
    least, most = counted(hits)
    assert 0 <= least <= hits <= most
    assert 1 <= kish([1] * trials) == trials
    share, below, above = stratified([(trials, trials, hits)]) or (-1.0, 0.0, 0.0)
    assert share == pytest.approx(hits / trials)
    assert (below, above) == pytest.approx((share, share))


def test_the_stratified_interval_covers_as_often_as_it_says() -> None:
    generator = random.Random(5)
    sizes, rates = (400, 200, 100), (0.95, 0.6, 0.2)
    whole = sum(size * rate for size, rate in zip(sizes, rates, strict=True)) / sum(sizes)
    covered = 0
    for _ in range(400):
        strata = []
        for size, rate in zip(sizes, rates, strict=True):
            members = [1] * round(size * rate) + [0] * round(size * (1 - rate))
            strata.append((size, 30, sum(generator.sample(members, 30))))
        estimate = stratified(strata)
        assert estimate is not None
        covered += estimate[1] <= whole <= estimate[2]
    assert covered >= 0.93 * 400


def test_of_each_width_distance_3_is_shown_and_what_matches_notably_more() -> None:
    def choice(bits: int, distance: int, recall: float | None, similarity: float = 0.8) -> Choice:
        return Choice(bits, distance, similarity, recall, (0, 1), 0.9, (0, 1), 9)

    recalls = (0.1, 0.11, 0.12, 0.13, 0.14, 0.3)
    of_64 = [choice(64, distance, recall) for distance, recall in enumerate(recalls)]
    of_128 = [choice(128, distance, recall) for distance, recall in enumerate(recalls)]
    others = [choice(64, 6, None), choice(64, 7, 0.9, similarity=0.7)]
    shown = advised_choices((*of_64, *others, *of_128), 0.8)
    assert [(each.bits, each.distance) for each in shown] == [
        (bits, distance) for bits in (64, 128) for distance in (0, 3, 5)
    ]


def test_bands_of_length_meet_and_do_not_overlap() -> None:
    assert LENGTHS[0][0] == 1
    assert LENGTHS[-1][1] is None
    assert all(least == (most or 0) + 1 for (_, most), (least, _) in pairwise(LENGTHS))


def test_a_share_of_nothing_may_be_any_share() -> None:
    assert _range(None, 0.0) == (0.0, 1.0)
