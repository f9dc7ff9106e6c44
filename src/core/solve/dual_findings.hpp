// Numbers of the certificate of a dual problem; src/mercer/certificates/dual.py has the formulas.
#pragma once

#include <cstdint>
#include <vector>

#include "solve/equality.hpp"
#include "solve/findings.hpp"

namespace mercer {

// A point of  maximise p'b - 1/2 b'(K + diag d)b  subject to  lower <= b <= upper,  sum of b over group g = totals[g].
// Variable i belongs to row[i] of K and to group[i], or to none where that is -1.
struct DualPoint {
    const double *p, *lower, *upper, *d;
    const std::int64_t* row;
    const std::int32_t* group;
    const double* beta;
    std::int64_t n;
    const double* totals;
    std::int64_t n_groups;
    // For each row: the sum of its variables, u = K b, how far that can be from the true one, and r with
    // |K_ij| <= r_i r_j.
    const double *coefficients, *u, *error, *reach;
    std::int64_t n_rows;
};

struct DualFindings {
    Findings found;             // shares and residuals are the largest that the errors allow; `total` is not used
    double violation = 0.0;     // the largest that the errors allow
    double energy = 0.0, gain = 0.0, curved = 0.0;  // b'Kb, p'b and b'diag(d)b
    double size = 0.0;          // sum of |b|(|p| + |u|): what rounding of these sums is relative to
    double wrong = 0.0;         // sum over rows of |coefficient| times the error of u
    double equality = 0.0;      // the most that a sum over a group, or over all groups, can be off
    MoveCost repair;            // of moving every sum to its total; infinite outside the box
    std::vector<double> bias;   // of each group: the mean gradient of its free variables, or the middle of what it can be
};
DualFindings certify_dual(const DualPoint& at);

}  // namespace mercer
