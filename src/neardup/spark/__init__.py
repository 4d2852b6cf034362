"""Beyond one machine: the same documents kept, on Spark 4 or on Sail, its engine without Java.

The flow, in `workers`: `documents` reads and fingerprints, `equal_documents` collapses equal ones,
`document_keys`, `key_pairs` and `measuring`, or `near`, find the matches, `components`,
`decide_components` and `rounds` decide, `file_outputs` writes. These hold the functions that cross
the network, over the steps that one machine uses. `decision_plan`, `matches`, `match_groups` and
`transitive_groups` plan their exchanges with the DataFrame API alone, by `Engine.step`;
`dataframes`, `file_run` and `leak_run` (questions of benchmarks, searched in `workers/leaks`) are
the calls. Importing this loads no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.spark.dataframes import dedup, fingerprints, pairs, similar_pairs
    from neardup.spark.engine import Place
    from neardup.spark.engine_session import open_session
    from neardup.spark.exported_index import export_index, import_index
    from neardup.spark.file_run import dedup_files
    from neardup.spark.leak_run import decontaminate_files

__all__ = [
    "Place",
    "decontaminate_files",
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
    "leak_run": ("decontaminate_files",),
    "dataframes": ("dedup", "fingerprints", "pairs", "similar_pairs"),
    "exported_index": ("export_index", "import_index"),
    "engine_session": ("open_session",),
}
__getattr__ = lazily(__name__, _HOMES)
