// Sums over the smoothed losses of samples at given outputs, for Newton's method for linear machines.
#pragma once

#include <cstdint>

#include "threads/interrupt.hpp"

namespace mercer {

// Sample i's loss, smoothed by a proximal term, at the output f is the maximum over t in [lower, upper] of
//
//     (q - f) t - epsilon |t| - t^2 / (2 inverse),    q = p + mu centre,  inverse = 1 / (d + mu).
//
// Its maximiser t, the sample's response, is minus the loss's derivative.
struct SmoothedLosses {
    std::int64_t n;
    const double *q, *inverse, *lower, *upper, *epsilon;
};

struct Response {
    double total;   // sum of t
    double losses;  // of the problem that is not smoothed, with p and d
    double shares;  // of that problem's duality gap
};

// Fills t and adds up what a certificate needs.
Response linear_response(const SmoothedLosses& samples, const double* p, const double* d, const double* f, double* t,
                         int n_threads, Poll& poll);

// The sum of t move at f + step move: minus the slope of the losses along a line.
double linear_along(const SmoothedLosses& samples, const double* f, const double* move, double step, int n_threads,
                    Poll& poll);

}  // namespace mercer
