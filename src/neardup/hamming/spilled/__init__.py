"""Joins of more rows than fit in memory.

A slab is the part of a partitioned join whose rows are in memory at a time (the partition of a
Grace hash join). `rows` and `sources` read, `join` goes slab by slab, `mergers` and `pairs` take
what it finds; `batches` and `groups` are the calls.
"""
