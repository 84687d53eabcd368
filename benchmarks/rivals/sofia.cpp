// The rank and roc loops of sofia-ml as its author describes them, one scalar step after the other.
//
// Written from the paper (Sculley 2009) and from what the program is known to do, without its code:
// sparse vectors of (index, value) whatever the density, an index of hash tables, a new difference
// vector for each step, float weights with a scale beside them. Steps are the corrected ones, so that
// both sides of a comparison do the same work.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Feature {
    int index;
    float value;
};

class SparseVector {
  public:
    SparseVector() = default;

    /// a - b: both lists are in the order of their indices.
    SparseVector(const SparseVector &a, const SparseVector &b) {
        std::size_t i = 0, j = 0;
        while (i < a.features.size() || j < b.features.size()) {
            if (j == b.features.size() ||
                (i < a.features.size() && a.features[i].index < b.features[j].index)) {
                push(a.features[i].index, a.features[i].value);
                ++i;
            } else if (i == a.features.size() || b.features[j].index < a.features[i].index) {
                push(b.features[j].index, -b.features[j].value);
                ++j;
            } else {
                push(a.features[i].index, a.features[i].value - b.features[j].value);
                ++i, ++j;
            }
        }
    }

    void push(int index, float value) {
        features.push_back({index, value});
        squared_norm += double(value) * value;
    }

    std::vector<Feature> features;
    double squared_norm = 0;
};

/// w = scale·v, with ‖w‖² kept.
class Weights {
  public:
    explicit Weights(int n_features) : v(std::size_t(n_features), 0.0f) {}

    double dot(const SparseVector &x) const {
        double sum = 0;
        for (std::size_t k = 0; k < x.features.size(); ++k) {
            sum += v[std::size_t(x.features[k].index)] * x.features[k].value;
        }
        return sum * scale;
    }

    /// w += a·x
    void add(const SparseVector &x, double a) {
        double inner = 0;
        for (std::size_t k = 0; k < x.features.size(); ++k) {
            const double moved = a * x.features[k].value;
            float &weight = v[std::size_t(x.features[k].index)];
            inner += weight * moved;
            weight += float(moved / scale);
        }
        squared_norm += x.squared_norm * a * a + 2 * scale * inner;
    }

    void multiply(double by) {
        if (by == 0) {
            v.assign(v.size(), 0.0f);
            scale = 1;
            squared_norm = 0;
            return;
        }
        scale *= by;
        squared_norm *= by * by;
        if (scale < 1e-11) unfold();
    }

    void project(double radius) {
        if (squared_norm > radius * radius) multiply(radius / std::sqrt(squared_norm));
    }

    void unfold() {
        for (float &weight : v) weight = float(weight * scale);
        scale = 1;
    }

    std::vector<float> v;
    double scale = 1, squared_norm = 0;
};

/// query -> label -> rows, and the keys of each level beside it, so that one can be drawn.
struct Index {
    struct Query {
        std::unordered_map<float, std::vector<int>> rows;
        std::vector<float> labels;
    };

    std::unordered_map<std::string, Query> queries;
    std::vector<std::string> ids;  // of the queries with two labels or more
    std::vector<int> positives, negatives;
};

struct Problem {
    int n_features;
    std::vector<SparseVector> rows;
    Index index;
};

int drawn(std::size_t n) { return int(std::size_t(std::rand()) % n); }

struct Pair {
    const SparseVector *winner, *loser;
};

/// A query, two of its labels, a row of each.
Pair ranked_pair(const Problem &problem) {
    const Index &index = problem.index;
    const Index::Query &query = index.queries.find(index.ids[std::size_t(drawn(index.ids.size()))])->second;
    const int a = drawn(query.labels.size());
    int b = drawn(query.labels.size() - 1);
    if (b >= a) ++b;
    const float first = query.labels[std::size_t(a)], second = query.labels[std::size_t(b)];
    const std::vector<int> &above = query.rows.find(first > second ? first : second)->second;
    const std::vector<int> &below = query.rows.find(first > second ? second : first)->second;
    return {&problem.rows[std::size_t(above[std::size_t(drawn(above.size()))])],
            &problem.rows[std::size_t(below[std::size_t(drawn(below.size()))])]};
}

Pair roc_pair(const Problem &problem) {
    const Index &index = problem.index;
    return {&problem.rows[std::size_t(index.positives[std::size_t(drawn(index.positives.size()))])],
            &problem.rows[std::size_t(index.negatives[std::size_t(drawn(index.negatives.size()))])]};
}

