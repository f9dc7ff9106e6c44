// Shapley values of f(x) = sum_i c_i k(x, s_i) against background rows z, where k is a product over the features.
//
// With F_l = k_l(x_l, s_l) and G_l = k_l(z_l, s_l), the game of feature subsets S is the product of F over S and of G
// elsewhere. Shapley's weights are Beta integrals, so that feature j is worth
//
//     (F_j - G_j) integral over t in [0, 1] of  product over l != j of (t F_l + (1 - t) G_l),
//
// a polynomial of degree d - 1 in t: ceil(d/2) nodes of Gauss and Legendre are exact. Where fewer are proven to err by
// less than rounding, these are taken (simd/shapley_bound.hpp). Features that x and z have in common are worth nothing,
// and their factors are constants: only the others count in d.
//
// A player of the game may be several features, such as those that one column of a table was encoded in. They are in S
// together or not at all, so that the player's F and G are the products of theirs, and all else is as above.
//
// k(x, z) = q(<x, z>) product of exp(...) with a polynomial q is such a product too, with power series in y as factors:
// <x, z>^k = k! [y^k] product of exp(y x_l z_l).
#pragma once

#include <cstdint>

#include "threads/threads.hpp"

namespace mercer {

struct ShapleyProblem {
    const double* rows;          // n_rows x d, to be explained
    const double* background;    // m x d
    const double* weights;       // m
    const double* vectors;       // n x d
    const double* coefficients;  // outputs x n
    std::int64_t n_rows, m, n, d, outputs;
    const std::int64_t* starts;  // players + 1 of them: features starts[p] to starts[p + 1] are player p's
    std::int64_t players;
    // The kernel: exp(-rates[0] (x-z)^2 - rates[1] |x-z| - rates[2] (x-z)^2/(x+z) + rates[3] x z) for every feature, rows
    // of d numbers, times the polynomial sum_k polynomial[k] <x, z>^k.
    const double* rates;
    const double* polynomial;
    std::int64_t order;  // of the polynomial, at most kMaxSeries - 1
};

// Adds to values, n_rows x outputs x players. The result does not depend on the number of threads.
void add_shapley(const ShapleyProblem& problem, double* values, const Threads& threads);

}  // namespace mercer
