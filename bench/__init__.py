"""Benchmarks side by side against peers: `python bench/run.py`; not part of the package."""
