"""The device runtime: masks of a batch on torch tensors, by torch operations or Triton kernels."""
