"""Kernels that parse: JSON lines, CSV records, fields."""
