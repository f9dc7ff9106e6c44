// What a certificate consists of, variable by variable: no solver uses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace mercer {

struct Findings {
    double losses = 0.0, shares = 0.0, total = 0.0;
    double worst_share = -1.0;
    std::int64_t worst = 0;
    double box = 0.0, outward = 0.0, inward = 0.0;
    double top = -std::numeric_limits<double>::infinity(), bottom = std::numeric_limits<double>::infinity();
};

// One variable of the problem: maximise p b - d b^2 / 2 - f b over [lower, upper].
inline void look(double p, double f, double d, double lower, double upper, double beta, std::int64_t i, Findings* to) {
    const double r = p - f, residual = r - d * beta;
    double best = d > 0.0 ? std::clamp(r / d, lower, upper) : (r > 0.0 ? upper : lower);
    if (r == 0.0) best = 0.0;  // any is best; this one does not multiply an infinite bound by zero
    const double loss = r * best - 0.5 * d * best * best;
    const double share = std::max(loss - beta * (r - 0.5 * d * beta), 0.0);
    to->losses += loss;
    to->shares += share;
    if (share > to->worst_share) {
        to->worst_share = share;
        to->worst = i;
    }
    to->box = std::max({to->box, lower - beta, beta - upper});
    const bool up = beta<upper, low = beta> lower;
    const double grow = up ? std::max(residual, 0.0) : 0.0, shrink = low ? std::max(-residual, 0.0) : 0.0;
    to->outward = std::max(to->outward, beta > 0.0 ? grow : beta < 0.0 ? shrink : std::max(grow, shrink));
    to->inward = std::max(to->inward, beta > 0.0 ? shrink : beta < 0.0 ? grow : 0.0);
    if (up) to->top = std::max(to->top, residual);
    if (low) to->bottom = std::min(to->bottom, residual);
}

}  // namespace mercer
