// What merging equal samples needs besides their hashes (row_hash.hpp): an order, and a test of equality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algebra/picked_rows.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

// The positions 0, ..., n - 1 sorted by key, then by `second`, then by themselves. Keys are hashes: sorting begins with
// buckets by their first bits, which are about equally full.
std::vector<std::int64_t> order_by(const std::uint64_t* keys, const std::int64_t* second, std::size_t n);

// The positions k for which the keys at order[k] and order[k + 1] are equal.
std::vector<std::int64_t> repeats(const std::uint64_t* keys, const std::vector<std::int64_t>& order);

// For each k whether rows left[k] and right[k] of a CSR matrix store the same columns and values. Stored zeros count.
template <class T, class Index>
std::vector<std::uint8_t> equal_rows(const T* data, const Index* indices, const std::int64_t* indptr,
                                     const std::int64_t* left, const std::int64_t* right, std::size_t count);

// Groups of equal rows with equal labels, in the order of hash and label, and the group of each row.
struct RowGroups {
    std::vector<std::int64_t> first, member;  // the first row of each group; the group of each row
};

// Groups the rows of x, which picks from `n_all` rows in memory; `labels` has those of all. False if different rows have the
// same hash, which leaves their order open.
template <class T>
bool group_rows(const PickedRows<T>& x, std::int64_t n_all, const std::int64_t* labels, int n_threads, Poll& poll,
                RowGroups* out);

}  // namespace mercer
