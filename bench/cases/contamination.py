"""Leaked questions, planted in nine ways: how many are found, what else is, and how quickly.

Documents are made of words with a frequency of 1 / (rank + 10) from 50,000, in sentences of about
14 words, of which some are templates that many documents share. Questions are 20 to 60 words of
other such text. One document in 20 gets a question, as one of:

- verbatim; case: in capitals; wrapped: in lines of nine words behind "> ";
- changed 8, 12, 20: each 8th, 12th or 20th word is another one;
- half: only its first half;
- punctuation: a comma behind each third word;
- html: each fifth word in <b></b>.

"value" is MB/s of documents in memory to findings, on one thread; "found NAME" the share of planted
questions that were found; "others" how many pairs were found beside those. datatrove's filter says
that a document holds some question, not which: there documents are counted. Its n-grams are those
of spaCy's tokens of a simplified text; it gets a tenth of the documents.

"command" is processor seconds a GB of JSON lines to JSON lines, `neardup decontaminate` on one
thread: what ten times the documents take more. One question in a MB stands in a document there, as
in no training data that is known: in the other rows it is one in 50 kB.
"""

from __future__ import annotations

import itertools
import random
import string
import time
from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "contamination"
KINDS = ("verbatim", "case", "wrapped", "changed 8", "changed 12", "changed 20", "half",
         "punctuation", "html")  # fmt: skip
WORDS, TEMPLATES = 50_000, 40
PEERS = {"plain_13_grams": OURS, "plain_8_gram_share": OURS, "datatrove_12_grams": "datatrove"}
RULES = {"share 0.5": (0.5, None), "run 13": (None, 13), "both": (0.5, 13)}


def rows(quick: bool) -> list[Row]:
    """MB/s against plain Python, and what each rule finds of each kind."""
    size = (
        {"documents": 500, "questions": 100} if quick else {"documents": 20_000, "questions": 2000}
    )
    fewer = size["documents"] if quick else size["documents"] // 10
    peers = tuple(
        Measurement.of(CASE, name, place, **size | ({"documents": fewer} if place != OURS else {}))
        for name, place in PEERS.items()
    )
    table = []
    for rule in RULES:
        run = Measurement.of(CASE, "ours", OURS, rule=rule, **size)
        table.append(Row(f"{rule}: documents in memory", run, peers, target=10))
        for kind in KINDS:
            key = f"found {kind}"
            table.append(Row(f"{rule}: {kind}", run, peers, key=key, unit="of 1"))
        table.append(Row(f"{rule}: other pairs", run, peers, better="lower", key="others", unit=""))
    for options in ("--share 0.5", "--run 13"):
        run = Measurement.of(
            CASE, "command", OURS, options=options, times=2 if quick else 10, **size
        )
        name = f"{options}: JSON lines to JSON lines"
        table.append(Row(name, run, target=5, better="lower", unit="s of processor a GB"))
    return table


