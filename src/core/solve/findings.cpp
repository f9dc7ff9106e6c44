// One pass over the variables of a problem; the formulas are those of src/mercer/certificates.
#include "solve/findings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "solve/equality.hpp"
#include "threads/pool.hpp"

namespace mercer {

namespace {

// The loss at r = p - f, and what beta leaves of it.
struct Loss {
    double value, share;
};

Loss loss_at(double r, double d, double lower, double upper, double beta) {
    double best = d > 0.0 ? std::clamp(r / d, lower, upper) : (r > 0.0 ? upper : lower);
    if (r == 0.0) best = 0.0;  // any is best; this one does not multiply an infinite bound by zero
    const double loss = r * best - 0.5 * d * best * best;
    return {loss, std::max(loss - beta * (r - 0.5 * d * beta), 0.0)};
}

}  // namespace

void accumulate(double p, double f, double error, double d, double lower, double upper, double beta, std::int64_t i,
                Findings* to) {
    const double r = p - f, residual = r - d * beta;
    // Loss and share are convex in r: they are largest at an end.
    const Loss below = loss_at(r - error, d, lower, upper, beta), above = loss_at(r + error, d, lower, upper, beta);
    double share = 0.0, loss = -std::numeric_limits<double>::infinity();
    for (const Loss& end : {below, above}) {
        raise_to(end.share, &share);
        raise_to(end.value, &loss);
    }
    to->losses += loss;
    to->shares += share;
    if (share > to->worst_share) {
        to->worst_share = share;
        to->worst = i;
    }
    raise_to(lower - beta, &to->box);
    raise_to(beta - upper, &to->box);
    const bool up = beta<upper, low = beta> lower;
    const double grow = up ? std::max(residual + error, 0.0) : 0.0, shrink = low ? std::max(error - residual, 0.0) : 0.0;
    raise_to(beta > 0.0 ? grow : beta < 0.0 ? shrink : std::max(grow, shrink), &to->outward);
    raise_to(beta > 0.0 ? shrink : beta < 0.0 ? grow : 0.0, &to->inward);
    if (up) raise_to(residual + error, &to->top);
    if (low) lower_to(residual - error, &to->bottom);
}

Findings certify_linear(const LinearPoint& at) {
    const bool twins = std::any_of(at.epsilon, at.epsilon + at.n, [](double e) { return e != 0.0; });
    Findings found;
    for (std::int64_t i = 0; i < at.n; ++i) {
        const double p = at.p[i], f = at.f[i], error = at.error[i], d = at.d[i], epsilon = at.epsilon[i],
                     beta = at.beta[i];
        found.total += beta;
        if (twins) {
            accumulate(p - epsilon, f, error, d, 0.0, at.upper[i], std::max(beta, 0.0), i, &found);
            accumulate(p + epsilon, f, error, d, at.lower[i], 0.0, std::min(beta, 0.0), i, &found);
        } else {
            accumulate(p, f, error, d, at.lower[i], at.upper[i], beta, i, &found);
        }
    }
    return found;
}

PairFindings certify_pair(const KernelPoint& at) {
    PairFindings out;
    if (at.paired) {
        Bias bias;
        for (std::int64_t i = 0; i < at.n; ++i) {
            const double beta = at.beta[i];
            bias.add(at.p[i] - at.u[i] - at.d[i] * beta, beta < at.upper[i], beta > at.lower[i]);
        }
        out.b = bias.value();
    }
    Total total;
    if (at.paired) {
        for (std::int64_t i = 0; i < at.n; ++i) total.add(at.beta[i]);
    }
    Repair repair(total, 0.0);
    for (std::int64_t i = 0; i < at.n; ++i) {
        const double beta = at.beta[i];
        accumulate(at.p[i], at.u[i] + out.b, at.error[i], at.d[i], at.lower[i], at.upper[i], beta, i, &out.found);
        if (repair.needed()) {
            const double h = at.p[i] - at.u[i] - at.d[i] * beta;
            repair.offer(h, at.error[i], out.b, beta, at.lower[i], at.upper[i], at.d[i], at.reach[i]);
        }
        out.energy += beta * at.u[i];
        out.wrong += std::abs(beta) * at.error[i];
        out.gain += at.p[i] * beta;
        out.curved += at.d[i] * beta * beta;
    }
    out.found.total = total.most();
    out.repair = out.found.box > 0.0 ? MoveCost::without_end() : repair.cost();
    return out;
}

void certify_pairs(KernelPoint all, const RowBounds& bounds, const std::int64_t* rows, const double* sizes,
                   const std::int64_t* offsets, std::int64_t count, PairFindings* out, int n_threads, Poll& poll) {
    constexpr std::int64_t kAlone = 1 << 13;  // variables that are done before a second thread is awake
    constexpr double kGradientError = 4.0 * std::numeric_limits<double>::epsilon();
    std::vector<double> error(static_cast<std::size_t>(all.n)), reach(error.size());
    for (std::int64_t t = 0; t < count; ++t) {
        for (std::int64_t i = offsets[t]; i < offsets[t + 1]; ++i) {
            const double terms = std::abs(all.p[i]) + std::abs(all.u[i]) + std::abs(all.d[i] * all.beta[i]);
            const auto at = static_cast<std::size_t>(i);
            error[at] = bounds.unit_errors[rows[i]] * sizes[t] + kGradientError * terms;
            reach[at] = bounds.reach[rows[i]];
        }
    }
    all.error = error.data();
    all.reach = reach.data();
    parallel_for(
        count, offsets[count] > kAlone ? n_threads : 1,
        [&](std::int64_t t) {
            const std::int64_t from = offsets[t];
            out[t] = certify_pair({all.p + from, all.lower + from, all.upper + from, all.d + from, all.u + from,
                                   all.error + from, all.reach + from, all.beta + from, offsets[t + 1] - from, all.paired});
        },
        poll);
}

}  // namespace mercer
