"""Steps for the workers: each on a partition's rows, over the kernels of one machine."""
