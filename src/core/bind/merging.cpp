// What merging equal samples needs besides hashes: their order, and whether neighbours in it are truly equal.
#include <algorithm>
#include <bit>

#include "bind/arguments.hpp"
#include "gram/row_hash.hpp"

namespace {

// Positions sorted by key, then by `second`, then by themselves. Keys are hashes, so that buckets by their first bits are even.
nb::object order_by(nb::handle keys, nb::handle second) {
    nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> keys_;
    if (!nb::try_cast(keys, keys_, false)) refuse("keys", "must be a contiguous one-dimensional uint64 array");
    check_alignment(keys_, "keys");
    const std::size_t n = keys_.shape(0);
    const auto second_ = vector<const std::int64_t>(second, "second", n);
    std::vector<std::int64_t> order(n);
    {
        const nb::gil_scoped_release unlocked;
        const std::uint64_t* key = keys_.data();
        const std::int64_t* other = second_.data();
        const int bits = std::clamp(static_cast<int>(std::bit_width(n)) - 2, 1, 20), shift = 64 - bits;
        std::vector<std::size_t> starts((std::size_t{1} << bits) + 1);
        for (std::size_t i = 0; i < n; ++i) ++starts[(key[i] >> shift) + 1];
        for (std::size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
        auto at = starts;
        for (std::size_t i = 0; i < n; ++i) order[at[key[i] >> shift]++] = static_cast<std::int64_t>(i);
        const auto before = [&](std::int64_t a, std::int64_t b) {
            if (key[a] != key[b]) return key[a] < key[b];
            return other[a] != other[b] ? other[a] < other[b] : a < b;
        };
        for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
            std::sort(order.begin() + static_cast<std::ptrdiff_t>(starts[b]),
                      order.begin() + static_cast<std::ptrdiff_t>(starts[b + 1]), before);
        }
    }
    return as_array(std::move(order));
}

// For each pair whether the two rows store the same columns and values; stored zeros count as entries.
nb::object equal_rows_csr(nb::handle data, nb::handle indices, nb::handle indptr, nb::handle left, nb::handle right) {
    std::vector<std::uint8_t> out;
    with_vector<float, double>(data, "data", "float32 or float64", [&](const auto& data_) {
        with_vector<std::int32_t, std::int64_t>(indices, "indices", "int32 or int64", [&](const auto& indices_) {
            with_vector<std::int32_t, std::int64_t>(indptr, "indptr", "int32 or int64", [&](const auto& indptr_) {
                if (indices_.shape(0) != data_.shape(0)) refuse("indices", "must have as many elements as data");
                if (indptr_.shape(0) == 0) refuse("indptr", "must have one element more than there are rows");
                const auto n = static_cast<std::int64_t>(indptr_.shape(0)) - 1;
                if (!mercer::check_indptr(indptr_.data(), n, static_cast<std::int64_t>(data_.shape(0)))) {
                    refuse("indptr", "must not decrease and must stay between 0 and the number of stored elements");
                }
                const auto left_ = vector<const std::int64_t>(left, "left");
                const auto right_ = vector<const std::int64_t>(right, "right", left_.shape(0));
                check_range(left_.data(), left_.shape(0), n, "left");
                check_range(right_.data(), right_.shape(0), n, "right");
                const nb::gil_scoped_release unlocked;
                out.resize(left_.shape(0));
                for (std::size_t k = 0; k < out.size(); ++k) {
                    const auto* start = indptr_.data();
                    const auto a = start[left_.data()[k]], b = start[right_.data()[k]];
                    const auto size = start[left_.data()[k] + 1] - a;
                    out[k] = size == start[right_.data()[k] + 1] - b &&
                             std::equal(indices_.data() + a, indices_.data() + a + size, indices_.data() + b) &&
                             std::equal(data_.data() + a, data_.data() + a + size, data_.data() + b);
                }
            });
        });
    });
    return as_array(std::move(out));
}

}  // namespace

void bind_merging(nb::module_& m);
void bind_merging(nb::module_& m) {
    m.def("order_by", &order_by, "keys"_a.none(), "second"_a.none(),
          "Positions sorted by hash, then by a second number.");
    m.def("equal_rows_csr", &equal_rows_csr, "data"_a.none(), "indices"_a.none(), "indptr"_a.none(), "left"_a.none(),
          "right"_a.none(), "Whether pairs of rows store the same entries.");
}
