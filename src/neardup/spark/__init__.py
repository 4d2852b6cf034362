"""Beyond one machine: the same documents kept, on Spark 4 or on Sail, its engine without Java.

The flow, in `workers`: `documents` reads and fingerprints, `classes` collapses equal documents,
`keys`, `candidates` and `measuring`, or `near`, find the matches, `components`, `keeping` and
`rounds` decide, `outputs` writes. These hold the functions that cross the network, over the steps
that one machine uses; `engine`, `matches` and `groups` plan their exchanges with the DataFrame API
alone; `dataframes` and `file_run` are the calls.
Importing this loads no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.spark.dataframes import dedup, fingerprints, pairs, similar_pairs
    from neardup.spark.engine import Place
    from neardup.spark.exported_index import export_index, import_index
    from neardup.spark.file_run import dedup_files
    from neardup.spark.session import open_session

__all__ = [
    "Place",
    "dedup",
    "dedup_files",
    "export_index",
    "fingerprints",
    "import_index",
    "open_session",
    "pairs",
    "similar_pairs",
]

_HOMES: Final = {
    "engine": ("Place",),
    "file_run": ("dedup_files",),
    "dataframes": ("dedup", "fingerprints", "pairs", "similar_pairs"),
    "exported_index": ("export_index", "import_index"),
    "session": ("open_session",),
}
__getattr__ = lazily(__name__, _HOMES)
