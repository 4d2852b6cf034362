"""Numba kernels: arrays in, arrays out; they import only numpy and numba.

Every kernel is plain Python as well: with NUMBA_DISABLE_JIT=1 the same source runs uncompiled.
Import a kernel inside the function that calls it, so that `import neardup` does not import Numba.
"""
