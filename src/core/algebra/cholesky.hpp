// Cholesky factorisation A = L L' in place, and solves with it, on all threads.
//
// Matrices have contiguous rows, `stride` elements apart; only the lower triangle is read and written. Outputs are
// split over threads, sums never, so that a result does not depend on their number.
#pragma once

#include <cstdint>

#include "threads/threads.hpp"

namespace mercer {

// Returns -1, or the index of the first pivot that is not positive (or is NaN). Then, as when the poll throws, `a` is
// left half done.
template <class T>
std::int64_t cholesky(T* a, std::int64_t stride, std::int64_t n, const Threads& threads);

// b = A^-1 b for m right-hand sides, the columns of b (n x m, contiguous).
template <class T>
void cholesky_solve(const T* l, std::int64_t stride, std::int64_t n, T* b, std::int64_t m, const Threads& threads);

}  // namespace mercer
