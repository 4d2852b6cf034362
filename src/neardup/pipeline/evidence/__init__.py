"""Evidence on a decision: documents that are read again, and the content of a run's report.

`named_texts` finds documents by name and `removed` those that a run dropped. `levels` says at which
thresholds each document would be dropped, `pair_texts` puts two documents side by side, `gather`
makes the record that `neardup.pipeline.report` draws.
"""
