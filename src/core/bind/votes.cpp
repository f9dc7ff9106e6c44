// Python's view of algebra/votes.hpp.
#include "algebra/votes.hpp"

#include "bind/arguments.hpp"

namespace {

void count_wins(AnyArray values, AnyArray won) {
    nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> from;
    nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> to;
    if (!nb::try_cast(values, from, false)) refuse("values", "must be a C-contiguous two-dimensional float64 array");
    if (!nb::try_cast(won, to, false)) refuse("won", "must be a C-contiguous two-dimensional float64 array to write to");
    check_alignment(from, "values");
    check_alignment(to, "won");
    const std::size_t n = from.shape(0), n_pairs = from.shape(1), k = to.shape(1);
    if (to.shape(0) != n || 2 * n_pairs != k * (k - 1)) refuse("values", "must have a column for each pair of classes");
    const nb::gil_scoped_release unlocked;
    for (std::size_t i = 0; i < n; ++i) {
        mercer::count_wins(from.data() + i * n_pairs, static_cast<std::int64_t>(k), to.data() + i * k);
    }
}

}  // namespace

void bind_votes(nb::module_& m) {
    m.def("count_wins", &count_wins, "values"_a, "won"_a,
          "Fill each row of `won` with the number of pairs that each class wins, from the decision values of all pairs.");
}
