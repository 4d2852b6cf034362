"""Formats: bytes to batches of documents and back, one file a format.

`open` has the table; a new format is one file here and one row there.
"""
