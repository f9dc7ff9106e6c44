// Passes over the rows of a dense array on all threads: copies, sums, comparisons. Sums are over ranges that depend on
// the shape only, and are added up in order: the number of threads does not change a bit.
#pragma once

#include <cstdint>

#include "algebra/picked_rows.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

// out = the rows, one after another.
template <class T>
void copy_rows(const PickedRows<T>& x, T* out, int n_threads, Poll& poll);

// The sums of x - centre and of its squares over all rows, for each column.
template <class T>
void column_moments(const PickedRows<T>& x, const double* centre, double* sums, double* squares, int n_threads,
                    Poll& poll);

// The sums of x - centre and of its squares over all columns, for each row.
template <class T>
void row_moments(const PickedRows<T>& x, double centre, double* sums, double* squares, int n_threads, Poll& poll);

// Whether no element is infinite or not a number.
template <class T>
bool all_finite(const T* x, std::int64_t count, int n_threads, Poll& poll);

// out[k] = whether rows left[k] and right[k] of x are equal.
template <class T>
void equal_rows(const PickedRows<T>& x, const std::int64_t* left, const std::int64_t* right, std::int64_t count,
                std::uint8_t* out, int n_threads, Poll& poll);

}  // namespace mercer
