// Numbers of a certificate, for problems that are too many or too large for NumPy. No solver uses them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "solve/equality.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

// Sums and extremes over the variables of  maximise p b - d b^2 / 2 - f b  over [lower, upper]; residual = p - f - d b.
struct Findings {
    double losses = 0.0, shares = 0.0, total = 0.0;  // sums of losses, of shares of the duality gap, and of beta
    double worst_share = -1.0;
    std::int64_t worst = 0;                                 // the variable with the largest share
    double box = 0.0;                                       // how far a beta is outside of its box
    double outward = 0.0, inward = 0.0;                     // largest residuals that lead away from zero and towards it
    double top = -std::numeric_limits<double>::infinity();  // largest residual where beta may rise
    double bottom = std::numeric_limits<double>::infinity();  // smallest where it may fall
};

// The larger of two numbers, the smaller: a number that overflow left undefined may be anything.
inline void raise_to(double value, double* most) {
    if (!(value <= *most)) *most = value == value ? value : std::numeric_limits<double>::infinity();
}
inline void lower_to(double value, double* least) {
    if (!(value >= *least)) *least = value == value ? value : -std::numeric_limits<double>::infinity();
}

// The bias that a group's variables agree on: the mean gradient h of its free ones; without any, the middle of what the
// bounded ones allow.
struct Bias {
    double sum = 0.0;
    std::int64_t free = 0;
    double top = -std::numeric_limits<double>::infinity(), bottom = std::numeric_limits<double>::infinity();

    void add(double h, bool up, bool low) {
        if (up) top = h > top ? h : top;
        if (low) bottom = h < bottom ? h : bottom;
        if (up && low) {
            sum += h;
            ++free;
        }
    }
    double value() const {
        if (free > 0) return sum / static_cast<double>(free);
        const bool above = std::isfinite(top), below = std::isfinite(bottom);
        return above && below ? 0.5 * (top + bottom) : above ? top : below ? bottom : 0.0;
    }
};

// Adds one variable to the findings, except to `total`. f may be wrong by `error`: shares and residuals are the largest
// that this allows.
void accumulate(double p, double f, double error, double d, double lower, double upper, double beta, std::int64_t i,
                Findings* to);

// A linear machine at outputs f. Where any epsilon is not zero, every sample has two variables, beta's positive and
// negative part.
struct LinearPoint {
    const double *p, *lower, *upper, *d, *epsilon, *f, *error, *beta;
    std::int64_t n;
};
Findings certify_linear(const LinearPoint& at);

// A kernel machine at u = K beta, with one equality where `paired`: then f = u + b for the b that the free variables
// agree on. K_ii is at most the square of reach_i; where nothing is paired it is not looked at.
struct KernelPoint {
    const double *p, *lower, *upper, *d, *u, *error, *reach, *beta;
    std::int64_t n;
    bool paired;
};
struct PairFindings {
    Findings found;
    double b = 0.0, energy = 0.0, gain = 0.0, curved = 0.0;  // b'Kb, p'b and b'diag(d)b
    double wrong = 0.0;                                       // sum of |b| times the errors of u
    MoveCost repair;  // of moving the sum of beta to zero; `found.total` is the most that it can be off
};
PairFindings certify_pair(const KernelPoint& at);

// What is known of each row of K: the error of that entry of u for coefficients whose sizes add up to 1, and its reach.
struct RowBounds {
    const double *unit_errors, *reach;
};

// certify_pair for many problems side by side: the variables of problem t are those from offsets[t] to before
// offsets[t + 1], variable i belongs to row rows[i] of K, and the sizes of problem t's beta add up to sizes[t]. `error`
// and `reach` of the points come from the bounds; the error of the gradient p - u - d beta is included.
void certify_pairs(KernelPoint all, const RowBounds& bounds, const std::int64_t* rows, const double* sizes,
                   const std::int64_t* offsets, std::int64_t count, PairFindings* out, int n_threads, Poll& poll);

}  // namespace mercer
