// Two passes over the variables: the first finds each group's bias and how far its sum is off, the second the findings.
#include "solve/dual_findings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"

namespace mercer {

namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

struct GroupFindings {
    double sum = 0.0;  // of the gradients of its free variables
    std::int64_t free = 0;
    double top = -kInfinity, bottom = kInfinity;    // the largest gradient that may rise, the smallest that may fall
    double upmost = -kInfinity, lowest = kInfinity;  // the same with errors
    ExactSum excess;

    double bias() const {
        if (free > 0) return sum / static_cast<double>(free);
        if (std::isfinite(top) && std::isfinite(bottom)) return 0.5 * (top + bottom);
        return std::isfinite(top) ? top : std::isfinite(bottom) ? bottom : 0.0;
    }
};

struct Gradient {
    double value, error;
};

Gradient gradient(const DualPoint& at, std::int64_t i) {
    const double u = at.u[at.row[i]], ridge = at.d[i] * at.beta[i];
    const double size = std::abs(at.p[i]) + std::abs(u) + std::abs(ridge);
    return {at.p[i] - u - ridge, at.error[at.row[i]] + 2.0 * kEps * size};
}

// Whole totals are exact; others, such as a share of all weights, were rounded.
double rounding_of(double total) { return total == std::rint(total) ? 0.0 : 4.0 * kEps * std::abs(total); }

}  // namespace

void ExactSum::add(double x) {
    std::size_t kept = 0;
    for (const double part : parts_) {
        const double sum = x + part, back = sum - x, rest = (x - (sum - back)) + (part - back);
        if (rest != 0.0) parts_[kept++] = rest;
        x = sum;
    }
    parts_.resize(kept);
    parts_.push_back(x);
}

double ExactSum::value() const {
    double sum = 0.0;
    for (const double part : parts_) sum += part;
    return std::isfinite(sum) ? sum : kInfinity;
}

DualFindings certify_dual(const DualPoint& at) {
    const auto count = static_cast<std::size_t>(at.n_groups);
    // The last one is for variables without a group, whose gradients are compared with zero.
    std::vector<GroupFindings> groups(count + 1);
    groups[count].upmost = groups[count].lowest = 0.0;
    ExactSum together;
    for (std::int64_t i = 0; i < at.n; ++i) {
        const std::int32_t g = at.group[i];
        GroupFindings& group = groups[g < 0 ? count : static_cast<std::size_t>(g)];
        const auto [h, error] = gradient(at, i);
        const double beta = at.beta[i];
        const bool up = beta<at.upper[i], low = beta> at.lower[i];
        if (up) {
            group.top = std::max(group.top, h);
            raise_to(h + error, &group.upmost);
        }
        if (low) {
            group.bottom = std::min(group.bottom, h);
            lower_to(h - error, &group.lowest);
        }
        if (up && low) {
            group.sum += h;
            ++group.free;
        }
        if (g >= 0 && beta != 0.0) {
            group.excess.add(beta);
            if (count > 1) together.add(beta);
        }
    }

    DualFindings out;
    for (std::size_t g = 0; g < count; ++g) {
        out.bias.push_back(groups[g].bias());
        groups[g].excess.add(-at.totals[g]);
        together.add(-at.totals[g]);
        const double excess = std::abs(groups[g].excess.value()) + rounding_of(at.totals[g]);
        out.equality = std::max(out.equality, excess);
        out.unbalanced += std::abs(out.bias[g]) * excess;
        raise_to(groups[g].upmost - groups[g].lowest, &out.violation);
    }
    if (count > 1) out.equality = std::max(out.equality, std::abs(together.value()));
    raise_to(groups[count].upmost, &out.violation);
    raise_to(-groups[count].lowest, &out.violation);

    Findings exact;
    for (std::int64_t i = 0; i < at.n; ++i) {
        const auto [h, error] = gradient(at, i);
        const double beta = at.beta[i], d = at.d[i], p = h + d * beta;
        const double b = at.group[i] < 0 ? 0.0 : out.bias[static_cast<std::size_t>(at.group[i])];
        accumulate(p, b, error, d, at.lower[i], at.upper[i], beta, i, &out.found);
        accumulate(p, b, 0.0, d, at.lower[i], at.upper[i], beta, i, &exact);
        out.gain += at.p[i] * beta;
        out.curved += d * beta * beta;
        out.size += std::abs(beta) * (std::abs(at.p[i]) + std::abs(at.u[at.row[i]]));
    }
    out.losses = exact.losses;
    for (std::int64_t k = 0; k < at.n_rows; ++k) {
        out.energy += at.coefficients[k] * at.u[k];
        out.wrong += std::abs(at.coefficients[k]) * at.error[k];
    }
    return out;
}

}  // namespace mercer
