(COALESCE(0.5e0 * "bm25_title", 5.0e0)
    + COALESCE(-4.0e0 * "age", -1.0e0)
    + COALESCE(0.0015e0 * "length", 3.75e0))
