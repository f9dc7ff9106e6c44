// c'Kc of dense samples in twice the precision of float64: how far two machines are apart (mercer/compression).
//
// With u = 2^-53, d features and t = x'z, |x - z|^2 or |x - z|_1: differences are exact as pairs. Sums are made normal
// after every eight terms. S being the sum of the terms' absolute values, each term adds u S to |low| at most, and their
// own low parts 3 u S in all, so that |low| <= 12 u S. Two roundings of it per term, and what squares leave out, add up to
// 32 (d + 1) u^2 S = (d + 1) 2^-101 S at most. S = t except for inner products, where it is at most |x||z|.
//
// A radial k errs by this share of t, and one of 2^-103, times gamma t exp(-gamma t) < 0.37, by 2^-98 for exp, and by
// 2^-102 for scale and constant: 2^-98 + (d + 8) 2^-102 of scale + constant. A power errs by its degree times
// (d + 8) 2^-101 of (gamma |x||z| + |coef0|)^degree, multiplications counted, and by 2^-102 for scale and constant.
//
// A sum over 64 columns has three roundings of |low| <= 11 u S per term, so that it errs by 2120 u^2 = 530 * 2^-104 of S;
// a product with c_i, and additions of at most 64 rows, 8 lanes and n / 64 blocks, n being the number of samples, err by
// 2^-104 each: (640 + n / 64) 2^-104 in all, times the sum of |c_i c_j k_ij|.
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "threads/threads.hpp"

namespace mercer {

struct DoubledKernel {
    DoubledInner inner;
    bool radial;
    double gamma, coef0, scale, constant;
    std::int64_t degree;
};

// Rows [first, end) of n, against themselves and those after them; X is n x d, C is n x outputs. For each of
// ceil((end - first) / kDoubledBlock) blocks of rows and each output, high + low is its share of c'Kc: the blocks'
// shares add up to it. `first` is a multiple of kDoubledBlock. The result does not depend on the number of threads.
void doubled_squares(const DoubledKernel& kernel, const double* X, std::int64_t n, std::int64_t d, const double* C,
                     std::int64_t outputs, std::int64_t first, std::int64_t end, double* high, double* low,
                     const Threads& threads);

}  // namespace mercer
