"""The only place that composes the steps: reading, fingerprinting, matching, keeping, writing.

One file for each thing that a user asks for: `deduplicate`, `fingerprint`, `pair`, `pair_files`;
`steps` has what they share.
"""

from neardup.pipeline.deduplicate import DedupResult, Outputs, dedup, dedup_files, dedup_texts
from neardup.pipeline.fingerprint import fingerprint_files
from neardup.pipeline.new_pairs import new_pairs_file
from neardup.pipeline.pair_files import clusters_file, pairs_file
from neardup.pipeline.run.against import Against
from neardup.pipeline.run.resources import Resources
from neardup.pipeline.similar_texts import similar_pairs

__all__ = [
    "Against",
    "DedupResult",
    "Outputs",
    "Resources",
    "clusters_file",
    "dedup",
    "dedup_files",
    "dedup_texts",
    "fingerprint_files",
    "new_pairs_file",
    "pairs_file",
    "similar_pairs",
]
