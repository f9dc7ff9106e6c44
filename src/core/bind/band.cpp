// Python's view of algebra/band.hpp.
#include "algebra/band.hpp"
#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

void band_squares(nb::handle factors, nb::handle Q, nb::handle squares, int n_threads) {
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

}  // namespace

void bind_band(nb::module_& m) {
    m.def("band_squares", &band_squares, "factors"_a.none(), "Q"_a.none(), "squares"_a.none(), "n_threads"_a,
          "squares[i, l] = ||L^-1 q||^2 for column i of Q and the band matrix L in factors[l].");
}
