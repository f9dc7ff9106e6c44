// The numbers of a pair's certificate, from the findings of `certify_pair`: its values with all rounding errors, its gap
// and its residuals.
#pragma once

#include "solve/findings.hpp"

namespace mercer {

// What overflow leaves undefined claims nothing: it is infinite, and -infinity for the dual value.
struct PairValues {
    double primal, dual, gap, violation;  // an upper and a lower bound on the two values; the gap is at least their difference
    double box, equality, outward, inward;
};

// The sums that values are made of, each off by at most `share` of the sizes of its terms.
struct PairSums {
    double losses, shares, total, box, outward, inward, top, bottom, b, energy, gain, curved, wrong, to_gap, to_dual;
};
PairValues pair_values(const PairSums& found, bool paired, double share);

}  // namespace mercer
