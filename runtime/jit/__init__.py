"""Support for numba kernels: their cache on disk, memory by address, sorting."""
