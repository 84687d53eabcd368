"""Kernels: rankers that are sums of functions ``k(x_i, x)`` of the training rows."""
