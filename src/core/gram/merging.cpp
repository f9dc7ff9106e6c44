// A bucket sort by hash, and rows compared entry by entry.
#include "gram/merging.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "gram/row_hash.hpp"
#include "gram/row_passes.hpp"

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

template <class T>
bool group_rows(const PickedRows<T>& x, std::int64_t n_all, const std::int64_t* labels, int n_threads, Poll& poll,
                RowGroups* out) {
    const auto n = static_cast<std::size_t>(x.n);
    std::vector<std::uint64_t> keys(static_cast<std::size_t>(n_all));
    hash_rows(DenseRows<T>{x.data, n_all, x.d, static_cast<std::ptrdiff_t>(x.d), 1}, n_threads, poll, keys.data());
    std::vector<std::int64_t> picked_labels;
    if (x.which != nullptr) {
        std::vector<std::uint64_t> picked_keys(n);
        picked_labels.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            picked_keys[i] = keys[static_cast<std::size_t>(x.which[i])];
            picked_labels[i] = labels[x.which[i]];
        }
        keys = std::move(picked_keys);
        labels = picked_labels.data();
    }
    const std::vector<std::int64_t> order = order_by(keys.data(), labels, n), same = repeats(keys.data(), order);
    std::vector<std::int64_t> left, right;
    for (const std::int64_t k : same) {
        left.push_back(order[static_cast<std::size_t>(k)]);
        right.push_back(order[static_cast<std::size_t>(k) + 1]);
    }
    std::vector<std::uint8_t> equal(same.size());
    equal_rows(x, left.data(), right.data(), static_cast<std::int64_t>(same.size()), equal.data(), n_threads, poll);
    if (std::find(equal.begin(), equal.end(), 0) != equal.end()) return false;
    std::vector<std::uint8_t> is_first(n, 1);
    for (std::size_t k = 0; k < same.size(); ++k) {
        if (labels[left[k]] == labels[right[k]]) is_first[static_cast<std::size_t>(same[k]) + 1] = 0;
    }
    out->first.clear();
    out->member.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
        if (is_first[k] != 0) out->first.push_back(order[k]);
        out->member[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(out->first.size()) - 1;
    }
    return true;
}

template bool group_rows(const PickedRows<float>&, std::int64_t, const std::int64_t*, int, Poll&, RowGroups*);
template bool group_rows(const PickedRows<double>&, std::int64_t, const std::int64_t*, int, Poll&, RowGroups*);

}  // namespace mercer
