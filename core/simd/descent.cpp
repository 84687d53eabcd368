// One pass over pairs of rows for one model, or for eight side by side.
//
// A model alone is vectorised over the columns, several are vectorised over the models: then a sparse
// entry meets one cache line with its weight in all of them. x_winner - x_loser is taken in the type of
// the rows, everything else in double; of sparse rows it is never formed.
#include "descent.hpp"

#include "steps.hpp"
#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

typedef std::int32_t I32x8 __attribute__((vector_size(32)));
typedef std::int64_t I64x8 __attribute__((vector_size(64)));
template <class T> struct Bits8;
template <> struct Bits8<float> { using type = I32x8; };
template <> struct Bits8<double> { using type = I64x8; };

inline F64x8 widen(F64x8 v) { return v; }
inline F64x8 widen(F32x8 v) {
#ifdef __AVX512F__
    return F64x8(_mm512_maskz_cvtps_pd(0xff, __m256(v)));  // as load8 in vector.hpp
#else
    return __builtin_convertvector(v, F64x8);
#endif
}

// The compiler tires of inlining long before all the combinations below are done, and a call costs as much
// as a vector or two of work.
#define LINRANK_INLINE [[gnu::always_inline]] inline

// How many pairs ahead rows are asked for, and where they begin.
constexpr int near = 8, far = 16;

// ---- differences of rows: ⟨v, x⟩, ‖x‖², v += δ x, for x = x_winner - x_loser ----------------------

/// All lines that n numbers lie in; the first may begin in the middle of one.
template <class Value>
LINRANK_INLINE void prefetch_lines(const Value *row, std::int64_t n) {
    constexpr std::int64_t line = 64 / std::int64_t(sizeof(Value));
    for (std::int64_t c = 0; c < n; c += line) ask_for(row + c);
    if (n > 0) ask_for(row + n - 1);
}

/// Of dense rows, for one model.
template <class Value>
class DenseDifference {
    using Vec = Vec8<Value>;
    using Bits = typename Bits8<Value>::type;

  public:
    static constexpr bool is_short = true;  // to add nothing takes less than to guess that it is nothing

    DenseDifference(const DenseRows<Value> &rows, const DescentBatch &batch)
        : rows_(rows), n_(rows.n_columns), whole_(n_ / 8 * 8), v_(batch.v), z_(batch.z) {
        // Lane k of the last vector is column whole + k. It is loaded with the eight last columns of
        // the row, for behind them may be no memory, and moved into place.
        const int rest = int(n_ - whole_);
        for (int k = 0; k < 8; ++k) {
            place_[k] = k < rest ? 8 - rest + k : 0;
            kept_[k] = k < rest ? -1 : 0;
        }
    }

    LINRANK_INLINE void prefetch(RowPair pair) const {
        prefetch_lines(row(pair.winner), n_);
        prefetch_lines(row(pair.loser), n_);
    }
    LINRANK_INLINE void prefetch_far(RowPair) const {}

    LINRANK_INLINE void take(RowPair pair) { winner_ = row(pair.winner), loser_ = row(pair.loser); }

    /// ⟨v, x⟩; and ‖x‖², for `square`, where it is wanted.
    template <bool with_square>
    LINRANK_INLINE double dot() {
        F64x8 even{}, odd{}, squares{};
        std::int64_t c = 0;
        const auto both = [&](F64x8 &sum, std::int64_t at, F64x8 x) __attribute__((always_inline)) {
            sum += x * load8<double>(v_ + at);
            if constexpr (with_square) squares += x * x;
        };
        for (; c + 16 <= whole_; c += 16) {
            both(even, c, widen(whole(c)));
            both(odd, c + 8, widen(whole(c + 8)));
        }
        if (c < whole_) both(even, c, widen(whole(c)));
        if (whole_ < n_) both(odd, whole_, widen(tail()));
        if constexpr (with_square) square_ = sum_lanes(squares);
        return sum_lanes(even + odd);
    }
    LINRANK_INLINE double square() const { return square_; }

