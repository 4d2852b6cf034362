"""The plots of docs/design/benchmarks.md, drawn from the records in bench/results as SVG.

tools/benchmark_tables.py writes them together with the tables; a test fails while one differs from
the records.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from drawing import AMBER, GREEN, PALE, RED, VIOLET, line, svg, text
from harness.records import Record, newest
from harness.report import rounded

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "design" / "figures"
WIDE: Final = 760
LEFT: Final = 250
STEP: Final = 46
CORPORA: Final = {
    "reuters21578_en": "news, English",
    "livedoor_ja": "news, Japanese",
    "bib_dedupe_en": "records, English",
    "sms_spam_en": "messages, English",
    "scancode_licenses_en": "licences, English",
    "zh_laws": "laws, Chinese",
    "lohelp_revisions_en-us": "help pages, English",
    "lohelp_revisions_tr": "help pages, Turkish",
    "lohelp_revisions_zh-cn": "help pages, Chinese",
}
METHODS: Final = (
    ("neardup similar_pairs", "neardup", GREEN),
    ("datasketch MinHashLSH", "datasketch", RED),
    ("rensa RMinHashLSH, 8 bands", "rensa, 8 bands", AMBER),
    ("rensa RMinHashLSH, 16 bands", "rensa, 16 bands", VIOLET),
)
FINGERPRINT_PEERS: Final = (
    ("gaoya", "gaoya", "gaoya"),
    ("simhash_pybind", "simhash-pybind", "simhash-pybind"),
    ("pypi_simhash", "simhash", "PyPI simhash"),
)
SEARCHES: Final = (
    ("ours", "ours", "neardup", GREEN),
    ("faiss_multi_hash", "faiss", "faiss MultiHash", RED),
    ("faiss_hash", "faiss", "faiss BinaryHash", AMBER),
    ("faiss_flat", "faiss", "faiss BinaryFlat", VIOLET),
)


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: what its ends stand for, where they are, and whether it is logarithmic."""

    low: float
    high: float
    left: float
    right: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value stands, in pixels from the left."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(value)
        return self.left + (self.right - self.left) * (at - low) / (high - low)


def plots() -> dict[str, str]:
    """Every plot as SVG, by the name of its file."""
    return {
        "times.svg": times(),
        "recall.svg": quality("recall"),
        "precision.svg": quality("precision"),
        "distances.svg": distances(),
    }


def times() -> str:
    """How many times as long as neardup each peer takes, task by task."""
    rows = compared()
    axis = Axis(1, 10_000, LEFT, WIDE - 40, logarithmic=True)
    bottom = 30 + STEP * len(rows)
    parts = []
    for power in range(5):
        x = axis.place(10**power)
        parts += [line(x, 16, x, bottom, PALE), text(x, bottom + 20, f"{10**power:,}")]
    for row, (task, peers) in enumerate(rows):
        y = 34 + STEP * row
        parts.append(text(LEFT - 14, y + 5, task, "end"))
        parts.append(line(axis.place(1), y, axis.place(max(peers.values())), y, PALE))
        parts.append(dot(axis.place(1), y, GREEN))
        for at, (name, ratio) in enumerate(sorted(peers.items(), key=lambda peer: peer[1])):
            x = axis.place(ratio)
            parts += [dot(x, y, RED), text(x, y + (19 if at % 2 else -10), name, size=12)]
    parts.append(text(LEFT, bottom + 42, "times as long as neardup (green)", "start"))
    return svg(WIDE, bottom + 54, parts, "How many times as long as neardup each peer takes")


def compared() -> list[tuple[str, dict[str, float]]]:
    """The tasks, and how many times as long each peer takes."""
    prints, whole = newest("fingerprints"), newest("dedup_similarity")
    near, alike = newest("index"), newest("similar_index")
    path = news_path(prints)
    ours = prints.result("ours", path=path, bits=64, weight="count", workers=1)["value"]
    fingerprints = {
        name: ours / prints.result(function, environment, path=path)["value"]
        for function, environment, name in FINGERPRINT_PEERS
    }
    ours = whole.result("ours", workers=None)["value"]
    dedup = {
        name: ours / whole.result(function, name, **options)["value"]
        for function, name, options in (
            ("pipeline", "rensa", {"name": "rensa"}),
            ("pipeline", "datasketch", {}),
            ("text_dedup", "text-dedup", {}),
        )
    }
    ours = alike.result("ours", n=100_000)["value"]
    similar = {
        name: alike.result("peer", name, name=name, n=100_000, documented=False)["value"] / ours
        for name in ("gaoya", "rensa", "faiss", "datasketch")
    }
    ours = near.result("ours", n=10**7, k=3)["value"]
    within = {
        name.removeprefix("faiss "): near.result(function, "faiss", n=10**7, k=3)["value"] / ours
        for function, _, name, _ in SEARCHES[1:]
    }
    return [
        ("dedup at 0.8, files", dedup),
        ("query by similarity, 100,000", similar),
        ("query within 3 bits, 10 million", within),
        ("fingerprints, one thread", fingerprints),
    ]


