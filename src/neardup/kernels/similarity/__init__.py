"""Kernels of the similarity join and of its bands."""
