"""Rows, losses and metrics on a CUDA device, by CuPy and the kernels of ``core/cuda``."""
