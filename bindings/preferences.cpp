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
    bind_visited_point(m, point, "preference_hessian_matrix", "preference_hessian_diagonal");
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
}
