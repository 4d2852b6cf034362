"""Kernels that make features: normalise, tokenise, hash, look up."""
