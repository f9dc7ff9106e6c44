// One problem on a kernel matrix that is stored for many problems, such as the folds of a cross-validation:
//
//     maximise  p'b - 1/2 b'(K + diag d)b   subject to  lower <= b <= upper,  sum of b over each group constant.
//
// The matrix has a column for every variable. Variable i has row which[i], so that variables that share a sample share a
// row. A variable with lower = upper takes no part, but its element of u = Kb is kept up to date: that is the decision
// value of a sample that was left out.
#pragma once

#include <cstdint>

#include "solve/smo.hpp"

namespace mercer {

template <class T>
struct StoredProblem {
    const T* kernel;
    std::ptrdiff_t stride;
    const std::int64_t* which;
    std::int64_t q;
    const double* p;
    double* beta;  // the start, and the solution
    double* u;     // K beta, at the start and at the solution; its change is summed in float64
    const double* lower;
    const double* upper;
    const double* d;
    const std::int32_t* group;
};

// beta and u are written at the end only.
template <class T>
SmoResult solve_stored(const StoredProblem<T>& problem, const SmoStop& stop, const Level& level, Poll& poll);

extern template SmoResult solve_stored(const StoredProblem<float>&, const SmoStop&, const Level&, Poll&);
extern template SmoResult solve_stored(const StoredProblem<double>&, const SmoStop&, const Level&, Poll&);

}  // namespace mercer
