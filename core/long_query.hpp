// What the sweeps of one long query are made of.
#pragma once
#include <cstdint>

namespace linrank {

/// Ends of the windows of a query for one margin, by all threads: upto[t] counts the places e with
/// (margin - s[e]) + s[t] > 0, and from[e] is the first place t with it (n if there is none). s are the
/// scores in ascending order. The result is that of one walk through both; with NaN it is within bounds and ascending.
void find_windows_parallel(const double *s, std::int64_t n, double margin, std::int32_t *upto,
                           std::int32_t *from, int n_threads);

}  // namespace linrank
