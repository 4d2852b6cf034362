"""The tables of the index by similarity, of short texts and of passages, beside their peers."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from harness.records import medians, newest
from harness.report import rounded
from tables import table, told

if TYPE_CHECKING:
    from pathlib import Path

    from harness.records import Record


def similar_index(page: Path) -> str:
    """Asking an index by similarity, ours and peers at equal recall, then as documented."""
    record = newest("similar_index")
    rows = [similar_row(*each) for each in similar_measurements(record)]
    head = (
        "stored | | a right answer, us | tokens, sketch | look-up | verifying | adding"
        " | recall, 0.8 to 0.9 | at 0.8 | precision | bytes a text"
    )
    return table(head, rows, "rlrrrrrrrrr") + told(page, record)


def similar_measurements(record: Record) -> list[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Options, name and medians of what was measured in memory."""
    results = []
    for each in record.value["measurements"]:
        options, name = json.loads(each["options"]), each["environment"]
        if each["function"] == "disk" or not each["results"]:
            continue
        name = "**neardup**" if each["function"] == "ours" else f"{name}, {setting(each)}"
        results.append((options, name, medians(each["results"])))
    order = {name: at for at, (_, name, _) in enumerate(results)}
    return sorted(results, key=lambda x: (x[0]["n"], x[0].get("documented", False), order[x[1]]))


def setting(measured: dict[str, Any]) -> str:
    """A peer's setting, in few words."""
    had = measured["results"][-1].get("setting", {})
    shown = "as documented, " if json.loads(measured["options"])["documented"] else ""
    if "bands" in had:
        return f"{shown}{had['bands']} bands of {had['hashes']}"
    if had.get("tables"):
        return f"{had['tables']} tables of {had['bits']} bits, {had['flips']} flips"
    return "flat" if had else ""


def similar_row(options: dict[str, Any], name: str, found: dict[str, Any]) -> list[str]:
    """One line; nothing of what was not measured."""
    first = [f"{options['n']:,}", name]
    if "over" in found or "error" in found:
        why = f"more than {found['over']:g} s" if "over" in found else "failed"
        return [*first, why, *[""] * 8]
    times = ("value", "sketch_us", "look_us", "verify_us", "build_us")
    shares = [f"{found[key]:.3f}" for key in ("recall", "recall_at", "precision")]
    return [
        *first,
        *(rounded(found[key]) if key in found else "" for key in times),
        *shares,
        f"{round(found['bytes_per_row'], -1):,.0f}",
    ]


def short_texts(page: Path) -> str:
    """Processor seconds of short texts by runs of characters, by number, with growth, and peers."""
    record = newest("short_texts")
    rows = []
    for chars in (3, 4, 5):
        for similarity in (0.9, 0.8, 0.7, 0.5, 0.3):
            point = {"chars": chars, "similarity": similarity}
            sizes = (100_000, 200_000, 1_000_000)
            result = {n: record.find("ours", n=n, **point) for n in sizes}
            peers = [record.find(name, name, **point) for name in ("datasketch", "rensa")]
            if not any((*result.values(), *peers)):
                continue
            rows.append(
                [
                    str(chars),
                    f"{similarity:g}",
                    *(seconds(x, n) for n, x in result.items()),
                    power(result),
                    *(peer_cell(x) for x in peers),
                ]
            )
    head = (
        "chars | similarity | 10^5: cpu s (search) | 2 x 10^5 | 10^6 | power of the search"
        " | datasketch, 10^5 (recall) | rensa, 10^5 (recall)"
    )
    return table(head, rows, "rrrrrrrr") + told(page, record)


def seconds(found: dict[str, Any], n: int) -> str:
    """Processor seconds of all of it, and of the search."""
    if "over" in found:
        return f"> {found['over']:g} s"
    if "value" not in found:
        return ""
    return f"{rounded(found['value'] * n / 1e6)} ({rounded(found['matching'])})"


def power(found: dict[int, dict[str, Any]]) -> str:
    """The power by which the search grows, between the least and the largest number measured."""
    known = {n: x["matching"] for n, x in found.items() if "matching" in x}
    if len(known) < 2:
        return ""
    least, most = min(known), max(known)
    return f"{math.log(known[most] / known[least]) / math.log(most / least):.1f}"


def peer_cell(found: dict[str, Any]) -> str:
    """Seconds for 10^5 texts, in proportion, and the recall."""
    if "over" in found:
        return f"> {found['over']:g} s for 20,000"
    if "value" not in found:
        return ""
    return f"{rounded(found['value'] / 10)} ({found['recall']:.2f})"


def passages(page: Path) -> str:
    """Processor seconds, memory and recall of deduplication, by number of passages."""
    record = newest("passages")
    rows = []
    for each in record.value["measurements"]:
        if each["function"] == "checked" or not each["results"]:
            continue
        found = medians(each["results"])
        name = "**neardup**" if each["function"] == "ours" else each["environment"]
        if "error" in found or "over" in found:
            why = f"more than {found['over']:g} s" if "over" in found else "failed"
            rows.append(["", name, why, *[""] * 5])
            continue
        shares = [f"{found[key]:.3f}" for key in ("recall", "planted", "alone")]
        rows.append([
            f"{found['read']:,.0f}", name, rounded(found["value"]), rounded(found["peak_gib"]),
            *shares, f"{found['read'] - found['kept']:,.0f}",
        ])  # fmt: skip
    rows.sort(key=lambda row: int(row[0].replace(",", "") or 0))
    head = (
        "passages | | cpu s | peak, GiB | recall, all pairs | planted twins"
        " | dropped without a partner | dropped"
    )
    return table(head, rows, "rlrrrrrr") + told(page, record)
