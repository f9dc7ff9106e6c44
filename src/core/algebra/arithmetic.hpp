// What every bound on rounding errors assumes of the compiler: each operation rounds once, to the type of its operands.
#pragma once

#include <cfloat>

#if defined(__FAST_MATH__) || defined(_M_FP_FAST) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "mercer proves its results by counting rounding errors, which -ffast-math and its parts make unbounded: build without them"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "mercer relies on infinities and NaN: build without -ffinite-math-only"
#endif

// Wider intermediate results (x87) would round twice.
static_assert(FLT_EVAL_METHOD == 0, "float and double must be evaluated in their own precision");