    LINRANK_INLINE void add(double delta) const {
        each([&](std::int64_t c, F64x8 x) __attribute__((always_inline)) { store8(v_ + c, load8<double>(v_ + c) + delta * x); });
    }
    /// The same, and returned is by how much ‖v‖² has grown.
    LINRANK_INLINE double add_tracked(double delta, double dot) const {
        F64x8 sum{};
        each([&](std::int64_t c, F64x8 x) __attribute__((always_inline)) {
            store8(v_ + c, load8<double>(v_ + c) + delta * x);
            sum += x * x;
        });
        return delta * (2 * dot + delta * sum_lanes(sum));
    }
    LINRANK_INLINE void add_to_average(double weight) const {
        each([&](std::int64_t c, F64x8 x) __attribute__((always_inline)) { store8(z_ + c, load8<double>(z_ + c) + weight * x); });
    }

  private:
    LINRANK_INLINE const Value *row(std::int64_t i) const { return rows_.values + i * rows_.stride; }

    LINRANK_INLINE Vec whole(std::int64_t c) const { return load8<Value>(winner_ + c) - load8<Value>(loser_ + c); }
    LINRANK_INLINE Vec tail() const {
        if (n_ < 8) {
            Vec x{};
            for (std::int64_t c = 0; c < n_; ++c) x[c] = winner_[c] - loser_[c];
            return x;
        }
        return Vec(Bits(__builtin_shuffle(whole(n_ - 8), place_)) & kept_);
    }
    template <class Body>
    LINRANK_INLINE void each(const Body &body) const {
        for (std::int64_t c = 0; c < whole_; c += 8) body(c, widen(whole(c)));
        if (whole_ < n_) body(whole_, widen(tail()));
    }

    const DenseRows<Value> &rows_;
    std::int64_t n_, whole_;
    double *v_, *z_;
    Bits place_{}, kept_{};
    const Value *winner_ = nullptr, *loser_ = nullptr;
    double square_ = 0;
};

/// Of dense rows, for all lanes: x is written down once, then every column meets a line of v.
template <class Value>
class DenseLanesDifference {
  public:
    DenseLanesDifference(const DenseRows<Value> &rows, const DescentBatch &batch)
        : rows_(rows), n_(rows.n_columns), v_(batch.v), z_(batch.z), x_(batch.scratch) {}
    ~DenseLanesDifference() {
        for (std::int64_t c = 0; c < n_; ++c) x_[c] = 0;
    }

    LINRANK_INLINE void prefetch(RowPair pair) const {
        prefetch_lines(row(pair.winner), n_);
        prefetch_lines(row(pair.loser), n_);
    }
    LINRANK_INLINE void prefetch_far(RowPair) const {}

