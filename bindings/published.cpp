// The published ways of counting.
#include <nanobind/stl/string.h>

#include "module.hpp"
#include "points.hpp"
#include "published/explicit_pairs.hpp"
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

}  // namespace

void bind_published(nb::module_ &m) {
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
