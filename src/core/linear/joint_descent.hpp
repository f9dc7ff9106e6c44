// Dual coordinate descent for the joint multi-class machine of Crammer and Singer (src/mercer/problems/multiclass.py
// states it) without a kernel: all variables of a row at a time, exactly (Keerthi et al. 2008).
#pragma once

#include <cstdint>

#include "linear/descent.hpp"

namespace mercer {

struct JointDcdProblem {
    const std::int64_t* y;
    const double* C;
    const double* lengths;  // squared lengths of the rows, without the bias feature
    double bias;            // the bias feature's value B; 0: none
    std::int64_t classes;
    double* beta;    // n x classes: the start, and where it ends
    double* w;       // d x classes: X'beta, kept up to date
    double* w_bias;  // per class, B times the sum of beta
};

template <class Rows>
DcdResult linear_joint_dcd(const Rows& rows, const JointDcdProblem& problem, const DcdStop& stop, std::uint64_t* seed,
                           const Threads& threads);

}  // namespace mercer
