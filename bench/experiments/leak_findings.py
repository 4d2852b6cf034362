"""What `neardup decontaminate` finds in real collections that nobody has planted, to be judged.

    python -m bench.experiments.leak_findings COLLECTION... [--sample 30] [--judge findings.jsonl]
    python -m bench.experiments.leak_findings --count findings.jsonl

A collection is a `docs.jsonl.gz` ({"id", "text"} a line), or a folder whose readable UTF-8 files of
200 bytes to 200 kB are documents, up to MOST. 1,000 documents are taken out, and 40 words in a row
of each are a question, wherever they stand. Counted are the findings, and which of them `--common`
leaves. A sample of them, at most one a question, goes to FILE as JSON lines: the question, the
passage and what stands around it in the document. Whoever judges writes a "kind" into each line:

- leak: the document is another copy or version of the text that the question is from;
- quotation: another text, with a paragraph or sentence that was taken over;
- template: form text that is filled in again and again: reports of prices, instructions, canned
  messages, names and journals of records;
- licence: a licence or a notice of one;
- chance: nothing in common but usual words.

--count prints the table of kinds from such a file.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

KINDS: Final = ("leak", "quotation", "template", "licence", "chance")
COMMON: Final = ("0.01", "0.001")
QUESTIONS, WORDS, SEED, MOST = 1000, 40, 5, 20_000
CONTEXT: Final = 160


def main() -> None:
    """Search the collections, or count what was judged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", metavar="COLLECTION")
    parser.add_argument("--sample", type=int, default=30, help="findings of each to judge")
    parser.add_argument("--judge", metavar="FILE", help="write the sample here")
    parser.add_argument("--count", metavar="FILE", help="count the kinds of a judged sample")
    options = parser.parse_args()
    if options.count:
        sys.stdout.write(counted(Path(options.count)))
        return
    sample: list[dict[str, Any]] = []
    for path in options.collections:
        documents, questions = split(documents_of(Path(path)))
        result = findings(documents, questions)
        left = [sum(row[f"leak {share}"] for row in result) for share in COMMON]
        sys.stdout.write(f"{path}: {len(documents)} documents, {len(result)} findings, {left}\n")
        sample += drawn(Path(path), result, documents, questions, options.sample)
    if options.judge:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in sample)
        Path(options.judge).write_text("".join(lines), encoding="utf8")


def documents_of(path: Path) -> list[str]:
    """The texts of a collection."""
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf8") as file:
            return [json.loads(line)["text"] for line in file]
    texts: list[str] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            if file.is_symlink() or not 200 <= file.stat().st_size <= 200_000:
                continue
            try:
                texts.append(file.read_text(encoding="utf8"))
            except (UnicodeDecodeError, OSError):
                continue
            if len(texts) == MOST:
                return texts
    return texts


def split(texts: list[str]) -> tuple[list[str], list[str]]:
    """Documents, and questions from the texts that were taken out."""
    draw = random.Random(SEED)
    out = set(draw.sample(range(len(texts)), QUESTIONS))
    questions = []
    for row in sorted(out):
        words = texts[row].split()
        begin = draw.randrange(max(1, len(words) - WORDS))
        questions.append(" ".join(words[begin : begin + WORDS]))
    return [text for row, text in enumerate(texts) if row not in out], questions


def findings(documents: list[str], questions: list[str]) -> list[dict[str, Any]]:
    """Rows of `--found` by the default rule, and what each `--common` says of them."""
    from neardup.cli import app

    with tempfile.TemporaryDirectory() as folder:
        for name, texts in (("documents", documents), ("questions", questions)):
            rows = ({"id": str(row), "text": text} for row, text in enumerate(texts))
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            Path(folder, f"{name}.jsonl").write_text(lines, encoding="utf8")
        results: list[dict[str, Any]] = []
        for share in COMMON:
            table = Path(folder, f"{share}.csv")
            options = ["--id", "id", "--common", share, "--found", str(table)]
            inputs = [f"{folder}/documents.jsonl", "--against", f"{folder}/questions.jsonl"]
            app(["decontaminate", *inputs, *options], standalone_mode=False)
            with table.open(encoding="utf8", newline="") as file:
                rows = list(csv.DictReader(file))
            results = results or rows
            for row, own in zip(results, rows, strict=True):
                row[f"leak {share}"] = own["leak"] == "True"
    return results


def drawn(
    path: Path, found: list[dict[str, Any]], documents: list[str], questions: list[str], size: int
) -> list[dict[str, Any]]:
    """Some findings to judge, of different questions."""
    draw = random.Random(SEED)
    draw.shuffle(found)
    by_question = {row["question"]: row for row in reversed(found)}
    rows = []
    for row in sorted(by_question.values(), key=found.index)[:size]:
        text, begin, end = documents[int(row["document"])], int(row["start"]), int(row["end"])
        around = text[max(0, begin - CONTEXT) : begin], text[end : end + CONTEXT]
        rows.append(
            {"collection": path.parent.name if path.is_file() else str(path)}
            | {"question": questions[int(row["question"])], "share": row["share"]}
            | {"before": around[0], "passage": row["text"], "after": around[1]}
            | {f"leak {share}": row[f"leak {share}"] for share in COMMON}
            | {"kind": ""}
        )
    return rows


def counted(path: Path) -> str:
    """A table: of each kind how many were judged, and how many of them each share leaves."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    names = list(dict.fromkeys(row["collection"] for row in rows))
    lines = ["".join(f"| {name} " for name in ("kind", *names, "all")) + "|\n"]
    for kind in KINDS:
        cells = [kind]
        for name in (*names, None):
            own = [x for x in rows if x["kind"] == kind and name in {x["collection"], None}]
            left = [sum(x[f"leak {share}"] for x in own) for share in COMMON]
            cells.append(" / ".join(map(str, [len(own), *left])))
        lines.append("".join(f"| {cell} " for cell in cells) + "|\n")
    return "".join(lines)


if __name__ == "__main__":
    main()
