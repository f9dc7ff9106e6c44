// Checks of the arrays of a call, after which a loop may trust their indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mercer {

// Whether least <= value <= most for all of them; NaN is not. Without an early exit, so that the loop is vectorised.
template <class T>
bool all_within(const T* values, std::size_t n, T least, T most) {
    bool within = true;
    for (std::size_t i = 0; i < n; ++i) within &= values[i] >= least && values[i] <= most;
    return within;
}

// Whether every index is in [0, end), whatever the width of its type.
template <class Index>
bool all_indices(const Index* indices, std::size_t n, std::int64_t end) {
    constexpr auto widest = static_cast<std::int64_t>(std::numeric_limits<Index>::max());
    return all_within(indices, n, Index{0}, static_cast<Index>(end > widest ? widest : end - 1));
}

template <class T>
bool all_positive(const T* values, std::size_t n) {
    return all_within(values, n, std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::infinity());
}

template <class T>
bool is_increasing(const T* steps, std::size_t n) {
    bool increasing = true;
    for (std::size_t i = 1; i < n; ++i) increasing &= steps[i - 1] < steps[i];
    return increasing;
}

template <class T>
bool is_nondecreasing(const T* steps, std::size_t n) {
    bool nondecreasing = true;
    for (std::size_t i = 1; i < n; ++i) nondecreasing &= steps[i - 1] <= steps[i];
    return nondecreasing;
}

// Whether indptr[0], ..., indptr[rows] are the bounds of rows within `stored` elements.
template <class Pointer>
bool is_indptr(const Pointer* indptr, std::int64_t rows, std::int64_t stored) {
    return indptr[0] >= 0 && indptr[rows] <= stored && is_nondecreasing(indptr, static_cast<std::size_t>(rows) + 1);
}

// The same where rows are given by their ends as well and need not follow each other.
template <class Pointer>
bool are_ranges(const Pointer* starts, const Pointer* ends, std::size_t rows, std::int64_t stored) {
    bool fine = true;
    for (std::size_t i = 0; i < rows; ++i) fine &= starts[i] >= 0 && starts[i] <= ends[i] && ends[i] <= stored;
    return fine;
}

}  // namespace mercer
