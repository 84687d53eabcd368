"""
Training on a Dask cluster
==========================

Workers keep their partitions; linrank joins queries that are split over two of them. Here the
cluster consists of two threads of this process.
"""

import dask.array as da
import matplotlib.pyplot as plt
from distributed import Client

import linrank
import linrank.dask

data = linrank.make_ranking(n_queries=200, rows_per_query=(5, 15), n_features=6, random_state=0)
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    X = da.from_array(data.X, chunks=(500, -1))
    y, qid = (da.from_array(column, chunks=500) for column in (data.y, data.qid))
    ranker = linrank.dask.RankSVM(C=0.1, tol=1e-10).fit(X, y, qid=qid)
    found = linrank.dask.evaluate(y, ranker.predict(X), qid, metrics="ndcg@10")
    print(f"NDCG@10 {found['ndcg@10']:.4f} of the training rows, {X.numblocks[0]} partitions")

local = linrank.RankSVM(C=0.1, tol=1e-10).fit(data)
print("weights on the cluster", ranker.coef_.round(4), "and here", local.coef_.round(4), sep="\n")

plt.plot(local.coef_, ranker.coef_, "o")
plt.axline((0, 0), slope=1, color="k", linestyle=":")
plt.xlabel("weights, trained here")
plt.ylabel("weights, trained on the cluster")