def make(documents: int, questions: int) -> tuple[list[str], list[str], dict[int, tuple[int, str]]]:
    """Documents, questions, and which question is in which document, in which way."""
    draw = random.Random(7)
    words = [f"{''.join(draw.choices(string.ascii_lowercase, k=2 + i % 7))}" for i in range(WORDS)]
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(WORDS)))

    def text(count: int) -> list[str]:
        return draw.choices(words, cum_weights=weights, k=count)

    templates = [text(12) for _ in range(TEMPLATES)]
    quiz = [text(draw.randint(20, 60)) for _ in range(questions)]
    made, planted = [], {}
    for row in range(documents):
        sentences = [
            draw.choice(templates) if draw.random() < 0.1 else text(draw.randint(8, 20))
            for _ in range(draw.randint(5, 60))
        ]
        if row % 20 == 0:
            question, kind = draw.randrange(questions), KINDS[row // 20 % len(KINDS)]
            sentences.insert(
                draw.randrange(len(sentences)), _leaked(quiz[question], kind, draw, words)
            )
            planted[row] = question, kind
        made.append(". ".join(" ".join(sentence) for sentence in sentences))
    return made, [" ".join(question) for question in quiz], planted


def _leaked(question: list[str], kind: str, draw: random.Random, words: list[str]) -> list[str]:
    name, _, number = kind.partition(" ")
    if name == "changed":
        step = int(number)
        return [draw.choice(words) if i % step == step // 2 else w for i, w in enumerate(question)]
    if name == "html":
        return [f"<b>{w}</b>" if i % 5 == 2 else w for i, w in enumerate(question)]
    if name == "punctuation":
        return [f"{w}," if i % 3 == 2 else w for i, w in enumerate(question)]
    if name == "wrapped":
        return [f"{w}\n> " if i % 9 == 8 else w for i, w in enumerate(question)]
    if name == "half":
        return question[: len(question) // 2]
    return [w.upper() for w in question] if name == "case" else question


def _result(
    found: set[tuple[int, int]], planted: dict[int, tuple[int, str]], nbytes: int, seconds: float
) -> dict[str, Any]:
    pairs = {(row, question) for row, (question, _) in planted.items()}
    shares = {}
    for kind in KINDS:
        own = [(row, question) for row, (question, way) in planted.items() if way == kind]
        shares[f"found {kind}"] = sum(pair in found for pair in own) / max(1, len(own))
    return {"value": nbytes / 1e6 / seconds, "others": len(found - pairs), **shares}


def ours(documents: int, questions: int, rule: str) -> dict[str, Any]:
    """`nd.decontaminate` on one thread; a small run compiles."""
    import pyarrow as pa

    import neardup as nd

    made, quiz, planted = make(documents, questions)
    texts = pa.array(made, pa.large_string())
    nd.decontaminate(made[:50], quiz[:10], *RULES[rule], workers=1)
    start = time.process_time()
    table = nd.decontaminate(texts, quiz, *RULES[rule], workers=1)
    seconds = time.process_time() - start
    pairs = zip(table["document"].to_pylist(), table["question"].to_pylist(), strict=True)
    return _result(set(pairs), planted, texts.nbytes, seconds)


def plain_13_grams(documents: int, questions: int) -> dict[str, Any]:
    """Any 13 words in a row, lower case, without punctuation: the rule of GPT-3 and lm-eval."""
    return _plain(documents, questions, 13, 0.0)


def plain_8_gram_share(documents: int, questions: int) -> dict[str, Any]:
    """More than half of the question's runs of 8 words."""
    return _plain(documents, questions, 8, 0.5)


def _plain(documents: int, questions: int, width: int, share: float) -> dict[str, Any]:
    made, quiz, planted = make(documents, questions)
    table = str.maketrans("", "", string.punctuation)

    def grams(text: str) -> set[tuple[str, ...]]:
        words = text.lower().translate(table).split()
        return set(zip(*(words[at:] for at in range(width)), strict=False))

    start = time.process_time()
    of: dict[tuple[str, ...], list[int]] = {}
    sizes = []
    for number, question in enumerate(quiz):
        own = grams(question)
        sizes.append(len(own))
        for gram in own:
            of.setdefault(gram, []).append(number)
    results = set()
    for row, text in enumerate(made):
        counts: dict[int, int] = {}
        for gram in grams(text):
            for number in of.get(gram, ()):
                counts[number] = counts.get(number, 0) + 1
        results |= {
            (row, number) for number, count in counts.items() if count > share * sizes[number]
        }
    seconds = time.process_time() - start
    return _result(results, planted, sum(map(len, made)), seconds)


def datatrove_12_grams(documents: int, questions: int) -> dict[str, Any]:
    """`NGramsDecontFilter` of datatrove with the questions' n-grams; documents, not pairs."""
    import tempfile
    from pathlib import Path

    import numpy as np
    from datatrove.data import Document
    from datatrove.pipeline.decont.n_grams import NGramsDecontFilter
    from datatrove.utils.text import ngrams, simplify_text

    made, quiz, planted = make(documents, questions)
    with tempfile.TemporaryDirectory() as folder:
        own = NGramsDecontFilter(folder)
        config = own.config
        hashes = {
            own.hash_func(" ".join(gram))
            for text in quiz
            for gram in ngrams(
                own.tokenizer.word_tokenize(simplify_text(text, config.norm_config)), config.n_grams
            )
        }
        np.array(list(hashes), config.hash_config.np_descr).tofile(
            Path(folder, "quiz.index.hashes")
        )
        own.filter(Document("a b c", "0"))
        start = time.process_time()
        rows = [row for row, text in enumerate(made) if own.filter(Document(text, "0")) is not True]
        seconds = time.process_time() - start
    of = {row: question for row, (question, _) in planted.items()}
    return _result({(row, of.get(row, -1)) for row in rows}, planted, sum(map(len, made)), seconds)


def command(documents: int, questions: int, options: str, times: int) -> dict[str, Any]:
    """Processor seconds a GB of `neardup decontaminate`, questions planted once a MB."""
    import json
    import resource
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    made, asked, planted = make(documents, questions)
    few = {question for row, (question, _) in planted.items() if row % 400 == 0}
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(json.dumps({"text": text}) + "\n" for text in made)
        Path(folder, "one.jsonl").write_text(lines)
        with Path(folder, "many.jsonl").open("w") as file:
            file.writelines([lines] * times)
        draw = random.Random(8)
        words = " ".join(asked).split()
        texts = [
            text if number in few else " ".join(draw.choices(words, k=len(text.split())))
            for number, text in enumerate(asked)
        ]
        Path(folder, "quiz.jsonl").write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in texts)
        )

        def seconds(name: str) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(  # noqa: S603
                [
                    sys.executable, "-m", "neardup", "decontaminate", name, "--against",
                    "quiz.jsonl", "-o", "out.jsonl", "--workers", "1", *options.split(),
                ],
                check=True, capture_output=True, cwd=folder,
            )  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        seconds("one.jsonl")  # which compiles
        one, many = seconds("one.jsonl"), seconds("many.jsonl")
    return {"value": (many - one) / (len(lines) * (times - 1) / 1e9), "start": one}
