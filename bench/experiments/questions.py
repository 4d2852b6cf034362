"""Which question finds copies: planted edits in nine languages, people's labels, real revisions.

    python -m bench.experiments.questions planted [--small]  # one word in 20, or one of a sentence
    python -m bench.experiments.questions lengths            # the same by length, a few questions
    python -m bench.experiments.questions labels             # F1 of pairs against labels
    python -m bench.experiments.questions revisions          # real edits, by their share of words
    python -m bench.experiments.questions corpora            # what is dropped, and the cost
    python -m bench.experiments.questions calibrate FOLDER   # what `calibrate` advises, its truth
    python -m bench.experiments.questions review [SEEDS]     # F1 after 10, 30 and 60 answers
    python -m bench.experiments.questions notes              # the line of a summary, and its truth
    python -m bench.experiments.questions ignored            # signs left out by some of the copies
    python -m bench.experiments.questions code               # functions: edits, names, no comments
    python -m bench.experiments.questions rensa              # a peer's program (pip install rensa)
    python -m bench.experiments.questions passages           # texts that stand inside longer ones

Corpora are those of ../shared/data; Russian, Arabic, Hindi and Thai are messages of this machine's
gettext catalogues. A planted set has texts of twelve sentences (long) or of one (short), copies of
a quarter of them with words replaced, and for long ones documents of which two fifths are
another's. A drop is right if it is a planted copy and its original, or if the two agree in four
fifths of their words in order. Peers' defaults are questions of ours with their shingles and
thresholds, computed exactly, not their programs. Of each set one seed, of `review` several; seconds
are processor seconds. The rule of `calibrate` was made with the sets of TUNED; the others judge it.
The answers of `review` are the labels, about pairs of a sample of 20,000 documents.
"""

from __future__ import annotations

import ast
import csv
import gettext
import gzip
import json
import keyword
import random
import re
import sys
import sysconfig
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import neardup as nd
from neardup.documents import ReadOptions
from neardup.features.scripts import is_unspaced
from neardup.fingerprinting.question import DEFAULT_QUESTION
from neardup.hamming.match_graph import labels_of_pairs
from neardup.pipeline import Limits
from neardup.pipeline.calibration.edits import Aim, Planter, words_of
from neardup.pipeline.calibration.questions import ComparisonOptions, compare_questions
from neardup.pipeline.calibration.trials import agreement, sets_of
from neardup.pipeline.judgement.candidate_pairs import CandidatePairs, candidate_pairs
from neardup.pipeline.judgement.learned_question import Lesson, QuestionSoFar, learn, next_pair
from neardup.pipeline.run.likely_missed import TextSample, expected_share
from neardup.pipeline.run.rule import Rule
from neardup.similarity.feature_sets import Match, similarities
from neardup.similarity.join import similar_components

DATA: Final = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CORPORA: Final = {
    "en": "reuters21578_en",
    "tr": "lohelp_revisions_tr",
    "ja": "livedoor_ja",
    "zh help": "lohelp_revisions_zh-cn",
    "zh laws": "zh_laws",
}
CATALOGUES: Final = ("ru", "ar", "hi", "th")
LABELLED: Final = (
    "bib_dedupe_en",
    "lohelp_revisions_tr",
    "lohelp_revisions_zh-cn",
    "lohelp_revisions_en-us",
)
TUNED: Final = {"bib_dedupe_en", "lohelp_revisions_tr", "lohelp_revisions_zh-cn"} | {
    ("tr", "short"), ("ja", "short"), ("zh help", "short"), ("en", "short"), ("tr", "long"),
    ("zh laws", "long"),
}  # fmt: skip
AIMS: Final = {"long": "5%", "short": "1"}
LENGTHS: Final = {"short": 1, "middle": 3, "long": 12}
"""Sentences of a text."""


def question(tokens: str, ngram: int, similarity: float) -> nd.Question:
    return nd.Question(nd.Recipe(tokens=tokens, ngram=ngram), similarity)


