// The rows of a linear machine's data, dense or CSR, and what is computed of all of them at once: products with a
// weight vector, the transpose's, weighted sums of outer products, squared lengths.
#pragma once

#include <cstdint>

#include "algebra/picked_rows.hpp"
#include "threads/threads.hpp"

namespace mercer {

template <class T>
using LinearDense = PickedRows<T>;

// Any rows of CSR arrays: row i is at [starts[i], ends[i]). The bindings check that rows are inside the data and
// columns inside [0, d). There is a weight per column, so that 2^31 columns are out of reach anyway.
template <class T>
struct LinearCsr {
    const T* data;
    const std::int32_t* indices;
    const std::int64_t *starts, *ends;
    std::int64_t stored;  // entries of these rows together
    std::int64_t n, d;
};

// Elements of all rows together.
inline std::int64_t stored_in(const std::int64_t* starts, const std::int64_t* ends, std::int64_t n) {
    std::int64_t stored = 0;
    for (std::int64_t i = 0; i < n; ++i) stored += ends[i] - starts[i];
    return stored;
}

// out_i = x_i'w + shift.
template <class Rows>
void linear_product(const Rows& rows, const double* w, double shift, double* out, const Threads& threads);

// out = sum of c_i x_i. Partial sums are over ranges that depend on the size of the data only, and so does the result.
template <class Rows>
void linear_transposed(const Rows& rows, const double* c, double* out, const Threads& threads);

// The lower triangle of out, (d + 1) x (d + 1), becomes the sum over the m rows `which` of c z z' with z = (x, 1).
template <class Rows>
void linear_outer(const Rows& rows, const std::int64_t* which, const double* c, std::int64_t m, double* out,
                  const Threads& threads);

// The squared length of every row.
template <class Rows>
void linear_lengths(const Rows& rows, double* out, const Threads& threads);

// Instantiates a template for each kind of rows.
#define MERCER_FOR_LINEAR_ROWS(INSTANTIATE) \
    INSTANTIATE(LinearDense<float>)         \
    INSTANTIATE(LinearDense<double>)        \
    INSTANTIATE(LinearCsr<float>)           \
    INSTANTIATE(LinearCsr<double>)

}  // namespace mercer
