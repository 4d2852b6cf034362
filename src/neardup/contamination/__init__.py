"""Contamination: which questions of a test set occur in which documents, and where."""
