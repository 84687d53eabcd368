// Preferences: pairs listed one by one.
#include <nanobind/stl/string.h>

#include "module.hpp"
#include "points.hpp"
#include "preferences.hpp"

namespace {

struct BoundPreferences {
    std::shared_ptr<PreferenceList> list;
};

struct BoundPreferencePoint {
    std::shared_ptr<PreferencePoint> point;
    nb::object list;  // what the point looks at
};

BoundPreferences preference_list(Vector<std::int64_t> winners, Vector<std::int64_t> losers,
                                 std::optional<Vector<double>> weight, std::int64_t n_rows) {
    const auto n = std::int64_t(winners.shape(0));
    require_length(losers.shape(0), n, "losers");
    if (weight) require_length(weight->shape(0), n, "weight");
    if (n_rows < 0) throw std::invalid_argument("n_rows is negative");
    for (const auto &side : {span_of(winners), span_of(losers)})
        for (const std::int64_t i : side)
            if (i < 0 || i >= n_rows)
                throw std::invalid_argument("a preference names a row that does not exist");
    return {unlocked([&] {
        return std::make_shared<PreferenceList>(span_of(winners), span_of(losers), span_of(weight),
                                                n_rows);
    })};
}

}  // namespace

void bind_preferences(nb::module_ &m) {
    nb::class_<BoundPreferences>(m, "PreferenceList", "Preferences by winner, loser and weight.");
    m.def("preference_list", &preference_list, nb::arg("winners").noconvert(),
          nb::arg("losers").noconvert(), nb::arg("weight").noconvert().none(), nb::arg("n_rows"));
    auto point = nb::class_<BoundPreferencePoint>(m, "PreferencePoint",
                                                  "Loss of listed preferences at given scores.");
    bind_point(point);
    bind_errors(point);
    point.def_prop_ro("inner_slacks",
                      [](const BoundPreferencePoint &p) { return p.point->inner_slacks; });
    point.def_prop_ro("total_curvature",
                      [](const BoundPreferencePoint &p) { return p.point->total_curvature; });
    point.def("multiply", [](const BoundPreferencePoint &p, Vector<double> v, int n_threads) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert(), nb::arg("n_threads"));
    m.def("preference_point", [](nb::handle_t<BoundPreferences> list, const std::string &loss,
                                 double epsilon, Vector<double> z, int n_threads) {
        const PreferenceList &l = *nb::cast<const BoundPreferences &>(list).list;
        require_length(z.shape(0), l.n_rows(), "z");
        const PairLoss kind = pair_loss(loss, epsilon);
        return BoundPreferencePoint{unlocked([&] {
            return std::make_shared<PreferencePoint>(l, kind, span_of(z), n_threads);
        }), nb::borrow(list)};
    }, nb::arg("list"), nb::arg("loss"), nb::arg("epsilon"), nb::arg("z").noconvert(),
       nb::arg("n_threads"));
    const auto dense = [](const BoundRows &rows, const OptionalOrder &order,
                          const BoundPreferencePoint &point, int n_threads, auto function) {
        const Positions x(rows, order);
        require_length(point.point->gradient.size(), x.size(), "the point");
        const nb::gil_scoped_release release;
        return function(x.rows, x.order, *point.point, n_threads);
    };
    using Function = std::vector<double> (*)(const Rows &, Order, const PreferencePoint &, int);
    m.def("preference_hessian_matrix", [dense](const BoundRows &rows, OptionalOrder order,
                                               const BoundPreferencePoint &point, int n_threads) {
        return to_numpy(dense(rows, order, point, n_threads, Function(hessian_matrix)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
       "H in full, flattened.");
    m.def("preference_hessian_diagonal", [dense](const BoundRows &rows, OptionalOrder order,
                                                 const BoundPreferencePoint &point, int n_threads) {
        return to_numpy(dense(rows, order, point, n_threads, Function(hessian_diagonal)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
       "The diagonal of H.");
}
