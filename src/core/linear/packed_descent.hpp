// Dual coordinate descent for classification on packed sparse rows: every variable is a = |beta| in [0, upper], so that
// a visit needs few branches. (Twenty passes take 0.64 of the general loop's time on a9a, 0.7 to 0.8 on text.)
//
// The bias is the weight b = B^2 sum(beta) of a feature that all rows have. Treated like any other weight it makes
// steps slow: it follows every single one, and no variable can move far unless others move back. So b is held during a
// pass, nearly: for a given b the best dual value phi(b) is convex with phi'(b) = b/B^2 - sum(beta), and after each
// pass b takes a Newton step on it. sum(beta) responds to a move of b by some fraction of sum 1/q over the free
// variables (q: their curvature): all of it, or a small part where w takes over. The last two passes show which. If b
// does not settle, it becomes a weight again.
//
// (Passes to gaps of 1e-2 and 1e-4, squared hinge, with b as a weight and nearly held: reuters 9 and 16, 7 and 10,
// rtpolarity 7 and 20, 4 and 7; benchmarks/compare_linear.py has both sets.)
//
// Two samples that are equal but for their labels are visited together, and both variables take their best values at
// once. Step by step the second would take back most of what the first gained, if both are heavy, as merged samples are.
// (Reuters has 6 such pairs: with them visited so, it takes 5 and 7 passes; with C = 10, 12 to 1e-4 instead of 40.)
#pragma once

#include <cstdint>

#include "linear/descent.hpp"
#include "linear/packed_csr.hpp"

namespace mercer {

// Whether every box has zero at one end, no variable has an epsilon, and all are curved (d > 0, no bound) or none is.
bool one_sided(const DcdProblem& problem, std::int64_t n);

// For one-sided problems only.
DcdResult packed_descent(const PackedCsr& packed, std::int64_t n, std::int64_t d, const DcdProblem& problem,
                         const DcdStop& stop, std::uint64_t* seed, const Threads& threads);

}  // namespace mercer
