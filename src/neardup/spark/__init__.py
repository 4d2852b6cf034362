"""Beyond one machine: the same documents kept, on Spark 4 or on Sail, its engine without Java.

The flow: `documents` reads and fingerprints on the workers, `classes` collapses equal documents,
`similar` and `near` find the matches, `components` and `keeping` decide, `outputs` writes. These
hold the functions that cross the network, over the steps that one machine uses; `engine` plans
their exchanges with the DataFrame API alone, and `frames` and `files` are the calls.
Importing this loads no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.spark.files import dedup_files
    from neardup.spark.frames import dedup, fingerprints, pairs, similar_pairs
    from neardup.spark.session import open_session

__all__ = ["dedup", "dedup_files", "fingerprints", "open_session", "pairs", "similar_pairs"]

_HOMES: Final = {
    "files": ("dedup_files",),
    "frames": ("dedup", "fingerprints", "pairs", "similar_pairs"),
    "session": ("open_session",),
}
__getattr__ = lazily(__name__, _HOMES)
