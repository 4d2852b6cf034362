"""What crosses the network: each step on a partition's rows, over the kernels of one machine."""
