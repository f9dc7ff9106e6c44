// ||L^-1 q||^2 for many right-hand sides q and many lower triangular band matrices L, on all threads.
//
// With B + lambda I = L L' that is q'(B + lambda I)^-1 q, for all q and lambda in one reading of the q.
#pragma once

#include <cstdint>

#include "threads/threads.hpp"

namespace mercer {

// `factors` are `count` matrices of n rows and `width` diagonals below the main one, each as [column][row - column]:
// n x (width + 1). q is n x m with contiguous rows, one right-hand side per column. squares is m x count. Right-hand
// sides are split over threads, sums never, so that a result does not depend on their number.
void band_squares(const double* factors, std::int64_t count, std::int64_t n, std::int64_t width, const double* q,
                  std::int64_t m, double* squares, const Threads& threads);

}  // namespace mercer
