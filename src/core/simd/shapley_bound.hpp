// How few nodes are enough for a Shapley value: a proof that they err by less than rounding.
//
// With w = 2t - 1, m = (F + G) / 2 and h = (F - G) / 2, feature j is worth h_j times the integral over [-1, 1] of a
// polynomial: the product of m + h w over the other features. Let it be at most M on the ellipse around [-1, 1] with
// semi-axes (r + 1/r)/2 = R and (r - 1/r)/2. Then its Chebyshev coefficients are at most 2 M r^-k, of which n nodes
// see the even ones from k = 2n on wrongly, by at most 2 + 2/15 each, and err by at most 64/15 M r^(-2n) / (1 - r^-2)
// (Trefethen, Approximation Theory and Approximation Practice, chapter 19).
//
// Let |p| be the sum of the sizes of the coefficients of p(R w). For the product q of the factors of j's group and p =
// q / (m_j + h_j w), |p| |m_j + h_j w| <= 16 |q|: the left norms are at most 2^degree times the Mahler measures, whose
// product is the measure of q, at most |q|. And |h_j| <= |m_j + h_j w| / R. So |h_j| M <= 16/R N, where N is the
// product of |q| over all groups.
//
// Rounding of the factors alone changes a value by d 2^-53 times the product of all m, which is the integrand in the
// middle. So n nodes are enough where N is at most shapley_growth times that product.
#pragma once

#include <cstdint>

namespace mercer {

// Of r from 12 to 48 the one with the fewest nodes on average, for Gaussians with gamma from 1/d to 1 and d = 30 to 800.
inline constexpr double kEllipse = 40.0, kHalfAxis = (kEllipse + 1.0 / kEllipse) / 2.0;

static inline double shapley_growth(std::int64_t n, std::int64_t d) {
    if (n < 2) return 0.0;  // 2/15 is for k = 4 and above
    constexpr double kSquare = kEllipse * kEllipse;
    double growth = static_cast<double>(d) * 0x1p-53 * (kHalfAxis / 16.0) * (15.0 / 64.0) * (1.0 - 1.0 / kSquare);
    for (std::int64_t i = 0; i < n && growth < 1e280; ++i) growth *= kSquare;
    return growth;
}

}  // namespace mercer
