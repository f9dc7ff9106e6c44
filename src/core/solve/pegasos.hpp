// Stochastic subgradient descent for the soft margin (Shalev-Shwartz, "SGD for solving Soft-SVM"), and its kernel form:
//
//     minimise  (lam/2) |w|^2 + sum_i p_i max(0, 1 - y_i <w, x_i>),    p_i the probability that i is drawn
//
// The algorithm, with the line numbers that pegasos.cpp refers to:
//
//     1  theta = 0
//     2  for t = 1, ..., T
//     3      w = theta / (lam t)
//     4      choose i at random
//     5      if y_i <w, x_i> < 1
//     6          theta += y_i x_i
//     7  output: the mean of the w of line 3
//
// and, where it is asked for, between 6 and 2: shrink theta until the next w is not longer than 1 / sqrt(lam).
#pragma once

#include <cstdint>

#include "threads/interrupt.hpp"

namespace mercer {

// A run of steps t + 1, ..., t + count.
struct PegasosSteps {
    const std::int64_t* draws;  // line 4, in advance
    std::int64_t count;
    const double* y;  // +1 or -1 per row
    double lam;
    std::int64_t t;
    bool project;
    double norm2;          // |theta|^2 at the start, needed to project
    std::int64_t* counts;  // violations per row are added here; may be null
};

// Over the run theta was multiplied by `scale`, besides what was added to it. A part of theta that no step added to has
// sum over the run's t of theta / t = mass * (that part at the start).
struct PegasosResult {
    std::int64_t done = 0;
    double scale = 1.0;
    double mass = 0.0;
    double norm2 = 0.0;
};

// theta and total have m = d elements, or d + 1 where every x is followed by a constant 1. total is the running sum of
// theta / t: the mean of line 7 over any stretch of steps is a difference of two totals, over lam times its length.
struct PegasosState {
    double* theta;
    double* total;
    std::int64_t m;
};

template <class T>
struct PegasosDense {
    const T* data;
    std::int64_t d;  // rows are contiguous, d elements each
};

template <class T, class Index>
struct PegasosSparse {
    const T* data;
    const Index* indices;
    const std::int64_t* indptr;
    std::int64_t d;
};

// Whether all columns of the rows drawn are in [0, d), or those of all n rows where there are as many draws.
template <class T, class Index>
bool columns_fit(const PegasosSparse<T, Index>& x, std::int64_t n, const std::int64_t* draws,
                 std::int64_t count);

// Rows of the kernel matrix that are at hand: row i is at rows + n * slot[i], or missing where slot[i] is negative. The
// run ends early, before a step that needs a missing row. u = <theta, phi(x_i)> for every row i is kept up to date.
struct PegasosKernel {
    const double* rows;
    const std::int64_t* slot;
    std::int64_t n;
    double shift;  // added to every kernel value: 1 for a regularised bias
    double* u;
};

template <class T>
PegasosResult pegasos(const PegasosDense<T>& x, const PegasosState& state, const PegasosSteps& steps, Poll& poll);
template <class T, class Index>
PegasosResult pegasos(const PegasosSparse<T, Index>& x, const PegasosState& state, const PegasosSteps& steps,
                      Poll& poll);
PegasosResult pegasos(const PegasosKernel& x, const PegasosState& state, const PegasosSteps& steps, Poll& poll);

// Rows by inverse CDF: draw k of the stream is the first row whose cumulative weight exceeds u_k times the total.
void draw_rows(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count,
               const double* cumulative, std::int64_t n, std::int64_t* out);

}  // namespace mercer
