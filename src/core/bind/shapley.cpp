// Python's view of explain/shapley.hpp.
#include "explain/shapley.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ShapleyValues = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

Table table(AnyArray object, const char* name) {
    Table out;
    if (!nb::try_cast(object, out, false)) refuse(name, "must be a C-contiguous two-dimensional float64 array");
    check_alignment(out, name);
    return out;
}

void expect_columns(const Table& array, const char* name, std::size_t columns) {
    if (array.shape(1) != columns) {
        refuse(name, "has " + std::to_string(array.shape(1)) + " columns, but " + std::to_string(columns) + " are needed");
    }
}

void shapley_add(AnyArray values, AnyArray rows, AnyArray background, AnyArray weights, AnyArray vectors,
                 AnyArray coefficients, AnyArray rates, AnyArray polynomial, int n_threads,
                 AnyArray starts) {
    check_threads(n_threads);
    const Table rows_ = table(rows, "rows"), background_ = table(background, "background");
    const Table vectors_ = table(vectors, "vectors"), coefficients_ = table(coefficients, "coefficients");
    const Table rates_ = table(rates, "rates");
    const std::size_t d = rows_.shape(1);
    expect_columns(background_, "background", d);
    expect_columns(vectors_, "vectors", d);
    expect_columns(coefficients_, "coefficients", vectors_.shape(0));
    expect_columns(rates_, "rates", d);
    if (rates_.shape(0) != mercer::kRates) refuse("rates", "must have four rows");
    const auto weights_ = vector<const double>(weights, "weights", background_.shape(0));
    const auto polynomial_ = vector<const double>(polynomial, "polynomial");
    if (polynomial_.shape(0) < 1 || polynomial_.shape(0) > mercer::kMaxSeries) {
        refuse("polynomial", "must have 1 to " + std::to_string(mercer::kMaxSeries) + " elements");
    }
    std::vector<std::int64_t> ends(d + 1);  // every feature is a player, unless told otherwise
    std::iota(ends.begin(), ends.end(), std::int64_t{0});
    if (!starts.is_none()) {
        const auto starts_ = vector<const std::int64_t>(starts, "starts");
        ends.assign(starts_.data(), starts_.data() + starts_.shape(0));
        const bool rising = std::is_sorted(ends.begin(), ends.end());
        if (ends.empty() || !rising || ends.front() != 0 || ends.back() != static_cast<std::int64_t>(d)) {
            refuse("starts", "must rise from 0 to the number of features");
        }
    }
    const std::size_t players = ends.size() - 1;
    ShapleyValues values_;
    if (!nb::try_cast(values, values_, false) || values_.shape(0) != rows_.shape(0) ||
        values_.shape(1) != coefficients_.shape(0) || values_.shape(2) != players) {
        refuse("values", "must be a writable C-contiguous float64 array of shape (rows, outputs, players)");
    }
    check_alignment(values_, "values");
    const mercer::ShapleyProblem problem{.rows = rows_.data(),
                                         .background = background_.data(),
                                         .weights = weights_.data(),
                                         .vectors = vectors_.data(),
                                         .coefficients = coefficients_.data(),
                                         .n_rows = static_cast<std::int64_t>(rows_.shape(0)),
                                         .m = static_cast<std::int64_t>(background_.shape(0)),
                                         .n = static_cast<std::int64_t>(vectors_.shape(0)),
                                         .d = static_cast<std::int64_t>(d),
                                         .outputs = static_cast<std::int64_t>(coefficients_.shape(0)),
                                         .starts = ends.data(),
                                         .players = static_cast<std::int64_t>(players),
                                         .rates = rates_.data(),
                                         .polynomial = polynomial_.data(),
                                         .order = static_cast<std::int64_t>(polynomial_.shape(0)) - 1};
    const mercer::Level& level = mercer::level();
    Signals signals;
    const nb::gil_scoped_release unlocked;
    mercer::add_shapley(problem, values_.data(), {n_threads, level, signals.poll()});
}

}  // namespace

void bind_shapley(nb::module_& m) {
    m.def("shapley_add", &shapley_add, "values"_a, "rows"_a, "background"_a, "weights"_a,
          "vectors"_a, "coefficients"_a, "rates"_a, "polynomial"_a, "n_threads"_a,
          "starts"_a.none() = nb::none(),
          "Add the Shapley values of sum_i coefficients_i k(x, vectors_i) at rows, of shape (rows, outputs, players).\n\n"
          "k is a product over the features (mercer/kernels/terms.py): `rates` has its four rows of exponents, `polynomial` "
          "the coefficients of the powers of the inner product. Features starts[p] to starts[p + 1] are player p together; "
          "without `starts` each is one. The result does not depend on n_threads.");
}
