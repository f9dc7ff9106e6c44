// Dual coordinate descent for a linear machine, a row at a time (Hsieh et al. 2008), on
//
//     maximise  p'b - sum of epsilon_i |b_i| - 1/2 b'(XX' + B^2 11' + diag d)b   subject to  lower <= b <= upper,
//
// where B is the value of a feature that every row has: the bias as a regularised weight (0: none; infinite: free).
#pragma once

#include <cstdint>

#include "linear/rows.hpp"
#include "solve/stop_reason.hpp"

namespace mercer {

class PackedCsr;

struct DcdProblem {
    const double* p;
    const double* lower;
    const double* upper;
    const double* d;
    const double* epsilon;
    const double* lengths;  // squared lengths of the rows, without the bias feature
    double bias;            // B; only packed_descent.hpp can do with an infinite one
    double* beta;           // the start, and where it ends
    double* w;              // X'beta, kept up to date
    double* b;              // a guess of the bias, and where it ends
    double value;           // of the dual at the start, without the term of the bias
    bool hold;              // whether b may be held between visits (packed_descent.hpp says why)
};

// Both tolerances must hold over all rows at the end. The joint descent asks for them on its last pass only and leaves
// the rest to its caller's certificate.
struct DcdStop {
    double tol;  // largest gradient that may still be followed
    double gap;  // duality gap over the dual value
    std::int64_t max_epochs;
    double max_seconds;
    bool shrinking;
};

struct DcdResult {
    std::int64_t epochs;  // visits over the number of rows, rounded up
    double violation;     // over the rows of the last pass
    double gap;           // not relative
    StopReason reason;    // converged, max_epochs or max_seconds; unsettled: a free bias that cannot be found this way
};

// With shrinking, and in a new random order from `seed` for every pass. Sparse rows of a classification problem are
// packed into `packed`, which belongs to these rows and is kept between calls.
template <class Rows>
DcdResult linear_dcd(const Rows& rows, PackedCsr& packed, const DcdProblem& problem, const DcdStop& stop,
                     std::uint64_t* seed, const Threads& threads);

}  // namespace mercer
