"""
Why is this document above that one?
====================================

The difference of two scores is a sum over features: an exact explanation, not an approximation.
"""

import numpy as np
import pandas as pd

import linrank

rng = np.random.default_rng(0)
pages = pd.DataFrame(
    rng.gamma(3.0, 1.0, size=(2000, 5)),
    columns=["bm25_title", "bm25_body", "clicks", "age_years", "inlinks"],
)
worth = pages @ [0.8, 0.6, 0.5, -0.7, 0.2] + rng.normal(size=2000)
grade = np.digitize(worth, worth.quantile([0.5, 0.8, 0.95]))
ranker = linrank.RankSVM().fit(pages, grade, qid=np.arange(2000) // 20)

first, second = ranker.predict(pages[:20]).argsort()[::-1][:2]
parts = ranker.explain(pages, pair=(first, second))
print(dict(zip(pages.columns, parts.round(3).tolist(), strict=True)))

display = linrank.PairExplanationDisplay.from_model(
    ranker, pages, (first, second), called=(f"page {first}", f"page {second}")
)
display.plot()
print(display.description)
