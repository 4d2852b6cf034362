"""Costs of an index by similarity: time of a query, memory and disk, by number of documents."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError, suggests_names
from neardup.index.incoming import many_sets
from neardup.index.kind_settings import SimilaritySettings
from neardup.index.set_arrays import ENTRIES_A_BUCKET, sketch_words
from neardup.index.set_segments import LEVEL_ROWS, SEGMENTS_A_LEVEL
from neardup.runtime.printed_tables import PrintedPlans, cells_of, text_table
from neardup.similarity.measures import ROUNDING

if TYPE_CHECKING:
    from neardup.fingerprinting.recipe import Recipe

__all__ = [
    "FEATURES",
    "SimilarPlan",
    "SimilarPlanTable",
    "parts_as_added",
    "plan_parts",
    "plan_similar",
]

FEATURES: Final = 300
"""Features of a document of 2 kB, with runs of three words."""
LOGGED_ROWS: Final = 1 << 16
"""Rows for which the log of a folder has space: twice those of a checkpoint."""
ROW_BYTES: Final = 40
"""Bytes of a document in addition to its features: places, number, id."""
FEATURE_BYTES, ENTRY_BYTES, START_BYTES = 8, 8, 4
# Measured on a busy machine of two cores, see docs/decisions/0012: nanoseconds of one thread.
LOOKUP, LOOKUP_A_DOUBLING = 22.0, 4.0
"""Time to look a feature up, and for each doubling of the tables beyond a mebibyte."""
PART_NS, COMPARED_NS, TOKEN_NS = 250.0, 1.0, 16.0
"""Time to query a part, to compare a feature, and to make one from text."""
BUILT_NS, ENTERED_NS = 16.0, 75.0
"""Time to build a part, for each feature, and for each entry in its postings."""
TEXT_BYTES: Final = 4.0
"""Bytes of a stored text, compressed, for each of its features; see docs/decisions/0023."""
TEXT_US: Final = 35.0
"""Microseconds to compress and store a text."""
CALL_US: Final = 10.0
"""Additional microseconds of a call for one document."""
COLUMNS: Final = (
    ("form", "{}", "name"),
    ("parts", "{:,}", "parts"),
    ("look-ups", "{:,.0f}", "lookups"),
    ("bytes/doc", "{:,.0f}", "bytes_per_document"),
    ("on disk", "{:,.0f}", "disk_bytes_per_document"),
    ("search us", "{:,.1f}", "search_microseconds"),
    ("us/query", "{:,.1f}", "microseconds"),
    ("single us", "{:,.0f}", "single_microseconds"),
    ("build us", "{:,.0f}", "build_microseconds"),
)


@dataclass(frozen=True, slots=True)
class SimilarPlan:
    """One form of an index by similarity.

    Args:
        name: "as added", or "compacted": all in one part.
        parts: How many.
        lookups: Features that a query looks up, in all parts.
        bytes_per_document: In memory, or mapped from files.
        disk_bytes_per_document: Of a folder, its log included.
        search_microseconds: Of a query of a batch on one thread, its features given.
        microseconds: Of a query whose features are made from text.
        single_microseconds: Of a query that is not in a batch.
        build_microseconds: To add a document, on one thread, its features included.
    """

    name: str
    parts: int
    lookups: float
    bytes_per_document: float
    disk_bytes_per_document: float
    search_microseconds: float
    microseconds: float
    single_microseconds: float
    build_microseconds: float


class SimilarPlanTable(PrintedPlans):
    """The forms of an index by similarity and their cost; prints as a table.

    Args:
        n: Documents.
        settings: Of the index.
        features: Of a document, about.
        plans: After documents were added, and after compaction.
    """

    def __init__(
        self, n: int, settings: SimilaritySettings, features: float, plans: list[SimilarPlan]
    ) -> None:
        """Take the estimates."""
        self.n, self.settings, self.features, self.plans = n, settings, features, plans

    def __str__(self) -> str:
        """A table for people."""
        lines = [[title for title, _, _ in COLUMNS]]
        lines += [cells_of(row, COLUMNS) for row in self]
        head = (
            f"{self.n:,} documents of {self.features:,.0f} features, {self.settings.measure} from"
            f" {self.settings.similarity}"
        )
        return f"{head}\n{text_table(lines)}"

    def _row(self, each: SimilarPlan) -> dict[str, Any]:
        return asdict(each)


@suggests_names
def plan_similar(
    n: int,
    similarity: float = 0.8,
    measure: str = "jaccard",
    *,
    features: float | None = None,
    documents: Any = None,
    recipe: Recipe | None = None,
    store: str = "features",
) -> SimilarPlanTable:
    """Estimate what an index by similarity costs, before anything is built.

    The time holds for documents most of whose features are rare. Near-duplicates of a query take
    additional time: each is compared, in a few nanoseconds a feature.

    Args:
        n: Documents.
        similarity: The least that queries may ask for.
        measure: As in `neardup.Index`.
        features: Of a document, about; 300 (2 kB of text) unless `documents` tell.
        documents: Some of them, as `neardup.Index.add` takes them.
        recipe: Of the index, if they are texts.
        store: What the index keeps: "features", or "text" as well.

    Returns:
        A table of two forms, as added one by one and compacted: their parts, the features that a
        query looks up, bytes a document in memory and on disk, and expected microseconds: of a
        query of a batch, with and without making its features, of one alone, and to add a document.

    Raises:
        UsageError: For a number, similarity, measure or documents that cannot be.

    Example:
        >>> table = plan_similar(10_000_000, 0.8)
        >>> [row["name"] for row in table]
        ['as added', 'compacted']
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise UsageError(f"n is {n!r}: use a whole number from 0")
    settings = SimilaritySettings(similarity, measure, recipe)
    if documents is not None:
        sets = many_sets(documents, settings)
        features = len(sets.features) / max(1, int(np.count_nonzero(np.diff(sets.offsets))))
    size = FEATURES if features is None else features
    if isinstance(size, bool) or not isinstance(size, (int, float)) or not 1 <= size < math.inf:
        raise UsageError(f"features is {size!r}: use a number from 1")
    if store not in {"features", "text"}:
        raise UsageError(f"store is {store!r:.60}: use 'features' or 'text'")
    forms = {"as added": parts_as_added(n), "compacted": [n] if n else []}
    text_bytes = TEXT_BYTES * size if store == "text" else 0.0
    return _compared(settings, float(size), forms, text_bytes)