def news_path(record: Record) -> str:
    """The file of English news among those of a record of fingerprints."""
    (path,) = {
        json.loads(each["options"])["path"]
        for each in record.value["measurements"]
        if json.loads(each["options"])["path"].endswith("English-30.jsonl")
    }
    return str(path)


def quality(key: str) -> str:
    """The recall or precision of each method at similarity 0.8, corpus by corpus."""
    record = newest("accuracy")
    axis = Axis(0.5, 1, LEFT, WIDE - 20)
    bottom = 50 + 26 * len(CORPORA)
    parts = legend([(name, colour) for _, name, colour in METHODS])
    for tenth in range(5, 11):
        x = axis.place(tenth / 10)
        parts += [line(x, 40, x, bottom, PALE), text(x, bottom + 20, f"{tenth / 10:.1f}")]
    for row, (corpus, shown) in enumerate(CORPORA.items()):
        y = 58 + 26 * row
        parts.append(text(LEFT - 14, y + 5, shown, "end"))
        parts += [
            dot(axis.place(value), y, colour)
            for method, _, colour in reversed(METHODS)
            if (value := share(record, corpus, method, key)) is not None
        ]
    return svg(WIDE, bottom + 30, parts, f"The {key} of each method at Jaccard 0.8, by corpus")


def share(record: Record, corpus: str, method: str, key: str) -> float | None:
    """One figure of the record of accuracy; None where a method could not be measured."""
    return next(
        (
            found[key]
            for found in record.value["lines"]
            if (found["corpus"], found["method"], found["threshold"]) == (corpus, method, 0.8)
        ),
        None,
    )


def distances() -> str:
    """Microseconds a query of ten million fingerprints takes, by the distance it asks for."""
    record, ks = newest("index"), (3, 6, 10)
    axis = Axis(1, 20_000, 70, WIDE - 20, logarithmic=True)
    bottom = 60 + 60 * len(ks)
    parts = legend([(name, colour) for *_, name, colour in SEARCHES])
    for power in range(5):
        x = axis.place(10**power)
        parts += [line(x, 40, x, bottom, PALE), text(x, bottom + 20, f"{10**power:,}")]
    for row, k in enumerate(ks):
        y = 80 + 60 * row
        parts += [text(56, y + 5, f"{k} bits", "end"), line(70, y, WIDE - 20, y, PALE)]
        for function, environment, _, colour in SEARCHES:
            parts += measured(record.find(function, environment, k=k, n=10**7), axis, y, colour)
    parts.append(text(70, bottom + 42, "microseconds a query, with recall if below 1", "start"))
    return svg(WIDE, bottom + 54, parts, "Microseconds a query takes among 10 million fingerprints")


def measured(figures: dict[str, Any], axis: Axis, y: float, colour: str) -> list[str]:
    """A dot with its figure, and the recall where it is below 1."""
    x = axis.place(figures["value"])
    recall = "" if figures["exact"] else f" ({figures['recall']:.2f})"
    return [
        dot(x, y, colour, hollow=not figures["exact"]),
        text(x, y - 12, rounded(figures["value"]) + recall, size=12, colour=colour),
    ]


def legend(names: list[tuple[str, str]]) -> list[str]:
    """A row of dots, each with what it stands for."""
    parts = []
    for at, (name, colour) in enumerate(names):
        x = 70 + 165 * at
        parts += [dot(x, 20, colour), text(x + 12, 25, name, "start")]
    return parts


def dot(x: float, y: float, colour: str, *, hollow: bool = False) -> str:
    """A dot; a hollow one stands for a method that does not find everything."""
    fill = "#fff" if hollow else colour
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{fill}" stroke="{colour}"'
        f' stroke-width="2"/>'
    )
