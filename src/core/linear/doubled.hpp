// Products with a linear machine's rows in twice the precision of float64, for proofs about data far from zero.
//
// Products are collected in hi + lo (algebra/doubled.hpp), each with what a fused multiply-add says it has lost: with
// u = 2^-53 and m terms
//     |hi + lo - exact| <= m^2 u^2 sum |a b|   and then one rounding to float64.
// This file must be compiled without contraction of a * b + c.
#pragma once

#include "linear/rows.hpp"

namespace mercer {

// hi + lo = sum of c_i x_i.
template <class Rows>
void doubled_transposed(const Rows& rows, const double* c, double* hi, double* lo, const Threads& threads);

// out_i = x_i'(hi + lo).
template <class Rows>
void doubled_product(const Rows& rows, const double* hi, const double* lo, double* out, const Threads& threads);

}  // namespace mercer
