// Any bytes as the three arrays of sparse rows, as model files and stores hold them. Rows that pass the check
// can be used: products and kernels stay inside the arrays, and equal those of plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "fuzzing.hpp"
#include "kernel_matrix.hpp"
#include "products.hpp"
#include "rows.hpp"

using namespace linrank;
using fuzzing::Bytes;
using fuzzing::require;

namespace {

fuzzing::Arena arena;

/// Mostly small, now and then of any size.
std::int64_t number(Bytes &bytes) {
    const auto small = bytes.take<std::int8_t>();
    return small == -128 ? bytes.take<std::int64_t>() : small;
}

template <class Value>
struct Arrays {
    std::span<Value> values;
    std::span<std::int32_t> columns;
    std::span<std::int64_t> offsets;
    std::int64_t n_columns;

    explicit Arrays(Bytes &bytes)
        : values(arena.take<Value>(bytes.below(24))), columns(arena.take<std::int32_t>(values.size())),
          offsets(arena.take<std::int64_t>(bytes.below(12))), n_columns(number(bytes)) {
        for (std::int64_t &offset : offsets) offset = number(bytes);
        for (std::int32_t &column : columns) column = static_cast<std::int32_t>(number(bytes));
        for (Value &value : values) {
            const auto small = bytes.take<std::int8_t>();
            value = small == -128 ? bytes.take<Value>() : Value(small) / 4;
        }
    }
    CsrRows<Value> rows() const {
        return {values.data(), columns.data(), offsets.data(), static_cast<std::int64_t>(offsets.size()) - 1,
                n_columns};
    }
};

/// The numbers of plain loops are exact: those of the input are small, and halves or quarters.
template <class Value>
void check_products(const CsrRows<Value> &x) {
    const auto w = arena.take<double>(static_cast<std::size_t>(x.n_columns));
    const auto r = arena.take<double>(static_cast<std::size_t>(x.n_rows));
    const auto z = arena.take<double>(r.size());
    const auto expected_z = arena.take<double>(r.size()), expected_g = arena.take<double>(w.size());
    for (std::size_t j = 0; j < w.size(); ++j) w[j] = static_cast<double>(j % 5) - 2.0, expected_g[j] = 0.0;
    bool exact = true;
    for (std::size_t i = 0; i < r.size(); ++i) {
        r[i] = static_cast<double>(i % 3) - 1.0;
        expected_z[i] = 0.0;
        for (auto k = static_cast<std::size_t>(x.offsets[i]); k < static_cast<std::size_t>(x.offsets[i + 1]); ++k) {
            const auto j = static_cast<std::size_t>(x.columns[k]);
            expected_z[i] += static_cast<double>(x.values[k]) * w[j];
            expected_g[j] += static_cast<double>(x.values[k]) * r[i];
            exact = exact && std::abs(x.values[k]) <= 32 && x.values[k] * 4 == std::floor(x.values[k] * 4);
        }
    }
    multiply({Rows(x)}, w, z, 1);
    const std::vector<double> g = multiply_transposed({Rows(x)}, r, 1);
    for (std::size_t i = 0; i < r.size(); ++i) require(!exact || z[i] == expected_z[i], "z = Xw");
    for (std::size_t j = 0; j < w.size(); ++j) require(!exact || g[j] == expected_g[j], "g = X'r");
}

template <class Value>
void check_kernels(const CsrRows<Value> &x) {
    const auto n = static_cast<std::size_t>(x.n_rows);
    const KernelFunction f{KernelKind::rbf, 0.5, 0, 0.0};
    const Rows rows(x), copy(x);
    const PageArray<double> whole = kernel_matrix(f, rows, copy, 1), half = kernel_matrix(f, rows, rows, 1);
    const std::vector<double> diagonal = kernel_diagonal(f, rows, 1);
    if (!std::all_of(x.values, x.values + x.offsets[n], [](Value v) { return std::abs(v) < Value(1e15); }))
        return;  // squares that overflow make NaN, which the caller refuses
    require(fuzzing::same(whole.view(), half.view()), "K(A, A) by pairs");
    for (std::size_t i = 0; i < n; ++i)
        require(whole[i * n + i] == 1.0 && diagonal[i] == 1.0, "k(a, a) = 1");
}

template <class Value>
void test_one(Bytes &bytes) {
    const Arrays<Value> arrays(bytes);
    try {
        check_csr(arrays.values.size(), arrays.columns, arrays.offsets, arrays.n_columns, 0);
    } catch (const std::invalid_argument &) {
        return;
    }
    const CsrRows<Value> x = arrays.rows();
    const bool sorted = columns_increase(Rows(x), 1);
    const auto bad = first_non_finite(Rows(x), 1);
    bool finite = true;
    for (std::int64_t k = 0; k < x.offsets[x.n_rows]; ++k) finite = finite && std::isfinite(x.values[k]);
    require(bad.has_value() != finite, "NaN and infinities are found");
    if (!sorted || bad || x.n_columns > 1000) return;  // no model and no data set has such rows, or so few
    check_products(x);
    check_kernels(x);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    arena.clear();
    Bytes bytes({reinterpret_cast<const char *>(data), size});
    if (bytes.below(2) == 0) test_one<float>(bytes);
    else test_one<double>(bytes);
    return 0;
}
