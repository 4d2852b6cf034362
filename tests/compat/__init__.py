"""Comparisons with the packages themselves; slow, run by hand."""
