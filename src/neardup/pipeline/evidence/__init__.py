"""What is looked at after a decision: documents read again, and what a report shows of a run.

`named_texts` finds documents by name and `removed` those that a run dropped. `levels` says at which
thresholds each document would be dropped, `pair_texts` puts two documents side by side, `gather`
makes the record that `neardup.pipeline.report` draws.
"""
