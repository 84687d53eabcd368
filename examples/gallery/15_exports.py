"""
Exporting to Elasticsearch, Vespa and SQL
=========================================

The same ranker for three engines. SQLite computes the same scores as linrank.
"""

import sqlite3

import matplotlib.pyplot as plt
import numpy as np

import linrank

rng = np.random.default_rng(0)
X = rng.gamma(2.0, size=(500, 3))
y = np.round(X @ [0.5, 0.1, 0.4] + 0.3 * rng.normal(size=500)).clip(0, 4)
qid = np.arange(500) // 10
names = dict(enumerate(["bm25", "title_length", "clicks"]))
ranker = linrank.RankSVM(positive=True).fit(X, y, qid=qid)

print(ranker.export("elasticsearch", name="mine", feature_map=names).text)
print(ranker.export("vespa", name="mine", feature_map=names).text)
sql = ranker.export("sql", feature_map=names, table="pages", qid="query", docid="page").text
print(sql)

base = sqlite3.connect(":memory:")
base.execute("CREATE TABLE pages (query, page, bm25, title_length, clicks)")
rows = zip(qid.tolist(), range(500), *X.T.tolist(), strict=True)
base.executemany("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", rows)
scored = sorted(base.execute(sql).fetchall(), key=lambda row: row[1])
in_sql = np.array([row[-2] for row in scored])

plt.plot(ranker.predict(X), in_sql, ".")
plt.xlabel("score in linrank")
plt.ylabel("score in SQLite")
