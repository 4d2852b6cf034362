"""Joins of more rows than fit in memory.

A slab is the part of a partitioned join whose rows are in memory at a time (the partition of a
Grace hash join). `row_file` and `sources` read, `slab_join` goes slab by slab, `mergers` and
`pair_spool` collect its pairs; `batches` and `spilled_groups` are the calls.
"""
