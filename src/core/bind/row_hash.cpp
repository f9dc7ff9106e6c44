// Python's view of row_hash.hpp.
#include <cstdint>
#include <memory>

#include "bind/arguments.hpp"
#include "gram/row_hash.hpp"

namespace {

using Hashes = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;

Hashes hand_over(std::unique_ptr<std::uint64_t[]> values, std::size_t n) {
    const nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<std::uint64_t*>(p); });
    return Hashes(values.release(), {n}, owner);
}

Hashes hash_rows(nb::handle X, int n_threads) {
    return with_matrix<float, double>(X, "X", [&](const auto& x) {
        using T = std::remove_const_t<typename std::decay_t<decltype(x)>::Scalar>;
        auto out = std::make_unique<std::uint64_t[]>(x.shape(0));
        const mercer::DenseRows<T> rows{x.data(), static_cast<std::int64_t>(x.shape(0)),
                                        static_cast<std::int64_t>(x.shape(1)), static_cast<std::ptrdiff_t>(x.stride(0)),
                                        static_cast<std::ptrdiff_t>(x.stride(1))};
        {
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::hash_rows(rows, n_threads, signals.poll(), out.get());
        }
        return hand_over(std::move(out), x.shape(0));
    });
}

Hashes hash_rows_csr(nb::handle data, nb::handle indices, nb::handle indptr, int n_threads) {
    std::unique_ptr<std::uint64_t[]> out;
    std::size_t rows = 0;
    with_vector<float, double>(data, "data", "float32 or float64", [&](const auto& data_) {
        with_vector<std::int32_t, std::int64_t>(indices, "indices", "int32 or int64", [&](const auto& indices_) {
            with_vector<std::int32_t, std::int64_t>(indptr, "indptr", "int32 or int64", [&](const auto& indptr_) {
                const std::size_t stored = data_.shape(0);
                if (indices_.shape(0) != stored) refuse("indices", "must have as many elements as data");
                if (indptr_.shape(0) == 0) refuse("indptr", "must have one element more than there are rows");
                rows = indptr_.shape(0) - 1;
                const auto n = static_cast<std::int64_t>(rows);
                if (!mercer::check_indptr(indptr_.data(), n, static_cast<std::int64_t>(stored))) {
                    refuse("indptr", "must not decrease and must stay between 0 and the number of stored elements");
                }
                out = std::make_unique<std::uint64_t[]>(rows);
                Signals signals;
                const nb::gil_scoped_release unlocked;
                mercer::hash_rows(data_.data(), indices_.data(), indptr_.data(), n, n_threads, signals.poll(),
                                  out.get());
            });
        });
    });
    return hand_over(std::move(out), rows);
}

}  // namespace

void bind_row_hash(nb::module_& m) {
    m.def("hash_rows", &hash_rows, "X"_a.none(), "n_threads"_a,
          "A 64-bit hash of each row's non-zero (column, value) pairs.");
    m.def("hash_rows_csr", &hash_rows_csr, "data"_a.none(), "indices"_a.none(), "indptr"_a.none(), "n_threads"_a,
          "The same for a CSR matrix with sorted, unique column indices.");
}
