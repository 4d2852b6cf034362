"""Write the tables of benchmarks from the records in bench/results.

    python tools/benchmark_tables.py

It writes bench/results/README.md whole, the plots of docs/design/figures, and the tables between
markers in README.md, docs/design/benchmarks.md and docs/design/scale.md. tests/house/test_bench.py
fails while one of them differs from what this writes. Of a case that was measured on several
machines, the newest counts.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tables import table, told

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from benchmark_plots import FINGERPRINT_PEERS, FOLDER, news_path, plots
from growth_table import growth
from harness import report
from harness.records import RESULTS, Record, every_record, medians, newest
from harness.report import rounded
from neardup.hamming.plans.join_plan import spilled_seconds
from similarity_tables import passages, short_texts, similar_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
MEASURED: Final = RESULTS / "README.md"
PAGES: Final = tuple(
    ROOT / name for name in ("README.md", "docs/design/benchmarks.md", "docs/design/scale.md")
)
MARKED: Final = re.compile(
    r"(<!-- table (\S+): written by tools/benchmark_tables.py -->\n).*?(<!-- end of \2 -->)",
    re.DOTALL,
)
GRAMS: Final = {2**26: "67 million (2^26)"}


def dedup_similarity(page: Path) -> str:
    """Whole processes of neardup and of peers."""
    record = newest("dedup_similarity")
    ours = record.result("ours", workers=None)["value"]
    others = [
        ("neardup dedup, one worker beside the reader", record.result("ours", workers=1)),
        ("rensa, RMinHashDeduplicator", record.result("pipeline", "rensa", name="rensa")),
        (
            "rensa, sketches in two processes",
            record.result("pipeline", "rensa", name="rensa_processes"),
        ),
        (
            "rensa, rho flags: no pairs, whole groups dropped",
            record.result("pipeline", "rensa", name="rensa_rho"),
        ),
        ("datasketch, first 30 MB", record.result("pipeline", "datasketch", name="datasketch")),
        ("text-dedup, two processes, first 30 MB", record.result("text_dedup", "text-dedup")),
    ]
    rows = [["neardup dedup", rounded(ours), ""]]
    rows += [[name, rounded(x["value"]), rounded(ours / x["value"])] for name, x in others]
    return table(" | MB/s | times slower", rows, "lrr") + told(page, record)


def cores(page: Path) -> str:
    """Steps of commands on one core and on two."""
    record = newest("cores")
    rows = []
    for line in record.value["lines"]:
        measured, _, what = line["name"].rpartition(": ")
        if what != "two cores against one":
            continue
        command, _, step = measured.rpartition(", ")
        figures = [f"{line['other']:.2f}", f"{line['figure']:.2f}", f"{line['ratio']:.1f}"]
        rows.append([f"`{command}`", step, *figures])
    return table("command, output | step | one core | two cores | times", rows, "llrrr") + told(
        page, record
    )


def bounds(page: Path) -> str:
    """How many times as quick as one worker a run can be at most, by cores; what one takes."""
    record = newest("cores")
    runs: dict[str, list[str]] = {}
    for line in record.value["lines"]:
        run, _, what = line["name"].rpartition(": ")
        if what != "two cores against one":
            runs.setdefault(run.removeprefix("dedup of "), []).append(f"{line['figure']:.1f}")
    head = "input, output | 2 cores | 4 | 8 | 16 | 32 | 64 | one worker, s a GB | 16 workers take"
    return table(head, [[run, *figures] for run, figures in runs.items()], "lrrrrrrrr") + told(
        page, record
    )


def skew(page: Path) -> str:
    """Processor seconds and memory of skewed documents, and times those of uniform ones."""
    record = newest("skew")
    ways = {
        "greedy, 0.8": "greedy",
        "components, 0.8": "components",
        "greedy, distance 3": "distance-greedy",
        "components, distance 3": "distance-components",
    }
    shapes = ("pages", "equal", "footer", "lines", "chain", "buckets")

    def cells(way: str, figure: str, times: str) -> list[str]:
        result = (record.result("ours", shape=shape, way=way) for shape in shapes)
        return [f"{x[figure]:.2f} ({x[times]:.1f})" for x in result]

    rows = [[name, *cells(way, "value", "times")] for name, way in ways.items()]
    rows += [
        [f"{name}: GiB with the input", *cells(way, "peak_gib", "peaks")]
        for name, way in list(ways.items())[:2]
    ]
    head = (
        " | near-identical pages | a fifth equal | footer in a third | one line in twenty"
        " | one chain | full buckets"
    )
    return table(head, rows, "lrrrrrr") + told(page, record)


def large_k(page: Path) -> str:
    """Exact pairs of large distances."""
    record = newest("large_k")
    rows = []
    for each in record.value["measurements"]:
        options, result = json.loads(each["options"]), medians(each["results"])
        if "error" in result or "k" not in options:
            continue
        rows_there = GRAMS.get(options["n"], f"{options['n'] // 10**6} million")
        seconds = [rounded(result["value"]), rounded(result["model"])]
        rows.append([f"{rows_there}, k = {options['k']}", *seconds, rounded(result["peak_gib"])])
    head = " | s | the plan's guess | peak, GiB"
    return table(head, rows, "lrrr") + told(page, record)


def accuracy(page: Path) -> str:
    """The least and most recall and precision of all corpora, and the seconds of all runs."""
    record = newest("accuracy")
    rows = []
    for method in methods(record):
        cells = [method]
        for threshold in (0.8, 0.7):
            for key in ("recall", "precision"):
                values = shares(record, method, threshold, key)
                cells.append(f"{min(values):.2f} to {max(values):.2f}")
        lines = [line for line in record.value["lines"] if line["method"] == method]
        rows.append([*cells, rounded(sum(line["seconds"] for line in lines))])
    count = len({line["corpus"] for line in record.value["lines"]})
    head = (
        f"least and most of {count} corpora | recall at 0.8 | precision | recall at 0.7 | precision"
        " | s, all runs"
    )
    return table(head, rows, "lrrrrr") + told(page, record)


def methods(record: Record) -> list[str]:
    """The methods of a record of accuracy, in its order."""
    return list(dict.fromkeys(line["method"] for line in record.value["lines"]))


def shares(record: Record, method: str, threshold: float, key: str) -> list[float]:
    """The recall or precision of a method, corpus by corpus."""
    return [
        line[key]
        for line in record.value["lines"]
        if line["method"] == method and line["threshold"] == threshold and line[key] is not None
    ]


def accuracy_people(page: Path) -> str:
    """Precision and recall against pairs that people put together."""
    record = newest("accuracy")
    return report.labels_table(record.value["labels"]) + told(page, record)


INDEX_PEERS: Final = {
    "faiss MultiHash": ("faiss_multi_hash", "faiss"),
    "faiss BinaryFlat": ("faiss_flat", "faiss"),
    "faiss BinaryHash": ("faiss_hash", "faiss"),
    "usearch": ("usearch_graph", "usearch"),
    "gaoya, equal texts only": ("gaoya_index", "gaoya"),
}


def index(page: Path) -> str:
    """Microseconds a query of a batch, beside peers; the recall of those that do not find all."""
    record = newest("index")
    rows = []
    for each in record.value["measurements"]:
        options = json.loads(each["options"])
        if each["function"] != "ours":
            continue
        result = [
            record.find(*peer, k=options["k"], n=options["n"]) for peer in INDEX_PEERS.values()
        ]
        rows.append(
            [
                f"{options['n'] // 10**6} million, {options['k']}",
                f"**{rounded(medians(each['results'])['value'])}**",
                *(index_cell(x) for x in result),
            ]
        )
    few = 200_000
    simple = record.result("simhash_index", "simhash", k=3, n=few)["value"]
    note = f"\nPyPI SimhashIndex takes {rounded(simple)} us with {few:,} rows, k = 3.\n"
    head = " | ".join(["rows, k", "neardup", *INDEX_PEERS])
    return table(head, rows, "lr" + "r" * len(INDEX_PEERS)) + note + told(page, record)


def index_cell(found: dict[str, Any]) -> str:
    """Microseconds, and the recall where it is below 1."""
    if "value" not in found:
        return ""
    lossy = "" if found["exact"] else f" ({found['recall']:.2f})"
    return rounded(found["value"]) + lossy


def durable(page: Path) -> str:
    """The life of an index on disk."""
    record = newest("durable")
    keys = ("value", "reopen", "query", "batched", "add", "disk")
    rows = []
    for name, ids in (("whole numbers", "int"), ("strings", "str")):
        result = record.result("lifetime", ids=ids)
        rows.append([name, *(rounded(result[key]) for key in keys)])
    head = (
        "ids | adds a second, 10,000 a commit | reopen, s | us a query | in a batch"
        " | add and commit one, us | GiB on disk"
    )
    return table(head, rows, "lrrrrrr") + told(page, record)


def scale(page: Path) -> str:
    """Pairs of fingerprints on disk: measured, foreseen then, and by the model of now."""
    record = newest("scale")
    rows = []
    for each in record.value["measurements"]:
        n, result = json.loads(each["options"])["n"], medians(each["results"])
        shown = "10^9" if n == 10**9 else f"2^{n.bit_length() - 1}"
        now = spilled_seconds(n, 3, 64, math.ceil(n / 2), 2)
        rows.append(
            [
                shown,
                f"{12 * n / 10**9:.1f} GiB",
                *(rounded(x) for x in (result["value"], result["model"], now)),
            ]
        )
    head = "fingerprints | budget | s | the model's guess then | the model of now"
    return table(head, rows, "rrrrr") + told(page, record)


def scale_larger(_page: Path) -> str:
    """What the model of now says of sizes that were not measured."""
    rows = []
    for shown, n, memory, slabs, terabytes in (
        ("10^9", 10**9, "12 GiB", 2, "0.07"),
        ("8 x 10^9", 8 * 10**9, "12 GiB", 19, "4.9"),
        ("8 x 10^9", 8 * 10**9, "128 GiB", 2, "0.6"),
    ):
        minutes = spilled_seconds(n, 3, 64, math.ceil(n / slabs), 2) / 60
        rows.append([shown, memory, str(slabs), f"{rounded(minutes)} min", f"{terabytes} TB"])
    return table("fingerprints | memory | slabs | the model of now | bytes read", rows, "rrrrr")


def readme(_page: Path) -> str:
    """The table of the README: a few rows of `measured`."""
    whole, _, quality = dedup_rows(*map(newest, ("dedup_similarity", "dedup_distance", "accuracy")))
    similar, _ = similar_rows(newest("similar_index"))
    near, *_ = index_rows(newest("index"), newest("durable"))
    (prints,) = fingerprint_rows(newest("fingerprints"))
    return table(" | neardup | others", [quality, whole, similar, near, prints], "lrl")


def measured(page: Path) -> str:
    """All claims at a glance, one row each."""
    prints, queries, disk = newest("fingerprints"), newest("index"), newest("durable")
    joins, large, scaled = newest("pairs"), newest("large_k"), newest("scale")
    same, near, result = newest("dedup_similarity"), newest("dedup_distance"), newest("accuracy")
    query = newest("similar_index")
    rows = [
        *fingerprint_rows(prints),
        *similar_rows(query),
        *index_rows(queries, disk),
        *pair_rows(joins, large, scaled),
        *dedup_rows(same, near, result),
    ]
    body = table(" | neardup | others", rows, "lrl")
    records = (prints, query, queries, disk, joins, large, scaled, same, near, result)
    return body + told(page, *records)


def fingerprint_rows(record: Record) -> Iterator[list[str]]:
    """Text to fingerprints."""
    path = news_path(record)
    ours = record.result("ours", path=path, bits=64, weight="count", workers=1)
    peers = [
        (name, record.result(function, environment, path=path))
        for function, environment, name in FINGERPRINT_PEERS
    ]
    yield [
        "fingerprints of English news, 64 bits, 3-word shingles, counts, one thread, MB/s",
        rounded(ours["value"]),
        ", ".join(f"{name} {rounded(x['value'])}" for name, x in peers),
    ]


def similar_rows(record: Record) -> Iterator[list[str]]:
    """Asking an index by similarity, peers at the same recall."""
    n = 100_000
    ours = record.result("ours", n=n)
    peers = [
        (name, record.result("peer", name, name=name, n=n, documented=False)["value"])
        for name in ("gaoya", "rensa", "faiss", "datasketch")
    ]
    yield [
        "who is at least 0.8 similar? 100,000 texts of 2 kB, processor us a query, text to answer",
        rounded(ours["value"]),
        ", ".join(f"{name} {rounded(value)}" for name, value in peers) + ", recall 0.999",
    ]
    n = 1_000_000
    million = record.result("ours", n=n)
    gaoya = record.result("peer", "gaoya", name="gaoya", n=n, documented=False)["value"]
    yield [
        "the same of 1,000,000; one call alone, us; `add_if_new` on disk, us",
        ", ".join(rounded(million[key]) for key in ("value", "single_us", "new_us")),
        f"gaoya {rounded(gaoya)}",
    ]


def index_rows(record: Record, disk: Record) -> Iterator[list[str]]:
    """Asking an index, in memory and on disk."""
    n = 10_000_000
    ours, multi, flat = (
        {k: record.result(*which, n=n, k=k)["value"] for k in (3, 10)}
        for which in (("ours", "ours"), ("faiss_multi_hash", "faiss"), ("faiss_flat", "faiss"))
    )
    yield [
        "who is within 3 bits? 10,000,000 fingerprints, us a query of a batch",
        rounded(ours[3]),
        f"faiss MultiHash {rounded(multi[3])}, BinaryFlat {rounded(flat[3])}",
    ]
    yield ["the same within 10 bits", rounded(ours[10]), f"faiss BinaryFlat {rounded(flat[10])}"]
    life = disk.result("lifetime", ids="int")
    figures = ", ".join(rounded(life[key]) for key in ("value", "query", "reopen"))
    claim = "the same index on disk: adds a second, us for one query, s to reopen"
    yield [claim, figures, ""]


def pair_rows(joins: Record, large: Record, scaled: Record) -> Iterator[list[str]]:
    """All pairs, on disk and in memory."""
    billion = scaled.result("ours", n=10**9)["value"]
    yield [
        "all pairs within 3 bits of 1,000,000,000 fingerprints, 12 GiB, s",
        rounded(billion),
        "",
    ]
    n = 1_000_000
    ours = joins.result("ours", n=n, workers=None)["value"]
    bound = joins.result("simhash_pybind", "simhash-pybind", n=n)["value"]
    faiss = [
        medians(each["results"])
        for each in joins.value["measurements"]
        if each["environment"] == "faiss"
    ]
    quickest = min(x["value"] for x in faiss if x.get("exact"))
    yield [
        "all pairs within 3 bits of 1,000,000 fingerprints, s",
        rounded(ours),
        f"simhash-pybind {rounded(bound)}, the quickest exact faiss index {rounded(quickest)}",
    ]
    ten = large.result("exact", k=10, n=10_000_000)["value"]
    yield ["all pairs within 10 bits of 10,000,000 fingerprints, s", rounded(ten), ""]


def dedup_rows(same: Record, near: Record, found: Record) -> Iterator[list[str]]:
    """Whole processes, and what they find."""
    ours = same.result("ours", workers=None)["value"]
    rensa, two = (
        rounded(same.result("pipeline", "rensa", name=name)["value"])
        for name in ("rensa", "rensa_processes")
    )
    sketch = rounded(same.result("pipeline", "datasketch")["value"])
    dedup = rounded(same.result("text_dedup", "text-dedup")["value"])
    size = max(text["jsonl_mb"] for text in same.value["texts"])
    yield [
        f"`dedup`, similarity 0.8, {size:.0f} MB of JSON lines, whole process, MB/s",
        rounded(ours),
        f"rensa {rensa} ({two} in two processes), datasketch {sketch}, text-dedup {dedup}",
    ]
    value = near.result("ours", workers=None)["value"]
    yield ["`dedup --distance 3`, the same file, MB/s", rounded(value), ""]
    count = len({line["corpus"] for line in found.value["lines"]})

    def span(name: str, key: str) -> str:
        several = [method for method in methods(found) if method.startswith(name)]
        values = [x for method in several for x in shares(found, method, 0.8, key)]
        least, most = (f"{x:.2f}" for x in (min(values), max(values)))
        return least if least == most else f"{least} to {most}"

    def both(name: str) -> str:
        return f"{span(name, 'recall')} / {span(name, 'precision')}"

    yield [
        f"recall / precision at Jaccard 0.8 on {count} corpora",
        both("neardup similar_pairs"),
        f"datasketch {both('datasketch')}, rensa {both('rensa')}",
    ]


TABLES: Final[dict[str, Callable[[Path], str]]] = {
    "readme": readme,
    "measured": measured,
    "dedup-similarity": dedup_similarity,
    "cores": cores,
    "bounds": bounds,
    "skew": skew,
    "large-k": large_k,
    "accuracy": accuracy,
    "accuracy-people": accuracy_people,
    "index": index,
    "durable": durable,
    "scale": scale,
    "scale-larger": scale_larger,
    "similar-index": similar_index,
    "short-texts": short_texts,
    "passages": passages,
    "growth": growth,
}


def fresh(page: Path) -> str:
    """A page with its tables made anew."""
    if page == MEASURED:
        return report.page(every_record())

    def made(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}\n{TABLES[name](page)}\n{end}"

    return MARKED.sub(made, page.read_text("utf-8"))


def main() -> None:
    """Write every plot and page."""
    for name, drawn in plots().items():
        (FOLDER / name).write_text(drawn, "utf-8")
    for page in (*PAGES, MEASURED):
        page.write_text(fresh(page), "utf-8")


if __name__ == "__main__":
    main()
