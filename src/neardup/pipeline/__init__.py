"""The only place that composes the steps: reading, fingerprinting, matching, keeping, writing.

One file for each command: `deduplicate`, `fingerprint`, `pair_files`; `run` has their common parts,
`evidence` the views of a finished run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.pipeline.benchmarks import Benchmarks
    from neardup.pipeline.contamination import (
        CleanOutputs,
        decontaminate,
        decontaminate_files,
    )
    from neardup.pipeline.deduplicate import DedupResult, dedup, dedup_files, dedup_texts
    from neardup.pipeline.fingerprint import fingerprint_files
    from neardup.pipeline.pair_files import clusters_file, new_pairs_file, pairs_file
    from neardup.pipeline.passage_cuts import cut_passages
    from neardup.pipeline.passage_files import LineOutputs, Repeated, lines_files
    from neardup.pipeline.report_again import report_files
    from neardup.pipeline.run.against import Against
    from neardup.pipeline.run.read_documents import Inputs
    from neardup.pipeline.run.rule import Choice, Limits, Rule
    from neardup.pipeline.run.run_outputs import Outputs, ReportOptions
    from neardup.pipeline.similar_texts import similar_pairs

__all__ = [
    "Against",
    "Benchmarks",
    "Choice",
    "CleanOutputs",
    "DedupResult",
    "Inputs",
    "Limits",
    "LineOutputs",
    "Outputs",
    "Repeated",
    "ReportOptions",
    "Rule",
    "clusters_file",
    "cut_passages",
    "decontaminate",
    "decontaminate_files",
    "dedup",
    "dedup_files",
    "dedup_texts",
    "fingerprint_files",
    "lines_files",
    "new_pairs_file",
    "pairs_file",
    "report_files",
    "similar_pairs",
]

_HOMES: Final = {
    "benchmarks": ("Benchmarks",),
    "contamination": ("CleanOutputs", "decontaminate", "decontaminate_files"),
    "deduplicate": ("DedupResult", "dedup", "dedup_files", "dedup_texts"),
    "fingerprint": ("fingerprint_files",),
    "pair_files": ("clusters_file", "new_pairs_file", "pairs_file"),
    "passage_cuts": ("cut_passages",),
    "passage_files": ("LineOutputs", "Repeated", "lines_files"),
    "report_again": ("report_files",),
    "run.against": ("Against",),
    "run.run_outputs": ("Outputs", "ReportOptions"),
    "run.rule": ("Choice", "Limits", "Rule"),
    "run.read_documents": ("Inputs",),
    "similar_texts": ("similar_pairs",),
}
__getattr__ = lazily(__name__, _HOMES)
