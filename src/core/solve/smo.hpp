// Sequential minimal optimisation on a working set whose kernel matrix is stored:
//
//     maximise  p'b - 1/2 b'(K + diag d)b   subject to  lower <= b <= upper,  sum of b over each group constant,
//
// given the gradient h = p - Kb - d b at the start. Group -1 has no equality.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/level.hpp"
#include "solve/stop_reason.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

// Rows of a kernel matrix that is not stored: each is computed when a step first needs it, and stays where it is.
template <class T>
class RowSource {
public:
    virtual const T* row(std::int64_t i) = 0;
    virtual double diagonal(std::int64_t i) const = 0;

protected:
    ~RowSource() = default;
};

template <class T>
struct SmoProblem {
    const T* kernel;  // q rows of q elements, `stride` elements apart; null where `source` has them
    std::ptrdiff_t stride;
    std::int64_t q;
    const double* h;
    double* beta;  // the start, and the solution
    const double* lower;
    const double* upper;
    const double* d;
    const std::int32_t* group;
    RowSource<T>* source = nullptr;
};

struct SmoStop {
    double tol;
    std::int64_t max_steps;
    double max_seconds;
};

struct SmoResult {
    std::int64_t steps;
    double violation;   // the largest over groups of max_up h - min_low h, at least 0; NaN if nonfinite
    StopReason reason;  // converged, max_steps, max_seconds, stalled, unbounded or nonfinite
};

// beta is written at the end only: a call that the poll abandons, or that ends nonfinite, leaves it as it was.
template <class T>
SmoResult smo(const SmoProblem<T>& problem, const SmoStop& stop, const Level& level, Poll& poll);

extern template SmoResult smo(const SmoProblem<float>&, const SmoStop&, const Level&, Poll&);
extern template SmoResult smo(const SmoProblem<double>&, const SmoStop&, const Level&, Poll&);

}  // namespace mercer
