"""
Data larger than memory
=======================

A store is a folder of arrays that training reads chunk by chunk, within the memory limit that you
set. The optimum is the same as for rows in memory.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import linrank

data = linrank.make_ranking(n_queries=1500, n_features=30, noise=0.5, random_state=0)
store = linrank.Store.of(f"{tempfile.mkdtemp()}/store", data, chunk_bytes=200_000)

inside = linrank.RankSVM(C=1e-4, tol=1e-8).fit(data)
outside = linrank.RankSVM(C=1e-4, tol=1e-8, memory_limit="2GB").fit(store)
print(f"{store.n_chunks} chunks; objective {outside.objective_:.8g} and {inside.objective_:.8g}")
print(f"largest difference of a weight: {np.abs(outside.coef_ - inside.coef_).max():.1e}")

plt.plot(inside.coef_, outside.coef_, "o")
plt.axline((0, 0), slope=1, color="k", linestyle=":")
plt.xlabel("weights, trained in memory")
plt.ylabel("weights, trained from disk")
