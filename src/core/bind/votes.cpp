// Python's view of algebra/votes.hpp and algebra/class_codes.hpp.
#include "algebra/votes.hpp"

#include "algebra/class_codes.hpp"
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

TupleOf<Indices, Indices> class_codes(AnyArray labels, std::uint64_t most_values) {
    const auto labels_ = vector<const std::int64_t>(labels, "labels");
    mercer::ClassCodes found = mercer::class_codes(labels_.data(), labels_.shape(0), most_values);
    return nb::make_tuple(as_array(std::move(found.classes)), as_array(std::move(found.codes)));
}

}  // namespace

void bind_votes(nb::module_& m) {
    m.def("count_wins", &count_wins, "values"_a, "won"_a,
          "Fill each row of `won` with the number of pairs that each class wins, from the decision values of all pairs.");
    m.def("class_codes", &class_codes, "labels"_a, "most_values"_a,
          "The classes of integer labels in ascending order, and the index of each label's class; no classes if the labels "
          "span `most_values` integers or more.");
}
