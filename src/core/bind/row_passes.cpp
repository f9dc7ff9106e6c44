// Python's view of gram/row_passes.hpp.
#include "gram/row_passes.hpp"

#include "bind/picked_rows.hpp"

namespace {

void copy_rows(AnyArray X, AnyArray which, AnyArray out, int n_threads) {
    check_threads(n_threads);
    with_rows(X, which, [&]<class T>(const GivenRows<T>& given) {
        nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> to;
        if (!nb::try_cast(out, to, false)) refuse("out", "must be a C-contiguous array of the type of X to write to");
        check_alignment(to, "out");
        if (static_cast<std::int64_t>(to.shape(0)) != given.rows.n || to.shape(1) != given.array.shape(1)) {
            refuse("out", "must have a row for each of those named");
        }
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::copy_rows(given.rows, to.data(), n_threads, signals.poll());
    });
}

TupleOf<Doubles, Doubles> column_moments(AnyArray X, AnyArray which, AnyArray centre, int n_threads) {
    check_threads(n_threads);
    std::vector<double> sums, squares;
    with_rows(X, which, [&]<class T>(const GivenRows<T>& given) {
        const auto centre_ = vector<const double>(centre, "centre", given.array.shape(1));
        sums.resize(given.array.shape(1));
        squares.resize(sums.size());
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::column_moments(given.rows, centre_.data(), sums.data(), squares.data(), n_threads, signals.poll());
    });
    return nb::make_tuple(as_array(std::move(sums)), as_array(std::move(squares)));
}

TupleOf<Doubles, Doubles> row_moments(AnyArray X, AnyArray which, double centre, int n_threads) {
    check_threads(n_threads);
    std::vector<double> sums, squares;
    with_rows(X, which, [&]<class T>(const GivenRows<T>& given) {
        sums.resize(static_cast<std::size_t>(given.rows.n));
        squares.resize(sums.size());
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::row_moments(given.rows, centre, sums.data(), squares.data(), n_threads, signals.poll());
    });
    return nb::make_tuple(as_array(std::move(sums)), as_array(std::move(squares)));
}

bool all_finite(AnyArray X, int n_threads) {
    check_threads(n_threads);
    bool finite = false;
    with_rows(X, nb::none(), [&]<class T>(const GivenRows<T>& given) {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        finite = mercer::all_finite(given.rows.data, given.rows.n * given.rows.d, n_threads, signals.poll());
    });
    return finite;
}

OwnArray<std::uint8_t> equal_rows(AnyArray X, AnyArray left, AnyArray right, int n_threads) {
    check_threads(n_threads);
    std::vector<std::uint8_t> out;
    with_rows(X, nb::none(), [&]<class T>(const GivenRows<T>& given) {
        const auto left_ = vector<const std::int64_t>(left, "left");
        const auto right_ = vector<const std::int64_t>(right, "right", left_.shape(0));
        check_range(left_.data(), left_.shape(0), given.rows.n, "left");
        check_range(right_.data(), right_.shape(0), given.rows.n, "right");
        out.resize(left_.shape(0));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::equal_rows(given.rows, left_.data(), right_.data(), static_cast<std::int64_t>(out.size()), out.data(),
                           n_threads, signals.poll());
    });
    return as_array(std::move(out));
}

}  // namespace

void bind_row_passes(nb::module_& m) {
    m.def("copy_rows", &copy_rows, "X"_a, "which"_a, "out"_a, "n_threads"_a, "out = X[which].");
    m.def("column_moments", &column_moments, "X"_a, "which"_a.none(), "centre"_a, "n_threads"_a,
          "The sums of X[which] - centre and of its squares, for each column; all rows if `which` is None.");
    m.def("row_moments", &row_moments, "X"_a, "which"_a.none(), "centre"_a, "n_threads"_a,
          "The sums of X[which] - centre and of its squares, for each row; the centre is one number.");
    m.def("all_finite", &all_finite, "X"_a, "n_threads"_a, "Whether no entry is infinite or not a number.");
    m.def("equal_rows", &equal_rows, "X"_a, "left"_a, "right"_a, "n_threads"_a, "Whether pairs of rows are equal.");
}
