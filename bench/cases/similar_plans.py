"""Does an index by similarity cost what its plan says? Forms, sizes, similarities and measures.

"value" is microseconds of processor time of a query of a batch, features given, on one thread, of
the form that additions leave; "planned_us" what the plan said; "compacted_us" and
"planned_compacted_us" of one part; "bytes_per_row" and "planned_bytes" of memory. Features are at
random: of 2,000 queries every tenth is stored.
"""

from __future__ import annotations

from typing import Any

from harness.model import OURS, Measurement, Row

CASE = "similar_plans"
MOST_ROUNDS = 1
POINTS = (
    (10_000, 300, 0.8, "jaccard"),
    (100_000, 300, 0.8, "jaccard"),
    (300_000, 300, 0.8, "jaccard"),
    (100_000, 300, 0.5, "jaccard"),
    (1_000_000, 30, 0.8, "jaccard"),
    (10_000, 3_000, 0.9, "jaccard"),
    (100_000, 100, 0.9, "cosine"),
    (100_000, 100, 0.8, "containment"),
)


def rows(quick: bool) -> list[Row]:
    """A row for every point and form, beside its plan."""
    report_rows = []
    lower: dict[str, Any] = {"better": "lower"}
    for n, features, similarity, measure in POINTS[: 3 if quick else None]:
        options = {"n": n, "features": features, "similarity": similarity, "measure": measure}
        run = Measurement.of(CASE, "ours", OURS, **options)
        at = f"plan by similarity, n = {n:,}, {features:,} features, {measure} {similarity}"
        report_rows += [
            Row(f"{at}: a query", run, unit="us", **lower),
            Row(f"{at}: planned", run, key="planned_us", unit="us", **lower),
            Row(f"{at}: bytes", run, key="bytes_per_row", unit="B/row", **lower),
        ]
    return report_rows


def ours(n: int, features: int, similarity: float, measure: str) -> dict[str, Any]:
    """Plan, build, measure."""
    from harness.search_costs import measure_parts
    from neardup.index.index_plans import parts_as_added, plan_similar
    from neardup.index.kind_settings import SimilaritySettings

    settings = SimilaritySettings(similarity, measure, None)
    measure_parts([1_000], settings, features)  # compiles
    added, compacted = plan_similar(n, similarity, measure, features=features)
    as_added = measure_parts(parts_as_added(n), settings, features)
    return {
        "value": as_added.microseconds,
        "planned_us": added["search_microseconds"],
        "compacted_us": measure_parts([n], settings, features).microseconds,
        "planned_compacted_us": compacted["search_microseconds"],
        "bytes_per_row": as_added.bytes_per_document,
        "planned_bytes": added["bytes_per_document"],
        "build_us": as_added.build_microseconds,
    }
