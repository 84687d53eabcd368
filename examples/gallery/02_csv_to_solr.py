"""
From a CSV file to Solr
=======================

linrank finds columns by name and fills missing values by a policy that it stores in the model. The
exported weights apply to raw feature values.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import linrank

rng = np.random.default_rng(0)
table = pd.DataFrame({"query": [f"q{i // 12}" for i in range(1800)], "url": "/p/"})
table["url"] += table.index.astype(str)
table[["bm25", "popularity", "rating"]] = rng.gamma(3.0, 1.0, size=(1800, 3))
worth = table[["bm25", "popularity", "rating"]] @ [0.8, 0.5, 0.4] + rng.normal(size=1800)
table["grade"] = np.digitize(worth, worth.quantile([0.5, 0.8, 0.95]))
table.loc[rng.random(1800) < 0.3, "rating"] = np.nan  # nobody has rated these yet

folder = Path(tempfile.mkdtemp())
table.to_csv(folder / "judgments.csv", index=False)
data = linrank.load(folder / "judgments.csv", missing="mean")
train, test = linrank.train_test_split(data, random_state=0)
ranker = linrank.RankSVMCV().fit(train)
found = linrank.evaluate(test.y, ranker.predict(test), qid=test.qid, metrics="ndcg@10")
print(f"C = {ranker.C_:.2g}, NDCG@10 {found['ndcg@10']:.3f} on unseen queries")

artifact = ranker.export("solr", name="shop")
for path in map(Path, artifact.save(folder / "solr")):
    print(path.name, path.read_text()[:300], sep="\n")

linrank.QueryHistogramDisplay.from_evaluation(found, "ndcg@10").plot()
plt.gcf().set_layout_engine("tight")