QUESTIONS: Final = {
    "words 3, 0.8 (was the default)": question("words", 3, 0.8),
    "words 3, 0.75": question("words", 3, 0.75),
    "words 3, 0.7 (default)": question("words", 3, 0.7),
    "words 3, 0.65": question("words", 3, 0.65),
    "words 3, 0.6": question("words", 3, 0.6),
    "words 2, 0.7": question("words", 2, 0.7),
    "words 1, 0.8": question("words", 1, 0.8),
    "chars 4, 0.7": question("chars", 4, 0.7),
    "text-dedup: words 5, 0.7": question("words", 5, 0.7),
    "datatrove: words 5, 0.72": question("words", 5, 0.72),
    "SlimPajama: words 13, 0.8": question("words", 13, 0.8),
    "NeMo Curator: chars 24, 0.8": question("chars", 24, 0.8),
}


def texts_of(name: str) -> list[str]:
    with gzip.open(DATA / name / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def messages(language: str) -> list[str]:
    results: dict[str, None] = {}
    for path in sorted(Path(f"/usr/share/locale/{language}/LC_MESSAGES").glob("*.mo")):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # noqa: SLF001
        results |= dict.fromkeys(str(text) for text in catalogue.values() if "\n" not in str(text))
    return list(results)


def sentences(texts: list[str]) -> list[str]:
    """Sentences of a middle length, each once, of the script that the texts are in."""
    parts = [
        part.strip()
        for text in texts
        for part in re.split(r"(?<=[.!?\u3002\uff01\uff1f])\s*|\n+", text)
        if part.strip()
    ]
    some = parts[:: len(parts) // 1000 + 1]
    unspaced = sum(map(is_unspaced, some)) > 0.2 * len(some)
    low, high = (6, 20) if unspaced else (6, 14)
    results: dict[str, str] = {}
    for part in parts:
        if low <= len(words_of(part)) <= high and is_unspaced(part) == unspaced:
            results.setdefault(" ".join(words_of(part)).casefold(), part)
    return list(results.values())


def planted_set(language: str, kind: str, most: int) -> tuple[list[str], list[tuple[str, int]]]:
    """Texts, and of each ("b" original, "e" copy, "h" half, its number)."""
    own = texts_of(CORPORA[language]) if language in CORPORA else messages(language)
    every = sentences(own)
    random.Random(11).shuffle(every)
    between = "" if is_unspaced(every[0]) else " "
    size = LENGTHS[kind]
    base = [between.join(every[at : at + size]) for at in range(0, len(every) - size, size)][:most]
    planter, generator = Planter(base, 5), random.Random(12)
    documents: list[tuple[str, tuple[str, int]]] = [(t, ("b", i)) for i, t in enumerate(base)]
    for row in generator.sample(range(len(base)), max(20, len(base) // 4)):
        copy = planter.copy(row, "replaced", Aim.parse(AIMS.get(kind, "5%")))
        if copy is not None:
            documents.append((copy, ("e", row)))
        if kind == "long" and row % 2:
            half = planter.lookalike(row)
            documents += [] if half is None else [(half, ("h", row))]
    generator.shuffle(documents)
    return [text for text, _ in documents], [label for _, label in documents]


def judged(
    texts: list[str], labels: list[tuple[str, int]], asked: nd.Question
) -> tuple[float, float]:
    """Recall of the planted copies, and the share of right drops."""
    result = nd.dedup(
        texts, similarity=asked.similarity, recipe=asked.recipe, measure=asked.measure
    )
    right, kept_by = 0, {}
    for row in result.duplicates.to_pylist():
        one, other = int(row["dropped"]), int(row["kept"])
        kept_by[labels[one]] = labels[other]
        planted = {labels[one][0], labels[other][0]} == {"b", "e"}
        same = planted and labels[one][1] == labels[other][1]
        right += same or agreement(texts[one], texts[other]) >= 0.8
    copies = [label for label in labels if label[0] == "e"]
    count = sum(
        kept_by.get(("b", row), ("b", row)) == kept_by.get(("e", row), ("e", row))
        for _, row in copies
    )
    return count / len(copies), right / max(1, len(kept_by))


def planted(small: bool) -> None:
    most = {"long": 600 if small else 3000, "short": 1000 if small else 4000}
    for kind in AIMS:
        sets = {name: planted_set(name, kind, most[kind]) for name in (*CORPORA, *CATALOGUES)}
        print(f"\n{kind}, --edits {AIMS[kind]}\n\n| question | {' | '.join(sets)} |")
        print(f"|---|{'---|' * len(sets)}")
        for title, question in QUESTIONS.items():
            cells = []
            for texts, labels in sets.values():
                recall, precision = judged(texts, labels, question)
                low = 0 < precision < 0.995  # 0 where nothing is dropped
                cells.append(f"{recall:.2f}" + (f" / {precision:.3f}" if low else ""))
            print(f"| {title} | {' | '.join(cells)} |", flush=True)


BY_LENGTH: Final = {
    "words 3, 0.7 (default)": question("words", 3, 0.7),
    "words 3, 0.5": question("words", 3, 0.5),
    "words 2, 0.5": question("words", 2, 0.5),
    "words 1, 0.7": question("words", 1, 0.7),
    "chars 4, 0.6": question("chars", 4, 0.6),
}


def lengths() -> None:
    """The tables of docs/guide/script-and-length.md."""
    heads = " | ".join(BY_LENGTH)
    for kind, sentence_count in LENGTHS.items():
        print(f"\n{kind}, {sentence_count} sentences\n\n| | words | {heads} |")
        print(f"|---|---|{'---|' * len(BY_LENGTH)}")
        for language in (*CORPORA, *CATALOGUES):
            texts, labels = planted_set(language, kind, 1000)
            words = np.median([len(words_of(text)) for text in texts])
            cells = []
            for question in BY_LENGTH.values():
                recall, precision = judged(texts, labels, question)
                low = 0 < precision < 0.995
                cells.append(f"{recall:.2f}" + (f" / {precision:.2f}" if low else ""))
            print(f"| {language} | {words:.0f} | {' | '.join(cells)} |", flush=True)


def clusters_of(name: str) -> tuple[list[str], list[str]]:
    with gzip.open(DATA / name / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    with gzip.open(DATA / name / "clusters.csv.gz", "rt", encoding="utf-8") as file:
        label = {row[0]: row[1] for row in list(csv.reader(file))[1:]}
    return [r["text"] for r in records], [label.get(r["id"], r["id"]) for r in records]


def f1(texts: list[str], truth: list[str], asked: nd.Question) -> tuple[float, float, float]:
    """F1, precision and recall of the pairs that transitive groups make."""
    sets = sets_of(pa.array(texts, pa.large_string()), asked.recipe, None)
    groups = similar_components(sets, Match(asked.similarity, asked.measure)).tolist()

    def pairs(labels: Any) -> int:
        return sum(n * (n - 1) // 2 for n in Counter(labels).values())

    hit = pairs(zip(groups, truth, strict=True))
    precision, recall = hit / max(1, pairs(groups)), hit / max(1, pairs(truth))
    return 2 * precision * recall / max(1e-9, precision + recall), precision, recall


def labels() -> None:
    sets = {name: clusters_of(name) for name in LABELLED}
    print(f"\n| question | {' | '.join(sets)} |\n|---|{'---|' * len(sets)}")
    for title, question in QUESTIONS.items():
        cells = ["{:.3f} ({:.2f}, {:.2f})".format(*f1(*each, question)) for each in sets.values()]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def revisions() -> None:
    """Pairs of revisions of a page, by the share of words that differ."""
    bands = ((0.0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2))
    for name in LABELLED[1:]:
        texts, truth = clusters_of(name)
        rows: dict[str, list[int]] = {}
        for row, label in enumerate(truth):
            rows.setdefault(label, []).append(row)
        pairs = [(own[i], own[i + 1]) for own in rows.values() for i in range(len(own) - 1)]
        pairs = [(a, b) for a, b in pairs if texts[a].split() != texts[b].split()]
        changed = np.array([1 - agreement(texts[a], texts[b]) for a, b in pairs])
        heads = [f"{low:.0%} to {high:.0%}" for low, high in bands]
        print(f"\n{name}\n\n| question | {' | '.join(heads)} |\n|---|{'---|' * len(bands)}")
        left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
        for title, question in QUESTIONS.items():
            sets = sets_of(pa.array(texts, pa.large_string()), question.recipe, None)
            result = similarities(sets, left, right) >= question.similarity - 1e-9
            cells = []
            for low, high in bands:
                inside = (changed >= low) & (changed < high)
                cells.append(f"{result[inside].mean():.3f} of {inside.sum():,}")
            print(f"| {title} | {' | '.join(cells)} |", flush=True)


def corpora() -> None:
    names = ("reuters21578_en", "scancode_licenses_en", "livedoor_ja", "zh_laws", "sms_spam_en")
    sets = {name: texts_of(name) for name in names}
    print("\ndropped: of up to 150, agree in less than 0.7 / 0.5 of their words; seconds\n")
    print(f"| question | {' | '.join(sets)} |\n|---|{'---|' * len(sets)}")
    for title, question in QUESTIONS.items():
        cells = []
        for texts in sets.values():
            start = time.process_time()
            result = nd.dedup(texts, similarity=question.similarity, recipe=question.recipe)
            took = time.process_time() - start
            rows = result.duplicates.select(["dropped", "kept"]).to_pylist()
            some = random.Random(3).sample(rows, min(150, len(rows)))
            alike = np.array(
                [agreement(texts[int(r["dropped"])], texts[int(r["kept"])]) for r in some]
            )
            cells.append(
                f"{len(rows):,}: {(alike < 0.7).sum()} / {(alike < 0.5).sum()}, {took:.1f} s"
            )
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def calibrate() -> None:
    folder = Path(sys.argv[2])
    print("\n| set | | advised | truth | default |\n|---|---|---|---|---|")

    def advised(texts: list[str], edits: str) -> Any:
        path = folder / "neardup-questions.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
        asked = ComparisonOptions(Aim.parse(edits))
        return compare_questions([str(path)], asked, ReadOptions(), Limits()).advised

    def row(title: str, is_tuned: bool, best: Any, truth: Any) -> None:
        name = "none" if best is None else " ".join(best.question.options())
        both = [truth(each) for each in (None if best is None else best.question, DEFAULT_QUESTION)]
        print(
            f"| {title} | {'tuned' if is_tuned else 'judged'} | {name} | {both[0]} | {both[1]} |",
            flush=True,
        )

    for name in LABELLED:
        texts, clusters = clusters_of(name)

        def score(asked: Any, t: Any = texts, c: Any = clusters) -> str:
            return "" if asked is None else f"F1 {f1(t, c, asked)[0]:.3f}"

        row(name, name in TUNED, advised(texts, "5%"), score)
    for kind, edits in AIMS.items():
        for language in (*CORPORA, *CATALOGUES):
            texts, own = planted_set(language, kind, {"long": 1500, "short": 4000}[kind])

            def both(asked: Any, t: Any = texts, o: Any = own) -> str:
                return "" if asked is None else "{:.3f} / {:.3f}".format(*judged(t, o, asked))

            row(f"{language}, {kind}", (language, kind) in TUNED, advised(texts, edits), both)


def answered(
    pairs: CandidatePairs, truth: list[str], seed: int, at: tuple[int, ...]
) -> list[QuestionSoFar]:
    """What a review knows after some numbers of answers, which the labels give."""
    known: dict[int, bool] = {}
    results = []
    for count in range(max(at) + 1):
        rows = np.array(list(known), np.int64)
        lesson = Lesson(pairs.scores[rows], np.array(list(known.values()), np.bool_))
        state = learn(pairs, lesson, known, seed)
        if count in at:
            results.append(state)
        row = next_pair(pairs, state, set(known), seed)
        if row is not None:
            known[row] = truth[pairs.left[row]] == truth[pairs.right[row]]
    return results


def review() -> None:
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    at = (10, 30, 60)
    heads = [f"after {count}: F1, mean (worst)" for count in at]
    print(f"\n| set | default | {' | '.join(heads)} | best | F1 in the interval | one answer |")
    print("|---|---|---|---|---|---|---|---|")
    for name in LABELLED:
        texts, truth = clusters_of(name)
        pairs = candidate_pairs([text[:20_000] for text in texts])
        scores = {each: f1(texts, truth, each)[0] for each in pairs.questions}
        start = time.process_time()
        runs = [answered(pairs, truth, seed, at) for seed in range(seeds)]
        took = (time.process_time() - start) / seeds / max(at)
        cells = []
        for count in range(len(at)):
            own = [scores[run[count].question] for run in runs]
            cells.append(f"{np.mean(own):.3f} ({min(own):.3f})")
        every = [state for run in runs for state in run]
        inside = np.mean([each.f1.low <= scores[each.question] <= each.f1.high for each in every])
        default, best = scores[DEFAULT_QUESTION], max(scores.values())
        rest = f"{best:.3f} | {inside:.0%} | {took:.2f} s"
        print(f"| {name} | {default:.3f} | {' | '.join(cells)} | {rest} |", flush=True)


def notes() -> None:
    """Copies that are expected to be missed, and what is found of the planted ones."""
    print("\n| set | expected to be found, found: " + " | ".join(QUESTIONS) + " |")
    for kind in AIMS:
        for language in (*CORPORA, *CATALOGUES):
            texts, own = planted_set(language, kind, 600)
            every, sample = pa.array(texts, pa.large_string()), TextSample()
            for begin in range(0, len(every), 100):
                sample.see(every.slice(begin, 100))
            cells = []
            for question in QUESTIONS.values():
                sizes = np.diff(sets_of(every, question.recipe, None).offsets)
                share = expected_share(
                    Rule(question.similarity, recipe=question.recipe), sizes, sample
                )
                cells.append(f"{share:.2f}, {judged(texts, own, question)[0]:.2f}")
            print(f"| {language}, {kind} | {' | '.join(cells)} |", flush=True)


TURKISH_CAPITALS: Final = str.maketrans({"i": "\u0130"})
FATHA_KASRA: Final = ("\u064e", "\u0650")


def with_signs(text: str, sign: str, generator: random.Random) -> str:
    """A text with a sign behind every third letter."""
    return "".join(
        each + (sign if each.isalpha() and not generator.randrange(3) else "") for each in text
    )


def ignored() -> None:
    """Copies that differ in signs alone: found by default, and with the option; and the cost."""
    cases: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("tr", "capitals", lambda t, _: t.translate(TURKISH_CAPITALS).upper(), {"language": "tr"}),
        ("ar", "tatweel", lambda t, g: with_signs(t, "\u0640", g), {"ignore": ("tatweel",)}),
        (
            "ar", "vowel signs",
            lambda t, g: with_signs(t, g.choice(FATHA_KASRA), g), {"ignore": ("vowel-signs",)},
        ),
        ("th", "zero-width", lambda t, g: with_signs(t, "\u200b", g), {"ignore": ("zero-width",)}),
        ("hi", "joiners", lambda t, g: with_signs(t, "\u200d", g), {"ignore": ("joiners",)}),
        ("en", "digits", lambda t, g: re.sub(r"\d", lambda _: str(g.randrange(10)), t),
         {"ignore": ("digits",)}),
        ("tr", "accents", lambda t, _: without_accents(t), {"ignore": ("accents",)}),
    ]  # fmt: skip
    print("\n| edit | set | default | option | found with it | other drops, both | seconds, both |")
    print("|---|---|---|---|---|---|---|")
    for language, title, edit, options in cases:
        every = texts_of(CORPORA[language]) if language in CORPORA else messages(language)
        own, generator = sentences(every), random.Random(2)
        base = [text for text in own if edit(text, random.Random(1)) != text][:2000]
        copies = [edit(text, generator) for text in base]
        cells, took, others = [], [], []
        for recipe in (nd.Recipe(), nd.Recipe(**options)):
            start = time.process_time()
            result = nd.dedup([*base, *copies], similarity=0.7, recipe=recipe)
            took.append(time.process_time() - start)
            group = result.cluster[: len(base)] == result.cluster[len(base) :]
            cells.append(f"{int(group.sum()):,} of {len(base):,}")
            others.append(nd.dedup(base, similarity=0.7, recipe=recipe).summary.dropped)
        option = " ".join(nd.Question(nd.Recipe(**options)).options()[2:])
        print(
            f"| {title} | {language} | {cells[0]} | `{option}` | {cells[1]} |"
            f" {others[0]}, {others[1]} | {took[0]:.2f}, {took[1]:.2f} |",
            flush=True,
        )


def without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return "".join(each for each in parts if not unicodedata.combining(each))


def functions() -> list[str]:
    """Functions of the standard library with eight lines or more, each once."""
    results: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        source = path.read_text("utf-8", errors="replace")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                text = ast.get_source_segment(source, node) or ""
                if text.count("\n") >= 8:
                    results.setdefault(text)
    return list(results)


def rensa() -> None:
    """Rensa as its README has it: words by white space, 128 permutations, 16 bands, at 0.8."""
    import rensa as peer

    def groups(texts: list[str]) -> Any:
        index = peer.RMinHashDeduplicator(0.8, 128, True, 16, 42)
        left, right = [], []
        for row, text in enumerate(texts):
            values = peer.RMinHash(128, 42)
            values.update(text.split())
            for other in index.get_duplicates(values):
                left.append(int(other))
                right.append(row)
            # As `add` leaves duplicates out, chains end at the document that is kept.
            index.add(str(row), values)
        return labels_of_pairs(len(texts), np.array(left, np.int64), np.array(right, np.int64))

    def pairs(names: Any) -> int:
        return sum(n * (n - 1) // 2 for n in Counter(names).values())

    for name in LABELLED:
        texts, truth = clusters_of(name)
        own = groups(texts).tolist()
        hit, matches, expected = pairs(zip(own, truth, strict=True)), pairs(own), pairs(truth)
        score = 2 * hit / (matches + expected)
        print(f"| {name} | F1 {score:.3f} | {hit / matches:.2f}, {hit / expected:.2f} |")
    for kind, most in {"long": 600, "short": 1000}.items():
        cells = []
        for language in (*CORPORA, *CATALOGUES):
            texts, labels = planted_set(language, kind, most)
            own = groups(texts)
            rows = {label: row for row, label in enumerate(labels)}
            copies = [number for mark, number in labels if mark == "e"]
            same = [own[rows["e", each]] == own[rows["b", each]] for each in copies]
            cells.append(f"{language} {np.mean(same):.2f}")
        print(kind, *cells, flush=True)


def renamed(text: str, generator: random.Random) -> str:
    """A function with three of its names replaced by others throughout."""
    names = Counter(re.findall(r"\b[a-z_][a-z0-9_]{2,}\b", text))
    names = Counter({each: n for each, n in names.items() if not keyword.iskeyword(each)})
    for name in generator.sample(sorted(names), min(3, len(names))):
        text = re.sub(rf"\b{name}\b", f"{name[::-1]}_new", text)
    return text


def code() -> None:
    base = functions()
    random.Random(4).shuffle(base)
    base = base[:3000]
    planter, generator = Planter(base, 5), random.Random(6)
    kinds = {
        "one word in 20 replaced": lambda r: planter.copy(r, "replaced", Aim.parse("5%")),
        "three names replaced": lambda r: renamed(base[r], generator),
        "comments left out": lambda r: re.sub(r"(?m)\s*#.*$", "", base[r]),
        "indented by a tab": lambda r: base[r].replace("    ", "\t"),
    }
    rows = generator.sample(range(len(base)), 500)
    print(f"\n{len(base):,} functions, 500 with copies\n")
    print(f"| question | {' | '.join(kinds)} | dropped of the functions alone, unlike |")
    print(f"|---|{'---|' * (len(kinds) + 1)}")
    copies = {
        kind: [(row, made) for row in rows if (made := edit(row)) and made != base[row]]
        for kind, edit in kinds.items()
    }
    for title, question in QUESTIONS.items():
        cells = []
        for own in copies.values():
            sets = sets_of(
                pa.array([*base, *(t for _, t in own)], pa.large_string()), question.recipe, None
            )
            left = np.array([row for row, _ in own], np.int64)
            right = len(base) + np.arange(len(own))
            cells.append(
                f"{(similarities(sets, left, right) >= question.similarity - 1e-9).mean():.2f}"
            )
        dropped = nd.dedup(base, question=question).duplicates.to_pylist()
        alike = [agreement(base[int(r["dropped"])], base[int(r["kept"])]) for r in dropped]
        few = sum(each < 0.5 for each in alike)
        print(f"| {title} | {' | '.join(cells)} | {len(dropped)}, {few} |", flush=True)


def passages() -> None:
    """Twelve sentences inside a document of 48, some of their words replaced: containment."""
    print("\n| question | " + " | ".join(CORPORA) + " |\n|---|" + "---|" * len(CORPORA))
    made = {}
    for language in CORPORA:
        texts, labels = planted_set(language, "long", 1000)
        every = [text for text, (kind, _) in zip(texts, labels, strict=True) if kind == "b"]
        every = every[: len(every) - len(every) % 5]
        planter = Planter(every, 5)
        between = "" if is_unspaced(every[0]) else " "
        hosts, rest = [], len(every) // 5
        for row in range(rest):
            passage = planter.copy(row, "replaced", Aim.parse("5%")) or every[row]
            own = every[rest + 4 * row : rest + 4 * row + 3]
            hosts.append(between.join([*own[:1], passage, *own[1:]]))
        made[language] = [*every[:rest], *hosts]
    for title, options in {
        "words 3, jaccard 0.7 (default)": DEFAULT_QUESTION,
        **{f"words 3, containment {s:g}": nd.Question(similarity=s, measure="containment")
           for s in (0.9, 0.8, 0.7)},
        "words 1, containment 0.8": nd.Question(nd.Recipe(ngram=1), 0.8, "containment"),
    }.items():  # fmt: skip
        cells = []
        for texts in made.values():
            half = len(texts) // 2
            pairs = nd.similar_pairs(
                texts, similarity=options.similarity, measure=options.measure, recipe=options.recipe
            )
            both = zip(pairs["left"].to_pylist(), pairs["right"].to_pylist(), strict=True)
            hits = [abs(a - b) == half for a, b in both]
            cells.append(f"{sum(hits) / half:.2f} / {sum(hits) / max(1, len(hits)):.2f}")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    part = sys.argv[1]
    if part == "planted":
        planted("--small" in sys.argv)
    else:
        {
            "labels": labels, "revisions": revisions, "corpora": corpora, "calibrate": calibrate,
            "review": review, "notes": notes, "ignored": ignored, "code": code,
            "passages": passages, "lengths": lengths, "rensa": rensa,
        }[
            part
        ]()  # fmt: skip