def plan_parts(
    parts: list[int], features: float, similarity: float, measure: str, text_bytes: float = 0.0
) -> SimilarPlanTable:
    """As `plan_similar`, for the parts of an existing index: as it is, and compacted.

    Args:
        parts: Documents of each part, including the newest ones that queries scan.
        features: Of a document, about.
        similarity: As in `plan_similar`.
        measure: As in `plan_similar`.
        text_bytes: Bytes of the text of a document; 0 if it is not stored.
    """
    settings = SimilaritySettings(similarity, measure, None)
    forms = {"as it is": parts, "compacted": [sum(parts)]}
    return _compared(settings, features, forms, text_bytes)


def _compared(
    settings: SimilaritySettings, size: float, forms: dict[str, list[int]], text_bytes: float
) -> SimilarPlanTable:
    n = sum(next(iter(forms.values())))
    plans = [_plan(name, parts, settings, size, text_bytes) for name, parts in forms.items()]
    return SimilarPlanTable(n, settings, size, plans)


def parts_as_added(n: int) -> list[int]:
    """The documents of each part once n were added one by one, the largest first."""
    parts: list[int] = []
    size = LEVEL_ROWS
    rest = n
    while rest:
        taken = rest % (size * SEGMENTS_A_LEVEL)
        full, over = divmod(taken, size)
        parts += [size] * full + ([over] if over else [])
        rest -= taken
        size *= SEGMENTS_A_LEVEL
    return sorted(parts, reverse=True)


def _plan(
    name: str, parts: list[int], settings: SimilaritySettings, size: float, text_bytes: float
) -> SimilarPlan:
    """The cost of parts, from the numbers of their documents, features and bytes of text."""
    prefix, rest = _entries(settings, size)
    query_features = prefix if settings.kind.bounds_sizes else size
    lookups = query_features + (prefix if rest else 0)
    total, n = 0.0, sum(parts)
    row_bytes = ROW_BYTES + FEATURE_BYTES * (size + sketch_words(size))
    tables = 0.0
    for rows in parts:
        first, second = _table_bytes(rows * prefix), _table_bytes(rows * rest)
        tables += first + second
        ns = (
            PART_NS
            + query_features * _lookup_ns(first)
            + (prefix * _lookup_ns(second) if rest else 0.0)
        )
        total += ns / 1000
    searched = total + size * COMPARED_NS / 1000
    making = size * TOKEN_NS / 1000
    row_bytes += tables / n if n else 0.0
    levels = 1 if name == "compacted" else 1 + math.log(max(1, n / LEVEL_ROWS), SEGMENTS_A_LEVEL)
    logged = min(n, LOGGED_ROWS) * FEATURE_BYTES * size / n if n else 0.0
    return SimilarPlan(
        name, len(parts), lookups * len(parts), row_bytes, row_bytes + logged + text_bytes,
        searched, making + searched, CALL_US + making + searched,
        making + levels * (size * BUILT_NS + (prefix + rest) * ENTERED_NS) / 1000
        + (TEXT_US if text_bytes else 0.0),
    )  # fmt: skip


def _entries(settings: SimilaritySettings, size: float) -> tuple[float, float]:
    """Table entries of a document: features that find it, and others in the table."""
    share = settings.kind.stored_ratio(settings.similarity)
    prefix = size - math.ceil(share * size * (1 - ROUNDING)) + 1
    return prefix, 0.0 if settings.kind.bounds_sizes else size - prefix


def _table_bytes(entries: float) -> float:
    """The bytes of a table with `entries`: a power of two of buckets, and the entries."""
    if not entries:
        return 0.0
    bits = max(1, (int(entries) // ENTRIES_A_BUCKET).bit_length())
    return float(START_BYTES * (1 << bits) + ENTRY_BYTES * entries)


def _lookup_ns(table_bytes: float) -> float:
    return LOOKUP + LOOKUP_A_DOUBLING * math.log2(1 + table_bytes / 2**20)