    LINRANK_INLINE void take(RowPair pair) {
        const Value *winner = row(pair.winner), *loser = row(pair.loser);
        for (std::int64_t c = 0; c < n_; ++c) x_[c] = double(Value(winner[c] - loser[c]));
    }
    template <bool with_square>
    LINRANK_INLINE F64x8 dot() const {
        F64x8 sum[4]{};
        std::int64_t c = 0;
        for (; c + 4 <= n_; c += 4)
            for (int k = 0; k < 4; ++k) sum[k] += x_[c + k] * load8<double>(v_ + 8 * (c + k));
        for (; c < n_; ++c) sum[0] += x_[c] * load8<double>(v_ + 8 * c);
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    LINRANK_INLINE double square() const {
        double sum[4]{};
        std::int64_t c = 0;
        for (; c + 4 <= n_; c += 4)
            for (int k = 0; k < 4; ++k) sum[k] += x_[c + k] * x_[c + k];
        for (; c < n_; ++c) sum[0] += x_[c] * x_[c];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    LINRANK_INLINE void add(F64x8 delta) const { add_to(v_, delta); }
    LINRANK_INLINE F64x8 add_tracked(F64x8 delta, F64x8 dot) const {
        add_to(v_, delta);
        return delta * (2.0 * dot + delta * square());
    }
    LINRANK_INLINE void add_to_average(F64x8 weight) const { add_to(z_, weight); }

  private:
    LINRANK_INLINE const Value *row(std::int64_t i) const { return rows_.values + i * rows_.stride; }
    LINRANK_INLINE void add_to(double *target, F64x8 delta) const {
        for (std::int64_t c = 0; c < n_; ++c)
            store8(target + 8 * c, load8<double>(target + 8 * c) + x_[c] * delta);
    }

    const DenseRows<Value> &rows_;
    std::int64_t n_;
    double *v_, *z_, *x_;
};

inline double load_lanes(const double *p, double) { return *p; }
inline F64x8 load_lanes(const double *p, F64x8) { return load8<double>(p); }
inline void store_lanes(double *p, double v) { *p = v; }
inline void store_lanes(double *p, F64x8 v) { store8(p, v); }

/// Of sparse rows, for one model (Lanes = double) or all lanes (F64x8): winner and loser one after the
/// other.
template <class Storage, class Lanes>
class SparseDifference {
    using Value = typename Storage::value_type;
    using Index = typename Storage::index_type;
    static constexpr std::int64_t width = sizeof(Lanes) / sizeof(double);

  public:
    static constexpr bool is_short = false;

    SparseDifference(const Storage &rows, const DescentBatch &batch)
        : rows_(rows), v_(batch.v), z_(batch.z), scratch_(batch.scratch) {}

    LINRANK_INLINE void prefetch_far(RowPair pair) const {
        ask_for(rows_.offsets + pair.winner);
        ask_for(rows_.offsets + pair.loser);
    }
    LINRANK_INLINE void prefetch(RowPair pair) const { prefetch_row(pair.winner), prefetch_row(pair.loser); }

    LINRANK_INLINE void take(RowPair pair) { winner_ = entries(pair.winner), loser_ = entries(pair.loser); }

    template <bool with_square>
    LINRANK_INLINE Lanes dot() const { return dot(winner_) - dot(loser_); }

    /// ‖x_winner‖² + ‖x_loser‖² - 2⟨x_winner, x_loser⟩, the winner spread out for the last.
    LINRANK_INLINE double square() const {
        double sum = 0;
        for (std::int64_t k = winner_.first; k < winner_.last; ++k) {
            const double x = double(rows_.values[k]);
            scratch_[rows_.columns[k]] = x;
            sum += x * x;
        }
        for (std::int64_t k = loser_.first; k < loser_.last; ++k) {
            const double x = double(rows_.values[k]);
            sum += x * (x - 2 * scratch_[rows_.columns[k]]);
        }
        for (std::int64_t k = winner_.first; k < winner_.last; ++k) scratch_[rows_.columns[k]] = 0;
        return sum > 0 ? sum : 0;
    }

    LINRANK_INLINE void add(Lanes delta) const { add_to(v_, winner_, delta), add_to(v_, loser_, -delta); }
    LINRANK_INLINE Lanes add_tracked(Lanes delta, Lanes) const {
        return add_measured(winner_, delta) + add_measured(loser_, -delta);
    }
    LINRANK_INLINE void add_to_average(Lanes weight) const {
        add_to(z_, winner_, weight), add_to(z_, loser_, -weight);
    }

  private:
    struct Entries {
        std::int64_t first, last;
    };
    LINRANK_INLINE Entries entries(std::int64_t i) const { return {rows_.offsets[i], rows_.offsets[i + 1]}; }

    LINRANK_INLINE void prefetch_row(std::int64_t i) const {
        const Entries e = entries(i);
        prefetch_lines(rows_.values + e.first, e.last - e.first);
        prefetch_lines(rows_.columns + e.first, e.last - e.first);
    }
    LINRANK_INLINE Lanes weights(std::int64_t k) const { return load_lanes(v_ + width * rows_.columns[k], Lanes{}); }

    LINRANK_INLINE Lanes dot(Entries e) const {
        // Four sums: each addition waits for the one before.
        Lanes s0{}, s1{}, s2{}, s3{};
        std::int64_t k = e.first;
        for (; k + 4 <= e.last; k += 4) {
            s0 += double(rows_.values[k]) * weights(k);
            s1 += double(rows_.values[k + 1]) * weights(k + 1);
            s2 += double(rows_.values[k + 2]) * weights(k + 2);
            s3 += double(rows_.values[k + 3]) * weights(k + 3);
        }
        for (; k < e.last; ++k) s0 += double(rows_.values[k]) * weights(k);
        return (s0 + s1) + (s2 + s3);
    }
    LINRANK_INLINE void add_to(double *target, Entries e, Lanes delta) const {
        for (std::int64_t k = e.first; k < e.last; ++k) {
            double *p = target + width * rows_.columns[k];
            store_lanes(p, load_lanes(p, Lanes{}) + double(rows_.values[k]) * delta);
        }
    }
    /// Columns of a row differ, so what an entry adds to ‖v‖² does not depend on the others.
    LINRANK_INLINE Lanes add_measured(Entries e, Lanes delta) const {
        Lanes grown{};
        for (std::int64_t k = e.first; k < e.last; ++k) {
            double *p = v_ + width * rows_.columns[k];
            const Lanes before = load_lanes(p, Lanes{}), step = double(rows_.values[k]) * delta;
            store_lanes(p, before + step);
            grown += step * (2.0 * before + step);
        }
        return grown;
    }

    const Storage &rows_;
    double *v_, *z_, *scratch_;
    Entries winner_{}, loser_{};
};

template <class Difference>
LINRANK_INLINE void look_ahead(const Difference &x, const DescentBatch &batch, std::int64_t k) {
    if (k + far < batch.n_known) x.prefetch_far(batch.pairs[k + far]);
    if (k + near < batch.n_known) x.prefetch(batch.pairs[k + near]);
}

// ---- one model -------------------------------------------------------------------------------------

/// v = 0 for the model of a lane; K v - z stays what it is.
void clear(const DescentBatch &batch, std::int64_t width, int lane) {
    const std::int64_t n = batch.n_columns;
    for (std::int64_t c = 0; c < n; ++c) {
        double &v = batch.v[c * width + lane];
        if (batch.z) batch.z[c * width + lane] -= batch.learners[lane].K * v;
        v = 0;
    }
}

/// Whether a has strayed so far from 1 that it has to be taken into v.
inline bool strays(const Learner &m) { return !(m.a > 0x1p-16 && m.a < 0x1p16); }

/// w = a v becomes w = v. The average is settled at the same time, z ← z - K v and K ← 0, which leaves
/// K v - z as it is: as long as old and new scales differ little, the difference loses no digits.
void fold(const DescentBatch &batch, std::int64_t width, int lane) {
    Learner &m = batch.learners[lane];
    for (std::int64_t c = 0; c < batch.n_columns; ++c) {
        double &v = batch.v[c * width + lane];
        if (batch.z) batch.z[c * width + lane] -= m.K * v;
        v *= m.a;
    }
    m.K = 0;
    m.square *= m.a * m.a;
    m.a = 1;
}

template <Algorithm algorithm, bool eager, class Square, class Clear>
inline double step(Learner &m, double dot, const Square &square, const Clear &clear_v) {
    if constexpr (algorithm == Algorithm::passive_aggressive)
        return passive_aggressive_step<eager>(m, dot, square);
    else if constexpr (algorithm == Algorithm::romma) return romma_step(m, dot, square, clear_v);
    else if constexpr (algorithm == Algorithm::logistic) return logistic_step(m, dot);
    else return hinge_step(m, dot);
}

template <Algorithm algorithm, bool averaged, class Difference, class Storage>
void descend(const Storage &rows, const DescentBatch &batch) {
    constexpr bool tracked = algorithm == Algorithm::pegasos || algorithm == Algorithm::romma;
    constexpr bool asks_for_square =
        algorithm == Algorithm::passive_aggressive || algorithm == Algorithm::romma;
    Learner m = batch.learners[0];
    Difference x(rows, batch);
    for (std::int64_t k = 0; k < batch.n_pairs; ++k) {
        look_ahead(x, batch, k);
        x.take(batch.pairs[k]);
        double dot = x.template dot<asks_for_square>();
        const double delta = step<algorithm, Difference::is_short>(m, dot, [&] { return x.square(); }, [&] {
            batch.learners[0].K = m.K;
            clear(batch, 1, 0);
            dot = 0;
        });
        if (Difference::is_short || delta != 0) {
            if constexpr (averaged) x.add_to_average(m.K * delta);
            if constexpr (tracked) m.square += x.add_tracked(delta, dot);
            else x.add(delta);
        }
        if constexpr (algorithm == Algorithm::pegasos) project(m);
        if constexpr (tracked) {
            if (strays(m)) {
                batch.learners[0] = m;
                fold(batch, 1, 0);
                m = batch.learners[0];
            }
        }
        if constexpr (averaged) count_iterate(m, batch.average, m.scale());
    }
    batch.learners[0] = m;
}

template <Algorithm algorithm, class Difference, class Storage>
void descend_averaged(const Storage &rows, const DescentBatch &batch) {
    if (batch.z) descend<algorithm, true, Difference>(rows, batch);
    else descend<algorithm, false, Difference>(rows, batch);
}

template <class Storage> struct OneDifference;
template <class Value> struct OneDifference<DenseRows<Value>> {
    using type = DenseDifference<Value>;
};
template <class Value, class Index> struct OneDifference<CsrRows<Value, Index>> {
    using type = SparseDifference<CsrRows<Value, Index>, double>;
};

// ---- eight models ----------------------------------------------------------------------------------

template <class Storage> struct LanesDifference;
template <class Value> struct LanesDifference<DenseRows<Value>> {
    using type = DenseLanesDifference<Value>;
};
template <class Value, class Index> struct LanesDifference<CsrRows<Value, Index>> {
    using type = SparseDifference<CsrRows<Value, Index>, F64x8>;
};

template <class Square, class Clear>
inline double step_of(Learner &m, double dot, const Square &square, const Clear &clear_v) {
    switch (m.algorithm) {
        case Algorithm::passive_aggressive: return passive_aggressive_step<false>(m, dot, square);
        case Algorithm::romma: return romma_step(m, dot, square, clear_v);
        case Algorithm::logistic: return logistic_step(m, dot);
        default: return hinge_step(m, dot);
    }
}

/// Models of any rules: the scalars lane by lane.
template <class Difference, class Storage>
void descend_mixed(const Storage &rows, const DescentBatch &batch) {
    Difference x(rows, batch);
    for (std::int64_t k = 0; k < batch.n_pairs; ++k) {
        look_ahead(x, batch, k);
        x.take(batch.pairs[k]);
        F64x8 dot = x.template dot<false>(), delta{}, weight{};
        double xx = -1;
        const auto square = [&] { return xx < 0 ? xx = x.square() : xx; };
        bool moves = false;
        for (int lane = 0; lane < batch.n_models; ++lane) {
            Learner &m = batch.learners[lane];
            delta[lane] = step_of(m, dot[lane], square, [&] {
                clear(batch, lanes, lane);
                dot[lane] = 0;
            });
            weight[lane] = m.K * delta[lane];
            moves |= delta[lane] != 0;
        }
        F64x8 grown{};
        if (moves) {
            if (batch.z) x.add_to_average(weight);
            grown = x.add_tracked(delta, dot);
        }
        for (int lane = 0; lane < batch.n_models; ++lane) {
            Learner &m = batch.learners[lane];
            m.square += grown[lane];
            if (m.algorithm == Algorithm::pegasos) project(m);
            if (strays(m)) fold(batch, lanes, lane);
            if (batch.z) count_iterate(m, batch.average, m.scale());
        }
    }
}

/// hinge_step, project and count_iterate for all lanes at once.
struct HingeLanes {
    F64x8 strength, a, t, square, K, total, loss, n_updates;
    I64x8 active, projects;

    explicit HingeLanes(const DescentBatch &batch) { load(batch); }

    void load(const DescentBatch &batch) {
        strength = a = t = F64x8{} + 1.0;
        square = K = total = loss = n_updates = F64x8{};
        active = projects = I64x8{};
        for (int lane = 0; lane < batch.n_models; ++lane) {
            const Learner &m = batch.learners[lane];
            strength[lane] = m.strength, a[lane] = m.a, t[lane] = m.t, square[lane] = m.square;
            K[lane] = m.K, total[lane] = m.total, loss[lane] = m.loss;
            n_updates[lane] = double(m.n_updates);
            active[lane] = -1;
            projects[lane] = m.algorithm == Algorithm::pegasos ? -1 : 0;
        }
    }
    void store(const DescentBatch &batch) const {
        for (int lane = 0; lane < batch.n_models; ++lane) {
            Learner &m = batch.learners[lane];
            m.a = a[lane], m.t = t[lane], m.square = square[lane];
            m.K = K[lane], m.total = total[lane], m.loss = loss[lane];
            m.n_updates = std::int64_t(n_updates[lane]);
        }
    }

    F64x8 step(F64x8 dot) {
        const F64x8 bound = strength * t, margin = a * dot;
        t += 1.0;
        const I64x8 violated = active & ((margin < bound) | (bound == 0.0));
        const F64x8 slack = bound > 0.0 ? 1.0 - margin / bound : F64x8{} + 1.0;
        loss += violated ? slack : F64x8{};
        n_updates += violated ? F64x8{} + 1.0 : F64x8{};
        return violated ? 1.0 / a : F64x8{};
    }
    void project() {
        const F64x8 limit = strength * t * t;
        const I64x8 outside = projects & (a * a * square > limit);
        if (!any(outside)) return;
        for (int lane = 0; lane < lanes; ++lane)
            if (outside[lane]) a[lane] = __builtin_sqrt(limit[lane] / square[lane]);
    }
    void count_iterate(Average average) {
        const F64x8 weight = average == Average::uniform ? F64x8{} + 1.0 : t;
        K += weight * a / (strength * t);
        total += weight;
    }
    bool stray() const { return any(active & ~((a > 0x1p-16) & (a < 0x1p16))); }

    static bool any(I64x8 mask) {
        std::int64_t sum = 0;
        for (int lane = 0; lane < lanes; ++lane) sum |= mask[lane];
        return sum != 0;
    }
};

template <class Difference, class Storage>
void descend_hinge(const Storage &rows, const DescentBatch &batch) {
    HingeLanes models(batch);
    Difference x(rows, batch);
    for (std::int64_t k = 0; k < batch.n_pairs; ++k) {
        look_ahead(x, batch, k);
        x.take(batch.pairs[k]);
        const F64x8 dot = x.template dot<false>(), delta = models.step(dot);
        if (HingeLanes::any(delta != 0.0)) {
            if (batch.z) x.add_to_average(models.K * delta);
            models.square += x.add_tracked(delta, dot);
        }
        models.project();
        if (models.stray()) {
            models.store(batch);
            for (int lane = 0; lane < batch.n_models; ++lane)
                if (strays(batch.learners[lane])) fold(batch, lanes, lane);
            models.load(batch);
        }
        if (batch.z) models.count_iterate(batch.average);
    }
    models.store(batch);
}

}  // namespace

template <class Storage>
void descend_one(const Storage &rows, const DescentBatch &batch) {
    using Difference = typename OneDifference<Storage>::type;
    switch (batch.learners[0].algorithm) {
        case Algorithm::sgd_svm: return descend_averaged<Algorithm::sgd_svm, Difference>(rows, batch);
        case Algorithm::pegasos: return descend_averaged<Algorithm::pegasos, Difference>(rows, batch);
        case Algorithm::passive_aggressive:
            return descend_averaged<Algorithm::passive_aggressive, Difference>(rows, batch);
        case Algorithm::romma: return descend_averaged<Algorithm::romma, Difference>(rows, batch);
        case Algorithm::logistic: return descend_averaged<Algorithm::logistic, Difference>(rows, batch);
    }
}

template <class Storage>
void descend_lanes(const Storage &rows, const DescentBatch &batch) {
    using Difference = typename LanesDifference<Storage>::type;
    for (int lane = 0; lane < batch.n_models; ++lane) {
        const Algorithm algorithm = batch.learners[lane].algorithm;
        if (algorithm != Algorithm::sgd_svm && algorithm != Algorithm::pegasos)
            return descend_mixed<Difference>(rows, batch);
    }
    descend_hinge<Difference>(rows, batch);
}

#define LINRANK_DESCENT(...)                                                       \
    template void descend_one(const __VA_ARGS__ &, const DescentBatch &);          \
    template void descend_lanes(const __VA_ARGS__ &, const DescentBatch &);
LINRANK_DESCENT(DenseRows<float>)
LINRANK_DESCENT(DenseRows<double>)
LINRANK_DESCENT(CsrRows<float, std::int32_t>)
LINRANK_DESCENT(CsrRows<double, std::int32_t>)
LINRANK_DESCENT(CsrRows<float, std::int64_t>)
LINRANK_DESCENT(CsrRows<double, std::int64_t>)

}  // namespace linrank::LINRANK_ISA
