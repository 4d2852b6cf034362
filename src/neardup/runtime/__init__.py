"""Services of the process: threads, memory, temporary and append-only files, progress.

Knows nothing of documents or fingerprints.
"""
