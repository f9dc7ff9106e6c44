// Python's view of gram/row_hash.hpp.
#include "gram/row_hash.hpp"

#include "bind/arguments.hpp"

namespace {

OwnArray<std::uint64_t> hash_rows(AnyArray X, int n_threads) {
    return as_array(with_matrix<float, double>(X, "X", [&](const auto& x) {
        const mercer::DenseRows<Element<decltype(x)>> rows{
            x.data(), static_cast<std::int64_t>(x.shape(0)), static_cast<std::int64_t>(x.shape(1)),
            static_cast<std::ptrdiff_t>(x.stride(0)), static_cast<std::ptrdiff_t>(x.stride(1))};
        std::vector<std::uint64_t> out(x.shape(0));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::hash_rows(rows, n_threads, signals.poll(), out.data());
        return out;
    }));
}

OwnArray<std::uint64_t> hash_rows_csr(AnyArray data, AnyArray indices, AnyArray indptr, int n_threads) {
    std::vector<std::uint64_t> out;
    with_csr(data, indices, indptr, [&](const auto& data_, const auto& indices_, const std::int64_t* starts, std::int64_t n) {
        out.resize(static_cast<std::size_t>(n));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::hash_rows(data_.data(), indices_.data(), starts, n, n_threads, signals.poll(), out.data());
    });
    return as_array(std::move(out));
}

}  // namespace

void bind_row_hash(nb::module_& m) {
    m.def("hash_rows", &hash_rows, "X"_a, "n_threads"_a,
          "A 64-bit hash of each row's non-zero (column, value) pairs.");
    m.def("hash_rows_csr", &hash_rows_csr, "data"_a, "indices"_a, "indptr"_a, "n_threads"_a,
          "`hash_rows` for a CSR matrix with sorted, unique column indices.");
}
