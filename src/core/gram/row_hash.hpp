// 64-bit hashes of rows, by their non-zero (column, value) pairs: dense and sparse storage of one row hash alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "threads/interrupt.hpp"

namespace mercer {

template <class T>
struct DenseRows {
    const T* data;
    std::int64_t rows;
    std::int64_t columns;
    std::ptrdiff_t row_stride;  // in elements
    std::ptrdiff_t column_stride;
};

template <class T>
void hash_rows(const DenseRows<T>& x, int n_threads, Poll& poll, std::uint64_t* out);

// The caller checks indptr (algebra/array_checks.hpp).
template <class T, class Index>
void hash_rows(const T* data, const Index* indices, const std::int64_t* indptr, std::int64_t rows, int n_threads, Poll& poll,
               std::uint64_t* out);

}  // namespace mercer
