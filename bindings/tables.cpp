// Columns of tables, as Arrow lays them out, into rows.
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "interleave.hpp"
#include "module.hpp"

namespace {

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bits = Vector<std::uint8_t>;
template <class Value>
using Target = nb::ndarray<Value, nb::ndim<2>, nb::device::cpu>;

template <class... Types>
TableColumn::Values typed(const AnyVector &column, std::variant<const Types *...>) {
    TableColumn::Values values;
    const bool known = ((column.dtype() == nb::dtype<Types>() &&
                         (values = static_cast<const Types *>(column.data()), true)) ||
                        ...);
    if (!known) throw std::invalid_argument("a column is of a type that is no plain number");
    return values;
}

template <class Value>
std::tuple<bool, bool> interleave(const nb::list &columns, const nb::list &valid,
                                  Vector<std::int64_t> first_bit, Target<Value> out, int n_threads) {
    const auto n_rows = static_cast<std::int64_t>(out.shape(0));
    const std::size_t n_columns = out.shape(1);
    require_length(nb::len(columns), std::int64_t(n_columns), "columns");
    require_length(nb::len(valid), std::int64_t(n_columns), "valid");
    require_length(first_bit.shape(0), std::int64_t(n_columns), "first_bit");
    if (n_rows > 0 && n_columns > 1 && out.stride(1) != 1)
        throw std::invalid_argument("rows must be contiguous");
    std::vector<AnyVector> held;  // the arrays live as long as the copying
    std::vector<Bits> bits;
    std::vector<TableColumn> parts;
    for (std::size_t j = 0; j < n_columns; ++j) {
        held.push_back(nb::cast<AnyVector>(columns[j], false));
        require_length(held.back().shape(0), n_rows, "a column");
        TableColumn part{typed(held.back(), TableColumn::Values()), nullptr, first_bit(j)};
        if (!valid[j].is_none()) {
            bits.push_back(nb::cast<Bits>(valid[j], false));
            const auto n_bits = 8 * std::int64_t(bits.back().shape(0));
            if (part.first_bit < 0 || n_rows > n_bits || part.first_bit > n_bits - n_rows)
                throw std::invalid_argument("a validity bitmap is too short");
            part.valid = bits.back().data();
        }
        parts.push_back(part);
    }
    const std::int64_t stride = n_rows > 1 ? out.stride(0) : std::int64_t(n_columns);
    const Specials seen = unlocked(
        [&] { return interleave_columns<Value>(parts, n_rows, out.data(), stride, n_threads); });
    return {seen.missing, seen.infinite};
}

}  // namespace

void bind_tables(nb::module_ &m) {
    const auto bind = [&](auto function) {
        m.def("interleave_columns", function, nb::arg("columns"), nb::arg("valid"),
              nb::arg("first_bit").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
              "Columns into the rows of `out`, NaN where a bit of `valid` is 0: whether any is NaN, "
              "and whether any is infinite.");
    };
    bind(&interleave<float>);
    bind(&interleave<double>);
}
