// Ascent on the dual of a joint multi-class machine, on a working set of samples whose kernel matrix is stored:
//
//     maximise    sum_i b_i,y(i) - 1/2 sum_k b_k' (K + shift) b_k
//     subject to  sum_k b_ik = 0  and, with a_ik = -b_ik >= 0 for k != y(i),
//                 shared (Crammer-Singer): sum_k a_ik <= bound_i,   separate (Weston-Watkins): a_ik <= bound_i,
//
// given excess_ik = f_k(x_i) + 1 - [k = y(i)] at the start. A step solves one sample's part exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/level.hpp"
#include "solve/stop_reason.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

template <class T>
struct JointProblem {
    const T* kernel;  // q rows of q elements, `stride` elements apart
    std::ptrdiff_t stride;
    std::int64_t q, classes;
    double shift;
    const double* excess;  // q x classes
    double* beta;          // q x classes: the start, and the solution
    const std::int64_t* label;
    const double* bound;
    bool shared;
};

struct JointStop {
    double tol;
    std::int64_t max_steps;
    double max_seconds;
};

struct JointResult {
    std::int64_t steps;
    double violation;    // the largest over samples, at least 0; NaN if nonfinite
    StopReason reason;  // converged, max_steps, max_seconds, stalled or nonfinite
};

// Both maximise  sum_k v_k a_k - 1/2 (sum_k a_k^2 + (sum_k a_k)^2)  over n multipliers a >= 0 and return their sum:
// the shared one under sum a <= bound (the sum is then exactly `bound` where that binds), the separate one under
// a_k <= bound. `guess` is where the search for the sum begins; any finite number will do.
double best_shared(const double* v, std::int64_t n, double bound, double* a);
double best_separate(const double* v, std::int64_t n, double bound, double guess, double* a);

// beta is written at the end only: a call that the poll abandons, or that ends nonfinite, leaves it as it was.
template <class T>
JointResult joint(const JointProblem<T>& problem, const JointStop& stop, const Level& level, Poll& poll);

extern template JointResult joint(const JointProblem<float>&, const JointStop&, const Level&, Poll&);
extern template JointResult joint(const JointProblem<double>&, const JointStop&, const Level&, Poll&);

}  // namespace mercer
