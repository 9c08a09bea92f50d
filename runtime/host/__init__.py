"""The host runtime: masks of one sequence or a batch, by numba kernels on the CPU."""
