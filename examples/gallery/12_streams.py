"""
Learning from a stream
======================

``partial_fit`` takes rows as they arrive, reads each once and keeps a bounded sample of them.
"""

import matplotlib.pyplot as plt

from linrank import RankSVM, SGDRanker, evaluate, make_ranking

data = make_ranking(n_queries=400, n_features=10, noise=0.5, random_state=0)
stream, test = data.select(data.qid < 300), data.select(data.qid >= 300)


def quality(ranker):
    return evaluate(test.y, ranker.predict(test.X), qid=test.qid, metrics="ndcg@10")["ndcg@10"]


ranker = SGDRanker(alpha=1e-3, average=True, random_state=0)
seen, values = [], []
for begin in range(0, stream.n_rows, 400):
    part = slice(begin, begin + 400)
    ranker.partial_fit(stream.X[part], stream.y[part], qid=stream.qid[part])
    seen.append(min(begin + 400, stream.n_rows))
    values.append(quality(ranker))
exact = quality(RankSVM(pair_weighting="uniform").fit(stream))
print(f"{ranker.n_steps_:,} steps: NDCG@10 {values[-1]:.3f}; all rows at once: {exact:.3f}")

plt.plot(seen, values, "o-", label="the stream so far")
plt.axhline(exact, color="k", linestyle=":", label="RankSVM on all rows")
plt.xlabel("rows seen")
plt.ylabel("NDCG@10 on other queries")
plt.legend()
