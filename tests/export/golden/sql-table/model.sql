SELECT scored.*,
  ROW_NUMBER() OVER (PARTITION BY scored."query_id" ORDER BY scored."golden_score" DESC) AS "golden_rank"
FROM (
  SELECT listed.*,
    COALESCE(0.5e0 * listed."bm25_title", 5.0e0)
    + COALESCE(-4.0e0 * listed."age", -1.0e0)
    + COALESCE(0.0015e0 * listed."length", 3.75e0) AS "golden_score"
  FROM "documents" listed
) scored
ORDER BY scored."query_id", "golden_rank"
