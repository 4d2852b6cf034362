"""The only place that composes the steps: reading, fingerprinting, matching, keeping, writing.

One file for each thing that a user asks for: `deduplicate`, `fingerprint`, `pair`, `pair_files`;
`run` has what they share, `evidence` what is looked at afterwards.
"""

from neardup.pipeline.deduplicate import DedupResult, dedup, dedup_files, dedup_texts
from neardup.pipeline.fingerprint import fingerprint_files
from neardup.pipeline.new_pairs import new_pairs_file
from neardup.pipeline.pair_files import clusters_file, pairs_file
from neardup.pipeline.report_again import Inputs, report_files
from neardup.pipeline.run.against import Against
from neardup.pipeline.run.outputs import Outputs, ReportOptions
from neardup.pipeline.run.resources import Resources
from neardup.pipeline.similar_texts import similar_pairs

__all__ = [
    "Against",
    "DedupResult",
    "Inputs",
    "Outputs",
    "ReportOptions",
    "Resources",
    "clusters_file",
    "dedup",
    "dedup_files",
    "dedup_texts",
    "fingerprint_files",
    "new_pairs_file",
    "pairs_file",
    "report_files",
    "similar_pairs",
]
