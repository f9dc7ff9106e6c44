// Python's view of algebra/band.hpp and algebra/symmetric_product.hpp.
#include "algebra/band.hpp"
#include "algebra/symmetric_product.hpp"
#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

void band_squares(AnyArray factors, AnyArray Q, AnyArray squares, int n_threads) {
    nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> l;
    nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> q;
    nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out;
    if (!nb::try_cast(factors, l, false)) refuse("factors", "must be a C-contiguous three-dimensional float64 array");
    if (!nb::try_cast(Q, q, false)) refuse("Q", "must be a C-contiguous two-dimensional float64 array");
    if (!nb::try_cast(squares, out, false)) {
        refuse("squares", "must be a C-contiguous two-dimensional float64 array that can be written to");
    }
    check_alignment(l, "factors");
    check_alignment(q, "Q");
    check_alignment(out, "squares");
    if (l.shape(2) == 0) refuse("factors", "must have at least the main diagonal");
    if (q.shape(0) != l.shape(1)) refuse("Q", "must have as many rows as each factor");
    if (out.shape(0) != q.shape(1) || out.shape(1) != l.shape(0)) {
        refuse("squares", "must have a row for each column of Q and a column for each factor");
    }
    check_threads(n_threads);
    Signals signals;
    const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
    const nb::gil_scoped_release unlocked;
    mercer::band_squares(l.data(), static_cast<std::int64_t>(l.shape(0)), static_cast<std::int64_t>(l.shape(1)),
                         static_cast<std::int64_t>(l.shape(2)) - 1, q.data(), static_cast<std::int64_t>(q.shape(1)),
                         out.data(), threads);
}

// A matrix with contiguous columns.
template <class T>
auto by_columns(AnyArray object, const char* name) {
    nb::ndarray<T, nb::ndim<2>, nb::device::cpu> matrix;
    if (!nb::try_cast(object, matrix, false)) refuse(name, "must be a two-dimensional float64 array");
    if (matrix.shape(0) > 1 && matrix.stride(0) != 1) refuse(name, "must have contiguous columns");
    if (matrix.shape(1) > 1 && matrix.stride(1) < static_cast<std::int64_t>(matrix.shape(0))) {
        refuse(name, "must have columns that do not overlap");
    }
    check_alignment(matrix, name);
    return matrix;
}

void symmetric_product(AnyArray A, AnyArray V, AnyArray out, int n_threads) {
    const auto a = by_columns<const double>(A, "A"), v = by_columns<const double>(V, "V");
    const auto to = by_columns<double>(out, "out");
    const std::size_t m = a.shape(0);
    if (a.shape(1) != m) refuse("A", "must be square");
    if (v.shape(0) != m) refuse("V", "must have as many rows as A");
    if (to.shape(0) != m || to.shape(1) != v.shape(1)) refuse("out", "must have the shape of V");
    if (to.shape(1) > 1 && to.stride(1) != static_cast<std::int64_t>(m)) refuse("out", "must be Fortran-contiguous");
    check_threads(n_threads);
    Signals signals;
    const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
    const nb::gil_scoped_release unlocked;
    mercer::symmetric_product(a.data(), a.stride(1), static_cast<std::int64_t>(m), v.data(), v.stride(1),
                              static_cast<std::int64_t>(v.shape(1)), to.data(), threads);
}

}  // namespace

void bind_band(nb::module_& m) {
    m.def("band_squares", &band_squares, "factors"_a, "Q"_a, "squares"_a, "n_threads"_a,
          "squares[i, l] = ||L^-1 q||^2 for column i of Q and the band matrix L in factors[l].");
    m.def("symmetric_product", &symmetric_product, "A"_a, "V"_a, "out"_a, "n_threads"_a,
          "out = AV for a symmetric A with contiguous columns, of which the lower triangle is read.");
}
