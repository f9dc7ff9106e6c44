// Python's view of algebra/cholesky.hpp.
#include "algebra/cholesky.hpp"
#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

// Square, with contiguous rows that do not overlap; the distance between them.
template <class Array>
std::int64_t square_stride(const Array& array, const char* name) {
    const std::size_t n = array.shape(0);
    if (array.shape(1) != n) refuse(name, "must be square");
    if (n < 2) return 1;
    if (array.stride(1) != 1 || array.stride(0) < static_cast<std::int64_t>(n)) {
        refuse(name, "must have contiguous rows that do not overlap");
    }
    return array.stride(0);
}

std::int64_t cholesky(AnyArray A, int n_threads) {
    std::int64_t bad = -1;
    const auto attempt = [&]<class T>(T*) {
        nb::ndarray<T, nb::ndim<2>, nb::device::cpu> a;
        if (!nb::try_cast(A, a, false)) return false;
        check_alignment(a, "A");
        const std::int64_t stride = square_stride(a, "A");
        check_threads(n_threads);
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        bad = mercer::cholesky(a.data(), stride, static_cast<std::int64_t>(a.shape(0)), threads);
        return true;
    };
    if (!attempt(static_cast<float*>(nullptr)) && !attempt(static_cast<double*>(nullptr))) {
        refuse("A", "must be a two-dimensional float32 or float64 array that can be written to");
    }
    return bad;
}

void cholesky_solve(AnyArray L, AnyArray B, int n_threads) {
    with_matrix<float, double>(L, "L", [&](const auto& l) {
        using T = Element<decltype(l)>;
        const std::int64_t stride = square_stride(l, "L");
        nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> b;
        if (!nb::try_cast(B, b, false)) {
            refuse("B", std::string("must be a C-contiguous two-dimensional ") + type_name<T>() +
                            " array, like L, that can be written to");
        }
        check_alignment(b, "B");
        if (b.shape(0) != l.shape(0)) {
            refuse("B", "has " + std::to_string(b.shape(0)) + " rows, but L has " + std::to_string(l.shape(0)));
        }
        check_threads(n_threads);
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        mercer::cholesky_solve(l.data(), stride, static_cast<std::int64_t>(l.shape(0)), b.data(),
                               static_cast<std::int64_t>(b.shape(1)), threads);
        return 0;
    });
}

}  // namespace

void bind_cholesky(nb::module_& m) {
    m.def("cholesky", &cholesky, "A"_a, "n_threads"_a,
          "A = LL' in place: -1, or the index of the first pivot that is not positive, when A is of no use any more.\n\n"
          "A is float32 or float64 with contiguous rows at any distance; only its lower triangle is read and written. The "
          "result does not depend on n_threads.");
    m.def("cholesky_solve", &cholesky_solve, "L"_a, "B"_a, "n_threads"_a, "B = (LL')^-1 B in place.");
}
