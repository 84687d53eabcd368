#include "coordinate_step.hpp"

namespace linrank {

std::vector<double> sparse_quadratic(Doubles H, Doubles g, Doubles w, double alpha, double enough,
                                     Index n_sweeps) {
    const std::size_t n = w.size();
    std::vector<double> v(w.begin(), w.end()), slope(g.begin(), g.end());  // slope = g + H(v - w)
    std::vector<std::size_t> moving;
    const auto step = [&](std::size_t r) {
        const double curvature = H[r * n + r];
        if (!(curvature > 0.0)) return 0.0;
        const CoordinateStep best({slope[r], curvature, curvature, 0.0}, v[r], Penalty::l1, alpha);
        if (best.step == 0.0) return 0.0;
        v[r] += best.step;
        const double *row = H.data() + r * n;
        for (std::size_t c = 0; c < n; ++c) slope[c] += best.step * row[c];
        return best.decrease;
    };
    // Sweeps over the weights that are not zero, and one over all whenever those have come to rest.
    for (Index sweep = 0; sweep < n_sweeps;) {
        double decrease = 0;
        for (std::size_t r = 0; r < n; ++r) decrease += step(r);
        ++sweep;
        if (decrease <= enough) break;
        moving.clear();
        for (std::size_t r = 0; r < n; ++r)
            if (v[r] != 0.0) moving.push_back(r);
        for (double more = 2 * enough; more > enough && sweep < n_sweeps; ++sweep) {
            more = 0;
            for (const std::size_t r : moving) more += step(r);
        }
    }
    return v;
}

}  // namespace linrank
