(2.0e0 * "bm25_title"
    + -0.5e0 * "age"
    + 1.5e0 * "length")
