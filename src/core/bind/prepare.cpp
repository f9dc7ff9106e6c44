// Samples prepared for a recipe, as Python sees it (gram/blocks.hpp).
#include "bind/picked_rows.hpp"
#include "gram/blocks.hpp"
#include "simd/dispatch.hpp"

namespace {

void prepare(AnyArray X, AnyArray centre, double scale, AnyArray rows, AnyArray norms, int n_threads, AnyArray which) {
    with_rows(X, which, [&]<class S>(const GivenRows<S>& given) {
        const auto n = static_cast<std::size_t>(given.rows.n), d = given.array.shape(1);
        const auto centre_ = vector<const double>(centre, "centre", d);
        const auto fill = [&]<class T>(T*) {
            nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out;
            if (!nb::try_cast(rows, out, false)) return false;
            if (out.shape(0) != n || out.shape(1) != d) refuse("rows", "must have the shape of X");
            const auto norms_ = vector<T>(norms, "norms", n);
            Signals signals;
            const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
            const nb::gil_scoped_release unlocked;
            mercer::prepare_dense(given.rows, centre_.data(), scale, out.data(), norms_.data(), threads);
            return true;
        };
        if (!fill(static_cast<float*>(nullptr)) && !fill(static_cast<double*>(nullptr))) {
            refuse("rows", "must be a writable C-contiguous float32 or float64 matrix");
        }
    });
}

using SparseArrays = TupleOf<ArrayOfAnyType, OwnArray<std::int32_t>, Indices, ArrayOfAnyType>;

template <class T, class S>
SparseArrays sparse_of(const mercer::PickedRows<S>& x, const double* centre, double scale, bool l1, int n_threads) {
    mercer::SparseArrays<T> out;
    {
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        out = mercer::prepare_sparse<T>(x, centre, scale, l1, threads);
    }
    return nb::make_tuple(as_array(std::move(out.values)), as_array(std::move(out.indices)),
                          as_array(std::move(out.starts)), as_array(std::move(out.norms)));
}

SparseArrays prepare_sparse(AnyArray X, AnyArray centre, double scale, bool l1, bool single, int n_threads,
                            AnyArray which) {
    SparseArrays out;
    with_rows(X, which, [&]<class S>(const GivenRows<S>& given) {
        const std::size_t d = given.array.shape(1);
        if (d > std::size_t{INT32_MAX}) refuse("X", "has too many features");
        const auto centre_ = vector<const double>(centre, "centre", d);
        out = single ? sparse_of<float>(given.rows, centre_.data(), scale, l1, n_threads)
                     : sparse_of<double>(given.rows, centre_.data(), scale, l1, n_threads);
    });
    return out;
}

}  // namespace

void bind_prepare(nb::module_& m) {
    m.def("prepare", &prepare, "X"_a, "centre"_a, "scale"_a, "rows"_a, "norms"_a,
          "n_threads"_a, "which"_a.none() = nb::none(),
          "rows = (X - centre) * scale and norms = half their squared lengths, of all rows of X or those named.");
    m.def("prepare_sparse", &prepare_sparse, "X"_a, "centre"_a, "scale"_a, "l1"_a, "single"_a,
          "n_threads"_a, "which"_a.none() = nb::none(),
          "The entries of (X - centre) * scale that are not zero, as values, indices and starts of CSR, and the "
          "samples' norms.");
}
