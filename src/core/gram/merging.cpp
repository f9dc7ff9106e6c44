// A bucket sort by hash, and rows compared entry by entry.
#include "gram/merging.hpp"

#include <algorithm>
#include <bit>

namespace mercer {

std::vector<std::int64_t> order_by(const std::uint64_t* keys, const std::int64_t* second, std::size_t n) {
    // Two to eight keys per bucket, and at most 2^20 buckets.
    const int bits = std::clamp(static_cast<int>(std::bit_width(n)) - 2, 1, 20), shift = 64 - bits;
    std::vector<std::size_t> starts((std::size_t{1} << bits) + 1);
    for (std::size_t i = 0; i < n; ++i) ++starts[(keys[i] >> shift) + 1];
    for (std::size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
    std::vector<std::int64_t> order(n);
    auto at = starts;
    for (std::size_t i = 0; i < n; ++i) order[at[keys[i] >> shift]++] = static_cast<std::int64_t>(i);
    const auto before = [&](std::int64_t a, std::int64_t b) {
        if (keys[a] != keys[b]) return keys[a] < keys[b];
        return second[a] != second[b] ? second[a] < second[b] : a < b;
    };
    for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
        std::sort(order.begin() + static_cast<std::ptrdiff_t>(starts[b]),
                  order.begin() + static_cast<std::ptrdiff_t>(starts[b + 1]), before);
    }
    return order;
}

std::vector<std::int64_t> repeats(const std::uint64_t* keys, const std::vector<std::int64_t>& order) {
    std::vector<std::int64_t> out;
    for (std::size_t k = 0; k + 1 < order.size(); ++k) {
        if (keys[order[k]] == keys[order[k + 1]]) out.push_back(static_cast<std::int64_t>(k));
    }
    return out;
}

template <class T, class Index>
std::vector<std::uint8_t> equal_rows(const T* data, const Index* indices, const std::int64_t* indptr,
                                     const std::int64_t* left, const std::int64_t* right, std::size_t count) {
    std::vector<std::uint8_t> out(count);
    for (std::size_t k = 0; k < count; ++k) {
        const std::int64_t a = indptr[left[k]], b = indptr[right[k]], size = indptr[left[k] + 1] - a;
        out[k] = size == indptr[right[k] + 1] - b && std::equal(indices + a, indices + a + size, indices + b) &&
                 std::equal(data + a, data + a + size, data + b);
    }
    return out;
}

#define MERCER_INSTANTIATE(T, Index)                                                                  \
    template std::vector<std::uint8_t> equal_rows(const T*, const Index*, const std::int64_t*, const std::int64_t*, \
                                                  const std::int64_t*, std::size_t);
#define MERCER_FOR_VALUES(T)                          \
    MERCER_INSTANTIATE(T, std::int32_t) \
    MERCER_INSTANTIATE(T, std::int64_t)
MERCER_FOR_VALUES(float)
MERCER_FOR_VALUES(double)
#undef MERCER_FOR_VALUES
#undef MERCER_INSTANTIATE

}  // namespace mercer
