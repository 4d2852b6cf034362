"""Kernels that compare fingerprints: partition, join, scan, look up."""
