"""Kernels that fold: hashes and vectors to fingerprints."""
