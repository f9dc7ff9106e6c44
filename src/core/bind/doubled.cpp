// Python's view of gram/doubled_squares.hpp.
#include "gram/doubled_squares.hpp"

#include <nanobind/stl/string.h>

#include "algebra/rounding.hpp"
#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

using DoubledTable = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

DoubledTable doubled_table(AnyArray object, const char* name) {
    DoubledTable out;
    if (!nb::try_cast(object, out, false)) refuse(name, "must be a C-contiguous two-dimensional float64 array");
    check_alignment(out, name);
    return out;
}

mercer::DoubledInner inner_of(const std::string& name) {
    if (name == "dot") return mercer::kDoubledProduct;
    if (name == "sqdist") return mercer::kDoubledSquares;
    if (name == "l1") return mercer::kDoubledAbsolute;
    refuse("inner", "must be 'dot', 'sqdist' or 'l1', got '" + name + "'");
}

TupleOf<Doubles, Doubles> doubled_squares(AnyArray X, AnyArray C, std::int64_t first, std::int64_t end,
                                          const std::string& inner, double gamma, double coef0, std::int64_t degree,
                                          double scale, double constant, int n_threads) {
    const DoubledTable x = doubled_table(X, "X"), c = doubled_table(C, "C");
    const auto n = static_cast<std::int64_t>(x.shape(0)), outputs = static_cast<std::int64_t>(c.shape(1));
    if (c.shape(0) != x.shape(0)) refuse("C", "must have as many rows as X");
    if (first < 0 || first % mercer::kDoubledBlock != 0) refuse("first", "must be a multiple of 64");
    if (end < first || end > n) refuse("end", "must lie between first and the number of rows");
    if (degree < 0) refuse("degree", "must not be negative");
    if (!(gamma >= 0.0) && inner != "dot") refuse("gamma", "must not be negative");
    check_threads(n_threads);
    const mercer::DoubledKernel kernel{inner_of(inner), inner != "dot", gamma, coef0, scale, constant, degree};
    const auto size = static_cast<std::size_t>(mercer::ceil_div(end - first, mercer::kDoubledBlock) * outputs);
    std::vector<double> high(size), low(size);
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::doubled_squares(kernel, x.data(), n, static_cast<std::int64_t>(x.shape(1)), c.data(), outputs, first, end,
                                high.data(), low.data(), {n_threads, mercer::level(), signals.poll()});
    }
    return nb::make_tuple(as_array(std::move(high)), as_array(std::move(low)));
}

}  // namespace

void bind_doubled(nb::module_& m) {
    m.def("doubled_squares", &doubled_squares, "X"_a, "C"_a, "first"_a, "end"_a, "inner"_a, "gamma"_a, "coef0"_a,
          "degree"_a, "scale"_a, "constant"_a, "n_threads"_a,
          "The share of rows first to end, with themselves and those after them, in c'Kc for each column c of C, in twice "
          "the precision: high + low, whose elements are the shares of 64 rows, all outputs of these side by side.\n\n"
          "k is scale * exp(-gamma * t) + constant, or of inner products scale * (gamma * t + coef0)^degree + constant. The "
          "result does not depend on n_threads.");
}