void sgd_svm(Weights &w, const SparseVector &x, double lambda, std::int64_t t) {
    const double margin = w.dot(x), eta = 1 / (lambda * double(t));
    w.multiply(1 - eta * lambda);
    if (margin < 1) w.add(x, eta);
}

void pegasos(Weights &w, const SparseVector &x, double lambda, std::int64_t t) {
    sgd_svm(w, x, lambda, t);
    w.project(1 / std::sqrt(lambda));
}

void logistic(Weights &w, const SparseVector &x, double lambda, std::int64_t t) {
    const double margin = w.dot(x), eta = 1 / (lambda * double(t));
    w.multiply(1 - eta * lambda);
    w.add(x, eta / (1 + std::exp(margin)));
}

void passive_aggressive(Weights &w, const SparseVector &x, double aggressiveness, std::int64_t) {
    const double loss = 1 - w.dot(x);
    if (loss <= 0 || x.squared_norm == 0) return;
    const double step = loss / x.squared_norm;
    w.add(x, step < aggressiveness ? step : aggressiveness);
}

void romma(Weights &w, const SparseVector &x, double, std::int64_t) {
    const double a = x.squared_norm, b = w.dot(x), n = w.squared_norm;
    if (b >= 1 || a == 0) return;
    const double denominator = a * n - b * b;
    if (n == 0 || b >= a * n || denominator <= 1e-12 * a * n) {
        w.multiply(0);
        w.add(x, 1 / a);
    } else {
        w.multiply((a * n - b) / denominator);
        w.add(x, n * (1 - b) / denominator);
    }
}

using Step = void (*)(Weights &, const SparseVector &, double, std::int64_t);

Step step_of(const char *name) {
    const struct { const char *name; Step step; } steps[] = {
        {"pegasos", pegasos}, {"sgd-svm", sgd_svm}, {"pa", passive_aggressive},
        {"romma", romma},     {"logistic", logistic},
    };
    for (const auto &known : steps) {
        if (!std::strcmp(known.name, name)) return known.step;
    }
    return nullptr;
}

void build_index(Problem &problem, const double *labels, const std::int64_t *qid) {
    Index &index = problem.index;
    for (std::size_t i = 0; i < problem.rows.size(); ++i) {
        Index::Query &query = index.queries[std::to_string(qid[i])];
        std::vector<int> &rows = query.rows[float(labels[i])];
        if (rows.empty()) query.labels.push_back(float(labels[i]));
        rows.push_back(int(i));
        (labels[i] > 0 ? index.positives : index.negatives).push_back(int(i));
    }
    for (const auto &[id, query] : index.queries) {
        if (query.labels.size() > 1) index.ids.push_back(id);
    }
}

}  // namespace

extern "C" {

Problem *sofia_new(std::int64_t n_rows, int n_features, const float *values, const int *columns,
                   const std::int64_t *offsets, const double *labels, const std::int64_t *qid) {
    auto problem = std::make_unique<Problem>();
    problem->n_features = n_features;
    problem->rows.resize(std::size_t(n_rows));
    for (std::int64_t i = 0; i < n_rows; ++i) {
        for (std::int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
            problem->rows[std::size_t(i)].push(columns[k], values[k]);
        }
    }
    build_index(*problem, labels, qid);
    return problem.release();
}

void sofia_delete(Problem *problem) { delete problem; }

/// False for an unknown algorithm, or where no pair can be drawn.
bool sofia_run(const Problem *problem, const char *algorithm, bool is_roc, double parameter,
               std::int64_t n_steps, unsigned seed, float *weights) {
    const Index &index = problem->index;
    const Step step = step_of(algorithm);
    const bool none = is_roc ? index.positives.empty() || index.negatives.empty() : index.ids.empty();
    if (step == nullptr || none) return false;
    std::srand(seed);
    Weights w(problem->n_features);
    for (std::int64_t t = 1; t <= n_steps; ++t) {
        const Pair pair = is_roc ? roc_pair(*problem) : ranked_pair(*problem);
        const auto difference = std::make_unique<SparseVector>(*pair.winner, *pair.loser);
        step(w, *difference, parameter, t);
    }
    w.unfold();
    std::memcpy(weights, w.v.data(), w.v.size() * sizeof(float));
    return true;
}
}
