"""
Learning from clicks
====================

Users examine the top of a list more often than the rest. Weighting each click by the inverse
propensity of its position removes that bias. The propensities are estimated from the log.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import RankSVM, clicks, evaluate

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 6))
worth = X @ [0.0, 1.0, 1.0, -1.0, 0.5, 0.5] + 0.5 * rng.normal(size=4000)
y, qid = np.digitize(worth, [1.0, 2.5]), np.arange(4000) // 10
train, test = slice(0, 2000), slice(2000, 4000)

truth = clicks.power_law(10, eta=1.0)  # 1, 1/2, 1/3, ...
attraction = np.array([0.05, 0.5, 0.95])[y[train]]
log = clicks.simulate_clicks(
    attraction, qid[train], X[train, 0], truth, n_lists=20_000, noise=0.3, random_state=2
)
estimated = clicks.harvest(log)

for name, propensity in (("as they are", None), ("weighted", estimated), ("truth", truth)):
    weights = {} if propensity is None else {"propensity": propensity, "max_weight": 20}
    preferences = clicks.click_preferences(log, **weights)
    ranker = RankSVM(C=1e-3).fit_pairs(X[train], preferences, qid=qid[train])
    found = evaluate(y[test], ranker.predict(X[test]), qid=qid[test], metrics="ndcg@10")
    print(f"clicks {name:12} NDCG@10 {found['ndcg@10']:.3f}")

plt.plot(range(1, 11), truth, "k--", label="truth")
plt.plot(range(1, 11), estimated, "o-", label="estimated from the log")
plt.xlabel("position")
plt.ylabel("examination probability")
plt.legend()
