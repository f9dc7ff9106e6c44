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
// (Passes to gaps of 1e-2 and 1e-4, squared hinge: reuters 7 and 10 instead of 9 and 16, rtpolarity 4 and 7 instead of
// 7 and 20; benchmarks/compare_linear.py has both sets.)
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
