// The published ways of counting.
#include <nanobind/stl/string.h>

#include "module.hpp"
#include "points.hpp"
#include "published/explicit_pairs.hpp"
#include "published/factor_pairs.hpp"
#include "published/point.hpp"

namespace {

struct BoundPublishedPoint {
    std::shared_ptr<published::PublishedPoint> point;
    nb::object problem;
};

struct BoundPairList {
    std::shared_ptr<published::ExplicitPairs> list;
    nb::object problem;
};

struct BoundPairListPoint {
    std::shared_ptr<published::ExplicitPairsPoint> point;
    nb::object list;
};

template <class Bound>
void bind_published_point(nb::class_<Bound> c) {
    bind_point(c);
    c.def("multiply", [](const Bound &p, Vector<double> v) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert());
}

void check_published(const PairProblem &pairs) {
    if (!pairs.gain.empty() || pairs.adjacent)
        throw std::invalid_argument("the published methods count all pairs, without gains");
}

using Changed = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ChangedRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

published::PairWork pair_work(const std::string &name) {
    if (name == "by_pair") return published::PairWork::by_pair;
    if (name == "by_row") return published::PairWork::by_row;
    throw std::invalid_argument("there is no work '" + name + "'; know by_pair and by_row");
}

/// Calls work(problem, V, beta), all lengths checked.
template <class Work>
double with_factors(const BoundRows &rows, const OptionalOrder &order, const BoundProblem &problem,
                    const Vector<double> &largest, const ChangedRows &V, const Changed &beta,
                    const Work &work) {
    const Positions x(rows, order);
    const PairProblem &pairs = problem.checked(largest, "largest");
    for (const double bound : span_of(largest))
        if (!(bound >= 0.0)) throw std::invalid_argument("largest has an entry that is negative or NaN");
    check_published(pairs);
    require_length(std::size_t(x.size()), pairs.n_rows(), "rows");
    require_length(V.shape(0), pairs.n_rows(), "V");
    require_length(beta.shape(0), n_columns(rows.rows), "beta");
    const published::FactorPairs factors{x.rows, x.order, pairs, std::int64_t(V.shape(1)),
                                         span_of(largest)};
    return unlocked([&] {
        return work(factors, std::span<double>(V.data(), V.size()),
                    std::span<double>(beta.data(), beta.shape(0)));
    });
}

void bind_factor_pairs(nb::module_ &m) {
    m.def("factor_start", [](const BoundRows &rows, OptionalOrder order, const BoundProblem &problem,
                             Vector<double> largest, ChangedRows V, Changed beta) {
        return with_factors(rows, order, problem, largest, V, beta,
                            [](const auto &p, auto v, auto b) { return published::factor_start(p, v, b); });
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("problem"),
       nb::arg("largest").noconvert(), nb::arg("V").noconvert(), nb::arg("beta").noconvert(),
       "beta = sum of <v_i, v_j> (x_i - x_j) over the pairs; returns the sum of <v_i, v_j>.");
    m.def("factor_epoch", [](const BoundRows &rows, OptionalOrder order, const BoundProblem &problem,
                             Vector<double> largest, ChangedRows V, Changed beta,
                             const std::string &work, double rate) {
        const published::PairWork how = pair_work(work);
        return with_factors(rows, order, problem, largest, V, beta, [=](const auto &p, auto v, auto b) {
            return published::factor_epoch(p, how, rate, v, b);
        });
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("problem"),
       nb::arg("largest").noconvert(), nb::arg("V").noconvert(), nb::arg("beta").noconvert(),
       nb::arg("work"), nb::arg("rate"),
       "A projected step of every query, V and beta in place; returns the sum of <v_i, v_j>.");
}

}  // namespace

void bind_published(nb::module_ &m) {
    bind_factor_pairs(m);
    nb::class_<BoundPublishedPoint> point(m, "PublishedPoint",
                                          "Pair loss at given scores by a published way of counting.");
    bind_published_point(point);
    point.def_prop_ro("hinge_gradient", [](nb::handle_t<BoundPublishedPoint> self) {
        const auto &p = *nb::cast<const BoundPublishedPoint &>(self).point;
        return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(
            p.hinge_gradient.data(), {p.hinge_gradient.size()}, self);
    }, "A sub-gradient of sum_of_slacks.");
    m.def("published_point", [](nb::handle_t<BoundProblem> problem, Vector<double> z,
                                const std::string &counting) {
        const PairProblem &pairs = nb::cast<const BoundProblem &>(problem).checked(z);
        check_published(pairs);
        const published::Count count = published::counting(counting);
        return BoundPublishedPoint{unlocked([&] {
            return std::make_shared<published::PublishedPoint>(pairs, span_of(z), count);
        }), nb::borrow(problem)};
    }, nb::arg("problem"), nb::arg("z").noconvert(), nb::arg("counting"));

    nb::class_<BoundPairList>(m, "ExplicitPairs", "All pairs of a problem, written down.")
        .def("__len__", [](const BoundPairList &p) { return p.list->pairs.size(); });
    m.def("explicit_pairs", [](nb::handle_t<BoundProblem> problem) {
        const PairProblem &p = nb::cast<const BoundProblem &>(problem).problem;
        check_published(p);
        return BoundPairList{unlocked([&] { return std::make_shared<published::ExplicitPairs>(p); }),
                             nb::borrow(problem)};
    }, nb::arg("problem"));
    bind_published_point(nb::class_<BoundPairListPoint>(m, "ExplicitPairsPoint",
                                                        "Squared hinge over explicit pairs."));
    m.def("explicit_pairs_point", [](nb::handle_t<BoundPairList> pairs, Vector<double> z) {
        const auto &list = *nb::cast<const BoundPairList &>(pairs).list;
        require_length(z.shape(0), list.problem.n_rows(), "z");
        return BoundPairListPoint{unlocked([&] {
            return std::make_shared<published::ExplicitPairsPoint>(list, span_of(z));
        }), nb::borrow(pairs)};
    }, nb::arg("pairs"), nb::arg("z").noconvert());
}
