#include "descent.hpp"

#include "parallel.hpp"

namespace linrank {

namespace {
// Pairs are drawn this many at a time: enough to ask for rows well ahead, few enough to stay in the
// first-level cache.
constexpr Index batch_size = 512;
// ‖v‖² is kept by adding what every step changes. It is summed afresh when this many steps have been
// taken in all, so that rounding cannot pile up and where calls begin and end does not matter.
constexpr Index measured_every = 1 << 14;

/// Numbers of whole lines of eight, one line more than needed: there may be no columns, and a kernel may look
/// at the line behind the last.
std::size_t in_lines(Index n_numbers) { return std::size_t((n_numbers + 7) / 8 * 8 + 8); }
}  // namespace

Descent::Descent(Index n_columns, std::span<const Learner> learners, Average average)
    : n_columns_(n_columns), n_models_(Index(learners.size())), average_(average) {
    for (std::size_t first = 0; first < learners.size(); first += lanes) {
        const std::size_t last = std::min(learners.size(), first + std::size_t(lanes));
        Group group{{learners.begin() + std::ptrdiff_t(first), learners.begin() + std::ptrdiff_t(last)},
                    learners.size() == 1 ? 1 : lanes, {}, {}, {}};
        resize(group, n_columns);
        groups_.push_back(std::move(group));
    }
}

void Descent::resize(Group &group, Index n_columns) const {
    group.v.resize(in_lines(n_columns * group.width));
    if (average_ != Average::none) group.z.resize(group.v.size());
    group.scratch.resize(in_lines(n_columns));
}

void Descent::grow(Index n_columns) {
    if (n_columns <= n_columns_) return;
    for (Group &group : groups_) resize(group, n_columns);
    n_columns_ = n_columns;  // last: where memory runs out, the columns are those that all groups have
}

void Descent::measure(Group &group) const {
    const double *v = group.v.data();
    if (group.width == 1) {
        group.learners[0].square = simd().dot_vectors(n_columns_, v, v);
        return;
    }
    std::array<double, lanes> sums{};
    // Column by column: lane by lane every line would come from memory once for each.
    for (Index c = 0; c < n_columns_; ++c)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const double x = v[c * lanes + Index(lane)];
            sums[lane] += x * x;
        }
    for (std::size_t lane = 0; lane < group.learners.size(); ++lane) group.learners[lane].square = sums[lane];
}

void Descent::advance(Group &group, const Rows &rows, std::span<const RowPair> pairs,
                      Index n_known, Index steps_before) const {
    DescentBatch batch{group.learners.data(), int(group.learners.size()), n_columns_,
                       group.v.data(), group.z.empty() ? nullptr : group.z.data(),
                       group.scratch.data(), average_, pairs.data(), 0, 0};
    for (std::size_t done = 0; done < pairs.size();) {
        const Index until = measured_every - (steps_before + Index(done)) % measured_every;
        batch.pairs = pairs.data() + done;
        batch.n_known = n_known - Index(done);
        batch.n_pairs = std::min(Index(pairs.size() - done), until);
        std::visit([&]<class Storage>(const Storage &stored) {
            const auto &kernels = simd().of<typename Storage::value_type>();
            const auto run = [&](const DescentKernel<Storage> &kernel) {
                (group.width == 1 ? kernel.one : kernel.lanes)(stored, batch);
            };
            if constexpr (requires { stored.offsets; }) run(kernels.sparse);
            else run(kernels.dense);
        }, rows);
        if (batch.n_pairs == until) measure(group);
        done += std::size_t(batch.n_pairs);
    }
}

void Descent::run(const Rows &rows, const PairSampler &sampler, Random &random, Index n_steps,
                  int n_threads) {
    const Random start = random;
    parallel_for(Index(groups_.size()), n_threads, [&](Index g) {
        Random own = start;
        // The batch after the one at work is drawn already, so that its rows can be asked for.
        std::array<RowPair, 2 * batch_size> pairs;
        const auto draw = [&](Index from, RowPair *out) {
            const Index n = std::clamp<Index>(n_steps - from, 0, batch_size);
            sampler.draw(own, {out, std::size_t(n)});
            return n;
        };
        Index n = draw(0, pairs.data());
        for (Index done = 0; n > 0;) {
            const Index n_next = draw(done + n, pairs.data() + n);
            advance(groups_[g], rows, {pairs.data(), std::size_t(n)}, n + n_next, n_steps_ + done);
            std::copy_n(pairs.data() + n, n_next, pairs.data());
            done += n;
            n = n_next;
        }
        if (g == 0) random = own;
    });
    n_steps_ += n_steps;
}

void Descent::step(const Rows &rows, std::span<const RowPair> pairs, int n_threads) {
    parallel_for(Index(groups_.size()), n_threads, [&](Index g) {
        advance(groups_[g], rows, pairs, Index(pairs.size()), n_steps_);
    });
    n_steps_ += Index(pairs.size());
}

const Learner &Descent::learner(Index model) const {
    return groups_[group_of(model)].learners[model % lanes];
}

std::vector<double> Descent::weights(Index model) const {
    const Learner &m = learner(model);
    Vectors kept = vectors(model);
    const bool averaged = average_ != Average::none && m.total > 0;
    for (std::size_t c = 0; c < kept.v.size(); ++c)
        kept.v[c] = averaged ? (m.K * kept.v[c] - kept.z[c]) / m.total : m.scale() * kept.v[c];
    return std::move(kept.v);
}

Descent::Vectors Descent::vectors(Index model) const {
    const Group &group = groups_[group_of(model)];
    const auto column = [&](const LargeVector<double> &numbers) {
        std::vector<double> out(numbers.empty() ? 0 : n_columns_);
        for (std::size_t c = 0; c < out.size(); ++c)
            out[c] = numbers[c * group.width + (model % lanes)];
        return out;
    };
    return {column(group.v), column(group.z)};
}

void Descent::restore(Index model, const Learner &learner, const Vectors &vectors) {
    Group &group = groups_[group_of(model)];
    group.learners[model % lanes] = learner;
    const auto fill = [&](LargeVector<double> &numbers, const std::vector<double> &from) {
        for (std::size_t c = 0; c < from.size(); ++c)
            numbers[c * group.width + (model % lanes)] = from[c];
    };
    fill(group.v, vectors.v);
    if (!group.z.empty()) fill(group.z, vectors.z);
}

void Descent::become(Index model, const Learner &learner, Doubles w) {
    const Learner &before = this->learner(model);
    Learner next = learner;
    next.loss += before.loss;  // of all steps of the model, as they are counted
    next.n_updates += before.n_updates;
    next.a = 1;
    next.first = next.t;
    next.K = next.total = next.square = 0;
    Vectors vectors{{w.begin(), w.end()}, std::vector<double>(w.size())};
    for (double &x : vectors.v) {
        if (next.shrinks()) x *= next.strength * next.t;  // w = v/(λt)
        next.square += x * x;
    }
    restore(model, next, vectors);
}

}  // namespace linrank
